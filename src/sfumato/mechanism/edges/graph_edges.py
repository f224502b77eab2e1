"""Edge strategies on arbitrary graphs: independent noise on every edge of the policy.

Promise: ε-private under the policy, for one record. A change along the edge j is P·e_j, the divergence of one unit on
that edge, so c = e_j costs the rate of one noise: ε. Nothing has to be inverted, everything is an integer, and the
total of a component without ⊥ is untouched. A query pays for the edges that it cuts. Haney, Machanavajjhala, Ding
(VLDB 2015), Theorem 4.1 with the identity strategy.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np

from sfumato._types import Floats, Integers
from sfumato.linear import Incidence
from sfumato.mechanism.base import LinearMechanism, require_integers
from sfumato.mechanism.model import Block, NoiseModel
from sfumato.noise import DiscreteLaplace
from sfumato.noise.expansion import bits


@dataclass(frozen=True, kw_only=True, eq=False)
class GraphEdgeMechanism(LinearMechanism):
    """Noise of rate ε on every edge that was listed."""

    @property
    def _pairs(self) -> Integers:
        """The edges that carry noise, tail before head; ⊥, which is -1, is always the head."""
        return self.policy.edges()

    @property
    def _stretch(self) -> int:
        """How many of them a change along an edge of the policy walks at most."""
        return 1

    @cached_property
    def _incidence(self) -> Incidence:
        pairs = self._pairs
        return Incidence(self.policy.domain.size, pairs[:, 0], pairs[:, 1])

    @cached_property
    def model(self) -> NoiseModel:
        """One block: the incidence matrix."""
        block = Block(self._incidence, DiscreteLaplace(self.epsilon / self._stretch))
        return NoiseModel(self.policy.domain.shape, (block,))

    @property
    def privacy_loss(self) -> Fraction:
        """One noise a step."""
        return self._stretch * self.model.blocks[0].noise.rate

    def require_room(self) -> None:
        """A cell receives the noise of all its edges."""
        degree = int(np.bincount(np.maximum(self._pairs.ravel(), 0), minlength=1).max(initial=0))
        require_integers(self.name, 1, degree << bits(self.model.blocks[0].noise.rate), "Use a larger epsilon.")

    def values(self, counts: Integers) -> Integers:
        """The counts."""
        return counts

    def disturbance(self, noise: Sequence[Integers]) -> Integers:
        """P·η in integers."""
        (eta,) = noise
        return np.asarray(self._incidence.forward(eta))

    def estimate(self, measured: Integers, total: int | None) -> Floats:
        """The integers themselves."""
        del total
        return measured.astype(np.float64)
