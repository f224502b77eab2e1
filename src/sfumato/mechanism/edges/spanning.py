"""Choosing a spanner: how wide its cubes are, and how its two kinds of edge share ε.

Wider cubes need fewer external edges for a move, and hang more cells on every corner. For given cubes the error is
`a/r_i² + b/r_e²` with a and b from the noise model, and every split of ε in whole per cents is tried: the error is flat
around its minimum. All this looks at the policy and the workload, never at data.
"""

from __future__ import annotations

from collections.abc import Iterator, Set
from fractions import Fraction
from typing import Any

from sfumato.errors import InvalidInput
from sfumato.linear import Identity
from sfumato.mechanism.base import Mechanism
from sfumato.mechanism.cells.along import asked_along
from sfumato.mechanism.cells.strategies import blocked, no_options
from sfumato.mechanism.cells.tuning import best_hierarchy
from sfumato.mechanism.edges.edges import Invertible
from sfumato.mechanism.edges.spanner import CubeMechanism, SpanningTreeMechanism, require_spanner, split
from sfumato.mechanism.entry import Entry
from sfumato.policies import Policy, Spanner, Stencil
from sfumato.workload import CELLS, PREFIXES, RANGES, Workload, ranges

# The error terms do not depend on ε. At this one the noise is small, and fixed point never short of room.
_AMPLE = Fraction(1 << 20)


def spanner(policy: Policy, epsilon: Fraction, **options: Any) -> Mechanism:
    """Noise on the edges of a spanner: cubes on lines and grids, a spanning tree on a graph.

    `side` is how many cells the cubes are wide, `share` how many per cent of ε are for internal edges. On a grid
    `blocks` and `weights` are for the red cells, as for `edge-hierarchy`; blocks=[1] is independent noise on every
    external edge. Without `side` the cubes are those of `policy.spanner()`; the other options are tuned for ranges.
    """
    require_spanner(policy, "spanner")
    if policy.moves.stencil is None:
        no_options("spanner", options)
        return SpanningTreeMechanism(name="spanner", policy=policy, epsilon=epsilon, spanner=policy.spanner())
    cubes = policy.spanner(side=options.pop("side", None))
    across, chosen = _across(cubes, options)
    share = options.pop("share", None)
    no_options("spanner", options)
    share = best_share(cubes, across, ranges()) if share is None else _checked_share(cubes, share)
    return _cubes(cubes, epsilon, share, across, chosen)


def settings(policy: Policy, workload: Workload) -> Iterator[dict[str, Any]]:
    """The options that a plan tries: some sides, each with its best split for the workload."""
    moves = policy.moves.stencil
    if moves is None or not policy.total_is_public:
        yield {}  # a tree, or a refusal that says why
        return
    # What is asked of cells is asked of corners in much the same way, where it is cells, ranges or prefixes.
    along = [kind if kind in (CELLS, PREFIXES) else RANGES for kind in asked_along(workload, policy.domain)]
    # Queries in a matrix are slow to weigh; they get the split of all ranges.
    weighed = ranges() if workload.parts(policy.domain) is None else workload
    for side in sorted({*_sides(policy, moves), *_asked_sides(policy, moves, workload)}):
        cubes = policy.spanner(side=side)
        tuned = [best_hierarchy(m, kind, False) for m, kind in zip(_red_shape(cubes), along, strict=True)]
        given = {"blocks": [b for b, _ in tuned], "weights": [w for _, w in tuned]} if not cubes.is_tree else {}
        across, chosen = _across(cubes, given)
        yield {"side": side, "share": best_share(cubes, across, weighed), **chosen}


def best_share(cubes: Spanner, across: tuple[Invertible, ...], workload: Workload) -> int:
    """The per cents of ε for internal edges with the least error on a workload."""
    internal, external = _most(cubes)
    if not internal or not external:
        return 100 if not external else 0
    trial = _cubes(cubes, _AMPLE, 50, across, {})
    a, *terms = trial.model.error_terms(workload, cubes.domain)
    # An external edge costs r_e, its noise having the rate r_e/w: the weights enter the error squared.
    rates = [block.noise.rate for block in trial.model.blocks[1:]]
    b = sum(term * float(trial.rates[1] / rate) ** 2 for term, rate in zip(terms, rates, strict=True))

    def error(share: int) -> float:
        r_i, r_e = split(cubes, Fraction(1), share)
        return a / float(r_i) ** 2 + b / float(r_e) ** 2

    return min(range(1, 100), key=error)


def _cubes(
    cubes: Spanner, epsilon: Fraction, share: int, across: tuple[Invertible, ...], chosen: dict[str, Any]
) -> CubeMechanism:
    return CubeMechanism(
        name="spanner",
        policy=cubes.policy,
        epsilon=epsilon,
        options={"side": cubes.side, "share": share, **chosen},
        spanner=cubes,
        share=share,
        across=across,
    )


def _checked_share(cubes: Spanner, share: Any) -> int:
    internal, external = _most(cubes)
    low, high, why = 1, 99, "the internal edges' part of epsilon in whole per cents"
    if not external or not internal:
        low = high = 100 if not external else 0
        why = f"with side={cubes.side} moves use {'internal' if not external else 'external'} edges alone"
    if type(share) is not int or not low <= share <= high:
        allowed = f"between {low} and {high}" if low < high else f"{low}"
        raise InvalidInput(
            f"share={share!r} must be {allowed}: {why}. Nothing was computed. Leave it out to have it tuned."
        )
    return share


def _most(cubes: Spanner) -> tuple[int, int]:
    """The most internal and the most external edges on the path of a move."""
    return max(i for i, _ in cubes.usage), max(e for _, e in cubes.usage)


def _red_shape(cubes: Spanner) -> tuple[int, ...]:
    return tuple(-(-n // (cubes.side or 1)) for n in cubes.domain.shape)


def _across(cubes: Spanner, options: dict[str, Any]) -> tuple[tuple[Invertible, ...], dict[str, Any]]:
    """(the strategies over the red cells along each axis, the options that name them)."""
    shape = _red_shape(cubes)
    if cubes.is_tree:  # no external edge has another one beside it, over which a strategy could run
        return tuple(Identity(m) for m in shape), {}
    nested, chosen = blocked(shape, options, total_known=False)
    # One level is independent noise, whatever its weight: exact without fixed point.
    chosen["weights"] = [[1] if h.blocks == (1,) else w for h, w in zip(nested, chosen["weights"], strict=True)]
    return tuple(Identity(h.cols) if h.blocks == (1,) else h for h in nested), chosen


def _sides(policy: Policy, moves: Stencil) -> list[int]:
    """Sides worth trying: among all from 2 to twice the longest move, the best for ranges is one of these or within a
    per cent or two of them. Just below the reach along an axis, two corners are passed only by moves from one to the
    next but one, whose ends hang on nothing. With side 1 the spanner is the grid itself, which is for `edges`.
    """
    shape, reach = policy.domain.shape, int(moves.reach.max(initial=0))
    wide = max(1, sum(n > 1 for n in shape))
    tried = {reach - 1, reach, moves.longest // wide, moves.longest // (wide + 1)}
    return sorted(side for side in tried if 2 <= side <= max(shape))


def _asked_sides(policy: Policy, moves: Stencil, workload: Workload) -> set[int]:
    """Cubes that blocks of cells which are asked for are made of, where no side of theirs is passed at one go: such
    blocks cut no internal edge, and so wide cubes serve longer moves as well.
    """
    reach, asked = int(moves.reach.max(initial=0)), asked_along(workload, policy.domain)
    lengths = {length for kind in asked for length in kind.lengths if reach <= 4 * length}
    return {side for length in lengths for side in (length, length // 2) if 2 <= side <= max(policy.domain.shape)}


def _needed(policy: Policy) -> tuple[Set[str], ...]:
    return ({"side", "share"},) if policy.moves.stencil is not None else ()


SPANNER = Entry(name="spanner", build=spanner, candidates=settings, needed=_needed, scaled=True)
