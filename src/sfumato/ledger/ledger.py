"""The ledger: what has been spent on a dataset, kept so that it is never forgotten and never exceeded.

The promise: over all releases charged to an account, neighbours in the account's sense (its policy, its
unit) are told apart by at most its total ε. It rests on three things. Losses of releases add up. A charge
is checked and recorded in one transaction, on disk before `charge` returns, and the caller draws noise
only then: check, record, draw. A release under another policy or unit is charged what it costs the
account's neighbours (`sfumato.promise.cost`).

So a crash at any point over-charges at worst, and any number of processes together never overspend. There
is one account for each dataset: two side by side, each blind to the other's releases, would both promise
too much. A stream, which releases without end, has an account of its own beside it, with a promise for every window of
time (`sfumato.ledger.streams`).

What it cannot know: releases that were not charged to it, and an older copy of the file put back in its
place.
"""

from __future__ import annotations

import os
from dataclasses import replace
from datetime import timedelta
from fractions import Fraction
from pathlib import Path
from warnings import warn

from sfumato.errors import InvalidInput, LedgerCreated, LedgerError
from sfumato.exact import Number, positive_fraction, text
from sfumato.ledger import checks, identity, levels, rows, stream_rows, tally
from sfumato.ledger.account import Account, Entry, Receipt
from sfumato.ledger.database import Connection
from sfumato.ledger.opening import Opening, rate_of, require_sound, with_terms
from sfumato.ledger.places import database_at
from sfumato.ledger.store import Store
from sfumato.ledger.streams import StreamAccount
from sfumato.policies import Policy
from sfumato.promise.budget import Epsilon, at_most
from sfumato.promise.guarantee import Guarantee
from sfumato.promise.unit import Unit, account_unit_of
from sfumato.promise.window import Window


class Ledger:
    """The account of one dataset in a ledger file: made once, `Ledger.create("budget.db", epsilon=10.0)`, and opened
    from then on, `Ledger("budget.db")`.

    The URL of a PostgreSQL server stands for a file that several machines share (`sfumato.ledger.postgres`). Whatever
    else is given on opening must agree with what is stored. With `epsilon` a missing file or account is created as
    well, and a `LedgerCreated` warning says so: in another folder, or after a deletion, a full budget begins anew.
    Without a policy or unit the account takes those of its first release.

    >>> sf.Ledger.create("budget.db", epsilon=3).remaining
    3
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        epsilon: Number | None = None,
        *,
        dataset: str = "default",
        policy: Policy | None = None,
        unit: str | None = None,
        max_per_entity: int | None = None,
        timeout: float = 30.0,
    ) -> None:
        made = self._open(path, epsilon, dataset, policy, unit, max_per_entity, timeout, only_new=False)
        if made:
            warn(
                f"{made}: a new budget of {self.total} begins, and nothing counts as spent. If there was one before, "
                "this is not it. Ledger.create makes one without this warning; leave epsilon out to open one.",
                LedgerCreated,
                stacklevel=2,
            )

    @classmethod
    def create(
        cls,
        path: str | os.PathLike[str],
        epsilon: Number,
        *,
        dataset: str = "default",
        policy: Policy | None = None,
        unit: str | None = None,
        max_per_entity: int | None = None,
        timeout: float = 30.0,
    ) -> Ledger:
        """A new account with the total `epsilon`, in a new file or beside the accounts of one that is there.

        An account that exists is refused, whatever its total.
        """
        if epsilon is None:
            raise InvalidInput("epsilon is missing: a new account needs its total. Nothing was created.")
        ledger = cls.__new__(cls)
        ledger._open(path, epsilon, dataset, policy, unit, max_per_entity, timeout, only_new=True)
        return ledger

    def _open(
        self,
        path: str | os.PathLike[str],
        epsilon: Number | None,
        dataset: str,
        policy: Policy | None,
        unit: str | None,
        max_per_entity: int | None,
        timeout: float,
        *,
        only_new: bool,
    ) -> str:
        """Open or create; gives words for what was created, if anything was."""
        self.dataset = checks.plain_text(dataset, "dataset")
        self._store = database_at(path, timeout=timeout)
        total = None if epsilon is None else Epsilon(positive_fraction(epsilon, "epsilon"))
        account_unit = account_unit_of(unit, max_per_entity)
        if policy is not None:
            checks.require_policy(policy)
        opening = Opening(self._store, self.dataset, total=total, policy=policy, unit=account_unit)
        return opening.created() if only_new else opening.opened()

    def check(self) -> None:
        """Read the whole ledger through, from its first entry on, and refuse one that does not hold together.

        Opening reads only what came since the charges themselves last looked back.
        """
        require_sound(self._store, whole=True)

    def backup(self, path: str | os.PathLike[str]) -> Path:
        """Write a consistent copy of the file, with every account in it, to a path where nothing is.

        A copy that is put back forgets what was charged after it was taken: see the docs before restoring one.
        """
        target = Path(os.fspath(path)).absolute()
        self._store.copy_to(target)
        Ledger(target, dataset=self.dataset).check()
        return target

    # ---------------------------------------------------------------- spending

    def charge(
        self,
        guarantee: Guarantee | Number,
        policy: Policy | None = None,
        unit: str | None = None,
        *,
        label: str,
        release_id: str,
        max_per_entity: int | None = None,
        private: bool = True,
    ) -> Receipt:
        """Check that a release fits and record it, in one transaction, on disk when this returns. Draw only then.

        The guarantee is what is charged. Its parts may be given one by one instead, as they were before: ε, `policy`,
        `unit` ("record" unless said), `max_per_entity` and `private`.
        `label` and `release_id` are kept in plain text: they must not carry private values.

        Raises BudgetExceeded, InvalidInput, PolicyMismatch or LedgerError; nothing is recorded then,
        except that a failing disk may keep a charge it reported as failed.
        """
        asked = checks.promised(guarantee, policy, unit, max_per_entity, private)
        label, release_id = checks.plain_text(label, "label"), checks.plain_text(release_id, "release_id")
        checks.require_private(asked.private)
        while True:
            # Exchange rates can take a while on large domains, so they are worked out before the file is
            # locked ...
            seen = self._account()
            terms = with_terms(seen, self.place, asked.policy, asked.unit, first_release=True)
            rate = rate_of(terms, asked.policy, asked.unit)
            with self._store.write() as connection:
                account = self._require(rows.find_account(connection, self.dataset))
                if (account.fingerprint, account.unit) != (seen.fingerprint, seen.unit):
                    continue  # ... and again when another process's first release has just set the account's terms
                cost = Epsilon(asked.loss * rate)
                if cost > account.remaining:
                    raise checks.exceeded(asked.loss, rate, account, self.where)
                after = replace(terms, total=account.total, spent=Epsilon(account.spent + cost))
                entry = Entry(
                    time=rows.now(),
                    kind="release",
                    label=label,
                    release_id=release_id,
                    policy=asked.policy.describe(),
                    unit=asked.unit,
                    epsilon=asked.loss,
                    rate=rate,
                    cost=cost,
                )
                rows.update_account(connection, after)
                tally.record(connection, self.dataset, entry, asked.policy.fingerprint)
            return Receipt(dataset=self.dataset, entry=entry, remaining=after.remaining)

    def raise_level(
        self, release_id: str, *, level: int, epsilon: Number, label: str, token: str | None = None
    ) -> Receipt:
        """Charge what a finer level of a release costs beyond the levels before it, and count the level.

        In one transaction, on disk when this returns. `level` must be the next one: a level made from an
        older state would be a second noise, and the two would average out. `epsilon` is the release's own
        at the new level; the difference is charged at the rate of the first charge. `token` names the noise
        that is paid for (`stamp`). Raises as `charge` does, and nothing is recorded then.
        """
        asked = Epsilon(positive_fraction(epsilon, "epsilon"))
        label, release_id = checks.plain_text(label, "label"), checks.plain_text(release_id, "release_id")
        with self._store.write() as connection:
            account, standing = self._standing(connection, release_id)
            entry = standing.raised(level, asked, label=label, time=rows.now())
            if entry.cost > account.remaining:
                raise standing.exceeded(asked, entry.cost, account, self.where)
            after = replace(account, spent=Epsilon(account.spent + entry.cost))
            rows.update_account(connection, after)
            levels.insert(connection, self.dataset, standing, entry)
            levels.stamp(connection, release_id, level, token)
        return Receipt(dataset=self.dataset, entry=entry, remaining=after.remaining)

    def stamp(self, release_id: str, level: int) -> str | None:
        """The token of the noise that was charged for a level, or None."""
        with self._store.read() as connection:
            return levels.stamped(connection, checks.plain_text(release_id, "release_id"), level)

    def quote_level(self, release_id: str, *, epsilon: Number) -> Epsilon:
        """What `raise_level` would take for the next level, or its refusal. Records nothing and reserves nothing."""
        asked = Epsilon(positive_fraction(epsilon, "epsilon"))
        with self._store.read() as connection:
            account, standing = self._standing(connection, checks.plain_text(release_id, "release_id"))
        cost = standing.raised(standing.level + 1, asked, label="quote", time=rows.now()).cost
        if cost > account.remaining:
            raise standing.exceeded(asked, cost, account, self.where)
        return cost

    def quote(
        self,
        guarantee: Guarantee | Number,
        policy: Policy | None = None,
        unit: str | None = None,
        *,
        max_per_entity: int | None = None,
    ) -> Epsilon:
        """What `charge` would take for such a release. Records nothing and reserves nothing."""
        asked = checks.promised(guarantee, policy, unit, max_per_entity)
        terms = with_terms(self._account(), self.place, asked.policy, asked.unit, first_release=True)
        return Epsilon(asked.loss * rate_of(terms, asked.policy, asked.unit))

    def raise_cap(self, epsilon: Number) -> None:
        """Raise the account's total to `epsilon`. That weakens the promise made, so it is a line of the history."""
        total = Epsilon(positive_fraction(epsilon, "epsilon"))
        with self._store.write() as connection:
            account = self._require(rows.find_account(connection, self.dataset))
            if total <= account.total:
                raise InvalidInput(
                    f"epsilon={text(total)} must be greater than the total of {text(account.total)} that "
                    f"account '{self.dataset}' has. Nothing was changed. A total can only be raised; to "
                    "spend less, charge less."
                )
            rows.update_account(connection, replace(account, total=total))
            tally.record(connection, self.dataset, Entry.of_total("raise", total, rows.now()), None)

    def stream(
        self,
        name: str,
        *,
        epsilon: Number | None = None,
        window: int | timedelta | Window | None = None,
        policy: Policy | None = None,
        unit: str | None = None,
        max_per_entity: int | None = None,
    ) -> StreamAccount:
        """The account of a stream: releases over time, with ε for every window instead of a total that runs out.

        A new stream needs `epsilon`, `window` (so many steps, or a timedelta) and `policy`; its unit is the record,
        or the person when `max_per_entity` is given. Of one that exists, whatever is given must agree with it. What
        is charged to a stream does not count towards the ledger's own total, and adds to its promise where both are
        about the same people.
        """
        return StreamAccount(
            self._store,
            self.dataset,
            checks.plain_text(name, "name"),
            epsilon=epsilon,
            window=window,
            policy=policy,
            unit=account_unit_of(unit, max_per_entity),
        )

    # ---------------------------------------------------------------- reading

    @property
    def place(self) -> str:
        """Where the ledger is: its file, or its database without the password."""
        return self._store.place

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
        """The account's policy, or None before its first release."""
        return rows.policy_of(self._account())

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

    def streams(self) -> tuple[str, ...]:
        """The names of the account's streams, in the order they were opened."""
        with self._store.read() as connection:
            return stream_rows.names(connection, self.dataset)

    def accounts(self) -> tuple[Account, ...]:
        """Every account in the file, of this dataset and of others."""
        with self._store.read() as connection:
            return rows.all_accounts(connection)

    def __repr__(self) -> str:
        return f"Ledger({self.place!r}, dataset={self.dataset!r})"

    def __str__(self) -> str:
        account = self._account()
        return (
            f"Account '{self.dataset}' of '{self.place}': {account.spent} of {account.total} spent, "
            f"{at_most(account.remaining)} left"
        )

    # ---------------------------------------------------------------- inside

    def _account(self) -> Account:
        with self._store.read() as connection:
            return self._require(rows.find_account(connection, self.dataset))

    def _require(self, account: Account | None) -> Account:
        if account is None:  # the file was replaced while this ledger was open
            raise LedgerError(
                f"'{self.place}' has no account '{self.dataset}' any more: the file was replaced. Nothing "
                "was drawn or recorded. Restore the ledger."
            )
        return account

    def _standing(self, connection: Connection, release_id: str) -> tuple[Account, levels.Standing]:
        account = self._require(rows.find_account(connection, self.dataset))
        standing = levels.find(connection, self.dataset, release_id)
        if standing is None:
            raise InvalidInput(
                f"release_id='{release_id}' is not known to {self.where}: no release was charged under it. Nothing "
                "was drawn or recorded. Use the ledger that the release was charged to."
            )
        return account, standing

    @property
    def where(self) -> str:
        """The account, as messages name it."""
        return f"account '{self.dataset}' of '{self.place}'"
