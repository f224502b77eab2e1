"""A ledger on a PostgreSQL server: opened whole, never edited, no secret told, and everything above it works.

What a ledger does in general is tested on a file and on a server alike, by the tests that take a `place`.
"""

from __future__ import annotations

import pickle
import sys
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from earlier_versions import undone
from ledger_worker import POLICY, charge_once
from postgres_server import Server
from typer.testing import CliRunner

import sfumato as sf
from sfumato.app.cli import app
from sfumato.errors import BudgetExceeded, InvalidInput, LedgerError, MissingExtra
from sfumato.ledger import Ledger
from sfumato.ledger import postgres as postgres_module
from sfumato.ledger.postgres import PostgresStore
from sfumato.ledger.schema import SCHEMA_VERSION


def _refusal(kind: type[Exception], act: Any) -> str:
    with pytest.raises(kind) as caught:
        act()
    return str(caught.value)


# ------------------------------------------------------------------ opening


def test_a_ledger_on_a_server_has_no_file(url: str) -> None:
    ledger = Ledger.create(url, epsilon=1)
    assert (ledger.path, ledger.place) == (None, url)


def test_nothing_is_made_where_no_total_is_given(server: Server, database: str, url: str) -> None:
    assert _refusal(InvalidInput, lambda: Ledger(url)) == (
        f"There is no ledger '{url}'. Nothing was created, drawn or recorded. Check the path; a new ledger is made "
        f"once, with its total: sf.Ledger.create('{url}', epsilon=1.0), or sfumato ledger create."
    )
    assert server.execute(database, "SELECT to_regnamespace('sfumato')") == [(None,)]


def test_a_schema_that_was_made_for_it_is_taken(server: Server, database: str, url: str) -> None:
    server.execute(database, "CREATE SCHEMA sfumato")
    assert Ledger.create(url, epsilon=1).remaining == 1


def test_the_schema_of_another_program_is_left_alone(server: Server, database: str, url: str) -> None:
    server.execute(database, "CREATE SCHEMA sfumato", "CREATE TABLE sfumato.things (id INTEGER)")
    assert _refusal(LedgerError, lambda: Ledger.create(url, epsilon=1)) == (
        f"The schema 'sfumato' of '{url}' is another program's: it holds tables and no ledger. Nothing was drawn or "
        "recorded. Give the ledger a database of its own."
    )
    assert server.execute(database, "SELECT relname FROM pg_class WHERE relnamespace = 'sfumato'::regnamespace") == [
        ("things",)
    ]


def test_two_that_create_the_ledger_at_once_share_it(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second one is made when the first has just seen that there is none."""
    first, made = PostgresStore.exists, []

    def overtaken(self: PostgresStore) -> bool:
        seen = first(self)
        if not made:
            made.append(True)
            charge_once(Ledger.create(url, epsilon=1))
            assert not seen
        return seen

    monkeypatch.setattr(PostgresStore, "exists", overtaken)
    assert Ledger(url, epsilon=1).spent == Fraction(1, 100)


def test_a_newer_ledger_is_refused_untouched(server: Server, database: str, url: str) -> None:
    ledger = Ledger.create(url, epsilon=1)
    server.execute(database, f"UPDATE sfumato.ledger SET version = {SCHEMA_VERSION + 1}")
    for act in (lambda: Ledger(url), lambda: ledger.remaining, lambda: charge_once(ledger)):
        assert _refusal(LedgerError, act) == (
            f"'{url}' was written by a newer sfumato (ledger version {SCHEMA_VERSION + 1}; this one reads up to "
            f"{SCHEMA_VERSION}). Nothing was drawn or recorded. Upgrade sfumato."
        )


def test_a_ledger_of_version_one_gets_what_it_lacks(server: Server, database: str, url: str) -> None:
    ledger = Ledger.create(url, epsilon=1)
    charge_once(ledger)
    server.execute(database, *undone(1, "sfumato."))
    server.execute(database, "UPDATE sfumato.ledger SET version = 1")
    ledger.stream("visits", epsilon=1, window=2, policy=POLICY).skip(1)
    assert Ledger(url).spent == Fraction(1, 100)
    assert server.execute(database, "SELECT version FROM sfumato.ledger") == [(SCHEMA_VERSION,)]


def test_a_ledger_that_vanished_is_noticed(server: Server, database: str, url: str) -> None:
    ledger = Ledger.create(url, epsilon=1)
    server.execute(database, "DROP SCHEMA sfumato CASCADE")
    assert _refusal(LedgerError, lambda: charge_once(ledger)) == (
        f"'{url}' holds no ledger any more. Nothing was drawn or recorded. Restore a backup."
    )


def test_edited_sums_are_noticed(server: Server, database: str, url: str) -> None:
    charge_once(Ledger.create(url, epsilon=1))
    server.execute(database, "UPDATE sfumato.account SET spent = '0'")
    assert _refusal(LedgerError, lambda: Ledger(url)) == (
        f"The ledger is damaged: '{url}', account 'default': its sums do not agree with its history. Nothing was drawn "
        "or recorded. Restore a backup."
    )


@pytest.mark.parametrize(
    "table", ["entry", "level", "step", "stamp", "stream", "account", "identity", "stream_sum", "stretch", "tally"]
)
def test_what_was_recorded_stays(server: Server, database: str, url: str, table: str) -> None:
    import psycopg

    ledger = Ledger.create(url, epsilon=9)
    ledger.charge(1, POLICY, label="visits", release_id="r")
    ledger.raise_level("r", level=1, epsilon=2, label="finer", token="t")
    stream = ledger.stream("visits", epsilon=1, window=2, policy=POLICY)
    stream.charge(1, "0.5", label="visits", release_id="s")
    changes = [f"DELETE FROM sfumato.{table}", f"TRUNCATE sfumato.{table} CASCADE"]
    if table not in ("account", "stream_sum", "stretch", "tally"):  # sums grow, and are compared with what they add up
        first = server.execute(
            database,
            "SELECT attname FROM pg_attribute WHERE attnum > 0 AND NOT attisdropped AND attidentity = '' "
            f"AND attrelid = 'sfumato.{table}'::regclass ORDER BY attnum LIMIT 1",
        )[0][0]
        changes.append(f"UPDATE sfumato.{table} SET {first} = {first}")
    for change in changes:
        with pytest.raises(psycopg.errors.RaiseException, match="of a ledger are never"):
            server.execute(database, change)
    assert Ledger(url).spent == 2


def test_a_temporary_table_cannot_stand_for_the_ledgers(server: Server, database: str, url: str) -> None:
    ledger = Ledger.create(url, epsilon=1)
    connect = postgres_module._driver().connect

    def with_a_decoy(*args: Any, **options: Any) -> Any:
        raw = connect(*args, **options)
        raw.execute("CREATE TEMPORARY TABLE account AS SELECT * FROM sfumato.account WHERE false")
        return raw

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(postgres_module._driver(), "connect", with_a_decoy)
        charge_once(ledger)
    assert ledger.spent == Fraction(1, 100)


# ------------------------------------------------------------------ words


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://u:secret@[::1/x",
        "postgresql://u:secret@h/x?colour=red",
        "postgres://u:secret@h:port:5/x",
        "postgres://u:sec@ret@h/x",
        "postgres://u:sec/ret@h/x",
        "postgres://u:5/ret@h/x",
        "postgresql://u:secret\udc80@h/x",
    ],
)
def test_a_url_that_cannot_be_read_is_refused_without_quoting_it(url: str) -> None:
    pytest.importorskip("psycopg")
    with pytest.raises(InvalidInput) as caught:
        Ledger.create(url, epsilon=1)
    assert str(caught.value) == (
        "path is not a URL that PostgreSQL understands. Nothing was created. Write it as "
        "'postgresql://user@host:5432/database', with every special character of a password percent-encoded; what is "
        "left out is read from ~/.pgpass, PGPASSWORD and their like."
    )
    assert caught.value.__cause__ is caught.value.__context__ is None


@pytest.mark.parametrize(
    "place",
    [
        "mysql://u:secret@h/x",
        "sqlite:///budget.db",
        "host=db dbname=ledger user=u password=secret",
        "service=ledger",
        "postgres:u:secret@db",
        "postgresql:ledger",
        " postgresql://u:secret@db/x",
        "\npostgresql://u:secret@db/x",
        '"postgresql://u:secret@db/x"',
        "jdbc:postgresql://u:secret@db/x",
        "postgresql:/u:secret@db/x",
        Path("postgresql://u:secret@db/x"),
    ],
)
def test_what_was_meant_for_a_server_never_becomes_a_file(
    place: str | Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Machines that believe to share a ledger would each have one of their own. The name is not quoted back."""
    monkeypatch.chdir(tmp_path)
    said = (
        "path is neither a file nor the URL of a PostgreSQL server. Nothing was created. Give the path of a file, such "
        "as 'budget.db', or a URL as text, such as 'postgresql://user@host/database'."
    )
    assert _refusal(InvalidInput, lambda: Ledger.create(place, epsilon=1)) == said
    shown = CliRunner().invoke(app, ["ledger", "show", str(place)])
    assert (shown.exit_code, "secret" in shown.output) == (2, False)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("name", ["user=7", "host=a", "postgres.db", "my host = db"])
def test_files_may_have_names_that_remind_of_servers(name: str, tmp_path: Path) -> None:
    folder = tmp_path / name
    folder.mkdir()
    assert Ledger.create(folder / "budget.db", epsilon=1).path == folder / "budget.db"


def test_bytes_are_refused_without_quoting_them() -> None:
    assert _refusal(InvalidInput, lambda: Ledger.create(b"postgresql://u:secret@h/x", epsilon=1)) == (  # type: ignore[arg-type]
        "path is bytes, not text. Nothing was created. Give the path of a file, such as 'budget.db'."
    )


def test_no_message_tells_the_password(server: Server, database: str) -> None:
    folder = server.url(database).partition("@")[2].partition("/")[0]
    url = f"postgresql://postgres:se%21cret@{folder}/{database}?sslpassword=se%21cret"
    ledger = Ledger.create(url, epsilon=1)
    said = [str(ledger), repr(ledger), ledger.place]
    said.append(_refusal(BudgetExceeded, lambda: ledger.charge(2, POLICY, label="visits", release_id="r")))
    said.append(_refusal(LedgerError, lambda: Ledger.create(url.replace(database, "nowhere"), epsilon=1)))
    assert not [text for text in said if "cret" in text]
    assert ledger.place == f"postgresql://postgres@{folder}/{database}"
    assert pickle.loads(pickle.dumps(ledger)).remaining == 1


def test_a_server_that_is_not_there_is_said(server: Server) -> None:
    said = _refusal(LedgerError, lambda: Ledger.create("postgresql://u@127.0.0.1:1/x", epsilon=1, timeout=2))
    assert said.startswith("The ledger 'postgresql://u@127.0.0.1:1/x' could not be used: connection failed: ")
    assert said.endswith("Nothing was drawn. Check that the server runs and that the URL is right.")


def test_a_user_without_rights_is_told_which(server: Server, database: str, url: str) -> None:
    Ledger.create(url, epsilon=1)
    name = f"guest_of_{database}"
    server.execute(database, f"CREATE ROLE {name} LOGIN")
    said = _refusal(LedgerError, lambda: Ledger(server.url(database, name)))
    assert said == (
        f"The ledger '{server.url(database, name)}' could not be used: permission denied for schema sfumato "
        "(42501). Nothing was drawn. Grant the user the right to use the schema 'sfumato', or to create it."
    )


def test_a_database_that_cannot_record_is_told_apart(server: Server, database: str, url: str) -> None:
    server.execute("postgres", f"ALTER DATABASE {database} SET default_transaction_read_only = on")
    said = _refusal(LedgerError, lambda: Ledger.create(url, epsilon=1))
    assert said.endswith("Nothing was drawn. Connect to the primary: a standby or a read-only database cannot record.")


def test_every_letter_is_kept_whatever_the_url_says(url: str) -> None:
    ledger = Ledger.create(f"{url}?client_encoding=SQL_ASCII", epsilon=1, dataset="☃")
    ledger.charge("0.1", POLICY, label="ε ☃", release_id="r")
    assert Ledger(f"{url}?client_encoding=LATIN1", dataset="☃").history()[-1].label == "ε ☃"


def test_rows_are_numbered_without_a_sequence(server: Server, database: str, url: str) -> None:
    """Sequences are not replicated with the rows: a server that took over would number them anew."""
    ledger = Ledger.create(url, epsilon=1)
    for _ in range(2):
        charge_once(ledger)
        with pytest.raises(BudgetExceeded):
            ledger.charge(2, POLICY, label="visits", release_id="r")
    assert server.execute(database, "SELECT id FROM sfumato.entry ORDER BY id") == [(1,), (2,), (3,)]
    assert not server.execute(
        database, "SELECT 1 FROM pg_class WHERE relkind = 'S' AND relnamespace = 'sfumato'::regnamespace"
    )


def test_without_the_driver_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)
    assert _refusal(MissingExtra, lambda: Ledger.create("postgresql://h/x", epsilon=1)) == (
        "A ledger in PostgreSQL needs the package 'psycopg', which is not installed. Install it with: pip install "
        "'sfumato[postgres]'"
    )


# ------------------------------------------------------------------ everything above it


def test_a_release_is_published_and_refined(url: str, tmp_path: Path) -> None:
    ledger, vault = Ledger.create(url, epsilon=3), sf.Vault(tmp_path / "vault", key=tmp_path / "key")
    plan = sf.plan(POLICY, sf.ranges(), epsilon=1)
    release = plan.publish([5, 0, 3, 2, 7], ledger=ledger, vault=vault)
    finer = release.refine(2, ledger=ledger, vault=vault)
    assert (ledger.spent, ledger.level(release.id)) == (2, (1, 2))
    assert finer.guarantee.epsilon == 2


def test_a_stream_needs_a_folder_on_this_machine(url: str, tmp_path: Path) -> None:
    def stream(**more: Any) -> sf.Stream:
        return sf.Stream(POLICY, sf.ranges(), epsilon=1, window=2, ledger=ledger, name="visits", **more)

    ledger = Ledger.create(url, epsilon=1)
    assert _refusal(InvalidInput, stream) == (
        f"outbox is missing: the ledger '{url}' is on a server, so there is no folder beside it for the releases. "
        "Nothing was drawn or recorded. Pass outbox, a folder, or a vault."
    )
    first = stream(outbox=tmp_path / "out").publish(1, [5, 0, 3, 2, 7])
    again = stream(outbox=tmp_path / "out").publish(1, [0, 0, 0, 0, 0])
    assert first is not None and again is not None
    assert first.id == again.id
    sealed = stream(vault=sf.Vault(tmp_path / "vault", key=tmp_path / "key"))
    assert sealed.publish(2, [5, 0, 3, 2, 7]) is not None
    assert (tmp_path / "vault.streams").is_dir()


def test_the_command_line_takes_the_url(url: str) -> None:
    def run(*arguments: str) -> str:
        result = CliRunner().invoke(app, ["ledger", *arguments])
        assert result.exit_code == 0, result.output
        return result.stdout

    run("create", url, "--epsilon", "1")
    run("raise", url, "--epsilon", "2")
    assert f"Account 'default' of '{url}': 0 of 2 spent, 2 left" in run("show", url).replace("\n", " ")
