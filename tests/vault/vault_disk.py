"""A process that dies before its n-th write, as its disk sees it.

Every write of a ledger or a vault is counted: a file made, written to, synchronised, renamed, linked or removed, and
every statement of SQLite that changes something. Before the n-th one the directory is copied, and an exception that
nobody catches unwinds the program. What its handlers still tidy up does not count: the copy takes the directory's
place, drafts, journals and all.

A *kill* leaves what was written. A *power cut* also takes away what nobody had synchronised: bytes of a file, and
renames and removals in a directory.
"""

from __future__ import annotations

import io
import os
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from ledger_worker import interrupt_statements

from sfumato.ledger import claim

_READING = ("SELECT", "PRAGMA", "BEGIN")


class Killed(BaseException):
    """What a test does to a program."""


@dataclass(frozen=True)
class Death:
    """Before which write a process dies, counted from 1, and whether the machine loses its power too.

    `among` are the writes that count: those whose names begin so.
    """

    number: int
    power_cut: bool = False
    among: str = ""


@contextmanager
def dying(directory: Path, death: Death | None) -> Iterator[list[str]]:
    """A block that dies, with Killed, before a write under `directory`, or before it ends. Gives the writes so far."""
    disk = _Disk(directory, death)
    try:
        with pytest.MonkeyPatch.context() as patched:
            disk.spy(patched)
            yield disk.writes
            disk.strike("return")  # all is written, and nobody has heard of it
    except Killed:
        shutil.rmtree(directory)
        disk.image.rename(directory)
        raise


class _Disk:
    """What a directory would hold if its process died now."""

    def __init__(self, directory: Path, death: Death | None) -> None:
        self.directory, self.death = directory, death
        self.image = directory.with_name(directory.name + ".image")
        self.writes: list[str] = []
        self.dead = False
        self.counted = 0
        self.opened: dict[int, Path] = {}
        self.unwritten: set[Path] = set()  # files with bytes that nobody synchronised
        self.unsettled: dict[Path, bytes | None] = {}  # names that changed since, and what they stood for

    def strike(self, what: str) -> None:
        if self.dead:
            return
        self.writes.append(what)
        if self.death is None or not what.startswith(self.death.among):
            return
        self.counted += 1
        if self.counted == self.death.number:
            self.dead = True
            shutil.copytree(self.directory, self.image)
            if self.death.power_cut:
                self._forget()
            raise Killed(what)

    def _forget(self) -> None:
        """Take from the image what nobody had synchronised."""
        for path in self.unwritten & set(self.directory.rglob("*")):
            self._imaged(path).write_bytes(b"")
        for path, before in self.unsettled.items():
            if before is None:
                lost = self._imaged(path)
                shutil.rmtree(lost) if lost.is_dir() else lost.unlink(missing_ok=True)
            elif self._imaged(path).parent.is_dir():  # or it went with its directory
                self._imaged(path).write_bytes(before)

    def _imaged(self, path: Path) -> Path:
        return self.image / path.relative_to(self.directory)

    def _renaming(self, path: Path) -> None:
        if not self.dead and not path.is_dir():  # a directory that is there is not made again
            self.unsettled.setdefault(path, path.read_bytes() if path.exists() else None)

    # ---------------------------------------------------------------- what the program sees

    def spy(self, patched: pytest.MonkeyPatch) -> None:
        real_open, real_replace = os.open, os.replace
        real_unlink, real_link, real_mkdir = os.unlink, os.link, os.mkdir
        real_renamed = claim._renamed

        def opened(path: Any, flags: int, *rest: Any, **named: Any) -> int:
            if flags & os.O_CREAT:
                self.strike(f"open {Path(path).name}")
            handle = real_open(path, flags, *rest, **named)
            self.opened[handle] = Path(path)
            return handle

        def fsync(handle: int) -> None:  # in name alone: it is the slowest step, and this machine stays on
            path = self.opened[handle]
            self.strike(f"fsync {path.name}")
            self.unwritten.discard(path)
            self.unsettled = {name: before for name, before in self.unsettled.items() if name.parent != path}

        def replace(source: Any, target: Any) -> None:
            self.strike(f"rename {Path(target).name}")
            self._renaming(Path(target))
            real_replace(source, target)
            if Path(source) in self.unwritten:
                self.unwritten.add(Path(target))

        def unlink(path: Any, **named: Any) -> None:
            self.strike(f"remove {Path(path).name}")
            self._renaming(Path(path))
            real_unlink(path, **named)

        def link(source: Any, target: Any) -> None:
            self.strike(f"link {Path(target).name}")
            self._renaming(Path(target))
            real_link(source, target)

        def renamed(draft: Path, path: Path) -> bool:
            self.strike(f"rename {path.name}")
            self._renaming(path)
            return real_renamed(draft, path)

        def mkdir(path: Any, *rest: Any, **named: Any) -> None:
            self.strike(f"mkdir {Path(path).name}")
            self._renaming(Path(path))
            real_mkdir(path, *rest, **named)

        patched.setattr(os, "open", opened)
        patched.setattr(os, "fsync", fsync)
        patched.setattr(os, "replace", replace)
        patched.setattr(os, "unlink", unlink)
        patched.setattr(os, "link", link)
        patched.setattr(os, "mkdir", mkdir)
        patched.setattr(claim, "_renamed", renamed)
        patched.setattr(os, "fdopen", lambda handle, mode: _File(handle, mode, self._writing(handle)))
        patched.setattr(sqlite3, "connect", sqlite3.connect)  # put back when the block ends
        interrupt_statements(self._statement)

    def _writing(self, handle: int) -> Callable[[], None]:
        def write() -> None:
            self.strike(f"write {self.opened[handle].name}")
            self.unwritten.add(self.opened[handle])

        return write

    def _statement(self, _: int, statement: str) -> None:
        if not statement.startswith(_READING):
            self.strike(" ".join(statement.split()[:3]))


class _File(io.FileIO):
    """A file without a buffer: what is written is written."""

    def __init__(self, handle: int, mode: str, before: Callable[[], None]) -> None:
        super().__init__(handle, mode)
        self._before = before

    def write(self, data: Any) -> int:
        self._before()
        return super().write(data)
