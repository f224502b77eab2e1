"""Names and values as SQL takes them, and numbers of every type as doubles."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from sfumato.errors import InvalidInput

INTEGERS = {"TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT"}
WIDE = {"HUGEINT", "UHUGEINT"}
FLOATS = {"FLOAT", "DOUBLE"}


def quoted(name: str) -> str:
    """A column name as SQL takes it."""
    return '"' + name.replace('"', '""') + '"'


def literal(value: str) -> str:
    """A string as SQL takes it."""
    return "'" + value.replace("'", "''") + "'"


def as_double(kind: str, column: str) -> str:
    """SQL for the double nearest to a number: DuckDB rounds a decimal or a wide integer twice, and not its text."""
    if kind in WIDE or kind.startswith("DECIMAL"):
        return f"CAST(CAST({column} AS VARCHAR) AS DOUBLE)"
    return f"CAST({column} AS DOUBLE)"


def is_number(kind: str) -> bool:
    """Whether a type of DuckDB is a number's."""
    return kind in INTEGERS | WIDE | FLOATS or kind.startswith("DECIMAL")


def column_list(
    names: Sequence[Any], needed: Iterable[str], *, of: str = "The data", headed: bool = True, folded: bool = False
) -> None:
    """Refuse what is missing or there twice; where an engine folds case, also what differs in case only.

    Names in pandas need not be text. No name is repeated but those that were asked for: where a file has no header, the
    others are its first record.
    """
    times, lower = Counter(names), Counter(str(name).lower() for name in names)
    missing = [name for name in needed if name not in times]
    if missing:
        near = [name for name in missing if lower[str(name).lower()]]
        hint = f"A name differs from {_list(near)} in case only: names are taken as they are written. " if near else ""
        line = "" if headed else "If the file has no header line, add one: the first line is taken for names. "
        raise InvalidInput(
            f"{of} has no column {_list(missing)}. Nothing was counted. {hint}{line}Name the columns with x=, y=, z= "
            "or columns={axis: column}, and the entity's with entity=."
        )
    for name in needed:
        if times[name] > 1:
            raise InvalidInput(
                f"{of} has {times[name]} columns named {name!r}. Nothing was counted. Rename all but one of them."
            )
        if folded and lower[str(name).lower()] > 1:
            raise InvalidInput(
                f"{of} has {lower[str(name).lower()]} columns whose names differ from {name!r} in case at most, which "
                "its engine does not tell apart. Nothing was counted. Rename all but one of them."
            )


def _list(names: Iterable[str]) -> str:
    return ", ".join(map(repr, names))
