"""What an account's entries come to, kept beside them: so that opening reads only what is new, and a torn copy shows.

Every charge carries a running tally forward: the sum spent, the total, how many entries there are, and a digest over
all of them. It is written in the charge's own transaction. A copy of the file that was taken in the middle of a write
has some pages from before it and some from after, and then account, entries and tally do not agree; neither do they
after an edit or a half restored file. (No signature: who may write to the ledger may write a tally.)

A second tally, `checked`, stands where the entries were last read back and found to come to what is written. The
charges move it forward, every `STRETCH` entries, so that opening a ledger reads no more than about that many, however
long its history is. `Ledger.check` reads everything from the start. A ledger of an earlier version has no tallies: it
is read from the start once, and gets them then.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Literal

from sfumato.ledger import rows
from sfumato.ledger.account import Entry
from sfumato.ledger.database import Connection, Database
from sfumato.ledger.kept import require_kept
from sfumato.ledger.schema import damaged
from sfumato.promise.budget import stored

STRETCH = 1000  # entries between two moves of what was checked
CHUNK = 10_000  # entries that are read in one go: writers get their turn in between

_COLUMNS = "id, time, kind, label, release_id, policy, fingerprint, unit, max_per_entity, epsilon, rate, cost"
_ROW = f"SELECT {_COLUMNS} FROM entry"
_KIND, _EPSILON, _RATE, _COST = 2, 9, 10, 11
_TALLY = "SELECT entry, entries, levels, spent, total, digest FROM tally WHERE account = ? AND mark = ?"

Mark = Literal["newest", "checked"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Tally:
    """What the first `entries` of an account come to; `entry` is the row of the last of them."""

    entry: int = 0
    entries: int = 0
    levels: int = 0
    spent: Fraction = Fraction(0)
    total: Fraction | None = None
    digest: str = ""

    def with_entries(self, added: Iterable[Sequence[Any]]) -> Tally:
        """The tally after more entries, given as they are stored."""
        entry, entries, spent, total, digest = self.entry, self.entries, self.spent, self.total, self.digest
        try:
            for row in added:
                epsilon, rate, cost = rows.read_amount(row[_EPSILON]), int(row[_RATE]), rows.read_amount(row[_COST])
                release = row[_KIND] == "release"
                if cost != (epsilon * rate if release else 0):
                    raise ValueError("its cost is not its price")
                entry, entries = row[0], entries + 1
                if release:
                    spent += cost
                else:
                    total = epsilon
                line = json.dumps([digest, *row], ensure_ascii=True, separators=(",", ":"))
                digest = hashlib.sha256(line.encode("ascii")).hexdigest()
        except (TypeError, ValueError, ZeroDivisionError) as error:
            raise _Untrue from error
        return replace(self, entry=entry, entries=entries, spent=spent, total=total, digest=digest)


class _Untrue(Exception):
    """An entry that is none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Head:
    """An account's row, as far as it must agree with its entries."""

    row: int
    dataset: str
    spent: str
    total: str


# -------------------------------------------------------------------- while charging


def record(connection: Connection, dataset: str, entry: Entry, fingerprint: str | None) -> int:
    """Add an entry to an account whose sums have been written, and carry its tally on; gives the number of its row.

    The caller holds the transaction. The entry is read back for the tally. Refuses, and then nothing is recorded, where
    account, entries and tally did not agree before.
    """
    row = rows.insert_entry(connection, dataset, entry, fingerprint)
    (account,) = connection.execute("SELECT account FROM entry WHERE id = ?", (row,)).fetchone()
    newest = _find(connection, account, "newest")
    known = newest or Tally(levels=_levels(connection, account, 0))  # none: an older ledger, put back under a program
    added = connection.execute(f"{_ROW} WHERE account = ? AND id > ? ORDER BY id", (account, known.entry)).fetchall()
    if [one[0] for one in added][0 if newest is not None else -1 :] != [row]:
        raise damaged("the entries of an account are not those of its tally")
    try:
        after = known.with_entries(added)
    except _Untrue as error:
        raise damaged("an entry of its history cannot be read") from error
    _require_agreement(_head(connection, account), after)
    _write(connection, account, "newest", after)
    checked = _find(connection, account, "checked")
    if checked is None:
        _write(connection, account, "checked", after)
    elif after.entries - checked.entries >= STRETCH:
        _write(connection, account, "checked", _read_back(connection, account, checked, after))
    return row


def count_level(connection: Connection, account: int, row: int) -> None:
    """Count that the newest entry, in a row, charges a finer level."""
    connection.execute("UPDATE tally SET levels = levels + 1 WHERE account = ? AND entry = ?", (account, row))


# -------------------------------------------------------------------- when opened


def lacking(store: Database) -> bool:
    """Whether an account has no tally: a program that had an older ledger open made it one of today."""
    with store.read() as connection:
        query = "SELECT 1 FROM account WHERE id NOT IN (SELECT account FROM tally WHERE mark = 'checked') LIMIT 1"
        return connection.execute(query).fetchone() is not None


def adopt(connection: Connection, place: str) -> None:
    """Read every account of a ledger of an earlier version from its start, and give it its tallies."""
    for account in rows.numbers(connection):
        if _find(connection, account, "newest") is not None:
            continue
        entries = connection.execute(f"{_ROW} WHERE account = ? ORDER BY id", (account,)).fetchall()
        head = _head(connection, account)
        try:
            found = Tally(levels=_levels(connection, account, 0)).with_entries(entries)
        except _Untrue as error:
            raise damaged(f"'{place}', account '{head.dataset}': its history does not add up") from error
        _require_agreement(head, found, place)
        for mark in ("newest", "checked"):
            _write(connection, account, mark, found)


def require_sound(store: Database, *, whole: bool = False) -> dict[int, int]:
    """Refuse a ledger whose accounts, entries and tallies do not agree; a reader, a chunk at a time.

    Reads what came after the entries that were checked before, or (`whole`) everything. Gives, for each account, the
    last entry that was checked before.
    """
    with store.read() as connection:
        checked = {account: _find(connection, account, "checked") for account in rows.numbers(connection)}
        last = connection.execute("SELECT account FROM entry ORDER BY id DESC LIMIT 1").fetchone()
    if last is not None and last[0] not in checked:
        raise damaged(f"'{store.place}': an entry belongs to no account")
    before: dict[int, int] = {}
    for account, mark in checked.items():
        if mark is None:
            raise damaged(f"'{store.place}': an account has no tally")
        start = Tally() if whole else mark
        _follow(store, account, start, passing=mark)
        before[account] = start.entry
    return before


def _follow(store: Database, account: int, start: Tally, passing: Tally) -> None:
    """Refuse entries after `start` that do not come to what is written, when they pass that mark and at their end."""
    tally = start
    while True:
        with store.read() as connection:
            query = f"{_ROW} WHERE account = ? AND id > ? ORDER BY id LIMIT ?"
            found = connection.execute(query, (account, tally.entry, CHUNK)).fetchall()
            head, newest = _head(connection, account), _find(connection, account, "newest")
            levels = _levels(connection, account, start.entry)
        where = f"'{store.place}', account '{head.dataset}'"
        try:
            if tally.entry < passing.entry:
                half = tally.with_entries(row for row in found if row[0] <= passing.entry)
                if half.entry == passing.entry and replace(half, levels=passing.levels) != passing:
                    raise damaged(f"{where}: its history was changed")
            tally = tally.with_entries(found)
        except _Untrue as error:
            raise damaged(f"{where}: its history does not add up") from error
        if len(found) < CHUNK:
            break
    _require_agreement(head, tally, store.place)
    if newest != replace(tally, levels=start.levels + levels):
        raise damaged(f"{where}: its history is not the one that was recorded")


# -------------------------------------------------------------------- inside


def _read_back(connection: Connection, account: int, checked: Tally, after: Tally) -> Tally:
    """`after`, if the entries since what was checked come to it."""
    query = f"{_ROW} WHERE account = ? AND id > ? ORDER BY id"
    since = connection.execute(query, (account, checked.entry)).fetchall()
    levels = checked.levels + _levels(connection, account, checked.entry)
    try:
        found = replace(checked.with_entries(since), levels=levels)
    except _Untrue as error:
        raise damaged("an entry of its history cannot be read") from error
    if found != after:
        raise damaged("the history of an account is not the one that was recorded")
    return found


def _require_agreement(head: _Head, tally: Tally, place: str | None = None) -> None:
    where = f"account '{head.dataset}'" if place is None else f"'{place}', account '{head.dataset}'"
    if tally.total is None:
        raise damaged(f"{where}: its history does not add up")
    try:
        spent, total = rows.read_amount(head.spent), rows.read_amount(head.total)
    except (TypeError, ValueError, ZeroDivisionError) as error:
        raise damaged(f"account '{head.dataset}' cannot be read") from error
    if (spent, total) != (tally.spent, tally.total):
        raise damaged(f"{where}: its sums do not agree with its history")
    if spent > total:
        raise damaged(f"{where}: more is spent than it holds")


def _head(connection: Connection, account: int) -> _Head:
    found = connection.execute("SELECT dataset, spent, total FROM account WHERE id = ?", (account,)).fetchone()
    if found is None:
        raise damaged("an entry belongs to no account")
    dataset, spent, total = found
    return _Head(row=account, dataset=dataset, spent=spent, total=total)


def _levels(connection: Connection, account: int, after: int) -> int:
    """How many levels of an account are charged by entries after one."""
    query = "SELECT count(*) FROM level WHERE account = ? AND entry > ?"
    return int(connection.execute(query, (account, after)).fetchone()[0])


def _find(connection: Connection, account: int, mark: Mark) -> Tally | None:
    found = connection.execute(_TALLY, (account, mark)).fetchone()
    if found is None:
        return None
    entry, entries, levels, spent, total, digest = found
    try:
        if not all(isinstance(number, int) for number in (entry, entries, levels)):  # SQLite keeps words there, too
            raise TypeError
        return Tally(
            entry=entry,
            entries=entries,
            levels=levels,
            spent=rows.read_amount(spent),
            total=rows.read_amount(total),
            digest=digest,
        )
    except (TypeError, ValueError, ZeroDivisionError) as error:
        raise damaged("the tally of an account cannot be read") from error


def _write(connection: Connection, account: int, mark: str, tally: Tally) -> None:
    values = (
        tally.entry,
        tally.entries,
        tally.levels,
        stored(tally.spent, "the sum spent"),
        stored(tally.total or Fraction(0), "epsilon"),
        tally.digest,
    )
    there = "SELECT 1 FROM tally WHERE account = ? AND mark = ?"
    if connection.execute(there, (account, mark)).fetchone() is None:
        connection.execute(
            "INSERT INTO tally (entry, entries, levels, spent, total, digest, account, mark) "
            "VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
            (*values, account, mark),
        )
    else:
        connection.execute(
            "UPDATE tally SET entry = ?, entries = ?, levels = ?, spent = ?, total = ?, digest = ? "
            "WHERE account = ? AND mark = ?",
            (*values, account, mark),
        )
    require_kept(connection.execute(_TALLY, (account, mark)).fetchone() == values, "the tally of an account")
