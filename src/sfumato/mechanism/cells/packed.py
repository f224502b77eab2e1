"""A small number for every cell, as text in the options of a mechanism: compressed, and read without trust."""

from __future__ import annotations

import base64
import binascii
import zlib

import numpy as np

from sfumato._types import Integers
from sfumato.errors import InvalidInput


def packed(numbers: Integers) -> str:
    """Whole numbers from 0 as text."""
    return base64.b85encode(zlib.compress(np.asarray(numbers, dtype="<u4").tobytes(), 6)).decode("ascii")


def unpacked(text: object, size: int, name: str) -> Integers:
    """The numbers that `packed` wrote, so many of them; no more memory is taken, whatever the text says."""
    try:
        reader = zlib.decompressobj()
        raw = reader.decompress(base64.b85decode(text), 4 * size + 1)  # type: ignore[arg-type]  # refused below
    except (TypeError, ValueError, binascii.Error, zlib.error) as error:
        raise InvalidInput(f"{name} is damaged: it must be what this mechanism wrote.") from error
    if len(raw) != 4 * size:
        raise InvalidInput(f"{name} is damaged: it must hold a number for each of {size} cells.")
    return np.frombuffer(raw, dtype="<u4").astype(np.int64)
