"""Whole numbers of any size, exactly uniform, from random words."""

from __future__ import annotations

import numpy as np

from sfumato.errors import InvalidInput
from sfumato.noise.source import Source


def random_bits(count: int, source: Source) -> int:
    """A uniform integer of `count` bits: 0 … 2^count - 1."""
    if type(count) is not int or count < 0:
        raise InvalidInput(f"count={count!r} must be a whole number of at least 0. Nothing was drawn.")
    words = source.words(-(-count // 64))
    # Little-endian by name, so that a seed gives the same number on every machine.
    return int.from_bytes(words.astype(np.dtype("<u8")).tobytes(), "little") & ((1 << count) - 1)


def random_below(limit: int, source: Source) -> int:
    """A uniform integer 0 … limit - 1: bits are drawn until they make a number below the limit, twice on average."""
    if type(limit) is not int or limit < 1:
        raise InvalidInput(f"limit={limit!r} must be a whole number of at least 1. Nothing was drawn.")
    count = (limit - 1).bit_length()
    while True:
        number = random_bits(count, source)
        if number < limit:
            return number
