"""Edits by hand, with the triggers taken away: what would forget spent budget is refused, in our own words."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from ledger_worker import POLICY

from sfumato.errors import LedgerError
from sfumato.ledger import Ledger

EDITS = {
    "words in a tally": "UPDATE tally SET levels = 'many'",
    "bytes in a tally": "UPDATE tally SET levels = x'fffe'",
    "a stream is gone": "DELETE FROM stream",
    "a stream of nobody": "UPDATE stream SET account = 7",
    "a stream of a word": "UPDATE stream SET account = 'x'",
}


@pytest.mark.parametrize("edit", EDITS.values(), ids=EDITS)
def test_an_edit_that_forgets_is_refused(tmp_path: Path, edit: str) -> None:
    path = tmp_path / "budget.db"
    ledger = Ledger.create(path, epsilon=10)
    ledger.charge(1, POLICY, label="visits", release_id="r")
    ledger.stream("visits", epsilon=1, window=3, policy=POLICY).charge(1, "1/4", label="visits", release_id="s")
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
            connection.execute(f"DROP TRIGGER {name}")
        connection.execute(edit)
    with pytest.raises(LedgerError, match="damaged"):
        Ledger(path)
