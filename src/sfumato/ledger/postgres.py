"""A ledger on a PostgreSQL server, for accounts that several machines share: `Ledger("postgresql://host/database")`.

One database keeps one ledger, in its schema `sfumato`. What holds for a file holds here:

- **Durable.** `synchronous_commit` is at least `on` in every transaction that writes, whatever the server's default,
  and a server that runs with `fsync = off` is refused: a commit has reached its disk before it returns.
- **Alone.** Writes wait for one advisory lock, which lasts as long as their transaction, and every statement after it
  sees what was committed before. A machine that goes silent while it holds the lock is cut off by the server.
- **Whole from birth.** The tables are made in one transaction, or not at all.
- **Fork-safe.** No connection outlives an operation, and no child keeps one (`gates`).
- **In time.** A server that says nothing for longer than `timeout`, and a little, is given up (`patience`); nobody else
  waits for it, neither those who use other ledgers nor a fork.

A commit whose answer is lost, or does not come in time, may or may not have been kept: over-charged at worst. What a
replica has not received is lost when it takes over, and spent budget with it: let a standby that may be promoted be a
synchronous one.

Messages name user, host and database; the password and everything else in the URL stays out of them.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

from sfumato.errors import InvalidInput, LedgerError, MissingExtra
from sfumato.ledger import gates, patience
from sfumato.ledger.database import Connection, Rows
from sfumato.ledger.forward import bring_forward
from sfumato.ledger.kept import require_own_schema
from sfumato.ledger.schema import SCHEMA_VERSION, Dialect, require_version

LOCK = 0x5366756D, 1  # "Sfum": the writers' advisory lock
SILENT = 20  # seconds of silence inside a transaction, after which the server ends it: others wait for 30
LONGEST = 2**31 - 1  # milliseconds that the server counts

_BEGIN = {
    "read": "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY",  # one state for all that is read
    # Not a stricter level: its snapshot would be taken before the lock is granted, and be out of date by then.
    "write": "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE",
}
_SETTINGS = (
    "SELECT set_config('search_path', 'sfumato, pg_temp', true), "  # temporary tables last: none can stand for ours
    "set_config('lock_timeout', ?, true), set_config('idle_in_transaction_session_timeout', ?, true), "
    "set_config('client_min_messages', 'warning', true), "
    "set_config('synchronous_commit', CASE current_setting('synchronous_commit') WHEN 'remote_apply' THEN "
    "'remote_apply' ELSE 'on' END, true), current_setting('fsync'), current_setting('server_encoding')"
)
_REFUSE = (
    "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS "
    "'BEGIN RAISE EXCEPTION USING MESSAGE = TG_ARGV[0]; END'"
)
_VERSION = (
    # A row of its own kind, and only one: what the header of a file holds.
    "CREATE TABLE ledger (application TEXT PRIMARY KEY CHECK (application = 'sfumato'), version BIGINT NOT NULL)",
    "INSERT INTO ledger (application, version) VALUES ('sfumato', 0)",
)
_PRIMARY = "Connect to the primary: a standby or a read-only database cannot record"
_NEXT_STEP = {
    "55P03": "Another process holds the ledger. Try again when it has finished",  # lock_not_available
    "25P03": "It was silent for too long inside an operation. Try again",  # idle_in_transaction_session_timeout
    "25006": _PRIMARY,  # read_only_sql_transaction
    "0A000": _PRIMARY,  # feature_not_supported: on a standby
    "42501": "Grant the user the right to use the schema 'sfumato', or to create it",  # insufficient_privilege
    "53100": "Free space on the server's disk",  # disk_full
}


def _triggers(name: str, table: str, event: str, condition: str, message: str) -> tuple[str, ...]:
    when = f"WHEN {condition} " if condition else ""
    act = f"EXECUTE FUNCTION refuse('{message}')"
    row = f"CREATE TRIGGER {name} BEFORE {event} ON {table} FOR EACH ROW {when}{act}"
    if event != "DELETE":
        return (row,)
    return row, f"CREATE TRIGGER {name}_at_once BEFORE TRUNCATE ON {table} {act}"


POSTGRES = Dialect(
    key="BIGINT PRIMARY KEY",
    counted="BIGINT PRIMARY KEY",
    whole="BIGINT",
    by_key="",
    differs="IS DISTINCT FROM",
    refuse=_triggers,
    drop="DROP TRIGGER {name} ON {table}",
    # A digest of what no two ledgers share; servers before version 13 have no generator of identifiers.
    random="md5(random()::text || clock_timestamp()::text || pg_backend_pid()::text || current_database())",
)


class PostgresStore:
    """The ledger in one database of a server. `read` and `write` give a connection for the length of a `with` block."""

    def __init__(self, url: str, *, timeout: float) -> None:
        driver, self.timeout = _driver(), timeout
        try:
            given = driver.conninfo.conninfo_to_dict(url)
        except (driver.Error, UnicodeError):
            given = None
        # Out here, so that no traceback shows the parser's error, which may quote the password.
        if given is None or _misread(given):
            raise InvalidInput(
                "path is not a URL that PostgreSQL understands. Nothing was created. Write it as "
                "'postgresql://user@host:5432/database', with every special character of a password percent-encoded; "
                "what is left out is read from ~/.pgpass, PGPASSWORD and their like."
            )
        # A network that swallows everything is noticed; the kernel counts in milliseconds.
        self._options: dict[str, Any] = {
            "tcp_user_timeout": int(min(1000 * self._patience, LONGEST)),
            "target_session_attrs": "read-write",  # of several hosts the one that can record
            "application_name": "sfumato",
            **given,
            "connect_timeout": _seconds_to_connect(given, self._patience),
            "client_encoding": "UTF8",
        }
        self._place = _without_secrets(given)

    @property
    def place(self) -> str:
        """The URL, without the password and without options."""
        return self._place

    def exists(self) -> bool:
        """Whether the database has a ledger."""
        with self._transaction("read") as connection:
            return _has_ledger(connection)

    def create_if_missing(self) -> bool:
        """Make the schema and its tables in one transaction, unless they are there; says whether it did."""
        if self.exists():
            return False
        with self._transaction("write") as connection:
            if _has_ledger(connection):
                return False  # another process made it while this one waited for the lock
            (schema,) = connection.execute("SELECT to_regnamespace('sfumato')::oid").fetchone()
            if schema is None:
                connection.execute("CREATE SCHEMA sfumato")
            elif connection.execute("SELECT 1 FROM pg_class WHERE relnamespace = ? LIMIT 1", (schema,)).fetchone():
                raise LedgerError(
                    f"The schema 'sfumato' of '{self.place}' is another program's: it holds tables and no ledger. "
                    "Nothing was drawn or recorded. Give the ledger a database of its own."
                )
            for statement in (_REFUSE, *_VERSION):
                connection.execute(statement)
            _bring_up_to_date(connection)
        return True

    def outdated(self) -> bool:
        """Whether the ledger is of an earlier version; the next `write` gives it what it lacks."""
        with self.read() as connection:
            return self.lags(connection)

    def lags(self, connection: Connection) -> bool:
        """The same, as an operation sees it that is under way."""
        return _version(connection) < SCHEMA_VERSION

    def require_whole(self, connection: Connection) -> None:
        """Refuse tables with others' objects upon them; the server watches over its own pages."""
        require_own_schema(connection, self.place)

    def require_sound(self, connection: Connection) -> None:
        """As `require_whole`."""
        self.require_whole(connection)

    def copy_to(self, target: Path) -> None:
        """Refused: a server has backups of its own."""
        raise InvalidInput(
            f"'{self.place}' is on a server, and a server's own tools copy it. Nothing was written to '{target}'. Use "
            "pg_dump --schema=sfumato, or the server's continuous archive."
        )

    @contextmanager
    def read(self) -> Iterator[Connection]:
        """A connection that sees one consistent state."""
        with self._transaction("read") as connection:
            self._require_ours(connection)
            yield connection

    @contextmanager
    def write(self) -> Iterator[Connection]:
        """A connection that nobody else writes beside; committed and on disk when the block ends without an error."""
        with self._transaction("write") as connection:
            self._require_ours(connection)
            _bring_up_to_date(connection)
            require_own_schema(connection, self.place)
            yield connection

    @property
    def _patience(self) -> float:
        """Seconds of silence after which the server is given up."""
        return self.timeout + patience.MARGIN

    @contextmanager
    def _transaction(self, kind: str) -> Iterator[Connection]:
        with self._translated(), gates.server_gate(self.place, self._patience), self._connected() as raw:
            connection = _Session(raw)
            try:
                self._begin(connection, kind)
                yield connection
                self._commit(raw, kind)
            except BaseException as error:
                if not isinstance(error, patience.Overdue):
                    with contextlib.suppress(_driver().Error, patience.Overdue):
                        raw.rollback()
                raise

    @contextmanager
    def _connected(self) -> Iterator[Any]:
        # Autocommit: transactions are begun and ended in so many words. Nothing is prepared, so that a pool of
        # connections between here and the server does no harm.
        raw = _driver().connect(**self._options, autocommit=True, prepare_threshold=None)
        patience.limit(raw, self._patience)
        with gates.socket_of_this_process(raw.fileno(), raw.close):
            yield raw

    def _commit(self, raw: Any, kind: str) -> None:
        """End a transaction, and believe nothing but a plain COMMIT.

        The server rolls back what had an error in it and says so only here; and where somebody ends the wait for a
        synchronous standby it warns that the commit is on its own disk alone.
        """
        warnings: list[str] = []
        raw.add_notice_handler(lambda notice: warnings.append(str(notice.message_primary)))
        try:
            ended = raw.execute("COMMIT").statusmessage
        except patience.Overdue as silence:
            if kind == "read":
                raise
            raise LedgerError(
                f"The ledger '{self.place}' could not be used: the server did not answer the COMMIT within "
                f"{self._patience:g} seconds. What was charged may be spent, and nothing was drawn. Look after the "
                "server; what it has kept stands in the ledger's history."
            ) from silence
        if ended != "COMMIT":
            raise LedgerError(
                f"The ledger '{self.place}' could not be used: the server answered {ended} instead of COMMIT. Nothing "
                "was drawn or recorded. Try again."
            )
        if warnings:
            raise LedgerError(
                f"The ledger '{self.place}' committed with a warning: {'; '.join(warnings)}. What was charged is "
                "spent, and nothing was drawn: a server that takes over may not know of it. Look after the standby."
            )

    def _begin(self, connection: Connection, kind: str) -> None:
        connection.execute(_BEGIN[kind])
        limits = f"{int(min(max(1, 1000 * self.timeout), LONGEST))}ms", f"{SILENT}s"
        *_, fsync, encoding = connection.execute(_SETTINGS, limits).fetchone()
        if fsync != "on" or encoding != "UTF8":
            raise LedgerError(
                f"The server of '{self.place}' cannot keep a ledger (fsync {fsync}, encoding {encoding}). Nothing was "
                "drawn or recorded. Spent budget must outlive a power cut: use a server with fsync = on, and a "
                "database with the encoding UTF8."
            )
        if kind == "write":
            connection.execute("SELECT pg_advisory_xact_lock(?, ?)", LOCK)

    def _require_ours(self, connection: Connection) -> None:
        """Refuse a database without a ledger, and a newer ledger, before anything in it is touched."""
        if not _has_ledger(connection):
            raise LedgerError(
                f"'{self.place}' holds no ledger any more. Nothing was drawn or recorded. Restore a backup."
            )
        require_version(_version(connection), self.place)

    @contextmanager
    def _translated(self) -> Iterator[None]:
        """The driver's errors as ours."""
        try:
            yield
        except patience.Overdue as error:
            raise LedgerError(
                f"The ledger '{self.place}' could not be used: the server did not answer within {self._patience:g} "
                "seconds. Nothing was drawn or recorded. Look after the server and the network, or open the ledger "
                "with a longer timeout."
            ) from error
        except TimeoutError as error:
            raise LedgerError(
                f"The ledger '{self.place}' could not be used: another thread of this program was using it for "
                f"{self._patience:g} seconds. Nothing was drawn or recorded. Try again when it has finished, or open "
                "the ledger with a longer timeout."
            ) from error
        except _driver().Error as error:
            state = error.sqlstate or ""
            step = next((words for code, words in _NEXT_STEP.items() if state.startswith(code)), None)
            if step is None and not state and "read-only" in str(error):  # the driver's own words
                step = _PRIMARY
            elif step is None:
                step = "Check the database" if state else "Check that the server runs and that the URL is right"
            said = " ".join((error.diag.message_primary or str(error)).split()).rstrip(" .?") or type(error).__name__
            raise LedgerError(
                f"The ledger '{self.place}' could not be used: {said}{f' ({state})' if state else ''}. Nothing was "
                f"drawn. {step}."
            ) from error


class _Session:
    """A connection of the driver that speaks the ledger's SQL."""

    def __init__(self, raw: Any) -> None:
        self._raw = raw

    def execute(self, statement: str, values: Sequence[Any] = (), /) -> Rows:
        """Run one statement, its `?` filled with the values."""
        return self._raw.execute(statement.replace("?", "%s"), values or None)


def _driver() -> Any:
    """psycopg, imported when it is needed."""
    try:
        import psycopg
        import psycopg.conninfo
    except ImportError as error:
        raise MissingExtra("psycopg", "postgres", "A ledger in PostgreSQL") from error
    return psycopg


def _seconds_to_connect(given: dict[str, Any], longest: float) -> int:
    """For each of the hosts; the URL may ask for less, and the driver takes at least 2."""
    hosts = 1 + str(given.get("host") or given.get("hostaddr") or "").count(",")
    share = max(2, math.ceil(min(longest, LONGEST // 1000) / hosts))
    wanted = str(given.get("connect_timeout") or "")
    return min(share, int(wanted)) if wanted.isdigit() and int(wanted) else share


def _has_ledger(connection: Connection) -> bool:
    (table,) = connection.execute("SELECT to_regclass('sfumato.ledger')::oid").fetchone()
    return table is not None


def _version(connection: Connection) -> int:
    found = connection.execute("SELECT version FROM ledger WHERE application = 'sfumato'").fetchone()
    return 0 if found is None else int(found[0])


def _bring_up_to_date(connection: Connection) -> None:
    """Add the tables that are missing: all of them when the ledger is new. The caller holds the transaction."""
    version = _version(connection)
    if version < SCHEMA_VERSION:
        bring_forward(connection, POSTGRES, since=version)
        connection.execute("UPDATE ledger SET version = ?", (SCHEMA_VERSION,))


def _misread(given: dict[str, Any]) -> bool:
    """Whether a password with an @ or a / of its own was taken for a host, a port or a database."""
    ports = str(given.get("port") or "").replace(",", "")
    return "@" in f"{given.get('host')}{given.get('dbname')}" or not (ports.isdigit() or not ports)


def _without_secrets(given: dict[str, Any]) -> str:
    """A URL with what may be said aloud."""
    user = f"{quote(str(given['user']), safe='')}@" if given.get("user") else ""
    host = quote(str(given.get("host") or ""), safe=",:.")
    port = f":{given['port']}" if given.get("port") else ""
    return f"postgresql://{user}{host}{port}/{quote(str(given.get('dbname') or ''), safe='')}"
