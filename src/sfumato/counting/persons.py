"""Whose a record is, as a number of 64 bits: the same for the same key on every engine.

Two persons with one number would share one share of m, and the arrival of one could displace a record of the other: two
changes where one was promised. Whole numbers, truth values, doubles and times are numbers already and stay apart for
certain. Anything else is text or bytes and goes through a keyed digest: CBC-MAC with AES-256 over its length, then
its bytes (whose first block no other text continues, so that it is a pseudorandom function; Bellare, Kilian and
Rogaway 2000). Nobody who does not know the key can choose names that meet, and by chance somebody meets one of n
others with probability n · 2⁻⁶⁴. A digest without a key would not do: some pairs of names meet under half of all salts
of DuckDB's hash.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, CipherContext, algorithms, modes
from numpy.typing import NDArray

from sfumato.counting.place import fixed_width

Words = NDArray[np.uint64]
Places = NDArray[np.int64]
_BLOCK = 16
_ALL = np.uint64((1 << 64) - 1)
_LONG = np.uint64(0xFF << 56)
"""In the last byte of the first block of what needs more than one; the length is there where one block is enough."""


def person_numbers(column: Any, key: bytes) -> tuple[NDArray[np.uint64], NDArray[np.bool_] | None]:
    """The number of each value of an Arrow array, and which rows have a person at all (None: all); null and NaN are
    nobody.
    """
    import pyarrow as pa

    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    kind = column.type
    known = fixed_width(column.is_valid().cast(pa.uint8()), np.uint8) == 1 if column.null_count else None
    if pa.types.is_null(kind):
        return np.zeros(len(column), np.uint64), known
    if pa.types.is_floating(kind):
        values = fixed_width(column.cast(pa.float64()), np.float64) + 0.0  # −0.0 is 0.0
        there = ~np.isnan(values)
        return values.view(np.uint64), there if known is None else known & there
    if pa.types.is_boolean(kind):
        column = column.cast(pa.uint8())
    elif pa.types.is_temporal(kind):
        column = column.view(pa.int32() if kind.bit_width == 32 else pa.int64())
    if pa.types.is_integer(column.type):
        wide = column.cast(pa.uint64() if pa.types.is_unsigned_integer(column.type) else pa.int64())
        return fixed_width(wide, np.uint64), known
    text = (column.cast(pa.string()) if pa.types.is_decimal(kind) else column).cast(pa.large_binary())
    if not len(text):
        return np.empty(0, np.uint64), known
    _, offsets, data = text.buffers()
    ends = np.frombuffer(offsets, np.int64, len(text) + 1, text.offset * 8)
    return digests(np.frombuffer(data or b"", np.uint8), ends, key), known


def digests(data: NDArray[np.uint8], ends: NDArray[np.int64], key: bytes) -> NDArray[np.uint64]:
    """The keyed digest of each of the texts that lie one after the other in ``data``, between ``ends``."""
    cipher = Cipher(algorithms.AES(key), modes.ECB()).encryptor()
    padded = np.concatenate([data[ends[0] : ends[-1]], np.zeros(_BLOCK, np.uint8)])
    words = np.ndarray((len(padded) - 7,), "<u8", padded, strides=(1,))  # eight bytes from anywhere
    starts, lengths = ends[:-1] - ends[0], np.diff(ends)
    short = lengths < _BLOCK
    if short.all():
        return _short(cipher, words, starts, lengths)
    if not short.any():
        return _long(cipher, words, starts, lengths)
    found = np.empty(len(lengths), np.uint64)
    for which, digest in ((short, _short), (~short, _long)):
        found[which] = digest(cipher, words, starts[which], lengths[which])
    return found


def _short(cipher: CipherContext, words: Words, starts: Places, lengths: Places) -> Words:
    """Of texts that leave room for their length in one block."""
    blocks = _piece(words, starts, lengths)
    blocks[:, 1] |= lengths.view(np.uint64) << np.uint64(56)
    return _enciphered(cipher, blocks)[:, 0]


def _long(cipher: CipherContext, words: Words, starts: Places, lengths: Places) -> Words:
    """Of all others: the length first, then block after block."""
    found = np.empty(len(lengths), np.uint64)
    rows = np.arange(len(lengths))
    state = np.full((len(lengths), 2), _LONG)
    state[:, 0] = lengths
    state = _enciphered(cipher, state)
    done = 0
    while len(rows):
        state = _enciphered(cipher, state ^ _piece(words, starts + done, lengths - done))
        done += _BLOCK
        more = lengths > done
        if not more.all():
            found[rows[~more]] = state[~more, 0]
            rows, starts, lengths, state = rows[more], starts[more], lengths[more], state[more]
    return found


def _piece(words: Words, at: Places, left: Places) -> Words:
    """Sixteen bytes from each place, zeros beyond what is left of the text."""
    found = np.empty((len(at), 2), np.uint64)
    for i in range(2):
        shift = np.uint64(8) * (np.uint64(8) - np.clip(left - 8 * i, 0, 8).view(np.uint64))
        found[:, i] = words[at + 8 * i] & (_ALL >> shift)  # by 64 bits nothing is left
    return found


def _enciphered(cipher: CipherContext, blocks: NDArray[np.uint64]) -> NDArray[np.uint64]:
    plain = np.ascontiguousarray(blocks, "<u8").view(np.uint8)
    return np.frombuffer(cipher.update(plain.data), "<u8").reshape(-1, 2).astype(np.uint64, copy=False)
