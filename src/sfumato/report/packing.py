"""Numbers as text that a page unpacks: of 32 bits where that is enough, and one number where all are the same.

An interval never becomes narrower: lower ends are rounded down, upper ends up.
"""

from __future__ import annotations

import base64
import math
from typing import Any

import numpy as np

from sfumato._types import Floats

Packed = dict[str, Any]
_WHOLE = 2.0**24
"""Up to here numbers of 32 bits tell whole ones apart."""
_SLACK = 1e-6
"""What an end may be rounded outwards by, as a share of the largest value."""


def packed(values: Floats, *, towards: float | None = None) -> Packed | None:
    """The numbers, or None where they are not known; `towards` says to which side they may be rounded."""
    flat = np.ascontiguousarray(values, dtype=np.float64).ravel()
    if np.isnan(flat).any():
        return None
    if flat.size and (flat == flat[0]).all() and math.isfinite(flat[0]):
        return {"all": float(flat[0])}
    if np.abs(flat[np.isfinite(flat)]).max(initial=0.0) > _WHOLE:
        return {"f8": _text(flat.astype("<f8"))}
    return {"f4": _text(narrowed(flat, towards))}


def narrowed(flat: Floats, towards: float | None = None) -> Any:
    """The same with 32 bits each, rounded to the nearest, or to one side."""
    found = flat.astype("<f4")
    if towards is not None:
        wrong = found > flat if towards < 0 else found < flat
        found = np.where(wrong, np.nextafter(found, np.float32(towards)), found).astype("<f4")
    return found


def packed_ends(value: Floats, low: Floats, high: Floats) -> dict[str, Packed | None]:
    """Both ends of intervals. Where they are a constant away from the values, and cut at zero, the constant says it."""
    if np.isnan(low).any() or np.isnan(high).any():
        return {"low": None, "high": None}
    flat, least, most = (np.ascontiguousarray(part, dtype=np.float64).ravel() for part in (value, low, high))
    kept = flat if np.abs(flat).max(initial=0.0) > _WHOLE else narrowed(flat).astype(np.float64)
    slack = _SLACK * max(float(np.abs(flat).max(initial=0.0)), 1.0)
    above, below = float((most - kept).max(initial=0.0)), float((kept - least)[least > 0].max(initial=0.0))
    found: dict[str, Packed | None] = {}
    lower = np.maximum(kept - below, 0.0)
    found["low"] = {"less": below} if _near(least - lower, slack) else packed(least, towards=-np.inf)
    upper = np.maximum(kept + above, 0.0)
    found["high"] = {"more": above} if _near(upper - most, slack) else packed(most, towards=np.inf)
    return found


def _near(beyond: Floats, slack: float) -> bool:
    """Whether an end is rounded outwards, and hardly."""
    return bool(((beyond >= 0) & (beyond <= slack)).all())


def _text(array: Any) -> str:
    return base64.b64encode(array.tobytes()).decode("ascii")


def whole_numbers(array: Any, kind: str) -> str:
    """Whole numbers of such a kind as text."""
    return _text(np.ascontiguousarray(array).astype(kind))
