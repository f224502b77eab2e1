"""What an account says of itself: its sums, what it promises, its history. Reading alone; nothing is spent here."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, cast

from sfumato.errors import LedgerError
from sfumato.exact import text
from sfumato.ledger import checks, identity, levels, rows, stream_rows
from sfumato.ledger.account import Account, Entry
from sfumato.ledger.database import Database
from sfumato.ledger.opening import require_sound
from sfumato.ledger.store import Store
from sfumato.ledger.terms import in_words
from sfumato.policies import Policy
from sfumato.promise.budget import Epsilon, at_most
from sfumato.promise.guarantee import Guarantee
from sfumato.promise.unit import Unit
from sfumato.reading import visible
from sfumato.relations import Relation

if TYPE_CHECKING:
    from sfumato.ledger.ledger import Ledger
    from sfumato.statement import Statement


class AccountView:
    """The account of a dataset in a ledger, to look at."""

    dataset: str
    _store: Database

    @property
    def place(self) -> str:
        """Where the ledger is: its file, or its database without the password."""
        return self._store.place

    @property
    def where(self) -> str:
        """The account, as messages name it."""
        return f"account '{self.dataset}' of '{self.place}'"

    @property
    def payer(self) -> str:
        """What a vault seals as the one who paid: the name that this ledger drew when it was made, and the account."""
        return identity.payer(self._store, self.dataset)

    @property
    def reached(self) -> tuple[str, Fraction]:
        """What a vault remembers of the account: its name, and how far it has come. An older copy has come less far."""
        return self.payer, self.spent

    def forgotten(self, reached: Fraction | None, known: Fraction) -> str:
        """What is said when a vault remembers more than is here."""
        return f"{self.where} knows of {text(reached or Fraction(0))} spent, but the vault of {text(known)}"

    def promised(self, guarantee: Guarantee) -> Guarantee:
        """What a release charged here promises: its own guarantee."""
        return guarantee

    @property
    def path(self) -> Path | None:
        """The ledger's file, or None when a server keeps it."""
        return self._store.path if isinstance(self._store, Store) else None

    @property
    def total(self) -> Epsilon:
        """The account's total ε, exact."""
        return self._account().total

    @property
    def spent(self) -> Epsilon:
        """What has been charged so far, exact."""
        return self._account().spent

    @property
    def remaining(self) -> Epsilon:
        """What is left, exact. Another process may spend it before you do: only `charge` decides."""
        return self._account().remaining

    @property
    def policy(self) -> Policy | None:
        """The account's policy; None before its first release, and where it hides a relation instead."""
        return rows.policy_of(self._account())

    @property
    def relation(self) -> Relation | None:
        """Which changes of one record the account hides, on whatever domain; None before its first release, and where
        it is kept under a policy.

        >>> print(sf.Ledger.create("budget.db", epsilon=3, hide=sf.move(0.01), fixed=["mode"]).relation)
        one record changes in this way: its place moves by less than 0.01
        """
        record = rows.record_of(self._account())
        return None if record is None else record.relation

    @property
    def fixed(self) -> tuple[str, ...]:
        """The attributes declared to be no function of what changes."""
        record = rows.record_of(self._account())
        return () if record is None else record.fixed

    @property
    def unit(self) -> Unit | None:
        """The account's unit, or None before its first release."""
        return self._account().unit

    def level(self, release_id: str) -> tuple[int, Epsilon] | None:
        """(level, ε) at which a release stands, (0, ε) when it was never refined; None when it was never charged.

        Waits for a charge that is under way, also for one whose program has lost sight of it: what stands here is
        settled, and a state that was paid for is never drawn anew.
        """
        with self._store.write() as connection:
            standing = levels.find(connection, self.dataset, checks.plain_text(release_id, "release_id"))
        return None if standing is None else (standing.level, standing.epsilon)

    def history(self) -> tuple[Entry, ...]:
        """Every line of the account, oldest first: its opening, its releases, and when its total was raised."""
        with self._store.read() as connection:
            return rows.entries_of(connection, self.dataset)

    def charges(self, release_id: str) -> tuple[tuple[Entry, str | None], ...]:
        """What was charged for a release, level by level: each entry, and the fingerprint of the policy it was under.
        Nothing where it was never charged here; steps of streams are not among them.
        """
        with self._store.read() as connection:
            return rows.charges_of(connection, self.dataset, checks.plain_text(release_id, "release_id"))

    def streams(self) -> tuple[str, ...]:
        """The names of the account's streams, in the order they were opened."""
        with self._store.read() as connection:
            return stream_rows.names(connection, self.dataset)

    def accounts(self) -> tuple[Account, ...]:
        """Every account in the file, of this dataset and of others."""
        with self._store.read() as connection:
            return rows.all_accounts(connection)

    def statement(
        self, path: str | Path | None = None, *, facts: Mapping[str, str] | None = None, title: str | None = None
    ) -> Statement:
        """One page for an auditor: the account's extract with what is left, its streams, and all accounts of the ledger
        together. With a path (.html, .md or .json) it is written there, too.

        >>> ledger = sf.Ledger.create("budget.db", epsilon=3)
        >>> ledger.statement("2026.html")
        Statement("Privacy statement: account 'default'", 3 sections)
        """
        from sfumato.statement import statement_of_ledger  # the door to what is told to auditors

        made = statement_of_ledger(cast("Ledger", self), facts=facts, title=title)
        if path is not None:
            made.save(path)
        return made

    def __repr__(self) -> str:
        return f"Ledger({self.place!r}, dataset={self.dataset!r})"

    def __str__(self) -> str:
        account = self._account()
        sums = (
            f"Account '{self.dataset}' of '{self.place}': {account.spent} of {account.total} spent, "
            f"{at_most(account.remaining)} left"
        )
        record = rows.record_of(account)
        return sums if record is None else f"{sums}\nIt hides that {visible(in_words(record))}"

    # ---------------------------------------------------------------- inside

    def _account(self) -> Account:
        with self._store.read() as connection:
            if not self._store.lags(connection):
                return self._require(rows.find_account(connection, self.dataset))
        require_sound(self._store)  # an older ledger was put back under a running program
        with self._store.read() as connection:
            return self._require(rows.find_account(connection, self.dataset))

    def _require(self, account: Account | None) -> Account:
        if account is None:  # the file was replaced while this ledger was open
            raise LedgerError(
                f"'{self.place}' has no account '{self.dataset}' any more: the file was replaced. Nothing "
                "was drawn or recorded. Restore the ledger."
            )
        return account
