"""What every benchmark shares: a table for people, and a JSON file that says on which machine it was made."""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

OUT = Path(__file__).parent / "out"

Row = Mapping[str, object]


def table(rows: Sequence[Row]) -> None:
    """Print rows of equal keys as columns, numbers to the right."""
    if not rows:
        return
    names = list(rows[0])
    cells = [[_cell(row[name]) for name in names] for row in rows]
    widths = [max(len(name), *(len(line[i]) for line in cells)) for i, name in enumerate(names)]
    numeric = [all(isinstance(row[name], int | float | None) for row in rows) for name in names]
    for line in [names, ["-" * width for width in widths], *cells]:
        justified = (
            text.rjust(width) if right else text.ljust(width)
            for text, width, right in zip(line, widths, numeric, strict=True)
        )
        print("  ".join(justified).rstrip())


def write_json(name: str, payload: Mapping[str, object]) -> Path:
    """Write `bench/out/<name>.json`: the payload, and the machine and versions under "machine"."""
    OUT.mkdir(exist_ok=True)
    path = OUT / f"{name}.json"
    path.write_text(json.dumps({"machine": machine(), **payload}, indent=2) + "\n", encoding="utf-8")
    return path


def markdown(rows: Sequence[Row]) -> str:
    """Rows of equal keys as a Markdown table, numbers to the right and to three digits."""
    names = list(rows[0])
    numeric = [all(isinstance(row[name], int | float | None) for row in rows) for name in names]
    lines = [names, [" ---: " if right else " --- " for right in numeric]]
    lines[1] = [cell.strip() for cell in lines[1]]
    lines += [[_shown(row[name]) for name in names] for row in rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def put(page: Path, name: str, rows: Sequence[Row]) -> None:
    """Write a table between the two comments of its name on a page: `<!-- name -->` and `<!-- /name -->`."""
    text = page.read_text(encoding="utf-8")
    before, mark, rest = text.partition(f"<!-- {name} -->\n")
    _, end, after = rest.partition(f"<!-- /{name} -->")
    if not mark or not end:
        raise SystemExit(
            f"{page} has no place for {name!r}: <!-- {name} --> and <!-- /{name} --> on lines of their own."
        )
    page.write_text(f"{before}{mark}\n{markdown(rows)}\n\n{end}{after}", encoding="utf-8")


def machine() -> dict[str, object]:
    """What a figure depends on."""
    return {
        "cpus": os.cpu_count(),
        "architecture": platform.machine(),
        "system": platform.system(),
        "python": platform.python_version(),
        "numpy": np.__version__,
    }


def _shown(value: object) -> str:
    if value is None:
        return "–"
    if isinstance(value, float):
        return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}" if abs(value) < 100 else f"{value:.0f}"
    return f"{value:,}" if isinstance(value, int) else str(value)


def _cell(value: object) -> str:
    if value is None:
        return "-"
    if isinstance(value, float):
        return f"{value:.4g}"
    return str(value)
