"""A charge that the database takes and does not keep is no charge: it is read back, and meddlers are found."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from ledger_worker import POLICY, charge_once
from postgres_server import Server

from sfumato.errors import LedgerError
from sfumato.ledger import Ledger, StreamAccount, kept
from sfumato.ledger import postgres as postgres_module
from sfumato.ledger import store as store_module


def _edit(path: Path, *statements: str) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        for statement in statements:
            connection.execute(statement)


def _refusal(act: Callable[[], object]) -> str:
    with pytest.raises(LedgerError) as caught:
        act()
    return str(caught.value)


def _stream(ledger: Ledger) -> StreamAccount:
    stream = ledger.stream("visits", epsilon=1, window=3, policy=POLICY)
    stream.charge(1, "1/4", label="visits", release_id="s1")
    return stream


# What sfumato writes, each act on a ledger that has a release 'r' and a stream with a step.
ACTS: dict[str, Callable[[Ledger, StreamAccount], object]] = {
    "charge": lambda ledger, _: ledger.charge("0.5", POLICY, label="visits", release_id="x"),
    "raise": lambda ledger, _: ledger.raise_level("r", level=1, epsilon=2, label="finer", token="t"),
    "cap": lambda ledger, _: ledger.raise_cap(20),
    "step": lambda _, stream: stream.charge(2, "1/4", label="visits", release_id="s2"),
    "skip": lambda _, stream: stream.skip(2),
    "top-up": lambda _, stream: stream.raise_step(1, "1/2", level=1, label="finer", token="t"),
    "stream": lambda ledger, _: ledger.stream("other", epsilon=1, window=3, policy=POLICY),
    "account": lambda ledger, _: Ledger.create(ledger.place, epsilon=1, dataset="other"),
}
# The tables that each of them writes to.
WRITES = {
    "charge": ("entry", "account"),
    "raise": ("entry", "account", "level", "stamp"),
    "cap": ("entry", "account"),
    "step": ("step", "stretch", "stream_sum"),
    "skip": ("step", "stretch", "stream_sum"),
    "top-up": ("step", "stretch", "stream_sum", "stamp"),
    "stream": ("stream", "stream_sum"),
    "account": ("account", "entry"),
}
CASES = [(act, table) for act, tables in WRITES.items() for table in tables]
TABLES = sorted({table for tables in WRITES.values() for table in tables} | {"identity"})
NOT_KEPT = ": its database took the statement, and reading it back shows something else. Nothing was drawn or recorded."


def _spent(ledger: Ledger, stream: StreamAccount) -> object:
    return ledger.total, ledger.spent, stream.entries(), ledger.streams()


@pytest.fixture
def prepared(place: str) -> tuple[Ledger, StreamAccount]:
    ledger = Ledger.create(place, epsilon=10)
    ledger.charge(1, POLICY, label="visits", release_id="r")
    return ledger, _stream(ledger)


@pytest.fixture
def in_file(tmp_path: Path) -> tuple[Ledger, StreamAccount]:
    ledger = Ledger.create(tmp_path / "budget.db", epsilon=10)
    ledger.charge(1, POLICY, label="visits", release_id="r")
    return ledger, _stream(ledger)


# ------------------------------------------------------------------ read back


@pytest.mark.parametrize(("act", "table"), CASES)
def test_what_a_file_does_not_keep_is_refused(
    in_file: tuple[Ledger, StreamAccount], tmp_path: Path, act: str, table: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A trigger that ignores whatever is written to a table, were the look at the tables to miss it."""
    before = _spent(*in_file)
    path = tmp_path / "budget.db"
    for event in ("INSERT", "UPDATE"):
        _edit(path, f"CREATE TRIGGER swallow{event} BEFORE {event} ON {table} BEGIN SELECT RAISE(IGNORE); END")
    monkeypatch.setattr(store_module, "require_own_file", lambda *_: None)
    said = _refusal(lambda: ACTS[act](*in_file))
    assert NOT_KEPT in said or "FOREIGN KEY" in said or "NOT NULL" in said or "is damaged" in said
    assert _spent(*in_file) == before


@pytest.mark.slow  # a database for every way to lose a row
@pytest.mark.parametrize(("act", "table"), CASES)
def test_what_a_server_does_not_keep_is_refused(
    server: Server, database: str, url: str, act: str, table: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Row security that shows all rows, takes new ones and changes none; and one that takes new ones and hides them."""
    ledger = Ledger.create(url, epsilon=10)
    ledger.charge(1, POLICY, label="visits", release_id="r")
    stream = _stream(ledger)
    before = _spent(ledger, stream)
    server.execute(
        database,
        "CREATE FUNCTION sfumato.swallow() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END'",
        f"CREATE TRIGGER swallow BEFORE INSERT OR UPDATE ON sfumato.{table} FOR EACH ROW "
        "EXECUTE FUNCTION sfumato.swallow()",
    )
    monkeypatch.setattr(postgres_module, "require_own_schema", lambda *_: None)
    said = _refusal(lambda: ACTS[act](ledger, stream))
    assert NOT_KEPT in said or "foreign key" in said or "null value" in said or "is damaged" in said
    assert _spent(ledger, stream) == before


def test_row_security_that_lets_nothing_be_changed_takes_no_charge(
    server: Server, database: str, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """30 charges of 0.5 in a total of 1: rows may be seen and added, and an UPDATE finds none."""
    ledger = Ledger.create(url, epsilon=1)
    ledger.charge("0.1", POLICY, label="visits", release_id="r")
    guest = f"guest_of_{database}"
    server.execute(
        database,
        f"CREATE ROLE {guest} LOGIN",
        f"GRANT USAGE ON SCHEMA sfumato TO {guest}",
        f"GRANT SELECT, INSERT, UPDATE ON ALL TABLES IN SCHEMA sfumato TO {guest}",
        "ALTER TABLE sfumato.account ENABLE ROW LEVEL SECURITY",
        "CREATE POLICY seen ON sfumato.account FOR SELECT USING (true)",
    )
    monkeypatch.setattr(postgres_module, "require_own_schema", lambda *_: None)
    theirs = Ledger(server.url(database, guest))
    for _ in range(3):
        said = _refusal(lambda: theirs.charge("0.5", POLICY, label="visits", release_id="x"))
        assert said == (
            f"The ledger did not keep what an account has spent{NOT_KEPT} Look for row security, rules, triggers or "
            "views on its tables, or restore a backup."
        )
    monkeypatch.undo()
    said = _refusal(lambda: theirs.charge("0.5", POLICY, label="visits", release_id="x"))
    assert "has row security on table 'account'" in said
    assert len(ledger.history()) == 2


def test_a_view_that_swallows_takes_no_charge(in_file: tuple[Ledger, StreamAccount], tmp_path: Path) -> None:
    ledger, _ = in_file
    _edit(
        tmp_path / "budget.db",
        "PRAGMA legacy_alter_table = ON",
        "ALTER TABLE account RENAME TO accounts",
        "CREATE VIEW account AS SELECT * FROM accounts",
        "CREATE TRIGGER swallow INSTEAD OF UPDATE ON account BEGIN SELECT 1; END",
    )
    said = (
        f"The ledger '{ledger.place}' has something else in the place of table 'account', which sfumato did not make: "
        "what is charged might not be kept. Nothing was drawn or recorded. Take it away, or restore a backup."
    )
    assert _refusal(lambda: charge_once(ledger)) == said
    assert _refusal(lambda: Ledger(ledger.place)) == said
    assert ledger.spent == 1


# ------------------------------------------------------------------ what stands between


@pytest.mark.parametrize("table", TABLES)
def test_a_trigger_of_others_in_a_file_is_refused(
    in_file: tuple[Ledger, StreamAccount], tmp_path: Path, table: str
) -> None:
    ledger, path = in_file[0], tmp_path / "budget.db"
    _edit(path, f"CREATE TRIGGER Other AFTER INSERT ON {table} BEGIN SELECT 1; END")
    said = (
        f"The ledger '{ledger.place}' has a trigger 'Other' of its own on table '{table}', which sfumato did not make: "
        "what is charged might not be kept. Nothing was drawn or recorded. Take it away, or restore a backup."
    )
    assert _refusal(lambda: charge_once(ledger)) == said
    assert _refusal(lambda: Ledger(ledger.place)) == said
    _edit(path, "DROP TRIGGER Other", f"CREATE TRIGGER Other BEFORE DELETE ON {table} BEGIN SELECT RAISE(IGNORE); END")
    assert "a trigger 'Other' of its own" in _refusal(lambda: charge_once(ledger))
    _edit(path, "DROP TRIGGER Other", "CREATE TABLE notes (words)")
    _edit(path, "CREATE TRIGGER Other AFTER INSERT ON notes BEGIN SELECT 1; END", "CREATE VIEW seen AS SELECT 1")
    charge_once(ledger)  # what stands beside is nobody's business


def test_triggers_of_earlier_versions_are_ours(in_file: tuple[Ledger, StreamAccount], tmp_path: Path) -> None:
    """They were written over several lines; one that does nothing but refuse loses nothing."""
    ledger, _ = in_file
    _edit(
        tmp_path / "budget.db",
        "DROP TRIGGER entry_never_goes",
        """CREATE TRIGGER entry_never_goes BEFORE DELETE ON entry
    BEGIN SELECT RAISE(ABORT, 'entries of a ledger are never deleted'); END""",
    )
    charge_once(ledger)


def test_a_table_that_is_missing_is_damage(in_file: tuple[Ledger, StreamAccount], tmp_path: Path) -> None:
    _edit(tmp_path / "budget.db", "DROP TABLE stamp")
    assert "table 'stamp' is missing" in _refusal(lambda: charge_once(in_file[0]))


FOREIGN = {
    "row security on table 'account'": ["ALTER TABLE account ENABLE ROW LEVEL SECURITY"],
    "a rule on table 'account'": ["CREATE RULE r AS ON UPDATE TO account DO INSTEAD NOTHING"],
    "a rule on table 'entry'": ["CREATE RULE r AS ON INSERT TO entry DO ALSO SELECT 1"],
    "a trigger of its own on table 'step'": [
        "CREATE FUNCTION late() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END'",
        "CREATE CONSTRAINT TRIGGER late AFTER INSERT ON step DEFERRABLE INITIALLY DEFERRED FOR EACH ROW "
        "EXECUTE FUNCTION late()",
    ],
    "a trigger of its own on table 'account'": [
        "CREATE FUNCTION other() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END'",
        "CREATE TRIGGER other BEFORE UPDATE ON account FOR EACH STATEMENT EXECUTE FUNCTION other()",
    ],
    "something else in the place of table 'stamp'": [
        "ALTER TABLE stamp RENAME TO stamps",
        "CREATE VIEW stamp AS SELECT * FROM stamps",
    ],
    "inheritance at table 'entry'": ["CREATE TABLE more () INHERITS (entry)"],
    "no journal for table 'stretch'": ["ALTER TABLE stretch SET UNLOGGED"],
}


@pytest.mark.parametrize("what", FOREIGN)
def test_what_others_made_on_a_server_is_refused(server: Server, database: str, url: str, what: str) -> None:
    ledger = Ledger.create(url, epsilon=10)
    _stream(ledger)
    server.execute(database, "SET search_path = sfumato", *FOREIGN[what])
    said = (
        f"The ledger '{url}' has {what}, which sfumato did not make: what is charged might not be kept. Nothing was "
        "drawn or recorded. Take it away, or restore a backup."
    )
    assert _refusal(lambda: charge_once(ledger)) == said
    assert _refusal(lambda: Ledger(url)) == said
    assert ledger.spent == 0


def test_every_table_is_looked_at(prepared: tuple[Ledger, StreamAccount]) -> None:
    assert set(TABLES) <= kept._tables()
    with prepared[0]._store.read() as connection:
        for table in kept._tables():
            connection.execute(f"SELECT count(*) FROM {table}").fetchone()
