"""An answer: a value with its error."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

# How a range that cuts cells may be read.
CUTS = ("bracket", "proportion", "snap")
# What the value of an answer is taken from.
ESTIMATES = ("plain", "nonnegative")


@dataclass(frozen=True, eq=False)
class Answer:
    """The estimate of one query, or of many as arrays, with its standard error and an interval.

    The interval holds the number of records, as they were counted, with at least the stated confidence over the noise.
    Where a range cuts cells, nobody but the data knows how many records of a cut cell lie on which side: the interval
    then reaches from the lower end for the cells wholly inside to the upper end for all cells touched, and `cut_share`
    says which share of the value, in proportion, lies in cut cells. With `cut="proportion"` the interval is that of
    the noise in the value alone, and takes the records of a cell to be spread evenly. `stderr` is the noise of the
    value either way, and `range` the range that was answered.

    Where a mechanism's own error depends on the data, stating it would be a second release: standard error and
    interval are then NaN. A mechanism that smooths the data knows its noise but not what the smoothing adds: a range
    is bracketed by the mechanism's own parts where the release has them, else there is no interval. The value may lie
    outside its interval then, and where it is below zero. With `estimate="nonnegative"` the value is another one, and
    `stderr` and interval stay what they are: the noise of the plain value, and where the number of records is.

    Answers of releases add, subtract and scale by numbers, with intervals from the law of all the noise in them: of one
    release by the noise that they share, of several as independent. A quotient is `release.rate` or
    `sf.percent_change`. What does not know its law is refused: an answer made by hand, or from a file.

    >>> answer = sf.Answer(value=41.0, stderr=2.0, low=37.0, high=45.0, confidence=0.95)
    >>> answer.low, answer.high
    (37.0, 45.0)
    """

    value: Any
    stderr: Any
    low: Any
    high: Any
    confidence: float
    cut_share: Any = field(default=0.0, kw_only=True)
    range: Any = field(default=None, kw_only=True)
    cut: str | None = field(default=None, kw_only=True)
    _law: Any = field(default=None, kw_only=True, repr=False)
    """What was asked of which release, for arithmetic; never kept in a file, nor in a copy."""

    __array_ufunc__ = None  # an array, or a number of NumPy, leaves arithmetic to the answer

    @classmethod
    def of(
        cls,
        value: NDArray[np.float64],
        stderr: NDArray[np.float64],
        margin: NDArray[np.float64],
        confidence: float,
        shape: tuple[int, ...],
    ) -> Answer:
        """Arrays in the shape in which the queries came; plain numbers for a single one."""
        return cls.within(value, stderr, value - margin, value + margin, confidence, shape)

    @classmethod
    def within(
        cls,
        value: NDArray[np.float64],
        stderr: NDArray[np.float64],
        low: NDArray[np.float64],
        high: NDArray[np.float64],
        confidence: float,
        shape: tuple[int, ...],
        *,
        cut_share: NDArray[np.float64] | float = 0.0,
        range: Any = None,
        cut: str | None = None,
    ) -> Answer:
        """As `of`, from the two ends of the intervals."""
        share = np.broadcast_to(cut_share, np.shape(value))
        fields = [np.asarray(a, dtype=np.float64).reshape(shape) for a in (value, stderr, low, high, share)]
        value_, stderr_, low_, high_, share_ = (float(f) if shape == () else f for f in fields)
        return cls(value_, stderr_, low_, high_, confidence, cut_share=share_, range=range, cut=cut)

    def __add__(self, other: Any) -> Answer:
        from sfumato.figures import added  # the door to the joint law of figures

        return added(self, other)

    __radd__ = __add__

    def __sub__(self, other: Any) -> Answer:
        from sfumato.figures import added

        return added(self, other, -1.0)

    def __rsub__(self, other: Any) -> Answer:
        return -self + other

    def __neg__(self) -> Answer:
        return self * -1

    def __mul__(self, factor: Any) -> Answer:
        from sfumato.figures import scaled

        return scaled(self, factor)

    __rmul__ = __mul__

    def __truediv__(self, number: Any) -> Answer:
        from sfumato.figures import scaled

        return scaled(self, number, divide=True)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_law": None}

    def __repr__(self) -> str:
        what = f"{np.size(self.value)} values" if np.ndim(self.value) else f"{self.value:,.1f}"
        share = float(np.max(self.cut_share, initial=0.0))
        upto = "up to " if np.ndim(self.value) else ""
        cut = f"; {upto}{share:.0%} in cut cells" if share > 0 else ""
        if np.isnan(self.low).any():
            if np.isnan(self.stderr).any():
                why = "error unknown: it depends on the data"
            else:
                noise = "" if np.ndim(self.value) else f" of standard error {self.stderr:,.1f}"
                why = f"with noise{noise} and smoothing that depends on the data"
            return f"Answer({what}, {why}{cut and cut + ', and no bracket for them'})"
        inside = "intervals" if np.ndim(self.value) else f"within [{self.low:,.1f}, {self.high:,.1f}]"
        if self.cut == "proportion" and cut:
            return f"Answer({what}, {self.confidence:.0%} {inside} for the noise alone{cut}, taken in proportion)"
        where = " for the nearest whole cells, see .range" if self.cut == "snap" else ""
        return f"Answer({what}, {self.confidence:.0%} {inside}{where}{cut})"
