"""Marginals: the tables of some factors, everything else summed over."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations
from typing import Any

from sfumato.calls import quoted
from sfumato.domain import Domain
from sfumato.errors import InvalidInput
from sfumato.exact import positive_int, shown
from sfumato.workload.axis import CELLS
from sfumato.workload.listed import TOTAL
from sfumato.workload.names import apart
from sfumato.workload.part import Part
from sfumato.workload.workload import Workload


@dataclass(frozen=True)
class Marginals(Workload):
    """The tables of the named factors or axes, or of every so many factors; each cell of each table counts alike."""

    tables: tuple[tuple[str, ...], ...] = ()
    ways: int | None = None

    def check(self, domain: Domain) -> None:
        """Names that are there and stand for different axes; not more ways than factors."""
        if self.ways is not None and self.ways > len(domain.factors):
            raise InvalidInput(
                f"sf.marginals({self.ways}) asks for tables of {self.ways} factors, and this domain has "
                f"{len(domain.factors)}. Nothing was computed. Use at most sf.marginals({len(domain.factors)})."
            )
        self.parts(domain)

    def parts(self, domain: Domain) -> tuple[Part, ...]:
        """One for each table."""
        tables = self.tables
        if self.ways is not None:
            tables = tuple(combinations([factor.name for factor in domain.factors], self.ways))
        found = []
        for table in tables:
            kept = {axis for axes in apart(domain, table, "in one table") for axis in axes}
            kinds = tuple(CELLS if axis in kept else TOTAL for axis in range(domain.ndim))
            found.append(Part(Fraction(1), kinds))
        return tuple(found)

    def describe(self) -> str:
        """The tables in words."""
        if self.ways is not None:
            return f"the tables of every {self.ways} factors" if self.ways > 1 else "the table of every factor"
        named = [" × ".join(table) for table in self.tables]
        return f"the table{'s' if len(named) > 1 else ''} of {', '.join(named)}"

    def to_text(self) -> str:
        """The tables, or the number of ways."""
        if self.ways is not None:
            return f"marginals({self.ways})"
        named = [", ".join(map(quoted, table)) for table in self.tables]
        tables = [f"({names})" if len(table) > 1 else names for names, table in zip(named, self.tables, strict=True)]
        return f"marginals({', '.join(tables)})"

    def spec(self) -> dict[str, Any]:
        """The tables, or the number of ways."""
        if self.ways is not None:
            return {"kind": "marginals", "ways": self.ways}
        return {"kind": "marginals", "tables": [list(table) for table in self.tables]}


def marginals(*tables: str | tuple[str, ...] | int) -> Workload:
    """The tables of these factors (or axes), every other factor summed over; or those of every so many factors.

    >>> space = sf.Line(0, 24, cells=24, name="t") * sf.Categories(["bus", "bike"], name="mode")
    >>> sf.marginals("mode", ("t", "mode")).count(space), sf.marginals(1).count(space)
    (50, 26)
    """
    if len(tables) == 1 and isinstance(tables[0], int):
        return Marginals(ways=positive_int(tables[0], "ways"))
    named = tuple((table,) if isinstance(table, str) else table for table in tables)
    wrong = [table for table in named if not isinstance(table, tuple) or not all(isinstance(n, str) for n in table)]
    if not named or wrong or not all(named):
        given = f"{shown(wrong[0])} is no such table" if wrong else "a table without a name is the total alone"
        raise InvalidInput(
            "sf.marginals(…) takes the names of factors, tuples of them for tables of several, or one whole number; "
            f"{given if named else 'none was given'}. Nothing was computed. Write sf.marginals('mode', ('t', 'mode')) "
            "or sf.marginals(2)."
        )
    tables_named: tuple[tuple[str, ...], ...] = tuple(table for table in named if isinstance(table, tuple))
    for i, table in enumerate(tables_named):
        if any(set(table) == set(other) for other in tables_named[:i]):
            raise InvalidInput(
                f"sf.marginals(…) names the table {' × '.join(map(shown, table))} twice. Nothing was computed. To make "
                "it count more, add it up: sf.marginals(…) + 2 * sf.marginals(…)."
            )
    return Marginals(tables_named)
