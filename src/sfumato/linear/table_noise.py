"""The noise of measured tables, carried by least squares to the table of some axes: what its cells and boxes feel.

A box takes from every axis some cells wholly, at most two of them in part, and leaves the others out. With q_i the
share of a cell of axis i and q̄_i the mean of it, the noise of a cell of a measured table S enters the answer with

    Σ_{A ⊆ S and asked} C_S[A] · ∏_{i ∈ A} (q_i - q̄_i) · ∏_{i asked, not in A} q̄_i,      C_S[A] = w_S·N(A) / (N(S)·λ_A):

as many values as there are ways of being inside, outside or cut along the axes of S, each as often as there are such
cells. So the law of an answer is known whole, however many noises there are.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from sfumato._types import Floats, Integers
from sfumato.errors import InvalidInput
from sfumato.linear.estimator import Array
from sfumato.linear.groups import summed
from sfumato.linear.lattice import Lattice, parts_of
from sfumato.linear.operator import Operator
from sfumato.linear.tables import Axes

if TYPE_CHECKING:
    from sfumato.linear.queries import Queries

# The group of every cell of an axis; None where every cell is a row by itself.
Groups = Integers | None


class TableNoise(Operator):
    """From the noise of all measured tables to the estimated table of some axes, in C order.

    Along an axis with groups its cells are added up into these.
    """

    def __init__(self, lattice: Lattice, axes: Axes, groups: Sequence[Groups] | None = None) -> None:
        self.lattice, self.axes = lattice, axes
        self._groups = tuple(groups) if groups is not None else (None,) * len(axes)
        self.rows = math.prod(self._shape)
        self.cols = sum(map(lattice.size, lattice.sets))

    @property
    def _shape(self) -> tuple[int, ...]:
        full = (self.lattice.shape[i] for i in self.axes)
        return tuple(n if of is None else int(of.max()) + 1 for n, of in zip(full, self._groups, strict=True))

    def grouped(self, axis: int, of: Integers) -> TableNoise:
        """The same with one row a group along an axis."""
        before = self._groups[axis]
        after = of if before is None else of[before]
        return TableNoise(self.lattice, self.axes, [after if i == axis else old for i, old in enumerate(self._groups)])

    def forward(self, x: Array) -> Array:
        """The least-squares estimate from the noise alone."""
        self._require_told()
        residuals = self.lattice.residuals(self.lattice.split(np.asarray(x, dtype=np.float64)))
        table = self.lattice.table(residuals, self.axes)
        lead = table.ndim - len(self.axes)
        for at, of in enumerate(self._groups):
            if of is not None:
                table = np.moveaxis(summed(np.moveaxis(table, lead + at, -1), of), -1, lead + at)
        return np.broadcast_to(table, (*np.shape(x)[:-1], *self._shape)).reshape((*np.shape(x)[:-1], self.rows))

    def transpose(self, y: Array) -> Array:
        """How strongly every noise is felt."""
        self._require_told()
        lead = np.shape(y)[:-1]
        q = np.asarray(y, dtype=np.float64).reshape((*lead, *self._shape))
        for at, of in enumerate(self._groups):
            if of is not None:
                q = np.take(q, of, axis=len(lead) + at)
        found = [self._felt_of(q, axes, weight) for axes, weight in self._measured]
        return np.concatenate([part.reshape((*lead, -1)) for part in found], axis=-1)

    @property
    def _measured(self) -> list[tuple[Axes, int]]:
        return list(zip(self.lattice.sets, self.lattice.weights, strict=True))

    def _felt_of(self, q: Floats, axes: Axes, weight: int) -> Floats:
        """What the noise of one table is felt by: residual after residual."""
        lead, shares = q.ndim - len(self.axes), dict(self.lattice.shares(axes, weight))
        total: Floats = np.zeros(())
        for part in parts_of(tuple(i for i in axes if i in self.axes)):
            felt = q
            for at, axis in enumerate(self.axes):
                mean = felt.mean(axis=lead + at, keepdims=True)
                felt = felt - mean if axis in part else mean
            kept = felt.reshape((*felt.shape[:lead], *(felt.shape[lead + self.axes.index(i)] for i in part)))
            total = total + shares[part] * np.expand_dims(
                kept, tuple(lead + at for at, i in enumerate(axes) if i not in part)
            )
        return np.broadcast_to(total, (*q.shape[:lead], *(self.lattice.shape[i] for i in axes)))

    def _require_told(self) -> None:
        if not self.lattice.tells(self.axes):
            raise InvalidInput(
                "mechanism='marginals' measures tables of some axes, and no such table tells what is asked. Nothing "
                "was drawn or recorded. Ask for tables, as sf.marginals(2) does."
            )

    # ------------------------------------------------------------------ in closed form

    @cached_property
    def largest_coefficient(self) -> float:
        """Over all boxes: a coefficient is linear in every (q_i, q̄_i), so that it is largest at an end of these."""
        largest = 0.0
        for axes, weight in self._measured:
            shared = tuple(i for i in axes if i in self.axes)
            found = self._coefficients(shared, axes, weight)[None]
            for axis in shared:
                n = self.lattice.shape[axis]
                ends = np.array([[0.0, 0.0], [0.0, (n - 1) / n], [1.0, 1 / n], [1.0, 1.0]])
                found = _contracted(found, ends[None, :, 1], ends[None, :, 0])
            largest = max(largest, float(np.abs(found).max(initial=0.0)))
        return largest

    def _coefficients(self, shared: Axes, axes: Axes, weight: int) -> Floats:
        """C_S of every set of the shared axes, flat: of each axis first without and then with it."""
        table = np.zeros((2,) * len(shared))
        for part, share in self.lattice.shares(axes, weight):
            if set(part) <= set(shared):
                table[tuple(int(i in part) for i in shared)] = share
        return table.ravel()

    def box_terms(self, shape: tuple[int, ...], low: Floats, high: Floats) -> tuple[Array, Array]:
        """The coefficients of boxes, and how often each occurs."""
        del shape
        self._require_told()
        values, counts, means = self._ways(low, high)
        terms, often = [], []
        for axes, weight in self._measured:
            shared = tuple(i for i in axes if i in self.axes)
            found = self._coefficients(shared, axes, weight)[None]
            number = np.full((len(low), 1), float(math.prod(self.lattice.shape[i] for i in axes if i not in shared)))
            for axis in shared:
                at = self.axes.index(axis)
                found = _contracted(found, means[at][:, None], values[at])
                number = (number[:, :, None] * counts[at][:, None, :]).reshape(len(low), -1)
            outside = math.prod((means[at] for at, i in enumerate(self.axes) if i not in shared), start=np.ones(1))
            terms.append(np.broadcast_to(found * outside[:, None], number.shape))
            often.append(number)
        return np.concatenate(terms, axis=-1), np.concatenate(often, axis=-1)

    def range_terms(self, low: Floats, high: Floats) -> tuple[Array, Array]:
        """As boxes, where there is but one axis."""
        return self.box_terms(self._shape, low[:, None], high[:, None])

    def box_moments(self, shape: tuple[int, ...], low: Floats, high: Floats) -> tuple[Array, Array]:
        """From the terms, once for all boxes that are felt alike."""
        first, which = self.alike(low, high)
        second, fourth = np.empty(len(first)), np.empty(len(first))
        step = max(1, (1 << 21) // (len(self.lattice.sets) << min(len(self.axes), 4)))
        for start in range(0, len(first), step):
            some = slice(start, start + step)
            terms, often = self.box_terms(shape, low[first[some]], high[first[some]])
            second[some], fourth[some] = (often * terms**2).sum(axis=-1), (often * terms**4).sum(axis=-1)
        return second[which], fourth[which]

    def alike(self, low: Floats, high: Floats) -> tuple[Integers, Integers]:
        """Boxes that take as many cells from every axis, and cut them alike."""
        values, counts, _ = self._ways(low, high)
        signs = np.concatenate([np.zeros((len(low), 1)), *values, *counts], axis=-1)
        _, first, which = np.unique(signs, axis=0, return_index=True, return_inverse=True)
        return first.astype(np.int64), which.reshape(-1).astype(np.int64)

    def _ways(self, low: Floats, high: Floats) -> tuple[list[Floats], list[Floats], list[Floats]]:
        """Along every axis, for every box: the shares in which cells are taken, how many cells so, and the mean."""
        values, counts, means = [], [], []
        for at, of in enumerate(self._groups):
            n = self.lattice.shape[self.axes[at]]
            sizes = np.ones(n) if of is None else np.bincount(of).astype(np.float64)
            share, number = _shares_of(sizes, low[:, at], high[:, at])
            values.append(share)
            counts.append(number)
            means.append((share * number).sum(axis=-1) / n)
        return values, counts, means

    def mean_square(self, kinds: Sequence[Queries], shape: tuple[int, ...]) -> float:
        """The mean variance over products of queries of these kinds; infinite where no table tells them."""
        del shape
        along = [kind.spreads(self.lattice.shape[i]) for kind, i in zip(kinds, self.axes, strict=True)]
        rows = max(len(within) for within, _ in along)
        within, mean = (np.full((rows, len(self.lattice.shape)), rest) for rest in (0.0, 1.0))
        for axis, (own, whole) in zip(self.axes, along, strict=True):
            within[:, axis], mean[:, axis] = own, whole
        return self.lattice.variance(within, mean)


def _contracted(found: Floats, mean: Floats, share: Floats) -> Floats:
    """One axis of coefficients, first without and then with it, by the values that (q̄, q - q̄) take along it."""
    rows = max(len(found), len(share))
    pair = np.broadcast_to(found, (rows, found.shape[1])).reshape(rows, 2, -1)
    mean = np.broadcast_to(mean, share.shape)
    felt = mean[:, :, None] * pair[:, None, 0] + (share - mean)[:, :, None] * pair[:, None, 1]
    return np.asarray(felt.transpose(0, 2, 1).reshape(rows, -1))


def _shares_of(sizes: Floats, low: Floats, high: Floats) -> tuple[Floats, Floats]:
    """(shares, how many cells have each) of ranges along an axis whose rows are of so many cells: none, all, and those
    of two rows that may be cut.
    """
    first, last = np.ceil(low).astype(np.int64), np.floor(high).astype(np.int64)
    inside = last < first  # both ends within one row
    left = np.where(inside, high - low, first - low)
    right = np.where(inside, 0.0, high - last)
    before, at = np.concatenate([[0.0], np.cumsum(sizes)]), len(sizes) - 1
    whole = np.where(inside, 0.0, before[last] - before[np.minimum(first, last)])
    lower = np.where(left > 0, sizes[np.maximum(first - 1, 0)], 0.0)
    upper = np.where(right > 0, sizes[np.minimum(last, at)], 0.0)
    share = np.stack([np.zeros_like(low), np.ones_like(low), left, right], axis=-1)
    number = np.stack([before[-1] - whole - lower - upper, whole, lower, upper], axis=-1)
    return (share, number) if (lower + upper).any() else (share[:, :2], number[:, :2])
