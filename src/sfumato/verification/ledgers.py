"""Whether a release was paid for as it says: its id, ε, level and relation in the ledger."""

from __future__ import annotations

import os
from fractions import Fraction
from itertools import accumulate

from sfumato.exact import text
from sfumato.ledger import Ledger
from sfumato.ledger.places import accounts_at
from sfumato.release import Release
from sfumato.verification.verification import Check

Given = Ledger | str | os.PathLike[str]


def check_ledger(release: Release, given: Given | None, dataset: str | None) -> Check:
    """The charge of a release, in the account that is named, or in whichever account of the ledger it is."""
    if given is None:
        return _check("open", "no ledger is at hand: whether anybody keeps account of it is not known")
    if isinstance(given, Ledger):
        accounts = [given]
    else:
        names = accounts_at(given) if dataset is None else (dataset,)
        accounts = [Ledger(given, dataset=name) for name in names]
    for account in accounts:
        found = _charged(release, account) or _in_a_stream(release, account)
        if found is not None:
            return found
    where = accounts[0].place if accounts else str(given)
    looked = ", ".join(f"'{account.dataset}'" for account in accounts) or "none"
    words = f"no account of '{where}' was charged for release {release.id} (accounts looked at: {looked})"
    return _check("fails", words)


def _charged(release: Release, account: Ledger) -> Check | None:
    charges = account.charges(release.id)
    if not charges:
        return None
    guarantee = release.guarantee
    levels = list(accumulate((Fraction(entry.epsilon) for entry, _ in charges), initial=Fraction(0)))[1:]
    first, fingerprint = charges[0]
    wrong = []
    if guarantee.loss not in levels:
        wrong.append(f"it claims ε = {text(guarantee.loss)}, and ε = {' and '.join(map(text, levels))} was charged")
    if fingerprint != guarantee.policy.fingerprint:
        wrong.append("it is under another policy or domain than the one that was charged")
    if first.unit != guarantee.protects:
        wrong.append(f"its unit is {guarantee.protects}, and {first.unit} was charged")
    if guarantee.window is not None:
        wrong.append("it claims to be a step of a stream, and was charged as a release that stands alone")
    if wrong:
        return _check("fails", f"{account.where} knows release {release.id}, but {'; '.join(wrong)}")
    level = levels.index(guarantee.loss)
    said = "" if len(levels) == 1 else f", level {level} of a release that stands at level {len(levels) - 1}"
    price = "" if first.rate == 1 else f" at {first.rate} times its ε"
    return _check(
        "holds",
        f"{account.where} was charged for it on {first.time:%Y-%m-%d %H:%M} UTC as '{first.label}', under the same "
        f"policy{price}: ε = {text(guarantee.loss)}{said}",
    )


def _in_a_stream(release: Release, account: Ledger) -> Check | None:
    for name in account.streams():
        stream = account.stream(name)
        step = next((one for one in stream.entries() if one.release_id == release.id), None)
        if step is None:
            continue
        where = f"stream '{name}' of {account.where}"
        wrong = []
        if stream.policy.fingerprint != release.guarantee.policy.fingerprint:
            wrong.append("it is under another policy or domain than the stream")
        if release.guarantee.loss > step.epsilon or (step.level == 0 and release.guarantee.loss != step.epsilon):
            wrong.append(f"it claims ε = {text(release.guarantee.loss)}, and ε = {text(step.epsilon)} was charged")
        if release.guarantee.window_epsilon not in (None, stream.epsilon):
            wrong.append("it claims another ε for every window")
        if release.guarantee.window not in (None, stream.window):
            wrong.append(f"it claims windows of {release.guarantee.window}, and the stream has some of {stream.window}")
        if release.guarantee.unit != stream.unit:
            wrong.append(f"its unit is {release.guarantee.unit}, and that of the stream is {stream.unit}")
        if wrong:
            return _check("fails", f"{where} knows release {release.id}, but {'; '.join(wrong)}")
        level = "" if step.level == 0 else f"; the step stands at level {step.level} with ε = {text(step.epsilon)}"
        time = f"{step.time}"
        return _check("holds", f"{where} was charged for it at {time}: ε = {text(release.guarantee.loss)}{level}")
    return None


def _check(outcome: str, words: str) -> Check:
    return Check(name="ledger", outcome=outcome, words=words)  # type: ignore[arg-type]  # one of the three
