"""The named edge strategies along grid lines: the edges themselves, their Haar coefficients, nested blocks of them."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import numpy as np

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


def centred_axes(policy: Policy) -> list[str]:
    """The axes along which a change leads from any value to any other, three at least: noise is centred there."""
    shape = policy.domain.shape
    if len(shape) < 2 or policy.name != "relation" or not policy.structured:
        return []
    reach = np.max([rows.max(axis=0, initial=0) for rows in policy.moves.sizes_by_term(shape)], axis=0, initial=0)
    alone = {factor.positions[0] for factor in policy.domain.factors if len(factor.positions) == 1}
    found = [i for i in sorted(alone) if shape[i] > 2 and reach[i] == shape[i] - 1]
    return [policy.domain.names[i] for i in found]


def taken_centred(policy: Policy, name: str, options: dict[str, Any]) -> tuple[int, ...]:
    """The positions of the axes named as `centred`."""
    given = options.pop("centred", [])
    if not isinstance(given, (list, tuple)) or not all(isinstance(axis, str) for axis in given):
        raise InvalidInput(f"centred={given!r} must be a list of axes, such as centred=['mode'].")
    names = policy.domain.names
    for axis in given:
        if axis not in names or policy.domain.ndim < 2:
            raise InvalidInput(
                f"mechanism={name!r}: centred names {axis!r}, which is no axis among several of this domain: they are "
                f"{', '.join(map(repr, names))}."
            )
    return tuple(sorted({names.index(axis) for axis in given}))


def if_centred(policy: Policy, workload: Workload) -> Iterator[Options]:
    """The axes that are centred, where some are; else nothing is chosen."""
    del workload
    if axes := centred_axes(policy):
        yield {"centred": axes}


def edges(policy: Policy, epsilon: Fraction, **options: Any) -> Mechanism:
    """Noise on the policy's edges; on grids, along the grid lines."""
    kept = {"centred": list(options["centred"])} if options.get("centred") else {}
    centred = taken_centred(policy, "edges", options)
    no_options("edges", options)
    if policy.structured:
        across = tuple(Identity(n) for n in policy.domain.shape)
        return EdgeMechanism(name="edges", policy=policy, epsilon=epsilon, options=kept, across=across, centred=centred)
    if centred:
        raise InvalidInput("mechanism='edges': centred is for products of moves. Leave it out.")
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
    kept = {"centred": list(options["centred"])} if options.get("centred") else {}
    centred = taken_centred(policy, "edge-hierarchy", options)
    across, chosen = blocked(policy.domain.shape, options, total_known=False, coarse=policy.domain.ndim > 2)
    no_options("edge-hierarchy", options)
    return EdgeMechanism(
        name="edge-hierarchy", policy=policy, epsilon=epsilon, options=chosen | kept, across=across, centred=centred
    )


def _require_grid(policy: Policy, name: str) -> None:
    if policy.domain.ndim < 2:
        raise InvalidInput(f"mechanism={name!r} is for grids; on a line use mechanism='edges'.")


def _hierarchies(policy: Policy, workload: Workload) -> Iterator[Options]:
    known = policy.total_is_public and policy.domain.ndim == 1
    along = zip(policy.domain.shape, asked_along(workload, policy.domain), strict=True)
    finest = COARSE if policy.domain.ndim > 2 else RESOLUTION
    tuned = [best_hierarchy(n, kind, known, finest) for n, kind in along]
    yield {"blocks": [b for b, _ in tuned], "weights": [w for _, w in tuned]} | next(if_centred(policy, workload), {})


def _edges(policy: Policy, workload: Workload) -> Iterator[Options]:
    yield next(if_centred(policy, workload), {})


EDGES = Entry(name="edges", build=edges, candidates=_edges, tunings=if_centred)
EDGE_HAAR = Entry(name="edge-haar", build=edge_haar)
EDGE_HIERARCHY = Entry(
    name="edge-hierarchy",
    build=edge_hierarchy,
    candidates=_hierarchies,
    tunings=if_centred,
    needed=blocks_needed,
    scaled=True,
)
