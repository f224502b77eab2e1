"""Shifted overlapping histograms: a family of coarse grids over the same cells, each with its own noise, averaged.

Promise: ε-private under a policy of moves without ⊥, for one record. A move crosses few gridlines of the whole family
(`Family`): one along every axis when bins are at least as wide as the longest step. Two kinds of noise:

`shifted` puts noise on the counts of all bins. A move changes two counts in every grid whose gridlines it crosses: c
has the norm `2·min(m, k)` for m grids and k crossings, 2·min(m, d) in d dimensions. Fang, Chang (ASIA CCS 2014),
section 5.3, with the number of shifts put right.

`shifted-edges` puts noise on the edges between neighbouring bins, and the bins receive its divergence. Crossing a
gridline is one unit on one edge of one grid, so c has the norm k, d in d dimensions: *all m grids together* cost what
one would, and a range pays for its boundary instead of its area.

A range is answered in every grid with cut bins in proportion (equation 8 there), and the answers are averaged: that
divides the noise by m and smooths the data by the width of the bins. The smoothing is a bias that depends on the data;
it is weighed when a plan is made, on public counts. An interval that holds whatever the data comes from the bins of
one grid alone, chosen by the range: the release keeps the noisy bins for it.

It does not protect presence: a record that appears changes a bin in every grid, so the policy must have no ⊥.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, reduce
from typing import Any

import numpy as np

from sfumato._types import Floats, Integers
from sfumato.errors import InvalidInput
from sfumato.exact import positive_int
from sfumato.linear import Bins, Coarse, Difference, Identity, Kronecker, Operator, Stack
from sfumato.linear.boxes import SummedArea
from sfumato.mechanism.base import LinearMechanism, Mechanism, require_integers
from sfumato.mechanism.entry import Entry
from sfumato.mechanism.grids.family import Family
from sfumato.mechanism.model import Block, NoiseModel
from sfumato.mechanism.parts import Parts
from sfumato.mechanism.totals import with_exact_total
from sfumato.noise import DiscreteLaplace
from sfumato.noise.expansion import bits
from sfumato.policies import Policy
from sfumato.workload import Workload

# Widths a plan tries: this many to a doubling, from the longest step to the whole domain.
WIDTHS_PER_DOUBLING = 2
# A default for when neither a width nor public counts are given; plans choose better.
DEFAULT_STEPS = 8


@dataclass(frozen=True, kw_only=True, eq=False)
class ShiftedMechanism(LinearMechanism):
    """What both kinds of noise share: the family, its sums over bins and its average."""

    family: Family

    @property
    def biased(self) -> bool:
        """Averages over bins smooth the data."""
        return True

    @property
    def keeps_measured(self) -> bool:
        """Ranges are bracketed by the bins of one grid."""
        return True

    @property
    def grain(self) -> tuple[int, ...]:
        """The width of the bins."""
        return self.family.width

    def parts(self, measured: Integers | None, total: int | None) -> Sequence[Parts]:
        """Every grid by itself, with the noise of its own bins."""
        if measured is None or measured.shape != (sum(map(math.prod, self.family.bins)),):
            return ()
        models = [self._alone(j) for j in range(len(self.family.grids))]
        return [
            Parts(grid, table if total is None else table + (total - table.sum()) / table.size, model)
            for (grid, table), model in zip(self._each(measured), models, strict=True)
        ]

    @abstractmethod
    def _alone(self, j: int) -> NoiseModel:
        """The noise in the bins of one grid."""

    @cached_property
    def _steps(self) -> Integers:
        """For every kind of move, how many gridlines of the family it crosses at most."""
        moves = self.policy.moves.stencil
        if moves is None:
            raise InvalidInput(f"mechanism={self.name!r} needs a policy made of moves on a grid.")
        crossed = np.zeros(len(moves.lengths), dtype=np.int64)
        for axis, reach in enumerate(moves.reach):
            crossed += self.family.crossings(axis, int(reach))[moves.lengths[:, axis]]
        return crossed

    def require_room(self) -> None:
        """A bin receives at most the noise of two edges along every axis.

        No grid is built for this: a step crosses at most a line a cell in every grid, and changes two counts for each.
        """
        moves = self.policy.moves.stencil
        if moves is not None and moves.longest:
            rate = self.epsilon / (2 * moves.longest * self.family.shifts)
            require_integers(self.name, 1, 2 * len(self.family.shape) << bits(rate), "Use a larger epsilon.")

    def _coarse(self, grid: Sequence[Integers], edges: int | None) -> Operator:
        """The estimator of one grid: its bins, or its edges along one axis, spread over the cells and over m."""
        factors = []
        for axis, cuts in enumerate(grid):
            bins = len(cuts) - 1
            inner: Operator = Difference(bins) if axis == edges else Identity(bins)
            factors.append(Coarse(inner, cuts, 1.0 / self.family.shifts if axis == 0 else 1.0))
        return Kronecker(factors)

    def values(self, counts: Integers) -> Integers:
        """The counts of all bins, grid after grid."""
        table = SummedArea(counts.reshape(self.family.shape))
        tables: list[Any] = [table.tiles(grid).ravel() for grid in self.family.grids]
        return np.concatenate(tables)

    def _each(self, measured: Any) -> Iterator[tuple[tuple[Integers, ...], Any]]:
        """(cuts, table of bins) of every grid."""
        start = 0
        for grid, shape in zip(self.family.grids, self.family.bins, strict=True):
            size = math.prod(shape)
            yield grid, measured[start : start + size].reshape(shape)
            start += size

    def estimate(self, measured: Integers, total: int | None) -> Floats:
        """Every grid's bins spread over their cells, averaged.

        Only the jumps at the corners of bins are added up, grid by grid; running sums then fill the cells.
        """
        jumps = np.zeros(tuple(n + 1 for n in self.family.shape))
        for grid, table in self._each(measured):
            bins = table.astype(np.float64)
            if total is not None:
                bins += (total - bins.sum()) / bins.size
            area = reduce(np.multiply.outer, [np.diff(cuts) for cuts in grid])
            density = np.pad(bins / area, 1)
            for axis in range(density.ndim):
                density = np.diff(density, axis=axis)
            jumps[np.ix_(*grid)] += density
        for axis in range(jumps.ndim):
            np.cumsum(jumps, axis=axis, out=jumps)
        flat = jumps[(slice(None, -1),) * jumps.ndim].ravel() / self.family.shifts
        return flat if total is None else with_exact_total(flat, total)


@dataclass(frozen=True, kw_only=True, eq=False)
class ShiftedCounts(ShiftedMechanism):
    """Noise on the counts of all bins."""

    @cached_property
    def sensitivity(self) -> int:
        """Two counts in every grid that a move crosses a line of."""
        return int(2 * np.minimum(self._steps, self.family.shifts).max(initial=0))

    @property
    def privacy_loss(self) -> Fraction:
        """Sensitivity times rate."""
        return self.sensitivity * self.model.blocks[0].noise.rate if self.sensitivity else Fraction(0)

    @cached_property
    def strategy(self) -> Operator:
        """The sums over bins, grid above grid."""
        return Stack([Kronecker([Bins(cuts) for cuts in grid]) for grid in self.family.grids])

    @cached_property
    def model(self) -> NoiseModel:
        """One block a grid, corrected to the public total; none where no move crosses a line."""
        if not self.sensitivity:
            return NoiseModel(self.family.shape, ())
        noise = DiscreteLaplace(self.epsilon / self.sensitivity)
        blocks = tuple(Block(self._coarse(grid, None), noise) for grid in self.family.grids)
        return NoiseModel(self.family.shape, blocks, centred=True)

    def _alone(self, j: int) -> NoiseModel:
        """The noise on every bin, corrected to the total."""
        bins = self.family.bins[j]
        blocks = tuple(Block(Kronecker([Identity(n) for n in bins]), b.noise) for b in self.model.blocks[:1])
        return NoiseModel(bins, blocks, centred=True)

    def disturbance(self, noise: Sequence[Integers]) -> Integers:
        """The noise itself."""
        return np.concatenate(noise) if noise else np.zeros(self.strategy.rows, dtype=np.int64)


@dataclass(frozen=True, kw_only=True, eq=False)
class ShiftedEdges(ShiftedMechanism):
    """Noise on the edges between the bins of every grid."""

    @cached_property
    def sensitivity(self) -> int:
        """One edge for every line that a move crosses, in the whole family."""
        return int(self._steps.max(initial=0))

    @property
    def privacy_loss(self) -> Fraction:
        """Sensitivity times rate."""
        return self.sensitivity * self.model.blocks[0].noise.rate if self.sensitivity else Fraction(0)

    @cached_property
    def model(self) -> NoiseModel:
        """One block for every grid and axis that has edges."""
        noise = DiscreteLaplace(self.epsilon / max(self.sensitivity, 1))
        blocks = [Block(self._coarse(self.family.grids[j], axis), noise) for j, axis in self._edged]
        return NoiseModel(self.family.shape, tuple(blocks))

    def _alone(self, j: int) -> NoiseModel:
        """The noise on the edges of one grid."""
        bins = self.family.bins[j]
        blocks = []
        for block, (grid, edges) in zip(self.model.blocks, self._edged, strict=True):
            if grid == j:
                along = [Difference(n) if axis == edges else Identity(n) for axis, n in enumerate(bins)]
                blocks.append(Block(Kronecker(along), block.noise))
        return NoiseModel(bins, tuple(blocks))

    @cached_property
    def _edged(self) -> list[tuple[int, int]]:
        """The pairs (grid, axis) with at least one edge that some move uses."""
        if not self.sensitivity:
            return []
        shapes = enumerate(self.family.bins)
        return [(j, axis) for j, shape in shapes for axis, bins in enumerate(shape) if bins > 1]

    def disturbance(self, noise: Sequence[Integers]) -> Integers:
        """The divergence of the noise in every grid, in integers."""
        tables = [np.zeros(shape, dtype=np.int64) for shape in self.family.bins]
        for (j, axis), eta in zip(self._edged, noise, strict=True):
            table, before = tables[j], (slice(None),) * axis
            flow = eta.reshape([n - (i == axis) for i, n in enumerate(table.shape)])
            table[(*before, slice(None, -1))] += flow
            table[(*before, slice(1, None))] -= flow
        return np.concatenate([table.ravel() for table in tables])


def shifted(policy: Policy, epsilon: Fraction, **options: Any) -> Mechanism:
    """A family of shifted histograms with noise on the counts; `width` is that of the bins in cells, one number or one
    for each axis.
    """
    family, chosen = _family(policy, "shifted", options)
    return ShiftedCounts(name="shifted", policy=policy, epsilon=epsilon, options=chosen, family=family)


def shifted_edges(policy: Policy, epsilon: Fraction, **options: Any) -> Mechanism:
    """A family of shifted grids with noise on the edges between their bins; `width` as for `shifted`."""
    family, chosen = _family(policy, "shifted-edges", options)
    return ShiftedEdges(name="shifted-edges", policy=policy, epsilon=epsilon, options=chosen, family=family)


def widths(policy: Policy) -> Iterator[dict[str, Any]]:
    """The widths that a plan tries: from the longest step of a move to the whole domain."""
    moves = policy.moves.stencil
    if moves is None or not policy.total_is_public:
        yield {}  # a refusal that says why
        return
    shape, reach = np.array(policy.domain.shape), np.maximum(moves.reach, 1)
    seen: set[tuple[int, ...]] = set()
    doublings = int(np.ceil(np.log2((shape / reach).max()))) if shape.max() > 1 else 0
    for k in range(doublings * WIDTHS_PER_DOUBLING + 1):
        # Whole numbers of steps, so that no part of a bin is too narrow for one more shift.
        steps = round(2 ** (k / WIDTHS_PER_DOUBLING))
        width = tuple(int(w) for w in np.minimum(steps * reach, shape))
        if width not in seen:
            seen.add(width)
            yield {"width": list(width)}


def _family(policy: Policy, name: str, options: dict[str, Any]) -> tuple[Family, dict[str, Any]]:
    if not policy.total_is_public:
        raise InvalidInput(
            f"mechanism={name!r} is for policies without ⊥: a record that appears changes a bin in every grid of the "
            "family. Use mechanism='edges'."
        )
    moves = policy.moves.stencil
    if moves is None:
        raise InvalidInput(f"mechanism={name!r} needs a policy made of moves on a grid; use mechanism='hierarchy'.")
    shape = policy.domain.shape
    given = options.pop("width", None)
    if options:
        raise InvalidInput(f"mechanism={name!r} takes no option {', '.join(sorted(options))}.")
    reach = np.maximum(moves.reach, 1)
    if given is None:
        given = [int(min(DEFAULT_STEPS * r, n)) for r, n in zip(reach, shape, strict=True)]
    each = list(given) if isinstance(given, (list, tuple)) else [given] * len(shape)
    if len(each) != len(shape):
        raise InvalidInput(f"width={given!r} must be one whole number of cells, or one for each of {len(shape)} axes.")
    width = tuple(min(positive_int(w, "width"), n) for w, n in zip(each, shape, strict=True))
    family = Family.for_steps(shape, width, moves.reach)
    return family, {"width": list(width)}


def _widths(policy: Policy, workload: Workload) -> Iterator[dict[str, Any]]:
    del workload
    yield from widths(policy)


SHIFTED = Entry(name="shifted", build=shifted, candidates=_widths, tunings=_widths)
SHIFTED_EDGES = Entry(name="shifted-edges", build=shifted_edges, candidates=_widths, tunings=_widths)
