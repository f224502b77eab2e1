"""At most m records of each person, chosen under a key, the same on every engine.

**What is promised.** A person's records are put in order by what they say (cell, then the summed value where there is
one). Number t among those of person e has the priority AES_K(e‖t), and the m of least priority are kept; a person with
at most m records keeps them all. Which *numbers* are kept follows from K, e and how many records e has, and never from
what they say. Over keys every set of m numbers is equally likely, and so is every set of m records, since equal ones
are interchangeable: one person touches the counts with m records at most, and the runs over two sets of records can be
paired so that the counts differ by the moves of at most m records. A rule that prefers the first rows, or breaks ties
by content, does not have this property when a file is sorted by place.

**Why so.** For one key the choice depends on the records as a multiset alone: it is the same after another order of
rows, another way of cutting them into parts that keep each person whole, after an engine that failed and did its part
again, and on another engine. A draw for each row as it comes would not be: a part that is done twice would be chosen
from twice.

**The key** is 256 bits, new for every count, and is never written, shown or logged: who knows it knows which records
were kept. Priorities are the first 64 bits of a block of AES-256, ties go by number; two of one person agree with
probability 2⁻⁶⁴, so a set's chance is off by no more than that many times the pairs of the person's records. That
the rest is uniform is the assumption that AES is a pseudorandom permutation.
"""

from __future__ import annotations

import hmac
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from numpy.typing import NDArray

from sfumato.counting.packing import Numbers, Packing, grouped, in_order, positions, run_lengths
from sfumato.noise import Source

KEY_BYTES = 32
_BLOCK = 16
_PIECE = 1 << 15  # blocks enciphered at a time: half a megabyte, which the cache holds
_STRETCH = 1 << 16  # records gone through at a time, of whole persons


@dataclass(frozen=True, eq=False)
class Records:
    """Records of persons: whose each is, as a number, its cell, what it says besides, if anything, and how many such
    records the row stands for, where that is not one.
    """

    persons: NDArray[np.uint64]
    cells: Numbers
    values: Numbers | None = None
    times: NDArray[np.int64] | None = None

    def __len__(self) -> int:
        return len(self.persons)

    @property
    def columns(self) -> tuple[Numbers, ...]:
        """What puts them in order."""
        return (self.persons, self.cells, *(() if self.values is None else (self.values,)))

    def __getitem__(self, rows: slice | NDArray[np.integer] | NDArray[np.bool_]) -> Records:
        return Records(*(None if column is None else column[rows] for column in self._all))  # type: ignore[arg-type]

    @property
    def _all(self) -> tuple[Numbers | None, ...]:
        return self.persons, self.cells, self.values, self.times

    @classmethod
    def joined(cls, parts: Sequence[Records]) -> Records:
        """One after the other."""
        columns = zip(*(part._all for part in parts), strict=True)
        return cls(*(None if column[0] is None else np.concatenate(column) for column in columns))  # type: ignore[arg-type]

    def counted(self) -> Records:
        """With how many records each row stands for."""
        return self if self.times is not None else replace(self, times=np.ones(len(self), np.int64))

    def merged(self) -> Records:
        """A row for all that are equal."""
        if not len(self):
            return self.counted()
        rows = self[in_order(self.columns)]
        new = np.logical_or.reduce([column[1:] != column[:-1] for column in rows.columns])
        firsts = np.flatnonzero(np.concatenate([[True], new]))
        times = np.ones(len(self), np.int64) if rows.times is None else rows.times
        return replace(rows[firsts], times=np.add.reduceat(times, firsts))


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

    @property
    def naming_key(self) -> bytes:
        """The key under which names become numbers, which has nothing to do with the other one."""
        return hmac.digest(self.key, b"persons", "sha256")

    def keep(self, persons: NDArray[np.uint64], cells: Numbers, values: Numbers | None = None) -> Kept:
        """The choice among *all* records of these persons: one cannot choose from a part first and then go on.

        ``persons`` are numbers that tell persons apart, ``values`` what each record says besides its cell, if anything.
        """
        parts = [*self.kept([Records(persons, cells, values)])]
        if not parts:
            return Kept(cells[:0], None if values is None else values[:0], 0, 0)
        said = None if values is None else np.concatenate([part.values for part in parts if part.values is not None])
        cut, persons_cut = (sum(getattr(part, name) for part in parts) for name in ("cut", "persons_cut"))
        return Kept(np.concatenate([part.cells for part in parts]), said, cut, persons_cut)

    def kept(self, batches: Sequence[Records]) -> Iterator[Kept]:
        """The same of records in any number of batches, stretch by stretch."""
        batches = [batch for batch in batches if len(batch)]
        if not batches:
            return
        packing = None if batches[0].times is not None else Packing.of([batch.columns for batch in batches])
        if packing is None:
            yield from self._kept_grouped(Records.joined(batches))
            return
        words = np.concatenate([packing.words(batch.columns) for batch in batches])
        yield from self.kept_words(words, packing)

    def kept_words(self, words: NDArray[np.uint64], packing: Packing) -> Iterator[Kept]:
        """The same of records in words, persons first; they are sorted where they are."""
        words.sort()
        for stretch in _stretches(words, sum(packing.widths[1:])):
            rows, cut, persons_cut = self.chosen(packing.column(stretch, 0).view(np.uint64))
            left = stretch[rows]
            values = packing.column(left, 2) if len(packing.widths) > 2 else None
            yield Kept(packing.column(left, 1), values, cut, persons_cut)

    def _kept_grouped(self, records: Records) -> Iterator[Kept]:
        """Persons of any numbers: brought together first, and only those put in order who have too much."""
        order, persons = grouped(records.persons)
        lengths = run_lengths(persons)
        much = lengths
        if records.times is not None:
            much = np.add.reduceat(records.times[order], np.cumsum(lengths) - lengths)
        crowded = np.repeat(much > self.limit, lengths)
        if not crowded.all():
            few = records[order[~crowded]]
            every = slice(None) if few.times is None else np.repeat(np.arange(len(few)), few.times)
            yield Kept(few.cells[every], None if few.values is None else few.values[every], 0, 0)
        if not crowded.any():
            return
        many = records[order[crowded]]
        number = np.repeat(np.arange(np.count_nonzero(much > self.limit)), lengths[much > self.limit])
        many = many[in_order((number, *many.columns[1:]))]
        rows, cut, persons_cut = self.chosen(persons[crowded], many.times)
        yield Kept(many.cells[rows], None if many.values is None else many.values[rows], cut, persons_cut)

    def chosen(
        self, persons: NDArray[np.uint64], times: NDArray[np.int64] | None = None
    ) -> tuple[NDArray[np.int64], int, int]:
        """The rows to keep of persons whose records are in order, side by side; a row that stands for several comes as
        often as it is kept. And how many records are left out, of how many persons.
        """
        rows = run_lengths(persons)
        firsts = np.cumsum(rows) - rows
        lengths = rows if times is None else np.add.reduceat(times, firsts)
        long = lengths > self.limit
        starts = np.cumsum(lengths) - lengths
        every = np.repeat(starts[~long], lengths[~long]) + positions(lengths[~long])
        taken = self._numbers(persons[firsts[long]], lengths[long], starts[long])
        kept = np.concatenate([every, taken])
        if times is not None:
            kept = np.searchsorted(np.cumsum(times), kept, side="right")
        return kept, int(lengths[long].sum()) - len(taken), int(np.count_nonzero(long))

    def _numbers(
        self, persons: NDArray[np.uint64], lengths: NDArray[np.int64], starts: NDArray[np.int64]
    ) -> NDArray[np.int64]:
        """Which numbers are kept of persons with these many records, more than the limit, each counted from its
        start: memory grows with what is kept, not with how many there are.
        """
        found = [np.empty(0, np.int64)]
        upto = np.cumsum(lengths)
        begin = 0
        while begin < len(lengths):
            done = int(upto[begin] - lengths[begin])
            end = max(int(np.searchsorted(upto, done + _STRETCH, side="right")), begin + 1)
            some = lengths[begin:end]
            if end == begin + 1:
                numbers = self._of_one(persons[begin], int(some[0]))
            else:
                number = positions(some)
                drawn = priorities(self.key, np.repeat(persons[begin:end], some), number.view(np.uint64))
                numbers = number[least(drawn, some, self.limit)]
            found.append(np.repeat(starts[begin:end], self.limit) + numbers)
            begin = end
        return np.concatenate(found)

    def _of_one(self, person: np.uint64, length: int) -> NDArray[np.int64]:
        """The same of one person with any number of records, a stretch after the other."""
        numbers, drawn = np.empty(0, np.int64), np.empty(0, np.uint64)
        for start in range(0, length, _STRETCH):
            new = np.arange(start, min(start + _STRETCH, length))
            numbers = np.concatenate([numbers, new])
            fresh = priorities(self.key, np.full(len(new), person), new.view(np.uint64))
            drawn = np.concatenate([drawn, fresh])
            if len(numbers) > self.limit:
                kept = least(drawn, np.array([len(drawn)]), self.limit)
                numbers, drawn = numbers[kept], drawn[kept]
        return numbers


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
    each at least that long, lie one after the other.
    """
    packed = drawn
    if limit == 1:
        last: NDArray[np.uint64] = np.minimum.reduceat(drawn, np.cumsum(lengths) - lengths)
    else:
        bits = np.uint64(len(lengths).bit_length())
        group = np.repeat(np.arange(len(lengths), dtype=np.uint64), lengths)
        packed = (group << (np.uint64(64) - bits)) | (drawn >> bits)
        # Sorted, groups stay where they are, and the last number to be kept stands at its place in each.
        last = np.sort(packed)[np.cumsum(lengths) - lengths + limit - 1]
    kept = np.flatnonzero(packed <= np.repeat(last, lengths))
    if len(kept) > limit * len(lengths):  # ties, or numbers that differ in the bits that the group took
        whose = np.repeat(np.arange(len(lengths)), lengths)[kept]
        kept = kept[np.lexsort((kept, drawn[kept], whose))]
        kept = np.sort(kept[positions(run_lengths(whose)) < limit])
    return kept


def _stretches(words: NDArray[np.uint64], below: int) -> Iterator[NDArray[np.uint64]]:
    """Sorted words cut where another person begins, who is told by what stands above the lowest bits."""
    start, rest = 0, np.uint64((1 << below) - 1)
    while start < len(words):
        last = words[min(start + _STRETCH, len(words)) - 1]
        end = int(np.searchsorted(words, last | rest, side="right"))
        yield words[start:end]
        start = end
