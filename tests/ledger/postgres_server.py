"""A PostgreSQL server of the tests' own: started on first use, on a socket in a private folder, gone at the end.

Nothing is installed or configured on the machine. Where no server can be started, whoever asks is skipped with the
reason.
"""

from __future__ import annotations

import atexit
import contextlib
import itertools
import os
import shutil
import subprocess
import tempfile
from functools import lru_cache
from pathlib import Path
from urllib.parse import quote

import pytest

_names = itertools.count()


class Server:
    """A server in a folder, reached over a socket there; `options` as in postgresql.conf."""

    def __init__(self, programs: Path, **options: str) -> None:
        self.programs = programs
        self.folder = Path(tempfile.mkdtemp(prefix="sf-pg-", dir="/tmp"))  # the path of a socket has to be short
        self.user = _somebody()
        if self.user is not None:
            shutil.chown(self.folder, self.user)
        self.run("initdb", "-D", "data", "-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync")
        settings = {"listen_addresses": "", "unix_socket_directories": str(self.folder), "max_connections": "40"}
        with (self.folder / "data" / "postgresql.conf").open("a", encoding="utf-8") as file:
            file.writelines(f"{name} = '{value}'\n" for name, value in (settings | options).items())
        self.start()

    def run(self, program: str, *arguments: str) -> None:
        done = subprocess.run(
            [self.programs / program, *arguments],
            cwd=self.folder,
            user=self.user,
            env={"PATH": os.defpath, "LC_ALL": "C"},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=600,
            check=False,
        )
        if done.returncode:
            raise RuntimeError(f"{program}: {done.stdout.strip()}")

    def start(self) -> None:
        self.run("pg_ctl", "-D", "data", "-l", "log", "-w", "-t", "300", "start")

    def stop(self, mode: str = "immediate") -> None:
        self.run("pg_ctl", "-D", "data", "-w", "-t", "300", "-m", mode, "stop")

    def remove(self) -> None:
        with contextlib.suppress(RuntimeError):  # stopped already
            self.stop()
        shutil.rmtree(self.folder, ignore_errors=True)

    def url(self, database: str, user: str = "postgres") -> str:
        return f"postgresql://{user}@{quote(str(self.folder), safe='')}/{database}"

    def execute(self, database: str, *statements: str) -> list[tuple[object, ...]]:
        """Run statements as the owner of the server; gives the rows of the last one."""
        import psycopg

        with psycopg.connect(self.url(database), autocommit=True) as connection:
            for statement in statements:
                cursor = connection.execute(statement)  # type: ignore[call-overload]
            return cursor.fetchall() if cursor.description else []

    def fresh(self) -> str:
        """The name of a new, empty database."""
        name = f"ledger{next(_names)}"
        self.execute("postgres", f"CREATE DATABASE {name}")
        return name


def programs() -> Path:
    """Where the server's programs are, or a skip."""
    pytest.importorskip("psycopg", reason="psycopg is not installed")
    found = shutil.which("initdb")
    places = [Path(found).resolve().parent] if found else sorted(Path("/usr/lib/postgresql").glob("*/bin"))
    if not places or not (places[-1] / "pg_ctl").exists():
        pytest.skip("no PostgreSQL server on this machine")
    return places[-1]


@lru_cache(maxsize=1)
def _started() -> Server | str:
    try:
        server = Server(programs())
    except (OSError, RuntimeError, subprocess.SubprocessError) as error:
        return f"PostgreSQL cannot be started here: {error}"
    atexit.register(server.remove)
    return server


def shared() -> Server:
    """The server that all tests of this process share, or a skip."""
    server = _started()
    if isinstance(server, str):
        pytest.skip(server)
    return server


def _somebody() -> str | None:
    """Whom to run the server as: it refuses to be root."""
    if os.name != "posix" or os.geteuid() != 0:
        return None
    import pwd

    known = {entry.pw_name for entry in pwd.getpwall()}
    return next((name for name in ("postgres", "nobody", "daemon") if name in known), None)
