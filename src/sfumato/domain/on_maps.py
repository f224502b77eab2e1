"""Which factors of a domain are places that a map can show, and in which CRS they are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from sfumato.domain.axis import Axis
from sfumato.domain.factor import PLACE
from sfumato.domain.places import Places
from sfumato.domain.product import Domain

_GRID = ["numbers", "numbers"]


def places(domain: Domain) -> list[tuple[int, ...]]:
    """The axes of every factor that can be drawn as a map, the one called `place` first."""
    reads = [(factor, [domain.axes[i].reads for i in factor.positions]) for factor in domain.factors]
    found = [factor for factor, kinds in reads if kinds in (_GRID, ["places"])]
    found.sort(key=lambda factor: factor.name != PLACE)
    return [factor.positions for factor in found]


def crs_of(axes: Sequence[Axis]) -> str | None:
    """The CRS of a place; none of grids of plain numbers."""
    if axes[0].reads == "places":
        return cast(Places, axes[0]).crs
    return axes[0].entry().get("crs")
