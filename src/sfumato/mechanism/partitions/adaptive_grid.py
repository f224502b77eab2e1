"""A grid that adapts to the data and knows what is hidden: coarse blocks first, then their parts, finer where more is.

Promise: ε-private under the policy, for one record, by composition of two releases. *First* the number of every block
is released by a mechanism that is ε₁-private for what a change of a record does to blocks. Under moves of a grid that
is noise on the edges between blocks: a step of r cells along an axis crosses at most ⌈r/side⌉ lines, those of all axes
are added up for every move that there is, and blocks get the policy whose moves go as far as the worst of them. Under
add/remove and replace-one it is a strategy on the counts of blocks, under the same policy on blocks. *Then* every block
is cut into parts, as many as the released number asks for, and the counts of the parts get noise of rate ε₂/2 each (a
record that moves leaves one part and enters another), ε₂ under add/remove, where it changes one count. How blocks are
cut is a function of what was released first: given that, the second release is ε₂-private, and both together ε₁ + ε₂ =
ε.

Both levels are put together by least squares with their precisions; the public total is a constraint of the first. A
part's number is shared out equally among its cells, which is a guess: standard errors of single cells are not known,
and ranges are bracketed by the parts that they hold and those that they touch.

Qardaji, Yang, Li (ICDE 2013) have the two levels and the rule for the number of parts under add/remove (AGrid).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from sfumato._types import Floats, Integers
from sfumato.domain import Domain, Interval
from sfumato.errors import InvalidInput
from sfumato.exact import fraction, positive_int
from sfumato.mechanism.base import LinearMechanism, MeasuredMechanism, Mechanism, require_integers
from sfumato.mechanism.cells.strategies import hats, identity, no_options
from sfumato.mechanism.edges.edge_hats import edge_hats
from sfumato.mechanism.edges.named import edges
from sfumato.mechanism.entry import Entry
from sfumato.mechanism.forms import Nested
from sfumato.mechanism.partitions.grid_parts import Blocks, GridParts
from sfumato.mechanism.partitions.two_levels import nested_runs, together
from sfumato.mechanism.reference import reference_population
from sfumato.mechanism.runs import Runs
from sfumato.mechanism.totals import with_exact_total
from sfumato.noise import DiscreteLaplace, SeededSource, Source
from sfumato.noise.expansion import bits
from sfumato.policies import Policy, bounded, threshold, unbounded
from sfumato.workload import Workload

# The best over all ranges among a few, on six real maps at ε = 0.1 and 1 and moves of 4, 8 and 16 cells: the share of ε
# for the blocks, and how many records a part should hold where its noise has rate one. AGrid has 1/2 and 5.
SHARE, CROWD = Fraction(2, 5), 3
# How many blocks along an axis suit N records, at ε = 0.01 too: so many times (N·ε/10)^0.3, under moves and else, at
# least LEAST_BLOCKS. AGrid has a quarter of the root of N·ε/10, at least ten.
MOVED, CHANGED, LEAST_BLOCKS = 4, 2, 6
# On six real maps the error was 0.3 to 5 times that on as many records of the reference population, mostly 0.7 to 2:
# the model says twice.
REHEARSED, CAUTION = 3, 2
USUAL_BLOCKS = 32  # under add/remove and replace-one where nothing says how many records there are


@dataclass(frozen=True, kw_only=True, eq=False)
class AdaptiveGrid(MeasuredMechanism):
    """What is measured are the numbers of the blocks, how often each is cut, and the noisy counts of the parts."""

    blocks: Blocks
    share: Fraction

    @property
    def keeps_measured(self) -> bool:
        """Ranges are bracketed by parts."""
        return True

    @cached_property
    def first(self) -> LinearMechanism:
        """What releases the blocks."""
        domain = Domain(tuple(Interval(f"axis{i}", 0, n, n) for i, n in enumerate(self.blocks.coarse)))
        epsilon, moves = self.share * self.epsilon, self.policy.moves.stencil
        if moves is not None and self.policy.total_is_public:
            policy = threshold(domain, max(1, self.blocks.crossed(moves.lengths)))
            build = edge_hats if domain.ndim > 1 and domain.size > 1 else edges
        else:
            policy = bounded(domain) if self.policy.total_is_public else unbounded(domain)
            build = hats if domain.size > 1 else identity if policy.absent is not None else edges
        made = build(policy, epsilon).linear
        if made is None:
            raise InvalidInput("mechanism='adaptive-grid' needs noise of a known law on its blocks.")
        return made

    @cached_property
    def second(self) -> DiscreteLaplace:
        """The noise on the count of a part."""
        return DiscreteLaplace((1 - self.share) * self.epsilon / self._changed)

    @property
    def _changed(self) -> int:
        """How many counts of parts a change of a record changes, by one each."""
        return 2 if self.policy.total_is_public else 1

    @property
    def privacy_loss(self) -> Fraction:
        """Of both levels."""
        return self.first.privacy_loss + self._changed * self.second.rate

    def modelled_error(self, workload: Workload, records: int) -> float:
        """A few seeded runs on a population that nobody lives in, and what real maps had beyond that."""
        domain = self.policy.domain
        like = reference_population(domain, records)
        total = records if self.policy.total_is_public else None
        runs = (self.run(like.ravel(), total, SeededSource(seed)).reshape(domain.shape) for seed in range(REHEARSED))
        return CAUTION * float(np.mean([workload.mean_square(run - like, domain) for run in runs]))

    def informed(self, records: int) -> Mechanism:
        """Blocks are larger where there are fewer records."""
        return adaptive_grid(self.policy, self.epsilon, block=_usual(self.policy, self.epsilon, records))

    def require_room(self) -> None:
        """Of both levels; and noise whose variance is more than nothing in doubles, by which the levels are weighed."""
        if not self.second.variance:
            raise InvalidInput(
                f"epsilon={float(self.epsilon):g} is too large for mechanism='adaptive-grid', which weighs its levels "
                "by their noise: there would be none. Nothing was drawn or recorded. Use mechanism='identity'."
            )
        self.first.require_room()
        require_integers(self.name, 1, 1 << bits(self.second.rate), "Use a larger epsilon.")

    def parts_for(self, released: Integers, total: int | None) -> GridParts:
        """How blocks are cut, from what the first level released."""
        expected = np.maximum(self.first.estimate(released, total), 0.0)
        return GridParts.of_size(self.blocks, expected * float(self.second.rate) / CROWD)

    def draw(self, counts: Integers, total: int | None, source: Source) -> Integers:
        """Both levels; all that they tell."""
        released = self.first.draw(self.blocks.counts(counts), total, source)
        grid = self.parts_for(released, total)
        noisy = grid.counts(counts) + self.second.sample(len(grid), source)
        return np.concatenate([_head(released, grid), noisy])

    def estimate(self, measured: Integers, total: int | None) -> Floats:
        """Least squares over both levels; every part's number is shared out equally."""
        released, grid, noisy = self._read(measured)
        above = self.first.estimate(released, total)
        found = grid.spread(together(grid, self.first.model, self.second, above, noisy.astype(np.float64)))
        return found if total is None else with_exact_total(found, total)

    def runs(self, measured: Integers | None, total: int | None) -> Runs | None:
        """The parts, with the numbers of whole blocks and of parts, and the noise in these."""
        if measured is None:
            return None
        try:
            released, grid, noisy = self._read(measured)
        except InvalidInput:
            return None  # a damaged file: as if it had not kept them
        return nested_runs(grid, self.first.model, self.second, self.first.estimate(released, total), noisy)

    @property
    def form(self) -> Nested:
        """Blocks, then parts that are a function of them."""
        return Nested(
            first=self.first,
            blocks=self.blocks.counts,
            sums=lambda released, total: self.parts_for(released, total).counts,
            noise=self.second,
            head=lambda released, total: _head(released, self.parts_for(released, total)),
            estimate=self.estimate,
        )

    def _read(self, measured: Integers) -> tuple[Integers, GridParts, Integers]:
        """(what the blocks released, the parts, their noisy counts); they are not trusted."""
        row = np.asarray(measured, dtype=np.int64)
        shape = self.first.values(np.zeros(self.blocks.size, dtype=np.int64)).shape
        first, cut = math.prod(shape), self.blocks.size * len(self.blocks.shape)
        if row.ndim != 1 or len(row) < first + cut:
            raise InvalidInput("measured does not describe blocks and their parts.")
        splits = row[first : first + cut].reshape(self.blocks.size, -1)
        grid = GridParts(self.blocks, splits)
        if len(row) != first + cut + len(grid):
            raise InvalidInput("measured does not describe blocks and their parts.")
        return row[:first].reshape(shape), grid, row[first + cut :]


def _head(released: Integers, grid: GridParts) -> Integers:
    """What stands before the counts of the parts in what is drawn."""
    return np.concatenate([released.ravel(), grid.splits.ravel()])


def adaptive_grid(policy: Policy, epsilon: Fraction, **options: Any) -> Mechanism:
    """Blocks of `block` cells, one number or one for each axis, then parts of them; `share` of ε is for the blocks."""
    moves = policy.moves.stencil
    plain = (not policy.moves_exist and policy.absent is not None and bool(policy.absent.all())) or (
        policy.moves.join_all and policy.absent is None
    )
    if policy.public or not policy.domain.is_ordered or not (plain or (moves is not None and policy.total_is_public)):
        raise InvalidInput(
            "mechanism='adaptive-grid' is for lines and grids under add/remove, replace-one, or moves without sources "
            "of the same length from every cell. Nothing was drawn or recorded. Use mechanism='edges' or 'hats'."
        )
    share = fraction(options.pop("share", SHARE), "share")
    if not 0 < share < 1:
        raise InvalidInput(f"share={share} must lie between 0 and 1, both excluded: the share of ε for the blocks.")
    usual = _usual(policy, epsilon, None)
    given = options.pop("block", None)
    no_options("adaptive-grid", options)
    shape = policy.domain.shape
    each = usual if given is None else list(given) if isinstance(given, (list, tuple)) else [given] * len(shape)
    if len(each) != len(shape):
        raise InvalidInput(f"block={given!r} must be one whole number of cells, or one for each of {len(shape)} axes.")
    sides = tuple(min(positive_int(side, "block"), n) for side, n in zip(each, shape, strict=True))
    return AdaptiveGrid(
        name="adaptive-grid",
        policy=policy,
        epsilon=epsilon,
        options={"block": list(sides), "share": str(share)},
        blocks=Blocks(shape, sides),
        share=share,
    )


def _usual(policy: Policy, epsilon: Fraction, records: int | None) -> list[int]:
    """The sides of blocks: as long as a move reaches, so that it crosses one line an axis; longer, and by themselves
    under add/remove and replace-one, where there are so few records that short ones would be mostly noise.
    """
    shape, moves = policy.domain.shape, policy.moves.stencil
    near = moves is not None and policy.total_is_public
    count = float(USUAL_BLOCKS)
    if records is not None:
        count = max(LEAST_BLOCKS, (MOVED if near else CHANGED) * (records * float(epsilon) / 10) ** 0.3)
    sides = [max(2, math.ceil(n / count)) for n in shape]
    if moves is None or not near:
        return sides
    reach = [max(2, int(reach)) for reach in moves.reach]
    return reach if records is None else [max(pair) for pair in zip(sides, reach, strict=True)]


ADAPTIVE_GRID = Entry(name="adaptive-grid", build=adaptive_grid)
