"""Exact sensitivities: the largest L1 distance between two columns over the edges of a policy.

For a Kronecker product and a stencil nothing is expanded. The distance of the columns (u₁, …, u_d) and (v₁, …, v_d)
of A₁ ⊗ … ⊗ A_d is `Σ |∏ aᵢ(uᵢ) - ∏ aᵢ(vᵢ)|` over all rows, and so depends on every factor only through the multiset
of pairs of values that its rows show (`PairTypes`). Along one axis an offset meets few such types (a hierarchy: one
for each level), every combination of types occurs somewhere on the grid, and the maximum over offsets and types is
exact.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy
from numpy.typing import NDArray

from sfumato.errors import InvalidInput, TooLarge
from sfumato.linear import Hats, Kronecker, Matrix, Operator, PairTypes
from sfumato.policies.moves import Complete, Stencil

if TYPE_CHECKING:
    from sfumato.policies.policy import Policy

LARGEST_PAIRWISE = 4_000_000_000
LARGEST_TYPES = 100_000_000


def sensitivity(policy: Policy, strategy: Operator | Any) -> int | float:
    """The largest change of strategy·x in L1 when one record changes along one edge: a whole number where the strategy
    is whole, else rounded up.
    """
    operator = strategy if isinstance(strategy, Operator) else Matrix(strategy)
    if operator.cols != policy.domain.size:
        raise InvalidInput(
            f"strategy has {operator.cols} columns, but the domain has {policy.domain.size} cells: one column a cell."
        )
    factors = operator.factors if isinstance(operator, Kronecker) else (operator,)
    found: list[Any] = [np.int64(0)]
    if policy.absent is not None and policy.absent.any():
        if isinstance(operator, Kronecker):
            _refuse_overflow([int(np.ceil(factor.column_norms().max())) for factor in factors])
        found.append(operator.column_norms()[policy.absent.ravel()].max())
    if policy.moves_exist:
        structured = tuple(f.cols for f in factors) == policy.domain.shape
        if (
            structured
            and isinstance(policy.moves, (Stencil, Complete))
            and not any(isinstance(f, Matrix) for f in factors)
        ):
            found.append(_of_product(policy.moves, factors))
        else:
            found.append(_of_columns(policy, operator))
    largest = max(found)
    return int(largest) if isinstance(largest, (int, np.integer)) else float(largest) * (1 + 1e-12)


def _of_product(moves: Stencil | Complete, factors: tuple[Operator, ...]) -> Any:
    if isinstance(moves, Complete):
        return _largest([factor.pair_types(None) for factor in factors])
    if len(factors) == 1 and isinstance(factors[0], Hats):  # its columns differ in as many ways as there are cells
        return np.int64(factors[0].farthest(np.abs(moves.offsets).ravel()))
    seen: dict[tuple[int, int], PairTypes] = {}
    largest: Any = np.int64(0)
    for offset in np.unique(np.abs(moves.offsets), axis=0):
        types = []
        for axis, (o, factor) in enumerate(zip(offset, factors, strict=True)):
            if (axis, int(o)) not in seen:
                seen[axis, int(o)] = _both_ways(factor, int(o)) if len(factors) > 1 else factor.pair_types(int(o))
            types.append(seen[axis, int(o)])
        largest = max(largest, _largest(types))
    return largest


def _both_ways(factor: Operator, offset: int) -> PairTypes:
    """A stencil holds an offset with every choice of signs, so each axis is seen in both directions."""
    there = factor.pair_types(offset)
    return there if offset == 0 else there.joined(factor.pair_types(-offset))


def _largest(types: list[PairTypes]) -> Any:
    """The largest distance over all combinations of types, one from every axis."""
    if np.prod([len(t.counts) for t in types], dtype=float) * np.prod([len(t.values) for t in types]) > LARGEST_TYPES:
        raise TooLarge("the columns of this strategy differ in too many ways for an exact sensitivity on this domain.")
    _refuse_overflow([int(abs(t.values).max() + 1) * int(t.counts.sum(axis=1).max()) for t in types])
    ones: NDArray[Any] = np.ones((1,) * len(types), dtype=np.int64)
    others = ones
    for axis, kind in enumerate(types):
        along = tuple(-1 if i == axis else 1 for i in range(len(types)))
        ones, others = ones * kind.values[:, 0].reshape(along), others * kind.values[:, 1].reshape(along)
    difference = np.abs(ones - others)
    for axis, kind in enumerate(types):
        difference = np.moveaxis(np.tensordot(kind.counts, difference, axes=(1, axis)), 0, axis)
    return difference.max()


def _refuse_overflow(sizes: list[int]) -> None:
    """Products of the axes' largest column norms must stay far inside 64 bits: a wrapped sensitivity would be a lie."""
    if math.prod(max(size, 1) for size in sizes) >= 2**61:
        raise TooLarge("the entries of this strategy are too large for an exact sensitivity in 64 bits.")


def _of_columns(policy: Policy, operator: Operator) -> Any:
    """Column by column, for matrices and for graphs without structure."""
    columns = operator.sparse()
    if isinstance(policy.moves, Complete):
        if columns.shape[1] ** 2 * columns.shape[0] > LARGEST_PAIRWISE:
            raise TooLarge("this strategy has too many pairs of columns to compare one by one.")
        from scipy.spatial.distance import cdist  # seldom needed, and slow to import

        table = columns.T.toarray()
        largest = max(cdist(table[i : i + 256], table, "cityblock").max() for i in range(0, len(table), 256))
        return int(largest) if table.dtype.kind == "i" else largest
    pairs = policy.moves.edges(policy.domain.shape)
    largest = np.int64(0)
    for start in range(0, len(pairs), 65536):
        u, v = pairs[start : start + 65536].T
        largest = max(largest, abs(scipy.sparse.csc_matrix(columns[:, u] - columns[:, v])).sum(axis=0).max())
    return largest
