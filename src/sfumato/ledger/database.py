"""What a ledger asks of the database under it: a file (`store`), or a server that many machines share (`postgres`).

Everything above speaks one small SQL, with `?` for values, and holds a connection for one operation at a time.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Protocol


class Rows(Protocol):
    """What a statement found."""

    def fetchone(self) -> Any:
        """The next row, or None."""

    def fetchall(self) -> list[Any]:
        """All rows that are left."""

    def __iter__(self) -> Iterator[Any]: ...


class Connection(Protocol):
    """A transaction that is under way."""

    def execute(self, statement: str, values: Sequence[Any] = ..., /) -> Rows:
        """Run one statement, its `?` filled with the values."""


class Database(Protocol):
    """Where a ledger is kept. Every failure is a LedgerError, and then nothing is drawn."""

    @property
    def place(self) -> str:
        """How messages name it. It holds no secret."""

    def exists(self) -> bool:
        """Whether something is kept there already."""

    def create_if_missing(self) -> bool:
        """Make an empty ledger, whole or not at all, unless there is one; says whether it did."""

    def outdated(self) -> bool:
        """Whether the ledger is of an earlier version; the next `write` gives it what it lacks."""

    def lags(self, connection: Connection) -> bool:
        """The same, as an operation sees it that is under way."""

    def require_sound(self, connection: Connection) -> None:
        """Look through all of the database, however long that takes, and refuse one that is damaged itself."""

    def copy_to(self, target: Path) -> None:
        """Write a consistent copy to a path where nothing is."""

    def require_whole(self, connection: Connection) -> None:
        """Refuse a database that is damaged itself, before its content is looked at."""

    def read(self) -> AbstractContextManager[Connection]:
        """One consistent state."""

    def write(self) -> AbstractContextManager[Connection]:
        """Alone: what was read stays true until the block ends. Durable when it ends well, undone when it does not."""
