"""The tables of the documentation's page on maps, from what `maps` measured."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

SIZES = ("all ranges", "side 16", "side 4")
BEGIN, END = "<!-- tables -->\n", "<!-- end of the tables -->"
WAYS = ("least told", "UGrid", "AGrid", "PrivTree", "HTF", "DAWA", "plan", "adaptive-grid", "quadtree")
BESIDE = ("least told", "DAWA")  # for comparison: one knows the number of records alone, the other is not private
TITLES = {"least told": "even guess", "adaptive-grid": "`adaptive-grid`", "quadtree": "`quadtree`", "DAWA": "DAWA*"}
RELATIONS = {
    "moves": "Moves of less than four cells (the published ones at half of ε, since a move changes two counts):",
    "add/remove": "Add/remove:",
}
Row = dict[str, Any]


def _short(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def _bold(value: float, least: bool) -> str:
    return f"**{_short(value)}**" if least else _short(value)


def _cases(rows: list[Row]) -> dict[tuple[str, ...], dict[str, Row]]:
    cases: dict[tuple[str, ...], dict[str, Row]] = {}
    for row in rows:
        cases.setdefault((row["relation"], row["data"], row["epsilon"]), {})[row["way"]] = row
    return cases


def _line(case: dict[str, Row], ways: tuple[str, ...]) -> list[str]:
    """The errors of all ways, the least of what is private in bold."""
    known = [case[way] for way in ways if way not in BESIDE]
    least = {size: min(float(row[size]) for row in known) for size in SIZES}
    found = []
    for way in ways:
        told = [(size, float(case[way][size])) for size in SIZES]
        found.append(" / ".join(_bold(v, way not in BESIDE and v == least[size]) for size, v in told))
    return found


def tables(rows: list[Row], model: list[Row], plans: list[Row]) -> str:
    """All of it, as Markdown."""
    cases, parts = _cases(rows), []
    for relation, words in RELATIONS.items():
        taken = sorted({row["takes"] for row in plans if row["relation"] == relation})
        titles = [f"plan ({', '.join(f'`{n}`' for n in taken)})" if w == "plan" else TITLES.get(w, w) for w in WAYS]
        lines = [f"| map | ε | {' | '.join(titles)} |", f"| --- | ---: |{' ---: |' * len(WAYS)}"]
        for (of, name, epsilon), case in cases.items():
            if of == relation:
                first, second = str(epsilon).split("/") if "/" in str(epsilon) else (epsilon, 1)
                lines.append(f"| {name} | {int(first) / int(second):g} | {' | '.join(_line(case, WAYS))} |")
        parts.append(f"{words}\n\n" + "\n".join(lines) + "\n")
    wins = []
    for relation in RELATIONS:
        for size in SIZES:
            best: dict[str, int] = {}
            for (of, *_), case in cases.items():
                if of == relation:
                    way = min((float(case[w][size]), w) for w in WAYS if w not in BESIDE)[1]
                    best[way] = best.get(way, 0) + 1
            ranked = sorted(best.items(), key=lambda pair: -pair[1])
            wins.append([relation, size, ", ".join(f"{TITLES.get(way, way)} {count}" for way, count in ranked)])
    lines = ["| relation | size | least error, in how many of the cases |", "| --- | --- | --- |"]
    parts.append("\n".join([*lines, *(f"| {' | '.join(row)} |" for row in wins)]) + "\n")
    ways = ("AGrid", "adaptive-grid", "adaptive-grid, non-negative", "quadtree", "quadtree, non-negative")
    lines = [
        "| map | AGrid | `adaptive-grid` | its non-negative map | `quadtree` | its non-negative map |",
        "| --- | ---: | ---: | ---: | ---: | ---: |",
    ]
    for (of, name, epsilon), case in cases.items():
        if (of, epsilon) == ("moves", "1"):
            told = [_short(float(case[way]["scales"])) for way in ways]
            both = [f"{line} / {scale}" for line, scale in zip(_line(case, ways), told, strict=True)]
            lines.append(f"| {name} | {' | '.join(both)} |")
    words = (
        "Under moves at ε = 1, with the error of `sf.scales()` (every scale weighed alike) as a fourth number, and "
        "what `release.nonnegative()` makes of such releases, which costs nothing:"
    )
    parts.append(f"{words}\n\n" + "\n".join(lines) + "\n")
    lines = ["| | question | least | middle | largest |", "| --- | --- | ---: | ---: | ---: |"]
    for way in ("adaptive-grid", "quadtree"):
        for asked in ("ranges", "scales"):
            ratios = [float(row[asked]) for row in model if row["way"] == way]
            told = " | ".join(f"{v:.2g}" for v in (min(ratios), float(np.median(ratios)), max(ratios)))
            lines.append(f"| `{way}` | `sf.{asked}()` | {told} |")
    words = (
        "The error of a run over what a plan tells from the number of records alone (`records=`), on all these maps, "
        "under both relations and at the three ε:"
    )
    parts.append(f"{words}\n\n" + "\n".join(lines) + "\n")
    return "\n".join(parts)


def write(path: Path, rows: list[Row], model: list[Row], plans: list[Row]) -> None:
    """The tables of the page anew: all that stands between its two marks."""
    page = path.read_text(encoding="utf-8")
    begin, end = page.index(BEGIN) + len(BEGIN), page.index(END)
    path.write_text(f"{page[:begin]}\n{tables(rows, model, plans)}\n{page[end:]}", encoding="utf-8")
