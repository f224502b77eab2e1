"""A quotient of two readings with its interval: by a public denominator, by their joint law, or by two brackets."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from sfumato._types import Floats
from sfumato.errors import InvalidInput
from sfumato.figures.law import joint
from sfumato.figures.ratio import Bracketed, may_be_zero, odds
from sfumato.figures.reading import Reading
from sfumato.figures.weights import Which
from sfumato.release.answer import Answer

# Coefficients held at a time, and rows.
_ENTRIES, _ROWS = 1 << 23, 256

# What the numerator is of the denominator: nothing; a part told by labels, which cut no cell; or any part.
PartOf = Literal["none", "labels", "any"]


@dataclass(frozen=True, eq=False)
class Bounds:
    """Quotients row by row, and what there is to say of them."""

    value: Floats
    low: Floats
    high: Floats
    nobody: NDArray[np.bool_]
    """The denominator is zero, and public."""
    missing: NDArray[np.bool_]
    """There is no denominator."""
    beyond: NDArray[np.bool_]
    """No quotient that is possible agrees with the estimates: the nearest is given."""

    def where(self, chosen: NDArray[np.bool_], other: Bounds) -> Bounds:
        """These in the rows that are chosen, others elsewhere."""
        names = [field.name for field in fields(self)]
        return Bounds(*(np.where(chosen, getattr(self, name), getattr(other, name)) for name in names))


def quotient(a: Reading, b: Reading, confidence: float, cut: str, *, part: PartOf = "none") -> Bounds:
    """a/b in every row, by the best that is known of both. With a part, b holds a."""
    denominator = b.answer(confidence, cut)
    exact = np.ravel((np.asarray(denominator.stderr) == 0) & (np.asarray(denominator.low) == denominator.high))
    public = None
    if exact.any():
        public = over_exact(a.answer(confidence, cut), np.ravel(denominator.value), part=part != "none")
        if exact.all():
            return public
    if a.has_law and b.has_law:
        found = by_law(a, b, confidence, cut, part=part)
    else:
        found = by_brackets(a, b, confidence, cut, part=part != "none")
    return found if public is None else public.where(exact, found)


def over_exact(answer: Answer, denominator: Floats, *, part: bool = False) -> Bounds:
    """By numbers that are public: the interval of the count, divided."""
    value, low, high = (np.ravel(np.asarray(a, dtype=np.float64)) for a in (answer.value, answer.low, answer.high))
    _require_known(low)
    there = denominator > 0

    def divided(figure: Floats, otherwise: float) -> Floats:
        return np.divide(figure, denominator, out=np.full(len(figure), otherwise), where=there)

    most = 1.0 if part else np.inf
    found = np.clip(divided(low, 0.0), 0.0, most), np.where(there, np.clip(divided(high, 0.0), 0.0, most), np.inf)
    value = np.clip(divided(value, np.nan), *found)
    never = np.zeros(len(value), np.bool_)
    return Bounds(value, *found, denominator == 0, np.isnan(denominator), never)


def by_brackets(a: Reading, b: Reading, confidence: float, cut: str, *, part: bool = False) -> Bounds:
    """By two intervals, each of which misses half as often as both together may. With `part`, b holds a."""
    each = 1 - (1 - confidence) / 2
    one, other = a.answer(each, cut), b.answer(each, cut)
    least, most, floor, roof = (
        np.ravel(np.asarray(end, dtype=np.float64)) for end in (one.low, one.high, other.low, other.high)
    )
    _require_known(least + floor)
    least, most = np.maximum(least, 0.0), np.maximum(most, 0.0)
    high = np.divide(most, floor, out=np.full(len(most), np.inf), where=floor > 0)
    low = np.divide(least, roof, out=np.zeros(len(least)), where=roof > 0)
    if part:
        low, high = np.minimum(low, 1.0), np.where(floor > 0, np.minimum(high, 1.0), np.inf)
    value = _clipped(np.ravel(one.value), np.ravel(other.value), low, high)
    never = np.zeros(len(value), np.bool_)
    return Bounds(value, low, np.maximum(low, high), never, never, never)


def by_law(a: Reading, b: Reading, confidence: float, cut: str, *, part: PartOf = "none") -> Bounds:
    """By the joint law of both. With a part, b holds a, and a is compared with the rest of b."""
    parts = [_by_law(a, b, rows, confidence, cut, part) for rows in _chunks(a, b)]
    names = [field.name for field in fields(Bounds)]
    return Bounds(*(np.concatenate([getattr(found, name) for found in parts]) for name in names))


def _chunks(a: Reading, b: Reading) -> Iterator[slice]:
    """Rows that are treated together, so that what is held stays bounded."""
    cols = sum(block.estimator.cols for reading in (a, b) for block in reading.model.blocks)
    step = max(1, min(_ROWS, _ENTRIES // max(cols, 1)))
    yield from (slice(at, min(at + step, a.weights.rows)) for at in range(0, a.weights.rows, step))


def _by_law(a: Reading, b: Reading, rows: slice, confidence: float, cut: str, part: PartOf) -> Bounds:
    """The figures of the joint law are those of a wholly inside and touched, then those of b; or one each."""
    sides: tuple[Which, ...] = ("inside", "touched")
    whole = not (a.weights.cut[rows].any() or b.weights.cut[rows].any())
    if whole or cut == "proportion":
        sides = ("value",)
    law = joint([(reading, side) for reading in (a, b) for side in sides], rows)
    least, most = sides[0], sides[-1]
    figures = {"a": 0, "A": len(sides) - 1, "b": len(sides), "B": 2 * len(sides) - 1}
    sums = {"a": a.sums(least, rows), "A": a.sums(most, rows), "b": b.sums(least, rows), "B": b.sums(most, rows)}

    def bracketed(low: dict[str, int], high: dict[str, int]) -> Bracketed:
        """Sums of figures, with what is told of each."""
        of = [np.zeros((len(sums["a"]), len(sides) * 2)) for _ in range(2)]
        for one, side in zip(of, (low, high), strict=True):
            for name, weight in side.items():
                one[:, figures[name]] += weight
        ends = [sum((w * sums[name] for name, w in side.items()), np.zeros(len(of[0]))) for side in (low, high)]
        return Bracketed(ends[0], ends[1], of[0], of[0] if low == high or len(sides) == 1 else of[1])

    above, below = bracketed({"a": 1}, {"A": 1}), bracketed({"b": 1}, {"B": 1})
    if part == "none":
        found = odds(law, above, below, confidence)
        low, high = found.low, found.high
    else:
        # Cells that a label cuts off are whole: what is left of those inside of b is inside of the rest.
        rest = bracketed({"b": 1, "a" if part == "labels" else "A": -1}, {"B": 1, "A" if part == "labels" else "a": -1})
        found = odds(law, above, rest, confidence)
        with np.errstate(invalid="ignore"):
            low, high = (np.where(np.isinf(end), 1.0, end / (1 + end)) for end in (found.low, found.high))
    # Where no odds agree, the estimate of one part lies far below zero.
    top = above.most >= below.least - above.most if part != "none" else above.most > 0
    low, high = (np.where(found.empty, np.where(top, 1.0, 0.0), end) for end in (low, high))
    unsure = may_be_zero(law, below, confidence)
    beyond = found.empty & ~unsure
    low = np.where(found.empty & unsure, 0.0, low)
    high = np.where(unsure, np.inf, high)
    value = _clipped(a.sums("value", rows), b.sums("value", rows), low, high)
    never = np.zeros(len(value), np.bool_)
    return Bounds(value, low, high, never, never, beyond)


def _clipped(above: Floats, below: Floats, low: Floats, high: Floats) -> Floats:
    """Quotients of estimates, within their intervals; missing where the denominator is not above zero."""
    quotient = np.divide(above, below, out=np.full(len(above), np.nan), where=below > 0)
    return np.clip(quotient, low, high)


def _require_known(ends: Floats) -> None:
    if np.isnan(ends).any():
        raise InvalidInput(
            "this release has no intervals for what is asked, since its mechanism's error depends on the data, and a "
            "rate without its noise is none. Nothing was computed. Publish with a mechanism that knows its noise, such "
            "as 'hats', or ask with cut='bracket'."
        )
