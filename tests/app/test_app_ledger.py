"""`sfumato ledger` and --out: what is created in so many words, what is shown, and what was paid for is never lost."""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

import sfumato as sf
from sfumato.app.cli import app
from sfumato.files import Reserved

GRID = ["--bounds=0,0,1,1", "--shape", "8x8", "--delta", "0.3"]


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return tmp_path / "state" / "sfumato" / "outbox"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "visits.csv").write_text("x,y\n" + "0.5,0.5\n0.2,0.3\n" * 20)
    sf.Ledger.create(tmp_path / "budget.db", epsilon=5)
    return tmp_path


def run(*arguments: object) -> Result:
    return CliRunner().invoke(app, [str(one) for one in arguments])


def publish(folder: Path, out: Path, *more: object) -> Result:
    given = ["publish", folder / "visits.csv", *GRID, "--epsilon", "4", "--ledger", folder / "budget.db"]
    return run(*given, "--out", out, *more)


# --- the ledger -------------------------------------------------------------------------------------------------------


def test_create_makes_an_account_once(tmp_path: Path) -> None:
    place = tmp_path / "budget.db"
    assert run("ledger", "create", place, "--epsilon", "2").exit_code == 0
    again = run("ledger", "create", place, "--epsilon", "2")
    assert (again.exit_code, "already" in again.stderr) == (2, True)
    assert sf.Ledger(place).total == 2


def test_open_stays_and_says_what_it_is(tmp_path: Path) -> None:
    first = run("ledger", "open", tmp_path / "budget.db", "--epsilon", "2")
    again = run("ledger", "open", tmp_path / "budget.db", "--epsilon", "2")
    assert (first.exit_code, again.exit_code) == (0, 0)
    name = "'sfumato ledger open' is the earlier name of 'sfumato ledger create'. It "
    assert f"{name}created a new account." in first.stderr
    assert f"{name}opened an account that was there." in again.stderr


def test_show_lists_the_accounts_when_the_named_one_is_not_there(folder: Path) -> None:
    sf.Ledger.create(folder / "budget.db", epsilon=1, dataset="trips")
    shown = run("ledger", "show", folder / "budget.db", "--dataset", "visits")
    assert shown.exit_code == 2
    assert "There is no account 'visits'" in shown.stderr
    assert "Its accounts are 'default', 'trips'." in shown.stderr


def test_json_carries_policy_and_unit(folder: Path) -> None:
    place = folder / "budget.db"
    before = json.loads(run("ledger", "show", place, "--json").stdout)
    assert [before[name] for name in ("policy", "policy_in_words", "fingerprint", "unit", "max_per_entity")] == [
        None
    ] * 5
    policy = sf.threshold(sf.Line(0, 1, cells=4), 1)
    sf.Ledger.create(place, epsilon=1, dataset="trips", policy=policy, unit="person", max_per_entity=3)
    shown = json.loads(run("ledger", "show", place, "--dataset", "trips", "--json").stdout)
    assert shown["policy"] == policy.spec()
    assert shown["policy_in_words"] == policy.describe()
    assert (shown["fingerprint"], shown["unit"], shown["max_per_entity"]) == (policy.fingerprint, "person", 3)
    assert shown["accounts"] == ["default", "trips"]


def test_an_account_that_hides_a_relation_is_made_and_shown(tmp_path: Path) -> None:
    place, hide = tmp_path / "budget.db", 'move("500 m") | change("mode")'
    given = ["ledger", "create", place, "--epsilon", "10", "--hide", hide, "--fixed", "t", "--fixed", "fare"]
    made = run(*given)
    assert made.exit_code == 0, made.stderr
    said = (
        "It hides that one record changes in one of these ways: its place moves by less than 500 m (on the ellipsoid); "
        "its mode becomes any other; declared fixed: 'fare', 't'\n"
    )
    assert said in made.stdout
    assert said in run("ledger", "show", place).stdout
    shown = json.loads(run("ledger", "show", place, "--json").stdout)
    assert sf.relation_from_text(shown["relation"]) == sf.relation_from_text(hide).named("place")
    assert (shown["fixed"], shown["policy"]) == (["fare", "t"], None)
    assert shown["relation_in_words"] == sf.Ledger(place).relation.describe()  # type: ignore[union-attr]
    wrong = run("ledger", "create", place, "--epsilon", "1", "--dataset", "b", "--hide", "move(")
    assert wrong.exit_code == 2
    assert run("ledger", "create", place, "--epsilon", "1", "--dataset", "b", "--fixed", "t").exit_code == 2
    assert [one.dataset for one in sf.Ledger(place).accounts()] == ["default"]


def test_show_names_the_policy_or_the_unit_of_an_account(tmp_path: Path) -> None:
    place = tmp_path / "budget.db"
    sf.Ledger.create(place, epsilon=1, policy=sf.threshold(sf.Line(0, 1, cells=4), 1), unit="record")
    assert "Account's policy: one record moves by at most 1 cell" in run("ledger", "show", place).stdout
    sf.Ledger.create(place, epsilon=1, dataset="b", hide=sf.presence(), max_per_entity=2)
    assert "\nUnit: person, at most 2 counted of each person\n" in run("ledger", "show", place, "--dataset", "b").stdout


def test_backup_and_check(folder: Path) -> None:
    place, copy = folder / "budget.db", folder / "copy.db"
    assert run("ledger", "backup", place, copy).exit_code == 0
    assert sf.Ledger(copy).total == 5
    again = run("ledger", "backup", place, copy)
    assert (again.exit_code, "exists already" in again.stderr) == (4, True)
    assert run("ledger", "check", place).stdout == f"{place} holds together: 1 account.\n"
    assert json.loads(run("ledger", "check", copy, "--json").stdout) == {"sound": True, "accounts": ["default"]}
    missing = run("ledger", "backup", folder / "none.db", folder / "other.db")
    assert (missing.exit_code, "there is no ledger" in missing.stderr) == (2, True)


@pytest.mark.parametrize("command", ["publish", "stream", "refine"])
def test_no_command_that_publishes_creates_a_ledger(folder: Path, command: str) -> None:
    place = folder / "none.db"
    (folder / "secrets").mkdir()
    sf.plan(sf.bounded(sf.Line(0, 1, cells=4)), sf.histogram(), 1).publish(_counts(4)).save(folder / "a.sfumato")
    rest = {
        "publish": [folder / "visits.csv", *GRID, "--out", folder / "out.sfumato"],
        "stream": [
            *(folder / "visits.csv", *GRID, "--time", "x", "--step", "1", "--window", "2", "--name", "v"),
            *("--start", "0", "--stop", "1", "--out", folder / "out"),
        ],
        "refine": [
            *(folder / "a.sfumato", "--vault", folder / "secrets", "--key", folder / "key"),
            *("--epsilon", "2", "--out", folder / "out.sfumato"),
        ],
    }[command]
    result = run(command, *rest, "--ledger", place)
    assert result.exit_code == 2
    if command != "stream":  # whose time column is refused first
        assert "There is no ledger" in result.stderr
    assert not place.exists()
    assert not (folder / "out.sfumato").exists()


def _counts(cells: int) -> Any:
    import numpy as np

    return np.ones(cells, dtype=np.int64)


# --- where a release goes ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("out", "said", "code"),
    [
        ("", "cannot be written there", 2),
        ("none/out.sfumato", "cannot be written there", 2),
        ("visits.csv", "is the data itself", 2),
        ("budget.db", "is the ledger", 2),
    ],
)
def test_an_out_that_cannot_be_is_refused_before_anything_is_charged(
    folder: Path, out: str, said: str, code: int
) -> None:
    names = sorted(p.name for p in folder.iterdir())
    content = (folder / "visits.csv").read_bytes(), (folder / "budget.db").read_bytes()
    result = publish(folder, folder / out)
    assert result.exit_code == code
    assert said in result.stderr
    assert "Nothing was counted, drawn or recorded." in result.stderr
    assert sf.Ledger(folder / "budget.db").spent == 0
    assert content == ((folder / "visits.csv").read_bytes(), (folder / "budget.db").read_bytes())
    assert sorted(p.name for p in folder.iterdir()) == names


def test_an_out_among_the_files_of_a_pattern_is_refused(folder: Path) -> None:
    given = ["publish", folder / "v*.csv", *GRID, "--ledger", folder / "budget.db", "--out", folder / "visits.csv"]
    result = run(*given)
    assert (result.exit_code, "is the data itself" in result.stderr) == (2, True)


_SMALL_DISK = """
import resource, sys
from sfumato.app.cli import app
size = int(sys.argv[1])
resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))
app(sys.argv[2:])
"""


@pytest.mark.skipif(os.name == "nt", reason="POSIX resource limits")
def test_a_disk_without_room_for_the_release_is_noticed_before_anything_is_charged(folder: Path) -> None:
    given = ["publish", folder / "visits.csv", *GRID, "--epsilon", "4", "--ledger", folder / "budget.db"]
    out = ["--out", folder / "out.sfumato"]
    command = [sys.executable, "-c", _SMALL_DISK, str(60_000), *map(str, [*given, *out])]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 4, done.stderr
    assert "cannot be written: File too large. Nothing was counted, drawn or recorded." in done.stderr
    assert sf.Ledger(folder / "budget.db").spent == 0
    assert sorted(p.name for p in folder.iterdir()) == ["budget.db", "visits.csv"]


@pytest.mark.parametrize("error", [OSError(errno.ENOSPC, "No space left on device"), KeyboardInterrupt()])
def test_a_release_that_cannot_be_written_after_its_charge_is_in_the_outbox(
    folder: Path, monkeypatch: pytest.MonkeyPatch, error: BaseException
) -> None:
    def full(*_: object) -> None:
        raise error

    monkeypatch.setattr(Reserved, "fill", full)
    result = publish(folder, folder / "out.sfumato", "--json")
    told = json.loads(result.stdout)["error"]
    (kept,) = (folder / "budget.db.outbox").iterdir()
    assert (result.exit_code, told["kind"], told["kept"]) == (4, "Undelivered", str(kept))
    assert "after the release was charged" in told["message"]
    assert kept.stat().st_mode & 0o777 == 0o600
    release = sf.load(kept)
    (entry,) = (entry for entry in sf.Ledger(folder / "budget.db").history() if entry.kind == "release")
    assert (entry.release_id, entry.epsilon) == (release.id, 4)
    assert release.total == 40
    assert not (folder / "out.sfumato").exists()


def test_without_room_beside_the_ledger_the_outbox_is_in_the_state_folder(
    folder: Path, state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    (folder / "budget.db.outbox").write_text("in the way")
    monkeypatch.setattr(Reserved, "fill", full)
    result = publish(folder, folder / "out.sfumato")
    (kept,) = state.iterdir()
    assert result.exit_code == 4
    assert str(kept) in result.stderr.replace("\n", "")
    assert sf.load(kept).total == 40


def test_an_out_that_became_a_folder_after_the_charge_leaves_the_release_in_the_outbox(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out, charge = folder / "out.sfumato", sf.Ledger.charge

    def then_a_folder(self: sf.Ledger, *given: Any, **named: Any) -> Any:
        receipt = charge(self, *given, **named)
        out.mkdir()
        return receipt

    monkeypatch.setattr(sf.Ledger, "charge", then_a_folder)
    assert publish(folder, out).exit_code == 4
    (kept,) = (folder / "budget.db.outbox").iterdir()
    assert sf.load(kept).total == 40
    assert not list(folder.glob(".*.part"))


def test_a_refused_charge_leaves_no_file_behind(folder: Path) -> None:
    names = sorted(p.name for p in folder.iterdir())
    assert publish(folder, folder / "out.sfumato", "--epsilon", "6").exit_code == 3
    assert sorted(p.name for p in folder.iterdir()) == names


def test_an_older_release_is_replaced_whole(folder: Path) -> None:
    (folder / "out.sfumato").write_text("older")
    assert publish(folder, folder / "out.sfumato").exit_code == 0
    assert sf.load(folder / "out.sfumato").total == 40


def test_a_finer_release_that_cannot_be_written_is_in_the_outbox(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept = ["--vault", folder / "secrets", "--key", folder / "key"]
    assert publish(folder, folder / "a.sfumato", *kept, "--epsilon", "1").exit_code == 0
    given = ["refine", folder / "a.sfumato", *kept, "--ledger", folder / "budget.db", "--epsilon", "2", "--out"]
    for place, said in (("budget.db", "is the ledger"), ("key", "is the vault's key"), ("", "cannot be written there")):
        result = run(*given, folder / place)
        assert (result.exit_code, said in result.stderr) == (2, True)
    assert sf.Ledger(folder / "budget.db").spent == 1

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Reserved, "fill", full)
    assert run(*given, folder / "b.sfumato").exit_code == 4
    (found,) = (folder / "budget.db.outbox").iterdir()
    assert sf.load(found).guarantee.epsilon == 2
