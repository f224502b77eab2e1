"""The verb: verify a file that somebody else made."""

from __future__ import annotations

import os
from pathlib import Path

from sfumato.errors import FileFormatError, InvalidInput
from sfumato.ledger import Ledger
from sfumato.release.files import from_bytes
from sfumato.signing import SUFFIX, SigningKey, public_key
from sfumato.verification.ledgers import Given, check_ledger
from sfumato.verification.noise import check_noise
from sfumato.verification.signatures import check_signature
from sfumato.verification.verification import Check, Verification

_PARQUET = b"PAR1"

BEYOND = (
    "That the figures came from the data that are named, and from a run of this mechanism.",
    "That records were counted as declared: bounds on each person's records, filters, what counts as a record.",
    "That the noise was drawn from the system's randomness, and that nobody kept it.",
    "That nothing else was published about the same people, with or without an account.",
)


def verify(
    path: str | os.PathLike[str],
    *,
    key: str | Path | SigningKey | None = None,
    ledger: Given | None = None,
    dataset: str | None = None,
) -> Verification:
    """What holds of a release that somebody made, what fails, and what could not be checked: in words and as data.

    The file is read and its digest compared; what its noise can tell is computed anew from what it says was built, and
    set against its promise; with a `ledger` (of the account `dataset`, or of any), its id, ε, level, policy and unit
    are looked up. The signature beside it, `….sig`, is checked against the file's bytes, and against `key`, the public
    key that it should be by (text, or a file). Of any other file the signature alone is checked. A ledger of an earlier
    version is brought up to date when it is opened; nothing else is written, and nothing is charged.

    >>> plan = sf.plan(sf.threshold(sf.Line(0, 4, cells=4), theta=1), sf.histogram(), epsilon=1)
    >>> ledger = sf.Ledger.create("budget.db", epsilon=3)
    >>> path = plan.publish(np.array([3, 0, 5, 1]), ledger=ledger).save("visits.sfumato")
    >>> found = sf.verify(path, ledger=ledger)
    >>> found.passed, found["ledger"].outcome, found["signature"].outcome
    (True, 'holds', 'open')
    """
    place = Path(os.fspath(path))
    expected = None if key is None else public_key(key)
    if dataset is not None and ledger is None:
        raise InvalidInput(f"dataset={dataset!r} names an account, and no ledger is given. Nothing was verified.")
    if dataset is not None and isinstance(ledger, Ledger) and dataset != ledger.dataset:
        raise InvalidInput(
            f"dataset={dataset!r} is not the account of the ledger that is given, '{ledger.dataset}'. Nothing was "
            "verified. Leave dataset out, or give the ledger's path."
        )
    content = place.read_bytes()  # a file that is not there is the system's own error
    signature = check_signature(place, content, expected)
    if not content.startswith(_PARQUET):
        return _document(place, signature, signed=place.with_name(place.name + SUFFIX).exists())
    try:
        release = from_bytes(content, place)
    except FileFormatError as error:
        broken = Check(name="file", outcome="fails", words=str(error))
        return Verification(path=str(place), checks=(broken, signature))
    checks = (_file(content), *check_noise(release, len(content)), check_ledger(release, ledger, dataset), signature)
    return Verification(path=str(place), checks=checks, beyond=BEYOND)


def _file(content: bytes) -> Check:
    words = f"a release of {len(content):,} bytes that reads, field by field; its contents match their digest"
    return Check(name="file", outcome="holds", words=words)


def _document(place: Path, signature: Check, *, signed: bool) -> Verification:
    """A file that is no release: a statement, or anything else that was signed. Without a signature it is damage."""
    file = Check(
        name="file", outcome="fails", words="it is no release, or damaged from its first bytes, and not signed"
    )
    if signed:
        words = "it is no release: of such a file the signature alone can be checked"
        file = Check(name="file", outcome="open", words=words)
    return Verification(path=str(place), checks=(file, signature))
