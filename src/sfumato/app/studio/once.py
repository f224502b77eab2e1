"""A publication from the page is charged once, however often its button is pressed, in however many tabs or processes,
and whatever is killed meanwhile.

The promise: of one publication to one file at most one release leaves the studio, and the account is charged for it at
most once. The file names the publication: the studio never replaces one. Before anything is charged an *intent* is on
disk beside that file, `.visits.sfumato.intent`: the name that the release will have, and a digest of what is to be
published. Whoever comes next holds the same lock, reads it and asks the ledger:

- charged, and the file is there: it was published; nothing more is charged.
- charged, and the release waits in the outbox: it is put where it belongs.
- charged, and no release is there: it is lost. Its noise may lie in a file that was begun, or in one that was moved
  away, and a second noise for the same charge would tell more than was paid for. The charge stands, and what is
  published next has another name and a charge of its own.
- not charged: nothing happened, and it begins anew.
"""

from __future__ import annotations

import hashlib
import json
import secrets
from glob import escape
from pathlib import Path
from typing import Any, Self

from sfumato.errors import FileFormatError, InvalidInput, SfumatoError
from sfumato.files import replacing
from sfumato.ledger import Ledger
from sfumato.ledger.places import is_file
from sfumato.locks import FileLock
from sfumato.promise import Epsilon, Guarantee
from sfumato.publication import Publication
from sfumato.release import Release
from sfumato.release.files import load
from sfumato.release.outbox import found

_LONGEST = 4096


def account_of(publication: Publication) -> Ledger | None:
    """The account that a publication names; None where it says that it wants none."""
    told = publication.account
    if told.ledger is None and not told.without_ledger:
        raise InvalidInput(
            "studio: [account] ledger is missing: name the ledger that keeps account, or say without_ledger. Nothing "
            "was counted, drawn or recorded."
        )
    if told.ledger is None:
        return None
    where = publication.place(told.ledger)
    if is_file(where) and not Path(where).exists():
        raise InvalidInput(
            f"studio: [account] ledger: there is no ledger {told.ledger}. Nothing was counted, drawn or recorded. Make "
            "one first, with its total."
        )
    return Ledger(where, dataset=told.dataset or "default")


class Claim:
    """The right to publish to one file, held by one attempt at a time, across tabs and processes."""

    def __init__(self, place: Path, publication: Publication) -> None:
        self._place = place
        self._intent = place.with_name(f".{place.name}.intent")
        self._digest = hashlib.sha256(publication.to_toml().encode()).hexdigest()
        try:
            self._lock = FileLock(place.with_name(f".{place.name}.lock"), timeout=0.0)
        except TimeoutError:
            raise InvalidInput(
                f"another studio is publishing '{place.name}' right now. Nothing was counted, drawn or recorded here. "
                "Wait for it, and open the release."
            ) from None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._lock.release()

    def delivered(self, account: Ledger | None) -> Release | None:
        """The release of an earlier attempt at this very publication; None where there is none, and one may begin."""
        known = self._read()
        mine = known is not None and known["digest"] == self._digest
        if known is not None:
            for part in self._place.parent.glob(f".{escape(self._place.name)}.*.part"):
                part.unlink(missing_ok=True)  # begun by an attempt that was killed, and handed to nobody
        if self._place.exists():
            if known is not None and mine:
                release = load(self._place)
                if release.id == known["release_id"]:
                    return release
            raise InvalidInput(
                f"studio: [output] file: '{self._place.name}' is there already, and the studio replaces no file. "
                "Nothing was counted, drawn or recorded. Choose another name."
            )
        if known is None or account is None or account.level(known["release_id"]) is None:
            return None
        waiting = found(known["release_id"], ledger=account.path)
        if not mine or waiting is None:
            why = "is no longer there" if known["done"] else "was never written"
            raise InvalidInput(
                f"studio: [output] file: a release was charged for '{self._place.name}' before, as "
                f"{known['release_id']}, "
                + (f"and {why}: it is not drawn again" if mine else "for another publication")
                + ". Nothing was counted, drawn or recorded now, and that charge stands. Choose another name."
            )
        release = load(waiting)
        with replacing(self._place) as out:
            out.write(waiting.read_bytes())
        waiting.unlink()
        self.done()
        return release

    def intended(self) -> str:
        """The name that the release will have: on disk when this returns, before anything is charged."""
        name = secrets.token_hex(16)
        self._write({"release_id": name, "digest": self._digest, "done": False})
        return name

    def done(self) -> None:
        """The release is where it was to be."""
        known = self._read()
        if known is not None:
            self._write({**known, "done": True})

    def _read(self) -> dict[str, Any] | None:
        try:
            with self._intent.open("rb") as file:
                told = json.loads(file.read(_LONGEST))
        except FileNotFoundError:
            return None
        except ValueError:
            told = None
        if not isinstance(told, dict) or {*told} != {"release_id", "digest", "done"}:
            raise FileFormatError(
                f"'{self._intent.name}' beside the release is no intent of the studio's. Nothing was counted, drawn or "
                "recorded. Look in the ledger whether something was charged, and choose another name."
            )
        return told

    def _write(self, told: dict[str, Any]) -> None:
        with replacing(self._intent, mode=0o600) as out:
            out.write(json.dumps(told).encode())


def quoted(account: Ledger, guarantee: Guarantee, publication: Publication) -> dict[str, Any]:
    """What a release would cost an account, and what would be left; or why it would be refused."""
    told: dict[str, Any] = {"total": str(account.total), "spent": str(account.spent), "left": str(account.remaining)}
    try:
        cost = account.quote(guarantee, dropped=dropped(publication))
    except SfumatoError as error:
        return {**told, "cost": None, "after": None, "fits": False, "refusal": str(error)}
    fits = cost <= account.remaining
    after = str(Epsilon(account.remaining - cost)) if fits else None
    return {**told, "cost": str(cost), "after": after, "fits": fits, "refusal": None}


def dropped(publication: Publication) -> list[str]:
    """The factors beyond whose bounds records are left out."""
    return [one.name for one in publication.domain.factors] if publication.data.outside == "drop" else []
