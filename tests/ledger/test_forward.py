"""Ledgers of earlier versions brought forward: what stood in labels stands in columns, and the sums cover it."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pytest
from earlier_versions import undone
from ledger_worker import POLICY

import sfumato as sf
from sfumato.allocation import Bernoulli
from sfumato.errors import LedgerError
from sfumato.ledger import Ledger, StreamAccount, stretches
from sfumato.ledger.database import Connection
from sfumato.ledger.postgres import POSTGRES
from sfumato.ledger.schema import SCHEMA_VERSION, SQLITE, closed_again, reopened
from sfumato.promise.window import Window
from sfumato.stream.publisher import Stream

WEIGHED = {
    "weight 1.0": (1.0, None),
    "weight 0.1": (0.1, None),
    "weight 2.5, online 0.125": (2.5, 0.125),
    f"weight 1e-300, online {1 / 3!r}": (1e-300, 1 / 3),
    "weight 1.0, online 0.0": (1.0, 0.0),
}
OTHERS = (
    "visits",
    "weight",
    "weight x",
    "weight 1, online y",
    "weight nan",
    "weight inf",
    "weight -1.0",
    "identity, 6",
)


def _say(connection: Connection) -> str:
    return "sqlite" if "sqlite3" in type(connection).__module__ else "server"


def _as_version_six(account: StreamAccount, labels: dict[tuple[int, int], str] | None = None) -> None:
    """Take the columns away, the words that stood for them in the labels, and the sums as they were then."""
    with account._store.write() as connection:
        dialect = SQLITE if _say(connection) == "sqlite" else POSTGRES
        (row,) = connection.execute("SELECT id FROM stream WHERE name = ?", (account.name,)).fetchone()
        for statement in reopened(dialect):
            connection.execute(statement)
        query = "SELECT time, level, label, weight, floor FROM step WHERE release_id IS NOT NULL"
        for time, level, label, weight, floor in connection.execute(query).fetchall():
            note = label if weight is None else f"weight {weight}" + ("" if floor is None else f", online {floor}")
            note = (labels or {}).get((time, level), note)
            connection.execute(
                "UPDATE step SET label = ?, weight = NULL, floor = NULL WHERE time = ? AND level = ?",
                (note, time, level),
            )
        for statement in closed_again(dialect):
            connection.execute(statement)
        stretches.renew(connection, row, account.name, account.window)
        for statement in undone(6):
            connection.execute(statement)
        if dialect is SQLITE:
            connection.execute("PRAGMA user_version = 6")
        else:
            connection.execute("UPDATE ledger SET version = ?", (6,))


def _stream(place: str, labels: Iterable[str]) -> StreamAccount:
    account = Ledger.create(place, epsilon=1).stream("visits", epsilon=1, window=100, policy=POLICY)
    for time, label in enumerate(labels):
        account.charge(time, "1/100", label=label, release_id=f"r{time}")
    account.skip(99)
    return account


def test_marks_of_rows_without_a_weight_are_what_they_were() -> None:
    row = (7, 0, "1/8", "weight 1.0, online 0.25", "r=,1", "2026-01-01T00:00:00+00:00")
    mark = 0xEEE0F5536EA0642FE6E456FFF62AB5D21472309791EE03248A2643EAE0624360  # by version 6
    assert stretches._mark((*row, None, None)) == mark
    marks = [stretches._mark((*row, *told)) for told in ((None, None), ("1.0", None), (None, "1.0"), ("1.0", "1.0"))]
    assert len(set(marks)) == 4


def test_what_the_labels_said_stands_in_columns(place: str) -> None:
    _as_version_six(_stream(place, [*WEIGHED, *OTHERS]))
    ledger = Ledger(place)
    assert not ledger._store.outdated()
    steps = ledger.stream("visits").entries()
    assert [step.label for step in steps] == [*WEIGHED, *OTHERS, "skipped"]  # the history is what it was
    told = [(step.weight, step.floor) for step in steps]
    assert told == [*WEIGHED.values(), *[(None, None)] * (len(OTHERS) + 1)]
    ledger.check()
    again = ledger.stream("visits")
    again.charge(100, "1/100", label="visits", release_id="r100")
    Ledger(place).check()
    with pytest.raises(Exception, match="never changed"), ledger._store.write() as connection:
        connection.execute("UPDATE step SET weight = '9.0'")


def test_a_finer_level_keeps_the_weight_of_its_step(place: str) -> None:
    account = _stream(place, ["weight 2.0, online 0.5", "weight 3.0", "visits"])
    for time in range(3):
        account.raise_step(time, "1/50", level=1, label="finer")
    account.raise_step(1, "3/100", level=2, label="finer")
    _as_version_six(account, labels={(1, 2): "weight 4.0"})
    steps = Ledger(place).stream("visits").entries(0, 3)
    assert [(step.level, step.weight, step.floor) for step in steps] == [(1, 2.0, 0.5), (2, 4.0, None), (1, None, None)]


def test_an_edited_file_is_not_made_good(place: str) -> None:
    account = _stream(place, WEIGHED)
    _as_version_six(account)
    with account._store.read() as connection:
        dialect = SQLITE if _say(connection) == "sqlite" else POSTGRES
    # Before any transaction of this version writes: as by hand.
    with account._store._transaction("BEGIN IMMEDIATE" if dialect is SQLITE else "write") as connection:
        edit = "UPDATE step SET label = 'weight 9.0' WHERE time = 1"
        for statement in (*reopened(dialect), edit, *closed_again(dialect)):
            connection.execute(statement)
    for _ in range(2):
        with pytest.raises(LedgerError, match="the steps of stream 'visits' are not those that were recorded"):
            Ledger(place)
    assert account._store.outdated()


def test_a_stream_without_sums_gets_them_with_its_weights(tmp_path: Path) -> None:
    """As of version 5: what is not added up yet is added up when the stream is opened."""
    account = _stream(str(tmp_path / "budget.db"), WEIGHED)
    _as_version_six(account)
    with account._store._transaction("BEGIN IMMEDIATE") as connection:
        for table in ("identity", "stream_sum", "stretch"):
            connection.execute(f"DROP TABLE {table}")
        connection.execute("PRAGMA user_version = 5")
    again = Ledger(tmp_path / "budget.db").stream("visits")
    assert [(step.weight, step.floor) for step in again.entries(0, 5)] == list(WEIGHED.values())
    Ledger(tmp_path / "budget.db").check()
    with account._store.read() as connection:
        assert connection.execute("SELECT steps FROM stream_sum").fetchone() == (len(WEIGHED) + 1,)


@pytest.mark.parametrize("figure", ["weight", "floor"])
@pytest.mark.parametrize("value", [-1.0, float("nan"), float("inf"), "much"])
def test_a_step_takes_only_figures(tmp_path: Path, figure: str, value: object) -> None:
    account = _stream(str(tmp_path / "budget.db"), [])
    with pytest.raises(sf.errors.InvalidInput, match=f"^{figure}=.* Nothing was drawn or recorded"):
        account.charge(100, "1/100", label="visits", release_id="r", **{figure: value})  # type: ignore[arg-type]
    assert account.at(100) is None


def test_a_raised_stream_goes_on_as_if_it_had_never_been_older(tmp_path: Path) -> None:
    """Budgets, weights and floors are those of a stream that was in columns from the start."""
    histories = []
    for name in ("old", "new"):
        folder = tmp_path / name
        folder.mkdir()
        ledger = Ledger.create(folder / "budget.db", epsilon=1)
        vault = sf.Vault(folder / "secrets", key=folder / "vault.key")

        def opened(ledger: Ledger = ledger, vault: sf.Vault = vault) -> Stream:
            return Stream(
                POLICY,
                sf.histogram(),
                epsilon=1,
                window=Window.of(3),
                ledger=ledger,
                name="visits",
                allocation="top-up",
                distribution=Bernoulli(0.5),
                vault=vault,
                mechanism="identity",
            )

        counts = [1] * POLICY.domain.size
        for time in range(4):
            opened().publish(time, counts, weight=[1.0, 0.5, 0.0, 2.0][time])
        if name == "old":
            _as_version_six(ledger.stream("visits"))
        for time in range(4, 8):
            opened().publish(time, counts, weight=1.0)
        histories.append([(r.time, r.weight, r.epsilon, r.level) for r in opened().history()])
        assert any(level for *_, level in histories[-1])
    assert histories[0] == histories[1]
    assert SCHEMA_VERSION >= 7


def test_a_step_that_others_charged_has_no_weight_and_that_is_said(tmp_path: Path) -> None:
    ledger = Ledger.create(tmp_path / "budget.db", epsilon=1)
    account = ledger.stream("visits", epsilon=1, window=3, policy=POLICY)
    account.charge(0, "1/3", label="by hand", release_id="r0")
    vault = sf.Vault(tmp_path / "secrets", key=tmp_path / "vault.key")
    stream = Stream(
        POLICY,
        sf.histogram(),
        epsilon=1,
        window=3,
        ledger=ledger,
        name="visits",
        allocation="top-up",
        distribution=Bernoulli(0.5),
        vault=vault,
        mechanism="identity",
    )
    with pytest.warns(
        UserWarning, match="no weight for 1 of the last steps of stream 'visits', the first of them at 0"
    ):
        stream.publish(1, [1] * POLICY.domain.size)
    stream.publish(2, [1] * POLICY.domain.size)  # once
    assert [(record.time, record.weight) for record in stream.history()] == [(0, None), (1, 1.0), (2, 1.0)]
