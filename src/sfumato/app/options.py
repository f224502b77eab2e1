"""What people type, turned into domains, policies and workloads."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

import sfumato as sf
from sfumato.errors import InvalidInput

Bounds = Annotated[
    str | None, typer.Option(help="Edges of the domain: LO,HI on a line, X0,Y0,X1,Y1 on a grid.", metavar="NUMBERS")
]
Shape = Annotated[str | None, typer.Option(help="Cells along each axis: 4096, or 256x256.", metavar="CELLS")]
LabelList = Annotated[str | None, typer.Option(help="Categories instead of bounds: A,B,C.", metavar="NAMES")]
Other = Annotated[str | None, typer.Option(help="The label that takes whatever is none of --labels.", metavar="NAME")]
PolicyName = Annotated[
    str,
    typer.Option(
        help="What to hide: within (moves shorter than --delta), threshold (moves of --theta cells), "
        "bounded (replace-one), unbounded (add/remove)."
    ),
]
Delta = Annotated[str | None, typer.Option(help="The distance within which moves are hidden, in units of the bounds.")]
Theta = Annotated[int | None, typer.Option(help="The number of cells for --policy threshold.")]
Sources = Annotated[str | None, typer.Option(help="Where records may appear: 'boundary', or points X,Y;X,Y.")]
Metric = Annotated[
    str, typer.Option(help="euclidean, manhattan, chebyshev, or great-circle (degrees, with --delta in metres).")
]
Queries = Annotated[str, typer.Option(help="What will be asked: ranges, histogram or prefixes.")]
Epsilon = Annotated[str, typer.Option(help="The privacy budget of this release.")]
Mechanism = Annotated[str | None, typer.Option(help=f"Force one of: {', '.join(sf.mechanisms())}.")]
PerEntity = Annotated[int | None, typer.Option(help="Promise something about a person with at most so many records.")]
Outside = Annotated[str, typer.Option(help="Points outside the bounds: clamp, or drop where the policy allows it.")]
VaultFolder = Annotated[Path | None, typer.Option("--vault", help="Keep the noise here, to refine the release later.")]
VaultKey = Annotated[
    Path | None, typer.Option("--key", help="The vault's key file (default: $SFUMATO_VAULT_KEY); made when missing.")
]
Cut = Annotated[
    str,
    typer.Option(
        help="What becomes of cells that a range cuts: bracket (an interval that holds the records), proportion (the "
        "noise alone), snap (the nearest range of whole cells)."
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON for programs instead of text for people.")]


def numbers(given: str, name: str) -> list[float]:
    """Numbers separated by commas."""
    try:
        return [float(part) for part in given.split(",")]
    except ValueError:
        raise InvalidInput(f"{name} {given!r} is not a list of numbers separated by commas.") from None


def domain(bounds: str | None, shape: str | None, labels: str | None, other: str | None = None) -> sf.Domain:
    """A line, a grid or categories."""
    if labels is not None:
        if bounds is not None or shape is not None:
            raise InvalidInput("--labels stands alone: leave --bounds and --shape out.")
        return sf.Categories([part.strip() for part in labels.split(",")], other=other)
    if other is not None:
        raise InvalidInput("--other belongs to --labels.")
    if bounds is None or shape is None:
        raise InvalidInput("give --bounds and --shape, such as --bounds 0,0,10,10 --shape 64x64 (or --labels A,B,C).")
    edges = numbers(bounds, "--bounds")
    try:
        cells = tuple(int(part) for part in shape.lower().replace("×", "x").split("x"))
    except ValueError:
        raise InvalidInput(f"--shape {shape!r} is not a number of cells such as 4096 or 256x256.") from None
    if len(edges) != 2 * len(cells):
        raise InvalidInput(f"--bounds has {len(edges)} numbers; a --shape of {len(cells)} axes needs {2 * len(cells)}.")
    if len(cells) == 1:
        return sf.Line(edges[0], edges[1], cells=cells[0])
    return sf.Grid(bounds=tuple(edges), shape=cells)


def policy(
    where: sf.Domain, name: str, delta: str | None, theta: int | None, sources: str | None, metric: str
) -> sf.Policy:
    """One of the four named policies."""
    needless = {"--delta": delta, "--theta": theta, "--sources": sources}
    wanted = {"within": ("--delta", "--sources"), "threshold": ("--theta",), "bounded": (), "unbounded": ()}
    if name not in wanted:
        raise InvalidInput(f"--policy {name!r} is not one of {', '.join(wanted)}.")
    for option, value in needless.items():
        if value is not None and option not in wanted[name]:
            raise InvalidInput(f"{option} does not belong to --policy {name}.")
    if name == "within":
        if delta is None:
            raise InvalidInput("--policy within needs --delta, the distance within which moves are hidden.")
        given: Any = sources
        if sources not in (None, "boundary"):
            given = [numbers(point, "--sources") for point in str(sources).split(";")]
        return sf.within(where, delta, sources=given, metric=metric)
    if name == "threshold":
        if theta is None:
            raise InvalidInput("--policy threshold needs --theta, the number of cells.")
        return sf.threshold(where, theta)
    return sf.bounded(where) if name == "bounded" else sf.unbounded(where)


def workload(name: str) -> sf.Workload:
    """One of the named workloads."""
    known = {"ranges": sf.ranges, "histogram": sf.histogram, "prefixes": sf.prefixes}
    if name not in known:
        raise InvalidInput(f"--workload {name!r} is not one of {', '.join(known)}.")
    return known[name]()
