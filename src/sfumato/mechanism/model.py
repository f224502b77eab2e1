"""The noise of a linear mechanism: what variance, kurtosis and distribution any query's answer will have, without data.

Every linear mechanism reports `x + L·η`, where L is a row of blocks, each of which is applied to independent discrete
Laplace noise of one scale. A block is a Kronecker product of operators along the axes (vertex strategies, edges along
grid lines), a selection of cells (edges to ⊥), an incidence matrix (an arbitrary graph) or that of the cells of a grid
that hang on the corners of cubes (a spanner). The answer to a query q feels noise j with the coefficient (Lᵀq)_j, and
everything below is a sum over these coefficients that the structure of the block shortens.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato._types import Floats, Integers
from sfumato.domain import Domain
from sfumato.linear import Operator
from sfumato.linear.estimator import Estimator, range_weights
from sfumato.noise import DiscreteLaplace
from sfumato.workload import AxisQueries, Part, Workload

# Where less than this share of a variance is left by a known total, its digits are looked at again.
CANCELLED = 1e-7
# Numbers held at a time while they are.
CHUNK = 1 << 22


@dataclass(frozen=True, eq=False)
class Block:
    """Independent noise of one scale, and the operator that carries it to the cells."""

    estimator: Operator
    noise: DiscreteLaplace

    @property
    def steepness(self) -> float:
        """The largest fourth cumulant a unit of variance that any range feels."""
        return self.estimator.largest_coefficient**2 * self.noise.fourth_cumulant / self.noise.variance


@dataclass(frozen=True, eq=False)
class NoiseModel:
    """x̃ = x + Σ M_t·η_t over the blocks t; with `centred`, every block corrected by least squares so that its total is
    exact.

    With g = M·Mᵀ·1 the estimate of a block M moves along g until its sum is right, and the variance of a query q falls
    by (q·g)²/(1·g). For a Kronecker product g is one too. Axes that are `apart` have an exact total for each of their
    cells, jointly: there the estimate moves along the g of the other axes, and for a product of p along them and q
    along the others the variance along p, whatever it is, multiplies what is left of that along q.
    """

    shape: tuple[int, ...]
    blocks: tuple[Block, ...]
    centred: bool = False
    apart: tuple[int, ...] = ()

    @cached_property
    def total_shares(self) -> tuple[tuple[Floats, ...], ...]:
        """For every block g along every axis: where a missing or surplus total is put."""
        return tuple(
            tuple(factor.forward(factor.transpose(np.ones(factor.rows))) for factor in block.estimator.factors)
            for block in self.blocks
        )

    def error_terms(self, workload: Workload, domain: Domain) -> list[float]:
        """For every block, the mean over the workload of the squared coefficients: times the noise's variance, the
        error.
        """
        return workload.error_terms(self, domain)

    def product_terms(self, kinds: Sequence[AxisQueries]) -> list[float]:
        """For every block, the mean of the squared coefficients over all products of queries of one kind along every
        axis.
        """
        boxes = Part(Fraction(1), tuple(kinds)).boxes(self.shape)
        if boxes is not None:
            return self.range_terms(*boxes)
        if not self.centred:
            return [block.estimator.mean_square(kinds, self.shape) for block in self.blocks]
        means = []
        for t in range(len(self.blocks)):
            along = zip(*(self._known_total(t, i, kind) for i, kind in enumerate(kinds)), strict=True)
            means.append(float(np.mean(product_less(*along))))
        return means

    def _known_total(self, block: int, axis: int, kind: AxisQueries) -> tuple[Floats, ...]:
        """As `_less_total`, in the mean over the queries of a kind; for queries in step for each of them."""
        if (block, axis, kind) not in self._means:
            factor, g = self.blocks[block].estimator.factors[axis], self.total_shares[block][axis]
            ends = kind.listed(factor.rows)
            if ends is not None:
                second = factor.range_moments(*ends)[0]
                apart = (second, second, np.zeros_like(second))
                found = apart if axis in self.apart else _less_total(factor, g, second, *ends)
                found = found if kind.steps is not None else tuple(np.array(part.mean()) for part in found)
            else:
                mean = np.array(kind.mean_variance(factor))
                saved = mean if axis in self.apart else kind.mean_square(g) / g.sum()
                found = (mean, saved, mean - saved)
            self._means[block, axis, kind] = found
        return self._means[block, axis, kind]

    @cached_property
    def _means(self) -> dict[tuple[int, int, AxisQueries], tuple[Floats, ...]]:
        """What was computed before: the parts of a union share kinds."""
        return {}

    def range_terms(self, low: Floats, high: Floats) -> list[float]:
        """The same over boxes in cell coordinates."""
        return [float(second.mean()) for second, _ in self._range_moments(low, high)]

    def query_terms(self, matrix: Any) -> list[float]:
        """The same over the rows of a sparse matrix."""
        rows, size = matrix.shape
        totals = [0.0] * len(self.blocks)
        step = max(1, CHUNK // size)
        for start in range(0, rows, step):
            dense = np.asarray(matrix[start : start + step].todense())
            for i, coefficients in enumerate(self.coefficients(dense)):
                totals[i] += float((coefficients**2).sum())
        return [total / rows for total in totals]

    def alike(self, low: Floats, high: Floats) -> tuple[Integers, Integers] | None:
        """(one range for each kind, the kind of every range) where ranges of one kind feel all noise alike by rule;
        None where no rule says.
        """
        return self.blocks[0].estimator.alike(low, high) if len(self.blocks) == 1 and not self.centred else None

    @property
    def largest_coefficient(self) -> float:
        """No noise of any block moves a range by more than this many times its own size."""
        return max((block.estimator.largest_coefficient for block in self.blocks), default=0.0)

    @property
    def steepest(self) -> float:
        """The largest fourth cumulant a unit of variance: Σ c⁴κ₄ ≤ max c²·κ₄/σ² · Σ c²σ², block by block."""
        return max((block.steepness for block in self.blocks), default=0.0)

    @property
    def steepest_tails(self) -> float:
        """The same of the continuous Laplace noise whose tails the discrete one has."""
        return max(6 * (block.estimator.largest_coefficient * block.noise.scale) ** 2 for block in self.blocks)

    @property
    def fourth_is_exact(self) -> bool:
        """Whether the fourth cumulants of ranges are themselves, and no guess."""
        return not self.centred and all(block.estimator.fourth_is_exact for block in self.blocks)

    @property
    def keeps_integers(self) -> bool:
        """Whether ranges of whole cells are answered in whole numbers."""
        return not self.centred and all(block.estimator.keeps_integers for block in self.blocks)

    @property
    def is_listed(self) -> bool:
        """Whether some block was written out when it was built, cell by cell."""
        return any(block.estimator.is_listed for block in self.blocks)

    @cached_property
    def cell_kinds(self) -> NDArray[np.int64]:
        """A number for every cell, in the domain's shape: cells with the same one feel every block alike."""
        kinds = np.zeros(self.shape, dtype=np.int64)
        for t, block in enumerate(self.blocks):
            felt = block.estimator.cell_kinds(self.shape, self.total_shares[t] if self.centred else None)
            kinds = kinds * (int(felt.max()) + 1) + felt
            kinds = np.unique(kinds, return_inverse=True)[1].reshape(self.shape)  # small numbers again
        return kinds

    def expected_error(self, workload: Workload, domain: Domain) -> float:
        """The mean squared error of an answer, averaged over the workload."""
        return self._error(self.error_terms(workload, domain))

    def error_of(self, kinds: Sequence[AxisQueries]) -> float:
        """The same, averaged over all products of queries of one kind along every axis."""
        return self._error(self.product_terms(kinds))

    def _error(self, terms: Sequence[float]) -> float:
        return sum(term * block.noise.variance for term, block in zip(terms, self.blocks, strict=True))

    def coefficients(self, q: Floats) -> Iterator[Floats]:
        """Lᵀ·q block by block, for queries in the rows of q, with the correction of a centred model."""
        for i, block in enumerate(self.blocks):
            moved = q
            if self.centred:
                moved = self._less_totals(q, self.total_shares[i])
            yield block.estimator.transpose(moved)

    def _less_totals(self, q: Floats, shares: tuple[Floats, ...]) -> Floats:
        """q less what the exact totals say of it."""
        apart = [1 + i for i in self.apart]
        table = np.moveaxis(q.reshape(len(q), *self.shape), apart, range(1, 1 + len(apart)))
        own = [g for i, g in enumerate(shares) if i not in self.apart]
        g = reduce(np.multiply.outer, own).ravel()
        rows = table.reshape(*table.shape[: 1 + len(apart)], -1)
        moved = rows - (rows @ g / g.sum())[..., None]
        moved[(rows == rows[..., :1]).all(axis=-1)] = 0.0  # a multiple of the total: nothing is left, not even rounding
        return np.moveaxis(moved.reshape(table.shape), range(1, 1 + len(apart)), apart).reshape(q.shape)

    def query_cumulants(self, q: Floats) -> tuple[Floats, Floats]:
        """(variance, fourth cumulant) of the answers to arbitrary queries, one row each."""
        variance, fourth = np.zeros(len(q)), np.zeros(len(q))
        for block, coefficients in zip(self.blocks, self.coefficients(q), strict=True):
            variance += block.noise.variance * (coefficients**2).sum(axis=-1)
            fourth += block.noise.fourth_cumulant * (coefficients**4).sum(axis=-1)
        return variance, fourth

    def range_cumulants(self, low: Floats, high: Floats, *, continuous: bool = False) -> tuple[Floats, Floats]:
        """(variance, fourth cumulant) of the answers to many ranges, given in cell coordinates of shape (ranges,
        axes). With `continuous`, of the Laplace noise whose tails the discrete one has: where noise is zero most of the
        time its variance says little about them.
        """
        variance, fourth = np.zeros(len(low)), np.zeros(len(low))
        for block, (second, power) in zip(self.blocks, self._range_moments(low, high), strict=True):
            scale = block.noise.scale
            variance += (2 * scale**2 if continuous else block.noise.variance) * second
            fourth += (12 * scale**4 if continuous else block.noise.fourth_cumulant) * power
        return variance, fourth

    def _range_moments(self, low: Floats, high: Floats) -> Iterator[tuple[Floats, Floats]]:
        for t, block in enumerate(self.blocks):
            if not self.centred:
                yield block.estimator.box_moments(self.shape, low, high)
                continue
            factors = block.estimator.factors
            moments = [f.range_moments(low[:, i], high[:, i]) for i, f in enumerate(factors)]
            before = reduce(np.multiply, [m[0] for m in moments])
            fourth = reduce(np.multiply, [m[1] for m in moments])
            along = zip(factors, self.total_shares[t], moments, low.T, high.T, strict=True)
            parts = [
                (m[0], m[0], np.zeros_like(m[0])) if i in self.apart else _less_total(f, g, m[0], a, b)
                for i, (f, g, m, a, b) in enumerate(along)
            ]
            second = product_less(*([part[k] for part in parts] for k in range(3)))
            # A guess: the correction spreads over all cells, and hardly bends the shape. Where that matters,
            # intervals go by the largest coefficient.
            fourth = fourth * np.divide(second, before, out=np.zeros_like(before), where=before > 0) ** 2
            yield second, fourth

    def _share(self, block: int, low: Floats, high: Floats) -> Floats:
        """q·g / 1·g of every range: how much of a missing total falls into it."""
        total_shares = enumerate(self.total_shares[block])
        return math.prod((_share(g, low[:, i], high[:, i]) for i, g in total_shares), start=np.ones(len(low)))

    def cell_variances(self) -> Floats:
        """The variance of every single cell where all blocks are products along the axes: no two need be alike."""
        variance = np.zeros(self.shape)
        for t, block in enumerate(self.blocks):
            parts: list[tuple[Floats, ...]] = []
            for i, factor in enumerate(block.estimator.factors):
                cell = np.arange(factor.rows, dtype=np.float64)
                second = factor.range_moments(cell, cell + 1)[0]
                if self.centred and i in self.apart:
                    parts.append((second, second, np.zeros_like(second)))
                elif self.centred:
                    parts.append(_less_total(factor, self.total_shares[t][i], second, cell, cell + 1))
                else:
                    parts.append((second, np.zeros_like(second), second))
            spread = [[_along(part[k], i, len(parts)) for i, part in enumerate(parts)] for k in range(3)]
            variance += block.noise.variance * product_less(*spread)
        return variance

    def range_groups(self, low: Floats, high: Floats) -> list[tuple[Floats, Floats, DiscreteLaplace]] | None:
        """For every block (coefficients, how often each occurs, noise) of many ranges: the law of their answers, whole.

        None where a range is felt by too many noises in too many ways for such a list.
        """
        groups = []
        for t, block in enumerate(self.blocks):
            if self.centred and (self.apart or not block.estimator.is_identity):
                return None
            listed = block.estimator.box_terms(self.shape, low, high)
            if listed is None:
                return None
            weights, counts = listed
            if self.centred:
                counts = np.where(weights == 0, 0.0, counts)  # a cell that is not there lies outside
                outside = math.prod(self.shape) - counts.sum(axis=-1, keepdims=True)
                share = self._share(t, low, high)[:, None]
                weights = np.concatenate([weights, np.zeros((len(low), 1))], axis=-1) - share
                counts = np.concatenate([counts, outside], axis=-1)
            groups.append((weights, counts.astype(np.float64), block.noise))
        return groups


def product_less(first: Sequence[Floats], second: Sequence[Floats], differences: Sequence[Floats]) -> Floats:
    """∏ a_i - ∏ b_i from the factors and their differences a_i - b_i ≥ 0: a sum of products, in which nothing cancels.

    By `∏ a_i - ∏ b_i = Σ_i b_1 ⋯ b_{i-1}·(a_i - b_i)·a_{i+1} ⋯ a_d`.
    """
    terms = [
        math.prod([*second[:i], np.maximum(difference, 0.0), *first[i + 1 :]])
        for i, difference in enumerate(differences)
    ]
    return np.asarray(sum(terms[1:], terms[0]), dtype=np.float64)


def _less_total(factor: Estimator, g: Floats, second: Floats, low: Floats, high: Floats) -> tuple[Floats, ...]:
    """Along one axis: (the variance of every range, what a known total takes off it, what is left).

    A variance is compared with what the total takes off the very same range. The whole axis is known exactly, and so
    is everything where one noise moves all cells. Where so little is left that rounding could be part of it, the range
    is centred cell by cell before anything is squared.
    """
    share = _share(g, low, high)
    saved = share**2 * g.sum()
    left = second - saved
    known = ((low <= 0) & (high >= factor.rows)) | (low == high) | (factor.cols == 1)
    doubtful = np.flatnonzero((left < CANCELLED * second) & ~known)
    step = max(1, CHUNK // factor.rows)
    for some in (doubtful[start : start + step] for start in range(0, len(doubtful), step)):
        moved = range_weights(factor.rows, low[some], high[some]) - share[some, None]
        left[some] = (factor.transpose(moved) ** 2).sum(axis=-1)
    return second, np.where(known, second, saved), np.where(known, 0.0, left)


def _share(g: Floats, low: Floats, high: Floats) -> Floats:
    sums = np.concatenate([[0.0], np.cumsum(g)])
    at = np.arange(len(sums))
    return np.asarray((np.interp(high, at, sums) - np.interp(low, at, sums)) / sums[-1])


def _along(values: Floats, axis: int, axes: int) -> Floats:
    return values.reshape([-1 if i == axis else 1 for i in range(axes)])
