"""Many biased coins at once: the bits of geometric variables, one plane of bytes per bit.

A coin of probability p = 0.d₁d₂d₃… (digits to base 256) falls on one when a uniform U = 0.u₁u₂u₃… is below p. The first
byte in which the two differ decides, and it is the first one in 255 cases of 256. So one random byte is drawn for every
coin of a chunk and compared with d₁; the few coins that are undecided draw a second byte, and so on. A coin undecided
after all digits of the table falls on zero, as it does when p is cut to those digits.

**Residual timing channel.** How many coins need a second byte shows in the running time, and it is weakly tied to the
values: a bit that is rarely one is one only if its first bytes are zeros. Draws of up to `STEADY` values therefore take
every byte of every coin and look at all of them, so that the work and the randomness used depend on the size and the
rate alone. In larger draws the time speaks of thousands of coins together. Nothing here depends on private data.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import InvalidInput
from sfumato.noise.source import Source

STEADY = 1024  # up to so many values, all bytes of all coins are drawn
FEW = 512  # up to so many coins, a call of NumPy costs more than what it works on
CHUNK_BYTES = 1 << 19  # coins in flight; with their outcomes they stay in a second-level cache


class ByteSupply:
    """Bytes from a source, for one sampling call. Asks for a little more than it needs: stragglers are cheap then."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._rest: NDArray[np.uint8] = np.empty(0, dtype=np.uint8)

    def take(self, count: int) -> NDArray[np.uint8]:
        """The next `count` bytes; no byte is handed out twice."""
        if count > self._rest.size:
            self._rest = self._fresh((count + count // 128) // 8 + 32)
        taken, self._rest = self._rest[:count], self._rest[count:]
        return taken

    def _fresh(self, count: int) -> NDArray[np.uint8]:
        words = self._source.words(count)
        if words.dtype != np.uint64 or words.shape != (count,):
            raise InvalidInput(
                f"source={type(self._source).__name__} returned {words.dtype} words of shape {words.shape}, "
                f"not uint64 of shape ({count},). Nothing was recorded. Use SystemSource()."
            )
        return words.view(np.uint8)


def chunk(table: NDArray[np.uint8]) -> int:
    """How many values to draw at once."""
    return max(STEADY, CHUNK_BYTES // max(1, len(table)))


def draw(table: NDArray[np.uint8], size: int, stream: ByteSupply) -> NDArray[np.int64]:
    """`size` integers whose bit j is one with the probability whose digits are row j of the table, independently."""
    coins = _steady(table, size, stream) if size <= STEADY else _lazy(table, size, stream)
    return _numbers(coins)


def _steady(table: NDArray[np.uint8], size: int, stream: ByteSupply) -> NDArray[np.bool_]:
    """The coins, last digit first: U < p when the leading digit is smaller, or equal and the rest is smaller."""
    bits, digits = table.shape
    uniform = stream.take(digits * bits * size).reshape(digits, bits, size)
    if bits * size <= FEW:
        return _by_words(table, uniform)
    below = np.zeros((bits, size), dtype=np.bool_)
    for digit in range(digits - 1, -1, -1):
        limit = table[:, digit, None]
        below &= uniform[digit] == limit
        below |= uniform[digit] < limit
    return below


def _by_words(table: NDArray[np.uint8], uniform: NDArray[np.uint8]) -> NDArray[np.bool_]:
    """The same with digits to base 2⁶⁴: eight bytes in a row, the first one highest. Zeros added decide nothing."""
    digits, bits, size = uniform.shape
    width = -(-digits // 8) * 8
    limits = np.zeros((bits, 1, width), dtype=np.uint8)
    limits[:, 0, :digits] = table
    coins = np.zeros((bits, size, width), dtype=np.uint8)
    coins[:, :, :digits] = uniform.transpose(1, 2, 0)
    smaller, equal = coins.view(">u8") < limits.view(">u8"), coins.view(">u8") == limits.view(">u8")
    below = smaller[:, :, -1]
    for word in range(width // 8 - 2, -1, -1):
        below = smaller[:, :, word] | (equal[:, :, word] & below)
    return below


def _lazy(table: NDArray[np.uint8], size: int, stream: ByteSupply) -> NDArray[np.bool_]:
    """The coins, first digit first, with further digits for those coins alone that are still undecided."""
    bits, digits = table.shape
    uniform = stream.take(bits * size).reshape(bits, size)
    limit = table[:, 0, None]
    below = uniform < limit
    undecided = np.flatnonzero(np.equal(uniform, limit, out=uniform.view(np.bool_)))
    outcome = below.reshape(-1)
    ends = np.arange(bits + 1) * size
    for digit in range(1, digits):
        if undecided.size == 0:
            break
        more = stream.take(undecided.size)
        per_row = np.diff(np.searchsorted(undecided, ends))  # the undecided stand in the order of their rows
        limits = np.repeat(table[:, digit], per_row)
        outcome[undecided[more < limits]] = True
        undecided = undecided[more == limits]
    return below


def _numbers(coins: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Column i of the coins, row 0 the lowest bit, as one integer."""
    rows = coins.view(np.uint8)
    numbers = np.zeros(rows.shape[1], dtype="<i8")
    octets = numbers.view(np.uint8).reshape(-1, 8)
    if rows.size <= FEW:
        octets[:, : -(-len(rows) // 8)] = np.packbits(rows, axis=0, bitorder="little").T
        return numbers.astype(np.int64, copy=False)
    for first in range(0, len(rows), 8):
        highest, *lower = rows[first : first + 8][::-1]
        octet = highest.copy()
        for row in lower:
            octet += octet
            octet |= row
        octets[:, first // 8] = octet
    return numbers.astype(np.int64, copy=False)
