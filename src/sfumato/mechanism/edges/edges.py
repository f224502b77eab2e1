"""Edge strategies on lines and grids: noise lives on the edges between neighbouring cells, counts get its divergence.

Promise: ε-private under any policy of moves on a grid, for one record. Let D_i be the divergence of the edges along
axis i. The mechanism reports `x + Σ_i D_i·f(η_i)`, where f estimates edge values from noise on a strategy B_i over the
edges of axis i: the identity, Haar wavelets, nested blocks or hats along the other axes, on every hyperplane of
edges. A move by the offset o is the divergence of a walk of |o_i| unit edges along each axis i, an integer vector z;
c = B·z is an integer vector whose norm is at most `Σ_i |o_i|·w_i`, w_i being the largest column norm of B_i. With
rates `ε / (w_i · max ‖o‖₁)` it costs at most ε; on a product the maximum for an axis is over the terms in which it may
change, which is at least ‖o‖₁ for every axis that o crosses. Along axes that no move crosses there are no edges, and
the counts of what stays are exact. The estimator works in fixed point and satisfies
`f(η + B·z) = f(η) + z` to the last bit: the fractions that the counts receive are those of the noise alone, and no
remainder leaks.

Along an axis where a change leads from any value to any other (a mode, a diagnosis) a walk is long, and noise may be
`centred` in the place of edges: noise on every value less its mean, (I - J/n)·f(η). A change of the value takes one
from here and adds one there, c = B·(e_v - e_u), which costs 2·w however far apart the values stand. The mean is that
of sums which such a change leaves alone, and is taken off in whole numbers: to the last bit, too. Sums over the axis
pay nothing for it.

A record that appears in a cell that is joined to ⊥ is a unit vector: those cells receive noise of their own, of rate ε.

A range pays for its boundary instead of its area. Haney, Machanavajjhala, Ding (VLDB 2015), Theorems 4.1, 5.2 and 5.4.
The noisy values of the edges themselves would not be private on a grid, which has cycles; they are never formed.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np

from sfumato._types import Floats, Integers
from sfumato.errors import InvalidInput
from sfumato.linear import (
    Centred,
    Difference,
    Haar,
    Hats,
    Hierarchy,
    Identity,
    Kronecker,
    Operator,
    PseudoInverse,
    Selection,
    without_mean,
)
from sfumato.mechanism.base import LinearMechanism
from sfumato.mechanism.model import Block, NoiseModel
from sfumato.mechanism.totals import component_sums, with_exact_total, with_exact_totals
from sfumato.noise import DiscreteLaplace
from sfumato.policies import dearest_along

# Binary digits behind the point where means are taken off.
MEAN_BITS = 20

Invertible = Identity | Haar | Hierarchy | Hats


@dataclass(frozen=True, kw_only=True, eq=False)
class EdgeMechanism(LinearMechanism):
    """Noise on the edges along grid lines, and on the cells that are joined to ⊥."""

    across: tuple[Invertible, ...]
    centred: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        if not self.policy.structured:
            raise InvalidInput(f"mechanism={self.name!r} on grid lines needs a policy made of moves on a grid.")
        if self._bits_needed > 62:
            raise InvalidInput(
                f"epsilon={float(self.epsilon):g} on {self.policy.domain.size:,} cells needs noise beyond what 64-bit "
                f"fixed point holds under mechanism={self.name!r}. Use a larger epsilon or fewer cells."
            )

    @cached_property
    def _sizes(self) -> list[Integers]:
        """Term by term how far changes lead along every axis; along those that are centred 2, wherever they lead."""
        found = [np.array(rows) for rows in self.policy.moves.sizes_by_term(self.policy.domain.shape)]
        for axis in self.centred:
            for rows in found:
                rows[:, axis] = 2 * (rows[:, axis] > 0)
        return found

    @cached_property
    def _longest(self) -> tuple[int, ...]:
        shape = self.policy.domain.shape
        return dearest_along(self._sizes, len(shape)) if self.centred else self.policy.moves.longest_along(shape)

    def _others(self, axis: int) -> list[tuple[int, Invertible]]:
        """The strategies along the other axes, for the edges of one."""
        return [(i, strategy) for i, strategy in enumerate(self.across) if i != axis]

    @cached_property
    def _axes(self) -> list[int]:
        """The axes that have edges."""
        return [i for i, longest in enumerate(self._longest) if longest]

    def _weight(self, axis: int) -> int:
        """The largest column norm of B along one axis."""
        return math.prod(int(strategy.column_norms().max()) for _, strategy in self._others(axis))

    def _rate(self, axis: int) -> Fraction:
        """The rate of the noise on the edges along an axis."""
        return self.epsilon / (self._longest[axis] * self._weight(axis))

    @cached_property
    def model(self) -> NoiseModel:
        """One block for every axis, and one for the cells joined to ⊥."""
        shape = self.policy.domain.shape
        blocks = []
        for axis in self._axes:
            factors: list[Operator] = [PseudoInverse(strategy) for strategy in self.across]
            factors[axis] = Centred(shape[axis]) if axis in self.centred else Difference(shape[axis])
            blocks.append(Block(Kronecker(factors), DiscreteLaplace(self._rate(axis))))
        if self.policy.absent is not None:
            blocks.append(Block(Selection(self.policy.absent), DiscreteLaplace(self.epsilon)))
        return NoiseModel(shape, tuple(blocks))

    @property
    def privacy_loss(self) -> Fraction:
        """The worst offset: its steps along each axis, times what an edge of that axis costs."""
        blocks = list(self.model.blocks)
        worst = [Fraction(0)]
        if self.policy.absent is not None:
            worst.append(blocks.pop().noise.rate)
        cost = {axis: self._weight(axis) * block.noise.rate for axis, block in zip(self._axes, blocks, strict=True)}
        worst += [
            sum((int(size[a]) * cost[a] for a in self._axes), Fraction(0)) for rows in self._sizes for size in rows
        ]
        return max(worst)

    @cached_property
    def _fraction_bits(self) -> int:
        """How many binary digits the noise has behind the point."""
        once = any(strategy.keeps_fractions for strategy in self.across)
        bits = [[strategy.fraction_bits for _, strategy in self._others(axis)] for axis in self._axes]
        least = MEAN_BITS if set(self.centred) & set(self._axes) else 0
        return max([least, *(max(b, default=0) if once else sum(b) for b in bits)])

    @property
    def _bits_needed(self) -> float:
        """How many bits the largest number on the way may take: the scale of the noise, times 2⁸ for its tail (beyond
        which it lies once in e²⁵⁶ draws); sums of independent noise along the other axes, which grow with the root of
        their length; fractions; and the coefficients that a hierarchy or hats multiply by.
        """
        scale = max([1.0, *(float(1 / self._rate(axis)) for axis in self._axes)])
        if not self.policy.total_is_public:
            scale = max(scale, float(1 / self.epsilon))
        others = [math.prod(strategy.cols for _, strategy in self._others(axis)) for axis in self._axes]
        factors = max((s.factor_bits for s in self.across if s.keeps_fractions), default=0)
        return math.log2(scale) + 8 + math.log2(max(others, default=1)) / 2 + self._fraction_bits + factors

    def values(self, counts: Integers) -> Integers:
        """x in row 0, and a row of zeros where the noise has fractions."""
        return np.stack([counts, np.zeros_like(counts)]) if self._fraction_bits else counts[None]

    def disturbance(self, noise: Sequence[Integers]) -> Integers:
        """The divergence, as integers over 2^bits: whole parts in row 0, the noise's own fractions in row 1."""
        shape, bits = self.policy.domain.shape, self._fraction_bits
        field = np.zeros(shape, dtype=np.int64)
        for axis, eta in zip(self._axes, noise, strict=False):
            others = dict(self._others(axis))
            own = shape[axis] if axis in self.centred else shape[axis] - 1
            flow = eta.reshape([others[i].rows if i in others else own for i in range(len(shape))])
            used = 0
            for i, strategy in others.items():
                along, used = strategy.solved(flow.swapaxes(i, -1), used)
                flow = along.swapaxes(-1, i)
            if bits != used:
                flow = flow << (bits - used)
            if axis in self.centred:
                field += without_mean(flow, axis)
                continue
            before = (slice(None),) * axis
            field[(*before, slice(None, -1))] += flow
            field[(*before, slice(1, None))] -= flow
        flat = field.ravel()
        if self.policy.absent is not None:
            flat[self.policy.absent.ravel()] += noise[-1] << bits
        return np.stack([flat >> bits, flat & ((1 << bits) - 1)]) if bits else flat[None]

    def estimate(self, measured: Integers, total: int | None) -> Floats:
        """The integers put together; the sum is right by itself, since a divergence sums to zero, and stays right when
        fractions are rounded.
        """
        whole = measured[0].astype(np.float64)
        if len(measured) == 1:
            return whole
        estimates = whole + np.ldexp(measured[1].astype(np.float64), -self._fraction_bits)
        if total is None:
            return estimates
        policy = self.policy
        if not policy.public:
            return with_exact_total(estimates, total)
        # The noise of a component cancels, fractions included: its exact total is in what was measured.
        both = np.stack([component_sums(policy, row) for row in measured])
        return with_exact_totals(policy, estimates, both[0] + (both[1] >> self._fraction_bits))
