"""The file itself, whatever it is called: locked by its inode, and refused when it has more than one name.

Why names matter: the journal that undoes half a transaction is found by the name of the file. Under a second name (a
hard link, or a file mounted by itself into a container) nobody would find it, and what a killed process left half
written would be taken for whole. A symbolic link is no second name: SQLite follows it, and so does this module.

Why the inode is locked here, beside SQLite's own locks, which are on the inode as well: a process drops those as soon
as it closes *any* descriptor of the file, as a plain copy of it made in another thread does. Locks of an open file
description stay, where the system has them (Linux). They are taken on a byte that SQLite does not use.

The other way round, no descriptor that is opened here is closed while this process holds another one of the same
inode: they are closed together, when the last transaction on it is over.
"""

from __future__ import annotations

import errno
import os
import random
import stat
import struct
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from sfumato.errors import LedgerError

_BYTE = 0x5366_756D_0000  # far behind SQLite's lock bytes, and behind any ledger
_PAUSE = 0.001, 0.01  # seconds between two tries, the shortest and the longest


@dataclass(slots=True)
class _Shared:
    """What this process has open of one inode."""

    users: int = 0
    idle: list[int] = field(default_factory=list)


_OPEN: dict[tuple[int, int], _Shared] = {}
# Not waited for by a fork: whoever holds it holds a gate as well (`gates`), which a fork does wait for, and the two
# could be taken in either order. A forked child begins with nothing open.
_MUTEX = threading.Lock()


def _begin_anew() -> None:
    global _MUTEX
    _MUTEX = threading.Lock()
    _OPEN.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_begin_anew)


@dataclass(frozen=True, slots=True)
class Held:
    """A file that is locked and has one name: `path`, where it was found after all symbolic links."""

    path: Path
    inode: tuple[int, int]
    handle: int | None

    def require_here(self, done: str) -> None:
        """Refuse a file that was moved, exchanged or linked since; `done` says what had happened by then."""
        try:
            now = self.path.stat()
        except OSError:
            now = None
        if now is None or (now.st_dev, now.st_ino) != self.inode:
            raise LedgerError(
                f"The ledger '{self.path}' was moved, deleted or replaced while it was in use. {done} Put the ledger "
                "back, and try again."
            )
        _require_one_name(self.path, now)

    def header(self) -> bytes:
        """The first bytes of the file; none where it could not be opened."""
        return b"" if self.handle is None else _read(self.handle, 100)


@contextmanager
def held(path: Path, *, alone: bool, timeout: float) -> Iterator[Held]:
    """The file at a path, held against writers, or (`alone`) against everyone else.

    Raises TimeoutError when another holds it for too long, OSError when it is not there. What cannot be opened at all
    is left to SQLite, which says why.
    """
    deadline = time.monotonic() + timeout
    while True:
        real = Path(os.path.realpath(path))
        seen = real.stat()
        if not (stat.S_ISREG(seen.st_mode) or stat.S_ISDIR(seen.st_mode)):
            raise OSError(errno.EINVAL, "it is not a file")
        if stat.S_ISDIR(seen.st_mode):
            yield Held(real, (seen.st_dev, seen.st_ino), None)
            return
        handle, inode = _opened(real, alone)
        try:
            if handle is not None and not _locked(handle, alone, deadline):
                raise TimeoutError
            # Whoever waited may hold what is no longer the ledger.
            here = real.stat()
            if (here.st_dev, here.st_ino) == inode:
                _require_one_name(real, here)
                if is_mount(real):
                    raise LedgerError(
                        f"The ledger '{real}' is mounted by itself, as a file. Nothing was drawn or recorded. Under "
                        "its other name it would have another journal, and spent budget could be forgotten: mount its "
                        "folder instead."
                    )
                yield Held(real, inode, handle)
                return
            if time.monotonic() >= deadline:
                raise TimeoutError
        finally:
            _closed(handle, inode)


def is_mount(path: Path) -> bool:
    """Whether a file is a mount point of its own."""
    if sys.platform != "linux":
        return os.name != "nt" and path.stat().st_dev != path.parent.stat().st_dev
    mine, parents = _mount_id(path), _mount_id(path.parent)
    if mine is not None and parents is not None:
        return mine != parents
    return str(path) in _mount_points()


def _require_one_name(path: Path, found: os.stat_result) -> None:
    if found.st_nlink <= 1:
        return
    others = _names_beside(path, found)
    known = f" Beside it is {others}." if others else ""
    raise LedgerError(
        f"The ledger '{path}' has {found.st_nlink} names (hard links). Nothing was drawn or recorded. Under another "
        f"name it would have another journal, and spent budget could be forgotten.{known} Remove the other names; for "
        "a copy, use: sfumato ledger backup."
    )


def _names_beside(path: Path, found: os.stat_result) -> str:
    """The other names in the same folder: where a program was killed while it made a ledger, there is one."""
    names = []
    with suppress(OSError), os.scandir(path.parent) as entries:
        names = [e.name for e in entries if e.name != path.name and e.inode() == found.st_ino and e.is_file()]
    return ", ".join(f"'{name}'" for name in sorted(names))


# -------------------------------------------------------------------- descriptors


def _opened(path: Path, alone: bool) -> tuple[int | None, tuple[int, int]]:
    flags = getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0) | getattr(os, "O_NOFOLLOW", 0)
    with _MUTEX:
        for mode in (os.O_RDWR, os.O_RDONLY) if alone else (os.O_RDONLY,):
            try:
                handle = os.open(path, mode | flags)
            except OSError:
                continue
            found = os.fstat(handle)
            inode = found.st_dev, found.st_ino
            _OPEN.setdefault(inode, _Shared()).users += 1
            return handle, inode
    found = path.stat()
    return None, (found.st_dev, found.st_ino)


def _closed(handle: int | None, inode: tuple[int, int]) -> None:
    if handle is None:
        return
    with _MUTEX:
        shared = _OPEN[inode]
        shared.users -= 1
        shared.idle.append(handle)
        with suppress(OSError):
            _lock(handle, _UNLOCK)
        if shared.users == 0:
            del _OPEN[inode]
            for one in shared.idle:
                os.close(one)


def _read(handle: int, size: int) -> bytes:
    if hasattr(os, "pread"):
        return os.pread(handle, size, 0)
    os.lseek(handle, 0, os.SEEK_SET)
    return os.read(handle, size)


# -------------------------------------------------------------------- locks

if sys.platform == "linux":
    import fcntl

    _UNLOCK = fcntl.F_UNLCK
    _SHARED, _ALONE = fcntl.F_RDLCK, fcntl.F_WRLCK

    def _lock(handle: int, kind: int) -> None:
        """Take or leave the lock of an open file description; raises BlockingIOError where another has it."""
        # struct flock: type, whence, start, length, process
        request = struct.pack("hhqqi0q", kind, os.SEEK_SET, _BYTE, 1, 0)
        fcntl.fcntl(handle, fcntl.F_OFD_SETLK, request)

else:
    _UNLOCK, _SHARED, _ALONE = 0, 1, 2

    def _lock(handle: int, kind: int) -> None:
        """Nothing: SQLite's own locks are on the inode."""


def _locked(handle: int, alone: bool, deadline: float) -> bool:
    """Wait for the lock; False when the time is over."""
    pause = _PAUSE[0]
    while True:
        try:
            _lock(handle, _ALONE if alone else _SHARED)
            return True
        except (BlockingIOError, PermissionError):  # both say that another has it
            if time.monotonic() >= deadline:
                return False
        except OSError:  # a descriptor that may only read, or a file system without such locks: SQLite's own remain
            return True
        time.sleep(pause * random.uniform(0.5, 1))
        pause = min(2 * pause, _PAUSE[1])


# -------------------------------------------------------------------- mounts


def _mount_id(path: Path) -> str | None:
    """The mount that a name belongs to, from the kernel; None where it does not say."""
    try:
        # O_PATH: closing such a descriptor drops no locks.
        handle = os.open(path, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC)
    except (OSError, AttributeError):
        return None
    try:
        lines = Path(f"/proc/self/fdinfo/{handle}").read_text(encoding="ascii").splitlines()
    except OSError:
        return None
    finally:
        os.close(handle)
    return next((line.split()[1] for line in lines if line.startswith("mnt_id:")), None)


def _mount_points() -> set[str]:
    """All mount points that this process sees."""
    with suppress(OSError):
        lines = Path("/proc/self/mountinfo").read_bytes().splitlines()
        return {os.fsdecode(_unescaped(line.split(b" ")[4])) for line in lines if line.count(b" ") > 4}
    return set()


def _unescaped(name: bytes) -> bytes:
    """A name as mountinfo has it: blanks and backslashes are written in octal."""
    for code in (b" ", b"\t", b"\n", b"\\"):
        name = name.replace(b"\\%03o" % code[0], code)
    return name
