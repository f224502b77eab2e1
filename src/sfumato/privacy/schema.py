"""The tables of a ledger file, and how a file is told to be one of ours.

An account's running sum stands in its row and its entries stand beside it; both are written in one
transaction and compared when the ledger is opened, so a file that was edited or half restored is noticed.
Entries are never changed or deleted. Amounts are exact fractions as text, 'p/q'. No column holds anything
computed from private data: no counts, no totals, no digests.

Later versions add tables and raise `SCHEMA_VERSION`; the meaning of what is here does not change, so an older
file only lacks tables, and gets them with the first transaction that writes to it.

| version | added |
| --- | --- |
| 1 | accounts and their entries |
| 2 | levels: how far a release was refined |
| 3 | streams and their steps |
| 4 | stamps: which noise was charged for a level |
"""

from __future__ import annotations

import sqlite3

from sfumato.errors import LedgerError

APPLICATION_ID = 0x5366756D  # "Sfum"
SCHEMA_VERSION = 4


def _append_only(table: str, rows: str) -> tuple[str, str]:
    """What keeps the rows of a table as they were written."""
    return (
        f"CREATE TRIGGER {table}_never_changes BEFORE UPDATE ON {table} "
        f"BEGIN SELECT RAISE(ABORT, '{rows} of a ledger are never changed'); END",
        f"CREATE TRIGGER {table}_never_goes BEFORE DELETE ON {table} "
        f"BEGIN SELECT RAISE(ABORT, '{rows} of a ledger are never deleted'); END",
    )


_FIRST = (
    f"PRAGMA application_id = {APPLICATION_ID}",
    """
    CREATE TABLE account (
        id             INTEGER PRIMARY KEY,
        dataset        TEXT NOT NULL UNIQUE,
        total          TEXT NOT NULL,
        spent          TEXT NOT NULL,
        policy         TEXT,                -- canonical JSON of the policy's spec; NULL until the first release sets it
        fingerprint    TEXT,
        unit           TEXT CHECK (unit IN ('record', 'person')),
        max_per_entity INTEGER CHECK (max_per_entity >= 1),
        opened         TEXT NOT NULL,       -- UTC, ISO 8601
        CHECK ((policy IS NULL) = (fingerprint IS NULL))
    )
    """,
    """
    CREATE TABLE entry (
        id             INTEGER PRIMARY KEY AUTOINCREMENT,
        account        INTEGER NOT NULL REFERENCES account (id),
        time           TEXT NOT NULL,       -- UTC, ISO 8601
        kind           TEXT NOT NULL CHECK (kind IN ('open', 'release', 'raise')),
        label          TEXT NOT NULL,
        release_id     TEXT,
        policy         TEXT,                -- the policy in words, for people
        fingerprint    TEXT,
        unit           TEXT,
        max_per_entity INTEGER,
        epsilon        TEXT NOT NULL,       -- of the release, or the new total
        rate           INTEGER NOT NULL,
        cost           TEXT NOT NULL
    )
    """,
    "CREATE INDEX entry_by_account ON entry (account, id)",
    *_append_only("entry", "entries"),
    """
    CREATE TRIGGER account_never_goes BEFORE DELETE ON account
    BEGIN SELECT RAISE(ABORT, 'accounts of a ledger are never deleted'); END
    """,
)

_LEVELS = (
    """
    CREATE TABLE level (
        account    INTEGER NOT NULL REFERENCES account (id),
        release_id TEXT NOT NULL,
        level      INTEGER NOT NULL CHECK (level >= 1),   -- level 0 is the release's own entry
        epsilon    TEXT NOT NULL,                         -- of the release at this level
        charge     INTEGER NOT NULL REFERENCES entry (id),          -- the release's own
        entry      INTEGER NOT NULL UNIQUE REFERENCES entry (id),   -- charges the difference to the level before
        PRIMARY KEY (account, release_id, level)
    )
    """,
    *_append_only("level", "levels"),
)

_STREAMS = (
    """
    CREATE TABLE stream (
        id             INTEGER PRIMARY KEY,
        account        INTEGER NOT NULL REFERENCES account (id),
        name           TEXT NOT NULL,
        epsilon        TEXT NOT NULL,       -- of every window
        window_kind    TEXT NOT NULL CHECK (window_kind IN ('steps', 'time')),
        window_size    INTEGER NOT NULL CHECK (window_size >= 1),   -- steps, or microseconds
        policy         TEXT NOT NULL,       -- canonical JSON of its spec
        fingerprint    TEXT NOT NULL,
        unit           TEXT NOT NULL CHECK (unit IN ('record', 'person')),
        max_per_entity INTEGER CHECK (max_per_entity >= 1),
        clock          TEXT CHECK (clock IN ('steps', 'wall', 'utc')),   -- NULL until the first step sets it
        opened         TEXT NOT NULL,       -- UTC, ISO 8601
        UNIQUE (account, name)
    )
    """,
    # Kept in the order of the key: a window is one stretch of the table, and needs no further index.
    """
    CREATE TABLE step (
        stream     INTEGER NOT NULL REFERENCES stream (id),
        time       INTEGER NOT NULL,                      -- of the data: its step, or microseconds since 1970
        level      INTEGER NOT NULL CHECK (level >= 0),   -- level 0 is the step's own charge
        epsilon    TEXT NOT NULL,                         -- of the release at this level; 0/1 for a step skipped
        label      TEXT NOT NULL,
        release_id TEXT,
        recorded   TEXT NOT NULL,                         -- UTC, ISO 8601
        PRIMARY KEY (stream, time, level)
    ) WITHOUT ROWID
    """,
    """
    CREATE TRIGGER stream_never_changes BEFORE UPDATE ON stream
    WHEN OLD.clock IS NOT NULL OR (OLD.id, OLD.account, OLD.name, OLD.epsilon, OLD.window_kind, OLD.window_size,
        OLD.policy, OLD.fingerprint, OLD.unit, OLD.max_per_entity) IS NOT (NEW.id, NEW.account, NEW.name, NEW.epsilon,
        NEW.window_kind, NEW.window_size, NEW.policy, NEW.fingerprint, NEW.unit, NEW.max_per_entity)
    BEGIN SELECT RAISE(ABORT, 'streams of a ledger are never changed'); END
    """,
    """
    CREATE TRIGGER stream_never_goes BEFORE DELETE ON stream
    BEGIN SELECT RAISE(ABORT, 'streams of a ledger are never deleted'); END
    """,
    *_append_only("step", "steps"),
)

_STAMPS = (
    # A token drawn at random for every level that was charged: the vault holds it with the noise.
    """
    CREATE TABLE stamp (
        release_id TEXT NOT NULL,
        level      INTEGER NOT NULL CHECK (level >= 1),
        token      TEXT NOT NULL,
        PRIMARY KEY (release_id, level)
    ) WITHOUT ROWID
    """,
    *_append_only("stamp", "stamps"),
)

_ADDED = {1: _FIRST, 2: _LEVELS, 3: _STREAMS, 4: _STAMPS}


def bring_up_to_date(connection: sqlite3.Connection) -> None:
    """Add what the file lacks: all of it when it is new. The caller holds the transaction."""
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    if version >= SCHEMA_VERSION:
        return
    for missing in range(version + 1, SCHEMA_VERSION + 1):
        for statement in _ADDED[missing]:
            connection.execute(statement)
    connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")


def require_ours(connection: sqlite3.Connection, path: str) -> None:
    """Refuse a foreign database or a newer ledger before anything in it is touched."""
    (application_id,) = connection.execute("PRAGMA application_id").fetchone()
    if application_id != APPLICATION_ID:
        raise LedgerError(
            f"'{path}' is not a sfumato ledger: it is empty, cut short, or another program's database. "
            "Nothing was drawn or recorded. Give the path of a ledger, or one where no file exists to "
            "start a new ledger."
        )
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    if version > SCHEMA_VERSION:
        raise LedgerError(
            f"'{path}' was written by a newer sfumato (ledger version {version}; this one reads up to "
            f"{SCHEMA_VERSION}). Nothing was drawn or recorded. Upgrade sfumato."
        )
    if version < 1:
        raise LedgerError(
            f"'{path}' is damaged: its ledger version is {version}. Nothing was drawn or recorded. Restore a backup."
        )
