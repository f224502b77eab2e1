"""The built pages are those that their sources make, whole, and hand out nothing else."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest

from sfumato import pages

ROOT = Path(__file__).resolve().parent.parent.parent
BUILT = ROOT / "src" / "sfumato" / "pages"
SOURCES = ROOT / "page"
PAGES = ["studio", "report"]
MEND = "Run: make page"


def digest(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


def told(page):
    return json.loads((BUILT / page / "sources.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("page", PAGES)
def test_the_built_files_were_made_from_the_sources_that_are_here(page):
    rooms = [SOURCES / "src" / "shared", SOURCES / "src" / page]
    here = {path.relative_to(SOURCES).as_posix() for room in rooms for path in room.rglob("*") if path.is_file()}
    here |= {"package.json", "package-lock.json", "tsconfig.json", "vite.config.ts"}
    assert {name: digest(SOURCES / name) for name in here} == told(page)["sources"], MEND


@pytest.mark.parametrize("page", PAGES)
def test_nobody_changed_a_built_file_by_hand(page):
    here = {path.name for path in (BUILT / page).iterdir()} - {"sources.json"}
    assert {name: digest(BUILT / page / name) for name in here} == told(page)["built"], MEND


@pytest.mark.parametrize("page", PAGES)
def test_pages_read_what_was_built_and_nothing_else(page):
    for name in pages.names(page):
        assert pages.read(page, name) == (BUILT / page / name).read_bytes()
    for name in ("sources.json", "../__init__.py", "", "nothing.js"):
        with pytest.raises(KeyError):
            pages.read(page, name)


def test_the_lock_file_names_no_registry():
    lock = json.loads((SOURCES / "package-lock.json").read_text(encoding="utf-8"))
    assert lock["packages"] and not [name for name, one in lock["packages"].items() if "resolved" in one]
    assert all(one.get("integrity") for name, one in lock["packages"].items() if name)
