"""Records set aside on disk, unreadable to everyone else.

What goes to the temporary directory is enciphered (AES-256 in counter mode) under a key that is made here, never leaves
memory and is forgotten with the object; the file has no name where the system allows that. A crash leaves nothing that
can be read.
"""

from __future__ import annotations

import os
import tempfile
from dataclasses import dataclass

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from numpy.typing import NDArray

from sfumato.errors import TooLarge

Records = tuple[NDArray[np.uint64], NDArray[np.integer]]
"""Digests of entities, and cells."""

Number = type[np.int32] | type[np.int64]
"""What the numbers of cells are kept in."""


def number_for(cells: int) -> Number:
    """The shorter one where no number of a cell is beyond it."""
    return np.int32 if cells <= 1 << 31 else np.int64


@dataclass(frozen=True)
class Block:
    """Where some records lie in the file, and the counter that they were enciphered from."""

    offset: int
    rows: int
    start: bytes


class Spill:
    """A temporary file of records."""

    def __init__(self, number: Number = np.int32) -> None:
        self._number = number
        self._row = 8 + np.dtype(number).itemsize
        self._key = os.urandom(32)
        self._file = tempfile.TemporaryFile(prefix="sfumato-")  # noqa: SIM115  # closed when the object goes
        self._size = 0

    def write(self, records: Records) -> Block:
        """Put records away."""
        entities, cells = records
        block = Block(self._size, len(cells), os.urandom(16))
        try:
            self._file.write(self._apply(block, entities.tobytes() + cells.tobytes()))
        except OSError as error:
            raise TooLarge(
                f"The records do not fit into the temporary directory {tempfile.gettempdir()!r}. Nothing was counted. "
                "Free some space there, or set TMPDIR to another directory."
            ) from error
        self._size += len(cells) * self._row
        return block

    def read(self, block: Block) -> Records:
        """Fetch records back."""
        self._file.seek(block.offset)
        data = self._apply(block, self._file.read(block.rows * self._row))
        split = block.rows * 8
        return np.frombuffer(data[:split], np.uint64), np.frombuffer(data[split:], self._number)

    def close(self) -> None:
        """Give the space back."""
        self._file.close()

    def _apply(self, block: Block, data: bytes) -> bytes:
        """Encipher or decipher: in counter mode it is the same."""
        return Cipher(algorithms.AES(self._key), modes.CTR(block.start)).encryptor().update(data)
