"""Whether the file is what somebody signed, and whether that was who it should be."""

from __future__ import annotations

import hashlib
from pathlib import Path

from sfumato.errors import FileFormatError
from sfumato.signing import SUFFIX, read_signature
from sfumato.verification.verification import Check


def check_signature(path: Path, content: bytes, expected: str | None) -> Check:
    """The signature beside the file against its bytes; `expected` is the public key that it should be by."""
    place = path.with_name(path.name + SUFFIX)
    try:
        signature = read_signature(place)
    except FileNotFoundError:
        if expected is None:
            return _check("open", f"it is not signed: there is no '{place.name}' beside it")
        return _check("fails", f"it is not signed, and a signature by {expected} was asked for: no '{place.name}'")
    except (FileFormatError, OSError) as error:
        return _check("fails", f"{error}")
    if not signature.genuine:
        return _check("fails", f"'{place.name}' was damaged or forged: {signature.key} did not make it as it stands")
    if not signature.fits((hashlib.sha256(content).hexdigest(), len(content))):
        return _check(
            "fails",
            f"the file is not the one that {signature.key} signed on {signature.signed}: it was changed since, or the "
            "signature belongs to another file",
        )
    by = f"signed by {signature.key} on {signature.signed} (by the signer's clock), and unchanged since"
    if expected is None:
        return _check("open", f"{by}; whose key that is, the file cannot show: compare it with what the publisher says")
    if signature.key != expected:
        return _check("fails", f"it is signed by another key: by {signature.key}, and not by {expected}")
    return _check("holds", by)


def _check(outcome: str, words: str) -> Check:
    return Check(name="signature", outcome=outcome, words=words)  # type: ignore[arg-type]  # one of the three
