"""One holder at a time, across threads and processes, and let go when the holder dies.

The lock is the operating system's, on a file that stays: removing it would let two holders in, one on the old file and
one on the new.
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

if sys.platform == "win32":
    import msvcrt

    def _take(handle: int) -> None:
        msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)

    def _leave(handle: int) -> None:
        msvcrt.locking(handle, msvcrt.LK_UNLCK, 1)

else:
    import fcntl

    def _take(handle: int) -> None:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)

    def _leave(handle: int) -> None:
        fcntl.flock(handle, fcntl.LOCK_UN)


_PAUSE = 0.01  # seconds between two tries


class FileLock:
    """A lock that is held from its making to `release`. Raises TimeoutError when another holds it for too long."""

    def __init__(self, path: Path, timeout: float) -> None:
        self._handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        self._owner = os.getpid()
        deadline = time.monotonic() + timeout
        try:
            while not self._taken():
                if time.monotonic() >= deadline:
                    raise TimeoutError
                time.sleep(_PAUSE)
        except BaseException:
            os.close(self._handle)
            raise

    def release(self) -> None:
        """Let go. A fork of the holder does not hold the lock, so it only closes its copy of the file."""
        try:
            if self._owner == os.getpid():
                _leave(self._handle)
        finally:
            os.close(self._handle)

    def _taken(self) -> bool:
        try:
            _take(self._handle)
        except (BlockingIOError, PermissionError):  # held elsewhere, as POSIX and as Windows say it
            return False
        return True
