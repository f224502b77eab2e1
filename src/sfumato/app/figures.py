"""`sfumato rate`, `compare` and `suppress`: what is published from releases, as text, CSV or JSON."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Annotated, Any, cast

import numpy as np
import typer

import sfumato as sf
from sfumato.app import options
from sfumato.app.asked import groups_of, range_of, value_along, where_of
from sfumato.app.output import emit, reported, say
from sfumato.app.query import Where, say_csv
from sfumato.domain import Labels
from sfumato.errors import InvalidInput
from sfumato.exact import shown

By = Annotated[list[str] | None, typer.Option(metavar="NAME", help="A row for each of its cells or groups. Repeat.")]
Confidence = Annotated[float, typer.Option(help="How often the interval shall hold.")]
Csv = Annotated[bool, typer.Option("--csv", help="Print CSV: a header, then a row a figure.")]


def rate(
    release: Annotated[Path, typer.Argument(help="A release file.")],
    case: Annotated[
        str,
        typer.Option(
            metavar="LABELS", help="What makes a case: a label, several with commas between them, or NAME=VALUE."
        ),
    ],
    by: By = None,
    over: Annotated[
        Path | None,
        typer.Option(help="What to divide by: another release, or public numbers in a CSV or Parquet file."),
    ] = None,
    per: Annotated[float, typer.Option(help="Cases for each of so many, such as 100000.")] = 1,
    where: Where = None,
    confidence: Confidence = 0.95,
    cut: options.Cut = "bracket",
    as_csv: Csv = False,
    as_json: options.Json = False,
) -> None:
    """Rates with intervals that hold: cases among all records, or over another release or public numbers.

    A public table has a column for every name in --by, and one with numbers. Where a denominator may be 0 the interval
    has no upper end.

    Example: sfumato rate visits.sfumato --case ill --by region --per 100000 --over people.csv
    """
    with reported(as_json):
        _one_form(as_csv, as_json)
        loaded = sf.load(release)
        found = loaded.rate(
            _case(loaded, case),
            by=groups_of(loaded.domain, by or []) or None,
            over=None if over is None else _over(over),
            per=per,
            where=where_of(loaded.domain, where or []) or None,
            confidence=confidence,
            cut=cut,
        )
        _tell(found, as_csv, as_json, {"per": per, "cut": cut})


def compare(
    new: Annotated[Path, typer.Argument(help="The release that is newer.")],
    old: Annotated[Path, typer.Argument(help="The release that it is compared with.")],
    ranges: Annotated[
        list[str] | None,
        typer.Option("--range", help="LO,HI on a line, X0,Y0,X1,Y1 on a grid, or a label. Repeat for more."),
    ] = None,
    where: Where = None,
    by: By = None,
    percent: Annotated[bool, typer.Option("--percent", help="In per cent of the old figures.")] = False,
    confidence: Confidence = 0.95,
    cut: options.Cut = "bracket",
    as_csv: Csv = False,
    as_json: options.Json = False,
) -> None:
    """The change from one release to another, with intervals over the noise of both.

    Releases of different domains, mechanisms or relations are compared on what both can answer.

    Example: sfumato compare 2026.sfumato 2025.sfumato --by region --percent
    """
    with reported(as_json):
        _one_form(as_csv, as_json)
        later, earlier = sf.load(new), sf.load(old)
        asked, groups = where_of(later.domain, where or []), groups_of(later.domain, by or [])
        typed = [range_of(later.domain, one, (*asked, *groups)) for one in ranges or []]
        change = sf.percent_change(later, earlier) if percent else sf.difference(later, earlier)
        found = cast(Any, change).answer(
            typed or None, where=asked or None, by=groups or None, confidence=confidence, cut=cut
        )
        statement = cast(Any, change).statement
        _tell(found, as_csv, as_json, {"cut": cut}, statement=statement, typed=ranges or [])


def suppress(
    release: Annotated[Path, typer.Argument(help="A release file.")],
    below: Annotated[float | None, typer.Option(help="Show figures of at least so many.")] = None,
    relative_error: Annotated[
        float | None, typer.Option(help="Show figures with a standard error of at most this share of themselves.")
    ] = None,
    off_by: Annotated[
        float | None, typer.Option(help="Show figures that are rarely off by more than this share of themselves.")
    ] = None,
    chance: Annotated[float | None, typer.Option(help="How rarely: the chance, with --off-by (default: 0.05).")] = None,
    min_area: Annotated[
        str | None, typer.Option(metavar="AREA", help="Show groups of at least this area: '3 km2', '2 ha'.")
    ] = None,
    largest: Annotated[
        int | None, typer.Option(help="Show so many largest figures, with the false coverage rate.")
    ] = None,
    by: By = None,
    where: Where = None,
    confidence: Confidence = 0.95,
    false_coverage: Annotated[
        bool, typer.Option("--false-coverage", help="Intervals that hold together, not each given that it is shown.")
    ] = False,
    as_csv: Csv = False,
    as_json: options.Json = False,
) -> None:
    """The figures that rules let be shown, with a reason for every gap; intervals hold given that a figure is shown.

    Example: sfumato suppress visits.sfumato --by county --below 100 --off-by 0.1 --min-area "3 km2"
    """
    with reported(as_json):
        _one_form(as_csv, as_json)
        loaded = sf.load(release)
        found = loaded.suppress(
            by=groups_of(loaded.domain, by or []) or None,
            where=where_of(loaded.domain, where or []) or None,
            below=below,
            relative_error=relative_error,
            off_by=off_by,
            chance=chance,
            min_area=min_area,
            largest=largest,
            confidence=confidence,
            intervals="false coverage" if false_coverage else None,
        )
        told = {"shown": found.shown, "all": found.all, "level": found.level, "empty_at_most": found.empty}
        _tell(found, as_csv, as_json, told | {"summary": found.summary})


def _one_form(as_csv: bool, as_json: bool) -> None:
    if as_json and as_csv:
        raise InvalidInput("--csv and --json are two forms. Nothing was computed. Give one of them.")


def _case(release: sf.Release, text: str) -> Any:
    """Labels, commas and all where one is called so; or what --where would ask."""
    labels = [cast(Labels, axis) for axis in release.domain.axes if axis.reads == "labels"]
    for axis in labels:
        try:
            return {axis.name: value_along([axis], text, f"--case {shown(text)}")}
        except InvalidInput:
            continue  # another attribute may have them
    if "=" in text:
        return where_of(release.domain, [text])
    return text


def _over(path: Path) -> Any:
    """A release, or a table of public numbers."""
    if path.suffix.lower() == ".csv":
        from pyarrow import csv

        return csv.read_csv(path)
    if path.suffix.lower() == ".parquet":
        import pyarrow.parquet as pq

        return pq.read_table(path)
    return sf.load(path)


def _tell(
    found: Any,
    as_csv: bool,
    as_json: bool,
    about: dict[str, Any],
    *,
    statement: str = "",
    typed: list[str] | None = None,
) -> None:
    """Rows in the form that was asked for. JSON has no infinity: an end that there is not is null."""
    promise = statement or found.statement
    rows = _rows(found)
    if typed:
        rows = [row | {"range": typed[i // (len(rows) // len(typed))]} for i, row in enumerate(rows)]
    if not (as_csv or as_json):
        if hasattr(found, "to_frame"):
            say(str(found))
        else:
            for row in rows:
                inside = f"{found.confidence:.0%} within [{row['low']:,.1f}, {row['high']:,.1f}]"
                say(f"{row.get('range', 'all')}: {row['value']:,.1f}, {inside}")
        say(f"\n{promise}")
        return
    if as_csv:
        say_csv(rows)
        return
    finite = [{name: _finite(value) for name, value in row.items()} for row in rows]
    emit({"confidence": found.confidence, "promise": promise, **about, "figures": finite})


def _rows(found: Any) -> list[dict[str, Any]]:
    """A row a figure."""
    if hasattr(found, "to_frame"):
        rows: list[dict[str, Any]] = found.to_frame().to_pylist()
        return rows
    names = ("value", "stderr", "low", "high")
    columns = [np.ravel(np.asarray(getattr(found, name), dtype=np.float64)).tolist() for name in names]
    return [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]


def _finite(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value.isoformat() if hasattr(value, "isoformat") else value
