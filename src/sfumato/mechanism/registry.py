"""The mechanisms by name: those of the house, in the order in which plans weigh them, and those a user has registered.

Files are read by this list alone: a name that is not in it is refused, and nothing is imported because a file says so.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Iterator, Set
from contextlib import contextmanager
from fractions import Fraction
from typing import Any

from sfumato.errors import FileFormatError, InvalidInput
from sfumato.exact import is_whole, positive_fraction, shown, text, written
from sfumato.mechanism.base import Mechanism
from sfumato.mechanism.cells import greedy, hat_products, levels, strategies, trees
from sfumato.mechanism.cells.given import GIVEN
from sfumato.mechanism.edges import diagonal_hats, edge_hats, named, policy_edges, spanning, tree
from sfumato.mechanism.entry import Builder, Entry, Options, Settings, as_it_is, nothing_to_choose
from sfumato.mechanism.grids import shifted
from sfumato.mechanism.partitions import adaptive, adaptive_grid, quadtree
from sfumato.mechanism.points import sorted as sorted_points
from sfumato.mechanism.tables import marginals
from sfumato.policies import Policy
from sfumato.workload import Workload

_OURS = (
    strategies.IDENTITY,
    strategies.PREFIX,
    strategies.HAAR,
    strategies.HIERARCHY,
    strategies.HATS,
    hat_products.HAT_PRODUCTS,
    levels.LEVELS,
    trees.TREE,
    named.EDGES,
    named.EDGE_HAAR,
    named.EDGE_HIERARCHY,
    edge_hats.EDGE_HATS,
    diagonal_hats.DIAGONAL_HATS,
    policy_edges.POLICY_EDGES,
    strategies.BLOCKS,
    spanning.SPANNER,
    shifted.SHIFTED,
    shifted.SHIFTED_EDGES,
    sorted_points.SORTED,
    tree.CONSISTENT,
    adaptive.DAWA,
    adaptive_grid.ADAPTIVE_GRID,
    quadtree.QUADTREE,
    greedy.GREEDY,
    marginals.MARGINALS,
)
_HOUSE = {entry.name: entry for entry in _OURS}
_UNLISTED = {GIVEN.name: GIVEN}  # a plan takes it as strategy=…, and files name it
_LONGEST_NAME = 64

_registered: dict[str, Entry] = {}


def register(
    name: str,
    build: Builder,
    *,
    candidates: Settings | None = None,
    tunings: Settings | None = None,
    needed: Iterable[str] = (),
) -> None:
    """Add a mechanism of your own to those that plans weigh, and under its name to those that files are read with.

    `build(policy, epsilon, **options)` returns a `Mechanism` of that name, policy and ε with everything that builds it
    again in its `options`, as JSON has it; or it refuses with `sf.InvalidInput`, in words. `candidates(policy,
    workload)` gives the options that a plan tries, one dict each (one without options, if left out), and `tunings`
    those among which it chooses where the mechanism was named without any. `needed` names the options that every file
    holds, because to find them again takes longer than reading may. Nothing here may look at private data.

    The privacy of what is registered rests on its author: `sf.audit` says whether it keeps its word. To load what it
    published, another process registers it first.

    >>> from sfumato.linear import Identity
    >>> from sfumato.mechanism import VertexMechanism, registered
    >>> def plain(policy, epsilon):
    ...     cells = tuple(Identity(n) for n in policy.domain.shape)
    ...     return VertexMechanism(name="plain", policy=policy, epsilon=epsilon, factors=cells)
    >>> policy = sf.unbounded(sf.Line(0, 24, cells=24))
    >>> with registered() as register:  # sf.register, forgotten at the end of the block
    ...     register("plain", plain)
    ...     sf.plan(policy, sf.histogram(), epsilon=1.0, mechanism="plain")
    Plan(plain, epsilon=1, expected_error=1.84)
    """
    if not isinstance(name, str) or not _is_name(name):
        raise InvalidInput(
            f"name={shown(name)} is no name of a mechanism: give words of letters, digits and underscores, joined by "
            f"hyphens, at most {_LONGEST_NAME} characters. Nothing was registered."
        )
    if name in _known():
        raise InvalidInput(f"name={name!r} is taken: choose another one. Nothing was registered.")
    for said, function in (("build", build), ("candidates", candidates), ("tunings", tunings)):
        if not callable(function) and (said == "build" or function is not None):
            raise InvalidInput(
                f"{said}={shown(function)} must be a function: build(policy, epsilon, **options) makes the mechanism, "
                "candidates and tunings(policy, workload) give dicts of options. Nothing was registered."
            )
    names = frozenset([needed] if isinstance(needed, str) else needed)
    if not all(isinstance(option, str) for option in names):
        raise InvalidInput("needed must be names of options. Nothing was registered.")
    _registered[name] = Entry(
        name=name,
        build=build,
        candidates=as_it_is if candidates is None else candidates,
        tunings=nothing_to_choose if tunings is None else tunings,
        needed=_holding(names),
    )


def _holding(names: frozenset[str]) -> Callable[[Policy], tuple[Set[str], ...]]:
    def needed(policy: Policy) -> tuple[Set[str], ...]:
        del policy
        return (names,) if names else ()

    return needed


@contextmanager
def registered() -> Iterator[Callable[..., None]]:
    """`with registered() as register:` what is registered inside is forgotten after it. For tests."""
    before = dict(_registered)
    try:
        yield register
    finally:
        _registered.clear()
        _registered.update(before)


def _is_name(name: str) -> bool:
    words = name.split("-")
    return len(name) <= _LONGEST_NAME and name.isascii() and all(word.isidentifier() for word in words)


def _known() -> dict[str, Entry]:
    return {**_HOUSE, **_UNLISTED, **_registered}


def mechanisms() -> tuple[str, ...]:
    """The names that `sf.plan(..., mechanism=…)` takes.

    >>> "edges" in sf.mechanisms()
    True
    """
    return (*_HOUSE, *_registered)


def build(name: str, policy: Policy, epsilon: Fraction, **options: Any) -> Mechanism:
    """One mechanism by name, or a clear refusal."""
    mechanism = _made(_named(name), policy, epsilon, options)
    mechanism.require_possible()
    return mechanism


def _named(name: Any) -> Entry:
    known = _known()
    if not isinstance(name, str) or name not in known:
        raise InvalidInput(f"mechanism={shown(name)} is not one of {', '.join(map(repr, mechanisms()))}.")
    return known[name]


def _made(entry: Entry, policy: Policy, epsilon: Fraction, options: Options) -> Mechanism:
    """Built; and where a user's function did it, what it made is what was asked for."""
    made = entry.build(policy, epsilon, **options)
    if entry.name in _registered:
        if not isinstance(made, Mechanism):
            raise InvalidInput(f"mechanism={entry.name!r}: its build function returned no mechanism. {_NOTHING}")
        asked = {"name": entry.name, "policy": policy, "epsilon": epsilon}
        for said, value in asked.items():
            if getattr(made, said) != value:
                raise InvalidInput(
                    f"mechanism={entry.name!r}: its build function returned a mechanism of another {said} than it was "
                    f"given. {_NOTHING}"
                )
    return made


_NOTHING = "Nothing was drawn or recorded. Mend what was registered."


def fresh(name: str, policy: Policy, epsilon: Fraction, **options: Any) -> Mechanism:
    """As `build`, for a new plan: weights without a common divisor, and room in 64 bits for all counts up to the cap.

    What was published under older rules is built again as it was.
    """
    if _named(name).scaled and "weights" in options:
        options = {**options, "weights": _lowest(options["weights"])}
    built = build(name, policy, epsilon, **options)
    built.require_room()
    if name in _registered:
        _require_promise(built)
    return built


def _require_promise(made: Mechanism) -> None:
    """Of what a user registered: it spends no more than its ε, and its file will be read again as what it is."""
    if made.privacy_loss > made.epsilon:
        raise InvalidInput(
            f"mechanism={made.name!r} says that its output tells up to {text(made.privacy_loss)}, above its "
            f"epsilon={text(made.epsilon)}. {_NOTHING}"
        )
    try:
        kept = json.loads(json.dumps(made.spec(), allow_nan=False))
        survives = kept == made.spec() and mechanism_from_spec(kept, made.policy).spec() == made.spec()
    except (TypeError, ValueError, FileFormatError) as error:
        raise InvalidInput(_unreadable(made.name)) from error
    if not survives:
        raise InvalidInput(_unreadable(made.name))


def _unreadable(name: str) -> str:
    return (
        f"mechanism={name!r}: its options do not build it again, as they must when a release is loaded. Keep in "
        f"`options` all that its build function needs, in lists, texts, whole numbers and dicts. {_NOTHING}"
    )


def _lowest(weights: Any) -> Any:
    """Whole weights of one axis (or of each) divided by what they have in common; anything else as it is."""
    if not isinstance(weights, (list, tuple)) or not weights:
        return weights
    if all(isinstance(axis, (list, tuple)) for axis in weights):
        return [_lowest(axis) for axis in weights]
    if not all(is_whole(k) and k > 0 for k in weights):
        return weights
    common = math.gcd(*(int(k) for k in weights))
    return [int(k) // common for k in weights]


def mechanism_from_spec(spec: dict[str, Any], policy: Policy) -> Mechanism:
    """The mechanism that `Mechanism.spec()` described. It is not trusted: no sensitivity is computed to read it."""
    try:
        epsilon, options = positive_fraction(written(spec["epsilon"], "epsilon"), "epsilon"), dict(spec["options"])
        for fractional in ("share", "rate", "number"):
            if isinstance(options.get(fractional), str):
                options[fractional] = written(options[fractional], fractional)
        name = spec["name"]
        if isinstance(name, str) and _is_name(name) and name not in _known():
            raise FileFormatError(
                f"it was made by mechanism={name!r}, which is not registered here. Import what registers it with "
                "sf.register, if you trust it, or install a newer sfumato; nothing is imported because a file names it."
            )
        entry = _named(name)
        if not entry.complete(policy, options):
            raise InvalidInput("options are missing, which every release names")
        return _made(entry, policy, epsilon, options)
    except FileFormatError:
        raise
    except (ArithmeticError, AttributeError, LookupError, MemoryError, RecursionError, TypeError, ValueError) as error:
        raise FileFormatError("the description of the mechanism is damaged, or from a newer version.") from error


def tunings(name: str, policy: Policy, workload: Workload) -> list[Options]:
    """The settings among which a plan chooses for a mechanism that was named without options; none: its own."""
    return list(_named(name).tunings(policy, workload))


def needs_cells(name: str) -> bool:
    """Whether a mechanism holds all cells of the domain in memory."""
    return not _named(name).by_tables


def is_rehearsed(name: str) -> bool:
    """Whether a mechanism has no expected error but on public counts."""
    return _named(name).rehearsed


def variants(policy: Policy, workload: Workload, *, cells: bool = True) -> Iterator[tuple[str, Options]]:
    """Every mechanism with every setting that a plan tries for a workload; without `cells`, of those alone that need no
    memory for all of them.
    """
    for name in (name for name in mechanisms() if cells or not needs_cells(name)):
        yield from ((name, dict(chosen)) for chosen in _named(name).candidates(policy, workload))
