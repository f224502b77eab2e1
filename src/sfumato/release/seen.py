"""A release as its answers see it: estimates in whole units of what was counted, their law, and what is public."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from sfumato.domain import Domain
from sfumato.errors import InvalidInput
from sfumato.mechanism import Mechanism
from sfumato.promise import Guarantee
from sfumato.release.answer import Answer
from sfumato.release.answering import every_cell
from sfumato.release.asking import Asked
from sfumato.release.brackets import check_estimate
from sfumato.release.by_tables import ByTables
from sfumato.release.intervals import check_confidence
from sfumato.release.nonnegative import non_negative
from sfumato.release.public import PublicTotals
from sfumato.release.view import View
from sfumato.values import Values


class Seen:
    """What of a release answers, pictures and exports are made of."""

    estimates: NDArray[np.float64]
    guarantee: Guarantee
    mechanism: Mechanism
    measured: NDArray[np.int64] | None

    @property
    def domain(self) -> Domain:
        """The cells that the counts belong to."""
        return self.guarantee.policy.domain

    @property
    def values(self) -> Values | None:
        """What was summed or counted in the place of records; None where records were."""
        return self.guarantee.policy.values

    @property
    def _unit(self) -> float:
        return 1.0 if self.values is None else float(self.values.unit)

    def _outward(self, steps: NDArray[np.float64]) -> NDArray[np.float64]:
        """Steps of a sum in the unit of what was summed."""
        return steps if self._unit == 1.0 else steps * self._unit

    @cached_property
    def _tables(self) -> ByTables | None:
        return ByTables.of(self.mechanism, self.estimates, self.values)

    @property
    def total(self) -> int | float:
        """The number of records, or the sum of what was counted: exact where the policy makes it public, else
        estimated.
        """
        exact = self.exact_total
        if exact is None:
            return float(self.mechanism.records(self.estimates)) * self._unit
        unit = Fraction(1) if self.values is None else self.values.unit
        return exact if unit == 1 else float(exact * unit)

    @cached_property
    def exact_total(self) -> int | None:
        """The total where the policy makes it public, as a whole number: of records, or of steps of a value."""
        total = float(self.mechanism.records(self.estimates))
        return round(total) if self.guarantee.policy.total_is_public else None

    @cached_property
    def _view(self) -> View:
        mechanism, total = self.mechanism, self.exact_total
        if self._tables is not None:
            raise self._tables.no_cells()
        return View(
            self.estimates,
            mechanism.model,
            mechanism.biased,
            PublicTotals.under(self.guarantee.policy, self.estimates, None if mechanism.biased else mechanism.model),
            mechanism.parts(self.measured, total),
            mechanism.runs(self.measured, total),
            unit=self._unit,
        )

    @cached_property
    def _nonnegative_view(self) -> View:
        return replace(self._view, shared=self._without_negative())

    def _without_negative(self, *, integers: bool = False) -> NDArray[np.float64]:
        """In whole steps, or finer."""
        if self.values is not None and self.values.signed:
            raise InvalidInput(
                f"this release is of {self.values.describe()}, which may be negative. Nothing was answered. Take the "
                "plain estimates."
            )
        public = self._view.public
        return non_negative(self.estimates, self.domain, public.totals, public.axes, integers=integers)

    def _seen(self, question: Asked, estimate: str = "plain") -> tuple[View, Asked]:
        """What answers a question: all cells, or the table of just the axes that it speaks of."""
        if self._tables is not None:
            return self._tables.seen(question, plain=check_estimate(estimate) == "plain")
        return self._view if check_estimate(estimate) == "plain" else self._nonnegative_view, question

    def _clipped_cells(self, confidence: float) -> Answer:
        """The cells with ends cut to what a number of records can be, as `answer` has them."""
        found, public = every_cell(self._view, check_confidence(confidence)), self._view.public
        least, most = public.least, public.most_of_cells() * self._unit
        return replace(found, low=np.clip(found.low, least, most), high=np.clip(found.high, least, most))

    def _on_a_map(self, level: str | None) -> View:
        """What answers for every cell of a map; at a level, what answers everything else."""
        return self._view.alone if level is None else self._view
