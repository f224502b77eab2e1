"""Trees: noise on the counts of every level of a factor that has levels, made consistent by least squares.

Promise: ε-private under the policy, for one record, as every vertex strategy is: what is published is `A·x + noise`
with whole entries, and the noise has the scale of the exact sensitivity of A, computed over all edges of the policy
from the weights that were built. Elsewhere and ⊥ are edges like all others: elsewhere is a group of its own on every
level, and a change to it crosses the top; a record that appears is in a group of every level.

Along a factor with levels (regions in counties in states, hexagons in their parents, codes in chapters) A has the
weighted counts of the groups of each level and of the cells, along others nested blocks or the cells alone. Under moves
groups that no move leaves far get larger weights, by the class of the borders that moves cross
(`sfumato.mechanism.cells.borders`); under add/remove and replace-one every level has one. The estimates are the exact
least-squares solution in two passes, so that the levels add up.

Hay, Rastogi, Miklau, Suciu (VLDB 2010) for one rate on every level.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from sfumato._types import Floats, Integers
from sfumato.domain import Axis, Domain
from sfumato.domain.coarser import level_named
from sfumato.errors import InvalidInput
from sfumato.exact import shown
from sfumato.linear import Hierarchy, Identity, Operator, Tree
from sfumato.mechanism.base import Mechanism
from sfumato.mechanism.cells.along import Asked, asked_along, share_of
from sfumato.mechanism.cells.borders import cell_classes, class_weights, group_classes, level_weights
from sfumato.mechanism.cells.packed import packed, unpacked
from sfumato.mechanism.cells.strategies import no_options
from sfumato.mechanism.cells.tuning import best_hierarchy, largest_along
from sfumato.mechanism.cells.vertex import VertexMechanism
from sfumato.mechanism.entry import Entry, Options
from sfumato.policies import Policy
from sfumato.workload import CELLS, TOTAL, AxisQueries, Groups, Workload

WHOLE = ""  # how options call the level of one group over everything
# Of an axis that nobody asks about level by level, next to those that somebody does.
_HARDLY = 1e-3


@dataclass(frozen=True, kw_only=True, eq=False)
class TreeMechanism(VertexMechanism):
    """Levels of groups along some axes."""

    @property
    def settings(self) -> str:
        """The levels of every axis that has some, and their weights."""
        said = []
        for axis, entry in zip(self.policy.domain.axes, self.options["along"], strict=True):
            if "levels" in entry:
                names = [*(name or "all" for name in entry["levels"]), "cells"]
                weights = "/".join(str(row[0]) if len(row) == 1 else _span(row) for row in entry["weights"])
                said.append(f"{axis.name} by {'/'.join(names)}, weights {weights}")
        return "; ".join(said)


def _span(row: Sequence[int]) -> str:
    return f"{min(row)}-{max(row)}" if min(row) < max(row) else str(row[0])


def tree(policy: Policy, epsilon: Fraction, **options: Any) -> Mechanism:
    """Noise on the weighted counts of every level of regions, hexagons or codes, made consistent by least squares.

    `along` says for every axis what is measured: {"levels": ["state", "county"], "weights": [[1], [1], [1]]}, the last
    weight being that of the cells, or {"blocks": [8, 1], "weights": [1, 1]} as for `hierarchy`. Several weights a level
    are for the classes that `classes` gives to the cells. Without it all levels weigh the same.
    """
    domain = policy.domain
    if not any(axis.coarser for axis in domain.axes) and "along" not in options:
        raise InvalidInput(
            "mechanism='tree' is for factors with named levels, such as sf.Regions(…, levels=['state', 'county']); "
            "use mechanism='hierarchy'"
        )
    along = options.pop("along", None)
    no_options("tree", options)
    if along is None:
        along = [_plain(axis, policy) for axis in domain.axes]
    if not isinstance(along, (list, tuple)) or len(along) != domain.ndim:
        raise InvalidInput(f"along={shown(along)} must be a list with an entry for each of {domain.ndim} axes.")
    factors = tuple(_factor(axis, entry) for axis, entry in zip(domain.axes, along, strict=True))
    return TreeMechanism(
        name="tree",
        policy=policy,
        epsilon=epsilon,
        options={"along": [dict(entry) for entry in along]},
        factors=factors,
    )


def _plain(axis: Axis, policy: Policy) -> Options:
    names = [level.name for level in axis.coarser]
    if not names:
        return {"blocks": [1], "weights": [1]}
    names = names if policy.total_is_public else [WHOLE, *names]
    return {"levels": names, "weights": [[1]] * (len(names) + 1)}


def _factor(axis: Axis, entry: Any) -> Operator:
    """The strategy along one axis; nothing is trusted, since files are read here."""
    if not isinstance(entry, Mapping):
        raise InvalidInput(f"along has {shown(entry)} for axis {axis.name!r}; give levels or blocks, and weights.")
    given, wanted = set(entry), {"levels", "blocks"} & set(entry)
    if len(wanted) != 1 or not given <= {"levels", "blocks", "weights", "classes", "groups"} or "weights" not in entry:
        raise InvalidInput(f"along for axis {axis.name!r} must have levels or blocks, and weights.")
    weights = entry["weights"]
    for name in ("weights", *wanted):
        if not isinstance(entry[name], (list, tuple)):
            raise InvalidInput(f"along for axis {axis.name!r}: {name}={shown(entry[name])} must be a list.")
    if "blocks" in entry:
        blocks = [_whole(b) for b in entry["blocks"]]
        return Identity(axis.cells) if blocks == [1] else Hierarchy(axis.cells, blocks, [_whole(w) for w in weights])
    levels = levels_of(axis, entry)
    table = [[_whole(w) for w in row] if isinstance(row, (list, tuple)) else [_whole(row)] for row in weights]
    if len(table) != len(levels) + 1:
        raise InvalidInput(
            f"along for axis {axis.name!r}: weights are for {len(table)} levels, and with the cells there are "
            f"{len(levels) + 1}."
        )
    if "classes" not in entry:
        if any(len(row) != 1 for row in table):
            raise InvalidInput(f"along for axis {axis.name!r}: several weights a level are for classes. Give one each.")
        return Tree(levels, [row[0] for row in table], axis.cells)
    if any(len(row) != depth + 1 for depth, row in enumerate(table)):
        raise InvalidInput(f"along for axis {axis.name!r}: with classes level ℓ has the weights of classes 0 to ℓ.")
    classes = group_classes(unpacked(entry["classes"], axis.cells, "classes"), levels)
    return Tree(levels, [np.array(row)[kind] for row, kind in zip(table, classes, strict=True)], axis.cells)


def levels_of(axis: Axis, entry: Mapping[str, Any]) -> list[Integers]:
    """The group of every cell on the levels that an entry names; `groups` are those of a level of no name."""
    found: list[Integers] = []
    for name in entry["levels"]:
        if name == WHOLE:
            found.append(np.zeros(axis.cells, dtype=np.int64))
        elif "groups" in entry:
            groups = unpacked(entry["groups"], axis.cells, "groups")
            if groups.max() >= axis.cells:
                raise InvalidInput("groups is damaged: there are no more groups than cells.")
            found.append(groups)
        else:
            found.append(level_named(axis.coarser, name, axis.name).of)
    return found


def _whole(value: Any) -> int:
    if type(value) is not int:
        raise InvalidInput(f"{shown(value)} in along is no whole number.")
    return value


def settings(policy: Policy, workload: Workload) -> Iterator[Options]:
    """What a plan tries: all levels alike, and those that are asked; each with one weight a level, and by classes."""
    domain = policy.domain
    groups = workload.partition(domain) if domain.ndim == 1 else None
    if groups is not None and 0 < groups.max() < domain.size - 1:
        weights = level_weights(np.array([1.0, _HARDLY]), largest_along(1))
        yield {"along": [{"levels": ["groups"], "groups": packed(groups), "weights": weights}]}
    if not any(axis.coarser for axis in domain.axes):
        return
    asked = asked_along(workload, domain)
    largest = largest_along(_structured(domain, asked))
    tried: set[str] = set()
    for likely in (False, True):
        for by_class in (False, True):
            along = [
                _levelled(policy, i, kind, largest, likely, by_class)
                if axis.coarser
                else _blocked(axis.cells, kind, largest, policy.total_is_public and domain.ndim == 1)
                for i, (axis, kind) in enumerate(zip(domain.axes, asked, strict=True))
            ]
            if str(along) not in tried:
                tried.add(str(along))
                yield {"along": along}


def _structured(domain: Domain, asked: Sequence[Asked]) -> int:
    """Along how many axes there is more than the cells, in which the weights of the axes multiply."""
    pairs = zip(domain.axes, asked, strict=True)
    return sum(bool(axis.coarser) or len(best_hierarchy(axis.cells, kind, False)[0]) > 1 for axis, kind in pairs)


def _blocked(n: int, kind: Asked, largest: int, known: bool) -> Options:
    blocks, weights = best_hierarchy(n, kind, known, largest=largest)
    return {"blocks": list(blocks), "weights": list(weights)}


def _levelled(policy: Policy, axis: int, kind: Asked, largest: int, likely: bool, by_class: bool) -> Options:
    """The entry of an axis with levels: all of them alike, or `likely` those that are asked, by how much they are."""
    known = policy.domain.axes[axis].coarser
    names = [*([] if policy.total_is_public and policy.domain.ndim == 1 else [WHOLE]), *(level.name for level in known)]
    shares = np.ones(len(names) + 1)
    if likely:
        kinds: dict[str, AxisQueries] = {level.name: Groups(level.name, level.of) for level in known}
        wanted = [TOTAL if name == WHOLE else kinds[name] for name in names]
        amounts = [share_of(kind, one) for one in (*wanted, CELLS)]
        kept = [i for i, amount in enumerate(amounts) if amount > 0 or i == len(names)]
        names = [names[i] for i in kept[:-1]]
        shares = _cube_roots([amounts[i] for i in kept])
    entry: Options = {"levels": names}
    levels = levels_of(policy.domain.axes[axis], entry)
    classes = cell_classes(policy, axis, levels) if by_class else None
    if classes is None:
        return entry | {"weights": level_weights(shares, largest)}
    return entry | {"weights": class_weights(shares, largest), "classes": packed(classes)}


def _cube_roots(amounts: Sequence[float]) -> Floats:
    """The best rates of tables apart: Σ a/s² is least under Σ s = 1 where s is in proportion to the root of third
    degree.
    """
    found = np.cbrt(np.array(amounts))
    return np.asarray(np.maximum(found, _HARDLY * found.max(initial=1e-300)))


def _needed(policy: Policy) -> tuple[Set[str], ...]:
    del policy
    return ({"along"},)


TREE = Entry(name="tree", build=tree, candidates=settings, needed=_needed)
