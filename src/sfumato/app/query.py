"""`sfumato query`: answers from a release, by range, by name and in groups, as text, CSV or JSON."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from datetime import date
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

import sfumato as sf
from sfumato.app import options
from sfumato.app.asked import groups_of, range_of, where_of
from sfumato.app.output import emit, reported, say
from sfumato.errors import InvalidInput
from sfumato.reading import visible
from sfumato.release.export import harmless

FIGURES = ("value", "stderr", "low", "high", "cut_share")

Where = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NAME=VALUE",
        help="What is asked of another axis or factor: mode=bike, mode=bus,bike (together), "
        "t=2026-01-01/2026-01-08, fare=0,20. Repeat for more.",
    ),
]


def query(
    release: Annotated[Path, typer.Argument(help="A release file.")],
    ranges: Annotated[
        list[str] | None,
        typer.Option("--range", help="LO,HI on a line, X0,Y0,X1,Y1 on a grid, or a label. Repeat for more."),
    ] = None,
    file: Annotated[Path | None, typer.Option("--ranges", help="A text file with one range a line.")] = None,
    where: Where = None,
    by: Annotated[list[str] | None, typer.Option(metavar="NAME", help="A row for each of its cells. Repeat.")] = None,
    confidence: Annotated[float, typer.Option(help="How often the interval shall hold.")] = 0.95,
    cut: options.Cut = "bracket",
    estimate: Annotated[
        str, typer.Option(help="'nonnegative' for values of which none is below zero, near the plain ones.")
    ] = "plain",
    as_csv: Annotated[bool, typer.Option("--csv", help="Print CSV: a header, then a row an answer.")] = False,
    as_json: options.Json = False,
) -> None:
    """Answer ranges from a release, with standard errors and intervals. Needs no data and no secret.

    A range that cuts cells gets an interval that holds the records on whichever side of the cut they lie. On a product
    --range is that of the place; --where asks other axes by name, and what is not named is summed over.

    Example: sfumato query visits.sfumato --range=-74.0,40.70,-73.95,40.75 --where t=2026-01-01/2026-01-08 --by mode
    """
    with reported(as_json):
        if as_json and as_csv:
            raise InvalidInput("--csv and --json are two forms. Nothing was answered. Give one of them.")
        loaded = sf.load(release)
        typed = list(ranges or [])
        if file is not None:
            typed += [line.strip() for line in file.read_text(encoding="utf-8").splitlines() if line.strip()]
        asked = where_of(loaded.domain, where or [])
        groups = groups_of(loaded.domain, by or [])
        if not (typed or asked or groups):
            raise InvalidInput("ask something: --range LO,HI (or X0,Y0,X1,Y1), --ranges FILE, --where or --by.")
        parsed = [range_of(loaded.domain, one, (*asked, *groups)) for one in typed]
        answer = loaded.answer(
            _together(parsed),
            where=asked or None,
            by=groups or None,
            confidence=confidence,
            cut=cut,
            estimate=estimate,
        )
        snapped = cut == "snap" and bool(typed) and not asked and not groups and loaded.domain.is_spatial
        rows = _rows(typed, answer, grouped=bool(groups))
        if as_csv:
            say_csv(rows)
        elif as_json:
            if snapped:
                rows = [row | {"answered": list(one)} for row, one in zip(rows, _listed(answer.range), strict=True)]
            told = {"where": where} if where else {}
            told |= {"by": by} if by else {}
            about = {"confidence": confidence, "promise": str(loaded.guarantee), "cut": cut, **told}
            emit(about | {"answers": [_plain(row) for row in rows]})
        else:
            if snapped:
                ends = [",".join(f"{end:.10g}" for end in one) for one in _listed(answer.range)]
                rows = [row | {"range": one} for row, one in zip(rows, ends, strict=True)]
                say("Every range was moved to the nearest whole cells; the first column says where it then lies.")
            _tell(rows, confidence, cut)
            say(f"\n{loaded.guarantee}")


def _together(parsed: list[Any]) -> Any:
    """One range is a row of ends or a label; several are as many questions."""
    if not parsed:
        return None
    if len(parsed) == 1 and isinstance(parsed[0], tuple):
        return [parsed[0]]  # with a dimension, as every list of ranges has
    return parsed


def _listed(ranges: Any) -> list[Any]:
    return [tuple(one) for one in np.asarray(ranges).tolist()]


def _rows(typed: list[str], answer: sf.Answer, *, grouped: bool) -> list[dict[str, Any]]:
    """A row an answer: the range as it was typed, what it is grouped by, and the figures; unknown ones are None."""
    figures = [np.asarray(getattr(answer, name), dtype=np.float64).ravel() for name in FIGURES]
    numbers = [[None if np.isnan(v) else float(v) for v in row] for row in zip(*figures, strict=True)]
    keys: list[dict[str, Any]] = [{} for _ in numbers]
    if grouped:
        keys = [{k: v for k, v in row.items() if k not in FIGURES} for row in answer.to_frame().to_pylist()]  # type: ignore[attr-defined]
    each = len(numbers) // max(len(typed), 1)
    ranges = [{"range": typed[i // each]} if typed else {} for i in range(len(numbers))]
    return [
        one | {k: v for k, v in key.items() if k != "range" or not typed} | dict(zip(FIGURES, row, strict=True))
        for one, key, row in zip(ranges, keys, numbers, strict=True)
    ]


def _plain(row: dict[str, Any]) -> dict[str, Any]:
    return {name: value.isoformat() if isinstance(value, date) else value for name, value in row.items()}


def say_csv(rows: Sequence[dict[str, Any]]) -> None:
    """Rows as CSV. A label that a spreadsheet would run gets an apostrophe, as in `release.to_csv`."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    names = list(rows[0]) if rows else list(FIGURES)
    writer.writerow([harmless(visible(name)) for name in names])
    for row in rows:
        plain = _plain(row)
        writer.writerow([harmless(visible(v)) if isinstance(v, str) else v for v in plain.values()])
    typer.echo(text.getvalue(), nl=False)


def _tell(rows: Sequence[dict[str, Any]], confidence: float, cut: str) -> None:
    """Rows for people, in columns."""
    interval = f"{confidence:.0%} interval{' of the noise alone' if cut == 'proportion' else ''}"
    names = [name for name in rows[0] if name not in FIGURES] if rows else []
    words = [[_word(row[name]) for name in names] for row in rows]
    widths = [max(len(name), *(len(line[i]) for line in words)) for i, name in enumerate(names)]
    head = [f"{name:<{width}}  " for name, width in zip(names, widths, strict=True)]
    say(f"{''.join(head)}{'estimate':>14}  {'± std. error':>14}  {'in cut cells':>12}  {interval}")
    for line, row in zip(words, rows, strict=True):
        keys = "".join(f"{word:<{width}}  " for word, width in zip(line, widths, strict=True))
        error = "unknown" if row["stderr"] is None else f"{row['stderr']:,.2f}"
        say(f"{keys}{row['value']:>14,.1f}  {error:>14}  {row['cut_share'] or 0:>12.0%}  {_interval(row)}")


def _word(value: Any) -> str:
    if isinstance(value, date):
        return str(value)
    return f"{value:.10g}" if isinstance(value, float) else visible(str(value))


def _interval(row: dict[str, Any]) -> str:
    if row["low"] is None:
        return "none: the error depends on the data"
    return f"[{row['low']:,.1f}, {row['high']:,.1f}]"
