"""Whether a database kept what it was told to keep.

A statement that changes nothing is no error: a view with a trigger of its own, a rule, row security that shows rows and
lets none be changed, each takes a charge and forgets it. So whatever is written is read back inside its transaction,
and the tables are looked at: they must be what sfumato made, with nothing of others' making upon them that could act
later, when the transaction is committed.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any

from sfumato.errors import LedgerError
from sfumato.ledger import schema
from sfumato.ledger.database import Connection

# All that a trigger of ours does is to refuse, and one that refuses loses nothing silently, whoever made it.
_REFUSES = re.compile(r"CREATE TRIGGER .* BEGIN SELECT RAISE\(ABORT, '[^']*'\); END", re.IGNORECASE)

_FOREIGN = """
    SELECT c.relname, CASE
        WHEN c.relkind <> 'r' THEN 'something else in the place of table'
        WHEN c.relpersistence <> 'p' THEN 'no journal for table'
        WHEN c.relrowsecurity THEN 'row security on table'
        WHEN EXISTS (SELECT 1 FROM pg_catalog.pg_rewrite r WHERE r.ev_class = c.oid) THEN 'a rule on table'
        WHEN EXISTS (SELECT 1 FROM pg_catalog.pg_trigger t WHERE t.tgrelid = c.oid AND NOT t.tgisinternal
            AND t.tgfoid IS DISTINCT FROM to_regproc('sfumato.refuse')) THEN 'a trigger of its own on table'
        WHEN EXISTS (SELECT 1 FROM pg_catalog.pg_inherits i WHERE c.oid IN (i.inhrelid, i.inhparent))
            THEN 'inheritance at table'
        END
    FROM pg_catalog.pg_class c
    WHERE c.relnamespace = 'sfumato'::regnamespace AND c.relname = ANY(?)
"""


def require_kept(same: bool, what: str) -> None:
    """Refuse to go on when what was read back is not what was written; the caller's transaction is undone."""
    if not same:
        raise LedgerError(
            f"The ledger did not keep {what}: its database took the statement, and reading it back shows something "
            "else. Nothing was drawn or recorded. Look for row security, rules, triggers or views on its tables, or "
            "restore a backup."
        )


def require_own_file(connection: Connection, place: str) -> None:
    """Refuse a file in which others' objects stand between sfumato and its tables. The caller holds the transaction."""
    tables = set()
    names = _tables()
    for kind, name, table, text in connection.execute("SELECT type, name, tbl_name, sql FROM sqlite_master"):
        if kind == "table" and name.lower() in names and not str(text).upper().startswith("CREATE VIRTUAL"):
            tables.add(name.lower())
        elif kind in ("view", "table") and name.lower() in names:
            raise _foreign(place, f"something else in the place of table '{name}'")
        elif kind == "trigger" and table.lower() in names and not _REFUSES.fullmatch(" ".join(str(text).split())):
            raise _foreign(place, f"a trigger '{name}' of its own on table '{table}'")
    _require_all(tables)


def require_own_schema(connection: Connection, place: str) -> None:
    """The same for a schema on a server."""
    found: list[tuple[Any, ...]] = connection.execute(_FOREIGN, (sorted(_tables()),)).fetchall()
    for table, what in found:
        if what is not None:
            raise _foreign(place, f"{what} '{table}'")
    _require_all({str(table) for table, _ in found})


def _foreign(place: str, what: str) -> LedgerError:
    return LedgerError(
        f"The ledger '{place}' has {what}, which sfumato did not make: what is charged might not be kept. Nothing was "
        "drawn or recorded. Take it away, or restore a backup."
    )


def _require_all(found: set[str]) -> None:
    missing = sorted(_tables() - found)
    if missing:
        raise schema.damaged(f"table '{missing[0]}' is missing")


@lru_cache(maxsize=1)
def _tables() -> frozenset[str]:
    made = (re.match(r"\s*CREATE TABLE (\w+)", statement) for statement in schema.statements(schema.SQLITE, since=0))
    return frozenset(match[1] for match in made if match)
