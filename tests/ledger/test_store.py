"""The file under the ledger: durable settings, and every damaged, foreign or unwritable file refused in words."""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

import pytest
from ledger_worker import opened

from sfumato.domain import Line
from sfumato.errors import LedgerError
from sfumato.ledger import Ledger, claim
from sfumato.ledger import store as store_module
from sfumato.ledger.schema import SCHEMA_VERSION
from sfumato.ledger.store import APPLICATION_ID, Store
from sfumato.policies import threshold

POLICY = threshold(Line(0, 1, cells=5), theta=1)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    ledger = Ledger.create(tmp_path / "budget.db", epsilon=1)
    ledger.charge(0.25, POLICY, label="visits", release_id="r1")
    return tmp_path / "budget.db"


@pytest.fixture
def open_directory() -> Iterator[Path]:
    """A directory that other users of the machine may enter, as pytest's own may not."""
    import tempfile

    directory = Path(tempfile.mkdtemp(prefix="sfumato-"))
    directory.chmod(0o755)
    yield directory
    directory.chmod(0o755)
    shutil.rmtree(directory)


def _edit(path: Path, *statements: str) -> None:
    connection = sqlite3.connect(path)
    for statement in statements:
        connection.execute(statement)
    connection.commit()
    connection.close()


def _refusal(path: Path) -> str:
    """The message with which the file is refused; opening it must not change a byte."""
    before = path.read_bytes()
    with pytest.raises(LedgerError) as caught:
        Ledger(path)
    assert path.read_bytes() == before
    return str(caught.value)


# ------------------------------------------------------------------ settings


@pytest.mark.parametrize("transaction", ["read", "write"])
def test_every_connection_is_fully_synchronous_and_leaves_no_journal(path: Path, transaction: str) -> None:
    with getattr(Store(path, timeout=1), transaction)() as connection:
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("delete",)
        assert connection.execute("PRAGMA synchronous").fetchone() == (3,)  # EXTRA
        assert connection.execute("PRAGMA foreign_keys").fetchone() == (1,)
        assert connection.execute("PRAGMA busy_timeout").fetchone() == (1000,)
        assert connection.in_transaction


def test_a_file_that_writes_ahead_is_converted(path: Path) -> None:
    _edit(path, "PRAGMA journal_mode = WAL")
    Ledger(path)
    connection = sqlite3.connect(path)
    assert connection.execute("PRAGMA journal_mode").fetchone() == ("delete",)
    connection.close()


def test_a_disk_without_such_a_journal_is_refused(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Stubborn(sqlite3.Connection):
        def execute(self, statement: str, *rest: object) -> sqlite3.Cursor:
            return super().execute(statement.replace("journal_mode = DELETE", "journal_mode = MEMORY"), *rest)

    connect = sqlite3.connect
    monkeypatch.setattr(store_module.sqlite3, "connect", lambda *a, **k: connect(*a, **k, factory=Stubborn))
    with pytest.raises(LedgerError) as caught:
        Ledger(path)
    assert str(caught.value) == (
        f"The disk under '{path}' does not support the journal that keeps spent budget through a power "
        "cut (journal memory, synchronous 3). Nothing was drawn or recorded. Keep the ledger on a local "
        "disk."
    )


def test_a_new_ledger_leaves_one_whole_file(path: Path) -> None:
    assert [p.name for p in path.parent.iterdir()] == ["budget.db"]


# ------------------------------------------------------------------ damaged and foreign files


NOT_OURS = (
    "'{}' is not a sfumato ledger: it is empty, cut short, or another program's database. Nothing was "
    "drawn or recorded. Give the path of a ledger."
)


def test_an_empty_file_is_never_a_fresh_start(path: Path) -> None:
    path.write_bytes(b"")
    assert _refusal(path) == NOT_OURS.format(path)


def test_another_programs_database_is_refused_untouched(tmp_path: Path) -> None:
    path = tmp_path / "other.db"
    _edit(path, "CREATE TABLE account (id INTEGER)")
    assert _refusal(path) == NOT_OURS.format(path)


def test_a_file_that_is_no_database_is_refused_untouched(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("dear diary, " * 1000)
    assert _refusal(path) == (
        f"The ledger '{path}' could not be used: file is not a database (SQLITE_NOTADB). Nothing was "
        "drawn. Give the path of a ledger."
    )


def test_a_newer_ledger_is_refused(path: Path) -> None:
    _edit(path, f"PRAGMA user_version = {SCHEMA_VERSION + 1}")
    assert _refusal(path) == (
        f"'{path}' was written by a newer sfumato (ledger version {SCHEMA_VERSION + 1}; this one reads "
        f"up to {SCHEMA_VERSION}). Nothing "
        "was drawn or recorded. Upgrade sfumato."
    )


def test_a_ledger_without_version_is_refused(path: Path) -> None:
    _edit(path, "PRAGMA user_version = 0")
    assert _refusal(path) == (
        f"'{path}' is damaged: its ledger version is 0. Nothing was drawn or recorded. Restore a backup."
    )


@pytest.mark.parametrize("kept", [0.1, 0.3, 0.5, 0.7, 0.9, 0.99])
def test_a_truncated_ledger_is_refused(path: Path, kept: float) -> None:
    whole = path.read_bytes()
    path.write_bytes(whole[: int(len(whole) * kept)])
    assert "Nothing was drawn" in _refusal(path)


def test_a_ledger_of_garbage_pages_is_refused(path: Path) -> None:
    whole = path.read_bytes()
    path.write_bytes(whole[:4096] + bytes(b ^ 0x5A for b in whole[4096:]))
    assert _refusal(path).startswith(f"The ledger '{path}' could not be used: database disk image is malformed") or (
        _refusal(path).startswith("The ledger is damaged")
    )


@pytest.mark.parametrize(
    ("statement", "what"),
    [
        ("UPDATE account SET spent = '0/1'", "its sums do not agree with its history"),
        ("UPDATE account SET total = '9/1'", "its sums do not agree with its history"),
        (
            "INSERT INTO entry SELECT 9, account, time, kind, label, release_id, policy, fingerprint, "
            "unit, max_per_entity, epsilon, rate, '0/1' FROM entry WHERE kind = 'release'",
            "its history does not add up",
        ),
    ],
)
def test_an_edited_ledger_is_refused(path: Path, statement: str, what: str) -> None:
    _edit(path, statement)
    assert _refusal(path) == (
        f"The ledger is damaged: '{path}', account 'default': {what}. Nothing was drawn or recorded. Restore a backup."
    )


def test_a_ledger_that_is_overspent_is_refused(path: Path) -> None:
    _edit(
        path,
        "INSERT INTO entry SELECT 9, account, time, kind, label, release_id, policy, fingerprint, unit, "
        "max_per_entity, '3/1', 1, '3/1' FROM entry WHERE kind = 'release'",
        "UPDATE account SET spent = '13/4'",
    )
    assert _refusal(path) == (
        f"The ledger is damaged: '{path}', account 'default': more is spent than it holds. Nothing was "
        "drawn or recorded. Restore a backup."
    )


@pytest.mark.parametrize("amount", ["much", "1/0", "-1/4", ""])
def test_an_amount_that_cannot_be_read_is_damage(path: Path, amount: str) -> None:
    _edit(path, f"UPDATE account SET spent = '{amount}'")
    assert _refusal(path) == (
        "The ledger is damaged: account 'default' cannot be read. Nothing was drawn or recorded. Restore a backup."
    )


@pytest.mark.parametrize("spec", ["{", '{"name": "os.system"}', "[]", '"within"'])
def test_a_policy_that_cannot_be_read_is_damage(path: Path, spec: str) -> None:
    _edit(path, f"UPDATE account SET policy = '{spec}'")
    with pytest.raises(LedgerError) as caught:
        _ = Ledger(path).policy
    assert str(caught.value) == (
        "The ledger is damaged: account 'default': its policy cannot be read. Nothing was drawn or "
        "recorded. Restore a backup."
    )


def test_a_policy_that_was_exchanged_is_noticed(path: Path) -> None:
    _edit(path, "UPDATE account SET fingerprint = 'abc'")
    with pytest.raises(LedgerError) as caught:
        Ledger(path).charge(0.1, POLICY, label="visits", release_id="r2")
    assert str(caught.value) == (
        "The ledger is damaged: account 'default': its policy does not match its fingerprint. Nothing "
        "was drawn or recorded. Restore a backup."
    )
    assert Ledger(path).spent == 0.25


def test_a_journal_without_its_ledger_is_refused(tmp_path: Path) -> None:
    journal = tmp_path / "budget.db-wal"
    journal.write_bytes(b"left over")
    with pytest.raises(LedgerError) as caught:
        Ledger.create(tmp_path / "budget.db", epsilon=1)
    assert str(caught.value) == (
        f"'{journal}' exists but '{tmp_path / 'budget.db'}' does not: a ledger was moved or deleted "
        "without its journal. Nothing was drawn or recorded. Put the ledger back beside it, or choose "
        "another path."
    )
    assert [p.name for p in tmp_path.iterdir()] == ["budget.db-wal"]


# ------------------------------------------------------------------ places that cannot be written


def test_a_missing_directory_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "none" / "budget.db"
    with pytest.raises(LedgerError) as caught:
        Ledger.create(path, epsilon=1)
    assert str(caught.value) == (
        f"'{path.parent}' does not exist, so no ledger can be made there. Nothing was drawn or recorded. "
        "Create it first, or choose another path."
    )


def test_a_directory_is_no_ledger(tmp_path: Path) -> None:
    with pytest.raises(LedgerError) as caught:
        Ledger.create(tmp_path, epsilon=1)
    assert str(caught.value) == (
        f"The ledger '{tmp_path}' could not be used: unable to open database file (SQLITE_CANTOPEN). "
        "Nothing was drawn. Check that the file exists and that it and its directory are readable and "
        "writable."
    )


@pytest.mark.parametrize("renames", [True, False])
def test_two_that_create_the_ledger_at_once_share_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, renames: bool
) -> None:
    """Where the kernel renames without replacing, and where two of us hold the folder in turn."""
    path, rename = tmp_path / "budget.db", claim._renamed

    def overtaken(draft: Path, target: Path) -> bool:
        monkeypatch.setattr(claim, "_renamed", rename if renames else lambda *_: False)
        Ledger.create(path, epsilon=1).charge(0.25, POLICY, label="visits", release_id="r1")
        return claim._renamed(draft, target)

    monkeypatch.setattr(claim, "_renamed", overtaken)
    assert opened(path, 1).spent == 0.25
    assert [p.name for p in tmp_path.iterdir()] == ["budget.db"]


def test_a_busy_ledger_is_given_up_after_the_timeout(path: Path) -> None:
    ledger = Ledger(path, timeout=0.05)
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(LedgerError) as caught:
        ledger.charge(0.25, POLICY, label="visits", release_id="r2")
    assert str(caught.value) == (
        f"The ledger '{path}' could not be used: database is locked (SQLITE_BUSY). Nothing was drawn. "
        "Another process holds the ledger. Try again when it has finished."
    )
    other.execute("ROLLBACK")
    other.close()
    assert ledger.spent == 0.25


_AS_NOBODY = """
import os, sys, tempfile
from pathlib import Path
from sfumato.domain import Line
from sfumato.policies import threshold
from sfumato.ledger import Ledger
from sfumato.errors import LedgerError
path = Path(sys.argv[1])
policy = threshold(Line(0, 1, cells=5), theta=1)
# What is imported late may lie where only root may read.
Ledger.create(Path(tempfile.mkdtemp()) / "spare.db", epsilon=1).charge(1, policy, label="spare", release_id="r")
if os.geteuid() == 0:
    os.setegid(65534)
    os.seteuid(65534)
try:
    {action}
except LedgerError as error:
    print(error)
"""


def _as_nobody(path: Path, action: str) -> str:
    """What an action prints when it is run without the rights of root."""
    script = textwrap.dedent(_AS_NOBODY).format(action=action)
    done = subprocess.run([sys.executable, "-c", script, str(path)], capture_output=True, text=True, check=True)
    return done.stdout.strip()


CHARGE = "Ledger(path).charge(0.1, policy, label='visits', release_id='r2')"


@pytest.mark.skipif(os.name == "nt", reason="POSIX permissions")
@pytest.mark.parametrize("protect", ["file", "directory"])
def test_a_read_only_ledger_is_refused_and_nothing_is_charged(open_directory: Path, protect: str) -> None:
    path = open_directory / "budget.db"
    Ledger.create(path, epsilon=1).charge(0.25, POLICY, label="visits", release_id="r1")
    if os.geteuid() == 0:
        os.chown(path, 65534, 65534)
        os.chown(open_directory, 65534, 65534)
    if protect == "file":
        path.chmod(0o444)
    else:
        open_directory.chmod(0o555)
    message = _as_nobody(path, CHARGE)
    assert message.startswith(f"The ledger '{path}' could not be used: ")
    assert "Nothing was drawn." in message
    assert "writable" in message
    path.chmod(0o644)
    open_directory.chmod(0o755)
    assert Ledger(path).spent == 0.25


@pytest.mark.skipif(os.name == "nt", reason="POSIX permissions")
def test_a_forbidden_directory_is_refused(open_directory: Path) -> None:
    hidden = open_directory / "hidden"
    hidden.mkdir(mode=0o700)
    if os.geteuid() != 0:
        hidden.chmod(0)
    message = _as_nobody(hidden / "budget.db", "Ledger.create(path, epsilon=1)")
    hidden.chmod(0o700)
    assert "Nothing was drawn" in message
    assert list(hidden.iterdir()) == []


_FULL_DISK = """
import resource, sys
from pathlib import Path
from sfumato.domain import Line
from sfumato.policies import threshold
from sfumato.ledger import Ledger
from sfumato.errors import LedgerError
ledger = Ledger(Path(sys.argv[1]))
policy = threshold(Line(0, 1, cells=5), theta=1)
size = int(sys.argv[2])
resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))
done = 0
try:
    while True:
        ledger.charge("1/1000", policy, label="visits " * 20, release_id=f"r{done}")
        done += 1
except LedgerError as error:
    print(done)
    print(error)
"""


@pytest.mark.skipif(os.name == "nt", reason="POSIX resource limits")
@pytest.mark.parametrize("kilobytes", [4, 8, 32, 36, 48, 64])
def test_a_full_disk_charges_nothing_and_says_so(tmp_path: Path, kilobytes: int) -> None:
    path = tmp_path / "budget.db"
    Ledger.create(path, epsilon=1)
    script = [sys.executable, "-c", _FULL_DISK, str(path), str(kilobytes * 1024)]
    done = subprocess.run(script, capture_output=True, text=True, check=True)
    acknowledged, message = done.stdout.strip().split("\n")
    assert message.startswith(f"The ledger '{path}' could not be used: ")
    assert "Nothing was drawn." in message
    ledger = Ledger(path)
    assert ledger.spent * 1000 == int(acknowledged)
    ledger.charge("1/1000", POLICY, label="visits", release_id="after")


def test_the_application_id_marks_our_files(path: Path) -> None:
    assert int.from_bytes(path.read_bytes()[68:72], "big") == APPLICATION_ID
