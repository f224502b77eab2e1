"""Noise on every edge of a line policy: not only between neighbours, but between all cells that a move can join.

Promise: ε-private under a policy of moves of at most θ cells on a line, for one record. A move is one edge, and P·e_j
is its difference: c = e_j costs the rate of one noise, ε. An end of a range cuts θ(θ + 1)/2 edges, each with noise of
scale 1/ε, where walking along the line would cut one edge with noise of scale θ/ε: half the variance for large θ, and
the best there is for small ones. Haney, Machanavajjhala, Ding (VLDB 2015), Theorem 4.1 with the identity strategy
over all edges.
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
from sfumato.linear import Difference
from sfumato.mechanism.base import LinearMechanism, Mechanism, require_integers
from sfumato.mechanism.cells.strategies import no_options
from sfumato.mechanism.entry import Entry
from sfumato.mechanism.model import Block, NoiseModel
from sfumato.noise import DiscreteLaplace
from sfumato.noise.expansion import bits
from sfumato.policies import Policy

# Beyond this reach other mechanisms are better by far, and the noise would outgrow the data.
LONGEST_REACH = 32


@dataclass(frozen=True, kw_only=True, eq=False)
class PolicyEdgeMechanism(LinearMechanism):
    """Independent noise of rate ε for every pair of cells at most θ apart."""

    def __post_init__(self) -> None:
        moves = self.policy.moves.stencil
        if self.policy.domain.ndim != 1 or moves is None or not self.policy.total_is_public:
            raise InvalidInput(f"mechanism={self.name!r} is for moves on a line without ⊥; use mechanism='edges'.")
        if int(moves.reach[0]) > LONGEST_REACH:
            raise InvalidInput(
                f"mechanism={self.name!r} is for moves of at most {LONGEST_REACH} cells, not {int(moves.reach[0])}; "
                "use mechanism='blocks'."
            )

    @cached_property
    def model(self) -> NoiseModel:
        """One block for every length of edge."""
        n, moves = self.policy.domain.size, self.policy.moves
        reach = int(moves.sizes((n,)).max(initial=0))
        noise = DiscreteLaplace(self.epsilon)
        return NoiseModel((n,), tuple(Block(Difference(n, stride), noise) for stride in range(1, reach + 1)))

    @property
    def privacy_loss(self) -> Fraction:
        """One edge, one noise."""
        return max((block.noise.rate for block in self.model.blocks), default=Fraction(0))

    def require_room(self) -> None:
        """A cell receives the noise of two edges of every length."""
        blocks = self.model.blocks
        noise = 2 * len(blocks) << bits(blocks[0].noise.rate) if blocks else 0
        require_integers(self.name, 1, noise, "Use a larger epsilon.")

    def values(self, counts: Integers) -> Integers:
        """The counts."""
        return counts

    def disturbance(self, noise: Sequence[Integers]) -> Integers:
        """The divergence in integers."""
        field = np.zeros(self.policy.domain.size, dtype=np.int64)
        for block, eta in zip(self.model.blocks, noise, strict=True):
            field += block.estimator.forward(eta)
        return field

    def estimate(self, measured: Integers, total: int | None) -> Floats:
        """The integers themselves."""
        del total
        return measured.astype(np.float64)


def policy_edges(policy: Policy, epsilon: Fraction, **options: Any) -> Mechanism:
    """Noise on every edge of a line policy, also on the long ones."""
    no_options("policy-edges", options)
    return PolicyEdgeMechanism(name="policy-edges", policy=policy, epsilon=epsilon)


POLICY_EDGES = Entry(name="policy-edges", build=policy_edges)
