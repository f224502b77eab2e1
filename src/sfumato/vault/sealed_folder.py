"""The directory under a vault: sealed files by release, replaced whole, used by one at a time.

Each release has a file for its state, one for the level that is staged, one for every finished release, and one that
is locked. Files are readable by their owner alone. Whatever the system refuses is a VaultError.
"""

from __future__ import annotations

import os
import re
import stat
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from sfumato.errors import InvalidInput, VaultError
from sfumato.files import replacing, sync_folder
from sfumato.locks import FileLock
from sfumato.vault.sealing import Kind, Seal, Sealer

_NAME = re.compile(r"[0-9A-Za-z][0-9A-Za-z_-]{0,127}")
_SEALED = re.compile(rf"({_NAME.pattern})\.(state|staged|(\d+)\.outbox)")

_HELD = threading.local()  # the locks that this thread holds, by their files, and the process that took them


class SealedFolder:
    """Where sealed files lie. Until `open_with` gives it a key it can only be looked at from outside."""

    def __init__(self, path: Path, timeout: float) -> None:
        self.path = path
        self.timeout = timeout

    def releases(self) -> dict[str, list[int]]:
        """The releases that have a file here, and the levels of those that are finished."""
        found: dict[str, list[int]] = {}
        with self._translated():
            if not self.path.exists():
                return {}
            self._require_own()
            for path in self.path.iterdir():
                if match := _SEALED.fullmatch(path.name):
                    found.setdefault(match[1], []).extend([int(match[3])] if match[3] else [])
        return {name: sorted(levels) for name, levels in sorted(found.items())}

    def open_with(self, sealer: Sealer) -> None:
        """Make the directory if it is missing, and use it under a key from now on."""
        self._sealer = sealer
        with self._translated():
            self.path.mkdir(mode=0o700, exist_ok=True)
            sync_folder(self.path.parent)  # files that reach the disk in a directory that did not are lost with it

    def holds(self, seal: Seal) -> bool:
        """Whether there is such a file."""
        return self._file(seal).exists()

    def read(self, seal: Seal) -> tuple[int, bytes] | None:
        """(level, content) of a sealed file, or None when there is none. The level is that in the file."""
        path = self._file(seal)
        with self._translated():
            try:
                sealed = path.read_bytes()
            except FileNotFoundError:
                return None
        return self._sealer.open(sealed, str(path), seal.kind, seal.release_id)

    def write(self, seal: Seal, pieces: Iterable[bytes]) -> None:
        """Replace a sealed file; the lock is held. Drafts that a killed writer left behind go first."""
        path = self._file(seal)
        with self._translated():
            for draft in self.path.glob(f".{path.name}.*.part"):
                draft.unlink(missing_ok=True)
            with replacing(path, mode=0o600) as file:
                self._sealer.write(file, seal, pieces)

    def remove(self, seal: Seal) -> None:
        """Take a sealed file away; the lock is held."""
        with self._translated():
            self._file(seal).unlink(missing_ok=True)

    @contextmanager
    def lock(self, name: str) -> Iterator[None]:
        """One process and thread at a time. Taken again freely by its holder; let go when the holder dies."""
        held = _HELD.__dict__  # of this thread
        path = self.path / f"{name}.lock"
        if held.get(str(path)) == os.getpid():  # a fork inherits the note, not the lock
            yield
            return
        try:
            lock = FileLock(path, self.timeout)
        except TimeoutError:
            raise VaultError(
                f"Another process is using release '{name}' of the vault '{self.path}'. Nothing was drawn or recorded. "
                "Try again when it has finished."
            ) from None
        except OSError as error:
            raise self._unusable(error) from error
        held[str(path)] = os.getpid()
        try:
            yield
        finally:
            held.pop(str(path), None)
            lock.release()

    def _file(self, seal: Seal) -> Path:
        ending = f"{seal.level}.outbox" if seal.kind is Kind.OUTBOX else seal.kind.name.lower()
        return self.path / f"{seal.release_id}.{ending}"

    def _require_own(self) -> None:
        status = self.path.stat()
        if not stat.S_ISDIR(status.st_mode):
            raise NotADirectoryError(20, "Not a directory")
        if os.name == "posix" and status.st_mode & 0o022:
            raise VaultError(
                f"The vault '{self.path}' can be changed by other users (permissions "
                f"{stat.S_IMODE(status.st_mode):o}). Nothing was drawn or recorded. Make it yours alone: "
                f"chmod 700 '{self.path}'."
            )

    @contextmanager
    def _translated(self) -> Iterator[None]:
        """The system's errors as ours."""
        try:
            yield
        except OSError as error:
            raise self._unusable(error) from error

    def _unusable(self, error: OSError) -> VaultError:
        return VaultError(
            f"The vault '{self.path}' could not be used: {error.strerror or error}. Nothing was handed out, and what "
            "was kept is as it was. Give a directory on a local disk with free space that you can read and write."
        )


def release_name(release_id: object) -> str:
    """A release id that can name a file of this directory and nothing else."""
    if not isinstance(release_id, str) or not _NAME.fullmatch(release_id):
        raise InvalidInput(
            f"release_id={release_id!r} cannot name a file of the vault: use at most 128 letters, digits, '-' and '_', "
            "the first a letter or digit. Nothing was drawn or recorded."
        )
    return release_id
