"""The Hilbert curve: a walk through all cells of a cube in which neighbours on the walk are neighbours in space.

A cube is cut into 2^d smaller ones, which the walk visits one after the other, entering each at a corner and leaving
along an axis; (entry, direction) is all that a smaller cube needs to know. One step of this rule, `_down` or `_up`,
reads or writes one bit of every coordinate (Hamilton, *Compact Hilbert indices*, 2006). In up to six dimensions
several steps at once come from tables that were made by the very same steps, which is an order of magnitude faster.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np

from sfumato._types import Integers
from sfumato.errors import InvalidInput

CHUNK = 1 << 14  # points walked at a time: the work arrays stay inside a core's cache
TABLE_BITS = 10  # bits of position that one look into a table settles; with all states it fits the cache
LARGEST_TABLED = 6  # dimensions; beyond, there are too many states for a table to pay


def hilbert_index(coordinates: Integers, bits: int) -> Integers:
    """The position on the curve of points with d coordinates (last axis) of so many bits each; exact integers."""
    dimensions = coordinates.shape[-1]
    _require_room(bits, dimensions)
    points = coordinates.reshape(-1, dimensions)
    index = np.empty(len(points), dtype=np.int64)
    step = _steps(bits, dimensions)
    for start in range(0, len(points), CHUNK):
        part = np.ascontiguousarray(points[start : start + CHUNK].T, dtype=np.int64)
        found = np.zeros(part.shape[1], dtype=np.int64)
        state = np.full(part.shape[1], _first(bits, step, dimensions), dtype=np.int64)
        for level in _levels(bits, step):
            low = (np.int64(1) << step) - 1
            corner = (part[0] >> level) & low
            for axis in part[1:]:
                corner = (corner << step) | ((axis >> level) & low)
            digit, state = _walk(_down, state, corner, step, dimensions)
            found = (found << (step * dimensions)) | digit
        index[start : start + CHUNK] = found
    return index.reshape(coordinates.shape[:-1])


def hilbert_point(index: Integers, bits: int, dimensions: int) -> Integers:
    """The inverse of `hilbert_index`: the coordinates (last axis) of positions on the curve."""
    _require_room(bits, dimensions)
    positions = index.reshape(-1)
    points = np.empty((len(positions), dimensions), dtype=np.int64)
    step = _steps(bits, dimensions)
    for start in range(0, len(positions), CHUNK):
        part = positions[start : start + CHUNK].astype(np.int64)
        found = np.zeros((dimensions, len(part)), dtype=np.int64)
        state = np.full(len(part), _first(bits, step, dimensions), dtype=np.int64)
        for level in _levels(bits, step):
            digit = (part >> (level * dimensions)) & ((np.int64(1) << (step * dimensions)) - 1)
            corner, state = _walk(_up, state, digit, step, dimensions)
            low = (np.int64(1) << step) - 1
            for axis in range(dimensions):
                shift = step * (dimensions - 1 - axis)
                found[axis] = (found[axis] << step) | ((corner >> shift) & low)
        points[start : start + CHUNK] = found.T
    return points.reshape(*index.shape, dimensions)


def hilbert_order(shape: tuple[int, ...]) -> Integers:
    """The cells of a grid (numbers in C order) in the order of the curve through the smallest cube that holds it."""
    bits, size = max(1, (max(shape) - 1).bit_length()), int(np.prod(shape, dtype=object))
    if 1 << (bits * len(shape)) <= 4 * size:  # walk the whole cube and leave out what is not there
        points = hilbert_point(np.arange(1 << (bits * len(shape)), dtype=np.int64), bits, len(shape))
        if any(n < 1 << bits for n in shape):
            points = points[(points < np.array(shape)).all(axis=-1)]
        return np.asarray(np.ravel_multi_index(tuple(points.T), shape), dtype=np.int64)
    cells = np.stack(np.unravel_index(np.arange(size), shape), axis=-1).astype(np.int64)
    return np.argsort(hilbert_index(cells, bits), kind="stable")


def _require_room(bits: int, dimensions: int) -> None:
    if bits * dimensions > 62:
        raise InvalidInput(
            f"{dimensions} coordinates of {bits} bits are more than a 64-bit position on the curve holds."
        )


# ---------------------------------------------------------------------- one bit of every coordinate at a time

Move = Callable[[Integers, Integers, int], tuple[Integers, Integers]]


def _down(state: Integers, corner: Integers, d: int) -> tuple[Integers, Integers]:
    """(which of the 2^d smaller cubes, in the order of the walk; the state inside it) from its corner's bits."""
    entry, direction = state // d, state % d
    gray = _rotate(corner ^ entry, -(direction + 1), d)
    digit = gray
    for shift in (1, 2, 4, 8, 16, 32):  # undo the Gray code
        digit = digit ^ (digit >> shift)
    return digit, _inside(entry, direction, digit, d)


def _up(state: Integers, digit: Integers, d: int) -> tuple[Integers, Integers]:
    """The inverse of `_down`."""
    entry, direction = state // d, state % d
    corner = _rotate(digit ^ (digit >> 1), direction + 1, d) ^ entry
    return corner, _inside(entry, direction, digit, d)


def _inside(entry: Integers, direction: Integers, digit: Integers, d: int) -> Integers:
    """The state in the smaller cube number `digit`: where the walk enters it, and along which axis it leaves."""
    before = np.maximum(digit - 1, 0)
    even = before & ~np.int64(1)
    enters = np.where(digit == 0, 0, even ^ (even >> 1))
    ones = np.where(digit % 2 == 0, before, digit)  # whose trailing ones name the axis
    leaves = np.where(digit == 0, 0, np.bitwise_count(ones & ~(ones + 1)).astype(np.int64))
    return (entry ^ _rotate(enters, direction + 1, d)) * d + (direction + leaves + 1) % d


def _rotate(bits: Integers, by: Integers, d: int) -> Integers:
    """The lowest d bits turned to the left."""
    turn = by % d
    return ((bits << turn) | (bits >> (d - turn))) & ((np.int64(1) << d) - 1)


# ---------------------------------------------------------------------- several bits at a time


def _steps(bits: int, dimensions: int) -> int:
    """How many bits of every coordinate are settled at once."""
    return 1 if dimensions > LARGEST_TABLED else max(1, min(bits, TABLE_BITS // dimensions))


def _levels(bits: int, step: int) -> range:
    """The place of the lowest bit of every group, from the largest cube down."""
    return range(-(-bits // step) * step - step, -1, -step)


def _first(bits: int, step: int, dimensions: int) -> int:
    """The state to begin with: enter at the origin, take the first step along the last axis.

    Groups that overhang the top walk through empty levels, each of which turns the direction by one: it begins turned
    back by as much, so that the curve does not depend on the groups.
    """
    return (dimensions - 1 - (-bits % step)) % dimensions


def _walk(move: Move, state: Integers, key: Integers, step: int, d: int) -> tuple[Integers, Integers]:
    if step == 1 and d > LARGEST_TABLED:
        return move(state, key, d)
    results, states = _table(move, step, d)
    place = (state << (step * d)) | key
    return results[place], states[place]


@cache
def _table(move: Move, step: int, d: int) -> tuple[Integers, Integers]:
    """What `step` moves give from every state and for every key; corners are kept axis by axis, not bit by bit."""
    keys = np.arange(1 << (step * d), dtype=np.int64)
    state, key = (a.ravel() for a in np.meshgrid(np.arange(d << d, dtype=np.int64), keys, indexing="ij"))
    result = np.zeros_like(key)
    for level in range(step - 1, -1, -1):
        if move is _down:
            corner = np.zeros_like(key)
            for axis in range(d):  # the first axis is the highest bit
                corner = (corner << 1) | ((key >> (step * (d - 1 - axis) + level)) & 1)
            digit, state = move(state, corner, d)
            result = (result << d) | digit
        else:
            corner, state = move(state, (key >> (level * d)) & ((1 << d) - 1), d)
            for axis in range(d):
                result |= ((corner >> (d - 1 - axis)) & 1) << (step * (d - 1 - axis) + level)
    return result, state
