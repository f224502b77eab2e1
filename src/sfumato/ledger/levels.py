"""Levels: how far a release was refined, counted in the ledger.

A release that is refined from ε₁ to ε₂ costs ε₂ - ε₁ more, because the two together promise ε₂
(`sfumato.noise.gradual`). That holds for one chain of levels alone. A vault put back from a backup would start a second
one, so the ledger counts the levels of each release and takes only the next one, in the same transaction that charges
for it. Level 0 is the release's own charge; every later level is an entry of the history as well, at the rate of the
first one: the account's terms and the release's policy are what they were.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime

from sfumato.errors import BudgetExceeded, InvalidInput
from sfumato.exact import LARGEST, text
from sfumato.ledger import checks, rows, tally
from sfumato.ledger.account import Account, Entry
from sfumato.ledger.database import Connection
from sfumato.ledger.kept import require_kept
from sfumato.ledger.schema import damaged
from sfumato.promise.budget import Epsilon, at_most, stored

_CHARGES = (
    "SELECT id FROM entry WHERE account = (SELECT id FROM account WHERE dataset = ?) AND release_id = ? "
    "AND kind = 'release'"
)
_LEVELS = (
    "SELECT level, epsilon, charge, entry FROM level WHERE account = (SELECT id FROM account WHERE dataset = ?) "
    "AND release_id = ? ORDER BY level"
)
_SINCE = "account = ? AND release_id IN (SELECT release_id FROM level WHERE account = ? AND entry > ?)"
_LEVELS_SINCE = (
    "SELECT dataset, release_id, level, epsilon, charge, entry FROM level JOIN account ON account.id = level.account "
    f"WHERE {_SINCE} ORDER BY release_id, level"
)
_ENTRIES_OF_LEVELS = f"SELECT charge FROM level WHERE {_SINCE} UNION SELECT entry FROM level WHERE {_SINCE}"

_LevelRow = tuple[int, str, int, int]  # level, epsilon, charge, entry


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """Where a release stands: its highest level, the ε it has there, and its own charge with the row that it is in."""

    release_id: str
    level: int
    epsilon: Epsilon
    charge: Entry
    row: int

    def raised(self, level: int, epsilon: Epsilon, *, label: str, time: datetime) -> Entry:
        """The entry that charges the next level, or a refusal."""
        here = f"release '{self.release_id}', which is at level {self.level} with epsilon={text(self.epsilon)}"
        checks.require_next_level(level, self.level, here)
        checks.require_finer(epsilon, self.epsilon, here)
        more = Epsilon(epsilon - self.epsilon)
        return replace(self.charge, time=time, label=label, epsilon=more, cost=Epsilon(more * self.charge.rate))

    def exceeded(self, epsilon: Epsilon, cost: Epsilon, account: Account, where: str) -> BudgetExceeded:
        """The refusal of a level that does not fit."""
        rate = self.charge.rate
        cost_words = text(cost) if rate == 1 else f"{text(cost)} ({rate} × {text(epsilon - self.epsilon)})"
        fits = account.remaining / rate
        advice = f"Use at most {at_most(self.epsilon + fits)}, or r" if fits else "R"
        return BudgetExceeded(
            f"epsilon={text(epsilon)} is too much: raising release '{self.release_id}' from {text(self.epsilon)} costs "
            f"{cost_words}, which exceeds the {at_most(account.remaining)} left of {text(account.total)} in {where}. "
            f"Nothing was drawn or recorded. {advice}aise the total with raise_cap, which weakens the promise."
        )


def find(connection: Connection, dataset: str, release_id: str) -> Standing | None:
    """Where a release of an account stands; None when nothing was charged for it."""
    raised = connection.execute(_LEVELS, (dataset, release_id)).fetchall()
    charges = {row[2] for row in raised} or {row[0] for row in connection.execute(_CHARGES, (dataset, release_id))}
    if not charges:
        return None
    if len(charges) > 1 and not raised:
        raise InvalidInput(
            f"release_id='{release_id}' names {len(charges)} charges of account '{dataset}', so it is not clear which "
            "of them is meant. Nothing was drawn or recorded. Charge every release under an id of its own."
        )
    return _standing(dataset, release_id, raised, min(charges), lambda row: rows.entry_at(connection, row))


def _standing(
    dataset: str, release_id: str, raised: list[_LevelRow], row: int, entry_at: Callable[[int], Entry]
) -> Standing:
    """Where a release stands with these levels; what does not add up is damage."""
    charge = entry_at(row)
    level, epsilon, sound = 0, charge.epsilon, all(other == row for _, _, other, _ in raised)
    for number, written, _, entry_row in raised:
        entry = entry_at(entry_row)
        level, epsilon = level + 1, Epsilon(epsilon + entry.epsilon)
        sound &= (number, written) == (level, stored(epsilon, "epsilon")) and entry.rate == charge.rate
        sound &= (charge.kind, charge.release_id) == (entry.kind, entry.release_id) == ("release", release_id)
    if not sound:
        raise damaged(f"account '{dataset}': the levels of release '{release_id}' do not add up")
    return Standing(release_id=release_id, level=level, epsilon=epsilon, charge=charge, row=row)


def insert(connection: Connection, dataset: str, standing: Standing, entry: Entry) -> None:
    """Record the next level and its charge; the caller holds the transaction and updates the sums."""
    query = "SELECT account, fingerprint FROM entry WHERE id = ?"
    account, fingerprint = connection.execute(query, (standing.row,)).fetchone()
    number = tally.record(connection, dataset, entry, fingerprint)
    epsilon = stored(Epsilon(standing.epsilon + entry.epsilon), "epsilon")
    connection.execute(
        "INSERT INTO level (account, release_id, level, epsilon, charge, entry) VALUES (?, ?, ?, ?, ?, ?)",
        (account, standing.release_id, standing.level + 1, epsilon, standing.row, number),
    )
    written = connection.execute(_LEVELS, (dataset, standing.release_id)).fetchall()[-1:]
    require_kept(written == [(standing.level + 1, epsilon, standing.row, number)], "a level of a release")
    tally.count_level(connection, account, number)


def stamp(connection: Connection, release_id: str, level: int, token: str | None) -> None:
    """Keep which noise a level was charged for; the caller holds the transaction."""
    if token is not None:
        connection.execute("INSERT INTO stamp (release_id, level, token) VALUES (?, ?, ?)", (release_id, level, token))
        require_kept(stamped(connection, release_id, level) == token, "the stamp of a level")


def stamped(connection: Connection, release_id: str, level: int) -> str | None:
    """The token that was kept, or None."""
    if level > LARGEST:  # more than a database counts to: nothing was ever charged there
        return None
    query = "SELECT token FROM stamp WHERE release_id = ? AND level = ?"
    found = connection.execute(query, (release_id, level)).fetchone()
    return None if found is None else str(found[0])


def require_sound(connection: Connection, since: Mapping[int, int]) -> None:
    """Refuse a ledger whose levels do not agree with its entries; looks at the releases refined after an entry.

    `since` gives the entry for each account. Two statements an account, however many releases there are.
    """
    for account, entry in since.items():
        releases: dict[tuple[str, str], list[_LevelRow]] = {}
        for dataset, release_id, *row in connection.execute(_LEVELS_SINCE, (account, account, entry)).fetchall():
            releases.setdefault((dataset, release_id), []).append((row[0], row[1], row[2], row[3]))
        entries = rows.numbered_entries(connection, _ENTRIES_OF_LEVELS, (account, account, entry) * 2)
        needed = {row for raised in releases.values() for *_, charge, its in raised for row in (charge, its)}
        if not needed <= entries.keys():
            raise damaged("an entry of its history is missing")
        for (dataset, release_id), raised in releases.items():
            _standing(dataset, release_id, raised, raised[0][2], entries.__getitem__)
