"""The tables of a ledger, for every database that may keep one.

An account's running sum stands in its row and its entries stand beside it; both are written in one
transaction, with a running digest, and compared when the ledger is opened (`tally`), so a file that was edited, half
restored or copied in the middle of a write is noticed.
Entries are never changed or deleted. Amounts are exact fractions as text, 'p/q'. No column holds anything
computed from private data: no counts, no totals, no digests of data.

Later versions add tables and raise `SCHEMA_VERSION`; the meaning of what is here does not change, so an older
file only lacks tables, and gets them with the first transaction that writes to it.

| version | added |
| --- | --- |
| 1 | accounts and their entries |
| 2 | levels: how far a release was refined |
| 3 | streams and their steps |
| 4 | stamps: which noise was charged for a level |
| 5 | tallies: running sums and a digest of every account's entries |
| 6 | the ledger's own name, by which a vault knows it again; what the steps of every stream come to |
| 7 | the weight of a stream's step and its floor, in columns of their own; before, in words in its label (`forward`) |
| 8 | accounts that hide a relation between records, in the place of a policy |
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from sfumato.errors import LedgerError

SCHEMA_VERSION = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Dialect:
    """How a database says what the tables need.

    `key` is the number of a row, `counted` one that is never given again; `whole` is a type of at least 63 bits;
    `by_key` keeps a table in the order of its key; `differs` compares rows that may hold NULL; `refuse` makes the
    triggers (name, table, event, condition, message) that refuse a change, and `drop` takes one away; `random` is a new
    text of 32 hexadecimal digits.
    """

    key: str
    counted: str
    whole: str
    by_key: str
    differs: str
    refuse: Callable[[str, str, str, str, str], tuple[str, ...]]
    drop: str
    random: str


def _sqlite_trigger(name: str, table: str, event: str, condition: str, message: str) -> tuple[str, ...]:
    when = f"WHEN {condition} " if condition else ""
    return (f"CREATE TRIGGER {name} BEFORE {event} ON {table} {when}BEGIN SELECT RAISE(ABORT, '{message}'); END",)


SQLITE = Dialect(
    key="INTEGER PRIMARY KEY",
    counted="INTEGER PRIMARY KEY AUTOINCREMENT",
    whole="INTEGER",
    by_key="WITHOUT ROWID",
    differs="IS NOT",
    refuse=_sqlite_trigger,
    drop="DROP TRIGGER {name}",
    random="lower(hex(randomblob(16)))",
)


@dataclass(frozen=True, slots=True)
class _Kept:
    """A table whose rows stay as they were written: none is deleted, and none changed (`refused`: only so).."""

    table: str
    called: str
    refused: str = ""
    changes: bool = False

    def triggers(self, say: Dialect) -> Iterator[str]:
        """The statements that hold it to that."""
        if not self.changes:
            message = f"{self.called} of a ledger are never changed"
            condition = self.refused.format(differs=say.differs)
            yield from say.refuse(f"{self.table}_never_changes", self.table, "UPDATE", condition, message)
        message = f"{self.called} of a ledger are never deleted"
        yield from say.refuse(f"{self.table}_never_goes", self.table, "DELETE", "", message)


_FIRST = (
    """
    CREATE TABLE account (
        id             {key},
        dataset        TEXT NOT NULL UNIQUE,
        total          TEXT NOT NULL,
        spent          TEXT NOT NULL,
        policy         TEXT,                -- canonical JSON of the policy's spec; NULL until the first release sets it
        fingerprint    TEXT,
        unit           TEXT CHECK (unit IN ('record', 'person')),
        max_per_entity {whole} CHECK (max_per_entity >= 1),
        opened         TEXT NOT NULL,       -- UTC, ISO 8601
        CHECK ((policy IS NULL) = (fingerprint IS NULL))
    )
    """,
    """
    CREATE TABLE entry (
        id             {counted},
        account        {whole} NOT NULL REFERENCES account (id),
        time           TEXT NOT NULL,       -- UTC, ISO 8601
        kind           TEXT NOT NULL CHECK (kind IN ('open', 'release', 'raise')),
        label          TEXT NOT NULL,
        release_id     TEXT,
        policy         TEXT,                -- the policy in words, for people
        fingerprint    TEXT,
        unit           TEXT,
        max_per_entity {whole},
        epsilon        TEXT NOT NULL,       -- of the release, or the new total
        rate           {whole} NOT NULL,
        cost           TEXT NOT NULL
    )
    """,
    "CREATE INDEX entry_by_account ON entry (account, id)",
    _Kept("entry", "entries"),
    _Kept("account", "accounts", changes=True),  # its sums and its total grow
)

_LEVELS = (
    """
    CREATE TABLE level (
        account    {whole} NOT NULL REFERENCES account (id),
        release_id TEXT NOT NULL,
        level      {whole} NOT NULL CHECK (level >= 1),   -- level 0 is the release's own entry
        epsilon    TEXT NOT NULL,                         -- of the release at this level
        charge     {whole} NOT NULL REFERENCES entry (id),          -- the release's own
        entry      {whole} NOT NULL UNIQUE REFERENCES entry (id),   -- charges the difference to the level before
        PRIMARY KEY (account, release_id, level)
    )
    """,
    _Kept("level", "levels"),
)

# The clock of a stream is set once, by its first step; nothing else of it ever changes.
_TERMS = (
    "id", "account", "name", "epsilon", "window_kind", "window_size", "policy", "fingerprint", "unit", "max_per_entity"
)  # fmt: skip
_STREAM_CHANGED = "(OLD.clock IS NOT NULL OR ({old}) {{differs}} ({new}))".format(
    old=", ".join(f"OLD.{name}" for name in _TERMS), new=", ".join(f"NEW.{name}" for name in _TERMS)
)

_STREAMS = (
    """
    CREATE TABLE stream (
        id             {key},
        account        {whole} NOT NULL REFERENCES account (id),
        name           TEXT NOT NULL,
        epsilon        TEXT NOT NULL,       -- of every window
        window_kind    TEXT NOT NULL CHECK (window_kind IN ('steps', 'time')),
        window_size    {whole} NOT NULL CHECK (window_size >= 1),   -- steps, or microseconds
        policy         TEXT NOT NULL,       -- canonical JSON of its spec
        fingerprint    TEXT NOT NULL,
        unit           TEXT NOT NULL CHECK (unit IN ('record', 'person')),
        max_per_entity {whole} CHECK (max_per_entity >= 1),
        clock          TEXT CHECK (clock IN ('steps', 'wall', 'utc')),   -- NULL until the first step sets it
        opened         TEXT NOT NULL,       -- UTC, ISO 8601
        UNIQUE (account, name)
    )
    """,
    # Kept in the order of the key: a window is one stretch of the table, and needs no further index.
    """
    CREATE TABLE step (
        stream     {whole} NOT NULL REFERENCES stream (id),
        time       {whole} NOT NULL,                      -- of the data: its step, or microseconds since 1970
        level      {whole} NOT NULL CHECK (level >= 0),   -- level 0 is the step's own charge
        epsilon    TEXT NOT NULL,                         -- of the release at this level; 0/1 for a step skipped
        label      TEXT NOT NULL,
        release_id TEXT,
        recorded   TEXT NOT NULL,                         -- UTC, ISO 8601
        PRIMARY KEY (stream, time, level)
    ) {by_key}
    """,
    _Kept("stream", "streams", refused=_STREAM_CHANGED),
    _Kept("step", "steps"),
)

_STAMPS = (
    # A token drawn at random for every level that was charged: the vault holds it with the noise.
    """
    CREATE TABLE stamp (
        release_id TEXT NOT NULL,
        level      {whole} NOT NULL CHECK (level >= 1),
        token      TEXT NOT NULL,
        PRIMARY KEY (release_id, level)
    ) {by_key}
    """,
    _Kept("stamp", "stamps"),
)

_TALLIES = (
    # What an account's entries come to, up to the newest one and up to the last that was read back and found right.
    """
    CREATE TABLE tally (
        account {whole} NOT NULL REFERENCES account (id),
        mark    TEXT NOT NULL CHECK (mark IN ('newest', 'checked')),
        entry   {whole} NOT NULL,   -- the row of the last entry that is in it
        entries {whole} NOT NULL,   -- how many there are
        levels  {whole} NOT NULL,   -- how many of them charge a finer level
        spent   TEXT NOT NULL,      -- the sum of their costs
        total   TEXT NOT NULL,      -- the total that the last of them gave
        digest  TEXT NOT NULL,      -- over all of them in order, SHA-256 in hexadecimal digits
        PRIMARY KEY (account, mark)
    ) {by_key}
    """,
    _Kept("tally", "tallies", changes=True),
)

_IDENTITY = (
    # Drawn when the ledger is made: a copy has the same, another ledger another.
    """
    CREATE TABLE identity (
        one  {whole} PRIMARY KEY CHECK (one = 1),
        name TEXT NOT NULL
    )
    """,
    "INSERT INTO identity (one, name) VALUES (1, {random})",
    _Kept("identity", "names"),
)

_STRETCHES = (
    # What the rows of `step` come to, for a whole stream and for every stretch of its time (`stretches`). A stream of
    # an older ledger has NULL here until somebody opens it.
    """
    CREATE TABLE stream_sum (
        stream {whole} PRIMARY KEY REFERENCES stream (id),
        steps  {whole},     -- rows of `step`
        last   {whole},     -- the latest time
        digest TEXT
    )
    """,
    "INSERT INTO stream_sum (stream) SELECT id FROM stream",
    """
    CREATE TABLE stretch (
        stream {whole} NOT NULL REFERENCES stream (id),
        number {whole} NOT NULL,
        steps  {whole} NOT NULL,
        digest TEXT NOT NULL,
        PRIMARY KEY (stream, number)
    ) {by_key}
    """,
    _Kept("stream_sum", "sums", changes=True),
    _Kept("stretch", "sums", changes=True),
)

_WEIGHTS = (
    # Public; text that gives a double back exactly. NULL where nobody said, and for a step that was skipped.
    "ALTER TABLE step ADD COLUMN weight TEXT",  # how much an error at the step matters
    "ALTER TABLE step ADD COLUMN floor TEXT",  # what the online algorithm would have given it, where that counts
)

_RELATIONS = (
    # In the account's own row, beside what it has spent: a torn copy has both or neither. NULL under a policy.
    "ALTER TABLE account ADD COLUMN relation TEXT",  # canonical JSON: what changes of a record, and what is fixed
    "ALTER TABLE account ADD COLUMN relation_digest TEXT",
)

_ADDED = {
    1: _FIRST,
    2: _LEVELS,
    3: _STREAMS,
    4: _STAMPS,
    5: _TALLIES,
    6: _IDENTITY + _STRETCHES,
    7: _WEIGHTS,
    8: _RELATIONS,
}
FIRST_STEPS, FIRST_WEIGHTS = 3, 7  # versions


def statements(say: Dialect, *, since: int) -> Iterator[str]:
    """What makes a ledger of version `since` (0: there is none) one of today."""
    for version in range(since + 1, SCHEMA_VERSION + 1):
        for part in _ADDED[version]:
            if isinstance(part, _Kept):
                yield from part.triggers(say)
            else:
                yield part.format(
                    key=say.key, counted=say.counted, whole=say.whole, by_key=say.by_key, random=say.random
                )


def reopened(say: Dialect) -> tuple[str, ...]:
    """What takes away the guard of `step` against changes: for `forward`, which puts it back before it is done."""
    return (say.drop.format(name="step_never_changes", table="step"),)


def closed_again(say: Dialect) -> tuple[str, ...]:
    """What puts the guard back."""
    steps = _Kept("step", "steps")
    return tuple(statement for statement in steps.triggers(say) if " UPDATE " in statement)


def require_version(version: int, place: str) -> None:
    """Refuse a ledger that this program cannot read, before anything in it is touched."""
    if version > SCHEMA_VERSION:
        raise LedgerError(
            f"'{place}' was written by a newer sfumato (ledger version {version}; this one reads up to "
            f"{SCHEMA_VERSION}). Nothing was drawn or recorded. Upgrade sfumato."
        )
    if version < 1:
        raise LedgerError(
            f"'{place}' is damaged: its ledger version is {version}. Nothing was drawn or recorded. Restore a backup."
        )


def damaged(what: str) -> LedgerError:
    """The refusal of a ledger whose content does not hold together."""
    return LedgerError(f"The ledger is damaged: {what}. Nothing was drawn or recorded. Restore a backup.")
