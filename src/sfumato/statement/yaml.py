"""A small part of YAML, written: mappings, lists, numbers and text. Every text is quoted, so that none is read as
anything else: not as a date, a number, a tag, an anchor or another key.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeAlias

Value: TypeAlias = "str | int | Number | Mapping[str, Value] | Sequence[Value]"

_KEY = re.compile(r"[a-z][a-z0-9_]*")
_INDENT = "  "


class Number(str):
    """A number as it is to stand in the file, with all its digits."""

    __slots__ = ()


def yaml(value: Mapping[str, Value]) -> str:
    """The text of a document."""
    return "\n".join(_mapping(value, "")) + "\n"


def _mapping(value: Mapping[str, Any], indent: str) -> Iterator[str]:
    for key, one in value.items():
        if not _KEY.fullmatch(key):
            raise ValueError(f"{key!r} is no key")
        if isinstance(one, Mapping):
            yield f"{indent}{key}:"
            yield from _mapping(one, indent + _INDENT)
        elif isinstance(one, Sequence) and not isinstance(one, str):
            yield f"{indent}{key}:"
            yield from _list(one, indent + _INDENT)
        else:
            yield f"{indent}{key}: {_scalar(one)}"


def _list(values: Sequence[Any], indent: str) -> Iterator[str]:
    for one in values:
        if isinstance(one, Mapping):
            first, *rest = _mapping(one, indent + _INDENT)
            yield f"{indent}- {first.strip()}"
            yield from rest
        else:
            yield f"{indent}- {_scalar(one)}"


def _scalar(value: Any) -> str:
    if isinstance(value, Number) or type(value) is int:
        return str(value)
    # What JSON writes between quotes YAML reads as the same text, as long as it is ASCII.
    return json.dumps(value, ensure_ascii=not value.isprintable())
