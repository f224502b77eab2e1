"""Opening an account and creating one: two things, because a full budget must never begin unnoticed.

A ledger is found sound before anything else is done with it, by reading; nobody is kept from writing meanwhile for
longer than a chunk of entries takes (`tally`). A write is begun where something is to be created or agreed on.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from sfumato.errors import InvalidInput
from sfumato.exact import text
from sfumato.ledger import levels, rows, stretches, tally
from sfumato.ledger.account import Account, Entry
from sfumato.ledger.database import Database
from sfumato.ledger.terms import Terms
from sfumato.promise.budget import Epsilon


@dataclass(frozen=True)
class Opening:
    """What was given for an account: its total, if it may be created, and terms that must agree with it."""

    store: Database
    dataset: str
    total: Epsilon | None
    terms: Terms

    def opened(self) -> str:
        """Open the account, and create what is missing where there is a total; gives words for what was created."""
        if self.total is None and not self.store.exists():
            raise self._no_ledger()
        made = self._create_ledger()
        require_sound(self.store)
        with self.store.read() as connection:
            account = rows.find_account(connection, self.dataset)
        if account is None:
            if self.total is None:
                raise self._no_account()
        elif self._agreed(account) == account:
            return made
        return self._settled(made, only_new=False)

    def created(self) -> str:
        """Create the account, in a new ledger or in one that is there; one that exists is refused."""
        made = self._create_ledger()
        require_sound(self.store)
        return self._settled(made, only_new=True)

    def _create_ledger(self) -> str:
        return f"A ledger was created, '{self.store.place}'" if self.store.create_if_missing() else ""

    def _settled(self, made: str, *, only_new: bool) -> str:
        with self.store.write() as connection:
            account = rows.find_account(connection, self.dataset)
            if account is not None and only_new:
                raise InvalidInput(
                    f"There is an account '{self.dataset}' in '{self.store.place}' already. Nothing was created or "
                    f"changed. Open it with sf.Ledger({self._arguments}), or create one for another dataset."
                )
            if account is None:
                if self.total is None:  # it went between two looks
                    raise InvalidInput(f"There is no account '{self.dataset}' any more. Nothing was created.")
                account = Account.new(self.dataset, self.total, rows.now())
                rows.insert_account(connection, account)
                tally.record(connection, self.dataset, Entry.of_total("open", self.total, rows.now()), None)
                made = made or f"An account '{self.dataset}' was created in the ledger '{self.store.place}'"
            agreed = self._agreed(account)
            if agreed != account:
                rows.update_account(connection, agreed)
        return made

    def _agreed(self, account: Account) -> Account:
        """The account with the terms that were given, or a refusal."""
        if self.total is not None and self.total != account.total:
            raise InvalidInput(
                f"epsilon={text(self.total)} differs from the total of {text(account.total)} that account "
                f"'{self.dataset}' of '{self.store.place}' has. Nothing was changed. Leave epsilon out to "
                f"go on with {text(account.total)}; to raise it, open the ledger and call raise_cap."
            )
        return self.terms.agreed(account, self.store.place)

    @property
    def _arguments(self) -> str:
        place = self.store.place
        name = place if "://" in place else Path(place).name
        return f"'{name}'" if self.dataset == "default" else f"'{name}', dataset={self.dataset!r}"

    def _no_ledger(self) -> InvalidInput:
        return InvalidInput(
            f"There is no ledger '{self.store.place}'. Nothing was created, drawn or recorded. Check the path; a new "
            f"ledger is made once, with its total: sf.Ledger.create({self._arguments}, epsilon=1.0), or sfumato ledger "
            "create."
        )

    def _no_account(self) -> InvalidInput:
        with self.store.read() as connection:
            known = [f"'{account.dataset}'" for account in rows.all_accounts(connection)]
        listed = f"Its accounts are {', '.join(known[:20])}{' …' if len(known) > 20 else ''}. " if known else ""
        return InvalidInput(
            f"There is no account '{self.dataset}' in the ledger '{self.store.place}'. Nothing was created, drawn or "
            f"recorded. {listed}Name one that is there; a new account is made once, with its total: "
            f"sf.Ledger.create({self._arguments}, epsilon=1.0), or sfumato ledger create."
        )


def require_sound(store: Database, *, whole: bool = False) -> None:
    """Refuse a ledger that does not hold together; what came since the last look, or (`whole`) all of it."""
    if store.outdated() or tally.lacking(store):
        with store.write() as connection:  # kept only if all of it is sound
            store.require_whole(connection)
            tally.adopt(connection, store.place)
            levels.require_sound(connection, {account: 0 for account in rows.numbers(connection)})
    with store.read() as connection:
        (store.require_sound if whole else store.require_whole)(connection)
    since = tally.require_sound(store, whole=whole)
    with store.read() as connection:
        levels.require_sound(connection, since)
        stretches.require_all_sound(connection, whole=whole)
