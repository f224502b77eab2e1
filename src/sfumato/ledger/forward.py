"""A ledger of an earlier version made one of today, in the first transaction that writes to it.

New tables and columns are most of it. One thing has to be read and written anew: up to version 6 a stream kept the
weight of a step, and what the online algorithm would have given it, in the words of its label. They are read from there
once, by the expression that always read them, and stand in columns from then on; the labels stay as they are. A step
whose label says nothing of the kind was charged by somebody else, and its weight is not known.

The sums of a stream's steps (`stretches`) cover the columns. They are compared before anything is written, so that an
edited file is not made good, and come out anew in the same transaction.
"""

from __future__ import annotations

import math
import re

from sfumato.errors import SfumatoError
from sfumato.ledger import stretches
from sfumato.ledger.database import Connection
from sfumato.ledger.schema import FIRST_STEPS, FIRST_WEIGHTS, Dialect, closed_again, damaged, reopened, statements
from sfumato.promise.window import Window

_NOTE = re.compile(r"weight (\S+?)(?:, online (\S+))?")
_STREAMS = "SELECT id, name, window_kind, window_size FROM stream ORDER BY id"
_LABELS = "SELECT time, level, label FROM step WHERE stream = ? AND release_id IS NOT NULL ORDER BY time, level"

Told = tuple[str | None, str | None]  # weight and floor, as they are kept


def bring_forward(connection: Connection, say: Dialect, *, since: int) -> None:
    """Add to a ledger of version `since` (0: there is none) what it lacks. The caller holds the transaction."""
    for statement in statements(say, since=since):
        connection.execute(statement)
    if FIRST_STEPS <= since < FIRST_WEIGHTS:
        for stream, name, kind, size in connection.execute(_STREAMS).fetchall():
            try:
                window = Window(kind, size)
            except SfumatoError as error:
                raise damaged(f"stream '{name}' cannot be read") from error
            _weigh(connection, say, stream, name, window)


def _weigh(connection: Connection, say: Dialect, stream: int, name: str, window: Window) -> None:
    stretches.require_sound(connection, stream, name, window)
    labels = connection.execute(_LABELS, (stream,)).fetchall()
    told: dict[int, Told] = {}  # a level without words of its own is one of a step that has them
    for statement in reopened(say):
        connection.execute(statement)
    for time, level, label in labels:
        told[time] = known = _told(str(label)) or told.get(time, (None, None))
        if known != (None, None):
            where = (*known, stream, time, level)
            connection.execute(
                "UPDATE step SET weight = ?, floor = ? WHERE stream = ? AND time = ? AND level = ?", where
            )
    for statement in closed_again(say):
        connection.execute(statement)
    stretches.renew(connection, stream, name, window)


def _told(label: str) -> Told | None:
    match = _NOTE.fullmatch(label)
    try:
        read = [None if part is None else float(part) for part in match.groups()] if match else []
    except ValueError:
        return None
    if not read or any(part is not None and not 0 <= part < math.inf for part in read):
        return None
    weight, floor = (None if part is None else repr(part) for part in read)
    return weight, floor
