"""Ledgers as earlier versions left them: what came later is taken away again."""

from __future__ import annotations

from collections.abc import Iterator

TABLES = {2: ("level",), 3: ("step", "stream"), 4: ("stamp",), 5: ("tally",), 6: ("identity", "stretch", "stream_sum")}
COLUMNS = {7: (("step", "weight"), ("step", "floor")), 8: (("account", "relation"), ("account", "relation_digest"))}


def undone(version: int, schema: str = "") -> Iterator[str]:
    """The statements that make a ledger one of this version, but for the number of its version."""
    for later in range(8, version, -1):
        yield from (f"DROP TABLE {schema}{table}" for table in TABLES.get(later, ()))
        for table, column in COLUMNS.get(later, ()):
            if not any(table in gone for at, gone in TABLES.items() if at > version):
                yield f"ALTER TABLE {schema}{table} DROP COLUMN {column}"
