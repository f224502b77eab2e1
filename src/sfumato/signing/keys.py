"""The key of a publisher: an Ed25519 key in a file of its owner alone, and the public key to hand out.

A key is made once, on purpose (`SigningKey.create`), and never by opening: a key that appeared for a path mistyped
would sign in nobody's name.
"""

from __future__ import annotations

import base64
import binascii
import secrets
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from sfumato.errors import InvalidInput
from sfumato.exact import shown
from sfumato.files import create_private, read_private, replacing
from sfumato.signing.signature import PREFIX, SUFFIX, Signature, digest_of_file, is_public_key

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

_SECRET = "sfumato-signing-key:"
_BYTES = 32
_LONGEST = 4096  # more than any key; a device or a log given by mistake is not read to its end
_UNSIGNED = "Nothing was signed."


class SigningKey:
    """A key that signs files: made once, `SigningKey.create("publisher.key")`, and opened from then on,
    `SigningKey("publisher.key")`. The file is for its owner alone.

    `public` is the key to hand out: on paper, on the publisher's own page, by whatever way is trusted already. It is
    also in a file beside the key, `publisher.key.pub`.

    >>> key = sf.SigningKey.create("publisher.key")
    >>> _ = Path("2026.html").write_text("a statement")
    >>> str(key.sign("2026.html")), sf.verify("2026.html", key=key.public).passed
    ('2026.html.sig', True)
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        try:
            written, others = read_private(self.path, _LONGEST)
        except FileNotFoundError as error:
            raise InvalidInput(
                f"there is no signing key '{self.path}'. {_UNSIGNED} Check the path; a new key is made once, on "
                f"purpose: sf.SigningKey.create('{self.path.name}')."
            ) from error
        if others is not None:
            raise InvalidInput(
                f"the signing key '{self.path}' is open to other users (permissions {others:o}). {_UNSIGNED} Make it "
                f"yours alone: chmod 600 '{self.path}'. If somebody may have read it, they can sign in your name: make "
                "a new key and tell your readers."
            )
        self._key = _private(written.decode("ascii", errors="replace").strip(), self.path)

    @classmethod
    def create(cls, path: str | Path) -> SigningKey:
        """A new key in a new file, readable by its owner alone, and its public key beside it in `….pub`."""
        place = Path(path)
        secret = base64.b64encode(secrets.token_bytes(_BYTES)).decode("ascii")
        if not create_private(place, f"{_SECRET}{secret}\n".encode("ascii")):
            raise InvalidInput(
                f"there is a file '{place}' already. Nothing was created or changed. Open it with "
                f"sf.SigningKey('{place.name}'), or choose another path."
            )
        key = cls(place)
        with replacing(place.with_name(f"{place.name}.pub")) as file:
            file.write(f"{key.public}\n".encode("ascii"))
        return key

    @property
    def public(self) -> str:
        """The public key, as text."""
        return PREFIX + base64.b64encode(self._key.public_key().public_bytes_raw()).decode("ascii")

    def sign(self, path: str | Path) -> Path:
        """Sign a file as it is; the signature goes beside it, `visits.sfumato.sig`, and replaces an older one.

        The file itself is not changed. A later change of any byte of it shows.
        """
        place = Path(path)
        digest, size = digest_of_file(place)
        now = datetime.now(UTC).isoformat(timespec="seconds")
        unsigned = Signature(key=self.public, sha256=digest, size=size, signed=now)
        proof = base64.b64encode(self._key.sign(unsigned.message)).decode("ascii")
        signature = Signature(key=self.public, sha256=digest, size=size, signed=now, signature=proof)
        target = place.with_name(place.name + SUFFIX)
        with replacing(target) as file:
            file.write(signature.to_text().encode("ascii"))
        return target

    def __repr__(self) -> str:
        return f"SigningKey({str(self.path)!r}, public={self.public!r})"


def public_key(given: str | Path | SigningKey) -> str:
    """A public key from its text, or from a file that holds it; a secret key given by mistake is refused."""
    if isinstance(given, SigningKey):
        return given.public
    if isinstance(given, str) and is_public_key(given.strip()):
        return given.strip()
    path = Path(given)
    try:
        with path.open("rb") as file:
            written = file.read(_LONGEST).decode("ascii", errors="replace").strip()
    except OSError as error:
        why = error.strerror or type(error).__name__
        raise InvalidInput(
            f"key={shown(str(given))} is neither a public key ('{PREFIX}…') nor a file with one ({why}). Nothing was "
            "verified. Give what the publisher hands out."
        ) from error
    if written.startswith(_SECRET):
        raise InvalidInput(
            f"key='{path}' is the secret key of a publisher, and the public one is wanted. Nothing was verified. Give "
            f"'{path}.pub', and keep the secret one where it cannot be read."
        )
    if not is_public_key(written):
        raise InvalidInput(
            f"key='{path}' does not hold a public key, one line that begins with '{PREFIX}'. Nothing was verified. "
            "Give what the publisher hands out."
        )
    return written


def _private(written: str, path: Path) -> Ed25519PrivateKey:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    try:
        if not written.startswith(_SECRET):
            raise ValueError("another kind of file")
        raw = base64.b64decode(written.removeprefix(_SECRET), validate=True)
        return Ed25519PrivateKey.from_private_bytes(raw)
    except (binascii.Error, ValueError):
        pass  # nothing of what is in the file enters the message
    raise InvalidInput(
        f"'{path}' does not hold a signing key. {_UNSIGNED} Give the file that sf.SigningKey.create made; the public "
        "key, which ends in .pub, signs nothing."
    )
