"""What the steps of a stream come to, so that one that was deleted or edited is noticed.

Every row of `step` has a mark, a hash of all that it says, and marks add up. Their sum is kept for the stream, and for
every stretch of its time, a part of a window. A charge reads the stretches that its window touches, and adds to one of
them: it takes as long after a million steps as after ten. Opening a stream adds up all of it.

The sums are against accidents, restores by halves, and hands that do not know of them: they are no seal.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import lru_cache
from hashlib import sha256

from sfumato.errors import SfumatoError
from sfumato.ledger.database import Connection
from sfumato.ledger.kept import require_kept
from sfumato.ledger.schema import damaged
from sfumato.promise.window import Window

# time, level, epsilon, label, release_id, recorded, weight, floor
Row = tuple[int, int, str, str, str | None, str, str | None, str | None]
Sum = tuple[int, str]  # how many rows, and the sum of their marks in hexadecimal digits

NOTHING: Sum = (0, f"{0:064x}")
MANY = 100_000  # steps of a stream that are all added up whenever its ledger is opened

_SPAN = (1 << 63) - 1
_COLUMNS = "time, level, epsilon, label, release_id, recorded, weight, floor"
ROWS = f"SELECT {_COLUMNS} FROM step WHERE stream = ? AND time BETWEEN ? AND ? ORDER BY time, level"
_ALL = f"SELECT {_COLUMNS} FROM step WHERE stream = ? ORDER BY time, level"
_ROW = f"SELECT {_COLUMNS} FROM step WHERE stream = ? AND time = ? AND level = ?"
_LAST = "SELECT time FROM step WHERE stream = ? ORDER BY time DESC LIMIT 1"
_HEAD = "SELECT steps, last, digest FROM stream_sum WHERE stream = ?"
_SUMS = "SELECT number, steps, digest FROM stretch WHERE stream = ? AND number BETWEEN ? AND ?"


def begin(connection: Connection, stream: int) -> None:
    """The sum of a stream that has no steps yet."""
    connection.execute(
        "INSERT INTO stream_sum (stream, steps, last, digest) VALUES (?, ?, NULL, ?)", (stream, *NOTHING)
    )
    require_kept(connection.execute(_HEAD, (stream,)).fetchone() == (0, None, NOTHING[1]), "a stream")


def adopt(connection: Connection, stream: int, name: str, window: Window) -> None:
    """Add up the steps of a stream that is older than the sums. The caller holds a transaction that writes."""
    if _head(connection, stream, name) is not None:
        return
    whole, last = NOTHING, None
    for number, (part, time) in _added(connection.execute(_ALL, (stream,)), window).items():
        whole, last = _more(whole, part), time
        connection.execute(
            "INSERT INTO stretch (stream, number, steps, digest) VALUES (?, ?, ?, ?)", (stream, number, *part)
        )
    _set_head(connection, stream, whole, last)


def renew(connection: Connection, stream: int, name: str, window: Window) -> None:
    """Add up the steps again after columns were filled; nothing for a stream that was not added up yet.

    The caller has compared the sums in the same transaction, and changed no time.
    """
    head = _head(connection, stream, name)
    if head is None:
        return
    added = _added(connection.execute(_ALL, (stream,)), window)
    for number, (part, _) in added.items():
        connection.execute(
            "UPDATE stretch SET steps = ?, digest = ? WHERE stream = ? AND number = ?", (*part, stream, number)
        )
    whole = NOTHING
    for part, _ in added.values():
        whole = _more(whole, part)
    _set_head(connection, stream, whole, head[1])
    require_sound(connection, stream, name, window)


def record(connection: Connection, stream: int, name: str, window: Window, row: Row) -> None:
    """Add a row of `step`, which has just been written, to the sums; and see that all of it is there."""
    time, level = row[:2]
    require_kept(connection.execute(_ROW, (stream, time, level)).fetchone() == row, "a step of a stream")
    head = _head(connection, stream, name)
    if head is None:
        return adopt(connection, stream, name, window)  # the row among all the others
    mark, number = (1, f"{_mark(row):064x}"), time // _width(window)
    known = _sums(connection, stream, number, number).get(number)
    part = _more(known or NOTHING, mark)
    if known is None:
        connection.execute(
            "INSERT INTO stretch (stream, number, steps, digest) VALUES (?, ?, ?, ?)", (stream, number, *part)
        )
    else:
        connection.execute(
            "UPDATE stretch SET steps = ?, digest = ? WHERE stream = ? AND number = ?", (*part, stream, number)
        )
    require_kept(_sums(connection, stream, number, number) == {number: part}, "a sum of a stream")
    whole, last = head
    _set_head(connection, stream, _more(whole, mark), time if last is None else max(last, time))
    return None


def recorded(connection: Connection, stream: int, name: str) -> int:
    """How many rows were recorded, levels of steps among them; none for a stream that was not added up yet."""
    head = _head(connection, stream, name)
    return 0 if head is None else head[0][0]


def read(connection: Connection, stream: int, name: str, window: Window, first: int, last: int) -> list[Row]:
    """The rows from one tick to another, both included; what they say is what was recorded, or damage."""
    width = _width(window)
    low, high = first // width, last // width
    bounds = max(low * width, -_SPAN - 1), min((high + 1) * width - 1, _SPAN)
    rows: list[Row] = connection.execute(ROWS, (stream, *bounds)).fetchall()
    head = _head(connection, stream, name)
    if head is not None:
        found = {number: part for number, (part, _) in _added(rows, window).items()}
        (newest,) = connection.execute(_LAST, (stream,)).fetchone() or (None,)
        if found != _sums(connection, stream, low, high) or head[1] != newest:
            raise _other(name)
    return [row for row in rows if first <= row[0] <= last]


def require_sound(connection: Connection, stream: int, name: str, window: Window) -> None:
    """Refuse a stream whose steps are not those that were recorded, all of them."""
    head = _head(connection, stream, name)
    if head is None:
        return
    added = _added(connection.execute(_ALL, (stream,)), window)
    whole, last = NOTHING, None
    for part, time in added.values():
        whole, last = _more(whole, part), time
    found = {number: part for number, (part, _) in added.items()}
    if head != (whole, last) or found != _sums(connection, stream, -_SPAN - 1, _SPAN):
        raise _other(name)


def require_all_sound(connection: Connection, *, whole: bool = False) -> None:
    """The same for every stream of a ledger; a long one is counted here, and added up when it is opened itself, or when
    the `whole` ledger is checked.
    """
    lost = "SELECT 1 FROM stream_sum WHERE stream NOT IN (SELECT id FROM stream) LIMIT 1"
    stray = "SELECT 1 FROM stream WHERE account NOT IN (SELECT id FROM account) LIMIT 1"
    if connection.execute(lost).fetchone() is not None:
        raise damaged("a stream is missing whose steps were recorded")
    if connection.execute(stray).fetchone() is not None:
        raise damaged("a stream belongs to no account")
    query = "SELECT id, name, window_kind, window_size FROM stream ORDER BY id"
    for stream, name, kind, size in connection.execute(query).fetchall():
        head = _head(connection, stream, name)
        if head is None:
            continue
        (count,) = connection.execute("SELECT count(*) FROM step WHERE stream = ?", (stream,)).fetchone()
        if count != head[0][0]:
            raise _other(name)
        if whole or count <= MANY:
            try:
                window = Window(kind, size)
            except SfumatoError as error:
                raise damaged(f"stream '{name}' cannot be read") from error
            require_sound(connection, stream, name, window)


def _width(window: Window) -> int:
    """Ticks of a stretch: so few that a window is read with little around it, and so many that there are few."""
    return max(8, window.size // 8)


@lru_cache(maxsize=1 << 14)  # the steps of a window are looked at by every charge in it
def _mark(row: Row) -> int:
    time, level, epsilon, label, release_id, recorded, weight, floor = row
    told = "" if release_id is None else f"={release_id}"
    # Only a label and a name can hold a comma, and the length of the label is told.
    text = f"{time},{level},{epsilon},{recorded},{len(label)},{label}{told}"
    if weight is not None or floor is not None:  # without them a row says what it said before there were any
        text = f"weight {weight or ''}, floor {floor or ''}, {text}"
    return int.from_bytes(sha256(text.encode("utf-8", "surrogatepass")).digest(), "big")


def _more(first: Sum, second: Sum) -> Sum:
    try:
        digest = (int(first[1], 16) + int(second[1], 16)) % (1 << 256)
        return first[0] + second[0], f"{digest:064x}"
    except (TypeError, ValueError) as error:
        raise damaged("what the steps of a stream come to cannot be read") from error


def _added(rows: Iterable[Row], window: Window) -> dict[int, tuple[Sum, int]]:
    """(sum, latest time) of every stretch that has a row, in order of time; the rows are."""
    width = _width(window)
    totals: dict[int, list[int]] = {}
    try:
        for row in rows:
            total = totals.setdefault(row[0] // width, [0, 0, 0])
            total[0] += 1
            total[1] += _mark(row)
            total[2] = row[0]
    except TypeError as error:  # SQLite keeps words where numbers belong
        raise damaged("a step of a stream cannot be read") from error
    return {number: ((count, f"{sum_ % (1 << 256):064x}"), time) for number, (count, sum_, time) in totals.items()}


def _sums(connection: Connection, stream: int, low: int, high: int) -> dict[int, Sum]:
    rows: Iterator[tuple[int, int, str]] = iter(connection.execute(_SUMS, (stream, low, high)))
    return {number: (steps, digest) for number, steps, digest in rows}


def _head(connection: Connection, stream: int, name: str) -> tuple[Sum, int | None] | None:
    """(sum, latest time) of a stream; None for one that was not added up yet."""
    found = connection.execute(_HEAD, (stream,)).fetchone()
    if found is None or (found[0] is None) != (found[2] is None):
        raise _other(name)
    steps, last, digest = found
    return None if steps is None else ((steps, digest), last)


def _set_head(connection: Connection, stream: int, whole: Sum, last: int | None) -> None:
    connection.execute(
        "UPDATE stream_sum SET steps = ?, last = ?, digest = ? WHERE stream = ?", (whole[0], last, whole[1], stream)
    )
    require_kept(connection.execute(_HEAD, (stream,)).fetchone() == (whole[0], last, whole[1]), "the sum of a stream")


def _other(name: str) -> Exception:
    return damaged(f"the steps of stream '{name}' are not those that were recorded")
