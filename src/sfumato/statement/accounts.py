"""An account's extract, its streams, and all accounts of one ledger together.

ε under different relations do not add. They are added up after exchange into one named relation, where one change of it
takes a known number of steps of the others; what cannot be exchanged stands side by side, and no sum is given.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from sfumato.errors import SfumatoError
from sfumato.exact import text
from sfumato.ledger import Ledger
from sfumato.ledger.account import Account, Entry
from sfumato.ledger.streams import StreamAccount
from sfumato.ledger.terms import account_in_words, exchanged, rate_of
from sfumato.promise import Unit, wording
from sfumato.promise.budget import at_most
from sfumato.statement.parts import Section, Sheet, section, sheet

MOST_LINES = 1000  # of a history, the newest; sums are over all of it

_COLUMNS = ("Time (UTC)", "What", "Note", "ε", "Steps", "Cost")


def account_sections(ledger: Ledger, *, release_id: str | None = None) -> Iterator[Section]:
    """The extract of one account, in which a release is looked for; and everything of the dataset together."""
    history = ledger.history()
    account = _account_of(ledger)
    facts = [
        ("Account", f"'{ledger.dataset}'"),
        ("Opened", f"{account.opened:%Y-%m-%d %H:%M} UTC"),
        ("Hides", account_in_words(account)),
        ("Unit", "taken from its first release" if account.unit is None else str(account.unit)),
        ("Total that may ever be spent", f"ε = {text(account.total)}: {_odds(account.total)}"),
        ("Spent", f"ε = {text(account.spent)}: {_odds(account.spent)}"),
        ("Left", f"ε = {at_most(account.remaining)}"),
    ]
    said = []
    if release_id is not None:
        charged = [entry for entry in history if entry.release_id == release_id]
        in_stream = [name for name in ledger.streams() if _step_of(ledger.stream(name), release_id)]
        cost = sum((entry.cost for entry in charged), Fraction(0))
        if charged:
            hidden = charged[0].policy
            lines = "one line" if len(charged) == 1 else f"{len(charged)} lines"
            said.append(f"This release was charged to it: ε = {text(cost)} in {lines}, as hiding that {hidden}.")
        elif in_stream:
            said.append(f"This release is a step of its stream '{in_stream[0]}'.")
        else:
            said.append("THIS RELEASE WAS NOT CHARGED TO IT: the sums here do not hold it.")
    yield section("account", "The account", text=said, facts=facts, sheets=[_history(history)])
    streams = [ledger.stream(name) for name in ledger.streams()]
    if streams:
        yield _streams(account, streams)


def together_section(ledger: Ledger) -> Section:
    """All accounts of the ledger, side by side, and what they come to for somebody who is in all their data."""
    accounts = ledger.accounts()
    rows = [
        (
            f"'{one.dataset}'",
            account_in_words(one),
            "—" if one.unit is None else str(one.unit),
            text(one.total),
            text(one.spent),
            at_most(one.remaining),
        )
        for one in accounts
    ]
    columns = ("Account", "Hides", "Unit", "Total ε", "Spent", "Left")
    said = []
    if len(accounts) > 1:
        said.append(
            "Every account is about a dataset of its own, and its sum holds for that. Where one change shows in "
            "several datasets at once, the losses add up, in one relation:"
        )
        said += [group.words() for group in _groups(accounts)]
    return section(
        "accounts", "All accounts together", text=said, sheets=[sheet("The ledger's accounts", columns, rows)]
    )


@dataclass
class _Group:
    """Accounts whose ε can be exchanged into the relation of the first one."""

    target: Account
    others: list[tuple[Account, int]]

    def words(self) -> str:
        named = ", ".join(f"'{one.dataset}'" for one in (self.target, *(other for other, _ in self.others)))
        if not self.others:
            return f"{named} stands by itself: its relation cannot be exchanged for another one, and no sum is given."
        spent = self.target.spent + sum((one.spent * rate for one, rate in self.others), Fraction(0))
        total = self.target.total + sum((one.total * rate for one, rate in self.others), Fraction(0))
        rates = [f"'{one.dataset}' at {rate} times its ε" for one, rate in self.others if rate != 1]
        exchanged_at = f" ({', '.join(rates)})" if rates else ""
        return (
            f"{named}, in the relation of '{self.target.dataset}' ({account_in_words(self.target)}){exchanged_at}: "
            f"ε = {text(spent)} spent so far, {text(total)} at most."
        )


def _groups(accounts: tuple[Account, ...]) -> list[_Group]:
    groups: list[_Group] = []
    for account in accounts:
        for group in groups:
            rate = exchanged(group.target, account)
            if rate is not None:
                group.others.append((account, rate))
                break
        else:
            groups.append(_Group(account, []))
    return groups


def _history(history: tuple[Entry, ...]) -> Sheet:
    shown = history[-MOST_LINES:]
    left_out = len(history) - len(shown)
    caption = (
        "Every line of its history, oldest first"
        if not left_out
        else f"The newest {len(shown)} of {len(history)} lines"
    )
    return sheet(caption, _COLUMNS, (_line(entry) for entry in shown))


def _line(entry: Entry) -> tuple[str, ...]:
    time = f"{entry.time:%Y-%m-%d %H:%M}"
    if entry.kind != "release":
        what = "opened" if entry.kind == "open" else "total raised, which weakens the promise"
        return time, what, entry.label, text(entry.epsilon), "", ""
    return (
        time,
        f"release {(entry.release_id or '')[:12]}",
        entry.label,
        text(entry.epsilon),
        str(entry.rate),
        text(entry.cost),
    )


def _streams(account: Account, streams: list[StreamAccount]) -> Section:
    rows, rates = [], []
    for stream in streams:
        rate = _rate(account, stream)
        rates.append(rate)
        first, last = stream.first(), stream.last()
        span = "no step yet" if first is None or last is None else f"{first.time} to {last.time}"
        unit = str(Unit(stream.unit, stream.max_per_entity))
        price = "cannot be exchanged" if rate is None else f"{rate} × ε"
        rows.append(
            (
                f"'{stream.name}'",
                f"ε = {text(stream.epsilon)} for every window of {stream.window}",
                unit,
                stream.policy.describe(),
                f"{len(stream)}: {span}",
                price,
            )
        )
    columns = ("Stream", "Promise", "Unit", "Hides", "Steps", "In the account's relation")
    said = [
        "A stream keeps a promise for every window of time, beside the account's total: what is charged to one is not "
        "in the other."
    ]
    sums = [(stream.epsilon, rate) for stream, rate in zip(streams, rates, strict=True) if rate is not None]
    if sums:
        where = "the stream" if len(sums) == 1 else f"each of {len(sums)} streams"
        whole = account.total + sum((epsilon * rate for epsilon, rate in sums), Fraction(0))
        said.append(
            f"Together, exchanged into the account's relation: a change that is in the account's releases and is "
            f"confined to one window in {where} is hidden at ε = {text(whole)} at most: {_odds(whole)}."
        )
    if len(sums) < len(streams):
        said.append("The others stand side by side with it: their ε are under other relations, and are not added.")
    return section("streams", "Its streams", text=said, sheets=[sheet("Streams of the same dataset", columns, rows)])


def _rate(account: Account, stream: StreamAccount) -> int | None:
    """How many steps of the stream's policy one change of the account takes; None where nobody can say."""
    if account.terms == (None, None, None):
        return None
    try:
        return rate_of(account, stream.policy, Unit(stream.unit, stream.max_per_entity))
    except SfumatoError:
        return None


def _step_of(stream: StreamAccount, release_id: str) -> bool:
    return any(step.release_id == release_id for step in stream.entries())


def _account_of(ledger: Ledger) -> Account:
    return next(one for one in ledger.accounts() if one.dataset == ledger.dataset)


def _odds(epsilon: Fraction) -> str:
    return "the odds that an observer gives to two neighbouring datasets change by at most " + wording.odds(epsilon)


def account_figures(ledger: Ledger) -> dict[str, Any]:
    """The account's sums and terms, exact, for programs."""
    account = _account_of(ledger)
    return {
        "dataset": account.dataset,
        "opened": account.opened.isoformat(),
        "hides": account_in_words(account),
        "unit": None if account.unit is None else str(account.unit),
        "total": _exact(account.total),
        "spent": _exact(account.spent),
        "left": _exact(account.remaining),
        "releases": [
            {"release": one.release_id, "time": one.time.isoformat(), "epsilon": _exact(one.epsilon), "rate": one.rate,
             "cost": _exact(one.cost)}
            for one in ledger.history() if one.kind == "release"
        ],
        "streams": [
            {"name": one.name, "epsilon": _exact(one.epsilon), "window": one.window.to_dict(), "steps": len(one)}
            for one in map(ledger.stream, ledger.streams())
        ],
    }  # fmt: skip


def _exact(value: Fraction) -> str:
    return str(Fraction(value))
