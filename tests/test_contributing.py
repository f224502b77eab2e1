"""CONTRIBUTING's map shows every package and module in the order of their layers; docs/api.md lists what is public."""

from __future__ import annotations

import importlib
import inspect
import itertools
import re
import tomllib

import pytest
from test_architecture import HEIGHT, ROOT, SOURCE

import sfumato as sf

PUBLIC = re.findall(r"^\| `(sfumato[\w.]*)` \|", (ROOT / "docs" / "api.md").read_text(encoding="utf-8"), re.MULTILINE)


def drawn():
    """(name, what is said of it) for every line of the map that stands under src/sfumato."""
    page = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    block = page.split("```text\nsrc/sfumato/\n")[1].split("```")[0]
    return re.findall(r"^  (\w+/?) +(\S.*)$", block, re.MULTILINE)


def built():
    """Every package, with a slash, and every module beside them."""
    packages = {f"{path.parent.name}/" for path in SOURCE.glob("*/__init__.py")}
    return packages | {path.stem for path in SOURCE.glob("*.py")} - {"__init__", "__main__"}


def test_the_map_is_complete():
    names = [name for name, _ in drawn()]
    assert len(names) == len(set(names))
    assert set(names) == built()


def test_the_map_is_in_the_order_of_the_layers():
    heights = [HEIGHT[name.rstrip("/")] for name, _ in drawn()]
    assert heights == sorted(heights)


def test_what_lies_beside_the_source_is_there():
    block = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8").split("```text\n")[1].split("```")[0]
    for folder in re.findall(r"^(\w+)/ ", block, re.MULTILINE):
        assert (ROOT / folder).is_dir(), folder


def test_every_file_that_it_names_is_there():
    page = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    for name in re.findall(r"`([\w.]+/[\w./]*\w)`", page):
        assert any((base / name).exists() for base in (ROOT, SOURCE)), name


def test_the_lock_file_has_every_package_that_the_project_asks_for():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    asked = [*project["dependencies"], *itertools.chain(*project["optional-dependencies"].values())]
    names = {re.match(r"[\w-]+", line)[0] for line in asked} - {"sfumato"}
    locked = re.findall(r"^([\w-]+)==", (ROOT / "requirements.lock").read_text(encoding="utf-8"), re.MULTILINE)
    assert names <= set(locked)


def test_a_folder_of_tests_is_named_after_its_package():
    folders = {path.parent.relative_to(ROOT / "tests").parts[0] for path in (ROOT / "tests").glob("*/**/test_*.py")}
    assert folders - {"strangers"} <= {path.parent.name for path in SOURCE.glob("*/__init__.py")}


def test_files_of_tests_have_names_of_their_own():
    """pytest imports them by their names alone."""
    names = [path.name for path in (ROOT / "tests").rglob("*.py") if path.name != "conftest.py"]
    assert len(names) == len(set(names))


def test_the_root_is_public():
    assert PUBLIC[0] == "sfumato" and len(PUBLIC) > 1


@pytest.mark.parametrize("name", PUBLIC)
def test_a_public_module_says_what_is_public_in_it(name):
    module = importlib.import_module(name)
    assert module.__doc__
    in_order = sorted(module.__all__, key=lambda public: (not public.isupper(), public))  # as ruff sorts
    assert module.__all__ and list(module.__all__) == in_order
    for public in module.__all__:
        thing = getattr(module, public)
        if inspect.isclass(thing) or inspect.isroutine(thing):
            assert thing.__doc__, f"{name}.{public}"


def test_every_error_is_at_the_root_too():
    assert set(importlib.import_module("sfumato.errors").__all__) <= set(sf.__all__)
