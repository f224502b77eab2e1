"""Least squares over tables of a product, by the residual basis: closed form, without a cell of the product.

Of every measured table S, weighed w_S, noise of one scale is added to w_S times every cell. A table says something of
every A ⊆ S: its part that is summed over S less A and then centred along every axis of A (the residual of A). Residuals
of different A are uncorrelated, and what several tables say of one A differs in precision alone, which is

    λ_A = Σ_{S ⊇ A} w_S² / N(S less A),       N(T) the number of cells of the table of the axes T,

for noise of variance one. So the least-squares estimate of a residual is the mean of what is said of it, weighed by
that, and a table is the sum of the residuals of all of its parts, spread evenly over the other axes. What is known
exactly (the total, or the joint table of public axes) takes the place of what is measured.

The residual basis is that of Xiao, He, Zhang and Kifer (ResidualPlanner, NeurIPS 2023), who measure the residuals
themselves with Gaussian noise; here whole tables are measured, in integers.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato._types import Floats
from sfumato.errors import TooLarge
from sfumato.linear.tables import Axes, real

# Parts of measured tables that are taken: of a table of k axes there are 2^k.
MOST_PARTS = 1 << 16

Residuals = dict[Axes, Floats]


@dataclass(frozen=True)
class Lattice:
    """Measured tables, each with its weight, over a product of some shape; `known` are the axes whose joint table is
    known exactly (none: the total alone), None where nothing is.

    >>> lattice = Lattice((3, 4), ((0,), (1,)), (1, 1))
    >>> round(1 / lattice.precision[()], 3)  # the total, from two tables of 3 and 4 cells
    1.714
    """

    shape: tuple[int, ...]
    sets: tuple[Axes, ...]
    weights: tuple[int, ...]
    known: frozenset[int] | None = None

    def __post_init__(self) -> None:
        if sum(1 << len(axes) for axes in self.sets) > MOST_PARTS:
            raise TooLarge(
                f"tables with more than {MOST_PARTS:,} parts together are too many for least squares. Nothing was "
                "drawn or recorded. Ask for tables of fewer axes."
            )

    def size(self, axes: Axes) -> int:
        """N: how many cells a table has."""
        return math.prod(self.shape[i] for i in axes)

    def is_known(self, part: Axes) -> bool:
        """Whether no noise is in a residual."""
        return self.known is not None and self.known.issuperset(part)

    def tells(self, axes: Axes) -> bool:
        """Whether the table of these axes can be estimated, without a bias."""
        own = real(self.shape, axes)
        return self.is_known(own) or own in self.precision

    @cached_property
    def precision(self) -> dict[Axes, float]:
        """λ of every part of a measured table that is not known."""
        found: dict[Axes, float] = {}
        for axes, weight in zip(self.sets, self.weights, strict=True):
            whole = self.size(axes)
            for part in parts_of(axes):
                if not self.is_known(part):
                    found[part] = found.get(part, 0.0) + weight**2 * (self.size(part) / whole)
        return found

    def shares(self, axes: Axes, weight: int) -> Iterator[tuple[Axes, float]]:
        """For every part of a measured table, by what a sum over its noisy cells enters the residual; 0 where that is
        known.
        """
        whole = self.size(axes)
        for part in parts_of(axes):
            yield part, 0.0 if self.is_known(part) else weight * self.size(part) / (whole * self.precision[part])

    def variance(self, within: Floats, mean: Floats) -> float:
        """The mean variance of queries that are products of one query q along every axis, for noise of variance one.

        One row a product, one column an axis: `within` has the mean of ‖q - q̄‖² along each, `mean` that of q̄², q̄ being
        the mean of q over the axis. Infinite where no table tells them.
        """
        active = tuple(i for i, n in enumerate(self.shape) if n > 1 and (within[:, i] > 0).any())
        if not self.tells(active):
            return math.inf
        total = 0.0
        for part in parts_of(active):
            if not self.is_known(part):
                felt = [within[:, i] if i in part else mean[:, i] for i in range(len(self.shape))]
                total += float(np.prod(felt, axis=0).mean()) / self.precision[part]
        return total

    def residuals(self, measured: Sequence[NDArray[Any]], known: Residuals | None = None) -> Residuals:
        """Of every part, before it is centred: from w_S times every cell of S and noise, any dimensions before those of
        the table, and from what is known.
        """
        found: Residuals = {} if known is None else dict(known)
        for axes, weight, table in zip(self.sets, self.weights, measured, strict=True):
            lead = table.ndim - len(axes)
            sums = {axes: np.asarray(table, dtype=np.float64)}
            for part, share in self.shares(axes, weight):  # the largest first: each from one that has an axis more
                if part not in sums:
                    more = next(i for i in axes if i not in part)
                    over = tuple(sorted((*part, more)))
                    sums[part] = sums[over].sum(axis=lead + over.index(more))
                if share:
                    found[part] = found[part] + share * sums[part] if part in found else share * sums[part]
        return found

    def table(self, residuals: Residuals, axes: Axes) -> Floats:
        """The estimated table of some axes."""
        own = real(self.shape, axes)
        total: Floats = np.zeros(())
        for part in parts_of(own):
            if part not in residuals:
                continue
            lead = residuals[part].ndim - len(part)
            centred = residuals[part]
            for at in range(len(part)):
                centred = centred - centred.mean(axis=lead + at, keepdims=True)
            rest = tuple(lead + at for at, i in enumerate(own) if i not in part)
            total = total + np.expand_dims(centred, rest) / (self.size(own) // self.size(part))
        lead = max(total.ndim - len(own), 0)
        whole = np.broadcast_to(total, (*total.shape[:lead], *(self.shape[i] for i in own)))
        return np.array(whole).reshape((*total.shape[:lead], *(self.shape[i] for i in axes)))

    def split(self, vector: NDArray[Any]) -> list[NDArray[Any]]:
        """Numbers of all measured tables, one table after the other along the last axis, each in its shape."""
        found, start = [], 0
        for axes in self.sets:
            part = vector[..., start : start + self.size(axes)]
            found.append(part.reshape((*vector.shape[:-1], *(self.shape[i] for i in axes))))
            start += self.size(axes)
        return found


def parts_of(axes: Axes) -> Iterator[Axes]:
    """Every subset, the largest first."""
    for length in range(len(axes), -1, -1):
        yield from combinations(axes, length)
