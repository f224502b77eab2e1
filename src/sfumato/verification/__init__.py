"""Verifying what somebody else published: the file, its noise, its account, its signature; and what nobody can verify.

    verify          a release, or any signed file → Verification
    Verification    what holds, what fails, and what could not be checked, in words and as data
    Check           one of these

Everything here looks at files that nobody vouches for. What a check costs follows from the size of the file, and no
check believes what the file says of itself where it can be computed instead. Nothing is drawn, recorded or changed.
"""

from sfumato.verification.verification import Check, Verification
from sfumato.verification.verify import verify

__all__ = ["Check", "Verification", "verify"]
