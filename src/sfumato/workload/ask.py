"""A question for each factor: ranges of places, single modes, prefixes of time, and sums over what is left out."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from typing import Any

from sfumato.calls import quoted
from sfumato.domain import Domain
from sfumato.errors import InvalidInput
from sfumato.exact import shown
from sfumato.workload.listed import TOTAL
from sfumato.workload.names import apart
from sfumato.workload.part import Part, product_of
from sfumato.workload.workload import Workload


@dataclass(frozen=True)
class Ask(Workload):
    """All products of one query along each of the named factors or axes; the others are summed over."""

    along: tuple[tuple[str, Workload], ...]

    def check(self, domain: Domain) -> None:
        """Names that are there and stand for different axes, and queries that make sense along them."""
        for name, workload, own in self._asked(domain):
            try:
                workload.check(own)
            except InvalidInput as refusal:
                raise InvalidInput(f"{name}=…: {refusal}") from refusal
            if workload.parts(own) is None:
                raise InvalidInput(
                    f"{name}=…: {workload.describe()} cannot be multiplied with queries along other factors: a matrix "
                    "has one column for every cell of the whole domain. Nothing was computed. Add it up instead: "
                    "sf.ask(…) + sf.queries(matrix)."
                )

    def parts(self, domain: Domain) -> tuple[Part, ...]:
        """The products of the parts along every factor."""
        asked = [(workload.parts(own) or (), axes) for (_, workload, own), axes in self._with_axes(domain)]
        left = [axis for axis in range(domain.ndim) if not any(axis in axes for _, axes in asked)]
        order = [axis for _, axes in asked for axis in axes] + left
        back = [order.index(axis) for axis in range(domain.ndim)]
        rest = Part(Fraction(1), (TOTAL,) * len(left))
        return tuple(product_of((*chosen, rest)).along(back) for chosen in product(*(parts for parts, _ in asked)))

    def describe(self) -> str:
        """The queries in words."""
        return " × ".join(f"{workload.describe()} of {name}" for name, workload in self.along) or "the total"

    def to_text(self) -> str:
        """A workload along every factor."""
        return f"ask({', '.join(f'{_key(name)}={workload.to_text()}' for name, workload in self.along)})"

    def spec(self) -> dict[str, Any]:
        """The workload along every factor."""
        return {"kind": "ask", "along": {name: workload.spec() for name, workload in self.along}}

    def _asked(self, domain: Domain) -> list[tuple[str, Workload, Domain]]:
        return [asked for asked, _ in self._with_axes(domain)]

    def _with_axes(self, domain: Domain) -> list[tuple[tuple[str, Workload, Domain], tuple[int, ...]]]:
        """(name, workload, the domain that it sees, the axes of that) for everything that was asked."""
        axes = apart(domain, [name for name, _ in self.along], "in sf.ask(…)")
        return [((name, w, _part(domain, name, at)), at) for (name, w), at in zip(self.along, axes, strict=True)]


def ask(**along: Workload) -> Workload:
    """A query along every factor of a product: all combinations of them. A factor that is left out is summed over.

    Names are those of factors or of single axes (`x=`, `y=`); others that are no names of Python's are given with
    ``**{"hour of day": …}``. Along a factor any workload will do that speaks of its cells alone: ranges, given ones as
    well, cells, prefixes, `sf.scales()`, `sf.levels()`, and sums of these.

    >>> space = sf.Grid(bounds=(0, 0, 1, 1), shape=(4, 4)) * sf.Categories(["bus", "bike"], name="mode")
    >>> sf.ask(place=sf.ranges(), mode=sf.histogram()).count(space), sf.ask(place=sf.ranges()).count(space)
    (200, 100)
    """
    for name, workload in along.items():
        if not isinstance(workload, Workload):
            raise InvalidInput(
                f"{name}={shown(workload)} is not a workload. Nothing was computed. Use sf.ranges(), sf.histogram(), "
                "sf.prefixes(), sf.scales() or sf.levels()."
            )
    return Ask(tuple(along.items()))


def _key(name: str) -> str:
    return name if name.isidentifier() else quoted(name)


def _part(domain: Domain, name: str, axes: tuple[int, ...]) -> Domain:
    """The factor of a name as a domain, or one axis of it."""
    named = any(factor.name == name for factor in domain.factors)
    return domain.part(name) if named else Domain(tuple(domain.axes[i] for i in axes))
