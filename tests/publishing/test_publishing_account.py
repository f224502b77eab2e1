"""Publishing without a ledger is said once in a process, before anything is drawn; values far outside are told."""

from __future__ import annotations

import subprocess
import sys
import warnings

import numpy as np
import pytest

import sfumato as sf
from sfumato.publishing import account

LINE = sf.Line(0, 8, cells=8)
PLAN = sf.plan(sf.bounded(LINE), sf.histogram(), epsilon=1)
COUNTS = np.arange(8)


@pytest.fixture(autouse=True)
def nothing_said_yet(monkeypatch):
    monkeypatch.setattr(account, "_said", set())


def refined(tmp_path):
    """A level of a release that was published without a ledger, in another process as it were."""
    vault = sf.Vault(tmp_path / "vault", tmp_path / "vault.key")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        release = PLAN.publish(COUNTS, vault=vault)
    account._said.clear()
    release.refine(epsilon=2, vault=vault)


WAYS = {
    "publish": lambda _: PLAN.publish(COUNTS),
    "points": lambda _: PLAN.publish(points=np.arange(8.0)),
    "median": lambda _: sf.median(np.arange(9.0), bounds=(0, 9), epsilon=1),
    "quantile": lambda _: sf.quantile(np.arange(9.0), 0.9, bounds=(0, 9), epsilon=1),
    "refine": refined,
}


@pytest.mark.parametrize("way", WAYS)
def test_without_a_ledger_it_is_said_once(way, tmp_path):
    with pytest.warns(sf.NoLedgerWarning) as told:
        WAYS[way](tmp_path)
        for again in ("publish", "median"):
            WAYS[again](tmp_path)
    (warning,) = told
    assert warning.filename == __file__
    assert str(warning.message).startswith("this is published without a ledger: nobody adds up what all releases")
    assert str(warning.message).endswith("This is said once.")


@pytest.mark.filterwarnings("error::sfumato.NoLedgerWarning")
def test_where_warnings_are_errors_nothing_is_drawn_without_a_ledger(monkeypatch):
    monkeypatch.setattr(sf.noise.SystemSource, "__init__", lambda self: None)  # a source that cannot draw
    for _ in range(2):
        with pytest.raises(sf.NoLedgerWarning):
            PLAN.publish(COUNTS)


@pytest.mark.filterwarnings("error::sfumato.NoLedgerWarning")
def test_a_ledger_or_seeded_randomness_or_a_refusal_is_not_warned_of(tmp_path):
    PLAN.publish(COUNTS, ledger=sf.Ledger.create(tmp_path / "budget.db", epsilon=1))
    PLAN.publish(COUNTS, source=sf.SeededSource(1))
    sf.median(np.arange(9.0), bounds=(0, 9), epsilon=1, source=sf.SeededSource(1))
    with pytest.raises(sf.InvalidInput):
        PLAN.publish(np.arange(9))


def test_a_program_hears_it_once_on_standard_error():
    program = (
        "import sfumato as sf\n"
        "plan = sf.plan(sf.bounded(sf.Line(0, 2, cells=2)), sf.histogram(), epsilon=1)\n"
        "for _ in range(3):\n"
        "    plan.publish([1, 2])\n"
    )
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert (run.stdout, run.stderr.count("NoLedgerWarning: this is published without a ledger")) == ("", 1)


@pytest.mark.parametrize("ask", [sf.median, lambda *a, **k: sf.quantile(*a, 0.25, **k)])
def test_values_mostly_beyond_the_bounds_of_a_median_are_told_and_answered(ask, tmp_path):
    ledger = sf.Ledger.create(tmp_path / "budget.db", epsilon=1)
    with pytest.warns(sf.DataWarning, match="All .100 %. of the records lie outside the bounds") as told:
        ask(np.full(9, 777.0), bounds=(0, 9), epsilon=1, ledger=ledger)
    assert "777" not in str(told[0].message)
    assert ledger.spent == 1
    ask(np.array([3.0] * 5 + [777.0] * 4), bounds=(0, 9), epsilon=1)  # less than half: no warning
