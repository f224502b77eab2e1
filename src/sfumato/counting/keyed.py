"""At most m records of each person, chosen under a key, the same on every engine.

**What is promised.** A person's records are put in order by what they say (cell, then the summed value where there is
one). Number t among those of person e has the priority AES_K(e‖t), and the m of least priority are kept; a person with
at most m records keeps them all. Which *numbers* are kept follows from K, e and how many records e has, and never from
what they say. Over keys every set of m numbers is equally likely, and so is every set of m records, since equal ones
are interchangeable: one person touches the counts with m records at most, and the runs over two sets of records can be
paired so that the counts differ by the moves of at most m records. A rule that prefers the first rows, or breaks ties
by content, does not have this property when a file is sorted by place.

**Why so.** For one key the choice depends on the records as a multiset alone: it is the same after another order of
rows, another way of cutting them into parts, after an engine that failed and did its part again, and on another engine.
A draw for each row as it comes would not be: a part that is done twice would be chosen from twice.

**The key** is 256 bits, new for every count, and is never written, shown or logged: who knows it knows which records
were kept. Priorities are the first 64 bits of a block of AES-256, compared with ties by number; two of one person agree
with probability 2⁻⁶⁴, so a set's chance is off by no more than that many times the pairs of the person's records. That
the rest is uniform is the assumption that AES is a pseudorandom permutation.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from numpy.typing import NDArray

from sfumato.noise import Source

KEY_BYTES = 32
_BLOCK = 16
_PIECE = 1 << 15  # blocks enciphered at a time: half a megabyte, which the cache holds

Numbers = NDArray[np.integer]


@dataclass(frozen=True, eq=False)
class Kept:
    """The records that were kept, in no order that means anything, and how much was not."""

    cells: Numbers
    values: Numbers | None
    cut: int
    """Records left out."""
    persons_cut: int
    """Persons who lost a record."""


@dataclass(frozen=True)
class Keyed:
    """The choice of at most ``limit`` records a person under a key."""

    key: bytes = field(repr=False)
    limit: int

    @classmethod
    def drawn(cls, limit: int, source: Source) -> Keyed:
        """Under a new key from a source of random words."""
        return cls(source.words(KEY_BYTES // 8).astype("<u8").tobytes(), limit)

    def keep(self, persons: NDArray[np.uint64], cells: Numbers, values: Numbers | None = None) -> Kept:
        """The choice among *all* records of these persons: one cannot choose from a part first and then go on.

        ``persons`` are numbers that tell persons apart, ``values`` what each record says besides its cell, if anything.
        """
        if len(persons) == 0:
            return Kept(cells, values, 0, 0)
        order, grouped_persons = grouped(persons)
        lengths = runs(grouped_persons)
        long = lengths > self.limit
        if not long.any():
            return Kept(cells, values, 0, 0)
        crowded = np.repeat(long, lengths)
        few, many = order[~crowded], order[crowded]
        lengths = lengths[long]
        columns = (cells[many], *(() if values is None else (values[many],)))
        ranked = in_order(np.repeat(np.arange(len(lengths)), lengths), columns)
        drawn = priorities(self.key, grouped_persons[crowded], _position(lengths).astype(np.uint64))
        kept = least(drawn, lengths, self.limit)
        cut = int(lengths.sum()) - self.limit * len(lengths)
        left = np.concatenate([cells[few], ranked[0][kept]])
        said = None if values is None else np.concatenate([values[few], ranked[1][kept]])
        return Kept(left, said, cut, len(lengths))


def priorities(key: bytes, a: NDArray[np.uint64], b: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """The first 64 bits of AES_K(a‖b) for each pair: uniform and independent to whoever does not know the key."""
    cipher = Cipher(algorithms.AES(key), modes.ECB()).encryptor()
    drawn = np.empty(len(a), np.uint64)
    blocks = np.empty((min(len(a), _PIECE), 2), "<u8")
    out = bytearray(blocks.nbytes + _BLOCK)  # the cipher asks for room for one block more
    for start in range(0, len(a), _PIECE):
        piece = blocks[: len(a) - start]
        piece[:, 0], piece[:, 1] = a[start : start + _PIECE], b[start : start + _PIECE]
        size = cipher.update_into(piece.view(np.uint8).data, out)
        drawn[start : start + _PIECE] = np.frombuffer(out, "<u8", size // 8)[::2]
    return drawn


def least(drawn: NDArray[np.uint64], lengths: NDArray[np.int64], limit: int) -> NDArray[np.int64]:
    """The positions of the ``limit`` least numbers of every group, ties by position, in order; groups of ``lengths``,
    each longer than that, lie one after the other.
    """
    group = np.repeat(np.arange(len(lengths), dtype=np.uint64), lengths)
    bits = np.uint64(len(lengths).bit_length())
    packed = (group << (np.uint64(64) - bits)) | (drawn >> bits)
    at = np.cumsum(lengths) - lengths + limit - 1
    last = np.sort(packed)[at]  # in order of groups, and of numbers in each
    kept = np.flatnonzero(packed <= np.repeat(last, lengths))
    if len(kept) > limit * len(lengths):  # the bits that the group took told two numbers apart
        kept = kept[np.lexsort((kept, drawn[kept], group[kept]))]
        kept = np.sort(kept[_position(runs(group[kept])) < limit])
    return kept


def in_order(group: NDArray[np.int64], columns: tuple[Numbers, ...]) -> tuple[Numbers, ...]:
    """The columns sorted within each group, by the first, then the next; groups stay where they are, in rising
    order.
    """
    spans = [(int(column.min()), int(column.max())) for column in columns]
    widths = [(high - low).bit_length() for low, high in spans]
    if int(group[-1]).bit_length() + sum(widths) > 64:
        order = np.lexsort((*columns[::-1], group))
        return tuple(column[order] for column in columns)
    packed = group.astype(np.uint64)
    for column, (low, _), width in zip(columns, spans, widths, strict=True):
        packed <<= np.uint64(width)
        packed |= _above(column, low)
    packed.sort()
    found: list[Numbers] = []
    for column, (low, _), width in zip(columns[::-1], spans[::-1], widths[::-1], strict=True):
        one = packed & np.uint64((1 << width) - 1)
        found.append((one + np.uint64(low % (1 << 64))).astype(column.dtype))
        packed >>= np.uint64(width)
    return tuple(found[::-1])


def _above(column: Numbers, low: int) -> NDArray[np.uint64]:
    """How far each number is above the lowest, which may be further than its type reaches."""
    return column.astype(np.uint64) - np.uint64(low % (1 << 64))


def grouped(values: NDArray[np.uint64]) -> tuple[NDArray[np.int64], NDArray[np.uint64]]:
    """The order that sorts the values, equal ones by position, and the values sorted: a fast stable argsort.

    The position takes the place of a value's lowest bits and plain numbers are sorted, which NumPy does with
    vector instructions. Values that differ in those bits alone may then be mixed up; they are found and
    sorted apart.
    """
    count = len(values)
    bits = np.uint64(max(count - 1, 1).bit_length())
    packed = ((values >> bits) << bits) | np.arange(count, dtype=np.uint64)
    packed.sort()
    order = (packed & ((np.uint64(1) << bits) - np.uint64(1))).astype(np.int64)
    packed >>= bits
    ordered = values[order]
    mixed = (packed[1:] == packed[:-1]) & (ordered[1:] != ordered[:-1])
    if mixed.any():
        rows = np.flatnonzero(np.isin(packed, packed[1:][mixed]))
        order[rows] = order[rows[np.argsort(ordered[rows], kind="stable")]]
        ordered[rows] = values[order[rows]]
    return order, ordered


def runs(ordered: NDArray[np.uint64]) -> NDArray[np.int64]:
    """How long each run of equal numbers is."""
    return np.diff(np.flatnonzero(np.concatenate([[True], ordered[1:] != ordered[:-1], [True]])))


def _position(lengths: NDArray[np.int64]) -> NDArray[np.int64]:
    """0, 1, 2, … in each of the runs of these lengths."""
    return np.arange(int(lengths.sum())) - np.repeat(np.cumsum(lengths) - lengths, lengths)
