"""An interval of the real line, cut into cells of equal width, on which location is exact.

**The edges are part of the definition.** Edge i is ``low + i*h`` in IEEE doubles, with ``h = (high -
low)/cells``: one rounded product, one rounded sum; the last edge is ``high`` itself. Cell i is half-open,
``[e_i, e_{i+1})``, the last one is closed, and values outside are clamped to the ends. A value's cell is
settled by comparison with these edges and by nothing else, so it is the same double for double on every
engine that follows IEEE 754. This matters for privacy: a policy promises something about *cells*, and a cell
that depended on the rounding of a division could lie one further away than the policy allows.

**Why one correction is enough.** Let M = max(|low|, |high|), u = ulp(M) and e = 2⁻⁵³; then e·M < u. The axis
is refused unless h ≥ 1024·u and h is a normal number. Each edge lies close to its ideal place low + i·h: the
product is off by at most e·2M < 2u (and a hair), the sum by at most e·M < u; the last edge by the two
roundings inside h, at most 2e·2M < 4u. All are within 5u < h/200, so the edges increase strictly. The guess
is q = (x - low)/h for x in [low, high]: the difference is off by at most e·2M < 2u, which is h/512, and the
quotient by a further e·q < 2⁻⁹ (there are fewer than 2⁴⁴ cells), so q is within 1/200 of its ideal. If c is
the true cell, (x - low)/h lies in [c - 1/200, c + 1 + 1/200], hence q in [c - 1/100, c + 1 + 1/100], and g =
floor(q) is c - 1, c or c + 1. Comparing x with e_g and e_{g+1} tells which. Clipping g to the axis only moves
it towards c. In the last cell the upper comparison may add one; the final clip takes it back, whatever ``low
+ cells*h`` rounds to.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sfumato.domain.axis import axis_name
from sfumato.domain.ordered import Ordered
from sfumato.errors import InvalidInput
from sfumato.exact import finite_float, positive_int

CHUNK = 1 << 14
"""Values located at a time: the four work arrays together stay inside a core's cache."""

_MARGIN = 1024
"""A step is at least this many units in the last place of the larger bound; see the argument above."""


@dataclass(frozen=True, repr=False)
class Interval(Ordered):
    """``[low, high]`` cut into ``cells`` cells of equal width.

    >>> sf.Interval("hour", 0, 24, cells=24)
    Interval('hour', 0, 24, cells=24)
    """

    name: str
    low: float
    high: float
    cells: int

    reads = "numbers"

    def __post_init__(self) -> None:
        # Adding 0.0 turns -0.0 into 0.0: equal axes are described alike.
        low, high = finite_float(self.low, "low") + 0.0, finite_float(self.high, "high") + 0.0
        object.__setattr__(self, "name", axis_name(self.name))
        object.__setattr__(self, "low", low)
        object.__setattr__(self, "high", high)
        object.__setattr__(self, "cells", positive_int(self.cells, "cells"))
        if not low < high:
            raise InvalidInput(
                f"Axis {self.name!r}: low={low!r} is not below high={high!r}. Give the lower bound first."
            )
        if not math.isfinite(high - low):
            raise InvalidInput(
                f"Axis {self.name!r}: the distance from low={low!r} to high={high!r} is not a finite double. "
                "Use bounds closer to each other."
            )
        if self.step < max(_MARGIN * math.ulp(max(abs(low), abs(high))), sys.float_info.min):
            raise InvalidInput(
                f"Axis {self.name!r}: cells={self.cells} between low={low!r} and high={high!r} are too narrow "
                "for double precision to tell them apart. Use fewer cells, or a nearer origin."
            )

    def __repr__(self) -> str:
        return f"Interval({self.name!r}, {plain(self.low)}, {plain(self.high)}, cells={self.cells})"

    @cached_property
    def step(self) -> float:
        """The rounded width h that defines the edges."""
        return (self.high - self.low) / self.cells

    @cached_property
    def width(self) -> Fraction:
        """The exact width of a cell, from the exact values of the two bounds."""
        return (Fraction(self.high) - Fraction(self.low)) / self.cells

    @cached_property
    def edges(self) -> NDArray[np.float64]:
        """The ``cells + 1`` edges, strictly increasing and read-only."""
        edges = self.low + np.arange(self.cells + 1, dtype=np.float64) * self.step
        edges[-1] = self.high
        edges.flags.writeable = False
        return edges

    @property
    def ends(self) -> tuple[float, float]:
        """The two bounds."""
        return self.low, self.high

    def scale(self, values: ArrayLike) -> NDArray[np.float64]:
        """Numbers as doubles."""
        return numbers(values, self.name)

    def written(self, value: Any) -> str:
        """A double, without loss."""
        return plain(float(value))

    def cells_at(self, scaled: NDArray[Any]) -> NDArray[np.int64]:
        """The cell of each double, by comparison with the edges.

        Values outside, infinities included, are clamped. NaN has no cell and is refused, without saying where
        it was found.
        """
        cells = np.zeros(scaled.shape, dtype=np.int64)
        self.add(scaled.reshape(-1), cells.reshape(-1))
        return cells

    def add(self, scaled: NDArray[Any], cells: NDArray[np.int64]) -> None:
        """Turn each number in ``cells`` into ``number * self.cells + cell of the value``, in place.

        Doing so for one axis after the other gives flat cell numbers in C order. The work goes by chunks that
        fit the cache, and the edges are computed where they are needed: gathering them from memory costs
        more.
        """
        work = np.empty((3, min(CHUNK, len(scaled))))
        last, step, low = float(self.cells - 1), self.step, self.low
        for start in range(0, len(scaled), CHUNK):
            part = scaled[start : start + CHUNK]
            x, guess, edge = work[:, : len(part)]
            np.clip(part, low, self.high, out=x)
            np.subtract(x, low, out=guess)
            np.divide(guess, step, out=guess)
            np.floor(guess, out=guess)
            np.minimum(guess, last, out=guess)
            np.multiply(guess, step, out=edge)
            np.add(edge, low, out=edge)
            below = x < edge
            np.add(guess, 1.0, out=edge)
            np.multiply(edge, step, out=edge)
            np.add(edge, low, out=edge)
            above = x >= edge
            np.subtract(guess, below, out=guess)
            np.add(guess, above, out=guess)
            np.minimum(guess, last, out=guess)
            if math.isnan(guess.max()):
                raise InvalidInput(no_number(self.name))
            out = cells[start : start + CHUNK]
            np.multiply(out, self.cells, out=out)
            np.add(out, guess, out=out, casting="unsafe")

    def beyond(self, scaled: NDArray[Any]) -> NDArray[np.bool_]:
        """Which doubles lie beyond the bounds; two looks where none does."""
        if scaled.min(initial=self.low) >= self.low and scaled.max(initial=self.high) <= self.high:
            return np.zeros(scaled.shape, np.bool_)
        found: NDArray[np.bool_] = (scaled < self.low) | (scaled > self.high)
        return found

    def gap(self, apart: NDArray[np.int64]) -> NDArray[np.float64]:
        """The smallest gap between cells so many apart."""
        return float(self.width) * np.maximum(apart - 1, 0)

    def farthest(self, limit: float) -> int:
        """How many cells apart two may be with a gap below the limit; now and then one more."""
        width, n = float(self.width), self.cells
        return n - 1 if limit / n > width else min(int(limit // width) + 2, n - 1)

    @property
    def depths(self) -> NDArray[np.float64]:
        """How far each cell lies from the nearer end."""
        place = np.arange(self.cells)
        return np.minimum(place, place[::-1]) * float(self.width)

    @property
    def finest(self) -> float:
        """The width of the narrowest cell."""
        return float(self.width)

    def size(self, cells: int) -> str:
        """How wide so many cells are, in words."""
        return f"{float(self.width) * cells:.3g}"

    def face(self) -> str:
        """A line."""
        name = "" if self.name == "x" else f", name={self.name!r}"
        return f"Line({plain(self.low)}, {plain(self.high)}, cells={self.cells}{name})"

    def entry(self) -> dict[str, Any]:
        """Its ends and the number of cells."""
        return {"low": self.low, "high": self.high, "cells": self.cells}

    def spec(self) -> dict[str, Any]:
        """The axis as plain data; Python writes and reads a double without loss."""
        return {
            "kind": "interval",
            "name": self.name,
            "low": self.low,
            "high": self.high,
            "cells": self.cells,
        }


def numbers(values: ArrayLike, name: str) -> NDArray[np.float64]:
    """Values as doubles, or a refusal that shows none of them."""
    array = np.asarray(values)
    if array.dtype.kind == "O" and all(isinstance(x, Real) and not isinstance(x, bool) for x in array.flat):
        return array.astype(np.float64)
    if array.dtype.kind not in "fiu":
        raise InvalidInput(
            f"Axis {name!r}: values of type {array.dtype} are not numbers. Nothing was counted. "
            "Convert them to float64 first."
        )
    return array.astype(np.float64, copy=False)


def no_number(name: str) -> str:
    """What is said of NaN among the values."""
    return (
        f"Axis {name!r}: some values are NaN, which has no place on the axis. Nothing was counted. "
        "Remove them first; sf.count leaves them out by itself."
    )


def plain(value: float) -> str:
    """A double as people write it, without loss: 24 instead of 24.0."""
    return repr(value).removesuffix(".0")


def listed(edges: Sequence[float]) -> str:
    """Edges short enough to print."""
    if len(edges) <= 12:
        return f"[{', '.join(map(plain, edges))}]"
    return f"[{', '.join(map(plain, edges[:3]))}, …, {plain(edges[-1])}] ({len(edges) - 1} bins)"
