"""What people type, turned into domains, policies and workloads."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

import sfumato as sf
from sfumato.app.keys import NOTHING, Key, listed
from sfumato.errors import InvalidInput

Bounds = Annotated[
    str | None, typer.Option(help="Edges of the domain: LO,HI on a line, X0,Y0,X1,Y1 on a grid.", metavar="NUMBERS")
]
Shape = Annotated[str | None, typer.Option(help="Cells along each axis: 4096, or 256x256.", metavar="CELLS")]
LabelList = Annotated[str | None, typer.Option(help="Categories instead of bounds: A,B,C.", metavar="NAMES")]
PolicyName = Annotated[
    str | None,
    typer.Option(
        help="What to hide: within (the default: moves shorter than --delta), threshold (moves of --theta cells), "
        "bounded (replace-one), unbounded (add/remove); or say --hide, as in a publication file."
    ),
]
Delta = Annotated[str | None, typer.Option(help="The distance within which moves are hidden, in units of the bounds.")]
Queries = Annotated[
    str | None,
    typer.Option(
        "--ask", "--workload", help="What will be asked: ranges (the default), histogram, prefixes, or as in a file."
    ),
]
Epsilon = Annotated[
    str | None, typer.Option(help="The privacy budget; of a stream, that of every window (default: the file's, or 1).")
]
PerEntity = Annotated[int | None, typer.Option(help="Promise something about a person with at most so many records.")]
VaultFolder = Annotated[Path | None, typer.Option("--vault", help="Keep the noise here, to refine the release later.")]
VaultKey = Annotated[
    Path | None, typer.Option("--key", help="The vault's key file (default: $SFUMATO_VAULT_KEY); made when missing.")
]
Keys = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="KEY=VALUE",
        help="Any key of a publication file, such as domain.place.shape=[64,64]. Where no option here has its name, "
        "--KEY VALUE says the same: --hide, --public, --theta, --values, --mechanism, --dataset, --label, --outside, …",
    ),
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
        return sf.Categories(listed(labels), other=other)
    if other is not None:
        raise InvalidInput("--other belongs to --labels.")
    if bounds is None or shape is None:
        raise InvalidInput("give --bounds and --shape, such as --bounds 0,0,10,10 --shape 64x64 (or --labels A,B,C).")
    edges = numbers(bounds, "--bounds")
    cells = sides(shape)
    if len(edges) != 2 * len(cells):
        raise InvalidInput(f"--bounds has {len(edges)} numbers; a --shape of {len(cells)} axes needs {2 * len(cells)}.")
    if len(cells) == 1:
        return sf.Line(edges[0], edges[1], cells=cells[0])
    return sf.Grid(bounds=tuple(edges), shape=cells)


def factor_keys(option: str, given: str, *, line: bool) -> dict[str, Any]:
    """What an option sets of a factor in a file."""
    if option == "--labels":
        return {"labels": listed(given)}
    if option == "--other":
        return {"other": given}
    if option == "--bounds":
        edges = numbers(given, option)
        if line and len(edges) != 2:
            raise InvalidInput(f"--bounds has {len(edges)} numbers; the line in the file needs 2. {NOTHING}")
        return {"low": edges[0], "high": edges[1]} if line else {"bounds": edges}
    cells = sides(given)
    if line and len(cells) != 1:
        raise InvalidInput(f"--shape {given!r} is not the number of cells of a line. {NOTHING}")
    return {"cells": cells[0]} if line else {"shape": list(cells)}


def sides(shape: str) -> tuple[int, ...]:
    """The number of cells along each axis."""
    try:
        return tuple(int(part) for part in shape.lower().replace("×", "x").split("x"))
    except ValueError:
        raise InvalidInput(f"--shape {shape!r} is not a number of cells such as 4096 or 256x256.") from None


def rule(name: str, delta: str | None, theta: int | None, sources: str | None, metric: str | None) -> dict[Key, Any]:
    """One of the four named policies, as the key of a file that says it."""
    needless = {"--delta": delta, "--theta": theta, "--sources": sources, "--metric": metric}
    wanted = {
        "within": ("--delta", "--sources", "--metric"),
        "threshold": ("--theta",),
        "bounded": (),
        "unbounded": (),
    }
    if name not in wanted:
        raise InvalidInput(f"--policy {name!r} is not one of {', '.join(wanted)}.")
    for option, value in needless.items():
        if value is not None and option not in wanted[name]:
            raise InvalidInput(f"{option} does not belong to --policy {name}.")
    if name == "within":
        if delta is None:
            raise InvalidInput(
                "--policy within needs --delta, the distance within which moves are hidden (or give --hide instead)."
            )
        given: Any = sources
        if sources not in (None, "boundary"):
            given = [numbers(point, "--sources") for point in str(sources).split(";")]
        return {("hide",): sf.move(delta, sources=given, **({} if metric is None else {"metric": metric})).to_text()}
    if name == "threshold":
        if theta is None:
            raise InvalidInput("--policy threshold needs --theta, the number of cells.")
        return {("theta",): theta}
    return {("hide",): (sf.anything() if name == "bounded" else sf.presence()).to_text()}


def asked(given: str) -> str:
    """A workload as a file says it: by its name alone, or in full."""
    known = {"ranges": sf.ranges, "histogram": sf.histogram, "prefixes": sf.prefixes}
    if "(" in given:
        return given
    if given not in known:
        raise InvalidInput(f"--workload {given!r} is not one of {', '.join(known)}.")
    return known[given]().to_text()
