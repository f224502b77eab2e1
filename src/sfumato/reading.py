"""What a file says that nobody vouches for, as data and as words to show.

JSON costs what follows from its own length, and says each thing once.

`json.loads` alone takes NaN and Infinity, keeps the last of two values under one key, and dies of deep nesting.
"""

from __future__ import annotations

import json
import re
from typing import Any

# What sfumato writes is at most nine levels deep (a point of a line of the sources of a policy of a guarantee).
DEEPEST = 32

# Or a whole string, so that none inside of it is seen; never looked at again from another place in it, which would take
# a hundred bytes of memory for each of its characters.
_BRACKET = re.compile(r'"(?:[^"\\]++|\\.)*+"|[][{}]', re.DOTALL)
_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")


def plain_data(written: str | bytes) -> Any:
    """The value that a JSON text describes; ValueError for all that is none."""
    try:
        text = written.decode("utf-8") if isinstance(written, bytes) else written
        if not isinstance(text, str):
            raise ValueError("a description is text")
        if _depth(text) > DEEPEST:
            raise ValueError("it is nested too deeply")
        value = json.loads(text, parse_constant=_refuse_constant, object_pairs_hook=_once)
        if _SURROGATE.search(text):  # half a character, of which no terminal and no other file can make anything
            json.dumps(value, ensure_ascii=False).encode("utf-8")
        return value
    except (RecursionError, MemoryError) as error:
        raise ValueError("it is nested too deeply, or too long for this machine") from error


def _depth(text: str) -> int:
    """How deep brackets lie in each other, those inside of strings not counted."""
    depth = deepest = 0
    for mark in _BRACKET.findall(text):
        if mark in "[{":
            depth += 1
            deepest = max(deepest, depth)
        elif mark in "]}":
            depth -= 1
    return deepest


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("two values stand under one key")
    return found


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not a number that JSON knows")


def visible(text: str) -> str:
    """Words that may come from a stranger, for a terminal or a picture: what is not printed is shown by its number.

    Control characters would be obeyed (colours, titles, the text before them overwritten), and marks of direction turn
    a line around. Ends of lines stay.
    """
    if text.replace("\n", "").isprintable():
        return text
    return "".join(mark if mark == "\n" or mark.isprintable() else _numbered(mark) for mark in text)


def _numbered(mark: str) -> str:
    return mark.encode("unicode_escape").decode("ascii")
