"""DAWA as a mechanism: on the counts under the standard policies, on the edge values of a tree under the others.

Promise: ε-private under the policy, for one record. Under add/remove a record changes one count by one, under
replace-one two of them; under a policy that a tree spans with stretch ℓ it changes ℓ edge values by one, and DAWA
runs on those at ε/ℓ (see `sfumato.mechanism.edges.tree`). On grids the cells are put in the order of the Hilbert curve
first: a change of one count stays a change of one count.

The estimates are biased inside the runs that DAWA finds, and how much depends on the data: no error bars are given.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np

from sfumato.domain.hilbert import hilbert_order
from sfumato.mechanism.base import Floats, Integers, Mechanism, settle
from sfumato.mechanism.edges.tree import EdgeValues
from sfumato.mechanism.partitions.dawa import dawa
from sfumato.noise import Source


@dataclass(frozen=True, kw_only=True, eq=False)
class DawaOnCells(Mechanism):
    """DAWA on the counts: add/remove and replace-one."""

    @property
    def privacy_loss(self) -> Fraction:
        """All of ε: a share for the runs, the rest for their totals."""
        return self.epsilon

    def run(self, counts: Integers, total: int | None, source: Source) -> Floats:
        """Along the line, or along the Hilbert curve of a grid."""
        shape = self.policy.domain.shape
        order = np.arange(len(counts)) if len(shape) == 1 else hilbert_order(shape)
        neighbours = "replace" if self.policy.total_is_public else "add/remove"
        asked = self.options["queries"]
        found = dawa(counts[order], epsilon=self.epsilon, source=source, neighbours=neighbours, queries=asked)
        estimates = np.empty(len(counts))
        estimates[order] = found.counts
        return estimates if total is None else settle(estimates + (total - estimates.sum()) / len(estimates), total)


@dataclass(frozen=True, kw_only=True, eq=False)
class DawaOnTree(Mechanism):
    """DAWA on the edge values of a tree, made consistent afterwards if asked."""

    def __post_init__(self) -> None:
        _ = self.edges  # refused here, before anything is recorded

    @cached_property
    def edges(self) -> EdgeValues:
        """The tree and its database."""
        return EdgeValues(self.policy, self.name)

    @property
    def edge_epsilon(self) -> Fraction:
        """What a change of one edge value by one may cost."""
        return self.epsilon / self.edges.spanner.stretch

    @property
    def privacy_loss(self) -> Fraction:
        """The stretch times the cost of one edge."""
        return self.edges.spanner.stretch * self.edge_epsilon

    def run(self, counts: Integers, total: int | None, source: Source) -> Floats:
        """One edge value changes by one at a time, and a range of counts is a difference of single edge values."""
        values = self.edges.of(counts)
        found = dawa(values, epsilon=self.edge_epsilon, source=source, neighbours="edge", queries="entries").counts
        return self.edges.cells(self.edges.project(found, total) if self.options.get("consistent") else found, total)
