"""The table of planted bugs in docs/audit.md names tests that exist, and no test of the zoo is left out of it."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PLANTED = (
    "noise scale 20 % too small",
    "absence edges forgotten",
    "diagonal moves forgotten",
    "ceil instead of floor in the shifted grids",
    "noisy edge values of a cycle published",
    "ε not divided by the stretch",
    "the first window forgotten",
    "refinement with fresh noise",
    "a replayed vault state",
    "floating-point Laplace noise",
    "a histogram that drops empty cells",
    "an estimator unbiased but not equivariant",
    "noise times two",
    "a family of shifted grids with sources",
    "cells located by floor",
    "contribution bounding that looks at the records",
    "two policies added up in one account",
    "an error message with a count in it",
)


def rows():
    """(bug, caught by, the tests named) for every row of the table."""
    section = (ROOT / "docs" / "audit.md").read_text(encoding="utf-8").split("## What was planted and caught")[1]
    lines = section.split("\n## ")[0].splitlines()
    table = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if line.startswith("|")]
    assert table[0] == ["planted bug", "caught by", "tests"]
    return [(bug, by, re.findall(r"`([\w/]+\.py)::(\w+)`", tests)) for bug, by, tests in table[2:]]


def defined_in(path):
    tree = ast.parse((ROOT / "tests" / path).read_text(encoding="utf-8"))
    return {node.name for node in tree.body if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")}


@pytest.mark.parametrize("row", rows(), ids=lambda row: row[0])
def test_every_row_names_tests_that_exist(row):
    bug, by, tests = row
    assert by, bug
    assert tests, bug
    for path, name in tests:
        assert name in defined_in(path), f"docs/audit.md names {path}::{name} for {bug!r}"


@pytest.mark.parametrize("bug", PLANTED)
def test_every_bug_has_a_row(bug):
    assert any(bug in row[0] for row in rows())


def test_no_test_of_the_zoo_is_left_out():
    named = {name for _, _, tests in rows() for path, name in tests if path == "auditing/test_zoo.py"}
    assert defined_in("auditing/test_zoo.py") == named
