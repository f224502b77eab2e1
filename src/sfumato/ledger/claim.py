"""Giving a finished file its name: in one step, never in the place of another file, and never with two names at once.

A hard link and an unlink would do it as well, but a kill between the two leaves a file with two names.
"""

from __future__ import annotations

import ctypes
import errno
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sfumato.files import sync_folder

_NOREPLACE = 1  # RENAME_NOREPLACE of renameat2
_HERE = -100  # AT_FDCWD: paths are as open() takes them
_UNABLE = {errno.ENOSYS, errno.EINVAL, errno.ENOTSUP, errno.EPERM}  # this system, or this file system, has none


def claim(draft: Path, path: Path) -> bool:
    """Name a finished file, durably; False, and nothing happened, where there is a file of that name already."""
    handle = os.open(draft, os.O_RDWR)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
    try:
        if not _renamed(draft, path):
            with _folder_held(path.parent):  # two of us exclude each other
                if os.path.lexists(path):
                    return False
                draft.rename(path)  # Windows itself refuses where a file is
    except FileExistsError:
        return False
    sync_folder(path.parent)
    return True


def _renamed(draft: Path, path: Path) -> bool:
    """The kernel's own way; False where it has none."""
    if sys.platform != "linux":
        return False
    rename = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)
    if rename is None:
        return False
    if rename(_HERE, os.fsencode(draft), _HERE, os.fsencode(path), ctypes.c_uint(_NOREPLACE)) == 0:
        return True
    code = ctypes.get_errno()
    if code in _UNABLE:
        return False
    raise OSError(code, os.strerror(code), str(path))


@contextmanager
def _folder_held(folder: Path) -> Iterator[None]:
    """Alone among those who name files in a folder this way, where the system locks folders."""
    if os.name == "nt":
        yield
        return
    import fcntl

    handle = os.open(folder, os.O_RDONLY)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX)
        except OSError as error:
            if error.errno not in (errno.ENOLCK, errno.ENOTSUP, errno.EINVAL, errno.EBADF):
                raise
        yield
    finally:
        os.close(handle)
