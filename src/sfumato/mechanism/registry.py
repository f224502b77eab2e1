"""The mechanisms by name: a closed list, from which plans choose and files are read."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any

import numpy as np

from sfumato.errors import FileFormatError, InvalidInput
from sfumato.exact import positive_fraction, shown, written
from sfumato.linear import Haar, Identity
from sfumato.mechanism.base import Mechanism
from sfumato.mechanism.cells.greedy import LARGEST_SEARCHED, greedy, greedy_variants
from sfumato.mechanism.cells.strategies import blocked, blocks, haar, hats, hierarchy, identity, no_options, prefix
from sfumato.mechanism.cells.tuning import COARSE, RESOLUTION, best_hierarchies, best_hierarchy
from sfumato.mechanism.edges.edges import EdgeMechanism
from sfumato.mechanism.edges.graph_edges import GraphEdgeMechanism
from sfumato.mechanism.edges.policy_edges import PolicyEdgeMechanism
from sfumato.mechanism.edges.spanning import settings as spanner_settings
from sfumato.mechanism.edges.spanning import spanner
from sfumato.mechanism.edges.tree import ConsistentMechanism
from sfumato.mechanism.grids.shifted import shifted, shifted_edges, widths
from sfumato.mechanism.partitions.adaptive import DawaOnCells, DawaOnTree
from sfumato.mechanism.points.sorted import sorted_points
from sfumato.policies import Complete, Policy, Stencil
from sfumato.workload import AxisQueries, ProductQueries, Workload

Builder = Callable[..., Mechanism]

WEIGHED = 1 << 17  # cells of an axis up to which a plan tries hats by itself


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


def policy_edges(policy: Policy, epsilon: Fraction, **options: Any) -> Mechanism:
    """Noise on every edge of a line policy, also on the long ones."""
    no_options("policy-edges", options)
    return PolicyEdgeMechanism(name="policy-edges", policy=policy, epsilon=epsilon)


def consistent(policy: Policy, epsilon: Fraction, **options: Any) -> Mechanism:
    """Noise on the edge values of a spanning tree, then the nearest ones without negative counts."""
    no_options("consistent", options)
    return ConsistentMechanism(name="consistent", policy=policy, epsilon=epsilon)


def dawa(policy: Policy, epsilon: Fraction, **options: Any) -> Mechanism:
    """DAWA on the counts, for `queries` on ranges or cells; or on a tree's edges, made `consistent` or not."""
    if policy.moves_exist and not isinstance(policy.moves, Complete):
        consistent = options.pop("consistent", True)
        no_options("dawa", options)
        if not isinstance(consistent, bool):
            raise InvalidInput(f"consistent={consistent!r} must be True or False.")
        return DawaOnTree(name="dawa", policy=policy, epsilon=epsilon, options={"consistent": consistent})
    queries = options.pop("queries", "ranges")
    no_options("dawa", options)
    if queries not in ("ranges", "cells"):
        raise InvalidInput(f"queries={queries!r} must be 'ranges' or 'cells'.")
    if policy.domain.size == 1 or (policy.absent is not None and not policy.absent.all()):
        raise InvalidInput(
            "mechanism='dawa' needs add/remove, replace-one, or a policy that a tree spans; use 'edges'."
        )
    return DawaOnCells(name="dawa", policy=policy, epsilon=epsilon, options={"queries": queries})


def _require_grid(policy: Policy, name: str) -> None:
    if policy.domain.ndim < 2:
        raise InvalidInput(f"mechanism={name!r} is for grids; on a line use mechanism='edges'.")


def _long_moves(policy: Policy) -> bool:
    """Whether a move may lead across much of a line; short ones are served better by prefix sums with blocks."""
    moves = policy.moves
    return not isinstance(moves, Stencil) or (policy.domain.ndim == 1 and 16 * moves.reach[0] >= policy.domain.size)


# Under these, weights with a common divisor say the same as without it. Hats are rounded to whole numbers by theirs.
_WEIGHTED = ("hierarchy", "edge-hierarchy", "blocks", "spanner")

_BUILDERS: dict[str, Builder] = {
    "identity": identity,
    "prefix": prefix,
    "haar": haar,
    "hierarchy": hierarchy,
    "hats": hats,
    "edges": edges,
    "edge-haar": edge_haar,
    "edge-hierarchy": edge_hierarchy,
    "policy-edges": policy_edges,
    "blocks": blocks,
    "spanner": spanner,
    "shifted": shifted,
    "shifted-edges": shifted_edges,
    "sorted": sorted_points,
    "consistent": consistent,
    "dawa": dawa,
    "greedy": greedy,
}


def mechanisms() -> tuple[str, ...]:
    """The names that `sf.plan(..., mechanism=…)` takes.

    >>> "edges" in sf.mechanisms()
    True
    """
    return tuple(_BUILDERS)


def build(name: str, policy: Policy, epsilon: Fraction, **options: Any) -> Mechanism:
    """One mechanism by name, or a clear refusal."""
    mechanism = _named(name)(policy, epsilon, **options)
    mechanism.require_possible()
    return mechanism


def _named(name: Any) -> Builder:
    if not isinstance(name, str) or name not in _BUILDERS:
        raise InvalidInput(f"mechanism={shown(name)} is not one of {', '.join(map(repr, _BUILDERS))}.")
    return _BUILDERS[name]


def fresh(name: str, policy: Policy, epsilon: Fraction, **options: Any) -> Mechanism:
    """As `build`, for a new plan: weights without a common divisor, and room in 64 bits for all counts up to the cap.

    What was published under older rules is built again as it was.
    """
    if name in _WEIGHTED and "weights" in options:
        options = {**options, "weights": _lowest(options["weights"])}
    built = build(name, policy, epsilon, **options)
    built.require_room()
    return built


def _lowest(weights: Any) -> Any:
    """Whole weights of one axis (or of each) divided by what they have in common; anything else as it is."""
    if not isinstance(weights, (list, tuple)) or not weights:
        return weights
    if all(isinstance(axis, (list, tuple)) for axis in weights):
        return [_lowest(axis) for axis in weights]
    if not all(isinstance(k, (int, np.integer)) and not isinstance(k, bool) and k > 0 for k in weights):
        return weights
    common = math.gcd(*(int(k) for k in weights))
    return [int(k) // common for k in weights]


def mechanism_from_spec(spec: dict[str, Any], policy: Policy) -> Mechanism:
    """The mechanism that `Mechanism.spec()` described. It is not trusted: no sensitivity is computed to read it."""
    try:
        epsilon, options = positive_fraction(written(spec["epsilon"], "epsilon"), "epsilon"), dict(spec["options"])
        if "share" in options and isinstance(options["share"], str):
            options["share"] = written(options["share"], "share")
        build = _named(spec["name"])
        if not _complete(spec["name"], policy, options):
            raise InvalidInput("options are missing, which every release names")
        return build(policy, epsilon, **options)
    except (ArithmeticError, AttributeError, LookupError, MemoryError, RecursionError, TypeError, ValueError) as error:
        raise FileFormatError("the description of the mechanism is damaged, or from a newer version.") from error


def _complete(name: str, policy: Policy, options: dict[str, Any]) -> bool:
    """Whether nothing is left to be tuned, which takes longer than reading and was written down when it was done."""
    needed = {
        "hierarchy": ({"blocks", "weights"}, {"branching", "root"}),
        "edge-hierarchy": ({"blocks", "weights"},),
        "hats": ({"widths", "weights"},),
        "blocks": ({"blocks", "weights"},),
        "greedy": ({"boxes"}, {"sets"}),
        "spanner": ({"side", "share"},) if isinstance(policy.moves, Stencil) else (),
    }.get(name, ())
    return not needed or any(keys <= set(options) for keys in needed)


def tunings(name: str, policy: Policy, workload: Workload) -> list[dict[str, Any]]:
    """The settings among which a plan chooses for a mechanism that was named without options; none: its own."""
    if name in ("shifted", "shifted-edges"):
        return list(widths(policy))
    return list(greedy_variants(policy, workload, most=LARGEST_SEARCHED)) if name == "greedy" else []


def variants(policy: Policy, workload: Workload) -> Iterator[tuple[str, dict[str, Any]]]:
    """Every mechanism with every setting that a plan tries for a workload."""
    kind = workload.kind if isinstance(workload, ProductQueries) else AxisQueries.RANGES
    for name in _BUILDERS:
        if name in ("hierarchy", "edge-hierarchy"):
            known = policy.total_is_public and policy.domain.ndim == 1
            if name == "hierarchy":
                tuned = best_hierarchies(policy.domain.shape, kind, known)
            else:
                finest = COARSE if policy.domain.ndim > 2 else RESOLUTION
                tuned = [best_hierarchy(n, kind, known, finest) for n in policy.domain.shape]
            yield name, {"blocks": [b for b, _ in tuned], "weights": [w for _, w in tuned]}
        elif name == "hats":
            # Weighing hats takes a kilobyte a cell of an axis: beyond this it would be felt.
            if kind is not AxisQueries.CELLS and max(policy.domain.shape) <= WEIGHED and _long_moves(policy):
                yield name, {}
        elif name == "dawa" and (not policy.moves_exist or isinstance(policy.moves, Complete)):
            yield name, {"queries": "cells" if kind is AxisQueries.CELLS else "ranges"}
        elif name == "prefix":
            if not policy.total_is_public:  # else it is the same as `edges`
                yield from ((name, {"reverse": reverse}) for reverse in (False, True))
        elif name in ("shifted", "shifted-edges"):
            yield from ((name, chosen) for chosen in widths(policy))
        elif name == "greedy":
            yield from ((name, chosen) for chosen in greedy_variants(policy, workload))
        elif name == "spanner":
            yield from ((name, chosen) for chosen in spanner_settings(policy, workload))
        else:
            yield name, {}
