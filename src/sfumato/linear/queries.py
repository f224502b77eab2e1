"""What an estimator may ask of the queries along one axis, whoever they are: it is told how often cells meet in one."""

from __future__ import annotations

from typing import Any, Protocol

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
    """All queries of one kind along an axis of n cells, in closed forms. An estimator uses those that fit it."""

    def inclusion(self, n: int) -> Floats:
        """The share of queries that contain each cell."""

    def together(self, n: int, u: Integers, v: Integers) -> Floats:
        """The share of queries that contain both cells of each pair."""

    def cut(self, n: int, u: Integers, v: Integers) -> float:
        """How many of the pairs (u, v) have exactly one cell in a query, on average."""

    def of_shapes(self, n: int, squares: Floats, sums: Floats, sums2: Floats) -> float:
        """The mean variance from (Σ c², Σ S, Σ S²) of every column c of M, S being the running sums of c."""

    def by_prefixes(self, strategy: PrefixVariances) -> float:
        """The mean variance of A⁺ from the variances of all prefixes."""

    def measured(self, estimator: Any) -> float:
        """The mean variance of any estimator: exact on short axes, over many queries beyond."""
