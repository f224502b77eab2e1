"""The interval of a ratio of two noisy figures: all ratios that a test of their joint law does not reject.

**What is promised.** Let A and B be two numbers of records, neither below zero, and o = A/B the odds between them. With
v = o/(s + o), for any scale s, (1 - v)·A - v·s·B = 0: a sum of figures of one release, whose noise has a law that is
known (`sfumato.figures.law`). So what is estimated for it lies within t(v) of zero as often as is said, where t(v) is
the half-width that intervals of sums always have. The set of all v between 0 and 1 at which it does holds the true one
as often; so does the smallest interval around the set. Nothing is approximated by a normal law, and no estimate is
divided by another one: this is Fieller's set with the law of the noise itself. Where B may be zero it reaches v = 1,
where o is infinite; and where it is in two pieces, the interval around it has all between them.

Where ranges cut cells, A and B are bracketed: (1 - v)·A⁺ - v·s·B⁻ is not below zero at the true v, nor (1 - v)·A⁻ -
v·s·B⁺ above it, and either is missed on its one side half as often.

**No root is missed.** t is looked at in finitely many places. Between them, v and m apart by at most h, the sums differ
in their noise by (v - m)·(a + s·b), which is beyond h·D only with probability η, if D is its half-width at 1 - η. A
stretch of length 2h around m is therefore left out only where no v in it is within t(m) + h·D of zero, and t is taken
at 1 - η/2 for each side more: what is said holds, and h is made so small that h·D hardly counts.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

from sfumato._types import Floats, Integers
from sfumato.figures.law import Joint

# Which part of what may be missed pays for looking at finitely many places.
_SPARE = 0.02
_STRETCHES = 8
_HALVINGS = 14
# How much of a half-width the distance between places may add.
_FINE = 0.02


@dataclass(frozen=True, eq=False)
class Bracketed:
    """A figure in many rows: what is estimated for a sum that the truth is not below, and for one that it is not above;
    and which sums of the joint law's figures these are, (rows, figures).
    """

    least: Floats
    most: Floats
    least_of: Floats
    most_of: Floats

    def at(self, rows: Integers) -> Bracketed:
        """Some of the rows."""
        return Bracketed(self.least[rows], self.most[rows], self.least_of[rows], self.most_of[rows])


@dataclass(frozen=True, eq=False)
class Odds:
    """Intervals of A/B; `empty` where no ratio at all agrees with the estimates, as where A is far below zero."""

    low: Floats
    high: Floats
    empty: NDArray[np.bool_]


def odds(law: Joint, a: Bracketed, b: Bracketed, confidence: float) -> Odds:
    """The intervals of A/B in all rows."""
    search = _Search(law, a, b, confidence)
    low, high, found = search.hull()
    with np.errstate(divide="ignore"):
        return Odds(search.scale * low / (1 - low), search.scale * high / (1 - high), ~found)


def may_be_zero(law: Joint, figure: Bracketed, confidence: float) -> NDArray[np.bool_]:
    """Whether a figure cannot be told from zero."""
    return np.asarray(figure.least <= law.margins(figure.least_of, _spared(confidence))[1])


def _spared(confidence: float) -> float:
    return 1 - (1 - confidence) * (1 - _SPARE)


class _Search:
    """Stretches of v that cannot be left out, halved at the ends of the set until they are short."""

    def __init__(self, law: Joint, a: Bracketed, b: Bracketed, confidence: float) -> None:
        self.law, self.a, self.b = law, a, b
        self.confidence = _spared(confidence)
        ones = np.ones(len(a.most))
        # So that the set lies in the middle: any scale gives the same set.
        top = np.maximum(a.most, law.margins(a.most_of, self.confidence)[1])
        bottom = np.maximum(b.most, law.margins(b.most_of, self.confidence)[1])
        self.scale = np.where((top > 0) & (bottom > 0), top / np.where(bottom > 0, bottom, 1.0), ones)
        s = self.scale[:, None]
        rare = 1 - (1 - confidence) * _SPARE
        upper = law.margins(a.most_of + s * b.least_of, rare)[1]
        self.slope = np.maximum(upper, law.margins(a.least_of + s * b.most_of, rare)[1])

    def _over(self, rows: Integers, v: Floats) -> Floats:
        """What is not below zero at the true v, but for noise."""
        return (1 - v) * self.a.most[rows] - v * self.scale[rows] * self.b.least[rows]

    def _under(self, rows: Integers, v: Floats) -> Floats:
        """What is not above zero there."""
        return (1 - v) * self.a.least[rows] - v * self.scale[rows] * self.b.most[rows]

    def _left(self, rows: Integers, start: Floats, stop: Floats) -> _Stretches:
        """Stretches, and whether each may hold the true v."""
        middle, law = (start + stop) / 2, self.law.at(rows)
        v, sv = (1 - middle)[:, None], (middle * self.scale[rows])[:, None]
        over = under = law.margins(v * self.a.most_of[rows] - sv * self.b.least_of[rows], self.confidence)[1]
        if self.a.most_of is not self.a.least_of or self.b.most_of is not self.b.least_of:
            under = law.margins(v * self.a.least_of[rows] - sv * self.b.most_of[rows], self.confidence)[1]
        rounding = 1e-12 * (np.abs(self.a.most[rows]) + self.scale[rows] * np.abs(self.b.most[rows]))
        more = self.slope[rows] * (stop - start) / 2
        short = more <= _FINE * np.minimum(over, under)
        over, under = over + more + rounding, under + more + rounding
        highest = np.maximum(self._over(rows, start), self._over(rows, stop))
        lowest = np.minimum(self._under(rows, start), self._under(rows, stop))
        return _Stretches(start, stop, over, under, short, np.asarray((highest >= -over) & (lowest <= under)))

    def hull(self) -> tuple[Floats, Floats, NDArray[np.bool_]]:
        """The least and the largest v, and whether there is any."""
        count = len(self.scale)
        ends = np.linspace(0.0, 1.0, _STRETCHES + 1)
        rows = np.repeat(np.arange(count), _STRETCHES)
        found = self._left(rows, np.tile(ends[:-1], count), np.tile(ends[1:], count))
        left = found.left.reshape(count, _STRETCHES)
        some = np.asarray(left.any(axis=1))
        kept = np.flatnonzero(some)
        first, last = left.argmax(axis=1), _STRETCHES - 1 - left[:, ::-1].argmax(axis=1)
        low, high = np.zeros(count), np.ones(count)
        low[kept] = self._end(kept, found.at(_STRETCHES * kept + first[kept]), lower=True)
        high[kept] = self._end(kept, found.at(_STRETCHES * kept + last[kept]), lower=False)
        return low, np.maximum(low, high), some

    def _end(self, rows: Integers, now: _Stretches, *, lower: bool) -> Floats:
        """One end of the set, from the outermost stretch that may hold the true v."""
        for _ in range(_HALVINGS):
            long = np.flatnonzero(now.left & ~now.short)
            if not len(long):
                break
            start, stop = now.start[long], now.stop[long]
            middle = (start + stop) / 2
            now.put(long, self._left(rows[long], *((start, middle) if lower else (middle, stop))))
            gone = long[~now.left[long]]
            if len(gone):
                # Where neither half may hold it, the end is that of the whole stretch.
                here = np.isin(long, gone)
                inner = (middle[here], stop[here]) if lower else (start[here], middle[here])
                now.put(gone, self._left(rows[gone], *inner))
        start, stop = now.start, now.stop
        ends = [
            _crossing(start, stop, self._over(rows, start) + now.over, self._over(rows, stop) + now.over, lower=lower),
            _crossing(
                start, stop, now.under - self._under(rows, start), now.under - self._under(rows, stop), lower=lower
            ),
        ]
        found = np.maximum(*ends) if lower else np.minimum(*ends)
        return np.where(now.left, np.clip(found, start, stop), stop if lower else start)


@dataclass(eq=False)
class _Stretches:
    """Stretches of v, one a row: half-widths that hold in all of each, whether it is short, and whether it is left."""

    start: Floats
    stop: Floats
    over: Floats
    under: Floats
    short: NDArray[np.bool_]
    left: NDArray[np.bool_]

    def at(self, rows: Integers) -> _Stretches:
        """Some of them."""
        return _Stretches(*(getattr(self, field.name)[rows] for field in fields(self)))

    def put(self, rows: Integers, others: _Stretches) -> None:
        """Others in the place of some."""
        for field in fields(self):
            getattr(self, field.name)[rows] = getattr(others, field.name)


def _crossing(start: Floats, stop: Floats, first: Floats, last: Floats, *, lower: bool) -> Floats:
    """From where on, or up to where, a line from `first` to `last` is not below zero."""
    fall = first - last
    place = start + (stop - start) * np.divide(first, fall, out=np.zeros_like(first), where=fall != 0)
    if lower:
        return np.where(first >= 0, start, np.where(last >= 0, place, stop))
    return np.where(last >= 0, stop, np.where(first >= 0, place, start))
