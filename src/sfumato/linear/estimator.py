"""What an operator says of itself where it carries noise to cells: its rows are cells, its columns are noises.

A query q feels noise j with the coefficient (Mᵀq)_j. Everything that errors and intervals need is a sum over these
coefficients, and every operator shortens it as its structure allows. What is said here without structure holds for any
matrix; an operator that knows better overrides it.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from functools import cached_property, reduce
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sfumato._types import Floats, Integers
from sfumato.errors import TooLarge
from sfumato.linear.groups import runs_of, some_groups
from sfumato.linear.queries import joint_gram

if TYPE_CHECKING:
    from sfumato.linear.operator import Operator
    from sfumato.linear.queries import AllOfAKind, Queries

Array = NDArray[Any]

# Numbers held at a time while coefficients are written out.
CHUNK = 1 << 22
# Above this many entries an operator is not written out.
LARGEST_EXPLICIT = 60_000_000
# Entries of groups that are written out one by one, and groups that are in any case.
GROUPS_WRITTEN = 1 << 26
FEW_GROUPS = 16


class Estimator(ABC):
    """A matrix M from noises to cells.

    Ranges lie along one axis, in cell coordinates; a cell that is cut counts in proportion. Boxes lie in a domain of
    some shape, of which M has all cells as rows; their arrays have the shape (boxes, axes).
    """

    rows: int
    cols: int

    @property
    def key(self) -> tuple[object, ...] | None:
        """What tells this operator from others, for looking up what was computed for it before; None: nothing short."""
        return None

    @abstractmethod
    def forward(self, x: Array) -> Array:
        """A·x along the last axis."""

    @abstractmethod
    def transpose(self, y: Array) -> Array:
        """Aᵀ·y along the last axis."""

    @property
    def factors(self) -> tuple[Estimator, ...]:
        """The operators whose Kronecker product this one is, one for each axis."""
        return (self,)

    # What intervals ask.

    @property
    def largest_coefficient(self) -> float:
        """No noise moves any range by more than this many times its own size."""
        return largest_in_ranges(self)

    @property
    def largest_of_any(self) -> float | None:
        """The same for any query of which every cell has a weight between 0 and 1, where it is known."""
        return None

    @property
    def fourth_is_exact(self) -> bool:
        """Whether `range_moments` gives Σ c⁴ itself, and no guess of it."""
        return True

    @property
    def keeps_integers(self) -> bool:
        """Whether whole noises move ranges of whole cells by whole numbers."""
        return False

    @property
    def is_identity(self) -> bool:
        """Whether every cell has a noise of its own and feels no other."""
        return False

    @property
    def is_listed(self) -> bool:
        """Whether it was written out when it was built, so that its coefficients cost no more."""
        return False

    # Along one axis.

    def range_terms(self, low: Floats, high: Floats) -> tuple[Array, Array] | None:
        """Mᵀ·r for many ranges r at once, as (coefficients, how often each occurs), each of shape (ranges, terms).

        A range runs from cell coordinate `low` to `high`. Coefficients of zero may be there. None where a range is felt
        by too many noises for such a list.
        """
        del low, high
        return None

    def range_moments(self, low: Floats, high: Floats) -> tuple[Array, Array]:
        """(Σ c², Σ c⁴) over the coefficients c of many ranges: what variance and kurtosis of an answer need."""
        terms = self.range_terms(low, high)
        if terms is not None:
            coefficients, counts = terms
            return (counts * coefficients**2).sum(axis=-1), (counts * coefficients**4).sum(axis=-1)
        return self._written_moments((self.rows,), low[:, None], high[:, None])

    def mean_variance(self, queries: AllOfAKind) -> float:
        """The average over all queries q of a kind along the axis of ‖Mᵀq‖², for noise of variance one."""
        return queries.measured(self)

    def group_terms(self, of: Integers) -> tuple[Array, Array] | None:
        """Mᵀ·q of the groups 0, 1, … as `range_terms` lists it; None where it is not known at once."""
        del of
        return None

    def group_variances(self, of: Integers, chosen: Integers | None = None) -> Floats:
        """‖Mᵀq‖² of the chosen ones of the groups 0, 1, … into which `of` puts the rows. Without a choice of all, where
        each is a run of rows or they are few enough to be written out; else of some, spread evenly.
        """
        terms = self.group_terms(of)
        if terms is not None:
            second = (terms[1] * terms[0] ** 2).sum(axis=-1)
            return second if chosen is None else second[chosen]
        start, stop = runs_of(of)
        count = int(of.max()) + 1
        if len(start) == count:
            some = np.argsort(of[start])[some_groups(count, CHUNK >> 4) if chosen is None else chosen]
            return self.range_moments(start[some].astype(np.float64), stop[some].astype(np.float64))[0]
        if chosen is None:
            chosen = some_groups(count, max(FEW_GROUPS, GROUPS_WRITTEN // max(self.rows, self.cols)))
        found, step = np.empty(len(chosen)), max(1, CHUNK // max(self.rows, self.cols))
        for begin in range(0, len(chosen), step):
            part = chosen[begin : begin + step]
            found[begin : begin + step] = (self.transpose((of == part[:, None]).astype(np.float64)) ** 2).sum(axis=-1)
        return found

    def mean_variance_at(self, queries: AllOfAKind, n: int, cells: NDArray[np.int64]) -> float | None:
        """The same where the rows are some cells of an axis of n, in closed form; None where there is none."""
        del queries, n, cells
        return None

    def spread_shapes(self, widths: Floats) -> tuple[Floats, Floats, Floats] | None:
        """For every column c of M spread evenly over bins of these widths, over all cells: (Σ c², Σ S, Σ S²), S being
        the running sums of c. None where that is not known in closed form.
        """
        del widths
        return None

    # In a domain of some shape.

    def box_terms(self, shape: tuple[int, ...], low: Floats, high: Floats) -> tuple[Array, Array] | None:
        """As `range_terms`, for boxes: products of what the factors list."""
        if len(self.factors) < len(shape):
            return None
        weights, counts = np.ones((len(low), 1)), np.ones((len(low), 1))
        for i, factor in enumerate(self.factors):
            terms = factor.range_terms(low[:, i], high[:, i])
            if terms is None:
                return None
            coefficient, often = terms[0], np.broadcast_to(terms[1], terms[0].shape)
            weights = (weights[:, :, None] * coefficient[:, None, :]).reshape(len(low), -1)
            counts = (counts[:, :, None] * often[:, None, :]).reshape(len(low), -1)
        return weights, counts

    def box_moments(self, shape: tuple[int, ...], low: Floats, high: Floats) -> tuple[Array, Array]:
        """As `range_moments`, for boxes: products over the factors, or written out where there are no such factors."""
        if len(self.factors) < len(shape):
            return self._written_moments(shape, low, high)
        moments = [factor.range_moments(low[:, i], high[:, i]) for i, factor in enumerate(self.factors)]
        return reduce(np.multiply, [m[0] for m in moments]), reduce(np.multiply, [m[1] for m in moments])

    def alike(self, low: Floats, high: Floats) -> tuple[NDArray[np.int64], NDArray[np.int64]] | None:
        """(one box for each kind, the kind of every box) where boxes of one kind are felt alike by rule; None: no rule
        says.
        """
        del low, high
        return None

    def grouped(self, axis: int, of: NDArray[np.int64]) -> Operator | None:
        """The same with one row a group along an axis of a domain, where that has a structure of its own; None
        elsewhere.
        """
        del axis, of
        return None

    def grouped_moments(self, axis: int, of: Integers, low: Floats, high: Floats) -> tuple[Array, Array] | None:
        """As `box_moments`, where along one axis the groups 0, 1, … into which `of` puts its cells stand in their
        place; None: nothing shorter than writing them out.
        """
        del axis, of, low, high
        return None

    def mean_square(self, kinds: Sequence[Queries], shape: tuple[int, ...]) -> float:
        """The average of ‖Mᵀq‖² over the products q of one query along every axis, of the kinds that are given."""
        if len(self.factors) == len(shape):
            return float(np.mean(math.prod(self._felt(axis, kind) for axis, kind in enumerate(kinds))))
        _refuse_large(self)
        felt = self.transpose(np.eye(self.rows))
        return float(np.einsum("ij,ij->", felt, joint_gram(kinds, shape) @ felt))

    def _felt(self, axis: int, kind: Queries) -> float | Floats:
        """The variances of the queries along one axis: computed once, since the parts of a union share kinds."""
        if (axis, kind) not in self._felt_before:
            self._felt_before[axis, kind] = kind.variances(self.factors[axis])
        return self._felt_before[axis, kind]

    @cached_property
    def _felt_before(self) -> dict[tuple[int, Queries], float | Floats]:
        return {}

    def cell_kinds(self, shape: tuple[int, ...], total_shares: tuple[Floats, ...] | None) -> NDArray[np.int64]:
        """A number for every cell, in the domain's shape: cells with the same one feel the noise alike.

        `total_shares` is where a missing total is put along every axis, if one is.
        """
        if len(self.factors) < len(shape):
            return np.arange(math.prod(shape)).reshape(shape)  # every cell is a case of its own
        kinds = np.zeros((1,) * len(shape), dtype=np.int64)
        for axis, factor in enumerate(self.factors):
            alike, count = _alike(factor, total_shares[axis] if total_shares else None)
            kinds = kinds * count + np.expand_dims(alike, [i for i in range(len(shape)) if i != axis])
        return kinds

    def _written_moments(self, shape: tuple[int, ...], low: Floats, high: Floats) -> tuple[Array, Array]:
        second, fourth = np.empty(len(low)), np.empty(len(low))
        step = max(1, CHUNK // max(self.rows, self.cols, 1))
        for start in range(0, len(low), step):
            part = slice(start, start + step)
            squares = self.transpose(box_weights(shape, low[part], high[part])) ** 2
            second[part], fourth[part] = squares.sum(axis=-1), (squares**2).sum(axis=-1)
        return second, fourth


def range_weights(n: int, low: ArrayLike, high: ArrayLike) -> Floats:
    """The share of each of n cells that lies in [low, high), one row a range."""
    cell = np.arange(n)
    lower = np.asarray(low, dtype=np.float64)[..., None]
    upper = np.asarray(high, dtype=np.float64)[..., None]
    weights: Floats = np.clip(np.minimum(upper, cell + 1) - np.maximum(lower, cell), 0.0, 1.0)
    return weights


def box_weights(shape: tuple[int, ...], low: Floats, high: Floats) -> Floats:
    """The share of every cell in boxes of cell coordinates, one row a box."""
    weights = np.ones((len(low), 1))
    for axis, n in enumerate(shape):
        along = range_weights(n, low[:, axis], high[:, axis])
        weights = (weights[:, :, None] * along[:, None, :]).reshape(len(low), -1)
    return weights


def largest_in_ranges(estimator: Estimator) -> float:
    """A bound on the coefficients of any query whose weights lie between 0 and 1: the larger of the sums of a column's
    positive and of its negative entries.
    """
    _refuse_large(estimator)
    largest, step = 0.0, max(1, CHUNK // max(estimator.rows, estimator.cols, 1))
    for start in range(0, estimator.cols, step):
        unit = np.eye(min(step, estimator.cols - start), estimator.cols, k=start)
        columns = np.asarray(estimator.forward(unit), dtype=np.float64)
        positive, negative = np.maximum(columns, 0.0).sum(axis=-1), np.maximum(-columns, 0.0).sum(axis=-1)
        largest = max(largest, float(positive.max()), float(negative.max()))
    return largest


def _refuse_large(estimator: Estimator) -> None:
    if estimator.rows * estimator.cols > LARGEST_EXPLICIT:
        raise TooLarge(
            f"{type(estimator).__name__} of {estimator.rows} × {estimator.cols} entries is too large to be written out "
            f"(at most {LARGEST_EXPLICIT:,})."
        )


def _alike(factor: Estimator, pull: Floats | None) -> tuple[NDArray[np.int64], int]:
    """(the kind of each cell along one axis, how many kinds there are), told by the moments of what it feels."""
    cell = np.arange(factor.rows, dtype=np.float64)
    signs = [*factor.range_moments(cell, cell + 1), np.zeros_like(cell) if pull is None else pull]
    # Beside the largest: weights may be so great that all moments are tiny.
    signs = [sign / max(float(np.abs(sign).max()), 1e-300) for sign in signs]
    kinds, alike = np.unique(np.round(np.stack(signs, axis=-1), 12), axis=0, return_inverse=True)
    return alike.ravel(), len(kinds)
