"""Publishing the sorted points themselves: an adaptive histogram, fine where the records are many.

Promise: ε-private under the policy, for one record. The records' positions (the cell's index on a line, its rank along
the Hilbert curve on a grid) are sorted, cut into groups of k consecutive ones, and the sum of every group gets
discrete Laplace noise. The sums are integers from the start: the lattice is the domain's own cells.

**Sensitivity.** Let one record move from position p up to q. Every record between them moves down one place of the
sorted list, so place by place no entry falls, and the sum of the list grows by q - p: the L1 distance of the two lists
is exactly q - p, and that of the group sums at most as much, whatever the groups. The largest q - p over the edges of
the policy is computed from what is built: the reach of a line policy, and nearly the whole curve on a grid, where
cells side by side may be far apart along it. A small δ therefore helps on lines alone.

**Where records may appear and vanish** (⊥), their number is private too: a share of ε buys n̂ = n + noise. The list is
cut to n̂ entries, or padded with its upper end. Think of it as followed by endlessly many records at the last
position T: a record that appears at p replaces one of those, a move by T - p, and the first n̂ entries of two lists
are no further apart than the lists. Padding at the lower end costs p instead; the cheaper end is taken, from the policy
alone. An edge to ⊥ costs its share for n̂ and the rest for the sums, a move only the latter.

The group size comes from n (or n̂), ε and the sensitivity, never from the data. What follows is post-processing:
isotonic regression of the means, and a distribution function through them. Every count vector has an output.

What it does not give: error bars. The estimates are biased within groups, by an amount that depends on the data. It is
for small moves on a line; under replace-one an adaptive grid or a hierarchy is better wherever anything can be told.

Fang, Chang: Adaptive differentially private histogram of low-dimensional data (PETS 2012); under δ, Fang, Chang (ASIA
CCS 2014), section 5.5.1.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from sfumato._types import Floats, Integers
from sfumato.domain.hilbert import hilbert_order
from sfumato.errors import InvalidInput
from sfumato.exact import fraction, positive_int, text
from sfumato.mechanism.base import MOST_RECORDS, AdditiveMechanism, MeasuredMechanism, Mechanism
from sfumato.mechanism.entry import Entry
from sfumato.mechanism.forms import NoisyNumber
from sfumato.mechanism.points.sorted_groups import (
    cell_counts,
    distribution,
    group_sizes,
    group_sums,
    increasing,
    largest_step,
)
from sfumato.mechanism.points.sorted_model import CAUTION, best_group, query_volumes, range_error
from sfumato.noise import DiscreteLaplace, Source
from sfumato.policies import Policy
from sfumato.workload import Workload

SHARE = Fraction(1, 10)  # of ε, for the number of records where that is private
LARGEST_COUNT = 1 << 24  # groups; with more records than that they become larger, whatever was asked for
LARGEST_SUM = 1 << 61  # of the positions in a group
LARGEST_TOTAL = MOST_RECORDS


@dataclass(frozen=True, kw_only=True, eq=False)
class SortedMechanism(MeasuredMechanism):
    """What both forms share: positions along a curve, sensitivities, and all that comes after the noise."""

    group: int | None = None

    def __post_init__(self) -> None:
        domain = self.policy.domain
        if not domain.is_spatial or domain.ndim > 3:
            raise InvalidInput(
                "mechanism='sorted' needs a line, or a grid of two or three dimensions; labels have no order, and in "
                "more dimensions no curve keeps near things together. Use mechanism='hierarchy' or 'identity'."
            )
        if self.group is not None and self.group * domain.size > LARGEST_SUM:
            raise InvalidInput(
                f"group={self.group} is too large for sums of {domain.size} positions in 64 bits. "
                f"Use at most {LARGEST_SUM // domain.size}, or leave it out."
            )

    def require_possible(self) -> None:
        """An ε too small for noise in 64 bits is refused here, before anything is recorded."""
        _ = self.law

    @property
    def by_points(self) -> SortedMechanism:
        """Itself."""
        return self

    @property
    def keeps_measured(self) -> bool:
        """Positions, quantiles and the distribution are read from the noisy sums."""
        return True

    @cached_property
    def order(self) -> Integers | None:
        """The cells along the Hilbert curve; None on a line, where they are in order already."""
        return None if self.policy.domain.ndim == 1 else hilbert_order(self.policy.domain.shape)

    @cached_property
    def sensitivity(self) -> int:
        """How far apart two sorted lists are at the most when one record moves along an edge between cells."""
        if self.policy.moves.join_all:
            return self.policy.domain.size - 1  # whatever the order: a large grid need not be walked for it
        return largest_step(self.policy, self.order)

    @property
    @abstractmethod
    def rate(self) -> Fraction | None:
        """The rate of the noise on every sum; None where nothing is to be hidden."""

    @cached_property
    def law(self) -> DiscreteLaplace | None:
        """The noise on every sum."""
        return None if self.rate is None else DiscreteLaplace(self.rate)

    @property
    def relative_scale(self) -> float:
        """The scale of the noise on a single record, as a share of the domain: sensitivity/(cells·ε)."""
        return 0.0 if self.rate is None else float(1 / self.rate / self.policy.domain.size)

    def group_size(self, records: int) -> int:
        """How many records are published together: as asked for, else from the number of records, ε and the
        sensitivity.
        """
        size = self.policy.domain.size
        chosen = best_group(records, 1.0, self.relative_scale) if self.group is None else self.group
        return min(max(chosen, -(-records // LARGEST_COUNT)), LARGEST_SUM // size)

    @abstractmethod
    def sums(self, measured: Integers, total: int | None) -> tuple[Integers, Integers]:
        """(noisy sums, size of every group) of what was measured."""

    # ------------------------------------------------------------------ post-processing: what was measured is private

    def positions(self, measured: Integers, total: int | None) -> tuple[Floats, Integers]:
        """(where the records of every group lie on average, how many they are), in the order of the curve.

        Positions are cell coordinates along it: 0 is the lower end of the first cell, i + 1/2 the middle of cell i.
        """
        sums, sizes = self.sums(measured, total)
        return increasing(sums, sizes, self.policy.domain.size - 1) + 0.5, sizes

    def distribution(self, measured: Integers, total: int | None) -> tuple[Floats, Floats]:
        """(cell coordinates along the curve, records below them): the knots of a piecewise linear function.

        Both are non-decreasing and the second ends at the number of records: quantiles are `np.interp(q·n, records,
        positions)`.
        """
        means, sizes = self.positions(measured, total)
        noise = 0.0 if self.law is None else self.law.variance**0.5
        knots, records = distribution(means - 0.5, sizes, self.policy.domain.size - 1, noise)
        return knots + 0.5, records

    def places(self, positions: Floats) -> Floats:
        """Positions along the curve as points in cell coordinates, one row each; on a grid the middle of the cell."""
        if self.order is None:
            return np.asarray(positions, dtype=np.float64).reshape(-1, 1)
        rank = np.clip(np.floor(positions).astype(np.int64), 0, len(self.order) - 1)
        cells = np.unravel_index(self.order[rank], self.policy.domain.shape)
        return np.stack(cells, axis=-1).astype(np.float64) + 0.5

    def estimate(self, measured: Integers, total: int | None) -> Floats:
        """Counts of all cells: differences of the distribution function. None is negative, and their sum is exact."""
        knots, records = self.distribution(measured, total)
        along = cell_counts(knots - 0.5, records, self.policy.domain.size)
        if self.order is None:
            return along
        counts = np.empty_like(along)
        counts[self.order] = along
        return counts

    # ------------------------------------------------------------------ before any data

    def modelled_error(self, workload: Workload, records: int) -> float:
        """A guess of the mean squared error of a query on so many records, a public figure or an earlier release.

        Twice a model that was fitted to synthetic and real data (`sfumato.mechanism.points.sorted_model`); NaN for
        queries that are not ranges.
        """
        volumes = query_volumes(workload, self.policy)
        if volumes is None:
            return float("nan")
        if self.rate is None:
            return 0.0

        def error(held: Floats) -> float:
            errors = range_error(
                held,
                records=records,
                group=self.group_size(records),
                epsilon=1.0,
                relative_sensitivity=self.relative_scale,
                dimensions=self.policy.domain.ndim,
            )
            return float(errors.mean())

        return CAUTION * sum(share * error(held) for share, held in volumes)

    def describe(self) -> str:
        """One line: name, options and noise."""
        chosen = super().describe()
        if self.group is None:
            chosen += ", groups by the number of records"
        return f"{chosen}; {'no noise needed' if self.rate is None else f'noise of scale {text(1 / self.rate)}'}"


@dataclass(frozen=True, kw_only=True, eq=False)
class SortedPoints(SortedMechanism, AdditiveMechanism):
    """Where the number of records is public. Noise η and η + c with c the change of the sums give the same output, and
    ‖c‖₁ is at most the sensitivity.
    """

    @property
    def rate(self) -> Fraction | None:
        """ε over the sensitivity."""
        return self.epsilon / self.sensitivity if self.sensitivity else None

    @property
    def privacy_loss(self) -> Fraction:
        """Sensitivity times rate."""
        return Fraction(0) if self.rate is None else self.sensitivity * self.rate

    def for_total(self, total: int) -> SortedPoints:
        """The same with its group size written down, so that files and refinements do not depend on the rule for it."""
        group = self.group_size(total)
        return replace(self, group=group, options={**self.options, "group": group})

    def noises(self, total: int | None) -> list[tuple[DiscreteLaplace, int]]:
        """One value for every group."""
        return [] if self.law is None else [(self.law, len(self._sizes(total)))]

    def values(self, counts: Integers) -> Integers:
        """The sum of every group."""
        along = counts if self.order is None else counts[self.order]
        return group_sums(along, self._sizes(int(counts.sum())))

    def disturbance(self, noise: Sequence[Integers]) -> Integers:
        """The noise itself."""
        return noise[0] if len(noise) else np.zeros(1, dtype=np.int64)

    def sums(self, measured: Integers, total: int | None) -> tuple[Integers, Integers]:
        """What was measured, and sizes from the public total."""
        return measured, self._sizes(total)

    def _sizes(self, total: int | None) -> Integers:
        if total is None:
            raise InvalidInput("total=None: under this policy the number of records is public, and needed.")
        return group_sizes(total, self.group_size(total))


@dataclass(frozen=True, kw_only=True, eq=False)
class SortedWithAbsence(SortedMechanism):
    """Where records may appear and vanish. What is measured begins with n̂ and the group size.

    It cannot be refined: the number of groups rests on noise itself.
    """

    share: Fraction = SHARE

    def __post_init__(self) -> None:
        super().__post_init__()
        _ = self.number_law

    @cached_property
    def number_law(self) -> DiscreteLaplace:
        """The noise on the number of records."""
        return DiscreteLaplace(self.share * self.epsilon)

    @cached_property
    def appearing(self) -> tuple[int, bool]:
        """(how far apart the padded lists are when a record appears, whether they are padded at the lower end)."""
        absent = np.zeros(self.policy.domain.shape, bool) if self.policy.absent is None else self.policy.absent
        along = absent.ravel() if absent.all() or self.order is None else absent.ravel()[self.order]
        positions = np.flatnonzero(along)
        low = int(positions.max(initial=0))
        high = len(along) - 1 - int(positions.min(initial=len(along) - 1))
        return min(low, high), low < high

    @cached_property
    def rate(self) -> Fraction | None:
        """What is left of ε for a record that appears, all of it for one that moves."""
        appears, _ = self.appearing
        rates = [self.epsilon * (1 - self.share) / appears] if appears else []
        return min(rates + ([self.epsilon / self.sensitivity] if self.sensitivity else []), default=None)

    @property
    def privacy_loss(self) -> Fraction:
        """The dearer of appearing, which shows in n̂ and in the sums, and moving."""
        rate = self.rate or Fraction(0)
        return max(self.share * self.epsilon + self.appearing[0] * rate, self.sensitivity * rate)

    @property
    def form(self) -> NoisyNumber:
        """n̂, then noisy sums."""
        return NoisyNumber(
            number=self.number_law,
            most=LARGEST_TOTAL,
            sums=self.exact_sums,
            noise=self.law,
            head=self.head,
            estimate=self.estimate,
        )

    def head(self, number: int) -> Integers:
        """What is published beside the sums: n̂ and the group size, which follows from it."""
        return np.array([number, self.group_size(number)], dtype=np.int64)

    def exact_sums(self, counts: Integers, number: int) -> Integers:
        """What noise is added to once n̂ is drawn: the list cut to n̂ entries, or padded. Sees private counts."""
        along = counts if self.order is None else counts[self.order]
        sizes = group_sizes(number, self.group_size(number))
        return group_sums(along, sizes, missing=number - int(counts.sum()), pad_low=self.appearing[1])

    def draw(self, counts: Integers, total: int | None, source: Source) -> Integers:
        """n̂ first; all that follows rests on it and not on n."""
        del total
        noisy = int(counts.sum()) + int(self.number_law.sample(1, source)[0])
        number = min(max(noisy, 0), LARGEST_TOTAL)
        sums = self.exact_sums(counts, number)
        if self.law is not None:
            sums = sums + self.law.sample(len(sums), source)
        return np.concatenate([self.head(number), sums])

    def sums(self, measured: Integers, total: int | None) -> tuple[Integers, Integers]:
        """The sums after the two figures that their sizes come from."""
        del total
        return measured[2:], group_sizes(int(measured[0]), int(measured[1]))

    def modelled_error(self, workload: Workload, records: int) -> float:
        """The model's, and the noise of n̂ in the queries that hold the padded cell."""
        error = super().modelled_error(workload, records)
        domain, shares = self.policy.domain, workload.shares(self.policy.domain)
        end = 0 if self.appearing[1] else -1
        corner = np.unravel_index((end if self.order is None else self.order[end]) % domain.size, domain.shape)
        for share, part in shares or []:
            error += share * part.held(domain.shape, corner) * self.number_law.variance
        return error


def sorted_points(policy: Policy, epsilon: Fraction, **options: Any) -> Mechanism:
    """Noise on the sorted points in groups of `group` records.

    Where the number of records is private, `share` of ε buys an estimate of it.
    """
    group, share = options.pop("group", None), options.pop("share", None)
    if options:
        raise InvalidInput(f"mechanism='sorted' takes no option {', '.join(sorted(options))}.")
    chosen: dict[str, Any] = {}
    if group is not None:
        group = chosen["group"] = positive_int(group, "group")
    if policy.total_is_public:
        if share is not None:
            raise InvalidInput(
                f"share={share!r}: under this policy the number of records is public and nothing need be spent on it. "
                "Leave share out."
            )
        return SortedPoints(name="sorted", policy=policy, epsilon=epsilon, options=chosen, group=group)
    part = SHARE if share is None else fraction(share, "share")
    if not 0 < part < 1:
        raise InvalidInput(
            f"share={share!r} must lie between 0 and 1, both excluded: the part of epsilon for the number of records. "
            "Nothing was drawn or recorded."
        )
    chosen["share"] = str(part)
    return SortedWithAbsence(name="sorted", policy=policy, epsilon=epsilon, options=chosen, group=group, share=part)


SORTED = Entry(name="sorted", build=sorted_points)
