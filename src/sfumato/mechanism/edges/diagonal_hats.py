"""Hats over whatever crosses the lines of a grid, and noise of its own on every edge, diagonals among them.

Promise: ε-private under any policy of moves on a grid of two axes, for one record. Noise lies on the edges between
cells that are neighbours along an axis or across a corner, and on hats over all that crosses a grid line. A move by
(a, b) is the divergence of a walk of min(|a|, |b|) diagonals and then edges along the longer axis, an integer vector
z; c = B·z is an integer vector whose norm is at most what the edges of the walk give to noise, and the estimator
satisfies `f(η + B·z) = f(η) + z` to the last bit (`CrossingEstimator.fixed`). A record that appears in a cell that is
joined to ⊥ is a unit vector: those cells receive noise of their own, of rate ε.

Where diagonals are moves of their own, a walk of two edges would cost them twice as much (`edge_hats.py`): with an own
weight of 1 - 2·w for diagonals and 1 - w for edges along an axis, w being that of all hats, both cost the same. A range
pays for its boundary.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from sfumato._types import Floats, Integers
from sfumato.errors import InvalidInput
from sfumato.exact import positive_int
from sfumato.linear import Crossing, CrossingEstimator, Selection
from sfumato.linear.crossings import FRACTION_BITS
from sfumato.mechanism.base import LinearMechanism, Mechanism
from sfumato.mechanism.cells.along import asked_along
from sfumato.mechanism.cells.hat_tuning import best_hats
from sfumato.mechanism.cells.strategies import each_axis, no_options
from sfumato.mechanism.entry import Entry, Options
from sfumato.mechanism.model import Block, NoiseModel
from sfumato.mechanism.totals import with_exact_total
from sfumato.noise import DiscreteLaplace
from sfumato.policies import Policy
from sfumato.workload import Workload

# Cells of an axis up to which it is taken, and up to which a plan tries it.
LONGEST, WEIGHED = 1 << 14, 2048
# What hats of 1, 2, 3, … levels get of every edge together, in WHOLE parts: found by their error on all ranges.
WHOLE, HATS = 192, (0, 52, 68, 75, 80, 80, 84)


@dataclass(frozen=True, kw_only=True, eq=False)
class DiagonalHatsMechanism(LinearMechanism):
    """`lines` are what crosses the grid lines along either axis."""

    lines: tuple[Crossing, Crossing]

    def __post_init__(self) -> None:
        if not self.policy.structured or self.policy.domain.ndim != 2 or min(self.policy.domain.shape) < 2:
            raise InvalidInput(
                f"mechanism={self.name!r} needs a policy made of moves on a grid of two axes. Nothing was drawn or "
                "recorded. Use mechanism='edges'."
            )
        if self.policy.public or not self.policy.moves_exist:
            raise InvalidInput(
                f"mechanism={self.name!r} is for moves along both axes. Nothing was drawn or recorded. Use "
                "mechanism='edge-hats'."
            )
        if self._bits_needed > 62:
            raise InvalidInput(
                f"epsilon={float(self.epsilon):g} on {self.policy.domain.size:,} cells needs noise beyond what 64-bit "
                f"fixed point holds under mechanism={self.name!r}. Use a larger epsilon or fewer cells."
            )

    @cached_property
    def _estimator(self) -> CrossingEstimator:
        nx, ny = self.policy.domain.shape
        return CrossingEstimator((nx, ny), self.lines)

    @cached_property
    def _edge_costs(self) -> tuple[int, int, int]:
        """What an edge along x, one along y and a diagonal give to noise, at the most: from what is built."""
        along_x, along_y = self.lines
        straight = along_y.hats.total, along_x.hats.total  # edges along x cross lines along y
        diagonal = along_x.diagonal + along_x.largest_share + along_y.largest_share
        return (*straight, min(diagonal, sum(straight)))  # or a walk around the corner

    @cached_property
    def _cost(self) -> int:
        """The costliest move, as a walk of diagonals and of edges along the longer axis."""
        x, y, diagonal = self._edge_costs
        sizes = self.policy.moves.sizes(self.policy.domain.shape)
        both = sizes.min(axis=1)
        return int(max((both * diagonal + (sizes - both[:, None]) @ np.array([x, y])).tolist(), default=0))

    @cached_property
    def model(self) -> NoiseModel:
        """One block for all edges and hats, and one for the cells joined to ⊥."""
        blocks = [Block(self._estimator, DiscreteLaplace(self.epsilon / self._cost))]
        if self.policy.absent is not None:
            blocks.append(Block(Selection(self.policy.absent), DiscreteLaplace(self.epsilon)))
        return NoiseModel(self.policy.domain.shape, tuple(blocks))

    @property
    def privacy_loss(self) -> Fraction:
        """The costliest move times the rate, or that of a record that appears."""
        losses = [self._cost * self.model.blocks[0].noise.rate]
        return max([*losses, *(block.noise.rate for block in self.model.blocks[1:])])

    @property
    def _bits_needed(self) -> float:
        """As for noise on grid lines: the scale times 2⁸ for its tail, sums under a hat, and fractions."""
        scale = max(self._cost, 1) / float(self.epsilon)
        return math.log2(scale) + 8 + max(line.hats.factor_bits for line in self.lines) + FRACTION_BITS

    def values(self, counts: Integers) -> Integers:
        """x in row 0, and a row of zeros for the noise's fractions."""
        return np.stack([counts, np.zeros_like(counts)])

    def disturbance(self, noise: Sequence[Integers]) -> Integers:
        """The divergence, as integers over 2^bits: whole parts in row 0, the noise's own fractions in row 1."""
        flat = self._estimator.fixed(noise[0])
        if self.policy.absent is not None:
            flat[self.policy.absent.ravel()] += noise[1] << FRACTION_BITS
        return np.stack([flat >> FRACTION_BITS, flat & ((1 << FRACTION_BITS) - 1)])

    def estimate(self, measured: Integers, total: int | None) -> Floats:
        """The integers put together; a divergence sums to zero, fractions included."""
        estimates = measured[0] + np.ldexp(measured[1].astype(np.float64), -FRACTION_BITS)
        return estimates if total is None else with_exact_total(estimates, total)


def diagonal_hats(policy: Policy, epsilon: Fraction, **options: Any) -> Mechanism:
    """Noise on every edge and diagonal, and on hats over what crosses a grid line: `widths` and `weights` as for
    `hats`, the last weight that of edges along an axis, and `diagonal` that of diagonals.
    """
    shape = policy.domain.shape
    if len(shape) != 2 or max(shape) > LONGEST:
        raise InvalidInput(
            f"mechanism='diagonal-hats' is for grids of two axes of at most {LONGEST} cells, here "
            f"{' × '.join(map(str, shape))}. Nothing was drawn or recorded. Use mechanism='edge-hats'."
        )
    widths = each_axis(options.pop("widths", None), [best_hats(n, False)[0] for n in shape], "widths")
    weights = each_axis(options.pop("weights", None), [_usual(len(b)) for b in widths], "weights")
    hats = max((sum(w[:-1]) for w in weights), default=0)
    diagonal = positive_int(options.pop("diagonal", max(WHOLE - 2 * hats, 1)), "diagonal")
    no_options("diagonal-hats", options)
    axes = list(zip(shape, widths, weights, strict=True))
    made = {axis: Crossing(*axis, diagonal) for axis in dict.fromkeys(axes)}
    chosen = {"widths": [*map(list, widths)], "weights": [*map(list, weights)], "diagonal": diagonal}
    lines = made[axes[0]], made[axes[1]]
    return DiagonalHatsMechanism(name="diagonal-hats", policy=policy, epsilon=epsilon, options=chosen, lines=lines)


def _usual(levels: int) -> tuple[int, ...]:
    each = HATS[min(levels, len(HATS) - 1)] // max(levels, 1)
    return (max(each, 1),) * levels + (WHOLE - max(each, 1) * levels,)


def _hats(policy: Policy, workload: Workload) -> Iterator[Options]:
    """Where some move crosses a corner, and sums of cells are asked."""
    shape = policy.domain.shape
    if len(shape) != 2 or max(shape) > WEIGHED or not policy.structured or not policy.moves_exist:
        return
    if (policy.moves.sizes(shape) > 0).all(axis=1).any() and any(
        k.partial for k in asked_along(workload, policy.domain)
    ):
        yield {}


def _needed(policy: Policy) -> tuple[Set[str], ...]:
    del policy
    return ({"widths", "weights", "diagonal"},)


DIAGONAL_HATS = Entry(name="diagonal-hats", build=diagonal_hats, candidates=_hats, needed=_needed)
