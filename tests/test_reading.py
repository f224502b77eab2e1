"""JSON from strangers, and words from strangers on a terminal."""

from __future__ import annotations

import tracemalloc
from typing import Any

import pytest

from sfumato.reading import DEEPEST, plain_data, visible


def test_plain_json_is_read() -> None:
    assert plain_data('{"a": [1, 2.5, "x[[[[", null], "b": {"c": true}}') == {
        "a": [1, 2.5, "x[[[[", None],
        "b": {"c": True},
    }
    assert plain_data(b'"\\ud83d\\ude00"') == "\U0001f600"
    assert plain_data("[" * DEEPEST + "]" * DEEPEST)
    assert plain_data('"' + "[" * 1000 + '\\"' + "{" * 1000 + '"')


@pytest.mark.parametrize(
    "text",
    [
        "[" * (DEEPEST + 1) + "]" * (DEEPEST + 1), "[" * 10**6, '{"a":' * 10**5, "NaN", '{"a": Infinity}',
        '{"a": 1, "a": 2}', '"\\ud800"', '{"\\udfff": 1}', b"\xff", "", "9" * 5000, b'"\xed\xa0\x80"', 5, None,
    ],
)  # fmt: skip
def test_all_else_is_a_value_error(text: Any) -> None:
    with pytest.raises(ValueError):
        plain_data(text)


def test_what_a_terminal_would_obey_is_shown_instead() -> None:
    assert visible("ε ≤ 1, café\nnext") == "ε ≤ 1, café\nnext"
    assert visible("\x1b[31mred\r\x07\x9b2J\u202eabc\u200b\t") == r"\x1b[31mred\r\x07\x9b2J\u202eabc\u200b\t"


def test_long_text_takes_memory_for_its_length() -> None:
    written = '{"outlines": "' + "A" * 2_000_000 + '\\n"}'
    tracemalloc.start()
    assert plain_data(written)["outlines"][-1] == "\n"
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 8 * len(written)
