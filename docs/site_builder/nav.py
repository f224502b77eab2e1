"""Where every page stands: tutorials, guides, explanations and reference, kept apart.

A page that stands nowhere, or twice, keeps the site from being built.
"""

from __future__ import annotations

import json
from pathlib import Path

DOCS = Path(__file__).resolve().parent.parent
OUTSIDE = {"changelog": DOCS.parent / "CHANGELOG.md", "contributing": DOCS.parent / "CONTRIBUTING.md"}

TUTORIALS = "five-minutes rides health year coarse-and-fine tables trips nightly auditing mechanism"
GUIDES = (
    "hiding counting engines bounds questions answers figures sums showing studio geography publication ledger "
    "streams jobs gradual quantiles statement audit"
)
EXPLANATIONS = "decision home persons choosing errorbars guarantees security regulators mechanisms"
MEASURED = "delta sorted maps blowfish"
FACTS = "api file-format notation dependencies"
REFERENCE = (
    "domains hiding asking values planning counting releases budgets showing more errors allocation auditing linear "
    "command-line"
)


def flat() -> list[Path]:
    """The pages beside each other in `docs`, each of which stands in one place."""
    there = sorted(DOCS.glob("*.md"))
    placed = [*GUIDES.split(), *EXPLANATIONS.split(), *MEASURED.split(), *FACTS.split(), "index"]
    if sorted(placed) != sorted(path.stem for path in there):
        odd = {path.stem for path in there} ^ set(placed)
        raise ValueError(
            f"docs/site_builder/nav.py says where each page stands, once: not so {', '.join(sorted(odd)) or placed}"
        )
    return there


def title(page: Path) -> str:
    """The first heading of a page."""
    lines = page.read_text(encoding="utf-8").splitlines()
    return next(line[2:].split(" {")[0].strip() for line in lines if line.startswith("# "))


def written(pages: Path) -> str:
    """The navigation, in TOML."""

    def those(names: str, folder: str = "") -> list[dict[str, object]]:
        found = [f"{folder}{name}.md" for name in names.split()]
        return [{title(pages / name): name} for name in found]

    kinds: list[dict[str, object]] = [
        {"Home": "index.md"},
        {"Tutorials": [*those("index", "tutorials/"), *those(TUTORIALS, "tutorials/")]},
        {"Guides": [*those(GUIDES), *those("libraries", "coming-from/"), {"Examples to copy": "examples/index.md"}]},
        {"Explanations": [*those(EXPLANATIONS), {"Measured": those(MEASURED)}]},
        {"Reference": [*those(FACTS), *those(REFERENCE, "reference/"), *those("changelog contributing")]},
    ]
    return _toml(kinds)


def _toml(value: object) -> str:
    if isinstance(value, list):
        return "[" + ", ".join(map(_toml, value)) + "]"
    if isinstance(value, dict):
        return (
            "{ " + ", ".join(f"{json.dumps(key, ensure_ascii=False)} = {_toml(v)}" for key, v in value.items()) + " }"
        )
    return json.dumps(value, ensure_ascii=False)
