"""From the pages to a site: staged, run, built by Zensical, and checked, without network.

Staging puts everything below one folder: pages as they are, tutorials with what they print, the reference, the examples
as pages, the changelog. Zensical refuses links to pages and headings that are not there. What is built is then gone
through once more: nothing may be fetched from elsewhere, and every file that a page mentions has to lie there.
"""

from __future__ import annotations

import argparse
import html.parser
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote, urlsplit

from site_builder import nav, reference, tutorials

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
ASSETS = Path(__file__).resolve().parent / "assets"
_SHIM = re.compile(r'<script src="https://unpkg\.com/iframe-worker/shim"[^>]*>')
_LINK = re.compile(r"\]\(([^)#\s]+)((?:#[^)\s]*)?)\)")


def build(stage: Path, site: Path, *, run: bool = True) -> None:
    """All of it. Without `run` the tutorials stay as they are written."""
    for folder in (stage, site):
        shutil.rmtree(folder, ignore_errors=True)
    pages = stage / "pages"
    pages.mkdir(parents=True)
    staged(pages, run=run)
    (stage / "zensical.toml").write_text(config(pages), encoding="utf-8")
    command = [sys.executable, "-m", "zensical", "build", "--strict", "--clean", "-f", str(stage / "zensical.toml")]
    ran = subprocess.run(command, cwd=stage, capture_output=True, text=True, check=False)
    if ran.returncode != 0:
        raise SystemExit(re.sub(r"\x1b\[[0-9;]*m", "", ran.stdout + ran.stderr).partition("Traceback")[0])
    shutil.move(stage / "site", site)
    (site / "assets" / "javascripts").mkdir(parents=True, exist_ok=True)
    shutil.copy(ASSETS / "iframe-worker.js", site / "assets" / "javascripts" / "iframe-worker.js")
    at_home(site)
    wrong = list(missing(site))
    if wrong:
        raise SystemExit("\n".join(wrong))


def staged(pages: Path, *, run: bool) -> None:
    """Everything that becomes a page, below one folder."""
    shutil.copytree(DOCS / "img", pages / "img")
    (pages / "assets").mkdir()
    shutil.copy(ASSETS / "extra.css", pages / "assets" / "extra.css")
    for path in nav.flat():
        _put(pages / path.name, path.read_text(encoding="utf-8"), path)
    for name, path in nav.OUTSIDE.items():
        _put(pages / f"{name}.md", path.read_text(encoding="utf-8"), path)
    for path in [DOCS / "tutorials" / "index.md", *tutorials.tutorials(), *tutorials.comparisons()]:
        text = path.read_text(encoding="utf-8")
        if run and path.stem != "index":
            folder = pages / path.parent.name / path.stem
            folder.mkdir(parents=True)
            print(f"runs {path.stem}", flush=True)
            text = tutorials.rendered(path, folder)
            _only_shown(folder)
        _put(pages / path.parent.name / path.name, text, path)
    for name, _, text in reference.pages():
        _put(pages / "reference" / name, text, DOCS / "reference" / name)
    for path in sorted((ROOT / "examples").glob("*.py")):
        code = path.read_text(encoding="utf-8")
        _put(pages / "examples" / f"{path.stem}.md", f"# {path.name}\n\n```python\n{code}```\n", path)
    listed = "".join(f"- [{path.stem}]({path.stem}.md)\n" for path in sorted((ROOT / "examples").glob("*.py")))
    _put(pages / "examples" / "index.md", f"# Examples to copy\n\n{listed}", ROOT / "examples" / "index.md")


def _put(target: Path, text: str, source: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(_moved(text, source), encoding="utf-8")


def _moved(text: str, source: Path) -> str:
    """Links of a page, from where it lies in the repository to where it lies in the site."""

    def moved(found: re.Match[str]) -> str:
        place, anchor = found[1], found[2]
        if "://" in place or place.startswith("mailto:"):
            return found[0]
        meant = (source.parent / place).resolve()
        return f"]({_relative(meant, source)}{anchor})"

    return _LINK.sub(moved, text)


def _in_site(path: Path) -> Path:
    """Where a file of the repository lies in the site."""
    for name, outside in nav.OUTSIDE.items():
        if path == outside:
            return DOCS / f"{name}.md"
    if path == ROOT / "examples":
        return DOCS / "examples" / "index.md"
    if path.parent == ROOT / "examples" and path.suffix == ".py":
        return DOCS / "examples" / f"{path.stem}.md"
    return path


def _relative(meant: Path, source: Path) -> str:
    return Path(os.path.relpath(_in_site(meant), _in_site(source).parent)).as_posix()


def _only_shown(folder: Path) -> None:
    """Of what a tutorial made the pictures and pages stay: data and ledgers are nobody's."""
    for path in sorted(folder.rglob("*"), reverse=True):
        if path.is_dir():
            if not any(path.iterdir()):
                path.rmdir()
        elif path.suffix not in (".png", ".svg", ".html"):
            path.unlink()


class _Mentions(html.parser.HTMLParser):
    """What a page of the site points to, and what it fetches."""

    def __init__(self) -> None:
        super().__init__()
        self.links: list[str] = []
        self.fetched: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        told = dict(attrs)
        if tag == "a" and told.get("href"):
            self.links.append(str(told["href"]))
        if tag == "link" and told.get("href") and told.get("rel") not in ("canonical", "next", "prev"):
            self.fetched.append(str(told["href"]))
        if told.get("src"):
            self.fetched.append(str(told["src"]))


def at_home(site: Path) -> None:
    """The one script that the search of pages on a disk fetches from elsewhere lies beside them."""
    for page in site.rglob("*.html"):
        text = page.read_text(encoding="utf-8")
        up = "../" * (len(page.relative_to(site).parts) - 1) or "./"
        page.write_text(_SHIM.sub(f'<script src="{up}assets/javascripts/iframe-worker.js">', text), encoding="utf-8")


def missing(site: Path) -> Iterator[str]:
    """What pages fetch from elsewhere, and what they mention that is not there."""
    for page in sorted(site.rglob("*.html")):
        if "tutorials" in page.parts and page.parent.parent.name == "tutorials":
            continue  # what a tutorial wrote is a page of its own, tested where it is made
        found = _Mentions()
        found.feed(page.read_text(encoding="utf-8"))
        name = page.relative_to(site)
        for place in found.fetched:
            if urlsplit(place).netloc:
                yield f"{name} fetches {place}"
        for place in [*found.links, *found.fetched]:
            parts = urlsplit(place)
            if parts.scheme or parts.netloc or not parts.path:
                continue
            if page.name == "404.html" or (page.parent / unquote(parts.path)).exists():
                continue
            yield f"{name} mentions {place}, which is not there"


def config(pages: Path) -> str:
    """What Zensical is told."""
    extension = Path(__file__).resolve().parent / "doctests.py"
    template = (Path(__file__).resolve().parent / "zensical.toml").read_text(encoding="utf-8")
    told = {
        "SOURCE": json.dumps((ROOT / "src").as_posix()),
        "DOCTESTS": json.dumps(f"{extension.as_posix()}:Doctests"),
        "NAV": nav.written(pages),
    }
    return re.sub(r"@(\w+)@", lambda found: told[found[1]], template)


def main() -> None:
    """`python -m site_builder`."""
    asked = argparse.ArgumentParser(description="Build the site of the documentation.")
    asked.add_argument("--site", type=Path, default=ROOT / "site", help="where it is built")
    asked.add_argument("--as-written", action="store_true", help="do not run the tutorials")
    told = asked.parse_args()
    build(ROOT / "build" / "docs", told.site.resolve(), run=not told.as_written)
    print(f"Open {told.site / 'index.html'}")
