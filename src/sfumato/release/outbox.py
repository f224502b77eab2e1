"""What was charged is never lost for want of a place: a release that cannot be written goes to an outbox.

The outbox is a folder beside the ledger, `budget.db.outbox`, or, where that cannot be written either, in the user's
state folder ($XDG_STATE_HOME/sfumato/outbox), or a temporary one; its files are for their owner alone until they are
moved to where they belong. Nothing in a release is private: it is what was to be published.
"""

from __future__ import annotations

import os
import tempfile
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
    why = (error.strerror if isinstance(error, OSError) else None) or str(error) or type(error).__name__
    for folder in _folders(ledger):
        with suppress(OSError):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            kept = folder / f"{release.id}.sfumato"
            with replacing(kept, mode=0o600) as out:
                out.write(as_bytes(release))
            return Undelivered(
                f"{what} after the release was charged: {why.rstrip('.')}. The release is not lost: it is '{kept}'. "
                "Move it where it belongs; it has been paid for, so do not publish again.",
                kept,
            )
    return Undelivered(
        f"{what} after the release was charged: {why.rstrip('.')}. Neither could an outbox, so the release is lost "
        "with its budget. Free space on the disks, and look at the ledger before publishing again.",
        None,
    )


def _folders(ledger: Path | None) -> list[Path]:
    state = os.environ.get("XDG_STATE_HOME") or ""
    home = Path(state) if Path(state).is_absolute() else Path("~/.local/state").expanduser()
    beside = [] if ledger is None else [ledger.with_name(f"{ledger.name}.outbox")]
    return [*beside, home / "sfumato" / "outbox", Path(tempfile.gettempdir()) / f"sfumato-outbox-{os.getpid()}"]
