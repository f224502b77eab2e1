"""Ranges against the bounds of a domain: what lies wholly outside is no question about it.

Records beyond the bounds are counted in the cells at the border (or dropped), so nothing is known of what is there: an
answer of "0, surely" would be false. A range that reaches beyond the bounds is answered as the records are counted:
the border cells that it holds bring the clamped records with them.
"""

from __future__ import annotations

import numpy as np

from sfumato._types import Floats
from sfumato.domain.interval import Interval, plain
from sfumato.errors import DeclarationWarning, InvalidInput, warn_caller


def refuse_outside(axes: tuple[Interval, ...], low: Floats, high: Floats) -> None:
    """Refuse ranges that hold no point within the bounds. An empty range inside them holds no record: it may be asked.

    ``low`` and ``high`` have one column an axis. A range is half-open: one which ends where the bounds begin, or
    begins where they end, lies outside.
    """
    lows, highs = np.array([axis.low for axis in axes]), np.array([axis.high for axis in axes])
    empty = (low == high).any(axis=-1, keepdims=True)  # along one axis is enough
    beyond = np.where(empty, (high < lows) | (low > highs), (high <= lows) | (low >= highs)).any(axis=-1)
    if beyond.any():
        first = np.unravel_index(int(np.argmax(beyond)), beyond.shape)
        told = _told((*low[first].tolist(), *high[first].tolist()))
        which = told if beyond.ndim == 0 else f"{told} (number {', '.join(map(str, first))} of the ranges)"
        raise InvalidInput(
            f"ranges holds {which}, which lies outside the bounds {_told((*lows, *highs))}: what is there was not "
            "counted there. Nothing was answered. Ask inside the bounds, as (lo…, hi…), or leave the range out."
        )
    _doubt(low, high, lows, highs)


def _doubt(low: Floats, high: Floats, lows: Floats, highs: Floats) -> None:
    """Warn of ranges that reach beyond the bounds, and lie within them when read as (xmin, xmax, ymin, ymax)."""
    d = len(lows)
    if d == 1:
        return
    reaches = ((np.isfinite(high) & (high > highs)) | (np.isfinite(low) & (low < lows))).any(axis=-1)
    if not reaches.any():
        return
    given = np.concatenate([low, high], axis=-1)[reaches].reshape(-1, 2 * d)
    begin, end = given[:, 0::2], given[:, 1::2]
    other = given[((begin < end) & (begin >= lows) & (end <= highs)).all(axis=-1)]
    if len(other):
        meant = (*other[0][0::2].tolist(), *other[0][1::2].tolist())
        warn_caller(
            f"ranges holds {_told(other[0])}, which reaches beyond the bounds, and lies within them when it is read as "
            f"(xmin, xmax, ymin, ymax). Did you mean {_told(meant)}, in the order (x0, y0, x1, y1)?",
            DeclarationWarning,
        )


def _told(numbers: tuple[float, ...] | Floats) -> str:
    return f"({', '.join(plain(float(number)) for number in numbers)})"
