"""Files that are either the old one or the new one, whole, whatever happens in between."""

from __future__ import annotations

import errno
import os
import secrets
import stat
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
    sync_folder(target.parent)


def sync_folder(directory: Path) -> None:
    """Make the names in a directory durable, new, renamed and removed, where the system lets it be synchronised."""
    with suppress(OSError):
        handle = os.open(directory, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def make_folder(folder: Path) -> None:
    """Make a folder, and those above it that are missing, durably: what is put there is not lost with its name."""
    missing = [one for one in (folder, *folder.parents) if not one.exists()]
    folder.mkdir(parents=True, exist_ok=True)
    for made in reversed(missing):
        sync_folder(made.parent)


def create_private(path: Path, content: bytes) -> bool:
    """Make a file that its owner alone may read; False where one is there already, which stays as it is.

    It is made under another name and linked into place: nobody ever reads half of it, and of two makers one makes it.
    """
    draft = path.with_name(f".{path.name}.{secrets.token_hex(6)}.part")
    handle = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o600)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        try:
            os.link(draft, path)
        except FileExistsError:
            return False
    finally:
        draft.unlink(missing_ok=True)
    sync_folder(path.parent)
    return True


def read_private(path: Path, most: int) -> tuple[bytes, int | None]:
    """(the first `most` bytes of a file, its permissions where others may open it, else None)."""
    with path.open("rb") as file:
        mode = stat.S_IMODE(os.fstat(file.fileno()).st_mode)
        return file.read(most), mode if os.name == "posix" and mode & 0o077 else None


class Reserved:
    """A file that can be written, proven before anything is spent on what it is to hold.

    It is made under a temporary name in the folder of `path`, with `room` bytes that the disk has set aside, and stays
    open. `fill` gives it its content and then the place of `path`, in one step; leaving the `with` block without that
    removes it. Raises OSError where it cannot be made.
    """

    def __init__(self, path: str | Path, *, room: int, mode: int = 0o666) -> None:
        self.path = Path(path)
        self._temporary = self.path.with_name(f".{self.path.name}.{secrets.token_hex(6)}.part")
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
        self._handle = os.open(self._temporary, flags, mode)
        self._open = True
        try:
            _set_aside(self._handle, room)
        except BaseException:
            self.discard()
            raise

    def fill(self, content: bytes) -> None:
        """Write the content, make it durable, and put it in the place of the path."""
        os.lseek(self._handle, 0, os.SEEK_SET)
        left = memoryview(content)
        while left:
            left = left[os.write(self._handle, left) :]
        os.ftruncate(self._handle, len(content))
        os.fsync(self._handle)
        os.close(self._handle)
        self._open = False
        self._temporary.replace(self.path)
        sync_folder(self.path.parent)

    def discard(self) -> None:
        """Remove what was not filled."""
        if self._open:
            os.close(self._handle)
            self._open = False
        with suppress(OSError):
            self._temporary.unlink()

    def __enter__(self) -> Reserved:
        return self

    def __exit__(self, *_: object) -> None:
        self.discard()


def _set_aside(handle: int, room: int) -> None:
    """Make the disk keep so many bytes for a file."""
    if hasattr(os, "posix_fallocate"):
        try:
            os.posix_fallocate(handle, 0, room)
            return
        except OSError as error:
            if error.errno not in (errno.EOPNOTSUPP, errno.EINVAL, errno.ENOSYS):
                raise
    block = bytes(1 << 20)
    while room > 0:
        room -= os.write(handle, block[:room])
