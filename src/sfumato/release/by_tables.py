"""A release of tables: what is asked is looked up in the table of just the axes that it speaks of.

No cell of the product is known. Every table whose axes lie inside of a measured one is, by least squares over all of
them, and any two agree where they overlap. So a question about some axes is a question to a release on these axes
alone, with its own law of noise.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from sfumato._types import Floats
from sfumato.domain import Domain
from sfumato.errors import InvalidInput, TooLarge
from sfumato.mechanism import Mechanism
from sfumato.release.asking import Asked
from sfumato.release.nonnegative import non_negative
from sfumato.release.public import PublicTotals
from sfumato.release.view import View
from sfumato.values import Values

if TYPE_CHECKING:
    from sfumato.mechanism.tables.marginals import MarginalsMechanism

_SHOWN = 6  # tables that a refusal names


@dataclass(frozen=True, eq=False)
class ByTables:
    """Estimated tables, one after the other, and the mechanism that knows them."""

    mechanism: MarginalsMechanism
    estimates: Floats
    values: Values | None = None

    @classmethod
    def of(cls, mechanism: Mechanism, estimates: Floats, values: Values | None) -> ByTables | None:
        """What a mechanism estimated of records or values, where that is tables."""
        return None if mechanism.by_tables is None else cls(mechanism.by_tables, estimates, values)

    def seen(self, question: Asked, *, plain: bool = True) -> tuple[View, Asked]:
        """The view of the table that a question is about, and the question in its words; unless `plain`, with values
        that are not negative.
        """
        axes = question.axes or self._smallest
        if not self.mechanism.lattice.tells(axes):
            asked = " × ".join(self._domain.names[i] for i in axes)
            raise InvalidInput(
                f"this release has tables of some factors each, and none holds {asked} together: it has "
                f"{self.names}. Nothing was answered. Ask for fewer of them at once, or plan with "
                f"sf.marginals(…) that names this table."
            )
        view, question = self.view(axes), question.along(axes)
        if not plain:
            public = view.public
            view = replace(view, shared=non_negative(view.counts, question.domain, public.totals, public.axes))
        return view, question

    def view(self, axes: tuple[int, ...]) -> View:
        """The table of some axes as a release on these alone."""
        mechanism = self.mechanism
        counts = mechanism.tables.table(self.estimates, axes)
        known = mechanism.lattice.known
        public = PublicTotals(counts.shape, (), None)
        if known is not None:
            public = PublicTotals.of(counts, tuple(at for at, i in enumerate(axes) if i in known))
        unit, signed = (1.0, False) if self.values is None else (float(self.values.unit), self.values.signed)
        return View(counts, mechanism.model_of(axes), False, replace(public, signed=signed), unit=unit)

    @property
    def _domain(self) -> Domain:
        return self.mechanism.policy.domain

    @property
    def _smallest(self) -> tuple[int, ...]:
        return min((axes for axes in self.mechanism.tables.sets if axes), key=self.mechanism.lattice.size)[:1]

    @property
    def names(self) -> str:
        """The largest tables that are there, in names."""
        sets = self.mechanism.tables.sets
        found = [" × ".join(self._domain.names[i] for i in axes) for axes in sets[:_SHOWN]]
        return ", ".join(found) + (f" and {len(sets) - _SHOWN} more" if len(sets) > _SHOWN else "")

    def no_cells(self) -> TooLarge:
        """Why there are no counts of cells."""
        first = ", ".join(repr(self._domain.names[i]) for i in self.mechanism.tables.sets[0])
        return TooLarge(
            f"this release has tables of some factors each, and no counts of the {self._domain.size:,} cells of their "
            f"product: {self.names}. Ask for one, release.marginal({first}), or for a range or label by name, "
            "release.answer(…)."
        )
