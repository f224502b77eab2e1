"""Public numbers to divide by, one a group: checked, matched by name, in the domain's order.

A public number has no noise and none is added. That it is public, as a census is, is the caller's word: a table that
was counted from the private records would publish them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import product
from typing import Any

import numpy as np

from sfumato._types import Floats
from sfumato.domain.places import ELSEWHERE
from sfumato.errors import InvalidInput
from sfumato.exact import is_number, shown
from sfumato.naming import nearest
from sfumato.release.answer import Answer
from sfumato.release.keys import Key

_NOTHING = "Nothing was computed."
Name = tuple[str, ...]


def denominators(over: Any, keys: Sequence[Key]) -> Floats:
    """The numbers in a table, in the shape of the groups; NaN for what is elsewhere, where nobody gave one."""
    if isinstance(over, Answer):
        raise InvalidInput(
            f"over is an answer of a release, whose noise a rate has to know. {_NOTHING} Give the release itself, "
            "over=release."
        )
    shape = tuple(len(key.cells) for key in keys)
    pairs = _pairs(over, [key.axis.name for key in keys])
    found = _in_order(over, shape) if pairs is None else _matched(pairs, keys)
    known = found[~np.isnan(found)] if pairs is not None else found
    if not (np.isfinite(known).all() and (known > 0).all()):
        wrong = known[~(np.isfinite(known) & (known > 0))][0]
        raise InvalidInput(
            f"over holds {float(wrong):g}: a public denominator must be a finite number above zero. {_NOTHING} Leave "
            "groups without anybody out of what is asked, with where=."
        )
    return found


def _in_order(over: Any, shape: tuple[int, ...]) -> Floats:
    """A number, or an array with one for each group."""
    try:
        found = np.asarray(over, dtype=np.float64)
    except (TypeError, ValueError):
        raise InvalidInput(
            f"over={shown(over)} is no denominator. {_NOTHING} Give a release, a mapping from the names of the groups "
            "to numbers, a table with a column of names and one of numbers, or numbers in the domain's order."
        ) from None
    if found.shape != shape:
        groups = " × ".join(map(str, shape)) or "one number, since nothing is grouped by"
        raise InvalidInput(
            f"over has the shape {found.shape}, and the groups are {groups}. {_NOTHING} Give one number a group, in "
            "the domain's order, or a mapping by their names."
        )
    return found


def _pairs(over: Any, names: Sequence[str]) -> list[tuple[Name, Any]] | None:
    """What a mapping, a series or a frame says, by the names of the groups; None of what has no names."""
    if isinstance(over, Mapping):
        return [(_name(key), value) for key, value in over.items()]
    if hasattr(over, "index") and hasattr(over, "items") and not hasattr(over, "columns"):  # a series of pandas
        return [(_name(key), value) for key, value in over.items()]
    if hasattr(over, "__arrow_c_stream__") or hasattr(over, "columns"):
        return _columns(over, names)
    return None


def _name(key: Any) -> Name:
    return tuple(str(part) for part in key) if isinstance(key, tuple) else (str(key),)


def _columns(over: Any, names: Sequence[str]) -> list[tuple[Name, Any]]:
    """The rows of a frame: columns with the names of what is grouped by, and one column of numbers."""
    import pyarrow as pa

    table = pa.table(over) if hasattr(over, "__arrow_c_stream__") else pa.Table.from_pandas(over, preserve_index=False)
    missing = [name for name in names if name not in table.column_names]
    if missing:
        near = nearest(missing[0], table.column_names)
        raise InvalidInput(
            f"over has no column {missing[0]!r}, by which the rates are grouped; its columns are "
            f"{', '.join(map(repr, table.column_names))}.{near} {_NOTHING}"
        )
    numbers = [name for name in table.column_names if name not in names]
    if len(numbers) != 1:
        raise InvalidInput(
            f"over must have one column beside {', '.join(map(repr, names)) or 'nothing'}, the numbers to divide by; "
            f"it has {len(numbers)}. {_NOTHING} Select that column."
        )
    keys = [table.column(name).to_pylist() for name in names]
    rows = zip(*keys, strict=True) if keys else [()] * len(table)
    return [
        (tuple(str(part) for part in row), value)
        for row, value in zip(rows, table.column(numbers[0]).to_pylist(), strict=True)
    ]


def _matched(pairs: Iterable[tuple[Name, Any]], keys: Sequence[Key]) -> Floats:
    """The numbers of all groups, each of which is there once."""
    found: dict[Name, float] = {}
    groups = list(product(*(key.names for key in keys)))
    known = set(groups)
    for name, value in pairs:
        called = ", ".join(name)
        if name in found:
            raise InvalidInput(f"over has two denominators for {shown(called)}. {_NOTHING} Give one for each group.")
        if name not in known:
            near = nearest(called, [", ".join(group) for group in groups])
            raise InvalidInput(f"over names {shown(called)}, which is no group of this rate.{near} {_NOTHING}")
        number = value.item() if isinstance(value, np.generic) else value
        if not is_number(number) or np.isnan(number):
            raise InvalidInput(f"over gives {shown(value)} for {shown(called)}, which is no number. {_NOTHING}")
        found[name] = float(number)
    missing = [group for group in groups if group not in found and ELSEWHERE not in group]
    if missing:
        more = f" and {len(missing) - 1:,} more" if len(missing) > 1 else ""
        raise InvalidInput(
            f"over has no denominator for {shown(', '.join(missing[0]))}{more}. {_NOTHING} Give one for every group, "
            "or leave groups out of what is asked, with where=."
        )
    shape = tuple(len(key.cells) for key in keys)
    return np.array([found.get(group, np.nan) for group in groups], dtype=np.float64).reshape(shape)
