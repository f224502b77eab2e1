"""From what the caller names to the database under a ledger: a path is a file, a URL is a server."""

from __future__ import annotations

import os
import re
from pathlib import Path

from sfumato.errors import InvalidInput
from sfumato.ledger import rows
from sfumato.ledger.database import Database
from sfumato.ledger.store import Store

# Names that are meant for a server and would become files: whoever shares such a ledger would share nothing.
_SCHEME = re.compile(r"[\s'\"]*([a-z][a-z0-9+.:-]+):/", re.IGNORECASE)  # two letters or more: C:/ is a disk
_WORD = r"(host|hostaddr|port|dbname|user|password|passfile|service|sslmode|options)\s*=\s*"  # as libpq takes them
_SERVER = re.compile(
    rf"[\s'\"]*postgres(ql)?:|\s*{_WORD}[^\s/]+\s*$|\s*{_WORD}\S+(\s+\w+\s*=\s*\S+)+\s*$", re.IGNORECASE
)
_URL = re.compile(r"postgres(ql)?://", re.IGNORECASE)


def database_at(path: str | os.PathLike[str], *, timeout: float) -> Database:
    """The database at a path or a URL; nothing is opened or made yet.

    What looks like the address of a server is never quoted back: it may hold a password.
    """
    name = os.fspath(path)
    if not isinstance(name, str):
        raise InvalidInput(
            "path is bytes, not text. Nothing was created. Give the path of a file, such as 'budget.db'."
        )
    if name in ("", ":memory:"):
        raise InvalidInput(
            f"path={name!r} is not a file. A ledger must outlive the program. Give the path of a file, "
            "such as 'budget.db'."
        )
    if isinstance(path, str) and _URL.match(name):
        from sfumato.ledger.postgres import PostgresStore

        return PostgresStore(name, timeout=timeout)
    if _SCHEME.match(name) or _SERVER.match(name):
        raise InvalidInput(
            "path is neither a file nor the URL of a PostgreSQL server. Nothing was created. Give the path of a file, "
            "such as 'budget.db', or a URL as text, such as 'postgresql://user@host/database'."
        )
    return Store(Path(name).absolute(), timeout=timeout)


def accounts_at(path: str | os.PathLike[str], *, timeout: float = 30.0) -> tuple[str, ...]:
    """The datasets that have an account in a ledger, in the order they were opened."""
    with database_at(path, timeout=timeout).read() as connection:
        return rows.datasets(connection)


def is_file(path: str | os.PathLike[str]) -> bool:
    """Whether a ledger there is a file; refuses what is no place for one."""
    return isinstance(database_at(path, timeout=0), Store)
