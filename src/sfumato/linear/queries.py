"""What an estimator may ask of the queries along one axis, whoever they are: it is told how often cells meet in one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from sfumato._types import Floats, Integers


class PrefixVariances(Protocol):
    """A strategy that knows the variance of every cell and of every prefix, all from one pass."""

    cols: int

    def cell_variances(self) -> Floats:
        """‖(A⁺)ᵀq‖² of every cell."""

    def prefix_variances(self) -> Floats:
        """‖(A⁺)ᵀq‖² of the n prefixes that end behind each cell."""

    def pinv_transpose(self, q: NDArray[Any]) -> NDArray[Any]:
        """(A⁺)ᵀ·q."""


class Queries(Protocol):
    """Some queries along an axis of n cells, whatever they are."""

    @property
    def steps(self) -> int | None:
        """How many there are where they go in step with those along other axes: the j-th of one with the j-th of the
        others. None where every one meets every one.
        """

    def at(self, step: int) -> Queries:
        """The one query of a step."""

    def together(self, n: int, u: Integers, v: Integers) -> Floats:
        """The share of queries that contain both cells of each pair; of cells that are cut, the product of shares."""

    def gram(self, n: int) -> Floats:
        """That of all pairs."""

    def spreads(self, n: int) -> tuple[Floats, Floats]:
        """(the mean of ‖q - q̄‖², the mean of q̄²) over the queries q, q̄ being the mean of q along the axis; of queries
        in step those of each.
        """

    def weights(self, n: int) -> Floats:
        """For queries in step: the share of each cell in each of them, one row a query."""

    def variances(self, estimator: Any) -> float | Floats:
        """The mean of ‖Mᵀq‖² over the queries; for queries in step each by itself, to be multiplied with those along
        the other axes first.
        """


class AllOfAKind(Queries, Protocol):
    """All queries of one kind along an axis, in closed forms. An estimator uses those that fit it."""

    def inclusion(self, n: int) -> Floats:
        """The share of queries that contain each cell."""

    def cut(self, n: int, u: Integers, v: Integers) -> float:
        """How many of the pairs (u, v) have exactly one cell in a query, on average."""

    def of_shapes(self, n: int, squares: Floats, sums: Floats, sums2: Floats) -> float:
        """The mean variance from (Σ c², Σ S, Σ S²) of every column c of M, S being the running sums of c."""

    def by_prefixes(self, strategy: PrefixVariances) -> float:
        """The mean variance of A⁺ from the variances of all prefixes."""

    def measured(self, estimator: Any) -> float:
        """The mean variance of any estimator: exact on short axes, over many queries beyond."""


def averaged(kinds: Sequence[Queries], mean: Callable[[Sequence[Queries]], float]) -> float:
    """A mean over products of queries, from what it is where those along different axes know nothing of each other.

    Queries that go in step along two axes or more are taken one step at a time.
    """
    count = steps_of(kinds)
    if count is None:
        return mean(kinds)
    each = ([kind if kind.steps is None else kind.at(j) for kind in kinds] for j in range(count))
    return sum(mean(some) for some in each) / count


def joint_gram(kinds: Sequence[Queries], shape: tuple[int, ...]) -> Floats:
    """The share of the products of queries that contain both of any two cells of a domain, dense, in C order."""
    if steps_of(kinds) is None:
        gram: Floats = np.ones((1, 1))
        for kind, n in zip(kinds, shape, strict=True):
            gram = np.asarray(np.kron(gram, kind.gram(n)), dtype=np.float64)
        return gram
    inside, apart = [i for i, k in enumerate(kinds) if k.steps], [i for i, k in enumerate(kinds) if not k.steps]
    weights = np.ones((steps_of(kinds) or 1, 1))
    for i in inside:
        along = kinds[i].weights(shape[i])
        weights = (weights[:, :, None] * along[:, None, :]).reshape(len(weights), -1)
    others = joint_gram([kinds[i] for i in apart], tuple(shape[i] for i in apart))
    ordered = [shape[i] for i in inside + apart]
    both = np.einsum("ab,cd->acbd", weights.T @ weights / len(weights), others).reshape(ordered * 2)
    back = list(np.argsort(inside + apart))
    size = int(np.prod(shape))
    return np.asarray(both.transpose(back + [len(shape) + i for i in back]).reshape(size, size), dtype=np.float64)


def steps_of(kinds: Sequence[Queries]) -> int | None:
    """How many steps there are, where queries along two axes or more go in step; else None."""
    steps = [kind.steps for kind in kinds if kind.steps is not None]
    return steps[0] if len(steps) > 1 else None
