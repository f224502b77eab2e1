"""The file is complete by itself: plain copies forget nothing, torn ones are refused, older files are converted."""

from __future__ import annotations

import itertools
import random
import sqlite3
from contextlib import closing
from fractions import Fraction
from pathlib import Path

import pytest
from ledger_worker import POLICY, charge_once, interrupt_statements

from sfumato.errors import InvalidInput, LedgerError
from sfumato.ledger import Ledger, tally
from sfumato.ledger import store as store_module

ONE = Fraction(1, 100)
PAGE = 4096


@pytest.fixture
def path(tmp_path: Path) -> Path:
    Ledger.create(tmp_path / "budget.db", epsilon=10)
    return tmp_path / "budget.db"


def _charge(ledger: Ledger, number: int) -> None:
    ledger.charge(ONE, POLICY, label="visits " * 40, release_id=f"r{number}")


def _edit(path: Path, *statements: str) -> None:
    with closing(sqlite3.connect(path)) as connection:
        for statement in statements:
            connection.execute(statement)
        connection.commit()


# ------------------------------------------------------------------ plain copies


def test_a_plain_copy_of_the_file_alone_holds_every_charge(path: Path, tmp_path: Path) -> None:
    ledger = Ledger(path)
    for number in range(5):
        _charge(ledger, number)
        copy = tmp_path / f"{number}.copy"
        copy.write_bytes(path.read_bytes())
        assert Ledger(copy).spent == (number + 1) * ONE


def test_a_copy_while_another_connection_is_open_holds_every_charge(path: Path, tmp_path: Path) -> None:
    """A reader kept an older ledger's charges in its journal."""
    with closing(sqlite3.connect(path)) as reader:
        reader.execute("SELECT count(*) FROM entry").fetchone()
        charge_once(Ledger(path))
        (tmp_path / "copy.db").write_bytes(path.read_bytes())
    assert Ledger(tmp_path / "copy.db").spent == ONE
    assert {p.name for p in tmp_path.iterdir()} == {"budget.db", "copy.db"}


def test_a_ledger_that_wrote_ahead_is_converted_with_what_is_in_its_journal(path: Path, tmp_path: Path) -> None:
    charge_once(Ledger(path))
    with closing(sqlite3.connect(path)) as writer:
        writer.execute("PRAGMA journal_mode = WAL")
        writer.execute("PRAGMA wal_autocheckpoint = 0")
        writer.execute("UPDATE account SET opened = '2000-01-01T00:00:00+00:00'")
        writer.commit()
        old = tmp_path / "old.db"
        for suffix in ("", "-wal"):
            old.with_name(old.name + suffix).write_bytes(path.with_name(path.name + suffix).read_bytes())
    assert old.with_name("old.db-wal").stat().st_size > 0
    ledger = Ledger(old)
    assert ledger.spent == ONE
    assert ledger.accounts()[0].opened.year == 2000
    assert not old.with_name("old.db-wal").exists()
    assert old.read_bytes()[18:20] == b"\x01\x01"  # no longer one that writes ahead


def test_a_journal_of_the_ledger_that_was_here_before_is_refused(path: Path) -> None:
    journal = path.with_name("budget.db-wal")
    journal.write_bytes(b"left over")
    with pytest.raises(LedgerError) as caught:
        Ledger(path)
    assert str(caught.value) == (
        f"'{journal}' is not the journal of '{path}': it was left by a ledger that was here before. Nothing was drawn "
        "or recorded. Move it away, or put the ledger back that it belongs to."
    )


@pytest.mark.parametrize("suffix", ["-wal", "-journal"])
def test_a_journal_without_its_ledger_is_no_place_for_a_new_one(tmp_path: Path, suffix: str) -> None:
    (tmp_path / f"budget.db{suffix}").write_bytes(b"left over")
    with pytest.raises(LedgerError, match="a ledger was moved or deleted without its journal"):
        Ledger.create(tmp_path / "budget.db", epsilon=1)
    assert [p.name for p in tmp_path.iterdir()] == [f"budget.db{suffix}"]


# ------------------------------------------------------------------ torn copies


def _accepted(path: Path, content: bytes) -> tuple[Fraction, int] | None:
    """(spent, entries) of a file with this content, or None when it is refused."""
    path.write_bytes(content)
    try:
        ledger = Ledger(path)
        ids = [entry.release_id for entry in ledger.history() if entry.kind == "release"]
        levels = [ledger.level(name) for name in dict.fromkeys(ids) if name is not None]
    except LedgerError:
        return None
    assert ledger.spent == sum(entry.cost for entry in ledger.history())
    assert sum(level for level, _ in levels if level) == len(ids) - len(levels)
    return ledger.spent, len(ids)


def _pages(content: bytes, count: int) -> list[bytes]:
    return [content[PAGE * i : PAGE * (i + 1)] for i in range(count)]


@pytest.mark.parametrize("act", ["charge", pytest.param("level", marks=pytest.mark.slow)])
def test_a_copy_with_any_mixture_of_pages_is_refused_or_whole(path: Path, tmp_path: Path, act: str) -> None:
    """Every set of the pages that one charge changes, old or new."""
    ledger = Ledger(path)
    for number in range(3):
        _charge(ledger, number)
    before = path.read_bytes()
    if act == "charge":
        _charge(ledger, 3)
    else:
        ledger.raise_level("r1", level=1, epsilon=2 * ONE, label="finer")
    after = path.read_bytes()
    count = len(after) // PAGE
    old, new = _pages(before, count), _pages(after, count)
    changed = [i for i in range(count) if old[i] != new[i]]
    assert 4 <= len(changed) <= 9
    states = {(3 * ONE, 3), (4 * ONE, 4)}
    refused = 0
    for chosen in itertools.product((0, 1), repeat=len(changed)):
        pages = list(old)
        for i, which in zip(changed, chosen, strict=True):
            pages[i] = new[i] if which else old[i]
        found = _accepted(tmp_path / "torn.db", b"".join(pages))
        assert found is None or found in states
        refused += found is None
        if all(chosen):
            assert found == (4 * ONE, 4)  # what was acknowledged is there
    assert refused > 2 ** len(changed) / 2


def test_a_copy_that_was_overtaken_by_charges_is_refused_or_whole(path: Path, tmp_path: Path) -> None:
    """As a slow copy reads: the beginning of the file from one moment, the rest from a later one."""
    ledger, states = Ledger(path), []
    for number in range(40):
        _charge(ledger, number)
        states.append(path.read_bytes())
    draw = random.Random(7)
    for _ in range(150):
        first, later = sorted(draw.sample(range(len(states)), 2))
        cut = PAGE * draw.randrange(1, len(states[later]) // PAGE)
        content = states[first][:cut] + states[later][cut:]
        found = _accepted(tmp_path / "torn.db", content)
        assert found is None or found in {((first + 1) * ONE, first + 1), ((later + 1) * ONE, later + 1)}


@pytest.mark.parametrize(
    "statement",
    [
        "DELETE FROM entry WHERE id = 3",
        "UPDATE entry SET label = 'another' WHERE id = 3",
        "UPDATE entry SET release_id = 'r0' WHERE id = 3",
        "UPDATE tally SET digest = 'abc' WHERE mark = 'newest'",
        "UPDATE tally SET entries = 2 WHERE mark = 'newest'",
        "UPDATE tally SET levels = 1 WHERE mark = 'newest'",
        "INSERT INTO entry SELECT 9, account, time, kind, label, release_id, policy, fingerprint, unit, "
        "max_per_entity, epsilon, rate, cost FROM entry WHERE id = 3",
    ],
)
def test_what_was_edited_since_it_was_checked_is_noticed_at_opening_and_by_a_charge(path: Path, statement: str) -> None:
    ledger = Ledger(path)
    for number in range(3):
        _charge(ledger, number)
    _edit(path, "DROP TRIGGER entry_never_changes", "DROP TRIGGER entry_never_goes", statement)
    with pytest.raises(LedgerError, match="The ledger is damaged"):
        Ledger(path)


def test_a_charge_notices_entries_that_its_tally_does_not_have(path: Path) -> None:
    ledger = Ledger(path)
    _charge(ledger, 0)
    _edit(
        path,
        "INSERT INTO entry SELECT 9, account, time, kind, label, release_id, policy, fingerprint, unit, "
        "max_per_entity, epsilon, rate, cost FROM entry WHERE id = 2",
    )
    with pytest.raises(LedgerError, match="the entries of an account are not those of its tally"):
        _charge(ledger, 1)


# ------------------------------------------------------------------ opening reads what is new


def _entries_read(monkeypatch: pytest.MonkeyPatch, path: Path, *, whole: bool = False) -> int:
    read, add = [0], tally.Tally.with_entries

    def counting(self: tally.Tally, added: object) -> tally.Tally:
        rows = list(added)  # type: ignore[call-overload]
        read[0] += len(rows)
        return add(self, rows)

    with monkeypatch.context() as patched:
        patched.setattr(tally.Tally, "with_entries", counting)
        ledger = Ledger(path)
        if whole:
            read[0] = 0
            ledger.check()
    return read[0]


def test_opening_reads_no_more_than_came_since_the_last_look(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tally, "STRETCH", 10)
    ledger = Ledger(path)
    seen = []
    for number in range(45):
        _charge(ledger, number)
        seen.append(_entries_read(monkeypatch, path))
    assert max(seen) == 9
    assert seen[-10:] == seen[-20:-10]  # as long as the history grows
    assert _entries_read(monkeypatch, path, whole=True) >= 46


def test_long_histories_are_read_a_chunk_at_a_time(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tally, "CHUNK", 4)
    ledger = Ledger(path)
    for number in range(12):
        _charge(ledger, number)
    Ledger(path).check()
    assert Ledger(path).spent == 12 * ONE


def test_opening_begins_no_write(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    charge_once(Ledger(path))
    seen: list[str] = []
    monkeypatch.setattr(store_module.sqlite3, "connect", sqlite3.connect)  # put back when the test ends
    interrupt_statements(lambda _, statement: seen.append(statement))
    Ledger(path)
    assert "BEGIN" in seen
    assert not {"BEGIN IMMEDIATE", "BEGIN EXCLUSIVE"} & set(seen)


def test_an_edit_of_what_was_checked_is_found_by_looking_through_everything(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tally, "STRETCH", 3)
    ledger = Ledger(path)
    for number in range(7):
        _charge(ledger, number)
    _edit(path, "DROP TRIGGER entry_never_changes", "UPDATE entry SET label = 'another' WHERE id = 3")
    again = Ledger(path)
    with pytest.raises(LedgerError, match="its history was changed"):
        again.check()


def test_the_tally_is_carried_by_many_accounts_and_levels(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tally, "STRETCH", 2)
    accounts = [Ledger(path), Ledger.create(path, epsilon=5, dataset="trips")]
    for number in range(6):
        for ledger in accounts:
            _charge(ledger, number)
            ledger.raise_level(f"r{number}", level=1, epsilon=2 * ONE, label="finer")
            Ledger(path).check()
    accounts[0].raise_cap(11)
    for ledger in accounts:
        Ledger(path, dataset=ledger.dataset).check()
        assert ledger.spent == 12 * ONE


# ------------------------------------------------------------------ backups


def test_a_backup_is_a_ledger_with_everything_up_to_it(path: Path, tmp_path: Path) -> None:
    ledger = Ledger(path)
    Ledger.create(path, epsilon=5, dataset="trips")
    for number in range(3):
        _charge(ledger, number)
    assert ledger.backup(tmp_path / "copy.db") == tmp_path / "copy.db"
    _charge(ledger, 3)
    copy = Ledger(tmp_path / "copy.db")
    assert (copy.spent, ledger.spent) == (3 * ONE, 4 * ONE)
    assert [account.dataset for account in copy.accounts()] == ["default", "trips"]
    assert {p.name for p in tmp_path.iterdir()} == {"budget.db", "copy.db"}
    assert (tmp_path / "copy.db").stat().st_mode == path.stat().st_mode


def test_a_backup_never_replaces_a_file(path: Path, tmp_path: Path) -> None:
    (tmp_path / "copy.db").write_text("mine")
    for target in (tmp_path / "copy.db", path):
        with pytest.raises(LedgerError) as caught:
            Ledger(path).backup(target)
        assert str(caught.value) == f"'{target}' exists already. Nothing was written. A copy never replaces a file."
    assert (tmp_path / "copy.db").read_text() == "mine"
    assert {p.name for p in tmp_path.iterdir()} == {"budget.db", "copy.db"}


def test_a_backup_that_cannot_be_written_leaves_nothing(path: Path, tmp_path: Path) -> None:
    with pytest.raises(LedgerError):
        Ledger(path).backup(tmp_path / "none" / "copy.db")
    assert {p.name for p in tmp_path.iterdir()} == {"budget.db"}


def test_a_server_is_copied_by_its_own_tools(url: str, tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="pg_dump"):
        Ledger.create(url, epsilon=1).backup(tmp_path / "copy.db")
