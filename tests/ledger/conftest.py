"""What tests of the ledger share: a place for one, in a file and on a server."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import postgres_server
import pytest
from postgres_server import Server


@pytest.fixture(params=["file", "server"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Where no ledger is yet: a file, and a database of a PostgreSQL server where one can be started."""
    if request.param == "file":
        return str(tmp_path / "budget.db")
    server = postgres_server.shared()
    return server.url(server.fresh())


@pytest.fixture
def server() -> Server:
    return postgres_server.shared()


@pytest.fixture
def own_server() -> Iterator[Server]:
    """One that may be stopped and set up anew."""
    server = Server(postgres_server.shared().programs)
    yield server
    server.remove()


@pytest.fixture
def database(server: Server) -> str:
    return server.fresh()


@pytest.fixture
def url(server: Server, database: str) -> str:
    return server.url(database)
