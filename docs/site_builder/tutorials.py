"""Tutorials: pages that are run when the site is built, with what they print and draw below each block; and the same
as notebooks.

A tutorial is written once, as a page. Its notebook is made from it and kept in `examples/notebooks`, without output,
and a test says that it is what the page would make today.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from site_builder.blocks import Block, Shown, blocks, run

TUTORIALS = Path(__file__).resolve().parent.parent / "tutorials"
COMPARED = TUTORIALS.parent / "coming-from"
NOTEBOOKS = Path(__file__).resolve().parents[2] / "examples" / "notebooks"


def tutorials() -> list[Path]:
    """The pages themselves; the list of them is none."""
    return sorted(path for path in TUTORIALS.glob("*.md") if path.stem != "index")


def comparisons() -> list[Path]:
    """Pages that are run likewise, beside other libraries, and are no tutorials."""
    return sorted(COMPARED.glob("*.md"))


def rendered(path: Path, folder: Path) -> str:
    """The page with what its blocks show; pictures and pages that they make stay in the folder."""
    page, parts, end = path.read_text(encoding="utf-8"), [], 0
    for block, shown in run(page, path.name, folder):
        parts.append(page[end : block.end])
        parts.append(_below(block, shown, folder))
        end = block.end
    return "".join([*parts, page[end:]])


def _below(block: Block, shown: Shown, folder: Path) -> str:
    """Places of files are told as a reader would see them, from the folder that the tutorial runs in."""
    said = []
    if shown.text.strip() and block.language in ("python", "sh"):
        text = shown.text.replace(f"{folder.resolve()}{os.sep}", "").replace(str(folder.resolve()), ".")
        said.append("\n```{ .text .no-copy }\n" + text.rstrip() + "\n```\n")
    said += [f"\n![What the block above draws]({folder.name}/{name})\n" for name in shown.pictures]
    said += [f"\n[Open {name}]({folder.name}/{name}){{ target=_blank }}\n" for name in shown.pages]
    return "".join(said)


def notebook(path: Path) -> str:
    """The same page as a notebook, without output: text and code in turn."""
    page, cells, end = path.read_text(encoding="utf-8"), [], 0
    for block in blocks(page):
        if block.language in ("python", "sh"):
            cells += [_cell("markdown", page[end : block.start]), _cell("code", _code(block))]
            end = block.end
    cells = [cell for cell in [*cells, _cell("markdown", page[end:])] if cell["source"]]
    for number, cell in enumerate(cells):
        cell["id"] = f"cell-{number}"
    told = {"kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"}}
    content = {"cells": cells, "metadata": told, "nbformat": 4, "nbformat_minor": 5}
    return json.dumps(content, indent=1, ensure_ascii=False) + "\n"


def _code(block: Block) -> str:
    return ("%%bash\n" if block.language == "sh" else "") + block.code


def _cell(kind: str, text: str) -> dict[str, Any]:
    source = text.strip("\n").splitlines(keepends=True)
    cell: dict[str, Any] = {"cell_type": kind, "metadata": {}, "source": source}
    return cell | ({"execution_count": None, "outputs": []} if kind == "code" else {})


def write_notebooks() -> None:
    """All of them, for whoever changed a tutorial."""
    NOTEBOOKS.mkdir(exist_ok=True)
    for path in tutorials():
        (NOTEBOOKS / f"{path.stem}.ipynb").write_text(notebook(path), encoding="utf-8")


if __name__ == "__main__":
    write_notebooks()
