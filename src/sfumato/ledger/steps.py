"""The nouns of a stream's account, and the arithmetic of windows, on exact fractions and without a file.

`spent` is what the steps of a stretch of time have spent, as (tick, ε), in order of time and each tick once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction

from sfumato.promise.budget import Epsilon
from sfumato.promise.window import Time, Window

Spent = Sequence[tuple[int, Epsilon]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One step of a stream: the time of its data, the ε it has at its latest level, and what that level was called.

    A step that was skipped has ε = 0 and no release. `weight` is how much an error at it matters, `floor` what the
    online algorithm would have given it, where it waits for a raise; both are public, and None where nobody said.
    """

    time: Time
    epsilon: Epsilon
    label: str
    release_id: str | None
    level: int
    weight: float | None = None
    floor: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Remaining:
    """What may be spent at a time; from `next_time` on it is more, namely `next_epsilon`.

    Both are None when nothing is spent in the window, and when the calendar ends before anything comes free.
    """

    epsilon: Epsilon
    next_time: Time | None
    next_epsilon: Epsilon | None


@dataclass(frozen=True, slots=True, kw_only=True)
class StepReceipt:
    """Proof that a step is on disk: noise may be drawn now.

    `epsilon` is what this charge took. `remaining` is what is left in the window that ends at the step; after a raise
    and a late charge, in the fullest window that holds the step.
    """

    stream: str
    step: Step
    epsilon: Epsilon
    remaining: Epsilon


def room(spent: Spent, epsilon: Fraction) -> Epsilon:
    """What is left of ε in a window that has spent this."""
    numerators: Counter[int] = Counter()  # by denominator: long windows hold many steps of few kinds
    for _, amount in spent:
        numerators[amount.denominator] += amount.numerator
    return Epsilon(epsilon - sum((Fraction(n, d) for d, n in numerators.items()), Fraction(0)))


def frees(spent: Spent, window: Window, left: Epsilon) -> Iterator[tuple[int, Epsilon]]:
    """(tick, ε): from that tick on, so much is left, if nothing more is spent until then. Ever more, ever later.

    `left` is what is left now, in the window that has spent `spent`.
    """
    for tick, amount in spent:
        left = Epsilon(left + amount)
        if amount:
            yield tick + window.size, left


def tightest(spent: Spent, tick: int, window: Window, epsilon: Fraction) -> tuple[int, Epsilon]:
    """(last tick, room) of the fullest window that holds a tick; `spent` is all that shares a window with it.

    Moving a window so that it ends at its last step, or at the tick, loses none of its steps, so only those windows are
    looked at.
    """
    spent = sorted(({tick: Epsilon(0)} | dict(spent)).items())
    held, begin = Fraction(0), 0
    least = tick, Epsilon(epsilon)
    for end, amount in spent:
        held += amount
        while spent[begin][0] < window.first(end):
            held -= spent[begin][1]
            begin += 1
        if tick <= end < tick + window.size and epsilon - held < least[1]:
            least = end, Epsilon(epsilon - held)
    return least
