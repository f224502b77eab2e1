"""A domain as a browser draws it: edges of grids, outlines of hexagons and regions, names of all other cells. All of it
is public.
"""

from __future__ import annotations

import base64
from typing import Any, cast

import numpy as np
from numpy.typing import ArrayLike

from sfumato.domain import Axis, Domain
from sfumato.domain.on_maps import crs_of, places
from sfumato.domain.ordered import Ordered
from sfumato.domain.places import Places

MOST_OUTLINES = 20_000
_MOST_NAMES = 20_000
_DEGREES = ("EPSG:4326", "OGC:CRS84")


def packed(values: ArrayLike) -> str:
    """Numbers as little-endian floats of 32 bits, in base64: small, and read by a browser in one step."""
    return base64.b64encode(np.ascontiguousarray(values, dtype="<f4").tobytes()).decode("ascii")


def drawn(domain: Domain) -> dict[str, Any]:
    """The place that is drawn as a map, where there is one, and all other axes by the names of their cells."""
    mapped = places(domain)
    place = mapped[0] if mapped else ()
    others = [_axis(domain.axes[i]) for i in range(domain.ndim) if i not in place]
    name = next((factor.name for factor in domain.factors if factor.positions == place), None)
    return {
        "shape": list(domain.shape),
        "cells": domain.size,
        "place": {"name": name, **_place(domain, place)} if place else None,
        "others": others,
    }


def _place(domain: Domain, positions: tuple[int, ...]) -> dict[str, Any]:
    axes = [domain.axes[i] for i in positions]
    crs = crs_of(axes)
    if len(axes) == 2:
        x, y = (np.asarray(cast(Ordered, axis).edges, dtype=np.float64).tolist() for axis in axes)
        degrees = crs in _DEGREES or (crs is None and -180 <= x[0] < x[-1] <= 180 and -90 <= y[0] < y[-1] <= 90)
        return {"kind": "grid", "crs": crs, "degrees": degrees, "x": x, "y": y, "axes": [axis.name for axis in axes]}
    place = cast(Places, axes[0])
    degrees = crs in _DEGREES
    told: dict[str, Any] = {"kind": "cells", "crs": crs, "degrees": degrees, "what": place.what, "count": place.cells}
    x0, y0, x1, y1 = place.outlined.bounds
    told |= {"bounds": [x0, y0, x1, y1], "outlines": None, "names": None}
    if place.cells <= MOST_OUTLINES:
        shapes = place.outlined.coordinates()
        told |= {"outlines": [_rounded(shape) for shape in shapes], "names": place.cell_names()}
    return told


def _rounded(shape: Any) -> list[list[list[list[float]]]]:
    return [[[[round(x, 6), round(y, 6)] for x, y in ring] for ring in part] for part in shape]


def _axis(axis: Axis) -> dict[str, Any]:
    told: dict[str, Any] = {"name": axis.name, "cells": axis.cells, "ordered": axis.ordered, "reads": axis.reads}
    if axis.cells <= _MOST_NAMES:
        told["names"] = short_names(axis)
    return told


def short_names(axis: Axis) -> list[str]:
    """What a slider calls the cells: of one between edges, the lower one."""
    if not axis.ordered or axis.winds:
        return axis.cell_names()
    ordered = cast(Ordered, axis)
    return [ordered.written(edge) for edge in ordered.edges[:-1]]
