"""Noise on the edges of a spanner: a sparser graph in which a move is a short path.

Promise: ε-private under the policy, for one record. The mechanism reports `x + P·f(η)`, P being the incidence matrix of
the spanner and f an estimator of edge values. A move along an edge of the policy is the divergence of its path in the
spanner, an integer vector z of zeros and ±1, and `f(η + B·z) = f(η) + z` to the last bit. So c = B·z leads from one
neighbour to the other, and costs what the edges of the path cost.

On a line or grid without ⊥ the spanner is made of cubes. Every cell hangs on the red corner of its cube by an internal
edge with noise of its own, of rate r_i (B is the identity there); the red cells form a smaller grid, whose external
edges carry the noise of the edge mechanism, each at a cost of r_e. A path has at most I internal and E external edges
for some pair (I, E) of the spanner's `usage`, which is computed from what is built, and `I·r_i + E·r_e ≤ ε` for every
pair. Haney, Machanavajjhala, Ding (VLDB 2015), section 5.3, where all edges have the rate ε/stretch; the stretch is put
at 3 there, which is too small on grids, and the two kinds of edge need not be treated alike.

On a graph that was listed edge by edge it is a spanning tree, with noise of rate ε/stretch on every edge: a query pays
for the edges of the tree that it cuts, of which there are fewer than in the graph (Lemma 4.5 there).

Nothing is said about values on the edges: red cells form cycles, and the noisy values themselves are never formed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np

from sfumato._types import Floats, Integers
from sfumato.domain import Domain, Interval
from sfumato.errors import InvalidInput
from sfumato.linear import CubeIncidence, Embedded, Kronecker
from sfumato.mechanism.base import LinearMechanism, require_integers
from sfumato.mechanism.edges.edges import EdgeMechanism, Invertible
from sfumato.mechanism.edges.graph_edges import GraphEdgeMechanism
from sfumato.mechanism.model import Block, NoiseModel
from sfumato.noise import DiscreteLaplace
from sfumato.noise.expansion import bits
from sfumato.policies import Policy, threshold
from sfumato.policies.spanner import Spanner


def require_spanner(policy: Policy, name: str) -> None:
    """Spanners that help: cubes where moves follow a stencil, a tree where edges were listed."""
    cubes = policy.moves.stencil is not None and policy.total_is_public
    if not cubes and not policy.moves.listed:
        raise InvalidInput(
            f"mechanism={name!r} is for moves on a line or grid without ⊥, and for graphs listed edge by edge; this "
            f"policy hides that {policy.describe()}. Nothing was computed. Use mechanism='edges'."
        )


def split(spanner: Spanner, epsilon: Fraction, share: int) -> tuple[Fraction, Fraction]:
    """(r_i, r_e): what an internal and an external edge cost when `share` per cent of ε are for internal ones.

    The most internal edges of a path share one part of ε, the most external ones the other. Where no path has both,
    the two are raised together until some path costs ε. A kind that no path uses costs nothing.
    """
    internal, external = (max(pair[kind] for pair in spanner.usage) for kind in (0, 1))
    rate_i = Fraction(share, 100 * internal) if internal else Fraction(0)
    rate_e = Fraction(100 - share, 100 * external) if external else Fraction(0)
    worst = max(i * rate_i + e * rate_e for i, e in spanner.usage)
    factor = epsilon / worst if worst else Fraction(0)
    return rate_i * factor, rate_e * factor


@dataclass(frozen=True, kw_only=True, eq=False)
class CubeMechanism(LinearMechanism):
    """Noise of rate r_i on every cell that hangs on a corner, and the edge mechanism at r_e on the grid of corners."""

    spanner: Spanner
    share: int
    across: tuple[Invertible, ...]

    def __post_init__(self) -> None:
        try:
            _ = self._red
        except InvalidInput as error:
            raise InvalidInput(
                f"epsilon={float(self.epsilon):g} on {self.policy.domain.size:,} cells needs noise beyond what 64-bit "
                f"fixed point holds under mechanism={self.name!r}. Use a larger epsilon, fewer cells or blocks=[1]."
            ) from error

    @cached_property
    def rates(self) -> tuple[Fraction, Fraction]:
        """(r_i, r_e); zero for a kind of edge that no move uses, and that gets no noise."""
        return split(self.spanner, self.epsilon, self.share)

    @cached_property
    def _hanging(self) -> CubeIncidence:
        return CubeIncidence(self.policy.domain.shape, self.spanner.side or 1)

    @cached_property
    def _red(self) -> EdgeMechanism | None:
        """The edge mechanism for single steps on the grid of red cells, at r_e for each."""
        if not self.rates[1]:
            return None
        axes = [Interval(f"red{i}", 0, len(c), len(c)) for i, c in enumerate(self._hanging.corners)]
        steps = threshold(Domain(tuple(axes)), 1)
        return EdgeMechanism(name=self.name, policy=steps, epsilon=self.rates[1], across=self.across)

    @cached_property
    def model(self) -> NoiseModel:
        """One block for the internal edges, and one for the external edges along every axis."""
        shape, corners = self.policy.domain.shape, self._hanging.corners
        blocks = [Block(self._hanging, DiscreteLaplace(self.rates[0]))] if self.rates[0] else []
        for block in self._red.model.blocks if self._red else ():
            placed = [
                Embedded(f, cells, n) for f, cells, n in zip(block.estimator.factors, corners, shape, strict=True)
            ]
            blocks.append(Block(Kronecker(placed), block.noise))
        return NoiseModel(shape, tuple(blocks))

    @property
    def privacy_loss(self) -> Fraction:
        """The worst path: internal edges at their rate, external ones at the cost of a step between red cells."""
        internal = self.model.blocks[0].noise.rate if self.rates[0] else Fraction(0)
        external = self._red.privacy_loss if self._red else Fraction(0)
        return max(i * internal + e * external for i, e in self.spanner.usage)

    def require_room(self) -> None:
        """A corner receives the noise of all cells that hang on it; for the rest the edge mechanism has made room."""
        noise = int(self._hanging.degrees.max()) << bits(self.rates[0]) if self.rates[0] else 0
        require_integers(self.name, 1, noise + (1 << 62 if self._red else 0), "Use a larger epsilon.")

    def values(self, counts: Integers) -> Integers:
        """x in row 0, and a row of zeros where the noise has fractions."""
        return counts[None] if self._red is None else self._red.values(counts)

    def disturbance(self, noise: Sequence[Integers]) -> Integers:
        """The divergence: whole parts in row 0, the noise's own fractions, which red cells alone have, in row 1."""
        external = list(noise)
        whole = np.zeros(self.policy.domain.size, dtype=np.int64)
        if self.rates[0]:
            whole += self._hanging.forward(external.pop(0))
        if self._red is None:
            return whole[None]
        received = self._red.disturbance(external)
        measured = np.zeros((len(received), len(whole)), dtype=np.int64)
        measured[:, self._hanging.red] = received
        measured[0] += whole
        return measured

    def estimate(self, measured: Integers, total: int | None) -> Floats:
        """The integers put together, as in the edge mechanism; the sum is right by itself."""
        return measured[0].astype(np.float64) if self._red is None else self._red.estimate(measured, total)


@dataclass(frozen=True, kw_only=True, eq=False)
class SpanningTreeMechanism(GraphEdgeMechanism):
    """Noise of rate ε/stretch on every edge of a spanning tree of a graph that was listed."""

    spanner: Spanner

    def __post_init__(self) -> None:
        if self.spanner.stretch == 1:
            raise InvalidInput(
                f"mechanism={self.name!r}: this policy is a tree and its own spanner. Nothing was computed. "
                "Use mechanism='edges', which does the same."
            )

    @property
    def _pairs(self) -> Integers:
        return -np.sort(-self.spanner.edges(), axis=1)  # ⊥, which is -1, comes last

    @property
    def _stretch(self) -> int:
        return self.spanner.stretch
