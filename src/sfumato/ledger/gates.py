"""Gates: in this process one at a time uses a database, and a fork leaves no connection in two processes.

Every database has a gate of its own, so that one that is busy or dead holds up nobody else.

- **Files.** SQLite must not see its own connections in a forked child, which would drop their locks. No connection
  outlives an operation, every operation holds the gate of its file, and a fork waits for all of those.
- **Servers.** A server may never answer, and no fork waits for one. The child closes its copies of the sockets
  instead, without a word to the server, so that a connection ends with the process that made it.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from pathlib import Path

_TABLE = threading.RLock()  # over what is below; nobody waits for a disk or a network while they hold it
_FILES: dict[Hashable, threading.RLock] = {}
_SERVERS: dict[Hashable, threading.RLock] = {}
_SOCKETS: set[int] = set()
_held: list[threading.RLock] = []  # by a fork that is under way


@contextmanager
def file_gate(path: Path) -> Iterator[None]:
    """Alone with a local file, among the threads of this process. A fork waits until it is left."""
    with _gate(_FILES, _file_itself(path)):
        yield


@contextmanager
def server_gate(place: str, patience: float) -> Iterator[None]:
    """Alone with a database of a server, among the threads of this process; TimeoutError after so many seconds."""
    gate = _gate(_SERVERS, place)
    if not gate.acquire(timeout=min(max(0.0, patience), threading.TIMEOUT_MAX)):
        raise TimeoutError
    try:
        yield
    finally:
        gate.release()


@contextmanager
def socket_of_this_process(handle: int, close: Callable[[], None]) -> Iterator[None]:
    """A socket that no child of a fork keeps; `close` ends it, and must not wait for the other side."""
    with _TABLE:
        _SOCKETS.add(handle)
    try:
        yield
    finally:
        with _TABLE:  # no fork in between: afterwards the number may stand for another file
            _SOCKETS.discard(handle)
            close()


def _gate(gates: dict[Hashable, threading.RLock], key: Hashable) -> threading.RLock:
    with _TABLE:
        return gates.setdefault(key, threading.RLock())


def _file_itself(path: Path) -> Hashable:
    """What stands for a file under all of its names, and for one that is still to be made."""
    try:
        status = path.stat()
    except OSError:
        return os.path.realpath(path)
    return status.st_dev, status.st_ino


def _before_fork() -> None:
    """Take the table and every file's gate, all or none: whoever holds a gate may want the table, or another gate."""
    waited: threading.RLock | None = None
    while True:
        if waited is not None:
            waited.acquire()  # with nothing else in hand
        _TABLE.acquire()  # whoever has it waits for nothing
        gates = list(_FILES.values())
        taken = []
        for gate in gates:
            if not gate.acquire(blocking=False):
                break
            taken.append(gate)
        if waited is not None:
            waited.release()
        if len(taken) == len(gates):
            _held[:] = taken
            return
        waited = gates[len(taken)]
        for gate in taken:
            gate.release()
        _TABLE.release()


def _after_in_parent() -> None:
    for gate in _held:
        gate.release()
    _held.clear()
    _TABLE.release()


def _after_in_child() -> None:
    _SERVERS.clear()  # held by threads that are not here
    for handle in _SOCKETS:
        with contextlib.suppress(OSError):
            os.close(handle)
    _SOCKETS.clear()
    _after_in_parent()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork, after_in_parent=_after_in_parent, after_in_child=_after_in_child)
