"""What was charged is never lost for want of a place: a release that cannot be written goes to an outbox.

The outbox is a folder beside the ledger, `budget.db.outbox`, or, where that cannot be written either, in the user's
state folder ($XDG_STATE_HOME/sfumato/outbox), or a temporary one; its files are for their owner alone until they are
moved to where they belong. Nothing in a release is private: it is what was to be published.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from sfumato.errors import Undelivered
from sfumato.files import Reserved, replacing
from sfumato.release.release import Release
from sfumato.release.writing import as_bytes


def room_for(cells: int) -> int:
    """How many bytes are set aside for a release of so many cells: its counts, its noisy integers, and some more."""
    return 65_536 + 24 * cells


def deliver(release: Release, file: Reserved, *, ledger: Path | None) -> None:
    """Write a release that was charged to the file that was prepared for it, or keep it and say where."""
    try:
        file.fill(as_bytes(release))
    except BaseException as error:  # whatever stopped it, an interruption as well
        raise rescued(release, f"'{file.path}' could not be written", error, ledger=ledger) from error


def rescued(release: Release, what: str, error: BaseException, *, ledger: Path | None) -> Undelivered:
    """Put a release into the outbox; gives the error to raise, which says where it is."""
    kept = _keep({f"{release.id}.sfumato": release}, ledger)
    said = f"The release is not lost: it is '{kept}'. Move it where it belongs; it has been paid for"
    return _undelivered(what, error, "the release was", kept, said)


def found(release_id: str, *, ledger: Path | None) -> Path | None:
    """Where a release waits in an outbox, if it does."""
    return next((kept for one in _folders(ledger) if (kept := one / f"{release_id}.sfumato").is_file()), None)


def rescued_parts(releases: Sequence[Release], what: str, error: BaseException, *, ledger: Path | None) -> Undelivered:
    """The same for the releases of several parts: in a folder of their own, numbered in the order of the parts."""
    folder = releases[0].id
    kept = _keep({f"{folder}/{number:05}.sfumato": one for number, one in enumerate(releases, 1)}, ledger)
    kept = None if kept is None else kept.parent
    said = (
        f"The {len(releases)} releases are not lost: they are in '{kept}', numbered in the declared order of the "
        "parts. Move them where they belong; they have been paid for"
    )
    return _undelivered(what, error, "the releases of all parts were", kept, said)


def _keep(named: Mapping[str, Release], ledger: Path | None) -> Path | None:
    """The last file, once all are in one outbox; None where there is room in none."""
    for outbox in _folders(ledger):
        with suppress(OSError):
            for name, release in named.items():
                kept = outbox / name
                kept.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
                with replacing(kept, mode=0o600) as out:
                    out.write(as_bytes(release))
            return kept
    return None


def _undelivered(what: str, error: BaseException, charged: str, kept: Path | None, said: str) -> Undelivered:
    why = (error.strerror if isinstance(error, OSError) else None) or str(error) or type(error).__name__
    begin = f"{what} after {charged} charged: {why.rstrip('.')}."
    if kept is not None:
        return Undelivered(f"{begin} {said}, so do not publish again.", kept)
    return Undelivered(
        f"{begin} Neither could an outbox, so what was charged is lost with its budget. Free space on the disks, and "
        "look at the ledger before publishing again.",
        None,
    )


def _folders(ledger: Path | None) -> list[Path]:
    state = os.environ.get("XDG_STATE_HOME") or ""
    home = Path(state) if Path(state).is_absolute() else Path("~/.local/state").expanduser()
    beside = [] if ledger is None else [ledger.with_name(f"{ledger.name}.outbox")]
    return [*beside, home / "sfumato" / "outbox", Path(tempfile.gettempdir()) / f"sfumato-outbox-{os.getpid()}"]
