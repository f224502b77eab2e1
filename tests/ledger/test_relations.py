"""Accounts that hide a relation between records: what they charge, what they refuse, and how a file keeps them."""

from __future__ import annotations

import sqlite3
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from earlier_versions import undone

import sfumato as sf
from sfumato.errors import LedgerError
from sfumato.ledger import Ledger
from sfumato.ledger.rows import canonical, digest_of
from sfumato.promise import Guarantee
from sfumato.promise.window import Window
from sfumato.relations import Record

FINE = sf.Grid(bounds=(0, 0, 1, 1), shape=(20, 20))
COARSE = sf.Grid(bounds=(0.2, 0.1, 0.9, 0.8), shape=(3, 2))
MODE = sf.Categories(["bus", "bike", "car"], name="mode")
MOVE = sf.move(0.1)
HIDE = MOVE | sf.change("mode")
LINE = sf.Line(0, 1, cells=5)


def made(place: str | Path, **given: object) -> Ledger:
    return Ledger.create(place, epsilon=100, **given)  # type: ignore[arg-type]


def cost(ledger: Ledger, policy: sf.Policy, **given: object) -> int:
    return int(ledger.quote(1, policy, **given))  # type: ignore[arg-type]


def refusal(error: type[Exception], act: Callable[[], object]) -> str:
    with pytest.raises(error) as caught:
        act()
    return str(caught.value)


# ------------------------------------------------------------------ what it charges


def test_maps_at_two_resolutions_a_table_and_a_median_add_up(place: str) -> None:
    ledger = made(place, hide=HIDE)
    rng = np.random.default_rng(3)
    for domain in (FINE, COARSE):
        sf.plan(sf.within(domain, 0.1), sf.histogram(), 1).publish(np.ones(domain.shape, int), ledger=ledger)
    table = FINE * MODE
    sf.plan(sf.policy(table, hide=HIDE), sf.histogram(), 1).publish(np.ones(table.shape, int), ledger=ledger)
    sf.median(rng.random(100), bounds=(0, 1), delta=0.1, epsilon=1, ledger=ledger)
    assert [(entry.rate, entry.cost) for entry in ledger.history()[1:]] == [(1, 1)] * 4
    assert Ledger(place).spent == 4
    Ledger(place).check()


def test_prices_by_hand(place: str) -> None:
    ledger = made(place, hide=MOVE, fixed=["mode"])
    assert ledger.relation == MOVE.named("place")
    assert ledger.fixed == ("mode",)
    assert ledger.policy is None
    assert cost(ledger, sf.bounded(FINE)) == cost(ledger, sf.bounded(FINE * MODE)) == 1
    assert cost(ledger, sf.unbounded(COARSE)) == 2
    assert cost(ledger, sf.within(sf.Grid(bounds=(0, 0, 1, 1), shape=(200, 200)), 0.03)) == 4
    assert cost(ledger, sf.policy(FINE * MODE, hide=MOVE, public=["mode"])) == 1
    assert cost(ledger, sf.within(FINE, 0.1), filtered=["mode"]) == 1
    receipt = ledger.charge(2, sf.unbounded(FINE), label="a map", release_id="r")
    assert (receipt.entry.rate, receipt.entry.cost, receipt.remaining) == (2, 4, 96)
    ledger.raise_level("r", level=1, epsilon=3, label="finer")
    assert ledger.spent == 6


def test_what_the_account_does_not_know_is_refused_and_nothing_is_charged(place: str) -> None:
    ledger = made(place, hide=MOVE, fixed=["mode"])
    states = sf.Categories(["NY", "NJ"], name="state")
    plan = sf.plan(sf.policy(FINE * states, hide=MOVE, public=["state"]), sf.histogram(), 1)
    said = refusal(sf.InvalidInput, lambda: plan.publish(np.ones(plan.policy.domain.shape, int), ledger=ledger))
    assert "'state' is an attribute that this account neither changes nor holds fixed" in said
    plan = sf.plan(sf.within(FINE, 0.1), sf.histogram(), 1)
    counts = np.ones(FINE.shape, int)
    said = refusal(sf.InvalidInput, lambda: plan.publish(counts, filtered=["state"], ledger=ledger))
    assert "'state' is an attribute" in said
    said = refusal(sf.PolicyMismatch, lambda: plan.publish(counts, filtered=["place"], ledger=ledger))
    assert said.startswith("the account hides that of one record its place moves by less than 0.1; a release")
    for wrong in ("mode", 3, [""], [1]):
        refusal(sf.InvalidInput, lambda wrong=wrong: plan.publish(counts, filtered=wrong, ledger=ledger))
    where = {"by": (states, ["NY", "NJ"]), "bounds": (0, 1), "epsilon": 1, "public": ["state"], "delta": 0.1}
    said = refusal(sf.InvalidInput, lambda: sf.median([0.1, 0.2], ledger=ledger, **where))  # type: ignore[arg-type]
    assert "'state' is an attribute" in said
    assert ledger.spent == 0
    assert len(ledger.history()) == 1


def test_a_filter_by_what_changes_costs_the_way_to_absence(place: str) -> None:
    ledger = made(place, hide=MOVE | sf.move("30 min", of="t"), fixed=["mode"])
    assert cost(ledger, sf.unbounded(FINE), filtered=["t"]) == 2  # a step of a stream: the record moves out of it
    refusal(sf.PolicyMismatch, lambda: cost(ledger, sf.within(FINE, 0.1), filtered=["t"]))
    counts = np.ones(FINE.shape, int)
    sf.plan(sf.unbounded(FINE), sf.histogram(), 1).publish(counts, filtered=["t", "mode"], ledger=ledger)
    assert ledger.history()[-1].policy == f"{sf.unbounded(FINE).describe()}; of records chosen by 'mode', 't'"
    assert ledger.spent == 2


def test_an_account_under_a_policy_pays_for_any_filter(place: str) -> None:
    ledger = made(place, policy=sf.bounded(LINE))
    refusal(sf.PolicyMismatch, lambda: cost(ledger, sf.bounded(LINE), filtered=["mode"]))
    assert cost(ledger, sf.unbounded(LINE), filtered=["mode"]) == 2
    alone = made(place, policy=sf.unbounded(LINE), dataset="another")
    assert cost(alone, sf.unbounded(LINE), filtered=["mode"]) == 1


def test_groups_of_a_median_are_priced_as_parts(place: str) -> None:
    rng = np.random.default_rng(5)
    modes, fares = rng.choice(["bus", "bike", "tram"], 300), rng.gamma(2, 8, 300)
    by = (sf.Categories(["bus", "bike"], name="mode"), modes)
    call = {"by": by, "name": "fare", "bounds": (0, 100), "epsilon": 1}
    fixed = made(place, hide=MOVE | sf.change("fare"), fixed=["mode"])
    sf.median(fares, ledger=fixed, hide=sf.change("fare"), public=["mode"], **call)
    assert fixed.spent == 1  # the largest, not the sum
    changing = made(place, dataset="changing", hide=sf.change("fare") | sf.change("mode"))
    said = refusal(
        sf.PolicyMismatch,
        lambda: sf.median(fares, ledger=changing, hide=sf.change("fare"), public=["mode"], **call),
    )
    assert "its mode becomes any other" in said
    sf.median(fares, ledger=changing, hide=sf.change("fare") | sf.change("mode"), **call)
    assert changing.spent == 1
    one = {**call, "by": (sf.Categories(["bus"], name="mode"), modes)}  # whoever changes to another mode is gone
    refusal(
        sf.PolicyMismatch, lambda: sf.median(fares, ledger=changing, hide=sf.change("fare"), public=["mode"], **one)
    )
    sf.median(fares, ledger=changing, hide=sf.presence(), **one)
    assert changing.spent == 3


def test_records_dropped_beyond_the_bounds_are_a_way_to_absence(place: str) -> None:
    data = {"x": np.linspace(-2, 2, 50), "y": np.linspace(-2, 2, 50)}
    edge = sf.within(FINE, 0.1, sources="boundary")
    assert edge.relation is not None
    for number, (hide, policy, rate) in enumerate(
        [
            (edge.relation, edge, 1),
            (MOVE, sf.unbounded(FINE), 2),
            (MOVE, edge, int(edge.eccentricity)),
            (sf.presence(), sf.unbounded(FINE), 1),
        ]
    ):
        ledger = made(place, dataset=str(number), hide=hide)
        with pytest.warns(sf.DataWarning):
            counts = sf.count(data, FINE, outside="drop", policy=policy)
        sf.plan(policy, sf.histogram(), 1).publish(counts, ledger=ledger)
        assert ledger.spent == rate


def test_units_multiply_as_under_a_policy(place: str) -> None:
    person = made(place, hide=MOVE, unit="person", max_per_entity=3)
    assert cost(person, sf.within(FINE, 0.1), unit="person", max_per_entity=5) == 1
    assert cost(person, sf.within(FINE, 0.1), max_per_entity=2) == 2
    assert cost(person, sf.unbounded(FINE), unit="person", max_per_entity=1) == 2
    assert "one person may have any number" in refusal(sf.InvalidInput, lambda: cost(person, sf.within(FINE, 0.1)))
    coming = made(place, dataset="coming", hide=MOVE | sf.presence(), unit="person", max_per_entity=3)
    both = sf.policy(FINE, hide=MOVE | sf.presence())
    assert cost(coming, both, unit="person", max_per_entity=3) == 1
    assert "which lets records come and go" in refusal(
        sf.InvalidInput, lambda: cost(coming, both, unit="person", max_per_entity=2)
    )
    filtered = made(place, dataset="filtered", hide=sf.change("mode"), fixed=["place"])
    assert cost(filtered, both, max_per_entity=2, filtered=["place"]) == 1
    # One record leaves the filter, and another one of the same person is counted in its place, anywhere: that is two
    # steps through ⊥, which a promise about one record on bounded counts carries in its ε already.
    assert cost(filtered, both, max_per_entity=2, filtered=["mode"]) == 1
    several = made(place, dataset="several", hide=sf.change("mode"), fixed=["place"], unit="person", max_per_entity=3)
    assert cost(several, both, unit="person", max_per_entity=2, filtered=["mode"]) == both.diameter == 2


# ------------------------------------------------------------------ taken from the first release


@pytest.mark.parametrize(
    ("policy", "hide", "fixed"),
    [
        (sf.within(FINE, 0.1), MOVE, ()),
        (sf.bounded(FINE * MODE), sf.anything(), ()),
        (sf.unbounded(LINE), sf.presence(), ()),
        (sf.policy(FINE * MODE, hide=MOVE, public=["mode"]), MOVE, ("mode",)),
        (sf.policy(FINE * MODE, hide=HIDE), HIDE, ()),
        (sf.policy(FINE, hide=MOVE | sf.presence()), MOVE | sf.presence(), ()),
        (sf.within(FINE, 0.1, sources="boundary"), sf.within(FINE, 0.1, sources="boundary").relation, ()),
    ],
    ids=["move", "replace-one", "presence", "public", "table", "both", "sources"],
)
def test_an_open_account_takes_the_relation_of_its_first_release(
    tmp_path: Path, policy: sf.Policy, hide: sf.Relation, fixed: tuple[str, ...]
) -> None:
    ledger = made(tmp_path / "budget.db")
    assert (ledger.relation, ledger.policy) == (None, None)
    assert ledger.quote(1, policy) == 1
    assert ledger.relation is None
    ledger.charge(1, policy, label="a map", release_id="r")
    again = Ledger(tmp_path / "budget.db", policy=policy)  # says the same
    assert (again.relation, again.fixed, again.policy, again.spent) == (hide.named("place"), fixed, None, 1)


@pytest.mark.parametrize(
    "policy",
    [
        sf.threshold(LINE, 1),
        sf.graph(LINE, edges=[(0, 1), (1, 2), (2, 3), (3, 4)]),
        sf.policy(FINE * MODE, hide=MOVE | sf.presence()),  # nobody said that the mode stays when the place moves
        sf.policy(COARSE * MODE, hide=sf.move(0.1, sources="boundary") | sf.change("mode")),
    ],
    ids=["threshold", "graph", "unnamed", "boundary"],
)
def test_where_no_relation_says_all_the_account_takes_the_policy(tmp_path: Path, policy: sf.Policy) -> None:
    ledger = made(tmp_path / "budget.db")
    ledger.charge(1, policy, label="a map", release_id="r")
    assert (ledger.relation, ledger.policy, ledger.spent) == (None, policy, 1)


def test_great_circles_are_promised_inside_the_bounds(tmp_path: Path) -> None:
    city = sf.Grid(bounds=(4, 52, 5, 53), shape=(10, 10))
    ledger = made(tmp_path / "budget.db")
    ledger.charge(1, sf.within(city, 9000, metric="great-circle"), label="a map", release_id="r")
    assert str(ledger).endswith("; distances hold for places inside the bounds of all its releases")


def test_an_account_says_what_it_hides_and_what_was_declared(place: str) -> None:
    ledger = made(place, hide=MOVE, fixed=["mode", "t"])
    assert str(ledger).splitlines()[1] == (
        "It hides that one record changes in this way: its place moves by less than 0.1; declared fixed: 'mode', 't'"
    )


# ------------------------------------------------------------------ opened again


def test_a_promise_once_made_stays(place: str) -> None:
    made(place, hide=MOVE, fixed=["mode"])
    for given in ({"hide": MOVE}, {"hide": sf.move(0.1, of="place"), "fixed": ["mode"]}, {}):
        assert Ledger(place, **given).fixed == ("mode",)  # type: ignore[arg-type]
    for given in ({"hide": sf.move(0.2)}, {"hide": MOVE, "fixed": []}, {"hide": HIDE}):
        said = refusal(sf.PolicyMismatch, lambda given=given: Ledger(place, **given))
        assert "A promise once made stays" in said
    assert "is under no policy" in refusal(sf.PolicyMismatch, lambda: Ledger(place, policy=sf.threshold(LINE, 1)))
    made(place, dataset="cells", policy=sf.within(FINE, 0.1))
    assert "is kept under a policy" in refusal(sf.PolicyMismatch, lambda: Ledger(place, dataset="cells", hide=MOVE))
    assert Ledger(place, dataset="cells").policy == sf.within(FINE, 0.1)
    made(place, dataset="open")
    assert Ledger(place, dataset="open", hide=MOVE).relation == MOVE.named("place")


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"hide": MOVE, "policy": sf.bounded(LINE)}, "hide and policy exclude each other"),
        ({"fixed": ["mode"]}, "fixed=['mode'] says what stays when a record changes, and hide does not"),
        ({"hide": "move(0.1)"}, "hide=str is not a relation. Nothing was created."),
        ({"hide": MOVE, "fixed": "mode"}, "fixed='mode' must be a list of attributes"),
        ({"hide": MOVE, "fixed": ["place"]}, "fixed names 'place', and hide changes 'place'."),
        ({"hide": sf.anything(), "fixed": ["mode"]}, "nothing has to be fixed"),
    ],
)
def test_what_makes_no_sense_is_refused_and_nothing_is_made(
    tmp_path: Path, given: dict[str, object], message: str
) -> None:
    assert message in refusal(sf.InvalidInput, lambda: made(tmp_path / "budget.db", **given))
    assert not (tmp_path / "budget.db").exists()


# ------------------------------------------------------------------ streams


def test_a_stream_keeps_its_policy_and_a_step_can_be_paid_by_the_account(tmp_path: Path) -> None:
    ledger = made(tmp_path / "budget.db", hide=MOVE | sf.move("30 min", of="t"))
    policy = sf.unbounded(COARSE)
    stream = ledger.stream("visits", epsilon=1, window=Window.of(3), policy=policy)
    stream.charge(1, Guarantee(policy=policy, epsilon=1), label="a step", release_id="s")
    assert (stream.policy, ledger.spent) == (policy, 0)
    ledger.charge(1, policy, label="a step", release_id="s", filtered=["t"])
    assert ledger.spent == 2


# ------------------------------------------------------------------ the file


@pytest.mark.parametrize("version", range(1, 8))
def test_older_ledgers_open_and_keep_their_accounts_and_charges(tmp_path: Path, version: int) -> None:
    path = tmp_path / "budget.db"
    old, new = made(path, policy=sf.within(FINE, 0.1)), made(path, dataset="new")
    old.charge(1, sf.within(FINE, 0.05), label="a map", release_id="r")
    if version > 1:
        old.raise_level("r", level=1, epsilon=2, label="finer")
    before = old.history(), old.spent, old.policy, new.history()
    with closing(sqlite3.connect(path)) as connection:
        for statement in (*undone(version), f"PRAGMA user_version = {version}"):
            connection.execute(statement)
        connection.commit()
    again = Ledger(path)
    fresh = Ledger(path, dataset="new")
    assert (again.history(), again.spent, again.policy, fresh.history()) == before
    assert again.relation is None
    with pytest.raises(sf.PolicyMismatch):  # an account under a policy stays on its cells
        again.quote(1, sf.within(COARSE, 0.1))
    assert again.quote(1, sf.within(FINE, 0.1)) == 1
    fresh.charge(1, sf.within(COARSE, 0.1), label="a map", release_id="q")
    assert fresh.relation == MOVE.named("place")
    Ledger(path).check()


def test_a_ledger_of_version_seven_on_a_server_is_brought_forward(place: str) -> None:
    ledger = made(place, policy=sf.threshold(LINE, 1))
    ledger.charge(1, sf.threshold(LINE, 1), label="a map", release_id="r")
    with ledger._store.write() as connection:
        file = "sqlite3" in type(connection).__module__
        for statement in undone(7):
            connection.execute(statement)
        connection.execute("PRAGMA user_version = 7" if file else "UPDATE ledger SET version = 7")
    assert ledger.quote(1, sf.threshold(LINE, 1)) == 1  # put back under a running program
    assert Ledger(place).spent == 1
    assert made(place, dataset="new", hide=MOVE).relation == MOVE.named("place")


DAMAGE = {
    "its relation cannot be read": "UPDATE account SET relation = '{{'",
    "its relation does not match its digest": "UPDATE account SET relation = '{other}'",
    "does not say what it promises": "UPDATE account SET relation_digest = NULL",
    "has spent something, and has forgotten what it promises": (
        "UPDATE account SET relation = NULL, relation_digest = NULL"
    ),
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_an_edited_relation_is_damage(tmp_path: Path, damage: str) -> None:
    path = tmp_path / "budget.db"
    ledger = made(path, hide=MOVE)
    ledger.charge(1, sf.within(FINE, 0.1), label="a map", release_id="r")
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(DAMAGE[damage].format(other=canonical(Record.of(sf.move(0.2)))))
        connection.commit()
    said = refusal(LedgerError, lambda: ledger.charge(1, sf.within(FINE, 0.1), label="a map", release_id="q"))
    assert damage in said
    with pytest.raises(LedgerError):
        _ = Ledger(path).relation


def test_hostile_relations_in_a_file_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "budget.db"
    ledger = made(path, hide=MOVE)
    deep = "[" * 5000 + "]" * 5000
    for spec in ("[]", "null", '{"hide": {}, "fixed": []}', '{"hide": {"terms": []}, "fixed": []}', deep):
        with closing(sqlite3.connect(path)) as connection:
            connection.execute("UPDATE account SET relation = ?, relation_digest = ?", (spec, digest_of(spec)))
            connection.commit()
        assert "its relation cannot be read" in refusal(LedgerError, lambda: ledger.relation)


def test_a_rival_that_sets_the_relation_first_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another process's first release arrives between the weighing and the recording of ours."""
    ledger, rival = made(tmp_path / "budget.db"), Ledger(tmp_path / "budget.db")
    module = sys.modules[Ledger.__module__]
    weigh = module.rate_of

    def overtaken(*terms: object, **left_out: object) -> int:
        monkeypatch.setattr(module, "rate_of", weigh)
        rival.charge(1, sf.within(FINE, 0.1), label="rival", release_id="r1")
        return int(weigh(*terms, **left_out))

    monkeypatch.setattr(module, "rate_of", overtaken)
    receipt = ledger.charge(1, sf.unbounded(COARSE), label="ours", release_id="r2")
    assert receipt.entry.rate == 2  # weighed again, for the account of moves it has become
    assert (ledger.relation, ledger.spent) == (MOVE.named("place"), 3)


def test_every_kind_of_relation_is_kept_as_it_is(tmp_path: Path) -> None:
    kinds = [
        MOVE & sf.move("30 min", of="t"),
        sf.move("500 m", sources=[(4.5, 52.25)]) | sf.change("mode"),
        sf.move(0.25, metric="chebyshev", of="origin") | sf.move(0.25, of="destination"),
        sf.presence() | sf.anything(),
    ]
    for number, hide in enumerate(kinds):
        made(tmp_path / "budget.db", dataset=str(number), hide=hide)
    for number, hide in enumerate(kinds):
        assert Ledger(tmp_path / "budget.db", dataset=str(number), hide=hide).relation == hide.named("place")
    Ledger(tmp_path / "budget.db", dataset="0").check()
