"""Mechanisms on trees: noisy edge values may be seen, and so may whatever is made of them.

Promise: ε-private under the policy, for one record. Let H be a spanning tree of the policy with stretch ℓ. The counts
are the divergence of exactly one integer vector z over the edges of H (Theorem 4.3 of Haney, Machanavajjhala, Ding,
VLDB 2015), and a change along an edge of the policy walks along at most ℓ edges of H: it changes ℓ entries of z by
one. An algorithm that is ε/ℓ-private when one entry of z changes by one is therefore ε-private under the policy
(Lemma 4.5), *whatever* it does with z: here its answer may depend on the data. On a graph with cycles this would be
wrong, since z is not unique there.

`consistent`: noise on z, then the nearest edge values under which no count is negative. On a line these are prefix
sums and the nearest non-decreasing ones (isotonic regression); on other trees the projection is found by a dual
gradient method. Estimates are biased, and their error depends on the data: it is small where many counts are zero
(Hay, Rastogi, Miklau, Suciu, VLDB 2010). No error bars are given.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from sfumato._types import Floats, Integers
from sfumato.errors import InvalidInput
from sfumato.linear import Incidence
from sfumato.mechanism.base import AdditiveMechanism, Mechanism, require_integers
from sfumato.mechanism.cells.strategies import no_options
from sfumato.mechanism.entry import Entry
from sfumato.mechanism.totals import with_exact_total
from sfumato.noise import DiscreteLaplace
from sfumato.noise.expansion import bits
from sfumato.policies import Policy, Spanner, Transformed, transform

PROJECTION_STEPS = 600


@dataclass(frozen=True, eq=False)
class EdgeValues:
    """Counts as the integer database over the edges of a spanning tree of the policy, and back."""

    policy: Policy
    asked_by: str

    def __post_init__(self) -> None:
        if self.policy.domain.size == 1 and self.policy.total_is_public:
            raise InvalidInput(
                f"mechanism={self.asked_by!r}: a single cell has nothing to hide; use mechanism='edges'."
            )
        listed = not self.policy.total_is_public or self.policy.moves.listed
        # On a line, and where edges are listed or lead to ⊥, every spanner is a tree.
        if not listed and self.policy.domain.ndim > 1 and not self.spanner.is_tree:
            raise InvalidInput(
                f"mechanism={self.asked_by!r} needs a policy that a tree spans well; noisy edge values of a graph with "
                "cycles are not private. Use mechanism='edges'."
            )

    @cached_property
    def spanner(self) -> Spanner:
        """The tree, with its exact stretch."""
        return self.policy.spanner()

    @cached_property
    def tree(self) -> Transformed:
        """The transformation that the tree stands for."""
        return transform(self.spanner)

    @cached_property
    def order(self) -> Integers:
        """Edges by their tail, so that the edge values of a line are its prefix sums from left to right."""
        return np.argsort(self.tree.edges[:, 0], kind="stable")

    @cached_property
    def incidence(self) -> Incidence:
        """The divergence that leads from edge values to cells."""
        edges = self.tree.edges[self.order]
        return Incidence(self.policy.domain.size, edges[:, 0], edges[:, 1])

    @cached_property
    def is_path(self) -> bool:
        """Whether the edges join every cell to the next, and the last one stands for ⊥."""
        cells = np.arange(self.policy.domain.size - 1)
        edges = self.tree.edges[self.order]
        return edges.shape == (len(cells), 2) and bool((edges == np.stack([cells, cells + 1], axis=-1)).all())

    def of(self, counts: Integers) -> Integers:
        """The edge values of counts: one step of the policy changes at most `stretch` of them, by one each."""
        return np.asarray(self.tree.database(counts)[self.order], dtype=np.int64)

    def cells(self, values: Floats, total: int | None) -> Floats:
        """Back to the cells, summing to the public total where there is one: post-processing."""
        cells = self.incidence.forward(values)
        if total is None:
            return cells
        cells[self.tree.root] += total
        return with_exact_total(cells, total)

    def project(self, noisy: Floats, total: int | None) -> Floats:
        """The nearest edge values under which no count is negative: post-processing."""
        if self.is_path and total is not None:
            from scipy.optimize import isotonic_regression  # slow to import, and only this needs it

            return np.clip(isotonic_regression(noisy).x, 0.0, total)
        return self._project_on_tree(noisy, total)

    def _project_on_tree(self, noisy: Floats, total: int | None) -> Floats:
        """min ‖z - noisy‖² with P·z + total ≥ 0, by accelerated gradient steps on the dual: z = noisy + Pᵀλ, λ ≥ 0."""
        (forward, transpose), size = self.incidence.quick, self.policy.domain.size
        known = np.zeros(size)
        if total is not None:
            known[self.tree.root] = total
        degree = np.bincount(np.maximum(self.tree.edges.ravel(), 0), minlength=size)
        step = 1.0 / (2.0 * degree.max())
        dual = ahead = np.zeros(size)
        momentum = 1.0
        for _ in range(PROJECTION_STEPS):
            slope = forward(noisy + transpose(ahead)) + known
            new = np.maximum(ahead - step * slope, 0.0)
            if (new == dual).all() and (ahead == dual).all():
                break  # a fixed point: every further step would give the same
            if (new - dual) @ (ahead - new) > 0:  # overshot: forget the momentum
                momentum, ahead = 1.0, dual
                continue
            later = (1 + np.sqrt(1 + 4 * momentum**2)) / 2
            ahead = new + (momentum - 1) / later * (new - dual)
            dual, momentum = new, later
        return noisy + transpose(dual)


@dataclass(frozen=True, kw_only=True, eq=False)
class TreeMechanism(Mechanism):
    """One that works on the edge values of a spanning tree."""

    def __post_init__(self) -> None:
        _ = self.edges  # refused here, before anything is recorded

    @cached_property
    def edges(self) -> EdgeValues:
        """The tree and its database."""
        return EdgeValues(self.policy, self.name)

    def require_possible(self) -> None:
        """Refuse a policy for which no tree is found."""
        _ = self.edges.spanner


@dataclass(frozen=True, kw_only=True, eq=False)
class ConsistentMechanism(TreeMechanism, AdditiveMechanism):
    """Laplace noise on the edge values of a tree, then consistency.

    Noise η and η + c lead to the same sum, c being the change of the edge values, of which at most `stretch` change, by
    one each: at rate ε/stretch that costs ε. The projection is post-processing.
    """

    @cached_property
    def noise(self) -> DiscreteLaplace:
        """On every edge value."""
        return DiscreteLaplace(self.epsilon / self.edges.spanner.stretch)

    def require_room(self) -> None:
        """An edge value is at most all records, and its noise must fit beside it."""
        require_integers(self.name, 1, 1 << bits(self.noise.rate), "Use a larger epsilon.")

    @property
    def privacy_loss(self) -> Fraction:
        """The stretch times the cost of one edge."""
        return self.edges.spanner.stretch * self.noise.rate

    def noises(self, total: int | None) -> list[tuple[DiscreteLaplace, int]]:
        """One value an edge."""
        del total
        return [(self.noise, len(self.edges.order))]

    def values(self, counts: Integers) -> Integers:
        """The edge values."""
        return self.edges.of(counts)

    def disturbance(self, noise: Sequence[Integers]) -> Integers:
        """The noise itself."""
        return noise[0]

    def estimate(self, measured: Integers, total: int | None) -> Floats:
        """The projection, and back to the cells."""
        return self.edges.cells(self.edges.project(measured.astype(np.float64), total), total)


def consistent(policy: Policy, epsilon: Fraction, **options: Any) -> Mechanism:
    """Noise on the edge values of a spanning tree, then the nearest ones without negative counts."""
    no_options("consistent", options)
    return ConsistentMechanism(name="consistent", policy=policy, epsilon=epsilon)


CONSISTENT = Entry(name="consistent", build=consistent, rehearsed=True)
