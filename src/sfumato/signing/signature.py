"""A signature: a small JSON file beside what it signs, `visits.sfumato.sig`.

It names the public key, the SHA-256 and the size of the file, and when it was signed by the signer's clock; the Ed25519
signature is over all of that, under a heading that no other protocol has. A signature shows that whoever holds the key
signed these bytes. Whose key that is, nobody can learn from the file: the publisher hands it out by another way.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
import re
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from sfumato.errors import FileFormatError
from sfumato.reading import plain_data

SUFFIX = ".sig"
VERSION = 1
PREFIX = "sfumato-ed25519:"

_HEADING = b"sfumato signature 1\0"
_LONGEST = 4096  # bytes of a signature's file: a longer one is none, and is not read
_CHUNK = 1 << 20
_FIELDS = frozenset({"version", "key", "sha256", "bytes", "signed", "signature"})
_KEY = re.compile(re.escape(PREFIX) + r"[A-Za-z0-9+/]{43}=")
_DIGEST = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Signature:
    """What a signer says of a file: its digest and size, when, and the proof that the holder of the key says so."""

    key: str
    sha256: str
    size: int
    signed: str
    signature: str = ""

    @property
    def message(self) -> bytes:
        """What the signature is over."""
        said = {"bytes": self.size, "key": self.key, "sha256": self.sha256, "signed": self.signed, "version": VERSION}
        return _HEADING + json.dumps(said, sort_keys=True, separators=(",", ":")).encode("ascii")

    @property
    def genuine(self) -> bool:
        """Whether the holder of the key that it names made it."""
        from cryptography.exceptions import InvalidSignature
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

        try:
            public = Ed25519PublicKey.from_public_bytes(base64.b64decode(self.key.removeprefix(PREFIX)))
            public.verify(base64.b64decode(self.signature, validate=True), self.message)
        except (InvalidSignature, ValueError):
            return False
        return True

    def fits(self, digest: tuple[str, int]) -> bool:
        """Whether a file with this digest and size is the one that was signed."""
        return digest == (self.sha256, self.size)

    def to_text(self) -> str:
        """The content of its file."""
        said = {"version": VERSION, "key": self.key, "sha256": self.sha256, "bytes": self.size, "signed": self.signed}
        return json.dumps({**said, "signature": self.signature}, indent=2) + "\n"


def read_signature(path: Path) -> Signature:
    """The signature in a file; FileFormatError where there is none in it. Whether it holds is not looked at here."""
    with path.open("rb") as file:
        content = file.read(_LONGEST + 1)
    if len(content) > _LONGEST:
        raise _unreadable(path, f"it is longer than the {_LONGEST:,} bytes that a signature may have.")
    try:
        said = plain_data(content)
    except ValueError as error:
        raise _unreadable(path, "it is not JSON.") from error
    version = said.get("version") if isinstance(said, dict) else None
    if type(version) is int and version > VERSION:
        raise _unreadable(path, f"it is of version {version}, and this sfumato knows {VERSION}. Install a newer one.")
    if not isinstance(said, dict) or set(said) != _FIELDS or version != VERSION or not _well_formed(said):
        raise _unreadable(path, f"it must have exactly the fields {', '.join(sorted(_FIELDS))}, as it was written.")
    return Signature(
        key=said["key"],
        sha256=said["sha256"],
        size=said["bytes"],
        signed=said["signed"],
        signature=said["signature"],
    )


def is_public_key(text: str) -> bool:
    """Whether a text has the form of a public key."""
    return bool(_KEY.fullmatch(text))


def digest_of_file(path: str | Path) -> tuple[str, int]:
    """(SHA-256, size) of a file, read in pieces."""
    digest, size = hashlib.sha256(), 0
    with Path(path).open("rb") as file:
        while chunk := file.read(_CHUNK):
            digest.update(chunk)
            size += len(chunk)
    return digest.hexdigest(), size


def _well_formed(said: dict[str, Any]) -> bool:
    if (
        not all(isinstance(said[name], str) for name in _FIELDS - {"version", "bytes"})
        or type(said["bytes"]) is not int
    ):
        return False
    try:
        datetime.fromisoformat(said["signed"])
        raw = base64.b64decode(said["signature"], validate=True)
    except (binascii.Error, ValueError):
        return False
    return is_public_key(said["key"]) and bool(_DIGEST.fullmatch(said["sha256"])) and len(raw) == 64


def _unreadable(path: Path, why: str) -> FileFormatError:
    return FileFormatError(f"'{path}' cannot be read as a signature: {why}")
