"""The ledger: what has been spent on a dataset, kept so that it is never forgotten and never exceeded.

The promise: over all releases charged to an account, neighbours in the account's sense (the relation between records
that it hides, or its policy; its unit) are told apart by at most its total ε. It rests on three things. Losses of
releases add up. A charge is checked and recorded in one transaction, on disk before `charge` returns, and the caller
draws noise only then: check, record, draw. A release under another policy or unit is charged what it costs the
account's neighbours (`sfumato.promise.cost`, `sfumato.ledger.terms`).

So a crash at any point over-charges at worst, and any number of processes together never overspend. There
is one account for each dataset: two side by side, each blind to the other's releases, would both promise
too much. A stream, which releases without end, has an account of its own beside it, with a promise for every window of
time (`sfumato.ledger.streams`).

What it cannot know: releases that were not charged to it, and an older copy of the file put back in its
place.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from warnings import warn

from sfumato.errors import InvalidInput, LedgerCreated
from sfumato.exact import Number, positive_fraction, text
from sfumato.ledger import checks, levels, rows, tally
from sfumato.ledger.account import Account, Entry, Receipt
from sfumato.ledger.database import Connection
from sfumato.ledger.opening import Opening, require_sound
from sfumato.ledger.places import database_at
from sfumato.ledger.streams import StreamAccount
from sfumato.ledger.terms import Terms, from_first_release, rate_of
from sfumato.ledger.view import AccountView
from sfumato.policies import Policy
from sfumato.promise.budget import Epsilon
from sfumato.promise.guarantee import Guarantee
from sfumato.promise.unit import account_unit_of
from sfumato.promise.window import Window
from sfumato.relations import Relation


class Ledger(AccountView):
    """The account of one dataset in a ledger file: made once, `Ledger.create("budget.db", epsilon=10.0)`, and opened
    from then on, `Ledger("budget.db")`.

    The URL of a PostgreSQL server stands for a file that several machines share (`sfumato.ledger.postgres`). Whatever
    else is given on opening must agree with what is stored. With `epsilon` a missing file or account is created as
    well, and a `LedgerCreated` warning says so: in another folder, or after a deletion, a full budget begins anew.

    `hide` is the relation between records that the account promises to hide: maps at any resolution, tables and medians
    then add up in it. `fixed` names attributes that are no function of what changes, by your declaration, which every
    statement of the account prints; one that is neither changed nor fixed is refused. `policy`, in the place of `hide`,
    ties the account to the cells of one domain. Without either it takes the relation of its first release, with what
    that declares public fixed, or its policy where it has no relation; and the unit of its first release, too.

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
        hide: Relation | None = None,
        fixed: Iterable[str] | None = None,
        unit: str | None = None,
        max_per_entity: int | None = None,
        timeout: float = 30.0,
    ) -> None:
        terms = Terms.of(policy, hide, fixed, account_unit_of(unit, max_per_entity))
        made = self._open(path, epsilon, dataset, terms, timeout, only_new=False)
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
        hide: Relation | None = None,
        fixed: Iterable[str] | None = None,
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
        terms = Terms.of(policy, hide, fixed, account_unit_of(unit, max_per_entity))
        ledger._open(path, epsilon, dataset, terms, timeout, only_new=True)
        return ledger

    def _open(
        self,
        path: str | os.PathLike[str],
        epsilon: Number | None,
        dataset: str,
        terms: Terms,
        timeout: float,
        *,
        only_new: bool,
    ) -> str:
        """Open or create; gives words for what was created, if anything was."""
        self.dataset = checks.plain_text(dataset, "dataset")
        self._store = database_at(path, timeout=timeout)
        total = None if epsilon is None else Epsilon(positive_fraction(epsilon, "epsilon"))
        opening = Opening(self._store, self.dataset, total=total, terms=terms)
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
        filtered: Collection[str] = (),
        dropped: Collection[str] = (),
    ) -> Receipt:
        """Check that a release fits and record it, in one transaction, on disk when this returns. Draw only then.

        The guarantee is what is charged. Its parts may be given one by one instead, as they were before: ε, `policy`,
        `unit` ("record" unless said), `max_per_entity` and `private`.
        `label` and `release_id` are kept in plain text: they must not carry private values. `filtered` names the
        attributes by which records were left out before they were counted (`filtered=["mode"]` for a map of bicycles):
        where a change of a record may take it out of the release, that is priced as well. `dropped` names attributes of
        the release of which values beyond its own were left out.

        Raises BudgetExceeded, InvalidInput, PolicyMismatch or LedgerError; nothing is recorded then,
        except that a failing disk may keep a charge it reported as failed.
        """
        asked = checks.promised(guarantee, policy, unit, max_per_entity, private)
        label, release_id = checks.plain_text(label, "label"), checks.plain_text(release_id, "release_id")
        checks.require_private(asked.private)
        chosen, outside = checks.names_of(filtered, "filtered"), checks.names_of(dropped, "dropped")
        while True:
            # Exchange rates can take a while on large domains, so they are worked out before the file is
            # locked ...
            seen = self._account()
            terms = from_first_release(seen, asked.policy, asked.unit)
            rate = rate_of(terms, asked.policy, asked.unit, filtered=chosen, dropped=outside)
            with self._store.write() as connection:
                account = self._require(rows.find_account(connection, self.dataset))
                if account.terms != seen.terms:
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
                    policy=checks.seen_through(asked.policy, chosen),
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
        filtered: Collection[str] = (),
        dropped: Collection[str] = (),
    ) -> Epsilon:
        """What `charge` would take for such a release. Records nothing and reserves nothing."""
        asked = checks.promised(guarantee, policy, unit, max_per_entity)
        terms = from_first_release(self._account(), asked.policy, asked.unit)
        chosen, outside = checks.names_of(filtered, "filtered"), checks.names_of(dropped, "dropped")
        return Epsilon(asked.loss * rate_of(terms, asked.policy, asked.unit, filtered=chosen, dropped=outside))

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

    # ---------------------------------------------------------------- inside

    def _standing(self, connection: Connection, release_id: str) -> tuple[Account, levels.Standing]:
        account = self._require(rows.find_account(connection, self.dataset))
        standing = levels.find(connection, self.dataset, release_id)
        if standing is None:
            raise InvalidInput(
                f"release_id='{release_id}' is not known to {self.where}: no release was charged under it. Nothing "
                "was drawn or recorded. Use the ledger that the release was charged to."
            )
        return account, standing
