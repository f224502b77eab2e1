"""The named vertex strategies: identity, prefix sums, Haar wavelets, hierarchies, hats."""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Set
from fractions import Fraction
from typing import Any, TypeAlias

from sfumato.errors import InvalidInput
from sfumato.exact import positive_int
from sfumato.linear import Haar, Hats, Hierarchy, Identity, Prefix, PrefixBlocks, nested_blocks
from sfumato.mechanism.base import Mechanism
from sfumato.mechanism.cells.along import asked_along
from sfumato.mechanism.cells.hat_tuning import WEIGHT, best_hats
from sfumato.mechanism.cells.tuning import (
    COARSE,
    RESOLUTION,
    best_hierarchies,
    best_hierarchy,
    best_prefix_blocks,
    largest_along,
)
from sfumato.mechanism.cells.vertex import VertexMechanism
from sfumato.mechanism.edges.edges import EdgeMechanism
from sfumato.mechanism.entry import Entry, Options
from sfumato.policies import Policy
from sfumato.workload import RANGES, Workload

# Cells of an axis under hats: the exact variances of their estimates take a kilobyte a cell.
LONGEST = 1 << 20
# The widths of the hats along an axis, from the largest, and their weights with that of the cells.
HatLevels: TypeAlias = tuple[tuple[int, ...], tuple[int, ...]]
WEIGHED = 1 << 17  # up to which a plan tries hats by itself


def identity(policy: Policy, epsilon: Fraction, **options: Any) -> Mechanism:
    """Noise on every count: the plain histogram. Best for single cells, worst for long ranges."""
    no_options("identity", options)
    factors = tuple(Identity(n) for n in policy.domain.shape)
    return VertexMechanism(name="identity", policy=policy, epsilon=epsilon, factors=factors)


def haar(policy: Policy, epsilon: Fraction, **options: Any) -> Mechanism:
    """Privelet: noise on the Haar coefficients along every axis. Ranges pay log³ of the axis' length."""
    no_options("haar", options)
    factors = tuple(Haar(n) for n in policy.domain.shape)
    return VertexMechanism(name="haar", policy=policy, epsilon=epsilon, factors=factors)


def hierarchy(policy: Policy, epsilon: Fraction, **options: Any) -> Mechanism:
    """Noise on the weighted counts of nested blocks along every axis, made consistent by least squares.

    `blocks` are their lengths, from the largest to 1, and `weights` the accuracy of each level relative to the others,
    in whole numbers; one list, or one for each axis. Without them, `branching` (and `root`, whether the coarsest
    level is one block over everything) gives equal weights; without any option they are tuned for ranges.
    """
    shape = policy.domain.shape
    if "branching" in options or "root" in options:
        branching = positive_int(options.pop("branching", 16), "branching")
        root = options.pop("root", not policy.total_is_public)
        no_options("hierarchy", options)
        if branching < 2:
            raise InvalidInput(f"branching={branching} must be at least 2.")
        if not isinstance(root, bool):
            raise InvalidInput(f"root={root!r} must be True or False: whether the coarsest level is one block.")
        factors = tuple(Hierarchy(n, nested_blocks(n, branching, root=root)) for n in shape)
        chosen: dict[str, Any] = {"branching": branching, "root": root}
    else:
        factors, chosen = blocked(shape, options, total_known=policy.total_is_public and len(shape) == 1, product=True)
        no_options("hierarchy", options)
    return VertexMechanism(name="hierarchy", policy=policy, epsilon=epsilon, options=chosen, factors=factors)


def blocked(
    shape: tuple[int, ...], options: dict[str, Any], *, total_known: bool, coarse: bool = False, product: bool = False
) -> tuple[tuple[Hierarchy, ...], dict[str, Any]]:
    """(one hierarchy for every axis, the options that name them), from given or tuned blocks and weights.

    With `product` all axes are one strategy, in which their weights multiply.
    """
    if options.get("blocks") is not None and options.get("weights") is not None:
        tuned: list[HatLevels] = [((), ())] * len(shape)  # nothing is left to tune
    elif product:
        tuned = best_hierarchies(shape, (RANGES,) * len(shape), total_known)
    else:
        tuned = [best_hierarchy(n, RANGES, total_known, COARSE if coarse else RESOLUTION) for n in shape]
    blocks = each_axis(options.pop("blocks", None), [b for b, _ in tuned], "blocks")
    weights = each_axis(
        options.pop("weights", None),
        [w if b == t else (1,) * len(b) for b, (t, w) in zip(blocks, tuned, strict=True)],
        "weights",
    )
    bits = 8 if coarse else 14
    factors = tuple(Hierarchy(n, b, w, fraction_bits=bits) for n, b, w in zip(shape, blocks, weights, strict=True))
    return factors, {"blocks": [list(b) for b in blocks], "weights": [list(w) for w in weights]}


def hats(policy: Policy, epsilon: Fraction, **options: Any) -> Mechanism:
    """Noise on sums under overlapping hats of a few widths and on every cell: the best that is known for ranges under
    add/remove and replace-one.

    `widths` are the distances between hats in cells, from the widest level down, and `weights` the accuracy of each
    level and of the cells relative to the others, in whole numbers; one list, or one for each axis. Without them they
    are chosen for ranges, in closed form.
    """
    shape = policy.domain.shape
    if max(shape) > LONGEST:
        raise InvalidInput(
            f"mechanism='hats' is for axes of at most {LONGEST} cells, here {max(shape)}: its variances take a "
            "kilobyte a cell. Nothing was drawn or recorded. Use mechanism='hierarchy'."
        )
    if options.get("widths") is not None and options.get("weights") is not None:
        tuned: list[HatLevels] = [((), ())] * len(shape)  # nothing is left to tune
    else:
        tuned = _tuned_hats(policy, [True] * len(shape))
    usual = min([WEIGHT, *(max(w) for b, w in tuned if b)])
    factors, chosen = hats_along("hats", shape, tuned, usual, options)
    return VertexMechanism(name="hats", policy=policy, epsilon=epsilon, options=chosen, factors=factors)


def hats_along(
    name: str, shape: tuple[int, ...], tuned: Sequence[HatLevels], usual: int, options: Options
) -> tuple[tuple[Hats, ...], Options]:
    """The hats of every axis and their options: the widths and weights given, else the tuned ones. Widths that were
    not tuned get equal weights, `usual` each.
    """
    widths = each_axis(options.pop("widths", None), [b for b, _ in tuned], "widths")
    weights = each_axis(
        options.pop("weights", None),
        [w if b == t else (usual if b else 1,) * (len(b) + 1) for b, (t, w) in zip(widths, tuned, strict=True)],
        "weights",
    )
    no_options(name, options)
    axes = list(zip(shape, widths, weights, strict=True))
    made = {axis: Hats(*axis) for axis in dict.fromkeys(axes)}  # equal axes share what is computed of them
    return tuple(made[axis] for axis in axes), {"widths": [*map(list, widths)], "weights": [*map(list, weights)]}


def _tuned_hats(policy: Policy, along: Sequence[bool]) -> list[HatLevels]:
    """(widths, weights) for every axis; along some there are to be hats, along the others the cells alone."""
    shape = policy.domain.shape
    known = policy.total_is_public and len(shape) == 1
    free = [best_hats(n, known) if there else ((), (1,)) for n, there in zip(shape, along, strict=True)]
    largest = largest_along(sum(len(b) > 0 for b, _ in free))
    return [best_hats(n, known, largest) if there else ((), (1,)) for n, there in zip(shape, along, strict=True)]


def each_axis(given: Any, default: list[tuple[int, ...]], name: str) -> list[tuple[int, ...]]:
    """One list of whole numbers for every axis."""
    if given is None:
        return default
    lists = list(given) if isinstance(given, (list, tuple)) else []
    if lists and not isinstance(lists[0], (list, tuple)):
        lists = [lists] * len(default)
    if len(lists) != len(default) or not all(isinstance(axis, (list, tuple)) for axis in lists):
        raise InvalidInput(f"{name}={given!r} must be a list of whole numbers, or one such list for each axis.")
    return [tuple(positive_int(k, name) for k in axis) for axis in lists]


def prefix(policy: Policy, epsilon: Fraction, **options: Any) -> Mechanism:
    """Noise on the prefix sums of a line: a range pays for its two ends alone, and a move for the cells it crosses.

    Where the total is public the last prefix sum is known, and the mechanism is that of the line's edges (Blowfish,
    Theorem 5.2). With a ⊥ the sums may run in either direction: `reverse=True` starts at the upper end, for sources
    at the lower one.
    """
    if policy.domain.ndim != 1:
        raise InvalidInput("mechanism='prefix' is for lines; on a grid use mechanism='edges'.")
    reverse = options.pop("reverse", False)
    no_options("prefix", options)
    if not isinstance(reverse, bool):
        raise InvalidInput(f"reverse={reverse!r} must be True or False.")
    if policy.total_is_public and policy.structured:
        return EdgeMechanism(name="prefix", policy=policy, epsilon=epsilon, across=(Identity(policy.domain.size),))
    factors = (Prefix(policy.domain.size, reverse=reverse),)
    return VertexMechanism(name="prefix", policy=policy, epsilon=epsilon, options={"reverse": reverse}, factors=factors)


def blocks(policy: Policy, epsilon: Fraction, **options: Any) -> Mechanism:
    """Prefix sums at every b-th cell of a line, and a hierarchy (often the counts alone) inside the blocks.

    A range pays for the two blocks in which it ends, a move for the few block ends it crosses and two cells: the
    error does not grow with the line. It contains the spanner H_k^θ of Blowfish (section 5.3.1) as a special case.
    """
    if policy.domain.ndim != 1:
        raise InvalidInput("mechanism='blocks' is for lines; on a grid use mechanism='edge-hierarchy'.")
    n, moves = policy.domain.size, policy.moves.stencil
    if moves is None:
        raise InvalidInput("mechanism='blocks' is for moves on a line; under this policy use mechanism='hierarchy'.")
    told = options.get("blocks") is not None and options.get("weights") is not None
    tuned = ((), ()) if told else best_prefix_blocks(max(int(moves.reach[0]), 1))
    (lengths,) = each_axis(options.pop("blocks", None), [tuned[0]], "blocks")
    equal = (1,) * len(lengths)
    (weights,) = each_axis(options.pop("weights", None), [tuned[1] if lengths == tuned[0] else equal], "weights")
    no_options("blocks", options)
    if n > 1 and lengths[0] >= n:
        raise InvalidInput(f"blocks={lengths}: a block as long as the line of {n} cells has no end to publish.")
    chosen = {"blocks": list(lengths), "weights": list(weights)}
    factors = (PrefixBlocks(n, lengths, weights),)
    return VertexMechanism(name="blocks", policy=policy, epsilon=epsilon, options=chosen, factors=factors)


def no_options(name: str, options: dict[str, Any]) -> None:
    """Refuse what was not taken."""
    if options:
        raise InvalidInput(f"mechanism={name!r} takes no option {', '.join(sorted(options))}.")


def blocks_needed(policy: Policy) -> tuple[Set[str], ...]:
    """What a file says of nested blocks."""
    del policy
    return ({"blocks", "weights"},)


def _hierarchy_needed(policy: Policy) -> tuple[Set[str], ...]:
    return (*blocks_needed(policy), {"branching", "root"})


def _hats_needed(policy: Policy) -> tuple[Set[str], ...]:
    del policy
    return ({"widths", "weights"},)


def _hierarchies(policy: Policy, workload: Workload) -> Iterator[Options]:
    known = policy.total_is_public and policy.domain.ndim == 1
    tuned = best_hierarchies(policy.domain.shape, asked_along(workload, policy.domain), known)
    yield {"blocks": [b for b, _ in tuned], "weights": [w for _, w in tuned]}


def _hats(policy: Policy, workload: Workload) -> Iterator[Options]:
    # Weighing hats takes a kilobyte a cell of an axis: beyond this it would be felt.
    if max(policy.domain.shape) > WEIGHED:
        return
    several = [kind.partial for kind in asked_along(workload, policy.domain)]
    if all(several):
        yield {}
    elif any(several):  # hats along the axes of which sums are asked, and along the others the cells alone
        tuned = _tuned_hats(policy, several)
        yield {"widths": [b for b, _ in tuned], "weights": [w for _, w in tuned]}


def _prefix_blocks(policy: Policy, workload: Workload) -> Iterator[Options]:
    """Those for the reach of the moves, and those for the powers of two above it: where they are the same as blocks
    that are asked for, or as cut at the ends of the line, they may serve longer moves better.
    """
    yield {}
    moves = policy.moves.stencil
    if moves is not None and policy.domain.ndim == 1 and any(k.lengths for k in asked_along(workload, policy.domain)):
        reach, n = max(int(moves.reach[0]), 1), policy.domain.size
        for longer in (1 << k for k in range(reach.bit_length(), reach.bit_length() + 3)):
            lengths, weights = best_prefix_blocks(longer)
            if lengths[0] < n:
                yield {"blocks": lengths, "weights": weights}


def _either_end(policy: Policy, workload: Workload) -> Iterator[Options]:
    del workload
    if not policy.total_is_public:  # else it is the same as `edges`
        yield from ({"reverse": reverse} for reverse in (False, True))


IDENTITY = Entry(name="identity", build=identity)
PREFIX = Entry(name="prefix", build=prefix, candidates=_either_end)
HAAR = Entry(name="haar", build=haar)
HIERARCHY = Entry(name="hierarchy", build=hierarchy, candidates=_hierarchies, needed=_hierarchy_needed, scaled=True)
HATS = Entry(name="hats", build=hats, candidates=_hats, needed=_hats_needed)
BLOCKS = Entry(name="blocks", build=blocks, candidates=_prefix_blocks, needed=blocks_needed, scaled=True)
