"""Exact sensitivities: the largest L1 distance between two columns over the edges of a policy.

For a Kronecker product and a stencil nothing is expanded. The distance of the columns (u₁, …, u_d) and (v₁, …, v_d)
of A₁ ⊗ … ⊗ A_d is `Σ |∏ aᵢ(uᵢ) - ∏ aᵢ(vᵢ)|` over all rows, and so depends on every factor only through the multiset
of pairs of values that its rows show (`PairTypes`). Along one axis an offset meets few such types (a hierarchy: one
for each level), every combination of types occurs somewhere on the grid, and the maximum over offsets and types is
exact.

Hats show too many types for that along two long axes. There the columns are bounded from what any two of them share
along every axis (`Operator.apart`): an upper bound, computed from what is built, and never above that of replace-one.

Everything is added in 64-bit integers, and a sum that wrapped would be a promise that is not kept. So the largest norm
of a column is bounded first, in Python's integers and before any way of computing is chosen: every sum below is one of
differences of two columns, at most twice that bound.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import InvalidInput, TooLarge
from sfumato.linear import Matrix, Operator, PairTypes
from sfumato.linear.operator import as_operator

if TYPE_CHECKING:
    from sfumato.policies.policy import Policy

LARGEST_PAIRWISE = 4_000_000_000
LARGEST_TYPES = 100_000_000
# Beyond so many entries of a factor the ways in which its columns differ are not written out along two axes.
FEW_ENTRIES = 1 << 11
# Columns with a larger norm than this are refused, so that sums over two of them stay far inside 64 bits.
LARGEST_NORM = 1 << 61
# Doubles hold every whole number up to here.
EXACT_IN_DOUBLES = 1 << 52


def sensitivity(policy: Policy, strategy: Operator | Any) -> int | float:
    """The largest change of strategy·x in L1 when one record changes along one edge: a whole number where the strategy
    is whole, else rounded up.
    """
    operator = as_operator(strategy)
    if operator.cols != policy.domain.size:
        raise InvalidInput(
            f"strategy has {operator.cols} columns, but the domain has {policy.domain.size} cells: one column a cell."
        )
    norm = operator.largest_norm
    doubles = isinstance(operator, Matrix) and isinstance(norm, float) and math.isfinite(2 * norm)
    if not doubles:  # which do not wrap
        _refuse_overflow(norm)
    found: list[Any] = [np.int64(0)]
    if policy.absent is not None and policy.absent.any():
        found.append(operator.column_norms()[policy.absent.ravel()].max())
    if policy.moves_exist:
        known = _of_product(policy, operator)
        found.append(_of_columns(policy, operator) if known is None else known)
    largest = max(found)
    if isinstance(largest, (int, np.integer)):
        return int(largest)
    # Every difference and every sum of doubles is rounded once: by less than a unit in the last place a row.
    return float(largest) * (1 + 1e-12 + operator.rows * 2.0**-52)


def _of_product(policy: Policy, operator: Operator) -> Any:
    """From the types of pairs along every axis, or from what columns share; None where the moves follow no rule, or a
    factor has no structure.
    """
    if operator.chains is not None:
        kinds = policy.moves.pair_types(operator.chains)
        return None if kinds is None else np.int64(operator.farthest_of(kinds))
    factors = operator.factors
    along_axes = tuple(f.cols for f in factors) == policy.domain.shape and all(f.has_structure for f in factors)
    if along_axes and len(factors) == 1:
        known = policy.moves.farthest(factors[0])
        if known is not None:
            return np.int64(known)
    many = [f for f in factors if f.has_many_types and f.rows * f.cols > FEW_ENTRIES]
    if along_axes and (len(many) < 2 or policy.moves.join_all):
        kinds = policy.moves.pair_types(factors)
        return None if kinds is None else max(map(_largest, kinds), default=np.int64(0))
    if policy.moves.listed:
        return None
    return operator.apart(policy.moves.sizes(policy.domain.shape))


def _largest(types: list[PairTypes]) -> Any:
    """The largest distance over all combinations of types, one from every axis."""
    if np.prod([len(t.counts) for t in types], dtype=float) * np.prod([len(t.values) for t in types]) > LARGEST_TYPES:
        raise TooLarge("the columns of this strategy differ in too many ways for an exact sensitivity on this domain.")
    _refuse_overflow(math.prod((_size(t.values) + 1) * int(t.counts.sum(axis=1).max()) for t in types))
    ones: NDArray[Any] = np.ones((1,) * len(types), dtype=np.int64)
    others = ones
    for axis, kind in enumerate(types):
        along = tuple(-1 if i == axis else 1 for i in range(len(types)))
        ones, others = ones * kind.values[:, 0].reshape(along), others * kind.values[:, 1].reshape(along)
    difference = np.abs(ones - others)
    for axis, kind in enumerate(types):
        difference = np.moveaxis(np.tensordot(kind.counts, difference, axes=(1, axis)), 0, axis)
    return difference.max()


def _size(values: NDArray[Any]) -> int | float:
    largest = abs(values).max()
    return int(largest) if isinstance(largest, np.integer) else float(largest)


def _refuse_overflow(norm: float) -> None:
    """A wrapped sensitivity would be a lie: whatever might come near the end of 64 bits is refused."""
    if not norm < LARGEST_NORM:
        raise TooLarge("the entries of this strategy are too large for an exact sensitivity in 64 bits.")


def _of_columns(policy: Policy, operator: Operator) -> Any:
    """Column by column, for matrices and for graphs without structure."""
    if policy.moves.join_all:
        return _of_all_pairs(operator)
    alone = operator.factors[0] if len(operator.factors) == 1 else operator
    tail, head = policy.moves.edges(policy.domain.shape).T
    return alone.column_distances(tail, head).max(initial=0)


def _of_all_pairs(operator: Operator) -> Any:
    columns = operator.sparse()
    if columns.shape[1] ** 2 * columns.shape[0] > LARGEST_PAIRWISE:
        raise TooLarge("this strategy has too many pairs of columns to compare one by one.")
    table = columns.T.toarray()
    if table.dtype.kind == "i" and 2 * operator.largest_norm > EXACT_IN_DOUBLES:
        return max(abs(table[i:] - table[i]).sum(axis=1).max() for i in range(len(table)))
    from scipy.spatial.distance import cdist  # seldom needed, and slow to import

    largest = max(cdist(table[i : i + 256], table, "cityblock").max() for i in range(0, len(table), 256))
    return int(largest) if table.dtype.kind == "i" else largest
