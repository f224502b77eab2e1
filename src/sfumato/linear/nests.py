"""Nested blocks along every axis of a domain, and the passes between them that least squares over all of them needs.

Along an axis the lengths 1 = b_0 | b_1 | … | b_L = N each divide the next. N is the length of the axis, rounded up to a
multiple of b_{L-1}: cells that are then missing at its end are taken to be there, and empty. With Π_ℓ the projection
onto what is constant on blocks of b_ℓ cells, all Π commute, and E_ℓ = Π_ℓ - Π_{ℓ+1} (E_L = Π_L) add up to the identity:
what blocks of level ℓ tell and longer ones do not.

All blocks of all levels of all axes stand in one array, along every axis level after level from the finest.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import pairwise, product
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from sfumato._types import Floats
from sfumato.errors import InvalidInput, TooLarge

# Blocks of all levels together, over all axes: half a gigabyte of numbers.
LARGEST_ARRAY = 1 << 26
# Numbers held at a time while many boxes are looked at.
CHUNK = 1 << 21
# Neighbours up to which they are added one after the other.
FEW = 16

Level = tuple[int, ...]


class AlongAxis(Protocol):
    """What is asked of queries along an axis: themselves where they are few, else sums over blocks in closed form."""

    @property
    def steps(self) -> int | None:
        """How many there are where they go in step with those along other axes."""

    def listed(self, n: int) -> tuple[Floats, Floats] | None:
        """All of them as ranges, where they are few."""

    def explained(self, n: int, length: int) -> float:
        """The mean of ‖Π·q‖² for blocks of one length; the last one may be cut short."""

    def mean_square(self, values: NDArray[Any]) -> Floats:
        """The mean of (q · values)² for every row."""


class Nests:
    """A chain of nested block lengths for every axis, from single cells to the whole axis."""

    def __init__(self, shape: Sequence[int], lengths: Sequence[Sequence[int]]) -> None:
        self.shape = tuple(int(n) for n in shape)
        self.lengths = tuple(_chain(n, given) for n, given in zip(self.shape, lengths, strict=True))
        self.counts = tuple(tuple(chain[-1] // b for b in chain) for chain in self.lengths)
        size = math.prod(sum(counts) for counts in self.counts)
        if size > LARGEST_ARRAY:
            raise TooLarge(
                f"nested blocks of {size:,} lengths and places are more than {LARGEST_ARRAY:,}, which is too much to "
                "hold in memory. Nothing was drawn or recorded. Use fewer lengths."
            )
        self.depth = tuple(len(chain) for chain in self.lengths)
        self.padded = tuple(chain[-1] != n for chain, n in zip(self.lengths, self.shape, strict=True))

    def level(self, blocks: Sequence[int]) -> Level:
        """The level of every axis at which its blocks have these lengths."""
        return tuple(chain.index(b) for chain, b in zip(self.lengths, blocks, strict=True))

    def size(self, level: Level) -> int:
        """How many blocks there are at one level of every axis."""
        return math.prod(counts[k] for counts, k in zip(self.counts, level, strict=True))

    def volumes(self) -> Floats:
        """How many cells a block has, for all levels."""
        return _outer([np.array(chain, dtype=np.float64) for chain in self.lengths])

    # One array for all levels.

    @cached_property
    def _slices(self) -> tuple[tuple[slice, ...], ...]:
        ends = [np.cumsum([0, *counts]).tolist() for counts in self.counts]
        return tuple(tuple(slice(a, b) for a, b in pairwise(end)) for end in ends)

    def empty(self, lead: tuple[int, ...], kind: Any) -> NDArray[Any]:
        """Zeros for every block."""
        return np.zeros((*lead, *(sum(counts) for counts in self.counts)), dtype=kind)

    def at(self, array: NDArray[Any], level: Level) -> NDArray[Any]:
        """The blocks of one level of every axis: a view."""
        place: tuple[Any, ...] = (..., *(slices[k] for slices, k in zip(self._slices, level, strict=True)))
        return array[place]

    def levels(self) -> Iterator[Level]:
        """All of them, from the finest."""
        return product(*(range(depth) for depth in self.depth))

    def cells(self, array: NDArray[Any]) -> NDArray[Any]:
        """The cells that are there: a view of the finest level."""
        there: tuple[Any, ...] = (..., *(slice(n) for n in self.shape))
        return self.at(array, (0,) * len(self.shape))[there]

    def gather(self, array: NDArray[Any]) -> None:
        """Every block receives what the blocks inside it hold, axis after axis."""
        for axis, finer, coarser in self._steps():
            ratio = self._ratio(axis, coarser)
            along = _axis(array, axis, len(self.shape))
            along[:, self._slices[axis][coarser]] += _sums(along[:, self._slices[axis][finer]], ratio)

    def spread(self, array: NDArray[Any]) -> None:
        """Every block receives what the blocks around it hold: the transpose."""
        for axis, finer, coarser in reversed(list(self._steps())):
            along, slices = _axis(array, axis, len(self.shape)), self._slices[axis]
            _add_each(along[:, slices[finer]], along[:, slices[coarser]], self._ratio(axis, coarser))

    def centre(self, array: NDArray[Any]) -> None:
        """From every block the mean of those that share the next longer block is taken off, along every axis."""
        for axis, finer, coarser in self._steps():
            ratio = self._ratio(axis, coarser)
            part = _axis(array, axis, len(self.shape))[:, self._slices[axis][finer]]
            _add_each(part, _sums(part, ratio) / -ratio, ratio)

    def scale(self, array: NDArray[Any], factors: Floats) -> None:
        """Every level times its factor."""
        for level in self.levels():
            self.at(array, level)[...] *= factors[level]

    def _steps(self) -> Iterator[tuple[int, int, int]]:
        for axis, depth in enumerate(self.depth):
            yield from ((axis, level, level + 1) for level in range(depth - 1))

    def _ratio(self, axis: int, coarser: int) -> int:
        return self.lengths[axis][coarser] // self.lengths[axis][coarser - 1]

    # What queries along an axis have at every level.

    def explained(self, axis: int, queries: AlongAxis) -> Floats:
        """‖E_ℓ·q‖² of the queries along an axis, one row a level: the mean, or for queries in step one column each."""
        n = self.shape[axis]
        ends = queries.listed(n)
        if ends is not None:
            squares = self.of_ranges(axis, *ends)
            return squares if queries.steps is not None else squares.mean(axis=1, keepdims=True)
        kept = []
        for b in self.lengths[axis]:
            rest = n % b
            cut = 0.0  # the last block is as long as the others, with nothing in what is missing
            if rest:
                last = (np.arange(n) >= n - rest).astype(np.float64)
                cut = float(queries.mean_square(last[None])[0]) * (1 / rest - 1 / b)
            kept.append(queries.explained(n, b) - cut)
        return _differences(np.array(kept)[:, None])

    def of_ranges(self, axis: int, low: Floats, high: Floats) -> Floats:
        """‖E_ℓ·r‖² of ranges along an axis, one row a level; cells that are cut count in proportion."""
        n = self.shape[axis]
        # Inside a cell it counts as it does in the cell: the ends of a range are fractions of two cells.
        cells = np.minimum(np.floor(low), n - 1), np.minimum(np.floor(high), n - 1)
        parts = low - cells[0], high - cells[1]
        finest = np.where(
            cells[0] == cells[1],
            (parts[1] - parts[0]) ** 2,
            cells[1] - cells[0] - 1 + (1 - parts[0]) ** 2 + parts[1] ** 2,
        )
        kept = [finest]
        for b in self.lengths[axis][1:]:
            first, last = np.minimum(low // b, (n - 1) // b), np.minimum(high // b, (n - 1) // b)
            ends = ((first + 1) * b - low) ** 2 / b + (high - last * b) ** 2 / b
            whole = np.where(first == last, (high - low) ** 2 / b, ends + (last - first - 1) * b)
            kept.append(whole)
        return _differences(np.stack(kept))

    def of_vectors(self, axis: int, vectors: Floats) -> Floats:
        """‖E_ℓ·v‖² of any queries along an axis, given in rows."""
        missing = self.lengths[axis][-1] - self.shape[axis]
        sums = np.pad(np.asarray(vectors, dtype=np.float64), ((0, 0), (0, missing)))
        kept = [(sums**2).sum(axis=1)]
        for finer, coarser in pairwise(self.lengths[axis]):
            sums = sums.reshape(len(vectors), -1, coarser // finer).sum(axis=2)
            kept.append((sums**2).sum(axis=1) / coarser)
        return _differences(np.stack(kept))

    def sums_of_ranges(self, axis: int, low: Floats, high: Floats) -> tuple[Floats, Floats]:
        """(m·rᵀ·E_ℓ·1, m²·1ᵀ·E_ℓ·1) of ranges r along an axis, one row a level, m being the share of its cells."""
        ones, n = self._constant(axis), self.shape[axis]
        share, at = (high - low) / n, np.arange(n + 1)
        running = np.concatenate([np.zeros((len(ones), 1)), np.cumsum(ones, axis=1)], axis=1)
        crossed = np.stack([np.interp(high, at, row) - np.interp(low, at, row) for row in running])
        return share * crossed, share**2 * ones.sum(axis=1)[:, None]

    def sums_of_vectors(self, axis: int, vectors: Floats) -> tuple[Floats, Floats]:
        """The same of any queries along an axis, given in rows."""
        ones, share = self._constant(axis), vectors.mean(axis=1)
        return share * (ones @ vectors.T), share**2 * ones.sum(axis=1)[:, None]

    def sums(self, axis: int, queries: AlongAxis) -> tuple[Floats, Floats]:
        """The same of the queries along an axis: the mean, or for queries in step one column each."""
        ones, n = self._constant(axis), self.shape[axis]
        ends = queries.listed(n)
        if ends is not None:
            both = self.sums_of_ranges(axis, *ends)
            return both if queries.steps is not None else (both[0].mean(axis=1)[:, None], both[1].mean(axis=1)[:, None])
        share = np.full(n, 1 / n)
        crossed = (queries.mean_square(share + ones) - queries.mean_square(share - ones)) / 4
        return crossed[:, None], (queries.mean_square(share[None]) * ones.sum(axis=1))[:, None]

    def _constant(self, axis: int) -> Floats:
        """E_ℓ·1 of all cells that are there, one row a level."""
        n, chain = self.shape[axis], self.lengths[axis]
        cell = np.arange(n)
        means = [np.where(cell // b == n // b, (n % b) / b, 1.0) for b in chain]
        return np.stack([*(a - b for a, b in pairwise(means)), means[-1]])


def combined(weights: Floats, along: Sequence[Floats]) -> Floats:
    """Σ_k weights_k·Π_i along_i[k_i], column by column: one column for every query (or one for all)."""
    columns = max(part.shape[1] for part in along)
    total = np.empty(columns)
    step = max(1, CHUNK // max(weights.size // max(weights.shape[0], 1), 1))
    for start in range(0, columns, step):
        parts = [np.broadcast_to(p, (len(p), columns))[:, start : start + step] for p in along]
        left = np.tensordot(parts[0], weights, axes=(0, 0))
        for part in parts[1:]:
            left = np.einsum("ki...,ik->k...", left, part)
        total[start : start + step] = left
    return total


def _chain(n: int, given: Sequence[int]) -> tuple[int, ...]:
    """The lengths given, with single cells and the whole axis."""
    chain = sorted({1, *(int(b) for b in given)}) if n > 1 else [1]
    inner = [b for b in chain if b < n]
    whole = -(-n // inner[-1]) * inner[-1] if inner else 1
    if (
        [b for b in chain if b not in (*inner, whole)]
        or any(b % a for a, b in pairwise(inner))
        or (n == 1 != max(given, default=1))
    ):
        raise InvalidInput(
            f"blocks of {sorted(set(given))} cells along an axis of {n}: each length must divide the next one, and one "
            f"as long as the axis is rounded up to a multiple of the one before, here {whole}. Nothing was drawn or "
            "recorded."
        )
    return (*inner, whole) if n > 1 else (1,)


def _differences(kept: Floats) -> Floats:
    """Of what is left at every level, what the next one does not have; rounding is nothing."""
    gaps = kept - np.concatenate([kept[1:], np.zeros_like(kept[:1])])
    return np.where(gaps > 1e-12 * kept, gaps, 0.0)


def _outer(along: Sequence[Floats]) -> Floats:
    found = np.ones(())
    for values in along:
        found = np.multiply.outer(found, values)
    return found


def _axis(array: NDArray[Any], axis: int, axes: int) -> NDArray[Any]:
    """A view of (before, along, after)."""
    lead = array.ndim - axes + axis
    return array.reshape(math.prod(array.shape[:lead]), array.shape[lead], math.prod(array.shape[lead + 1 :]))


def _sums(part: NDArray[Any], ratio: int) -> NDArray[Any]:
    """Sums of so many neighbours each."""
    before, length, after = part.shape
    if ratio <= FEW:
        found = part[:, ::ratio].copy()
        for k in range(1, ratio):
            found += part[:, k::ratio]
        return found
    return np.asarray(part.reshape(before, length // ratio, ratio, after).sum(axis=2))


def _add_each(part: NDArray[Any], values: NDArray[Any], ratio: int) -> None:
    """To each of so many neighbours what stands for all of them."""
    if ratio > FEW:
        part += np.repeat(values, ratio, axis=1)
        return
    for k in range(ratio):
        part[:, k::ratio] += values
