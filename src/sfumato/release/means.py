"""Means of a value: of two releases, one of sums and one of the numbers of records in them.

**What is promised.** Let S be the sum of the values in a range, each less the middle c of their bounds, and N the
number of its records. At the true mean μ, S - (μ - c)·N = 0. So what is estimated for it is noise alone: that of the
sums less (μ - c) times that of the numbers, which is independent. The interval holds every μ between the bounds at
which it lies within t(μ) of zero, and so the true mean as often as it says; nothing is divided by an estimate, and
since means lie between the bounds, no interval is unbounded. Where hardly anybody is it may be all between them.

t(μ) is K standard deviations of that noise and half a step of the coarser of the two lattices. Discrete Laplace noise
is at most half a step away from continuous Laplace noise of the same rate, whose variance is taken; and K is the widest
quantile that sums of Laplace variables have, whatever their weights (`sfumato.release.laws`). All of this follows from
the two mechanisms and costs nothing. Where nobody is in a range there is no mean, and the interval says nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from sfumato._types import Floats
from sfumato.errors import InvalidInput
from sfumato.mechanism import NoiseModel
from sfumato.promise import Guarantee
from sfumato.release.answer import Answer
from sfumato.release.asking import asked
from sfumato.release.brackets import check_cut
from sfumato.release.files import load
from sfumato.release.intervals import check_confidence
from sfumato.release.laws import cautious, smooth_quantile
from sfumato.release.over_areas import figures_of
from sfumato.release.release import Release
from sfumato.release.table import Table
from sfumato.values import Amounts

_SUMS, _NUMBERS = "sums.sfumato", "numbers.sfumato"
_LAPLACE = 3.0  # the largest excess kurtosis of sums of Laplace variables
_HALVINGS = 60


@dataclass(frozen=True, eq=False, repr=False)
class Means:
    """Sums of a value around its middle, and the numbers of records: two releases, read as means.

    `guarantee` is that of both together, where they were published together.

    >>> place, fares = sf.Line(0, 4, cells=4), sf.amounts("fare", clip=(0, 100), step=1)
    >>> plan = sf.plan_means(sf.unbounded(place), sf.ranges(), epsilon=1, values=fares)
    >>> data = {"x": np.repeat([0.5, 1.5, 2.5, 3.5], 5000), "fare": np.tile([10, 30], 10_000)}
    >>> means = plan.publish(sf.count(data, place, values=fares))
    >>> answer = means.answer((0, 2))
    >>> answer.low < 20 < answer.high, answer.high - answer.low < 2
    (True, True)
    """

    sums: Release
    numbers: Release
    guarantee: Guarantee | None = None

    def __post_init__(self) -> None:
        for name, one in (("sums", self.sums), ("numbers", self.numbers)):
            if not isinstance(one, Release):
                raise InvalidInput(f"{name}={type(one).__name__} is not a release. Nothing was computed.")
            if one.mechanism.model is None or one.mechanism.biased:
                raise InvalidInput(
                    f"{name} is a release by mechanism={one.mechanism.name!r}, whose error depends on the data: no "
                    "interval is known for means of it. Nothing was computed. Use one that adds noise to linear "
                    "figures."
                )
        if not isinstance(self.sums.values, Amounts) or self.numbers.values is not None:
            raise InvalidInput(
                "means are of a release of sums and one of records. Nothing was computed. Give Means(sums, numbers)."
            )
        if self.sums.domain != self.numbers.domain:
            raise InvalidInput(
                f"sums are on {self.sums.domain!r} and numbers on {self.numbers.domain!r}. Nothing was computed. Means "
                "are of sums and numbers of the same cells."
            )

    @property
    def values(self) -> Amounts:
        """Of what the means are."""
        values = self.sums.values
        if not isinstance(values, Amounts):
            raise InvalidInput("these are no sums. Nothing was computed.")  # as was checked
        return values

    def answer(
        self,
        ranges: Any = None,
        *,
        by: str | Iterable[str] | None = None,
        where: Mapping[str, Any] | None = None,
        confidence: float = 0.95,
        cut: str = "bracket",
        **named: Any,
    ) -> Answer:
        """The mean of the value in a range, or in each of many; with `by`, in each group of a table. What is asked is
        said as to `Release.answer`, of whole cells: a range that cuts some takes `cut="snap"`, for the nearest of whole
        cells, or `cut="proportion"`, for the noise alone.

        A mean has no standard error, which would be one of a quotient: `stderr` is NaN, and the interval says it all.
        """
        confidence, cut = check_confidence(confidence), check_cut(cut)
        parts = []
        for one in (self.sums, self.numbers):
            question = asked(one.domain, ranges, named, where, by, cut)
            view, seen = one._seen(question)
            found = figures_of(view, seen, confidence, cut)
            if cut == "bracket" and (found.share > 0).any():
                raise InvalidInput(
                    "the range cuts cells, and what lies on one side of a cut is not known. Nothing was answered. Ask "
                    "for whole cells, or say cut='snap' for the nearest range of these, or cut='proportion' for the "
                    "noise alone."
                )
            parts.append((found.value, found.stderr * _continuous(view.model), 0.5 * view.unit * _step(view.model)))
        low, value, high = self._between(parts[0], parts[1], confidence)
        told = {"cut_share": found.share.reshape(question.shape), "range": question.ranges, "cut": cut}
        nothing = np.full(len(value), np.nan)
        if question.keys:
            shape = question.shape
            ends = low.reshape(shape), high.reshape(shape)
            return Table(value.reshape(shape), nothing.reshape(shape), *ends, confidence, **told, keys=question.keys)
        return Answer.within(value, nothing, low, high, confidence, question.shape, **told)

    def marginal(self, *names: str, confidence: float = 0.95) -> Answer:
        """The means over these factors or axes, everything else taken together."""
        return self.answer(by=names, confidence=confidence)

    def _between(
        self, sums: tuple[Floats, Floats, float], numbers: tuple[Floats, Floats, float], confidence: float
    ) -> tuple[Floats, Floats, Floats]:
        """(low, value, high) in the value's unit."""
        values = self.values
        bounds = tuple(float(bound - values.less) for bound in values.clip)
        widest = float(smooth_quantile(np.ones(1), np.full(1, _LAPLACE), cautious(confidence), at_most=True)[0])
        low, high = agreeing(sums, numbers, bounds, widest)
        there = numbers[0] > 0
        value = np.divide(sums[0], numbers[0], out=np.full(len(sums[0]), sum(bounds) / 2), where=there)
        less = float(values.less)
        return low + less, np.clip(value, low, high) + less, high + less

    def save(self, folder: str | Path) -> Path:
        """Write both releases into a folder, which `sf.load_means` reads; each can be read by itself, too."""
        place = Path(folder)
        place.mkdir(parents=True, exist_ok=True)
        self.numbers.save(place / _NUMBERS)
        self.sums.save(place / _SUMS)
        return place

    def __repr__(self) -> str:
        epsilon = "" if self.guarantee is None else f", epsilon={self.guarantee.epsilon}"
        loud = "" if self.sums.private and self.numbers.private else "NOT PRIVATE (seeded randomness), "
        return f"Means({loud}{self.values.column!r}, {' × '.join(map(str, self.sums.domain.shape))} cells{epsilon})"


def load_means(folder: str | Path) -> Means:
    """The means that `Means.save` wrote.

    >>> place, fares = sf.Line(0, 4, cells=4), sf.amounts("fare", clip=(0, 100), step=1)
    >>> plan = sf.plan_means(sf.unbounded(place), sf.ranges(), epsilon=1, values=fares)
    >>> means = plan.publish(sf.count({"x": [0.5, 1.5], "fare": [10, 30]}, place, values=fares))
    >>> sf.load_means(means.save("fares"))
    Means('fare', 4 cells)
    """
    return Means(load(Path(folder) / _SUMS), load(Path(folder) / _NUMBERS))


def agreeing(
    sums: tuple[Floats, Floats, float],
    numbers: tuple[Floats, Floats, float],
    bounds: tuple[float, ...],
    widest: float,
) -> tuple[Floats, Floats]:
    """The ends of all μ between the bounds at which |S - μN| ≤ t(μ): (estimate, deviation, half a step) of either.

    Where S - μN is above t, and where it is below -t, are two intervals, since t is convex: what is left of the bounds
    is found by halving. Where none is left the nearest end is given, of no width.
    """
    (s, of_s, half_s), (n, of_n, half_n) = sums, numbers

    def width(mu: Floats) -> Floats:
        steps = np.maximum(half_s * (of_s > 0), half_n * (of_n > 0) * np.abs(mu))
        return np.asarray(widest * np.sqrt(of_s**2 + (mu * of_n) ** 2) + steps)

    def too_high(mu: Floats) -> Floats:
        return s - mu * n - width(mu)

    def too_low(mu: Floats) -> Floats:
        return mu * n - s - width(mu)

    low, high = np.full(len(s), bounds[0]), np.full(len(s), bounds[1])
    for beyond in (too_high, too_low, too_high):
        low = _past(beyond, low, high)
        high = -_past(lambda mu, beyond=beyond: beyond(-mu), -high, -low)
    return np.minimum(low, high), np.maximum(low, high)


def _past(beyond: Any, start: Floats, stop: Floats) -> Floats:
    """From the start on, the first place where a concave function is no longer above zero; the start itself where it
    is not above zero there, and the end where it is everywhere.
    """
    inside, outside = start.copy(), stop.copy()
    for _ in range(_HALVINGS):  # a concave function that is above zero at the start falls below it once
        middle = (inside + outside) / 2
        above = beyond(middle) > 0
        inside, outside = np.where(above, middle, inside), np.where(above, outside, middle)
    outside = np.where(beyond(stop) > 0, stop, outside)
    return np.where(beyond(start) > 0, outside, start)


def _continuous(model: NoiseModel | None) -> float:
    """How much larger the deviation of continuous Laplace noise of the same rates is, at most."""
    blocks = () if model is None else model.blocks
    ratios = [float(2 / block.noise.rate**2) / block.noise.variance for block in blocks if block.noise.variance > 0]
    return float(np.sqrt(max(ratios, default=1.0)))


def _step(model: NoiseModel | None) -> float:
    """The largest weight with which a noise enters an answer."""
    return 0.0 if model is None else float(model.largest_coefficient)
