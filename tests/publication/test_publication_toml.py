"""TOML is written plainly and read within bounds."""

from __future__ import annotations

import tomllib
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sfumato as sf
from sfumato.publication.toml import read_toml, written_toml

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
PLAIN = st.booleans() | st.integers() | st.floats(allow_nan=False) | TEXTS | st.dates(date(1, 1, 1))
VALUES = PLAIN | st.lists(PLAIN | st.lists(st.floats(allow_nan=False), max_size=4), max_size=30)
TABLES = st.recursive(
    st.dictionaries(TEXTS, VALUES, max_size=4),
    lambda inner: st.dictionaries(TEXTS, VALUES | inner, max_size=4),
    max_leaves=5,
)


@settings(max_examples=300, deadline=None, derandomize=True, database=None)
@given(TABLES)
def test_what_is_written_is_read_back(tables: dict[str, Any]) -> None:
    text = written_toml(tables)
    assert tomllib.loads(text) == tables
    assert read_toml(text.encode(), "a.toml") == tables


def test_it_reads_as_people_write_it() -> None:
    tables = {
        "hide": 'move("5 m")',
        "epsilon": 0.5,
        "domain": {"place": {"bounds": [0.0, 1.5], "shape": [2, 3]}, "age group": {"labels": ["a", "b"]}},
        "account": {"without_ledger": True},
        "data": {"columns": {}},
    }
    assert written_toml(tables) == (
        "hide = 'move(\"5 m\")'\nepsilon = 0.5\n\n"
        "[domain.place]\nbounds = [0.0, 1.5]\nshape = [2, 3]\n\n"
        '[domain."age group"]\nlabels = ["a", "b"]\n\n'
        "[account]\nwithout_ledger = true\n\n[data.columns]\n"
    )
    assert written_toml({"labels": [f"label {i}" for i in range(30)]}).count("\n") == 6


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"a = ", "a.toml is not TOML: Invalid value"),
        (b"a = 1\na = 2", "Cannot overwrite a value"),
        (b"\xff\xfe", "a.toml is not TOML, or lies too deep."),
        (b"a = " + b"[" * 20_000, "or lies too deep"),
        (b"a = " + b"[" * 33 + b"]" * 33, "or lies too deep"),
        (b"a = " + b"{b = " * 20_000, "or lies too deep"),
        (b".".join([b"a"] * 100_000) + b" = 1", "or lies too deep"),
        (b"[" + b" . ".join([b'"a"'] * 50) + b"]", "or lies too deep"),
        (b"a = " + b"9" * 5000, "a.toml is not TOML"),
        (b"#" * ((1 << 20) + 1), "a.toml has 1,048,577 bytes; at most 1,048,576 are read as TOML."),
    ],
)
def test_a_file_that_deserves_no_reading_is_refused(content: bytes, words: str) -> None:
    with pytest.raises(sf.FileFormatError) as refused:
        read_toml(content, "a.toml")
    assert words in str(refused.value)


def test_labels_with_brackets_are_not_deep() -> None:
    labels = [f"[{i}, {i + 5})" for i in range(40)]
    assert read_toml(written_toml({"labels": labels}).encode(), "a.toml") == {"labels": labels}


def test_half_a_character_cannot_be_written() -> None:
    with pytest.raises(sf.InvalidInput, match="half a character"):
        written_toml({"a": "\ud800"})


def test_no_more_of_a_file_is_read_than_is_needed(tmp_path: Path) -> None:
    with (tmp_path / "huge.toml").open("wb") as file:
        file.truncate(1 << 40)  # a hole: as large as it says, without taking room
    with pytest.raises(sf.FileFormatError, match=r"huge.toml has 1,048,577 bytes"):
        sf.load_publication(tmp_path / "huge.toml")
