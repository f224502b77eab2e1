"""Tables of blocks of several lengths, each as accurate as what will be asked needs it: for products of factors.

Promise: that of every vertex strategy, ε-private under the policy for one record. A has a row for every block of every
table; a change of a record along an edge moves two of them in each table whose blocks tell its two cells apart, by the
table's weight, and the noise is scaled to the costliest edge. What blocks tell apart is computed from what is built.
Where the total is public, or the table of the attributes that never change, estimates are put right to it exactly.

A table has one length of blocks along every axis: all hours of single places, single hours of the whole city, blocks of
4 × 4 places. So a question is answered from sums that are near it, and tables of factors that do not change at once
cost a change of one of them nothing. Least squares over all tables is in closed form, and so is the error.

Of the matrix mechanism's many strategies (Li, Hay, Rastogi, Miklau, McGregor, PODS 2010) these are the sums of products
of nested blocks; one hierarchy along every axis is the case in which the weights are products. What it does not do:
blocks know nothing of how far a move leads; where moves are short, noise on edges serves better.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from sfumato._types import Floats, Integers
from sfumato.errors import InvalidInput, TooLarge
from sfumato.exact import is_whole
from sfumato.linear import BlockEstimator, BlockSums
from sfumato.mechanism.base import Mechanism
from sfumato.mechanism.cells.level_tuning import best_levels
from sfumato.mechanism.cells.strategies import blocks_needed, no_options
from sfumato.mechanism.cells.vertex import VertexMechanism
from sfumato.mechanism.entry import Entry, Options
from sfumato.mechanism.model import Block, NoiseModel
from sfumato.mechanism.totals import components, with_exact_total, with_exact_totals
from sfumato.noise import DiscreteLaplace
from sfumato.policies import Policy
from sfumato.workload import Workload

# Tables that a strategy may have.
MOST_TABLES = 1 << 12
# Of so many the blocks and weights are named when it describes itself.
NAMED = 3


@dataclass(frozen=True, kw_only=True, eq=False)
class LevelsMechanism(VertexMechanism):
    """A strategy over the flat cells: `sums` are its tables."""

    sums: BlockSums

    @property
    def strategy(self) -> BlockSums:
        """The tables."""
        return self.sums

    @cached_property
    def _estimator(self) -> BlockEstimator:
        return BlockEstimator(self.sums, self.policy.public_axes if self.policy.total_is_public else None)

    @cached_property
    def model(self) -> NoiseModel:
        """One block, A⁺, which leaves exact totals alone."""
        noise = DiscreteLaplace(self.epsilon / self.sensitivity)
        return NoiseModel(self.policy.domain.shape, (Block(self._estimator, noise),))

    def estimate(self, measured: Integers, total: int | None) -> Floats:
        """A⁺·y; what is exact is spread evenly over its cells, and noise adds nothing to it."""
        estimates = self._estimator.forward(measured[: self.sums.rows])
        if total is None:
            return estimates
        size = self.policy.domain.size
        if not self.policy.public:
            return with_exact_total(estimates + total / size, total)
        totals = measured[self.sums.rows :]
        shape = [n if i in self.policy.public_axes else 1 for i, n in enumerate(self.policy.domain.shape)]
        each = totals.reshape(shape) * (components(self.policy) / size)
        spread = estimates.reshape(self.policy.domain.shape) + each
        return with_exact_totals(self.policy, spread.ravel(), totals)

    @property
    def settings(self) -> str:
        """The heaviest tables, by the lengths of their blocks."""
        ranked = sorted(zip(self.sums.weights, self.options["blocks"], strict=True), key=lambda table: -table[0])
        named = [f"{' × '.join(map(str, blocks))} (weight {weight})" for weight, blocks in ranked[:NAMED]]
        more = f" and {len(ranked) - NAMED} more" if len(ranked) > NAMED else ""
        return f"blocks {', '.join(named)}{more}"


def levels(policy: Policy, epsilon: Fraction, **options: Any) -> Mechanism:
    """Noise on tables of blocks: `blocks` has a row for every table, the length of its blocks along every axis (1: each
    cell, as long as the axis: all of it), and `weights` a whole number for each, its accuracy relative to the others.

    Lengths along an axis divide one another; a length of the whole axis is rounded up to a multiple of the next one.
    Without them they are found for all ranges along axes in order, and for single cells along the others.
    """
    given, weights = options.pop("blocks", None), options.pop("weights", None)
    no_options("levels", options)
    if given is None:
        found = best_levels(policy, None)
        if found is None:
            raise TooLarge(
                "mechanism='levels': this domain has too many levels to weigh them all. Nothing was drawn or recorded. "
                "Name blocks= and weights=."
            )
        given, weights = found
    blocks = _rows(given, policy.domain.ndim)
    weights = [1] * len(blocks) if weights is None else _whole(weights, "weights")
    return LevelsMechanism(
        name="levels",
        policy=policy,
        epsilon=epsilon,
        options={"blocks": blocks, "weights": weights},
        factors=(),
        sums=BlockSums(policy.domain.shape, blocks, weights),
    )


def _rows(given: Any, axes: int) -> list[list[int]]:
    rows = given.tolist() if isinstance(given, np.ndarray) else given
    if not isinstance(rows, (list, tuple)) or not rows or len(rows) > MOST_TABLES:
        raise InvalidInput(f"blocks must be a list of 1 to {MOST_TABLES} tables, each with a length for every axis.")
    found = [_whole(row, "blocks") for row in rows]
    if any(len(row) != axes for row in found):
        raise InvalidInput(f"blocks must give every table {axes} lengths, one for each axis.")
    return found


def _whole(given: Any, name: str) -> list[int]:
    if not isinstance(given, (list, tuple)) or not all(is_whole(k) and 0 < k < 1 << 53 for k in given):
        raise InvalidInput(f"{name} must hold lists of whole numbers of at least 1.")
    return [int(k) for k in given]


def _tuned(policy: Policy, workload: Workload) -> Iterator[Options]:
    found = best_levels(policy, workload)
    if found is not None:
        blocks, weights = found
        yield {"blocks": [list(row) for row in blocks], "weights": list(weights)}


LEVELS = Entry(name="levels", build=levels, candidates=_tuned, tunings=_tuned, needed=blocks_needed, scaled=True)
