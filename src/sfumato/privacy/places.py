"""From what the caller names to the database under a ledger: a path is a file, a URL is a server."""

from __future__ import annotations

import os
import re
from pathlib import Path

from sfumato.errors import InvalidInput
from sfumato.privacy.database import Database
from sfumato.privacy.store import Store

_URL = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://")


def database_at(path: str | os.PathLike[str], *, timeout: float) -> Database:
    """The database at a path or a URL; nothing is opened or made yet."""
    name = os.fspath(path)
    if not isinstance(name, str) or name in ("", ":memory:"):
        raise InvalidInput(
            f"path={name!r} is not a file. A ledger must outlive the program. Give the path of a file, "
            "such as 'budget.db'."
        )
    url = _URL.match(name)
    if url is None:
        return Store(Path(name).absolute(), timeout=timeout)
    if url[1].lower() in ("postgresql", "postgres"):
        from sfumato.privacy.postgres import PostgresStore

        return PostgresStore(name, timeout=timeout)
    raise InvalidInput(  # the rest of a URL may hold a password
        f"path={url[0]}… is not a place for a ledger. Nothing was created. Give the path of a file, such as "
        "'budget.db', or a URL that begins with postgresql://."
    )
