"""`sfumato doctor`: what is good, what is absent and how to install it, what is wrong, and its exit code."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import namedtuple
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import sfumato as sf
from sfumato.app import doctor, installed
from sfumato.app.cli import app
from sfumato.app.installed import Package, packages


@pytest.fixture
def budget(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return sf.Ledger.create("budget.db", epsilon=3)


def run(*arguments):
    return CliRunner().invoke(app, ["doctor", *map(str, arguments)])


def findings(*arguments):
    told = json.loads(run(*arguments, "--json").stdout)
    return {one["what"]: one for one in told["findings"]}


def test_a_sound_machine_is_told_in_lines_and_exits_with_zero(budget):
    result = run("budget.db")
    assert result.exit_code == 0, result.output
    assert "Everything that is here works." in result.stdout
    assert "✓ ledger       budget.db holds together: default 3 of 3 left" in result.stdout
    assert f"✓ sfumato      {sf.__version__}" in result.stdout
    assert not [path for path in Path().iterdir() if "doctor" in path.name], "it leaves nothing behind"


def test_programs_get_the_same(budget):
    told = findings("budget.db")
    assert {"sfumato", "packages", "Java", "randomness", "disk", "clock", "ledger", "[plot]", "[spark]"} <= set(told)
    assert {one["state"] for one in told.values()} <= {"good", "absent"}


def test_an_extra_that_is_absent_names_its_line_and_is_not_wrong(budget, monkeypatch):
    there = (Package("numpy", None, "2.0", "2.4.0"), Package("matplotlib", "plot", "3.9", None))
    monkeypatch.setattr(doctor, "packages", lambda: there)
    assert findings()["[plot]"] == {
        "what": "[plot]",
        "state": "absent",
        "words": "not installed: pip install 'sfumato[plot]'",
    }
    assert run().exit_code == 0


@pytest.mark.parametrize(
    ("there", "said"),
    [
        (Package("numpy", None, "2.0", "1.26.4"), "too old: numpy 1.26.4 (at least 2.0)"),
        (Package("numpy", None, "2.0", None), "not there: numpy"),
    ],
)
def test_a_package_that_is_needed_and_old_or_gone_is_wrong(there, said, budget, monkeypatch):
    monkeypatch.setattr(doctor, "packages", lambda: (there,))
    assert said in findings()["packages"]["words"]
    assert run().exit_code == 4


def test_an_extra_that_is_too_old_is_wrong(budget, monkeypatch):
    monkeypatch.setattr(doctor, "packages", lambda: (Package("h3", "h3", "4.2", "3.7"),))
    assert findings()["[h3]"]["words"] == "h3 3.7 is too old: pip install 'sfumato[h3]'"
    assert run().exit_code == 4


@pytest.mark.parametrize(
    ("version", "least", "old"),
    [("2.0", "2.0", False), ("2.10", "2.9", False), ("1.9.3", "2.0", True), ("2.0rc1", "2.0", False), ("3", "", False)],
)
def test_versions_are_compared_as_numbers(version, least, old):
    assert Package("p", None, least, version).old is old


def test_what_is_asked_for_is_what_the_package_states():
    there = {package.name: package for package in packages()}
    assert there["numpy"].extra is None and there["numpy"].version == np.__version__
    assert there["matplotlib"].extra == "plot" and there["shapely"].extra == "geo"
    assert not {"pytest", "ruff", "zensical", "sfumato"} & set(there), (
        "tools of those who build it are nobody's concern"
    )


def test_a_folder_that_is_not_installed_says_so(monkeypatch):
    def absent(name):
        raise installed.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(installed.metadata, "requires", absent)
    assert packages() == ()
    assert [finding.state for finding in doctor.versions()] == ["good", "absent"]


class Leaning:
    private = True

    def words(self, count):
        words = np.random.default_rng(1).integers(0, 1 << 64, count, dtype=np.uint64)
        return words | (np.uint64(1) << np.uint64(63))  # one bit in sixty-four is always one


class Repeating:
    private = True

    def words(self, count):
        return np.random.default_rng(1).integers(0, 1 << 64, count, dtype=np.uint64)


@pytest.mark.parametrize("source", [Leaning, Repeating])
def test_randomness_that_leans_or_repeats_is_wrong(source, budget, monkeypatch):
    monkeypatch.setattr(doctor, "SystemSource", source)
    told = findings()["randomness"]
    assert told["state"] == "wrong" and "nothing may be published here" in told["words"]


def test_a_folder_that_is_not_there_is_wrong(budget):
    told = findings("--folder", "nowhere")["disk"]
    assert told["state"] == "wrong" and "--folder" in told["words"]


def test_a_full_disk_is_wrong(budget, monkeypatch):
    usage = namedtuple("usage", "total used free")
    monkeypatch.setattr(doctor.shutil, "disk_usage", lambda where: usage(10, 9, 1_000_000))
    assert "1 MB are free, and 67 should be" in findings()["disk"]["words"]


def test_a_clock_of_long_ago_is_wrong(budget, monkeypatch):
    class Past(datetime):
        @classmethod
        def now(cls, tz=None):
            return datetime(1970, 1, 1, tzinfo=tz or UTC)

    monkeypatch.setattr(doctor, "datetime", Past)
    assert "1970-01-01" in findings()["clock"]["words"]


def test_a_machine_without_zones_is_told_what_to_install(budget, monkeypatch):
    def none(name):
        raise doctor.zoneinfo.ZoneInfoNotFoundError(name)

    monkeypatch.setattr(doctor.zoneinfo, "ZoneInfo", none)
    assert "pip install tzdata" in findings()["clock"]["words"]


def test_a_ledger_that_is_not_there_is_wrong_and_not_made(budget):
    told = findings("other.db")["ledger"]
    assert told["words"] == "other.db is not there. Make it with: sfumato ledger create other.db --epsilon …"
    assert not Path("other.db").exists()
    assert run("other.db").exit_code == 4


def test_a_ledger_that_is_damaged_is_wrong(budget):
    Path("budget.db").write_bytes(b"no ledger at all" * 100)
    assert findings("budget.db")["ledger"]["state"] == "wrong"


def test_a_server_that_cannot_be_reached_is_wrong_and_its_password_is_not_shown(budget):
    result = run("postgresql://somebody:hunter2@127.0.0.1:1/nothing")
    assert result.exit_code == 4 and "✗ ledger" in result.stdout
    assert "hunter2" not in result.output


def test_shells_are_offered_completion():
    environment = {**os.environ, "_SFUMATO_COMPLETE": "complete_bash", "COMP_WORDS": "sfumato doc", "COMP_CWORD": "1"}
    command = [sys.executable, "-c", "import sys; sys.argv[0] = 'sfumato'; from sfumato.app.cli import main; main()"]
    ran = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert ran.stdout.split() == ["doctor"], ran.stderr
