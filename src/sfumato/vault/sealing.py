"""How a file of the vault is sealed: AES-256-GCM, bound to what it is and to whom it belongs.

A sealed file is a header, the ciphertext, and a tag of 16 bytes.

| bytes | header field | |
| --- | --- | --- |
| 8 | magic | `sfvault` and a zero |
| 1 | version | of this format and of what is inside |
| 1 | kind | a state, a staged state, a finished release, or how far a ledger had come |
| 8 | level | little-endian |
| 8 | key name | tells a wrong key from a damaged file; HMAC-SHA256 under the key, cut |
| 12 | nonce | fresh randomness for every write |

The header and the id of the release are the associated data: a file that is renamed, cut, put in the place of another
one or changed in any bit does not open. Under one key, 2³² writes meet the same nonce twice with probability 2⁻³³. What
the tag cannot tell is an *older* file from a newer one of the same release and level: the ledger counts the levels.
"""

from __future__ import annotations

import hmac
import os
import struct
from collections.abc import Iterable
from dataclasses import dataclass
from enum import IntEnum
from typing import BinaryIO

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

from sfumato.errors import VaultError

KEY_BYTES = 32
VERSION = 2  # 1: states without the name of who paid; what is written over them must not lose it again

_MAGIC = b"sfvault\0"
_HEADER = struct.Struct("<8sBBQ8s12s")
_TAG_BYTES = 16
_PIECE = 1 << 26  # OpenSSL takes less than 2³¹ bytes at once


class Kind(IntEnum):
    """What a sealed file holds."""

    STATE = 1
    STAGED = 2
    OUTBOX = 3
    LEDGER = 4


@dataclass(frozen=True, slots=True)
class Seal:
    """What a sealed file is bound to."""

    kind: Kind
    release_id: str
    level: int


class Sealer:
    """Writes and opens sealed files under one key, which it shows to nobody."""

    __slots__ = ("_key", "_name")

    def __init__(self, key: bytes) -> None:
        self._key = key
        self._name = hmac.digest(key, b"sfumato vault key name", "sha256")[:8]

    def write(self, file: BinaryIO, seal: Seal, pieces: Iterable[bytes]) -> None:
        """Seal the pieces, one after the other, into a file."""
        nonce = os.urandom(12)
        header = _HEADER.pack(_MAGIC, VERSION, seal.kind, seal.level, self._name, nonce)
        encryptor = Cipher(algorithms.AES(self._key), modes.GCM(nonce)).encryptor()
        encryptor.authenticate_additional_data(_associated(header, seal.release_id))
        file.write(header)
        for piece in pieces:
            view = memoryview(piece)
            for start in range(0, len(view), _PIECE):
                file.write(encryptor.update(view[start : start + _PIECE]))
        encryptor.finalize()
        file.write(encryptor.tag)

    def open(self, sealed: bytes, where: str, kind: Kind, release_id: str) -> tuple[int, bytes]:
        """(level, content) of a sealed file. Nothing of it is used before all of it is found to be intact."""
        if len(sealed) < _HEADER.size + _TAG_BYTES or not sealed.startswith(_MAGIC):
            raise VaultError(f"'{where}' is not a file of a vault, or it was cut short. {_NEXT_STEP}")
        header = sealed[: _HEADER.size]
        _, version, found, level, name, nonce = _HEADER.unpack(header)
        if version > VERSION:
            raise VaultError(
                f"'{where}' was written by a newer sfumato (vault version {version}; this one reads up to {VERSION}), "
                "or was damaged. Nothing was drawn or recorded. Upgrade sfumato."
            )
        if name != self._name:
            raise VaultError(
                f"'{where}' was sealed under another key than the one given. Nothing was drawn or recorded. "
                "Give the key that the vault was made with."
            )
        view = memoryview(sealed)
        tag = sealed[-_TAG_BYTES:]
        decryptor = Cipher(algorithms.AES(self._key), modes.GCM(nonce, tag)).decryptor()
        decryptor.authenticate_additional_data(_associated(header, release_id))
        end = len(sealed) - _TAG_BYTES
        pieces = [
            decryptor.update(view[start : min(start + _PIECE, end)]) for start in range(_HEADER.size, end, _PIECE)
        ]
        try:
            decryptor.finalize()
        except InvalidTag:
            raise VaultError(
                f"'{where}' was changed or damaged after it was written, or belongs to another release. {_NEXT_STEP}"
            ) from None
        if found != kind:
            raise VaultError(f"'{where}' holds something else than its name says. {_NEXT_STEP}")
        return level, b"".join(pieces)

    def __repr__(self) -> str:
        return "Sealer(…)"


_NEXT_STEP = (
    "Nothing was drawn or recorded. Put the newest intact copy back; the ledger refuses an older one, since refining "
    "it twice would undo its noise."
)


def _associated(header: bytes, release_id: str) -> bytes:
    return header + release_id.encode()  # the header has one length: no two pairs give the same bytes
