"""Queries along one axis that are groups of cells, each cell in one: counties of tracts, parents of hexagons."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from sfumato._types import Floats, Integers
from sfumato.linear import Operator
from sfumato.linear.groups import runs_of, summed
from sfumato.workload.axis import SAMPLED_QUERIES, AxisQueries
from sfumato.workload.listed import Given

# Up to so many cells sums over groups in pieces are exact; they serve tuning alone.
LONGEST_EXACT = 1 << 16


@dataclass(frozen=True, eq=False)
class Groups(AxisQueries):
    """Every group of a level, in whatever order its cells are; `of` is the group of every cell.

    >>> Groups("county", np.array([0, 1, 0, 1, 2])).count(5)
    3
    """

    name: str
    of: Integers

    ordered: ClassVar[bool] = False
    # Strategies that go along an order of the cells have nothing to gain here: groups have none.
    partial: ClassVar[bool] = False

    def __eq__(self, other: object) -> bool:
        return self.of is other.of if isinstance(other, Groups) else NotImplemented

    def __hash__(self) -> int:
        return id(self.of)

    @cached_property
    def sizes(self) -> Integers:
        """How many cells each group has."""
        return np.bincount(self.of)

    @cached_property
    def _runs(self) -> tuple[Integers, Integers]:
        return runs_of(self.of)

    def count(self, n: int) -> int:
        """As many as there are groups."""
        del n
        return len(self.sizes)

    def inclusion(self, n: int) -> Floats:
        """Every cell lies in one."""
        return np.full(n, 1.0 / len(self.sizes))

    def together(self, n: int, u: Integers, v: Integers) -> Floats:
        """Where both lie in the same one."""
        del n
        return (self.of[u] == self.of[v]) / len(self.sizes)

    def root(self, values: NDArray[Any]) -> Floats:
        """The sums of the groups."""
        return np.asarray(summed(values, self.of) / math.sqrt(len(self.sizes)))

    def mean_variance(self, estimator: Operator) -> float:
        """The mean over the groups; where each would have to be written out over very many cells, over some of them,
        spread evenly.
        """
        return float(estimator.group_variances(self.of).mean())

    def explained(self, n: int, length: int) -> float:
        """Σ over groups and blocks of overlap² over the block's length; on long axes by the runs of cells that make up
        the groups, exact where each is one run.
        """
        start, stop = self._runs
        if n <= LONGEST_EXACT and len(start) > len(self.sizes):
            block = np.arange(n) // length
            keys, overlap = np.unique(self.of * (n // length + 1) + block, return_counts=True)
            lengths = np.bincount(block)[keys % (n // length + 1)]
            return float((overlap**2 / lengths).sum()) / len(self.sizes)
        step = -(-len(start) // SAMPLED_QUERIES)
        some = Given(start[::step].astype(np.float64), stop[::step].astype(np.float64))
        return float(some.explained_each(n, length).mean()) * len(start) / len(self.sizes)

    def sample(self, n: int) -> tuple[Floats, Floats]:
        """The runs that make up the groups, repeated or spread evenly."""
        del n
        start, stop = self._runs
        index = np.arange(SAMPLED_QUERIES) * len(start) // SAMPLED_QUERIES
        return start[index].astype(np.float64), stop[index].astype(np.float64)

    def nuclear_norm(self, n: int) -> float:
        """Groups share no cell: a singular value is the root of a group's size."""
        del n
        return float(np.sqrt(self.sizes).sum() / math.sqrt(len(self.sizes)))

    def describe(self) -> str:
        """In words."""
        return f"every {self.name}"
