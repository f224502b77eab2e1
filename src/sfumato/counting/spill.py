"""Records set aside on disk, unreadable to everyone else.

What goes to the temporary directory is enciphered (AES-256 in counter mode) under a key that is made here, never leaves
memory and is forgotten with the object; the file has no name where the system allows that. A crash leaves nothing that
can be read.
"""

from __future__ import annotations

import os
import tempfile
from dataclasses import dataclass
from typing import Any

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

from sfumato.counting.keyed import Records
from sfumato.errors import TooLarge


@dataclass(frozen=True)
class Block:
    """Where some records lie in the file, of which types their columns are, and the counter that they were enciphered
    from.
    """

    offset: int
    rows: int
    kinds: tuple[np.dtype[Any], ...]
    start: bytes

    @property
    def size(self) -> int:
        """In bytes."""
        return self.rows * sum(kind.itemsize for kind in self.kinds)


class Spill:
    """A temporary file of records."""

    def __init__(self) -> None:
        self._key = os.urandom(32)
        self._file = tempfile.TemporaryFile(prefix="sfumato-")  # noqa: SIM115  # closed when the object goes
        self._size = 0

    def write(self, records: Records) -> Block:
        """Put records away."""
        columns = records.columns
        block = Block(self._size, len(records), tuple(column.dtype for column in columns), os.urandom(16))
        try:
            self._file.write(self._apply(block, b"".join(column.tobytes() for column in columns)))
        except OSError as error:
            raise TooLarge(
                f"The records do not fit into the temporary directory {tempfile.gettempdir()!r}. Nothing was counted. "
                "Free some space there, or set TMPDIR to another directory."
            ) from error
        self._size += block.size
        return block

    def read(self, block: Block) -> Records:
        """Fetch records back."""
        self._file.seek(block.offset)
        data = self._apply(block, self._file.read(block.size))
        columns, at = [], 0
        for kind in block.kinds:
            columns.append(np.frombuffer(data, kind, block.rows, at))
            at += block.rows * kind.itemsize
        return Records(*columns)

    def close(self) -> None:
        """Give the space back."""
        self._file.close()

    def _apply(self, block: Block, data: bytes) -> bytes:
        """Encipher or decipher: in counter mode it is the same."""
        return Cipher(algorithms.AES(self._key), modes.CTR(block.start)).encryptor().update(data)
