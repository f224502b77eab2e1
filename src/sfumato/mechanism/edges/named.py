"""The named edge strategies along grid lines: the edges themselves, their Haar coefficients, nested blocks of them."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import Any

from sfumato.errors import InvalidInput
from sfumato.linear import Haar, Identity
from sfumato.mechanism.base import Mechanism
from sfumato.mechanism.cells.along import asked_along
from sfumato.mechanism.cells.strategies import blocked, blocks_needed, no_options
from sfumato.mechanism.cells.tuning import COARSE, RESOLUTION, best_hierarchy
from sfumato.mechanism.edges.edges import EdgeMechanism
from sfumato.mechanism.edges.graph_edges import GraphEdgeMechanism
from sfumato.mechanism.entry import Entry, Options
from sfumato.policies import Policy
from sfumato.workload import Workload


def edges(policy: Policy, epsilon: Fraction, **options: Any) -> Mechanism:
    """Noise on the policy's edges; on grids, along the grid lines."""
    no_options("edges", options)
    if policy.structured:
        across = tuple(Identity(n) for n in policy.domain.shape)
        return EdgeMechanism(name="edges", policy=policy, epsilon=epsilon, across=across)
    return GraphEdgeMechanism(name="edges", policy=policy, epsilon=epsilon)


def edge_haar(policy: Policy, epsilon: Fraction, **options: Any) -> Mechanism:
    """Noise on Haar coefficients of the edges along every grid line."""
    no_options("edge-haar", options)
    _require_grid(policy, "edge-haar")
    across = tuple(Haar(n) for n in policy.domain.shape)
    return EdgeMechanism(name="edge-haar", policy=policy, epsilon=epsilon, across=across)


def edge_hierarchy(policy: Policy, epsilon: Fraction, **options: Any) -> Mechanism:
    """Noise on weighted nested blocks of the edges along every grid line; `blocks` and `weights` as for `hierarchy`."""
    _require_grid(policy, "edge-hierarchy")
    across, chosen = blocked(policy.domain.shape, options, total_known=False, coarse=policy.domain.ndim > 2)
    no_options("edge-hierarchy", options)
    return EdgeMechanism(name="edge-hierarchy", policy=policy, epsilon=epsilon, options=chosen, across=across)


def _require_grid(policy: Policy, name: str) -> None:
    if policy.domain.ndim < 2:
        raise InvalidInput(f"mechanism={name!r} is for grids; on a line use mechanism='edges'.")


def _hierarchies(policy: Policy, workload: Workload) -> Iterator[Options]:
    known = policy.total_is_public and policy.domain.ndim == 1
    along = zip(policy.domain.shape, asked_along(workload, policy.domain), strict=True)
    finest = COARSE if policy.domain.ndim > 2 else RESOLUTION
    tuned = [best_hierarchy(n, kind, known, finest) for n, kind in along]
    yield {"blocks": [b for b, _ in tuned], "weights": [w for _, w in tuned]}


EDGES = Entry(name="edges", build=edges)
EDGE_HAAR = Entry(name="edge-haar", build=edge_haar)
EDGE_HIERARCHY = Entry(
    name="edge-hierarchy", build=edge_hierarchy, candidates=_hierarchies, needed=blocks_needed, scaled=True
)
