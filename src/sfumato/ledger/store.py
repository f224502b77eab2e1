"""The file under a ledger: SQLite, opened for one operation at a time, durable before anything is drawn.

- **Durable.** A rollback journal with `synchronous=EXTRA`: a commit has reached the disk, and the journal's
  name is gone from it, before it returns. `fullfsync` asks the same of macOS.
- **Complete by itself.** Between two transactions the file is all there is: no part of it waits in a journal, so
  that a copy of the file alone forgets nothing. (Ledgers of earlier versions wrote ahead into a `-wal`; they
  are converted when they are opened.)
- **Alone.** Writes run under BEGIN IMMEDIATE: what was read stays true until the commit, for threads and
  processes alike. All locks are on the inode, whatever name it goes by, and a file with two names is refused (`inode`).
- **Whole from birth.** A new ledger is built under another name and renamed into place (`claim`), so the path never
  holds half a ledger, two processes that create it at once get the same one, and an empty file is always
  damage, never a fresh start.
- **Fork-safe.** SQLite must not see its own connections in a forked child (`gates`).

Every failure is a LedgerError. When a commit itself fails the charge may or may not have been kept:
over-charged at worst.
"""

from __future__ import annotations

import os
import sqlite3
import time
import uuid
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from sfumato.errors import LedgerError
from sfumato.ledger.claim import claim
from sfumato.ledger.database import Connection
from sfumato.ledger.forward import bring_forward
from sfumato.ledger.gates import file_gate
from sfumato.ledger.inode import Held, held
from sfumato.ledger.kept import require_own_file
from sfumato.ledger.schema import SCHEMA_VERSION, SQLITE, damaged, require_version

APPLICATION_ID = 0x5366756D  # "Sfum", in the header of the file
LOOKED_THROUGH = 1 << 24  # bytes: so long a file is looked at page by page whenever it is opened

_NEXT_STEP = {
    "SQLITE_BUSY": "Another process holds the ledger. Try again when it has finished",
    "SQLITE_LOCKED": "Another process holds the ledger. Try again when it has finished",
    "SQLITE_PROTOCOL": "Another process holds the ledger. Try again when it has finished",
    "SQLITE_FULL": "Free space on its disk",
    "SQLITE_IOERR": "Check its disk: it may be full or failing",
    "SQLITE_READONLY": "Make the file and its directory writable: the ledger must be able to record",
    "SQLITE_PERM": "Make the file and its directory writable: the ledger must be able to record",
    "SQLITE_CANTOPEN": "Check that the file exists and that it and its directory are readable and writable",
    "SQLITE_NOTADB": "Give the path of a ledger",
    "SQLITE_CORRUPT": "The file is damaged. Restore a backup",
}


class Store:
    """One ledger file. `read` and `write` give a connection for the length of a `with` block."""

    def __init__(self, path: Path, *, timeout: float) -> None:
        self.path = path
        self.timeout = timeout

    @property
    def place(self) -> str:
        """The path, as messages name it."""
        return str(self.path)

    def exists(self) -> bool:
        """Whether there is a file at the path; a directory that may not be searched counts as empty."""
        return _is_there(self.path)

    def create_if_missing(self) -> bool:
        """Make an empty ledger unless there is a file already; says whether it did."""
        if self.exists():
            return False
        real = Path(os.path.realpath(self.path))  # a link that leads nowhere yet is followed, never replaced
        if not _is_there(real.parent):
            raise LedgerError(
                f"'{real.parent}' does not exist, so no ledger can be made there. Nothing was "
                "drawn or recorded. Create it first, or choose another path."
            )
        for suffix in ("-wal", "-journal"):
            leftover = real.with_name(real.name + suffix)
            if _is_there(leftover):  # SQLite would replay the old journal into the new file
                raise LedgerError(
                    f"'{leftover}' exists but '{self.path}' does not: a ledger was moved or deleted without "
                    "its journal. Nothing was drawn or recorded. Put the ledger back beside it, or choose "
                    "another path."
                )
        draft = real.with_name(f".{real.name}.{uuid.uuid4().hex}")
        with file_gate(self.path), self._translated():
            try:
                with closing(_connect(draft, "rwc", self.timeout)) as connection:
                    _make_durable(connection, str(self.path))
                    connection.execute("BEGIN IMMEDIATE")
                    _bring_up_to_date(connection)
                    connection.execute("COMMIT")
                return claim(draft, real)  # False: another process made it first; its ledger is as good
            finally:
                for suffix in ("", "-journal"):
                    draft.with_name(draft.name + suffix).unlink(missing_ok=True)

    def outdated(self) -> bool:
        """Whether the ledger is of an earlier version; the next `write` gives it what it lacks."""
        with self.read() as connection:
            return self.lags(connection)

    def lags(self, connection: Connection) -> bool:
        """The same, as an operation sees it that is under way."""
        return int(connection.execute("PRAGMA user_version").fetchone()[0]) < SCHEMA_VERSION

    def require_whole(self, connection: Connection) -> None:
        """Refuse a file that was cut, or that SQLite finds damaged; a long one is looked through by `require_sound`."""
        (page,) = connection.execute("PRAGMA page_size").fetchone()
        size = self.path.stat().st_size
        if size % page:  # SQLite reads the missing end of a page as zeros
            raise damaged(f"'{self.path}' was cut short")
        if size <= LOOKED_THROUGH:
            self.require_sound(connection)
        require_own_file(connection, self.place)

    def require_sound(self, connection: Connection) -> None:
        """Refuse a file in which SQLite finds a page damaged, by looking at every one."""
        (verdict,) = connection.execute("PRAGMA quick_check(1)").fetchone()
        if verdict != "ok":
            raise damaged(f"'{self.path}': SQLite reports {verdict}")

    def copy_to(self, target: Path) -> None:
        """Write a consistent copy to a path where nothing is; nobody writes to this ledger meanwhile."""
        real = Path(os.path.realpath(target))
        if os.path.lexists(real):
            raise LedgerError(f"'{target}' exists already. Nothing was written. A copy never replaces a file.")
        draft = real.with_name(f".{real.name}.{uuid.uuid4().hex}")
        with file_gate(self.path), self._translated("Nothing was copied"):
            try:
                with self.read() as source, closing(_connect(draft, "rwc", self.timeout)) as copy:
                    source.backup(copy)
                draft.chmod(self.path.stat().st_mode & 0o777)
                if not claim(draft, real):
                    raise LedgerError(f"'{target}' exists already. Nothing was written. A copy never replaces a file.")
            finally:
                for suffix in ("", "-journal"):
                    draft.with_name(draft.name + suffix).unlink(missing_ok=True)

    @contextmanager
    def read(self) -> Iterator[sqlite3.Connection]:
        """A connection that sees one consistent state."""
        with self._transaction("BEGIN") as connection:
            yield connection

    @contextmanager
    def write(self) -> Iterator[sqlite3.Connection]:
        """A connection that nobody else writes beside; committed and on disk when the block ends without an error."""
        with self._transaction("BEGIN IMMEDIATE") as connection:
            _bring_up_to_date(connection)  # kept only if the block ends well, like all the rest
            require_own_file(connection, self.place)
            yield connection

    @contextmanager
    def _transaction(self, begin: str) -> Iterator[sqlite3.Connection]:
        alone = begin != "BEGIN"
        with (
            file_gate(self.path),
            self._translated(),
            held(self.path, alone=alone, timeout=self.timeout) as file,
            closing(self._begun(begin, file)) as connection,
        ):
            try:
                file.require_here("Nothing was drawn or recorded.")
                yield connection
                connection.execute("COMMIT")
            except BaseException:
                if connection.in_transaction:
                    connection.rollback()
                raise
            if alone:  # what was recorded in a file that is no longer the ledger would be forgotten
                file.require_here("Nothing was drawn; what was charged may or may not be in it.")

    def _begun(self, begin: str, file: Held) -> sqlite3.Connection:
        """A connection inside its transaction.

        Where an older sfumato uses the file at the same moment, it may be told BUSY without the busy timeout being
        honoured. Nothing has been read or written yet, so trying again is safe.
        """
        deadline = time.monotonic() + self.timeout
        while True:
            _require_own_journal(file)
            connection = _connect(file.path, "rw", self.timeout)
            try:
                _require_ours(connection, str(self.path))
                _make_durable(connection, str(self.path))
                connection.execute(begin)
                # A transaction begins with its first look: from here on the state is one.
                connection.execute("PRAGMA user_version").fetchone()
                return connection
            except BaseException as error:
                connection.close()
                if not _is_busy(error) or time.monotonic() >= deadline:
                    raise
            time.sleep(0.005)

    @contextmanager
    def _translated(self, nothing: str = "Nothing was drawn or recorded") -> Iterator[None]:
        """SQLite's and the system's errors as ours."""
        try:
            yield
        except TimeoutError as error:
            raise LedgerError(
                f"The ledger '{self.path}' could not be used: it was held for more than {self.timeout:g} s. {nothing}. "
                "Another process holds the ledger. Try again when it has finished."
            ) from error
        except sqlite3.Error as error:
            name = _name(error)
            step = next((words for code, words in _NEXT_STEP.items() if name.startswith(code)), "Check the file")
            raise LedgerError(
                f"The ledger '{self.path}' could not be used: {error} ({name}). Nothing was drawn. {step}."
            ) from error
        except UnicodeDecodeError as error:  # SQLite quotes what it found, whatever it is
            raise damaged(f"'{self.path}': it holds text that is none") from error
        except FileNotFoundError as error:
            raise LedgerError(
                f"There is no ledger '{self.path}' (any more). {nothing}. Put it back, or give the path of a ledger."
            ) from error
        except OSError as error:
            raise LedgerError(
                f"The ledger '{self.path}' could not be used: {error.strerror or error}. {nothing}. Choose a path in "
                "a writable directory on a local disk."
            ) from error


def _connect(path: Path, mode: str, timeout: float) -> sqlite3.Connection:
    # Autocommit: transactions are begun and ended in so many words. The connection never leaves the gate,
    # so the thread check of sqlite3 stays on.
    return sqlite3.connect(f"{path.as_uri()}?mode={mode}", uri=True, timeout=timeout, isolation_level=None)


def _make_durable(connection: sqlite3.Connection, path: str) -> None:
    (journal,) = connection.execute("PRAGMA journal_mode = DELETE").fetchone()  # converts what wrote ahead
    connection.execute("PRAGMA synchronous = EXTRA")
    connection.execute("PRAGMA fullfsync = ON")
    connection.execute("PRAGMA foreign_keys = ON")
    (synchronous,) = connection.execute("PRAGMA synchronous").fetchone()
    if journal != "delete" or synchronous != 3:
        raise LedgerError(
            f"The disk under '{path}' does not support the journal that keeps spent budget through a "
            f"power cut (journal {journal}, synchronous {synchronous}). Nothing was drawn or recorded. "
            "Keep the ledger on a local disk."
        )


def _require_own_journal(file: Held) -> None:
    """Refuse a journal that is not this file's: SQLite would replay whatever lies there under the right name.

    A ledger that is complete by itself has no `-wal`. One that lies beside it was left by an older ledger, in whose
    place this one was put.
    """
    header, journal = file.header(), file.path.with_name(file.path.name + "-wal")
    try:
        stale = header[18:20] == b"\x01\x01" and journal.stat().st_size > 0
    except OSError:
        return
    if stale:
        raise LedgerError(
            f"'{journal}' is not the journal of '{file.path}': it was left by a ledger that was here before. Nothing "
            "was drawn or recorded. Move it away, or put the ledger back that it belongs to."
        )


def _bring_up_to_date(connection: sqlite3.Connection) -> None:
    """Add what the file lacks: all of it when it is new. The caller holds the transaction."""
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    if version < SCHEMA_VERSION:
        bring_forward(connection, SQLITE, since=version)
        connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")


def _require_ours(connection: sqlite3.Connection, path: str) -> None:
    """Refuse a foreign database or a newer ledger before anything in it is touched."""
    (application_id,) = connection.execute("PRAGMA application_id").fetchone()
    if application_id != APPLICATION_ID:
        raise LedgerError(
            f"'{path}' is not a sfumato ledger: it is empty, cut short, or another program's database. "
            "Nothing was drawn or recorded. Give the path of a ledger."
        )
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    require_version(version, path)


def _is_there(path: Path) -> bool:
    return os.path.exists(path)  # noqa: PTH110 - Path.exists raises where a directory may not be searched


def _name(error: sqlite3.Error) -> str:
    return getattr(error, "sqlite_errorname", None) or type(error).__name__


def _is_busy(error: BaseException) -> bool:
    return isinstance(error, sqlite3.Error) and _name(error).startswith(("SQLITE_BUSY", "SQLITE_PROTOCOL"))
