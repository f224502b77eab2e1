"""Spanners: a sparser graph on the same cells, and how much longer the policy's moves become in it.

Promise: where every edge of a policy is a path of at most `stretch` edges of the spanner, a mechanism that is ε-private
under the spanner is (stretch·ε)-private under the policy (Haney, Machanavajjhala, Ding, VLDB 2015, Lemma 4.5). To
promise ε under the policy, run at ε/stretch on the spanner. The stretch is computed from what is built, never taken
from a formula for the usual case: it depends on how the grid is cut at its border.

On a line or a grid the cells are cut into cubes of a given side. The upper corner of each cube is *red*, the last index
along an axis counting as a corner where the cube is cut off. Every other cell hangs on the red one of its cube by an
*internal* edge, and red cells of adjacent cubes are joined by *external* ones. On a line this is the tree H_k^θ of
section 5.3.1, on a grid the graph of section 5.3.2. The cells that are not red are leaves, so a path between two cells
has one internal edge for each end that is not red, and as many external ones as their cubes lie apart in L1.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from sfumato._types import Integers
from sfumato.domain import Domain
from sfumato.errors import InvalidInput, TooLarge
from sfumato.exact import positive_int
from sfumato.policies.absent import ABSENT
from sfumato.policies.moves import Stencil
from sfumato.policies.tree import low_stretch_tree, refuse_long_search

if TYPE_CHECKING:
    from sfumato.policies.policy import Policy

# Trees of stencils with sources are found edge by edge; beyond this many it takes longer than a plan may.
LARGEST_SEARCH = 300_000

# No pair of cells is of this kind; low enough to stay below zero when a few are added.
_NEVER = -(1 << 40)

# Lengths of steps that are looked at together: what is worked on fits the cache.
_STEPS_AT_ONCE = 1 << 13


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Spanner:
    """A connected graph on the cells of a policy (and ⊥ where the policy has it), and how it stretches the moves.

    `usage` says what a move may cost: the pairs (internal edges, external edges) on the path of some edge of the policy
    that no other such pair exceeds in both. Noise of scale b_i on internal edges and b_e on external ones is enough for
    ε exactly when `internal/b_i + external/b_e ≤ ε` for every pair of `usage`. `side` is that of the cubes, and None
    where the spanner is not made of cubes: its edges are `listed` then, and all external. Built by `Policy.spanner`.
    """

    policy: Policy
    stretch: int
    usage: tuple[tuple[int, int], ...]
    words: str
    side: int | None = None
    listed: Integers | None = None

    def __repr__(self) -> str:
        side = "" if self.side is None else f", side={self.side}"
        return f"Spanner({self.policy!r}{side}, stretch={self.stretch})"

    @property
    def domain(self) -> Domain:
        """The cells that it joins."""
        return self.policy.domain

    def edges(self) -> Integers:
        """Every edge as a pair of cell numbers (C order), ⊥ written as ABSENT = -1: internal edges, then external."""
        return np.concatenate(self._kinds)

    @property
    def internal(self) -> Integers:
        """The edges that hang a cell on the red one of its cube, the cell first."""
        return self._kinds[0]

    @property
    def external(self) -> Integers:
        """All other edges."""
        return self._kinds[1]

    @property
    def is_tree(self) -> bool:
        """Whether it has no cycle: only then may noisy values on its edges be published themselves."""
        return self.side is None or sum(n > self.side for n in self.domain.shape) <= 1  # listed edges are always trees

    @cached_property
    def _kinds(self) -> tuple[Integers, Integers]:
        if self.listed is not None or self.side is None:
            return np.empty((0, 2), dtype=np.int64), np.asarray(self.listed)
        return _lattice_edges(self.domain.shape, self.side)

    def describe(self) -> str:
        """What it is and what it costs, in plain words."""
        form = "a tree" if self.is_tree else "not a tree"
        paths = f"at most {self.stretch} of its edges" if self.stretch > 1 else "one of its edges"
        text = f"{self.words} ({form}). A change that the policy hides takes {paths}"
        if self.side is not None and self.side > 1:
            text += ": " + " or ".join(f"{i} internal and {e} external" for i, e in self.usage)
        if self.stretch == 1:
            return f"{text}, and ε is the same under both."
        return f"{text}. To promise ε under the policy, run at ε/{self.stretch} here."


def span(policy: Policy, *, side: int | None = None) -> Spanner:
    """The spanner of a policy. `side` is for lines and grids: how many cells the cubes are wide.

    By default the side is the longest move divided by the number of axes (θ on a line, θ/d in d dimensions). Policies
    whose moves follow no stencil, or that have sources, get a spanning tree of low stretch; a tree is its own spanner.
    """
    if not policy.connected:
        parts = len(np.unique(policy.components[0]))
        raise InvalidInput(
            f"policy leaves its {policy.domain.size} cells in {parts} parts that no path joins, and so would every "
            "spanner. Nothing was computed. Use a policy that is connected."
        )
    grounded = policy.absent is not None and bool(policy.absent.any())
    if policy.moves.stencil is not None and not grounded:
        return _lattice(policy, policy.moves.stencil, side)
    if side is not None:
        raise InvalidInput(
            f"side={side!r} is for policies on a line or grid whose moves follow a stencil, without sources; this one "
            f"hides that {policy.describe()}. Nothing was computed. Leave side out."
        )
    return _star(policy) if policy.moves.join_all and not grounded else _tree(policy, grounded)


def _star(policy: Policy) -> Spanner:
    """Every cell joined to the last one: two steps between any two others, where there are two others."""
    last = policy.domain.size - 1
    edges = np.stack([np.arange(last), np.full(last, last)], axis=-1)
    return _plain(policy, edges, 1 if last < 2 else 2, "every cell joined to the last one")


def _tree(policy: Policy, grounded: bool) -> Spanner:
    size = policy.domain.size
    if policy.moves.stencil is not None and policy.moves.count(policy.domain.shape) > LARGEST_SEARCH:
        raise TooLarge(
            f"a spanning tree of {size:,} cells with sources takes a search over "
            f"{policy.moves.count(policy.domain.shape):,} edges (at most {LARGEST_SEARCH:,}). Nothing was computed. "
            "Use fewer cells, or a mechanism that needs no tree."
        )
    count = policy.moves.count(policy.domain.shape)
    if count >= size + grounded:  # more than a tree has
        refuse_long_search(count)
    edges = policy.edges()
    if len(edges) == size - 1 + grounded:  # connected, so it is a tree
        return _plain(policy, edges, 1, "the policy itself")
    pairs = np.where(edges == ABSENT, size, edges)
    tree, stretch = low_stretch_tree(size + grounded, pairs, size if grounded else size - 1)
    edges = tree.edges()
    return _plain(policy, np.where(edges == size, ABSENT, edges), stretch, "a spanning tree of the policy")


def _plain(policy: Policy, edges: Integers, stretch: int, words: str) -> Spanner:
    return Spanner(policy=policy, stretch=stretch, usage=((0, stretch),), words=words, listed=edges)


def _lattice(policy: Policy, moves: Stencil, side: int | None) -> Spanner:
    shape = policy.domain.shape
    if side is None:
        wide = sum(n > 1 for n in shape)  # an axis of one cell adds no dimension
        side = max(1, moves.longest // max(1, wide))
    side = positive_int(side, "side")
    if side > max(shape):
        raise InvalidInput(
            f"side={side} is longer than every side of the grid, whose shape is {shape}. Nothing was computed. "
            f"Use at most {max(shape)}."
        )
    usage = _usage(shape, side, moves)
    words = f"cubes of side {side}, every cell joined to the red corner of its cube, red corners joined in a grid"
    if len(shape) == 1:
        words = f"a red cell every {side} cells, every other cell joined to the next red one, red cells joined in a row"
    if side == 1:
        words = "cells joined to the next one along every axis"
    return Spanner(policy=policy, stretch=max([1, *(i + e for i, e in usage)]), usage=usage, words=words, side=side)


def _lattice_edges(shape: tuple[int, ...], side: int) -> tuple[Integers, Integers]:
    cell = np.arange(int(np.prod(shape)), dtype=np.int64).reshape(shape)
    corners = [np.minimum(np.arange(side - 1, n + side - 1, side), n - 1) for n in shape]
    red = cell[np.ix_(*corners)]
    own = red[np.ix_(*[np.arange(n) // side for n in shape])]
    hangs = own != cell
    internal = np.stack([cell[hangs], own[hangs]], axis=-1)
    external = [np.empty((0, 2), dtype=np.int64)]
    for axis in range(len(shape)):
        ahead = np.moveaxis(red, axis, 0)
        external.append(np.stack([ahead[:-1].ravel(), ahead[1:].ravel()], axis=-1))
    return internal, np.concatenate(external)


@lru_cache(maxsize=16)  # a plan looks at every side twice
def _usage(shape: tuple[int, ...], side: int, moves: Stencil) -> tuple[tuple[int, int], ...]:
    """The pairs (internal, external) over all edges of a stencil that no other one exceeds.

    A cell is red when it is red along every axis, and external edges add up over the axes; positions along different
    axes are independent. So each axis contributes, for every step along it, the most blocks crossed by a step whose
    ends are (red or not, red or not), and the axes are combined by keeping track of whether both ends are still red.
    """
    steps = moves.lengths  # these stand for every choice of signs
    if len(steps) == 0:
        return ((0, 0),)
    first, *others = (_crossings(n, side, int(moves.reach[i]))[:, :, steps[:, i]] for i, n in enumerate(shape))
    most = first
    for along in others:
        combined = np.full_like(most, _NEVER)
        for a, b, c, d in np.ndindex(2, 2, 2, 2):
            np.maximum(combined[a & c, b & d], most[a, b] + along[c, d], out=combined[a & c, b & d])
        most = combined
    external = most.max(axis=-1)
    found = [(2, int(external[0, 0])), (1, int(max(external[0, 1], external[1, 0]))), (0, int(external[1, 1]))]
    return _largest((i, e) for i, e in found if e >= 0)


def _crossings(n: int, side: int, reach: int) -> NDArray[np.int64]:
    """The most block borders that a step of length 0 … reach crosses on an axis of n cells, by the colour of its ends.

    Entry [a, b, o] is for steps of length o in either direction, from an end that is red (a = 1) or not to one that is
    red (b = 1) or not; negative where there is none. The pattern repeats with period `side` except in the last block,
    and of the positions in one period few can be the worst: a step whose upper end lies in a whole block crosses the
    more the later it starts, and at most two places are ruled out by colour; one that ends in the last block crosses
    the more the earlier it ends. Each position that is tried is judged by what it is: none counts that is not there.
    """
    few = np.array_split(np.arange(reach + 1), reach // _STEPS_AT_ONCE + 1)
    return np.concatenate([_crossed(n, side, step) for step in few], axis=-1)


def _crossed(n: int, side: int, step: Integers) -> NDArray[np.int64]:
    """The same for some lengths."""
    last = (n - 1) // side * side  # where the last block begins
    late = np.minimum(side - 1, last - 1 - step)  # the latest start in the first block of a step into a whole block
    early = np.maximum(last, step)  # the earliest end in the last block
    starts = np.stack(
        [late, late - 1, late - 2, (side - 1 - step) % side]
        + [end - step for end in (early, early + 1, last + (step - 1) % side, np.full_like(step, n - 1))]
    )
    ends = starts + step
    exists = (starts >= 0) & (ends < n)
    from_block, to_block = starts // side, ends // side
    crossed = np.where(exists, to_block - from_block, _NEVER)
    begins, stops = _is_red(starts, from_block, n, side), _is_red(ends, to_block, n, side)
    table = np.full((2, 2, len(step)), _NEVER)
    for a, b in np.ndindex(2, 2):
        table[a, b] = np.max(crossed, axis=0, initial=_NEVER, where=(begins == a) & (stops == b))
    return np.maximum(table, table.transpose(1, 0, 2))


def _is_red(place: Integers, block: Integers, n: int, side: int) -> NDArray[np.bool_]:
    return (place == block * side + side - 1) | (place == n - 1)


def _largest(pairs: Iterable[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
    """The pairs that no other one exceeds in both, most internal edges first."""
    kept: list[tuple[int, int]] = []
    for internal, external in sorted(pairs, reverse=True):
        if not kept or external > kept[-1][1]:
            kept.append((internal, external))
    return tuple(kept)
