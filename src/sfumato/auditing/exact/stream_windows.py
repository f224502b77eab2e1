"""Streams: what every window of time spends, from the budgets that were charged, in exact fractions.

A change of one person's records that is confined to `window` consecutive steps costs at most the sum of those steps'
budgets, and for linear mechanisms exactly that: the worst window is the loss. All windows count, the first one too
(Fang and Chang, ASIA CCS 2014, leave it out of Problems 1 and 2), and with fewer steps than a window all of them are
one.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from fractions import Fraction
from typing import Any

from sfumato.auditing.result import Audit, Witness
from sfumato.errors import InvalidInput
from sfumato.exact import Number, fraction, positive_fraction, positive_int, text


def audit_stream(budgets: Any, *, window: int | None = None, epsilon: Number | None = None) -> Audit:
    """Whether no window of a stream spends more than ε.

    `budgets` is a sequence of what each step spent, with `window` (steps) and `epsilon`; or an account of a ledger's
    stream, which knows its own: steps count by their number or clock time, whichever the stream keeps.
    """
    if hasattr(budgets, "entries") and hasattr(budgets, "window"):
        return _account(budgets)
    if window is None or epsilon is None:
        raise InvalidInput("window and epsilon are needed beside a list of budgets. Nothing was concluded.")
    length, promised = positive_int(window, "window"), positive_fraction(epsilon, "epsilon")
    spent = [fraction(value, "budgets") for value in budgets]
    if any(value < 0 for value in spent):
        raise InvalidInput("budgets must be at least 0. Nothing was concluded.")
    times = list(range(len(spent)))
    return _audit("stream", promised, times, spent, lambda first, last: last - first < length)


def _account(account: Any) -> Audit:
    """From the entries of an account; a window of clock time is half-open, (t - w, t]."""
    steps = account.entries()
    # The window itself counts in ticks, microseconds of clock time; the audit counts in the times that were given.
    size = account.window.size if account.window.kind == "steps" else timedelta(microseconds=account.window.size)
    return _audit(
        f"stream '{account.name}'",
        Fraction(account.epsilon),
        [step.time for step in steps],
        [Fraction(step.epsilon) for step in steps],
        lambda first, last: last - first < size,
    )


def _audit(subject: str, promised: Fraction, times: Sequence[Any], spent: Sequence[Fraction], together: Any) -> Audit:
    """The worst window that ends at some step: two pointers over the steps in their order."""
    worst, held, first, place = Fraction(0), Fraction(0), 0, (0, -1)
    for last, value in enumerate(spent):
        held += value
        while not together(times[first], times[last]):
            held -= spent[first]
            first += 1
        if held > worst:
            worst, place = held, (first, last)
    event = "" if place[1] < 0 else f"the steps {times[place[0]]} to {times[place[1]]} spend {text(worst)} together"
    return Audit(
        subject=subject,
        promised=promised,
        epsilon=worst,
        method="exact",
        witness=Witness(event=event),
        looked_at=(f"every window of {len(spent):,} steps",),
    )
