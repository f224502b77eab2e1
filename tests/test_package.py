"""What is said of the package in several places is the same in all of them."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import sfumato as sf
from sfumato.app.installed import FOR_BUILDERS

ROOT = Path(__file__).resolve().parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
EXTRAS = PROJECT["optional-dependencies"]


def test_the_citation_names_this_version():
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert f"version: {sf.__version__}\n" in citation


def test_all_holds_every_extra_that_is_for_users():
    (everything,) = EXTRAS["all"]
    named = re.search(r"\[(.*)\]", everything)
    assert set(named[1].split(",")) == set(EXTRAS) - FOR_BUILDERS


def test_every_message_of_a_missing_extra_names_one_that_there_is():
    named = set()
    for path in (ROOT / "src").rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        named |= set(re.findall(r"sfumato\[([a-z0-9]+)\]", text))
        named |= set(re.findall(r"MissingExtra\([^,()]+, \"([a-z0-9]+)\"", text))
    assert named >= {"geo", "h3", "plot", "postgres", "xarray"}
    assert named <= set(EXTRAS) - FOR_BUILDERS


def test_the_changelog_speaks_of_this_version():
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert re.search(rf"^## (Unreleased|{re.escape(sf.__version__)}\b)", text, re.MULTILINE)
