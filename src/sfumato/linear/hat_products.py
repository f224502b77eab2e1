"""Products of hats and cells along the axes, weighed: sums under hats along some axes, cell by cell along the others.

Along every axis there are the identity I and hats H (`HatAxis`). The strategy has the rows `w_S·⊗_i B_i` for every set
S of axes, B_i being H where i is in S and I elsewhere, and w_S depends on how many axes S has: on a grid the cells,
hats along one axis and the other, and hats of both. Since I and HᵀH commute, so do all parts of AᵀA, whose eigenvalues
are `Σ_S w_S²·∏_{i ∈ S} λ_i` over the products of the axes' eigenvectors. There are as many that differ from w_∅² as
there are hats, and least squares and expected errors need no others.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from functools import cached_property, reduce
from itertools import combinations, product
from typing import Any

import numpy as np
import scipy
from numpy.typing import NDArray

from sfumato._types import Floats, Integers
from sfumato.errors import InvalidInput, TooLarge
from sfumato.linear.hat_axis import HatAxis, shared_hats
from sfumato.linear.operator import Array, Operator
from sfumato.linear.pairs import PairTypes
from sfumato.linear.queries import averaged

Axes = tuple[int, ...]

# What is left of a variance where rounding could be all of it.
_ROUNDING = 1e-10
# Up to so many cells each may be a case of its own.
FEW_CELLS = 4096
# Products of hats, of which each has an eigenvector, and their largest entry.
MOST_HATS, LARGEST_ENTRY = 1 << 22, 1 << 40
# Numbers held at a time.
CHUNK = 1 << 22


class HatProducts(Operator):
    """`hats` are the intervals between knots along every axis (0: cells alone), `weights` those of the rows with hats
    along 0, 1, 2, … axes, whole numbers of which all but the first may be zero.
    """

    def __init__(self, shape: Sequence[int], hats: Sequence[int], height: int, weights: Sequence[int]) -> None:
        self.shape = tuple(shape)
        made = {axis: HatAxis(*axis, height) for axis in zip(self.shape, hats, strict=True)}
        self.axes = tuple(made[axis] for axis in zip(self.shape, hats, strict=True))
        self.weights, self.height = tuple(int(w) for w in weights), height
        hatted = [i for i, axis in enumerate(self.axes) if axis.count]
        if len(self.weights) != len(hatted) + 1 or self.weights[0] < 1 or min(self.weights) < 0:
            raise InvalidInput(
                f"weights={list(self.weights)} must be whole numbers, the first at least 1, for the cells and for "
                f"products with hats along 1 to {len(hatted)} axes. Nothing was drawn or recorded."
            )
        entry = max(w * height**k for k, w in enumerate(self.weights))
        if math.prod(axis.rows + 1 for axis in self.axes) > MOST_HATS or entry > LARGEST_ENTRY:
            raise TooLarge(
                f"hats={list(hats)}, height={height}, weights={list(self.weights)}: at most {MOST_HATS:,} products of "
                f"hats and entries of {LARGEST_ENTRY:,} are taken. Nothing was drawn or recorded. Use fewer hats."
            )
        every = [s for k in range(len(hatted) + 1) for s in combinations(hatted, k)]
        self.sets: tuple[Axes, ...] = tuple(s for s in every if self.weights[len(s)])
        self._sizes = [math.prod(self._rows_along(s)) for s in self.sets]
        self.rows, self.cols = sum(self._sizes), math.prod(self.shape)

    def _rows_along(self, hatted: Axes) -> list[int]:
        return [axis.rows if i in hatted else axis.cols for i, axis in enumerate(self.axes)]

    def forward(self, x: Array) -> Array:
        """The sums of every set of axes, each times its weight."""
        lead, table = np.shape(x)[:-1], np.reshape(x, (*np.shape(x)[:-1], *self.shape))
        found = []
        for chosen in self.sets:
            part = table
            for i in chosen:
                part = _along(self.axes[i].forward, part, len(lead) + i)
            found.append(self.weights[len(chosen)] * part.reshape(*lead, -1))
        return np.concatenate(found, axis=-1)

    def transpose(self, y: Array) -> Array:
        """Every cell receives the values of what it lies under."""
        lead, parts = np.shape(y)[:-1], np.split(y, np.cumsum(self._sizes)[:-1], axis=-1)
        total: Any = 0
        for chosen, part in zip(self.sets, parts, strict=True):
            table = part.reshape(*lead, *self._rows_along(chosen))
            for i in chosen:
                table = _along(self.axes[i].transpose, table, len(lead) + i)
            total = total + self.weights[len(chosen)] * table
        return np.asarray(total).reshape(*lead, self.cols)

    def sparse(self) -> scipy.sparse.csc_matrix:
        """Written out: a column has two entries for every axis with hats, multiplied."""
        parts = []
        for chosen in self.sets:
            ones = [scipy.sparse.eye_array(n, dtype=np.int64, format="csr") for n in self.shape]
            factors = [self.axes[i].matrix if i in chosen else one for i, one in enumerate(ones)]
            parts.append(self.weights[len(chosen)] * reduce(scipy.sparse.kron, factors))
        return scipy.sparse.csc_matrix(scipy.sparse.vstack(parts))

    # How far two columns are apart.

    @property
    def largest_norm(self) -> int:
        """Every cell gives away the same."""
        return sum(self.weights[len(s)] * self.height ** len(s) for s in self.sets)

    @property
    def largest_entry(self) -> int:
        """No more than a cell gives to one set of axes."""
        return max(self.weights[len(s)] * self.height ** len(s) for s in self.sets)

    def column_norms(self) -> Array:
        """All alike."""
        return np.broadcast_to(np.int64(self.largest_norm), (self.cols,))

    @property
    def chains(self) -> tuple[Operator, ...]:
        """The hats along every axis, which mark cells that are the same."""
        return self.axes

    def between(self, types: Sequence[PairTypes]) -> int:
        """Twice what the columns have, less what they share."""
        return self.farthest_of([types])

    def farthest_of(self, kinds: Iterable[Sequence[PairTypes]]) -> int:
        """From the least that is shared along every set of axes."""
        shared = least_shared(kinds)
        return max((2 * (self.largest_norm - self.kept(c, least)) for c, least in shared.items()), default=0)

    def kept(self, changed: Axes, least: int) -> int:
        """What two columns share of all sets of axes that hold those which change, where they share `least` of the
        products of the hats along these.
        """
        sets = [s for s in self.sets if set(changed) <= set(s)]
        return sum(self.weights[len(s)] * self.height ** (len(s) - len(changed)) * least for s in sets)

    # Least squares.

    @cached_property
    def precisions(self) -> Floats:
        """The eigenvalues of AᵀA; along every axis with hats those of its vectors, and last that of all others."""
        total: Floats = np.zeros(())
        for chosen in self.sets:
            weight = float(self.weights[len(chosen)] ** 2)
            part: Floats = np.full((), weight)
            for i, axis in enumerate(self.axes):
                own = np.append(axis.spectrum[1], 0.0)
                part = np.multiply.outer(part, own if i in chosen else np.ones_like(own))
            total = total + part
        return total

    @cached_property
    def _gains(self) -> list[tuple[Axes, Floats]]:
        """For every set of axes what the eigenvectors along them add to those of fewer: an inclusion and exclusion."""
        gains = []
        hatted = [i for i, axis in enumerate(self.axes) if axis.count]
        for k in range(len(hatted) + 1):
            for chosen in combinations(hatted, k):
                part = 1.0 / self.precisions
                for i in range(len(self.axes)):
                    inner, last = np.take(part, range(part.shape[i] - 1), axis=i), np.take(part, [-1], axis=i)
                    part = inner - last if i in chosen else last
                gains.append((chosen, part))
        return gains

    def solved(self, x: Array) -> Floats:
        """(AᵀA)⁻¹·x."""
        lead = np.shape(x)[:-1]
        table = np.asarray(x, dtype=np.float64).reshape(*lead, *self.shape)
        total = np.zeros_like(table)
        for chosen, gain in self._gains:
            part = table
            for i in chosen:
                part = _along(lambda a, v=self.axes[i].spectrum[0]: a @ v.T, part, len(lead) + i)
            part = part * gain
            for i in chosen:
                part = _along(lambda a, v=self.axes[i].spectrum[0]: a @ v, part, len(lead) + i)
            total += part
        return total.reshape(np.shape(x))

    def pinv(self, y: Array) -> Array:
        """Least squares."""
        return self.solved(self.transpose(np.asarray(y, dtype=np.float64)))

    def pinv_transpose(self, q: Array) -> Array:
        """The same in reverse."""
        return self.forward(self.solved(q))


def least_shared(kinds: Iterable[Sequence[PairTypes]]) -> dict[Axes, int]:
    """For every set of axes along which two cells may differ at once, the least that their columns share of the
    products of the hats along these: `Σ min(∏ a, ∏ b)` over the products, of all pairs of the given kinds.
    """
    seen: dict[int, tuple[bool, Integers]] = {}
    found: dict[Axes, int] = {}
    for types in reversed(list(kinds)):  # the longest moves come last: they leave little to do for the others
        for kind in types:
            if id(kind) not in seen:
                seen[id(kind)] = shared_hats(kind)
        along = [seen[id(kind)] for kind in types]
        changes = [[c for c, there in ((False, same), (True, len(pairs) > 0)) if there] for same, pairs in along]
        for choice in product(*changes):
            changed = tuple(i for i, here in enumerate(choice) if here)
            if not changed:
                continue
            pairs = [along[i][1] for i in changed]
            # Σ min(∏ a, ∏ b) is at least ∏ Σ min(a, b).
            bound = math.prod(int(p.min(axis=2).sum(axis=1).min()) for p in pairs)
            if changed not in found or bound < found[changed]:
                found[changed] = min(found.get(changed, 1 << 62), _smallest(pairs))
    return found


def _smallest(pairs: Sequence[Integers]) -> int:
    """Over all combinations of one type for each axis."""
    ones = others = np.ones((1, 1), dtype=np.int64)  # combinations × products of hats
    for pair in pairs:
        ones, others = (
            np.einsum("ck,tl->ctkl", before, pair[:, :, side]).reshape(len(before) * len(pair), -1)
            for side, before in enumerate((ones, others))
        )
    return int(np.minimum(ones, others).sum(axis=1).min())


class HatProductEstimator(Operator):
    """A⁺ for products of hats; where the total is known, least squares under it.

    With g = (AᵀA)⁻¹·1 estimates then move along g until their sum is right, and a query q feels noise as
    `q - 1·(q·g)/(1·g)` would.
    """

    def __init__(self, strategy: HatProducts, *, total_known: bool) -> None:
        self.strategy, self.total_known = strategy, total_known
        self.rows, self.cols = strategy.cols, strategy.rows

    @cached_property
    def total_share(self) -> Floats:
        """g: where a missing total is put."""
        return self.strategy.solved(np.ones(self.rows))

    def forward(self, x: Array) -> Array:
        """A⁺·x, and nothing added to a known total."""
        found = self.strategy.pinv(x)
        if self.total_known:
            found -= (found.sum(axis=-1, keepdims=True) / self.total_share.sum()) * self.total_share
        return found

    def transpose(self, y: Array) -> Array:
        """How strongly a query feels every row."""
        asked = np.asarray(y, dtype=np.float64)
        if self.total_known:
            asked = asked - ((asked @ self.total_share) / self.total_share.sum())[..., None]
        return self.strategy.pinv_transpose(asked)

    def inverts(self) -> Operator:
        """The products."""
        return self.strategy

    fourth_is_exact = False

    @property
    def largest_coefficient(self) -> float:
        """More than any noise counts in any range: what a row tells of it lies between zero and one over the weight
        that a cell gives to its set of axes, but for overshoot beside the ends, which is far less than once that.
        """
        own = [self.strategy.weights[len(s)] * self.strategy.height ** len(s) for s in self.strategy.sets]
        return 2.0 / min(own)

    def range_moments(self, low: Floats, high: Floats) -> tuple[Floats, Floats]:
        """On a line those of boxes."""
        return self.box_moments(self.strategy.shape, low[:, None], high[:, None])

    def box_moments(self, shape: tuple[int, ...], low: Floats, high: Floats) -> tuple[Floats, Floats]:
        """(Σ c², and a guess of the fourth power) over the eigenvectors.

        The fourth moment would need every coefficient: a seventh of the squared second one is its order of magnitude,
        no bound, and intervals do not rely on it.
        """
        del shape
        second = np.empty(len(low))
        step = max(1, CHUNK // (1.0 / self.strategy.precisions).size)
        for start in range(0, len(low), step):
            part = slice(start, start + step)
            second[part] = self._variances(low[part], high[part])
        return second, second**2 / 7

    def _variances(self, low: Floats, high: Floats) -> Floats:
        squares, sums = [], []
        for i, axis in enumerate(self.strategy.axes):
            along, norm = axis.of_ranges(low[:, i], high[:, i])
            rest = np.maximum(norm - (along**2).sum(axis=1), 0.0)
            squares.append(np.concatenate([along**2, rest[:, None]], axis=1))
            ones = axis.spectrum[0].sum(axis=1)
            whole = np.zeros(len(low)) if axis.count else high[:, i] - low[:, i]
            sums.append(np.concatenate([along * ones, whole[:, None]], axis=1))
        inverse = 1.0 / self.strategy.precisions
        second = _combined(inverse, squares)
        if not self.total_known:
            return second
        left = second - _combined(inverse, sums) ** 2 / self.total_share.sum()
        return np.where(left > _ROUNDING * second, left, 0.0)

    def mean_square(self, kinds: Sequence[Any], shape: tuple[int, ...]) -> float:
        """The mean over products of queries, in closed form."""
        del shape
        return averaged(kinds, self._mean)

    def _mean(self, kinds: Sequence[Any]) -> float:
        along = [asked_of(axis, kind) for axis, kind in zip(self.strategy.axes, kinds, strict=True)]
        second = float(_combined(1.0 / self.strategy.precisions, [a[None] for a in along])[0])
        if not self.total_known:
            return second
        g = self.total_share.reshape(self.strategy.shape)
        for i, kind in enumerate(kinds):
            g = _along(kind.root, g, i)
        left = second - float((g**2).sum()) / self.total_share.sum()
        return left if left > _ROUNDING * second else 0.0

    def cell_kinds(self, shape: tuple[int, ...], total_shares: tuple[Floats, ...] | None) -> Integers:
        """By their variances, and where there are few cells every one by itself."""
        del total_shares
        if math.prod(shape) <= FEW_CELLS:
            return np.arange(math.prod(shape)).reshape(shape)
        inverse, g = 1.0 / self.strategy.precisions, self.total_share.reshape(shape)
        for i, axis in enumerate(self.strategy.axes):
            squares = axis.spectrum[0] ** 2
            felt = np.concatenate([squares, np.maximum(1 - squares.sum(axis=0, keepdims=True), 0.0)])
            inverse = _along(lambda a, f=felt: a @ f, inverse, i)
        variances = inverse - g**2 / g.sum() if self.total_known else inverse
        rounded = np.round(variances / variances.max(), 12)
        return np.unique(rounded, return_inverse=True)[1].reshape(shape)


def asked_of(axis: HatAxis, kind: Any) -> Floats:
    """The mean over the queries of a kind of the squares of what the eigenvectors of an axis have of them, and last of
    what all others have.
    """
    cell = np.arange(axis.cols)
    along = np.asarray(kind.mean_square(axis.spectrum[0])) if axis.count else np.zeros(0)
    whole = float(kind.together(axis.cols, cell, cell).sum())
    rest = whole - float(along.sum())
    return np.append(along, rest if rest > _ROUNDING * whole else 0.0)


def _combined(weights: Floats, along: Sequence[Floats]) -> Floats:
    """Σ_k weights_k·∏_i along_i[:, k_i] for every row."""
    left = np.tensordot(along[0], weights, axes=(1, 0))
    for part in along[1:]:
        left = np.einsum("rk...,rk->r...", left, part)
    return np.asarray(left)


def _along(function: Any, array: NDArray[Any], axis: int) -> NDArray[Any]:
    return np.asarray(np.moveaxis(function(np.moveaxis(array, axis, -1)), -1, axis))
