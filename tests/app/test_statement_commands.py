"""`sfumato statement`, `key`, `sign` and `verify`: for people and for programs."""

from __future__ import annotations

import json

import numpy as np
import pytest
from typer.testing import CliRunner

import sfumato as sf
from sfumato.app.cli import app


def run(*arguments):
    return CliRunner().invoke(app, [str(one) for one in arguments])


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    ledger = sf.Ledger.create("budget.db", epsilon=3)
    plan = sf.plan(sf.threshold(sf.Line(0, 4, cells=4), theta=1), sf.histogram(), epsilon=1)
    plan.publish(np.array([3, 0, 5, 1]), ledger=ledger).save("visits.sfumato")
    return tmp_path


def test_from_a_release_to_a_signed_statement_that_a_stranger_verifies(here):
    page = ("--ledger", "budget.db", "--out", "visits.html", "--fact", "Publisher=City of X")
    assert "Wrote visits.html" in run("statement", "visits.sfumato", *page).stdout
    assert "City of X" in (here / "visits.html").read_text(encoding="utf-8")
    made = run("key", "create", "publisher.key")
    assert "Hand out publisher.key.pub: sfumato-ed25519:" in made.stdout
    assert run("key", "show", "publisher.key").stdout.strip() in made.stdout
    assert run("sign", "visits.sfumato", "visits.html", "--key", "publisher.key").exit_code == 0
    for file in ("visits.sfumato", "visits.html"):
        found = run("verify", file, "--key", "publisher.key.pub")
        assert found.exit_code == 0, found.stdout
    told = json.loads(run("verify", "visits.sfumato", "--ledger", "budget.db", "--json").stdout)
    assert {one["name"]: one["outcome"] for one in told["checks"]}["ledger"] == "holds"


def test_the_exit_code_of_what_fails_and_of_what_is_not_there(here):
    content = (here / "visits.sfumato").read_bytes()
    (here / "visits.sfumato").write_bytes(content[:-20])
    found = run("verify", "visits.sfumato")
    assert found.exit_code == 7 and "FAILS: file" in found.stdout
    assert json.loads(run("verify", "visits.sfumato", "--json").stdout)["passed"] is False
    assert run("verify", "nowhere.sfumato").exit_code == 4
    assert run("verify", "visits.sfumato", "--key", "nowhere.pub").exit_code == 2
    assert run("sign", "visits.sfumato", "--key", "nowhere.key").exit_code == 2


def test_statements_of_ledgers_and_in_other_forms(here):
    assert run("statement", "--ledger", "budget.db").stdout.startswith("# Privacy statement: account 'default'")
    told = json.loads(run("statement", "visits.sfumato", "--json").stdout)
    assert told["figures"]["epsilon"] == "1"
    assert run("statement").exit_code == 2
    assert "is not NAME=TEXT" in run("statement", "visits.sfumato", "--fact", "nothing").stderr
    assert "facts lacks name, curator" in run("statement", "visits.sfumato", "--out", "record.yaml").stderr
    assert not (here / "record.yaml").exists()
