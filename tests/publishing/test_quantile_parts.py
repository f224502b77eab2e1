"""Medians of the parts of the data: the price of a change of a record wherever it is felt, engines, order, refusals."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from publish_spies import SpyLedger, SpySource

import sfumato as sf
from sfumato.publishing.attribute import attribute
from sfumato.publishing.quantile import _mechanism, _pieces
from sfumato.quantiles import rank_of

RNG = np.random.default_rng(3)
FARES = RNG.gamma(2, 8, 3000).round(2)
STATES = RNG.choice(["NY", "NJ", "CT"], 3000, p=[0.5, 0.3, 0.2])
LISTED = sf.Categories(["NJ", "NY", "VT"], name="state")
CALL = {"bounds": (0, 100), "epsilon": 1}
SHARP = {"bounds": (0, 100), "epsilon": 10**9}


@pytest.fixture
def journal():
    return []


@pytest.fixture
def ledger(tmp_path, journal):
    return SpyLedger(tmp_path / "budget.db", journal, epsilon=2)


# --- what comes out ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "hide",
    [
        {},
        {"hide": sf.change("fare"), "public": ["state"]},
        {"delta": 1, "public": ["state"]},
        {"hide": sf.presence()},
        {"hide": sf.change("state")},
    ],
    ids=["replace-one", "fare", "delta", "presence", "state"],
)
@pytest.mark.parametrize("q", [0.5, 0.9])
def test_a_generous_epsilon_gives_the_quantile_of_every_group_in_the_declared_order(hide, q):
    answer = sf.quantile(FARES, q, by=(LISTED, STATES), name="fare", **SHARP, **hide)
    for i, state in enumerate(["NJ", "NY"]):
        own = np.sort(FARES[state == STATES])
        rank = rank_of(Fraction(str(q)), len(own))
        # Where the number is hidden, of the two middle ones of an even number any value between them will do.
        assert own[rank - 1] - 1e-3 <= answer.value[i] <= own[rank] + 1e-3
    assert 0 <= answer.value[2] <= 100  # nobody is in Vermont, and it has an answer
    assert answer.value.shape == answer.low.shape == answer.stderr.shape == (3,)
    assert answer.by == LISTED
    assert repr(answer).startswith(f"QuantileAnswer(3 values by 'state', q={q} by ")


def test_groups_may_be_a_product_and_the_rest_may_have_a_place():
    hours = np.arange(3000) % 3
    by = sf.Categories(["NY", "other"], name="state", other="other") * sf.Line(0, 3, cells=3, name="hour")
    answer = sf.median(FARES, by=(by, (STATES, hours)), name="fare", **SHARP)
    assert answer.value.shape == (2, 3)
    for i, hour in itertools.product(range(2), range(3)):
        own = np.sort(FARES[((STATES == "NY") == (i == 0)) & (hours == hour)])
        assert answer.value[i, hour] == pytest.approx(own[(len(own) - 1) // 2], abs=0.5)


def test_plain_noise_has_an_interval_for_every_group():
    answer = sf.median(FARES, by=(LISTED, STATES), name="fare", delta=0.01, public=["state"], method="laplace", **CALL)
    assert answer.stderr == pytest.approx(np.full(3, math.sqrt(2) * 0.01), rel=1e-3)
    assert (answer.low < answer.value).all()
    assert (answer.value < answer.high).all()
    assert repr(answer).endswith("by 'laplace', 95% intervals, each for itself)")


@pytest.mark.slow
def test_the_intervals_of_groups_cover_what_they_say():
    """600 answers of two groups at 95 %: fewer than 1,095 of 1,200 covered, 5.5 standard deviations and more, is a
    false alarm of 10⁻⁷; more than 1,181 would be too wide.
    """
    values, groups = np.array([0.5, 0.2, 0.3, 0.9]), np.array(["a", "b", "b", "b"])
    by = (sf.Categories(["a", "b"], name="group"), groups)
    covered = 0
    for _ in range(600):
        found = sf.median(values, by=by, bounds=(0, 1), epsilon=1, delta=0.01, public=["group"], method="laplace")
        covered += int(((found.low <= [0.5, 0.3]) & (found.high >= [0.5, 0.3])).sum())
    assert 1095 <= covered <= 1181


def frames(tmp_path):
    """The same records on every engine that is here, in rows that are missing a fare or a state as well."""
    pa = pytest.importorskip("pyarrow")
    fares = [None, *FARES.tolist(), 5.0]
    states = ["NY", *STATES.tolist(), None]
    table = pa.table({"fare": pa.array(fares, pa.float64()), "st": pa.array(states, pa.string())})
    yield "arrow", table
    pd = pytest.importorskip("pandas")
    yield "pandas", table.to_pandas()
    yield "pandas categories", table.to_pandas().astype({"st": "category"})
    pl = pytest.importorskip("polars")
    yield "polars", pl.from_arrow(table)
    yield "polars lazy", pl.from_arrow(table).lazy()
    duckdb = pytest.importorskip("duckdb")
    yield "duckdb", duckdb.from_arrow(table)
    import pyarrow.csv
    import pyarrow.parquet

    pyarrow.parquet.write_table(table, tmp_path / "trips.parquet")
    yield "parquet", str(tmp_path / "trips.parquet")
    pyarrow.csv.write_csv(table, tmp_path / "trips.csv")
    yield "csv", str(tmp_path / "trips.csv")
    del pd


def test_every_engine_gives_the_same_answer(tmp_path):
    expected = sf.median(FARES, by=(LISTED, STATES), name="fare", source=sf.SeededSource(5), **CALL)
    for engine, data in frames(tmp_path):
        found = sf.median(data, x="fare", by=LISTED, columns={"state": "st"}, source=sf.SeededSource(5), **CALL)
        assert found.value.tolist() == expected.value.tolist(), engine
        alone = sf.median(data, x="fare", source=sf.SeededSource(5), **CALL)
        plain = sf.median(np.append(FARES, 5.0), name="fare", source=sf.SeededSource(5), **CALL)
        assert alone.value == plain.value, engine
        assert alone.guarantee.policy == plain.guarantee.policy


@pytest.mark.filterwarnings("ignore::sfumato.DataWarning")
def test_labels_of_every_kind_may_be_none_of_the_list():
    for labels, groups in [
        ([1, 2], np.array([1, 2, 2, 7, 0])),
        (["1", "rest 0"], np.array(["1", "rest 0", "rest 0", "rest 1", ""])),
        ([True], np.array([True, False, False, False, False])),
    ]:
        by = (sf.Categories(labels, name="kind"), groups)
        found = sf.median(np.array([0.1, 0.2, 0.3, 0.9, 0.9]), by=by, bounds=(0, 1), epsilon=10**9)
        assert found.value == pytest.approx([0.1, 0.2][: len(labels)], abs=0.11)  # of two values any between


# --- what is promised -------------------------------------------------------------------------------------------------

CELLS = 3
EVERYWHERE = sf.Categories(["NJ", "NY", "CT"], name="state") * sf.Line(0, CELLS, cells=CELLS, name="fare")
RELATIONS = {
    "replace-one": ({}, sf.anything(), []),
    "fare": ({"hide": sf.change("fare"), "public": ["state"]}, sf.change("fare"), ["state"]),
    "fare by a step": ({"delta": 0.5, "public": ["state"]}, sf.move(0.5, of="fare"), ["state"]),
    "state": ({"hide": sf.change("state")}, sf.change("state"), ["fare"]),
    "both": ({"hide": sf.change("state") & sf.change("fare")}, sf.change("state") & sf.change("fare"), []),
    "one of them": (
        {"hide": sf.change("state") | sf.move(0.5, of="fare")},
        sf.change("state") | sf.move(0.5, of="fare"),
        [],
    ),
    "presence": ({"hide": sf.presence()}, sf.presence(), []),
    "standard": ({"hide": sf.presence() | sf.anything()}, sf.presence() | sf.anything(), []),
    "presence and a step": (
        {"hide": sf.presence() | sf.move(0.5, of="fare")},
        sf.presence() | sf.move(0.5, of="fare"),
        [],
    ),
}


@pytest.mark.parametrize("q", ["1/2", "3/4"])
@pytest.mark.parametrize("case", RELATIONS)
@pytest.mark.parametrize("rest", [None, "NY"])
def test_the_loss_over_every_change_of_a_record_is_within_epsilon(case, q, rest):
    """Brute force. Records have three states, of which two are listed; the laws of both answers, for every dataset of
    up to three records and every change that the relation makes of one of them.
    """
    given, relation, public = RELATIONS[case]
    by = sf.Categories(["NJ", "NY"], name="state", other=rest)
    arguments = {"delta": None, "hide": None, "public": (), **given}
    if rest is not None and case == "state":
        arguments["public"] = ["fare"]  # the state hides no fare where every state has a place
    seen = attribute((0, CELLS), name="fare", by=by, cells=CELLS, **arguments)
    hidden = sf.policy(EVERYWHERE, hide=relation, public=public)
    edges = [tuple(int(c) for c in edge) for edge in hidden.edges()]
    share, epsilon, laws = Fraction(q), Fraction(1), {}

    def law(data):
        """The laws of the parts, as logarithms; cell numbers of all three states."""
        if data not in laws:
            places = [{0: 0, 1: 1, 2: -1 if rest is None else 1}[cell // CELLS] for cell in data]
            there = np.array([p >= 0 for p in places], dtype=bool)
            cells = np.array([cell % CELLS for cell in data], dtype=np.int64)
            pieces = _pieces(cells[there], np.array(places, dtype=np.int64)[there], 2)
            made = [_mechanism(seen, None, share, len(piece), epsilon, None) for piece in pieces]
            filled = [
                p if len(p) or m.hides_number else np.array([CELLS // 2]) for m, p in zip(made, pieces, strict=True)
            ]
            laws[data] = [np.log(m.law(p, rank_of(share, len(p)))) for m, p in zip(made, filled, strict=True)]
        return laws[data]

    worst = 0.0
    for n in range(3):
        for others in itertools.combinations_with_replacement(range(EVERYWHERE.size), n):
            for ends in edges:
                one, other = (law(tuple(sorted((*others, c) if c >= 0 else others))) for c in ends)
                losses = [np.abs(a - b).max() for a, b in zip(one, other, strict=True)]
                assert sum(losses) <= float(epsilon) * (1 + 1e-9)
                worst = max(worst, sum(losses))
    assert worst > float(epsilon) / 4  # and the price is no fable


def test_groups_that_no_change_joins_cost_the_largest_once(ledger):
    fixed = {"hide": sf.change("fare"), "public": ["state"]}
    answer = sf.median(FARES, by=(LISTED, STATES), name="fare", ledger=ledger, **fixed, **CALL)
    assert ledger.spent == 1
    assert ledger.history()[-1].label.endswith(" for 3 groups by state")
    assert answer.guarantee.policy.public == ("state",)
    seen = attribute((0, 100), name="fare", by=LISTED, delta=None, cells=None, **fixed)
    assert _mechanism(seen, "inverse", Fraction(1, 2), 10, Fraction(1), None).epsilon == 1


def test_a_group_that_may_change_is_paid_for_twice():
    seen = attribute((0, 100), name="fare", by=LISTED, delta=None, hide=None, public=(), cells=None)
    for q in ("1/2", "9/10"):
        assert _mechanism(seen, None, Fraction(q), 10, Fraction(1), None).epsilon == Fraction(1, 2)
    assert seen.policy.relation == sf.anything() | sf.presence()  # of CT it is seen that it is not there
    alone = attribute((0, 100), name="fare", by=LISTED, delta=None, hide=sf.presence(), public=(), cells=None)
    assert _mechanism(alone, None, Fraction(1, 2), 10, Fraction(1), None).epsilon == 1


def test_an_account_of_replace_one_takes_groups_at_their_price(ledger):
    domain = LISTED * sf.Line(0, 100, cells=1 << 24, name="fare")
    account = sf.Ledger.create(ledger.path.with_name("other.db"), epsilon=2, policy=sf.bounded(domain))
    sf.median(FARES, by=(LISTED, STATES), name="fare", ledger=account, **CALL)
    assert account.spent == 1


def test_the_charge_is_recorded_before_the_first_random_word(ledger, journal):
    sf.median(FARES, by=(LISTED, STATES), ledger=ledger, source=SpySource(journal), **CALL)
    assert journal[0] == "record"
    assert journal.count("record") == 1
    with pytest.raises(sf.BudgetExceeded):
        sf.median(FARES, by=(LISTED, STATES), ledger=ledger, bounds=(0, 100), epsilon=2, source=SpySource(journal))
    assert ledger.spent == 1


# --- refusals ---------------------------------------------------------------------------------------------------------

REFUSED = {
    "the numbers of groups are not named": (
        {"delta": 1},
        "hide changes nothing of 'state': the exact number of records for every value (jointly) would be published",
    ),
    "a group that changes is not public": (
        {"public": ["state"]},
        "public names 'state', which is not published exactly",
    ),
    "both": ({"delta": 1, "hide": sf.anything()}, "hide and delta both say what is hidden."),
    "no relation": ({"hide": "fare"}, "hide=str is not a relation. Nothing was drawn or recorded."),
    "an attribute that is not there": ({"hide": sf.change("mode")}, "hide names 'mode', which is no factor"),
    "no groups": ({"by": ["NY", "NJ"]}, "by=list is not a list of groups. Nothing was drawn or recorded."),
    "no values of groups": ({"by": LISTED}, "by needs the group of every record. Nothing was drawn or recorded."),
    "too few": ({"by": (LISTED, STATES[:7])}, "by comes with 1 arrays of groups for 1 of its axes"),
    "two for one": ({"by": (LISTED, (STATES, STATES))}, "by comes with 2 arrays of groups for 1 of its axes"),
    "a method that shows the number": (
        {"method": "inverse"},
        "method='inverse' publishes how many values there are, which is hidden here:",
    ),
    "a method that is none": ({"method": "magic"}, "method='magic' is not known."),
    "slack": (
        {"slack": 1e-6, "method": "ranks"},
        "slack=1e-06 belongs to method='smooth': method='ranks' has none.",
    ),
    "a name taken twice": ({"name": "state"}, "Give each axis a name of its own."),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refusals_leave_no_trace(case, ledger, journal):
    given, message = REFUSED[case]
    with pytest.raises(sf.InvalidInput) as refusal:
        sf.median(
            FARES,
            **{"by": (LISTED, STATES), "name": "fare", **CALL, **given},
            ledger=ledger,
            source=SpySource(journal),
        )
    assert message in str(refusal.value)
    assert journal == []
    assert ledger.spent == 0


def test_too_many_groups_are_refused_before_anything_is_read():
    with pytest.raises(sf.TooLarge, match="by has 1,000,000 groups, and at most 10,000 get an answer of their own"):
        sf.median("nowhere.parquet", x="fare", by=sf.Grid(bounds=(0, 0, 1, 1), shape=(1000, 1000), name="at"), **CALL)


def test_records_need_their_columns():
    pd = pytest.importorskip("pandas")
    data = pd.DataFrame({"fare": FARES, "state": STATES})
    with pytest.raises(sf.InvalidInput, match=r"columns=.* names the axis 'stat'; the axes are 'state', 'fare'"):
        sf.median(data, x="fare", by=LISTED, columns={"stat": "state"}, **CALL)
    with pytest.raises(sf.InvalidInput, match="fee"):
        sf.median(data, x="fee", by=LISTED, **CALL)
    with pytest.raises(sf.InvalidInput, match="by needs the group of every record"):
        sf.median(data, x="fare", by=(LISTED, STATES), **CALL)
    with pytest.raises(sf.InvalidInput, match="public names what groups may show, and there is no by="):
        sf.median(FARES, public=["state"], **CALL)
