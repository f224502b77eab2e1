"""Files that are either the old one or the new one, whole, whatever happens in between."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO


@contextmanager
def replacing(path: str | Path, *, mode: int = 0o666) -> Iterator[BinaryIO]:
    """A binary file to write to, which takes the place of `path` when the block ends well.

    The bytes go to a temporary file in the same directory, reach the disk, and are then renamed in one step. When
    the block or the disk fails, nothing appears under `path`, an older file there is untouched, and the temporary
    one is removed. The file gets the permissions `mode` less what this process masks, by default those of any new
    file.
    """
    target = Path(path)
    temporary = target.with_name(f".{target.name}.{secrets.token_hex(6)}.part")
    handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), mode)
    try:
        with os.fdopen(handle, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(target)
    except BaseException:
        with suppress(FileNotFoundError):
            temporary.unlink()
        raise
    settle(target.parent)


def settle(directory: Path) -> None:
    """Make the names in a directory durable, new, renamed and removed, where the system lets it be synchronised."""
    with suppress(OSError):
        handle = os.open(directory, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
