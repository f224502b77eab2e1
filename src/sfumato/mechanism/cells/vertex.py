"""Vertex strategies: publish `A·x + noise`, estimate by least squares.

Promise: ε-private under the policy, for one record. A moves by `A·(e_u - e_v)` along an edge (u, v), which is an
integer vector c since A has integer entries, and its L1 norm is at most the sensitivity Δ of A under the policy.
Noise of rate ε/Δ on every row therefore costs `‖c‖₁·ε/Δ ≤ ε`. The published integers are private; the estimate A⁺ is
post-processing in floating point. Where the policy has no ⊥ the total is public and enters the estimate as an exact
constraint.

Li, Hay, Rastogi, Miklau, McGregor: the matrix mechanism (PODS 2010); Fang, Chang (ASIA CCS 2014), section 5.2, for
its δ-sensitivity.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, reduce

import numpy as np

from sfumato._types import Floats, Integers
from sfumato.errors import InvalidInput
from sfumato.linear import Kronecker, Operator, PseudoInverse
from sfumato.mechanism.base import (
    LARGEST_PRODUCT,
    LinearMechanism,
    require_integers,
    require_whole,
)
from sfumato.mechanism.model import Block, NoiseModel
from sfumato.mechanism.totals import component_sums, component_table, components, with_exact_total, with_exact_totals
from sfumato.noise import DiscreteLaplace
from sfumato.noise.expansion import bits


@dataclass(frozen=True, kw_only=True, eq=False)
class VertexMechanism(LinearMechanism):
    """A strategy with one integer factor for every axis."""

    factors: tuple[Operator, ...]

    def __post_init__(self) -> None:
        require_whole(self.policy, self.name)
        if self.policy.total_is_public and not self.policy.moves_exist:
            raise self._idle()

    def require_possible(self) -> None:
        """Refuse a strategy that no change moves."""
        if self.sensitivity == 0:
            raise self._idle()

    def _idle(self) -> InvalidInput:
        return InvalidInput(
            f"mechanism={self.name!r}: under this policy no change of a record moves any value; use mechanism='edges'."
        )

    @cached_property
    def strategy(self) -> Operator:
        """A, over the flat cells."""
        return Kronecker(self.factors)

    @cached_property
    def sensitivity(self) -> int:
        """The exact sensitivity of A under the policy."""
        return int(self.policy.sensitivity(self.strategy))

    @property
    def privacy_loss(self) -> Fraction:
        """Sensitivity times rate."""
        return self.sensitivity * self.model.blocks[0].noise.rate

    @cached_property
    def model(self) -> NoiseModel:
        """One block, A⁺, corrected to the total where that is public."""
        estimator = Kronecker([PseudoInverse(factor) for factor in self.factors])
        noise = DiscreteLaplace(self.epsilon / self.sensitivity)
        return NoiseModel(
            self.policy.domain.shape,
            (Block(estimator, noise),),
            centred=self.policy.total_is_public,
            apart=self.policy.public_axes,
        )

    def require_room(self) -> None:
        """A row of A·x is at most its largest entry times all records."""
        noise = 1 << bits(self.model.blocks[0].noise.rate)
        advice = (
            "Use a larger epsilon, or weights of which the largest ones, one for each axis, multiply to at most "
            f"{LARGEST_PRODUCT}."
        )
        require_integers(self.name, int(self.strategy.largest_entry), noise, advice)

    def values(self, counts: Integers) -> Integers:
        """A·x in integers; where some factors never change, the exact totals of their values after it."""
        rows = np.asarray(self.strategy.forward(counts))
        return np.concatenate([rows, component_sums(self.policy, counts)]) if self.policy.public else rows

    def disturbance(self, noise: Sequence[Integers]) -> Integers:
        """η itself, and nothing on exact totals."""
        (eta,) = noise
        exact = np.zeros(components(self.policy) if self.policy.public else 0, dtype=np.int64)
        return np.concatenate([eta, exact]) if len(exact) else eta

    def estimate(self, measured: Integers, total: int | None) -> Floats:
        """A⁺·y, moved along g to the public total, or to that of every component."""
        estimates = self.strategy.pinv(measured[: self.strategy.rows].astype(np.float64))
        if total is None:
            return estimates
        if self.policy.public:
            return self._with_totals(estimates, measured[self.strategy.rows :])
        g = reduce(np.multiply.outer, self.model.total_shares[0]).ravel()
        return with_exact_total(estimates + g * ((total - estimates.sum()) / g.sum()), total)

    def _with_totals(self, estimates: Floats, totals: Integers) -> Floats:
        policy = self.policy
        own = [g for i, g in enumerate(self.model.total_shares[0]) if i not in policy.public_axes]
        g = reduce(np.multiply.outer, own).ravel()
        missing = totals - component_table(policy, estimates).sum(axis=1)
        shape = [policy.domain.shape[i] for i in policy.public_axes]
        rest = [n for i, n in enumerate(policy.domain.shape) if i not in policy.public_axes]
        added = np.moveaxis(
            np.multiply.outer(missing, g / g.sum()).reshape(shape + rest), range(len(shape)), policy.public_axes
        )
        return with_exact_totals(policy, estimates + added.ravel(), totals)
