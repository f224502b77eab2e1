"""Bounds in another order than (lo…, hi…): what was probably meant."""

from __future__ import annotations

from collections.abc import Sequence

from sfumato.domain.interval import plain
from sfumato.domain.product import Domain

SMALL_PART = 4
"""A box of fewer than one in so many cells is a small part of a domain: to hold most records it must be meant."""

THIN_PART = 10
"""Sides shorter than one in so many of the sides that were given are hardly a coincidence."""


def interleaved(bounds: Sequence[float]) -> tuple[float, ...] | None:
    """(lo…, hi…) of bounds that were given as (xmin, xmax, ymin, ymax, …); None where they cannot be meant so."""
    low, high = tuple(bounds[0::2]), tuple(bounds[1::2])
    return (*low, *high) if all(a < b for a, b in zip(low, high, strict=True)) else None


def hint(bounds: Sequence[float]) -> str:
    """What bounds that end before they begin were probably meant to be, as a sentence; empty where nothing fits."""
    d = len(bounds) // 2
    pairs = list(zip(bounds[:d], bounds[d:], strict=True))
    meant, looks = interleaved(bounds), "(xmin, xmax, ymin, ymax)" if d == 2 else "(min, max) of one axis after another"
    if meant is None or all(low > high for low, high in pairs):
        if any(low == high for low, high in pairs):
            return ""
        meant, looks = (*map(min, pairs), *map(max, pairs)), "upper ends before lower ones"
    return f" Did you mean bounds=({', '.join(map(plain, meant))})? The given order looks like {looks}."


def suspicion(bounds: Sequence[float]) -> str:
    """A sentence about bounds that are allowed, and describe a far smaller box when read axis by axis; or nothing."""
    d, meant = len(bounds) // 2, interleaved(bounds)
    if meant is None:
        return ""
    given = [bounds[d + i] - bounds[i] for i in range(d)]
    if max(meant[d + i] - meant[i] for i in range(d)) * THIN_PART > min(given):
        return ""
    return (
        f"bounds=({', '.join(map(plain, bounds))}) are read as (lo…, hi…), a box with sides of "
        f"{' and '.join(f'{side:.6g}' for side in given)}. They look like (xmin, xmax, ymin, ymax): did you mean "
        f"bounds=({', '.join(map(plain, meant))})?"
    )


def other_box(domain: Domain) -> tuple[slice, ...] | None:
    """The cells of the box that the bounds of a grid describe when read axis by axis, where it is a small part."""
    if not domain.is_spatial or domain.ndim < 2:
        return None
    d, meant = domain.ndim, interleaved(domain.bounds)
    if meant is None:
        return None
    box, cells = [], 1
    for i, axis in enumerate(domain.intervals):
        if meant[i] > axis.high or meant[d + i] < axis.low:
            return None
        first, last = axis.locate([meant[i], meant[d + i]])
        box.append(slice(int(first), int(last) + 1))
        cells *= int(last) + 1 - int(first)
    return tuple(box) if cells * SMALL_PART < domain.size else None
