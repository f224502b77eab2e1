"""DAWA for histograms as a mechanism: noise on every count first, then runs of equal counts in what came out.

Promise: that of `identity` under the same policy, whatever it is, since nothing but its noisy integers is looked at
(`noisy_runs`, with the reason why this beats a partition that is paid for). These stay unbiased and are kept: ranges
are bracketed by them. The estimates are biased where counts differ by less than the noise, and single cells have no
standard error.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np

from sfumato._types import Floats, Integers
from sfumato.domain.hilbert import hilbert_order
from sfumato.errors import InvalidInput
from sfumato.mechanism.base import AdditiveMechanism, LinearMechanism
from sfumato.mechanism.cells.strategies import identity
from sfumato.mechanism.partitions.noisy_runs import smoothed
from sfumato.mechanism.parts import Parts
from sfumato.mechanism.totals import with_exact_total
from sfumato.noise import DiscreteLaplace


@dataclass(frozen=True, kw_only=True, eq=False)
class NoiseFirst(AdditiveMechanism):
    """Noisy counts, smoothed along the line or the Hilbert curve."""

    @property
    def keeps_measured(self) -> bool:
        """The noisy counts say more than the estimates: sums of them are unbiased."""
        return True

    @property
    def grain(self) -> tuple[int, ...]:
        """Every cell is known by itself, by its noisy count."""
        return (1,) * self.policy.domain.ndim

    @cached_property
    def plain(self) -> LinearMechanism:
        """What adds the noise."""
        made = identity(self.policy, self.epsilon).linear
        if made is None or self.policy.public:
            raise InvalidInput(
                f"mechanism={self.name!r} with first='noise' needs a policy that keeps no factor public. "
                "Nothing was drawn or recorded. Use mechanism='identity'."
            )
        return made

    @cached_property
    def _order(self) -> Integers:
        shape = self.policy.domain.shape
        return np.arange(shape[0]) if len(shape) == 1 else hilbert_order(shape)

    @property
    def privacy_loss(self) -> Fraction:
        """That of the noise; the rest sees no counts."""
        return self.plain.privacy_loss

    def require_possible(self) -> None:
        """Refuse where no change moves a count."""
        self.plain.require_possible()

    def require_room(self) -> None:
        """Of the noisy counts."""
        self.plain.require_room()

    def noises(self, total: int | None) -> list[tuple[DiscreteLaplace, int]]:
        """One value a cell."""
        return self.plain.noises(total)

    def values(self, counts: Integers) -> Integers:
        """The counts."""
        return self.plain.values(counts)

    def disturbance(self, noise: Sequence[Integers]) -> Integers:
        """The noise itself."""
        return self.plain.disturbance(noise)

    def estimate(self, measured: Integers, total: int | None) -> Floats:
        """Runs of equal counts; a missing public total is handed out to all cells."""
        rate = float(self.plain.model.blocks[0].noise.rate)
        found = np.empty(len(measured))
        found[self._order] = smoothed(measured[self._order].astype(np.float64), rate)
        return found if total is None else with_exact_total(found + (total - found.sum()) / len(found), total)

    def parts(self, measured: Integers | None, total: int | None) -> Sequence[Parts]:
        """The cells themselves, with the numbers that `identity` would give."""
        shape = self.policy.domain.shape
        if measured is None or np.shape(measured) != (self.policy.domain.size,):
            return ()
        cuts = tuple(np.arange(n + 1) for n in shape)
        return [Parts(cuts, self.plain.estimate(measured, total).reshape(shape), self.plain.model)]
