"""A release read as points: synthetic records, the distribution function, quantiles. All of it is post-processing.

A release of sorted points holds more than its counts: groups of records with their mean place along the line or curve.
From any other release on a line the distribution function is that of its counts, made non-decreasing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sfumato._types import Floats
from sfumato.domain.interval import plain
from sfumato.errors import InvalidInput

if TYPE_CHECKING:
    from sfumato.mechanism.points.sorted import SortedMechanism
    from sfumato.release.release import Release


def sorted_points(release: Release) -> SortedMechanism | None:
    """The mechanism of a release of sorted points that has kept its noisy sums; None for all others."""
    return release.mechanism.by_points if release.measured is not None else None


def distribution_knots(release: Release) -> tuple[Floats, Floats]:
    """(places, records below them): a piecewise linear function, in cell coordinates along the line or curve."""
    total = release.exact_total
    mechanism = sorted_points(release)
    if mechanism is not None:
        places, records = mechanism.distribution(np.array(release.measured), total)
        ends = float(release.domain.size)
        return np.concatenate([[0.0], places, [ends]]), np.concatenate([[0.0], records, [records[-1:].sum()]])
    if release.domain.ndim != 1 or not release.domain.is_spatial:
        raise InvalidInput("only a release on a line, or of sorted points, has a distribution function.")
    below = np.maximum.accumulate(np.concatenate([[0.0], np.cumsum(release.counts)]))
    return np.arange(len(below), dtype=np.float64), np.clip(below, 0.0, None if total is None else total)


def quantile(release: Release, q: ArrayLike) -> float | Floats:
    """Where the share q of the records lies below, on a line."""
    wanted = np.asarray(q, dtype=np.float64)
    if not ((wanted > 0) & (wanted < 1)).all():  # false for NaN as well
        raise InvalidInput(f"q={q!r} must lie between 0 and 1, both excluded.")
    _require_line(release, "quantile")
    places, records = distribution_knots(release)
    found = _units(release, np.interp(wanted * records[-1], records, places))
    return float(found) if found.ndim == 0 else found


def distribution(release: Release, x: ArrayLike) -> float | Floats:
    """The share of the records below x, on a line; beyond the bounds nothing is known of it."""
    _require_line(release, "distribution")
    (axis,) = release.domain.intervals
    asked = np.asarray(x, dtype=np.float64)
    if not ((asked >= axis.low) & (asked <= axis.high)).all():  # false for NaN as well
        raise InvalidInput(
            f"x={x!r} lies outside the bounds, {plain(axis.low)} to {plain(axis.high)}: records beyond them were "
            "counted at the border. Nothing was answered. Ask inside the bounds."
        )
    places, records = distribution_knots(release)
    at = np.interp(asked, axis.edges, np.arange(len(axis.edges)))
    share = np.interp(at, places, records) / max(float(records[-1]), 1.0)
    return float(share) if np.ndim(x) == 0 else share


def points(release: Release) -> Floats:
    """As many synthetic points as there are (estimated) records, one row each, in the domain's units.

    They lie where the published groups say, spread evenly between them: nobody's record, and as private as the release.
    """
    mechanism = sorted_points(release)
    if mechanism is None:
        raise InvalidInput("only a release by mechanism='sorted' can be read as points. Publish with that mechanism.")
    places, records = distribution_knots(release)
    count = round(float(records[-1]))
    along = np.interp(np.arange(count) + 0.5, records, places)
    cells = mechanism.places(along)
    return np.stack(
        [np.interp(cells[:, i], np.arange(len(a.edges)), a.edges) for i, a in enumerate(release.domain.intervals)],
        axis=-1,
    )


def groups(release: Release) -> tuple[Floats, NDArray[np.int64]]:
    """(the mean place of every published group in the domain's units, how many records it stands for)."""
    mechanism = sorted_points(release)
    if mechanism is None:
        raise InvalidInput("only a release by mechanism='sorted' has groups. Publish with that mechanism.")
    total = release.exact_total
    places, sizes = mechanism.positions(np.array(release.measured), total)
    cells = mechanism.places(places)
    middles = [np.interp(cells[:, i], np.arange(len(a.edges)), a.edges) for i, a in enumerate(release.domain.intervals)]
    return np.stack(middles, axis=-1), sizes


def _units(release: Release, place: Any) -> Floats:
    (axis,) = release.domain.intervals
    return np.asarray(np.interp(place, np.arange(len(axis.edges)), axis.edges))


def _require_line(release: Release, name: str) -> None:
    if release.values is not None:
        raise InvalidInput(f"release.{name} is for releases of records; this one is of {release.values.describe()}.")
    if release.domain.ndim != 1 or not release.domain.is_spatial:
        raise InvalidInput(f"release.{name} is for releases on a line; this one has {release.domain!r}.")
