"""Signatures: who says that a file is theirs, as a small file beside it.

Nothing is signed but the bytes of a file, whatever it holds: a release, a statement, a publication. A signature changes
nothing in what it signs, so that every reader reads what it always read. No message shows anything of a secret key.
"""

from sfumato.signing.keys import SigningKey, public_key
from sfumato.signing.signature import PREFIX, SUFFIX, Signature, read_signature

__all__ = ["PREFIX", "SUFFIX", "Signature", "SigningKey", "public_key", "read_signature"]
