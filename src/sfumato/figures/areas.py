"""The area of what figures are grouped by: cells of a grid on the ground, hexagons, regions, or groups of a level."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import numpy as np

from sfumato._types import Floats
from sfumato.domain.on_maps import crs_of, places
from sfumato.domain.places import Places
from sfumato.errors import InvalidInput
from sfumato.figures.reading import Reading
from sfumato.release.geography import square_kilometres
from sfumato.release.maps import boxes_of_rows, outlines_of_rows

if TYPE_CHECKING:
    from sfumato.release.release import Release

_ASKED, _NOTHING = "min_area", "Nothing was suppressed."


def areas_of(release: Release, reading: Reading) -> Floats:
    """Square kilometres of every answer's group; of what is elsewhere NaN."""
    domain, keys = release.domain, reading.question.keys
    at = {key.position: i for i, key in enumerate(keys)}
    found = [axes for axes in places(domain) if all(axis in at for axis in axes)]
    if len(found) != 1:
        names = ", ".join(repr(factor.name) for factor in domain.factors if factor.positions in places(domain))
        raise InvalidInput(
            f"{_ASKED} is about the area of what is grouped by, and by names {'several places' if found else 'none'}; "
            f"the places of this release are {names or 'none'}. {_NOTHING} Group by one of them, or by a level of one."
        )
    axes = found[0]
    own = [keys[at[axis]] for axis in axes]
    if len(axes) == 2:
        located, outlines = boxes_of_rows(own)
    else:
        axis = cast(Places, domain.axes[axes[0]])
        level = own[0].axis.name if axes[0] in reading.question.levels else None
        located, outlines = outlines_of_rows(axis, own[0], level)
    crs = crs_of([domain.axes[axis] for axis in axes])
    area = square_kilometres(outlines, located, crs, _ASKED, _NOTHING)
    lead = len(reading.shape) - len(keys)
    order = [lead + at[axis] for axis in axes]
    area = area.reshape([len(key.cells) for key in own])
    if order == sorted(order, reverse=True):
        area = area.T
    shape = [n if i in order else 1 for i, n in enumerate(reading.shape)]
    return np.broadcast_to(area.reshape(shape), reading.shape).ravel()
