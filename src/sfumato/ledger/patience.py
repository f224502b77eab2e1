"""How long a server may be silent: counted here, because one that hangs does not count for itself.

Every answer starts the count anew, so that a long history may take as long to read as it takes.
"""

from __future__ import annotations

from collections.abc import Generator
from time import monotonic
from typing import Any

MARGIN = 3.0  # seconds for the server to say itself that a lock was not to be had in time
_LOOK = 0.1  # seconds between two looks at the clock


class Overdue(Exception):
    """The server said nothing for too long. What it will do with what it was sent is not known."""


def limit(raw: Any, patience: float) -> None:
    """Let no wait of a driver's connection last longer than so many seconds of silence.

    Neither an interruption from the keyboard waits: the driver would ask the server to stop first.
    """
    from psycopg import waiting

    def wait(steps: Generator[Any, Any, Any], *_: Any, **__: Any) -> Any:
        return waiting.wait(_impatient(steps, patience), raw.pgconn.socket, interval=_LOOK)

    raw.wait = wait


def _impatient(steps: Generator[Any, Any, Any], patience: float) -> Generator[Any, Any, Any]:
    """The driver's own steps; it is told at every look whether the socket had anything to say."""
    heard = monotonic()
    try:
        waits_for = next(steps)
        while True:
            ready = yield waits_for
            if ready:
                heard = monotonic()
            elif monotonic() - heard >= patience:
                raise Overdue
            waits_for = steps.send(ready)
    except StopIteration as ended:
        return ended.value
