"""Sums and differences of answers: of one release by its one law, of several as independent.

**What is promised.** The interval holds the sum of the true numbers as often as it says. The noise in a sum of answers
is a sum over the noises of all releases that they come from (`sfumato.figures.law`). Where ranges cut cells, what is
added is bracketed from below by the cells inside and what is subtracted by the cells touched, and the other way round:
each side is missed half as often. Where a mechanism's noise has no law given the data, every answer is bracketed by
itself, and what may be missed is shared out among them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from sfumato._types import Floats
from sfumato.errors import InvalidInput
from sfumato.exact import finite_float, shown
from sfumato.figures.law import joint
from sfumato.figures.reading import Reading, require_apart
from sfumato.figures.weights import Which
from sfumato.release.answer import Answer
from sfumato.release.table import Table

# Rows of a law that are held at a time.
_ROWS, _ENTRIES = 256, 1 << 23


@dataclass(frozen=True, eq=False)
class Sum:
    """Answers times numbers, and a number: what the law of an answer is made of."""

    terms: tuple[tuple[float, Reading], ...]
    constant: float = 0.0

    def times(self, factor: float) -> Sum:
        """All of it times a number."""
        return Sum(tuple((weight * factor, one) for weight, one in self.terms), self.constant * factor)

    def plus(self, other: Sum) -> Sum:
        """Both; refused where their noise is neither one law nor independent."""
        for _, one in self.terms:
            for _, two in other.terms:
                require_apart(one, two, "arithmetic with answers")
        return Sum((*self.terms, *other.terms), self.constant + other.constant)

    @property
    def has_law(self) -> bool:
        """Whether the noise of all is known."""
        return all(one.has_law for _, one in self.terms)

    def answer(self, like: Answer) -> Answer:
        """The answer, in the form of one of those that it is made of."""
        confidence, cut = like.confidence, like.cut or "bracket"
        value, stderr, low, high, share = self._figures(confidence, cut)
        shape = np.shape(like.value)
        told: dict[str, Any] = {"cut_share": share.reshape(shape), "range": like.range, "cut": like.cut, "_law": self}
        if isinstance(like, Table):
            value, stderr, low, high = (part.reshape(shape) for part in (value, stderr, low, high))
            return Table(value, stderr, low, high, confidence, keys=like.keys, **told)
        law = told.pop("_law")
        return replace(Answer.within(value, stderr, low, high, confidence, shape, **told), _law=law)

    def _figures(self, confidence: float, cut: str) -> tuple[Floats, ...]:
        each = [one.answer(confidence, cut) for _, one in self.terms]
        values = [weight * np.ravel(answer.value) for (weight, _), answer in zip(self.terms, each, strict=True)]
        value = sum(values, np.full(len(values[0]), self.constant))
        parts = sum(np.abs(part) for part in values)
        cut_parts = sum(np.abs(part) * np.ravel(a.cut_share) for part, a in zip(values, each, strict=True))
        share = np.divide(cut_parts, parts, out=np.zeros(len(value)), where=parts > 0)
        if len(self.terms) == 1:
            low, high, stderr = self._scaled(each[0])
        elif self.has_law:
            low, high, stderr = self._by_law(value, confidence, cut)
        else:
            low, high = self._by_brackets(confidence, cut)
            stderr = np.full(len(value), np.nan)
        if all(weight >= 0 for weight, _ in self.terms) and all(one.matrix is None for _, one in self.terms):
            low, high = np.maximum(low, self.constant), np.maximum(high, self.constant)  # no number is below zero
        return value, stderr, low, high, share

    def _scaled(self, answer: Answer) -> tuple[Floats, Floats, Floats]:
        """One answer, times a number and moved."""
        weight = self.terms[0][0]
        ends = [weight * np.ravel(end) + self.constant for end in (answer.low, answer.high)]
        low, high = ends if weight >= 0 else reversed(ends)
        return low, high, abs(weight) * np.ravel(answer.stderr)

    def _by_law(self, value: Floats, confidence: float, cut: str) -> tuple[Floats, Floats, Floats]:
        models = [one.model for _, one in self.terms]
        cols = sum(block.estimator.cols for model in models for block in model.blocks)
        step = max(1, min(_ROWS, _ENTRIES // max(cols, 1)))
        found = [
            self._some(slice(at, min(at + step, len(value))), value, confidence, cut)
            for at in range(0, len(value), step)
        ]
        low, high, stderr = (np.concatenate([np.zeros(0), *parts]) for parts in zip(*found, strict=True))
        return low, high, stderr

    def _some(self, rows: slice, value: Floats, confidence: float, cut: str) -> tuple[Floats, Floats, Floats]:
        weights = np.array([weight for weight, _ in self.terms])
        readings = [one for _, one in self.terms]
        law = joint([(one, "value") for one in readings], rows)
        own = np.repeat(weights[None], len(value[rows]), axis=0)
        stderr, margin = law.margins(own, confidence)
        if cut == "proportion" or not any(one.weights.cut[rows].any() for one in readings):
            return value[rows] - margin, value[rows] + margin, stderr
        ends = []
        for sign in (-1, 1):  # what is subtracted is bracketed from its other side
            sides: list[Which] = ["touched" if weight * sign > 0 else "inside" for weight in weights]
            sums = [one.sums(side, rows) for one, side in zip(readings, sides, strict=True)]
            total = sum((w * s for w, s in zip(weights, sums, strict=True)), np.full(len(own), self.constant))
            margin = joint(list(zip(readings, sides, strict=True)), rows).margins(own, confidence)[1]
            ends.append(total + sign * margin)
        return ends[0], np.maximum(*ends), stderr

    def _by_brackets(self, confidence: float, cut: str) -> tuple[Floats, Floats]:
        each = 1 - (1 - confidence) / len(self.terms)
        low = high = np.array(self.constant)
        for weight, one in self.terms:
            answer = one.answer(each, cut)
            ends = np.ravel(answer.low), np.ravel(answer.high)
            if np.isnan(ends[0]).any():
                raise InvalidInput(
                    f"mechanism {one.release.mechanism.name!r} gives no interval for what is asked, since its error "
                    "depends on the data. Nothing was computed. Ask with cut='bracket', or publish with a linear "
                    "mechanism, such as 'hats'."
                )
            low = low + weight * (ends[0] if weight >= 0 else ends[1])
            high = high + weight * (ends[1] if weight >= 0 else ends[0])
        return low, high


def added(one: Answer, other: Any, sign: float = 1.0) -> Any:
    """one + sign·other, for answers and numbers."""
    if isinstance(other, Answer):
        laws = law_of(one), law_of(other)
        require_alike(one, other)
        return laws[0].plus(laws[1].times(sign)).answer(one)
    number = _number(other)
    if number is None:
        return NotImplemented
    law = law_of(one)
    return replace(law, constant=law.constant + sign * number).answer(one)


def scaled(one: Answer, factor: Any, *, divide: bool = False) -> Any:
    """An answer times a number, or by one."""
    if isinstance(factor, Answer):
        raise InvalidInput(
            "an answer is multiplied by or divided by numbers alone: a quotient of two noisy figures needs their joint "
            "law. Nothing was computed. Use release.rate(…) or sf.percent_change(new, old)."
        )
    number = _number(factor)
    if number is None:
        return NotImplemented
    if divide and number == 0:
        raise InvalidInput("an answer cannot be divided by 0. Nothing was computed. Give another number.")
    return law_of(one).times(1 / number if divide else number).answer(one)


def law_of(answer: Answer) -> Sum:
    """What an answer is made of; refused where it does not know."""
    if answer._law is None:
        raise InvalidInput(
            "this answer does not know the law of its noise: it was made by hand, loaded, copied, asked for with "
            "estimate='nonnegative', or comes from no release of counts. Nothing was computed. Ask the release again, "
            "and compute with what it answers."
        )
    told = answer._law
    return told if isinstance(told, Sum) else Sum(((1.0, Reading(*told)),))


def require_alike(one: Answer, other: Answer) -> None:
    """The same shape, groups, confidence and way to read cut cells."""
    if np.shape(one.value) != np.shape(other.value):
        raise InvalidInput(
            f"answers of the shapes {np.shape(one.value)} and {np.shape(other.value)} do not go together. Nothing was "
            "computed. Ask both for as many ranges and groups."
        )
    names = [[key.names for key in side.keys] if isinstance(side, Table) else [] for side in (one, other)]
    if names[0] != names[1]:
        raise InvalidInput(
            "these tables have other groups, or the same in another order. Nothing was computed. Ask both by groups "
            "that are called alike."
        )
    for what in ("confidence", "cut"):
        if getattr(one, what) != getattr(other, what):
            raise InvalidInput(
                f"answers with {what}={shown(getattr(one, what))} and {what}={shown(getattr(other, what))} do not go "
                "together. Nothing was computed. Ask both alike."
            )


def _number(value: Any) -> float | None:
    """A finite number; None of what is no number at all."""
    if isinstance(value, np.generic):
        value = value.item()
    return finite_float(value, "the number") if isinstance(value, (int, float)) else None
