"""An answer: a value with its error."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, eq=False)
class Answer:
    """The estimate of one query, or of many as arrays, with its standard error and an interval.

    The interval is the smallest that holds the true value with at least the stated confidence, over the noise. It
    does not cover what a range that cuts cells adds: within a cell the records are taken to be spread evenly, and how
    wrong that is depends on the data. Where a mechanism's own error depends on the data, stating it would be a second
    release: standard error and interval are then NaN. A mechanism that smooths the data knows its noise but not what
    the smoothing adds: it gives the standard error of the noise, and no interval.
    """

    value: Any
    stderr: Any
    low: Any
    high: Any
    confidence: float

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
        fields = [
            np.asarray(a, dtype=np.float64).reshape(shape) for a in (value, stderr, value - margin, value + margin)
        ]
        value_, stderr_, low, high = (float(f) if shape == () else f for f in fields)
        return cls(value_, stderr_, low, high, confidence)

    def __repr__(self) -> str:
        what = f"{np.size(self.value)} values" if np.ndim(self.value) else f"{self.value:,.1f}"
        if np.isnan(self.stderr).any():
            return f"Answer({what}, error unknown: it depends on the data)"
        if np.isnan(self.low).any():
            noise = "" if np.ndim(self.value) else f" of standard error {self.stderr:,.1f}"
            return f"Answer({what}, with noise{noise} and smoothing that depends on the data)"
        if np.ndim(self.value):
            return f"Answer({np.size(self.value)} values, {self.confidence:.0%} intervals)"
        return f"Answer({self.value:,.1f}, {self.confidence:.0%} within [{self.low:,.1f}, {self.high:,.1f}])"
