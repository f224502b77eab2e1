"""What a release knows exactly: the number of records, or that of every value of the attributes that are public.

A figure that is public has an interval of no width, and no range holds more records than the public figures that it
touches.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from sfumato._types import Floats, Integers
from sfumato.mechanism import NoiseModel, SummedArea
from sfumato.policies import Policy
from sfumato.release.combined import Sums
from sfumato.release.gathered import gathered
from sfumato.release.grouped import grouped


@dataclass(frozen=True, eq=False)
class PublicTotals:
    """Exact totals for every cell of some axes, jointly; of no axes, the one total. `totals` is None where nothing is
    public.
    """

    shape: tuple[int, ...]
    axes: tuple[int, ...]
    totals: Integers | None
    signed: bool = False
    """Whether what is summed may be negative, so that neither zero nor a total bounds a part."""

    @classmethod
    def under(cls, policy: Policy, counts: Floats, model: NoiseModel | None) -> PublicTotals:
        """What a policy leaves public, as far as the mechanism keeps it: the totals of components where their noise is
        none.
        """
        signed = policy.values is not None and policy.values.signed
        if not policy.total_is_public:
            return cls(counts.shape, (), None, signed)
        apart = policy.public_axes
        found = cls.of(counts, apart if apart and model is not None and _kept(model, apart) else ())
        return replace(found, signed=signed)

    @classmethod
    def of(cls, counts: Floats, axes: tuple[int, ...]) -> PublicTotals:
        """From estimates that sum to them."""
        rest = tuple(i for i in range(counts.ndim) if i not in axes)
        return cls(counts.shape, axes, np.rint(counts.sum(axis=rest)).astype(np.int64))

    def gathered(self, axis: int, cells: Integers) -> PublicTotals:
        """The same where some cells of an axis are taken together."""
        shape = tuple(2 if i == axis else n for i, n in enumerate(self.shape))
        if self.totals is None or axis not in self.axes:
            return PublicTotals(shape, self.axes, self.totals, self.signed)
        return PublicTotals(
            shape, self.axes, gathered(self.totals, self.axes.index(axis), cells).astype(np.int64), self.signed
        )

    def grouped(self, axis: int, of: Integers) -> PublicTotals:
        """The same where an axis has one cell a group."""
        shape = tuple(int(of.max()) + 1 if i == axis else n for i, n in enumerate(self.shape))
        if self.totals is None or axis not in self.axes:
            return PublicTotals(shape, self.axes, self.totals, self.signed)
        return PublicTotals(
            shape, self.axes, grouped(self.totals, self.axes.index(axis), of).astype(np.int64), self.signed
        )

    def combined(self, sums: Sums) -> PublicTotals:
        """The same where a place has a few sums of its cells. What its cells share out in part is known by no total."""
        shape, at = sums.shape(self.shape), tuple(self.axes.index(i) for i in sums.axes if i in self.axes)
        if self.totals is None or not at:
            return PublicTotals(shape, self.axes, self.totals, self.signed)
        if len(at) == len(sums.axes) and sums.of is not None:
            found = Sums(at, sums.matrix, sums.of).forward(self.totals)
            return PublicTotals(shape, self.axes, np.asarray(found, dtype=np.int64), self.signed)
        kept = tuple(i for i in self.axes if i not in sums.axes)
        return PublicTotals(shape, kept, np.asarray(self.totals.sum(axis=at), dtype=np.int64), self.signed)

    def whole(self, low: Integers, high: Integers) -> NDArray[np.bool_]:
        """Which boxes of cells are made of whole parts with an exact total, and of these alone."""
        if self.totals is None:
            return np.zeros(len(low), dtype=np.bool_)
        rest = [i for i in range(len(self.shape)) if i not in self.axes]
        full = np.array([self.shape[i] for i in rest], dtype=np.int64)
        return np.asarray(((low[:, rest] == 0) & (high[:, rest] == full)).all(axis=-1))

    def most(self, low: Integers, high: Integers) -> Floats:
        """The most records that boxes of cells can hold: the sum of the exact totals that they touch."""
        if self.totals is None or self.signed:
            return np.full(len(low), np.inf)
        found = np.full(len(low), float(np.sum(self.totals)))
        if self.axes:
            at = list(self.axes)
            found = np.asarray(self._table.sums(low[:, at], high[:, at]), dtype=np.float64)
        return np.where((high > low).all(axis=-1), found, 0.0)

    def most_of_cells(self) -> Floats:
        """The most records that every single cell can hold, in an array that broadcasts to the shape."""
        if self.totals is None or self.signed:
            return np.full((1,) * len(self.shape), np.inf)
        return self.totals.reshape([n if i in self.axes else 1 for i, n in enumerate(self.shape)]).astype(np.float64)

    @property
    def least(self) -> float:
        """The least that any range can hold."""
        return -np.inf if self.signed else 0.0

    @cached_property
    def _table(self) -> SummedArea:
        return SummedArea(np.zeros(1, dtype=np.int64) if self.totals is None else self.totals)


def _kept(model: NoiseModel, apart: tuple[int, ...]) -> bool:
    """Whether no noise reaches the totals of components."""
    size = [model.shape[i] for i in apart]
    cells = np.stack(np.unravel_index(np.arange(int(np.prod(size))), size), axis=-1)
    low = np.zeros((len(cells), len(model.shape)))
    high = np.broadcast_to(np.array(model.shape, dtype=np.float64), low.shape).copy()
    low[:, apart], high[:, apart] = cells, cells + 1.0
    return bool((model.range_cumulants(low, high)[0] <= 1e-9).all())
