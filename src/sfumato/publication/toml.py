"""TOML, read within bounds and written plainly. Python reads it and does not write it; what is written here is little.

A file that takes more time than its size deserves is refused before it is read: one that is too long, that lies too
deep, or whose keys have too many parts (`a.b.c.…`, for which readers need the square of their number).
"""

from __future__ import annotations

import math
import re
import tomllib
from collections.abc import Mapping
from datetime import date, time
from typing import Any

from sfumato.errors import FileFormatError, InvalidInput
from sfumato.exact import shown

LONGEST = 1 << 20  # bytes
DEEPEST = 32
_PARTS = re.compile(r"""(?:\.[ \t]*(?:[A-Za-z0-9_-]+|"[^"\n]*"|'[^'\n]*')[ \t]*){16}""")
_BRACKET = re.compile(
    r""""(?:[^"\\\n]++|\\.)*+"|'[^'\n]*+'|[][{}]"""
)  # or a whole text, so that none inside of it is seen
_BARE = re.compile(r"[A-Za-z0-9_-]+")
_WIDE = 100  # characters of a list that stands in one line


def read_toml(content: bytes, name: str) -> dict[str, Any]:
    """The tables of a file; `name` is for messages."""
    if len(content) > LONGEST:
        raise FileFormatError(f"{name} has {len(content):,} bytes; at most {LONGEST:,} are read as TOML.")
    try:
        text = content.decode("utf-8")
        if _PARTS.search(text) or _depth(text) > DEEPEST:
            raise ValueError("it lies too deep")
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise FileFormatError(f"{name} is not TOML: {shown(str(error))[1:-1]}.") from error
    except (RecursionError, ValueError) as error:
        raise FileFormatError(f"{name} is not TOML, or lies too deep.") from error


def _depth(text: str) -> int:
    """How many brackets lie in each other at the most, those in text not counted."""
    depth = deepest = 0
    for mark in _BRACKET.findall(text):
        depth += {"[": 1, "{": 1, "]": -1, "}": -1}.get(mark, 0)
        deepest = max(deepest, depth)
    return deepest


def written_toml(tables: Mapping[str, Any]) -> str:
    """Tables as text: plain values first, then every table under its name."""
    return "\n\n".join(_sections(tables, ())) + "\n"


def _sections(table: Mapping[str, Any], path: tuple[str, ...]) -> list[str]:
    plain = {key: value for key, value in table.items() if not isinstance(value, Mapping)}
    head = [f"[{'.'.join(map(_key, path))}]"] if path and (plain or not table) else []
    found = ["\n".join(head + [f"{_key(key)} = {_value(value)}" for key, value in plain.items()])]
    for key, value in table.items():
        if isinstance(value, Mapping):
            found += _sections(value, (*path, key))
    return [section for section in found if section]


def _key(key: str) -> str:
    return key if _BARE.fullmatch(key) else _basic(key)


def _value(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        return repr(value) if math.isfinite(value) else "nan" if value != value else "inf" if value > 0 else "-inf"
    if isinstance(value, (date, time)):
        return value.isoformat()
    if isinstance(value, (list, tuple)):
        return _list([_value(one) for one in value])
    raise InvalidInput(f"{shown(value)} cannot be written to TOML. Nothing was written.")


def _list(items: list[str]) -> str:
    line = f"[{', '.join(items)}]"
    if len(line) <= _WIDE:
        return line
    rows, row = [], ""
    for item in items:
        if row and len(row) + len(item) > _WIDE:
            rows.append(row)
            row = ""
        row += f"{item}, "
    return "[\n" + "".join(f"  {one.rstrip()}\n" for one in [*rows, row]) + "]"


def _text(text: str) -> str:
    """Text in single quotes where it holds double ones, as relations do, else in double quotes."""
    return f"'{text}'" if '"' in text and "'" not in text and text.isprintable() else _basic(text)


def _basic(text: str) -> str:
    if any("\ud800" <= one <= "\udfff" for one in text):
        raise InvalidInput(f"{shown(text)} holds half a character, which no file can. Nothing was written.")
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return '"' + "".join(one if one.isprintable() else f"\\U{ord(one):08X}" for one in escaped) + '"'
