"""Ranges against the bounds of a domain: what lies wholly outside is no question about it.

Records beyond the bounds are counted in the cells at the border (or dropped), so nothing is known of what is there: an
answer of "0, surely" would be false. A range that reaches beyond the bounds is answered as the records are counted:
the border cells that it holds bring the clamped records with them.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato._types import Floats
from sfumato.domain.interval import plain
from sfumato.domain.ordered import Ordered
from sfumato.errors import DeclarationWarning, InvalidInput, warn_caller


def refuse_outside(axes: tuple[Ordered, ...], low: list[NDArray[Any]], high: list[NDArray[Any]]) -> None:
    """Refuse ranges that hold no point within the bounds. An empty range inside them holds no record: it may be asked.

    ``low`` and ``high`` are the ends along each axis, on its scale. A range is half-open: one which ends where the
    bounds begin, or begins where they end, lies outside.
    """
    empty, beyond = np.zeros(low[0].shape, bool), np.zeros(low[0].shape, bool)
    for a, b in zip(low, high, strict=True):
        empty |= a == b  # along one axis is enough
    for axis, a, b in zip(axes, low, high, strict=True):
        first, last = axis.ends
        beyond |= np.where(empty, (b < first) | (a > last), (b <= first) | (a >= last))
    if beyond.any():
        worst = np.unravel_index(int(np.argmax(beyond)), beyond.shape)
        told = _words(axes, [end[worst] for end in (*low, *high)])
        which = told if beyond.ndim == 0 else f"{told} (number {', '.join(map(str, worst))} of the ranges)"
        bounds = _words(axes, [axis.ends[i] for i in (0, 1) for axis in axes])
        raise InvalidInput(
            f"ranges holds {which}, which lies outside the bounds {bounds}: what is there was not "
            "counted there. Nothing was answered. Ask inside the bounds, as (lo…, hi…), or leave the range out."
        )
    if all(axis.reads == "numbers" for axis in axes):
        ends = [np.array([axis.ends[i] for axis in axes]) for i in (0, 1)]
        _doubt(np.stack(low, axis=-1), np.stack(high, axis=-1), *ends)


def _words(axes: tuple[Ordered, ...], ends: list[Any]) -> str:
    """Ends along the axes, lower and upper ones, as people write them."""
    return f"({', '.join(axis.written(end) for axis, end in zip((*axes, *axes), ends, strict=True))})"


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
