"""Between the tables of a ledger and its nouns. What is read from the file is checked; what does not hold is damage."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from datetime import UTC, datetime
from functools import lru_cache
from typing import cast

from sfumato.errors import SfumatoError
from sfumato.exact import written
from sfumato.ledger.account import Account, Entry, EntryKind
from sfumato.ledger.database import Connection
from sfumato.ledger.kept import require_kept
from sfumato.ledger.schema import damaged
from sfumato.policies import Policy, policy_from_spec
from sfumato.promise.budget import Epsilon, stored
from sfumato.promise.unit import Unit, unit_of
from sfumato.reading import plain_data
from sfumato.relations import Record, record_from_spec

_ACCOUNT = (
    "SELECT dataset, total, spent, policy, fingerprint, unit, max_per_entity, relation, relation_digest, opened "
    "FROM account"
)
_ENTRY = "SELECT time, kind, label, release_id, policy, unit, max_per_entity, epsilon, rate, cost FROM entry"

_AccountRow = tuple[str, str, str, str | None, str | None, str | None, int | None, str | None, str | None, str]
_EntryRow = tuple[str, str, str, str | None, str | None, str | None, int | None, str, int, str]


def now() -> datetime:
    """The present, UTC."""
    return datetime.now(UTC)


def canonical(kept: Policy | Record) -> str:
    """The text under which a policy is kept, or what an account knows of a record."""
    return json.dumps(kept.spec(), sort_keys=True, separators=(",", ":"), allow_nan=False)


def digest_of(spec: str) -> str:
    """What a record's text must come to."""
    return hashlib.sha256(spec.encode()).hexdigest()


def find_account(connection: Connection, dataset: str) -> Account | None:
    """The account of a dataset, or None."""
    row = connection.execute(f"{_ACCOUNT} WHERE dataset = ?", (dataset,)).fetchone()
    return None if row is None else _account(row)


def all_accounts(connection: Connection) -> tuple[Account, ...]:
    """Every account of the file, in the order they were opened."""
    return tuple(_account(row) for row in connection.execute(f"{_ACCOUNT} ORDER BY id"))


def datasets(connection: Connection) -> tuple[str, ...]:
    """The names of all accounts, in the order they were opened; also in a ledger of an earlier version."""
    return tuple(str(name) for (name,) in connection.execute("SELECT dataset FROM account ORDER BY id").fetchall())


def numbers(connection: Connection) -> list[int]:
    """The rows of all accounts, in the order they were opened."""
    return [int(number) for (number,) in connection.execute("SELECT id FROM account ORDER BY id").fetchall()]


def entries_of(connection: Connection, dataset: str) -> tuple[Entry, ...]:
    """The history of an account, oldest first."""
    query = f"{_ENTRY} WHERE account = (SELECT id FROM account WHERE dataset = ?) ORDER BY id"
    # All rows at once: a file is held against writers as long as rows are being fetched from it.
    return tuple(_entry(row) for row in connection.execute(query, (dataset,)).fetchall())


def charges_of(connection: Connection, dataset: str, release_id: str) -> tuple[tuple[Entry, str | None], ...]:
    """The charges of a release, oldest first, each with the fingerprint of its policy."""
    query = (
        f"{_ENTRY.replace('SELECT', 'SELECT fingerprint,')} WHERE account = (SELECT id FROM account WHERE dataset = ?) "
        "AND release_id = ? AND kind = 'release' ORDER BY id"
    )
    found = connection.execute(query, (dataset, release_id)).fetchall()
    return tuple((_entry(row[1:]), row[0]) for row in found)


def numbered_entries(connection: Connection, which: str, values: Sequence[object]) -> dict[int, Entry]:
    """The entries in rows that a query gives, by the number of the row."""
    query = f"{_ENTRY.replace('SELECT', 'SELECT id,')} WHERE id IN ({which})"
    return {row[0]: _entry(row[1:]) for row in connection.execute(query, values).fetchall()}


def entry_at(connection: Connection, number: int) -> Entry:
    """The entry in a row."""
    return _entry(connection.execute(f"{_ENTRY} WHERE id = ?", (number,)).fetchone())


def insert_account(connection: Connection, account: Account) -> None:
    """Open an account; a second one for the same dataset is refused by the table."""
    connection.execute(
        "INSERT INTO account (id, dataset, total, spent, policy, fingerprint, unit, max_per_entity, relation, "
        "relation_digest, opened) VALUES ((SELECT coalesce(max(id), 0) + 1 FROM account), ?, ?, ?, ?, ?, ?, ?, ?, ?, "
        "?)",
        (account.dataset, *_amounts(account), *_terms(account), account.opened.isoformat()),
    )
    require_kept(find_account(connection, account.dataset) == account, "a new account")


def update_account(connection: Connection, account: Account) -> None:
    """Write the sums and terms of an account."""
    connection.execute(
        "UPDATE account SET total = ?, spent = ?, policy = ?, fingerprint = ?, unit = ?, max_per_entity = ?, "
        "relation = ?, relation_digest = ? WHERE dataset = ?",
        (*_amounts(account), *_terms(account), account.dataset),
    )
    require_kept(find_account(connection, account.dataset) == account, "what an account has spent")


def insert_entry(connection: Connection, dataset: str, entry: Entry, fingerprint: str | None) -> int:
    """Add a line to an account's history; gives the number of its row."""
    unit = entry.unit
    connection.execute(
        "INSERT INTO entry (id, account, time, kind, label, release_id, policy, fingerprint, unit, max_per_entity, "
        "epsilon, rate, cost) VALUES ((SELECT coalesce(max(id), 0) + 1 FROM entry), (SELECT id FROM account WHERE "
        "dataset = ?), ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            dataset,
            entry.time.isoformat(),
            entry.kind,
            entry.label,
            entry.release_id,
            entry.policy,
            fingerprint,
            None if unit is None else unit.name,
            None if unit is None else unit.max_per_entity,
            stored(entry.epsilon, "epsilon"),
            entry.rate,
            stored(entry.cost, "the cost"),
        ),
    )
    # The one just made: nobody else writes in this transaction, and no row ever goes.
    number = cast(int, connection.execute("SELECT max(id) FROM entry").fetchone()[0])
    require_kept(entry_at(connection, number) == entry, "an entry of the history")
    return number


def policy_of(account: Account) -> Policy | None:
    """The policy an account was opened under, read back through the closed registry of policies."""
    if account.policy_spec is None:
        return None
    try:
        spec = plain_data(account.policy_spec)
        if not isinstance(spec, dict):
            raise ValueError("the description of a policy is a JSON object")
        policy = policy_from_spec(spec)
    except (SfumatoError, ValueError) as error:
        raise damaged(f"account '{account.dataset}': its policy cannot be read") from error
    if policy.fingerprint != account.fingerprint:
        raise damaged(f"account '{account.dataset}': its policy does not match its fingerprint")
    return policy


def record_of(account: Account) -> Record | None:
    """What an account hides of a record, where it was not opened under a policy."""
    if account.record_spec is None:
        return None
    try:
        record = record_from_spec(plain_data(account.record_spec))
    except (SfumatoError, ValueError) as error:
        raise damaged(f"account '{account.dataset}': its relation cannot be read") from error
    if digest_of(account.record_spec) != account.record_digest:
        raise damaged(f"account '{account.dataset}': its relation does not match its digest")
    return record


def _amounts(account: Account) -> tuple[str, str]:
    return stored(account.total, "epsilon"), stored(account.spent, "the sum spent")


def _terms(account: Account) -> tuple[str | int | None, ...]:
    unit = account.unit
    return (
        account.policy_spec,
        account.fingerprint,
        None if unit is None else unit.name,
        None if unit is None else unit.max_per_entity,
        account.record_spec,
        account.record_digest,
    )


def _account(row: _AccountRow) -> Account:
    dataset, total, spent, policy, fingerprint, unit, most, relation, digest, opened = row
    try:
        account = Account(
            dataset=dataset,
            total=read_amount(total),
            spent=read_amount(spent),
            policy_spec=policy,
            fingerprint=fingerprint,
            unit=_unit(unit, most),
            opened=datetime.fromisoformat(opened),
            record_spec=relation,
            record_digest=digest,
        )
    except (TypeError, ValueError, ZeroDivisionError) as error:
        raise damaged(f"account '{dataset}' cannot be read") from error
    promises = (account.fingerprint is not None) + (account.record_digest is not None)
    if promises > 1 or (account.record_spec is None) != (account.record_digest is None):
        raise damaged(f"account '{dataset}' does not say what it promises")
    if account.spent and not promises:
        raise damaged(f"account '{dataset}' has spent something, and has forgotten what it promises")
    return account


def _entry(row: _EntryRow | None) -> Entry:
    if row is None:
        raise damaged("an entry of its history is missing")
    time, kind, label, release_id, policy, unit, most, epsilon, rate, cost = row
    try:
        return Entry(
            time=datetime.fromisoformat(time),
            kind=cast(EntryKind, kind),
            label=label,
            release_id=release_id,
            policy=policy,
            unit=_unit(unit, most),
            epsilon=read_amount(epsilon),
            rate=int(rate),
            cost=read_amount(cost),
        )
    except (TypeError, ValueError, ZeroDivisionError) as error:
        raise damaged("an entry of its history cannot be read") from error


def _unit(name: str | None, max_per_entity: int | None) -> Unit | None:
    return None if name is None else unit_of(name, max_per_entity)


@lru_cache(maxsize=1024)  # the steps of a stream spend the same few amounts over and over
def read_amount(text: str) -> Epsilon:
    """An amount as it is kept; raises ValueError for what is none."""
    amount = Epsilon(written(text, "the amount"))
    if amount < 0:
        raise ValueError("a negative amount")
    return amount
