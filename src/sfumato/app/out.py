"""Where a command writes its release: proven before anything is counted, charged or drawn."""

from __future__ import annotations

import glob
import os
from collections.abc import Mapping
from pathlib import Path

from sfumato.errors import InvalidInput
from sfumato.files import Reserved
from sfumato.ledger.places import is_file
from sfumato.publication import Publication
from sfumato.release import Release, load
from sfumato.release.outbox import room_for

NOTHING = "Nothing was counted, drawn or recorded."


def prepared(out: Path, *, cells: int, apart: Mapping[str, str | Path | None], data: str | None = None) -> Reserved:
    """The file of a release, with room for it on the disk. `apart` names what it must not replace."""
    if out.is_dir() or not out.absolute().parent.is_dir():
        raise InvalidInput(f"--out {out} cannot be written there. {NOTHING}")
    for name, place in apart.items():
        if place is not None and _same(out, str(place)):
            raise InvalidInput(f"--out {out} is {name}, and would be replaced. {NOTHING} Choose another file.")
    if data is not None and any(_same(out, one) for one in _files(data)):
        raise InvalidInput(f"--out {out} is the data itself, and would be replaced. {NOTHING} Choose another file.")
    try:
        return Reserved(out, room=room_for(cells))
    except OSError as error:
        raise OSError(
            f"--out {out} cannot be written: {error.strerror or error}. {NOTHING} Free space there, or choose another "
            "place."
        ) from error


def already(asked: Publication, out: Path) -> Release | None:
    """The release of a publication that its file holds already; refused where it is that of another one."""
    if not out.exists():
        return None
    there = load(out)
    if (there.origin, there.guarantee.policy) != (asked.origin, asked.policy):
        raise InvalidInput(
            f"--out {out} holds a release of another publication, and --once replaces nothing. {NOTHING} Choose "
            "another file, or leave --once out."
        )
    return there


def ledger_file(place: str | None) -> Path | None:
    """The file of a ledger; None on a server, and without one."""
    return Path(place) if place is not None and is_file(place) else None


def _same(out: Path, place: str) -> bool:
    if "://" in place:
        return False
    if out.exists() and Path(place).exists():
        return out.samefile(place)
    return os.path.realpath(out) == os.path.realpath(place)


def _files(data: str) -> list[str]:
    """What is read, as the engine takes it: a file, the Parquet files of a folder, or a glob pattern."""
    if Path(data).is_dir():
        return [str(file) for file in Path(data).rglob("*.parquet")]
    return [data, *glob.glob(data, recursive=True)]  # noqa: PTH207 - as the engine reads it, absolute patterns as well
