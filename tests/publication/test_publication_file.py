"""One publication, one file: it says itself in TOML and is read back; what is wrong is named by its key."""

from __future__ import annotations

import random
import warnings
from fractions import Fraction
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import sfumato as sf
from sfumato.publication import Account, Data, Output, Steps

FACTORS = {
    "place": lambda: sf.Grid(bounds=(-74.3, 40.5, -73.7, 40.95), shape=(4, 3)),
    "origin": lambda: sf.Grid(bounds=(0, 0, 1, 2), shape=(2, 2), names=("from x", "from y"), name="origin"),
    "bent": lambda: sf.Grid(edges=([0, 1, 5], [0, 0.1, 0.2]), name="bent"),
    "hour": lambda: sf.Line(0, 24, cells=6, name="hour"),
    "fare": lambda: sf.Line(edges=[0, 5, 10.5, 200], name="fare"),
    "mode": lambda: sf.Categories(["bus", "b\"i'ke", "rest\n"], name="mode", other="rest\n"),
    "age group": lambda: sf.Categories([18, 30, 65], name="age group"),
    "ill": lambda: sf.Categories([True, False], name="ill", other=False),
    "t": lambda: sf.Times("2026-03-07", "2026-03-10", every="1 day", name="t", tz="America/New_York"),
    "u": lambda: sf.Times("2026-03-07T12:30", "2026-03-08T15:00", every="6 h", name="u"),
    "w": lambda: sf.Times("2026-03-07T12:30+01:00", "2026-03-08T15:00+01:00", every="90 min", name="w"),
    "day": lambda: sf.Cycle("weekday", name="day"),
    "hod": lambda: sf.Cycle("hour of day", name="hod", tz="Europe/Paris"),
}
NO_DISTANCE = {"mode", "age group", "ill"}


def rule(name: str, domain: sf.Domain) -> sf.Relation:
    if name in NO_DISTANCE:
        return sf.change(name)
    axis = domain.axes[domain.factor(name).positions[0]]
    return sf.move("2 h", of=name) if axis.unit == "s" else sf.move("1/7", of=name)


def random_publication(dice: random.Random) -> sf.Publication:
    names = dice.sample(sorted(FACTORS), dice.choice([1, 2, 3]))
    domain = FACTORS[names[0]]()
    for name in names[1:]:
        domain = domain * FACTORS[name]()
    changed = dice.sample(names, dice.randint(1, len(names)))
    hide = rule(changed[0], domain)
    for name in changed[1:]:
        hide = hide | rule(name, domain) if dice.random() < 0.5 else hide & rule(name, domain)
    hide = dice.choice([hide, hide | sf.presence(), sf.anything(), sf.presence()])
    left = [] if hide.hides_presence or hide.changes_all else [name for name in names if name not in changed]
    policy = sf.policy(domain, hide=hide, public=left, publish_component_totals=dice.random() < 0.1)
    ask = dice.choice([sf.histogram(), sf.ask(**{names[0]: sf.levels()}) + "2/3" * sf.marginals(names[-1])])
    return sf.Publication(
        policy=policy,
        ask=ask,
        epsilon=dice.choice([1, 0.1, Fraction(1, 3), Fraction(10**20 + 1, 10**20)]),
        max_per_entity=dice.choice([None, 1, 3]),
        mechanism=dice.choice([None, "identity"]),
        expected_records=dice.choice([None, 5_000]),
        data=Data(
            path="visits.parquet", columns={"x": "longitude", 'we"ird': "\u00e4"}, entity=dice.choice([None, "user"])
        ),
        account=Account(ledger="budget.db", dataset="city"),
        output=Output(file="out.sfumato"),
        stream=dice.choice([Steps(), Steps(time="t", step="1h", window=24, start="2026-03-01")]),
    )


def same(one: sf.Publication, other: sf.Publication) -> bool:
    plain = [(p.policy, p.epsilon, p.max_per_entity, p.mechanism, p.expected_records, p.data, p.account, p.output,
              p.stream) for p in (one, other)]  # fmt: skip
    return plain[0] == plain[1] and one.ask.to_text() == other.ask.to_text()


def test_every_publication_survives_its_file() -> None:
    dice = random.Random(14)
    for _ in range(150):
        publication = random_publication(dice)
        text = publication.to_toml()
        again = sf.Publication.from_toml(text)
        assert same(again, publication), text
        assert again.to_toml() == text


@pytest.mark.parametrize("name", sorted(FACTORS))
def test_every_kind_of_factor_survives_its_table(name: str) -> None:
    domain = FACTORS[name]()
    publication = sf.Publication(policy=sf.bounded(domain), ask=sf.histogram(), epsilon=1)
    again = sf.Publication.from_toml(publication.to_toml())
    assert again.domain == domain
    assert again.policy.fingerprint == publication.policy.fingerprint


@pytest.mark.parametrize(
    "policy",
    [
        sf.within(sf.Grid(bounds=(0, 0, 1, 1), shape=(4, 4)), "1/3"),
        sf.within(sf.Grid(bounds=(0, 0, 1, 1), shape=(4, 4)), 0.2, sources=[[(0, 0), (0.1, 0.9)]], metric="manhattan"),
        sf.within(sf.Grid(bounds=(2, 48, 3, 49), shape=(4, 4)), 9000, sources="boundary", metric="great-circle"),
        sf.threshold(sf.Line(0, 4, cells=4), theta=2),
        sf.unbounded(sf.Line(0, 4, cells=4)),
    ],
    ids=repr,
)
def test_policies_of_one_domain_keep_their_fingerprint(policy: sf.Policy) -> None:
    plan = sf.plan(policy, sf.histogram(), epsilon="1/3", max_per_entity=2)
    again = sf.Publication.from_toml(plan.to_toml())
    assert again.policy.fingerprint == policy.fingerprint
    assert (again.epsilon, again.max_per_entity, again.mechanism) == (Fraction(1, 3), 2, None)
    assert again.plan().to_dict() == plan.to_dict()


def test_a_mechanism_that_was_forced_is_forced_again() -> None:
    plan = sf.plan(sf.bounded(sf.Line(0, 8, cells=8)), sf.ranges(), epsilon=1, mechanism="identity")
    assert sf.Publication.from_toml(plan.to_toml()).plan().mechanism.name == "identity"


def test_a_guess_of_how_many_records_there_are_weighs_again() -> None:
    plan = sf.plan(sf.bounded(sf.Line(0, 1, cells=256)), sf.ranges(), epsilon="1/100", records=500)
    assert "records = 500\n" in plan.to_toml()
    again = sf.Publication.from_toml(plan.to_toml()).plan()
    assert again.to_dict() == plan.to_dict()
    assert again.tells_nothing is plan.tells_nothing is True


def test_steps_that_no_rule_gives_are_written_one_by_one() -> None:
    axis = sf.Times("2026-01-01", "2026-01-02", every="6 h").axes[0]
    spec = sf.Domain((axis,)).spec()
    spec["axes"][0]["steps"] = [[3_600_000_000, 2], [60_000_000, 3]]
    from sfumato.domain import domain_from_spec

    domain = domain_from_spec(spec)
    publication = sf.Publication(policy=sf.bounded(domain), ask=sf.histogram(), epsilon=1)
    assert "steps = [[3600000000, 2], [60000000, 3]]" in publication.to_toml()
    assert sf.Publication.from_toml(publication.to_toml()).domain == domain


CANNOT = [
    (sf.graph(sf.Line(0, 3, cells=3), edges=[(0, 1), (1, 2)]), "the policy 'graph' of this domain cannot be written"),
    (
        sf.bounded(sf.Domain((sf.Interval("x", 0, 1, 2), sf.Labels("m", ("a", "b")), sf.Interval("y", 0, 1, 2)))),
        "is no product of grids",
    ),
]


@pytest.mark.parametrize(("policy", "words"), CANNOT, ids=["graph", "interleaved"])
def test_what_no_file_can_say_is_refused(policy: sf.Policy, words: str) -> None:
    with pytest.raises(sf.InvalidInput, match=words):
        sf.plan(policy, sf.histogram(), epsilon=1).to_toml()
    with pytest.raises(sf.InvalidInput, match="given linear queries cannot be written"):
        sf.plan(sf.bounded(sf.Line(0, 3, cells=3)), sf.queries(np.eye(3)), epsilon=1).to_toml()


def test_the_public_part_names_no_path_no_column_and_no_account() -> None:
    publication = random_publication(random.Random(3))
    text = publication.public_part.to_toml()
    for private in ("visits.parquet", "longitude", "user", "budget.db", "city", "out.sfumato"):
        assert private in publication.to_toml() or private == "user"
        assert private not in text
    assert sf.Publication.from_toml(text).policy == publication.policy


GOOD = """
hide = 'move(0.1)'
ask = "ranges()"
epsilon = 1
[domain.place]
bounds = [0, 0, 1, 1]
shape = [4, 4]
"""


def changed(*swaps: tuple[str, str], more: str = "") -> str:
    text = GOOD
    for old, new in swaps:
        assert old in text
        text = text.replace(old, new)
    return text + more


REFUSED = [
    (changed(("epsilon = 1\n", "")), "epsilon is missing: give a number, or text such as '1/3'"),
    (changed(('ask = "ranges()"\n', "")), "ask is missing: give text in quotes"),
    (changed(("hide = 'move(0.1)'\n", "")), "give hide, such as hide = 'move(0.007)', or theta"),
    (changed(("hide = 'move(0.1)'", "hide = 'move(0.1)'\ntheta = 2")), "or theta, a number of cells: one of the two"),
    (changed(("hide = 'move(0.1)'", "theta = 2\npublic = ['place']")), "go with hide, and theta is given"),
    (changed(("hide = 'move(0.1)'", "theta = 2.5")), "theta = 2.5 must be a whole number"),
    (changed(("epsilon = 1", "epsilon = true")), "epsilon = True must be a number"),
    (changed(("epsilon = 1", "epsilon = -1")), "epsilon=-1 must be greater than zero"),
    (changed(("epsilon = 1", "epsilon = inf")), "epsilon=inf is not a finite number"),
    (changed(("epsilon = 1", "epsilon = 1\nepsillon = 2")), "'epsillon' is no key here. Did you mean 'epsilon'?"),
    (changed(("epsilon = 1", "epsilon = 1\nseed = 2")), "'seed' is no key here."),
    (changed(("epsilon = 1", "epsilon = 1\nmax_per_entity = 0")), "max_per_entity=0 must be a whole number of"),
    (changed(("epsilon = 1", "epsilon = 1\npublic = 'place'")), "public = 'place' must be a list of texts"),
    (changed(("'move(0.1)'", "'mvoe(0.1)'")), "hide: the relation, at character 1: 'mvoe' is none of"),
    (changed(("'move(0.1)'", "'move(\"5 min\")'")), "hide moves 'place' by less than 5 min, but that is"),
    (changed(("'move(0.1)'", "'move(\"5 m\")'")), "on the ellipsoid, and its coordinates are plain numbers"),
    (changed(("'move(0.1)'", "'move(0.1, of=\"t\")'")), "hide: hide names 't', which is no factor of this domain"),
    (changed(("'move(0.1)'", "'move(0.1, of=\"x\")'")), "hide names 'x', an axis of 'place', which moves as a whole"),
    (changed(("ranges()", "range()")), "ask: the workload, at character 1: 'range' is none of"),
    (changed(("ranges()", "ask(mode=histogram())")), "ask: 'mode' is no factor and no axis"),
    (changed(("ranges()", "marginals('hour')")), "ask: 'hour' is no factor and no axis"),
    (changed(("shape = [4, 4]", "shape = [4, 4.5]")), "[domain.place] shape = [4, 4.5] must be a list of whole"),
    (changed(("shape = [4, 4]", "shape = [4, true]")), "shape = [4, True] must be a list of whole numbers"),
    (changed(("shape = [4, 4]", "shape = [4]")), "[domain.place] shape=(4,) has 1 sides"),
    (changed(("shape = [4, 4]", "")), "[domain.place] shape is missing: give a list of whole numbers"),
    (changed(("shape = [4, 4]", "shpe = [4, 4]")), "[domain.place] 'shpe' is no key here. Did you mean 'shape'?"),
    (changed(("bounds = [0, 0, 1, 1]", "bounds = [0, 0, 1, '1']")), "must be a list of numbers"),
    (changed(("bounds = [0, 0, 1, 1]", "bounds = [0, 0, 1, nan]")), "bounds=nan is not a finite number"),
    (changed(("bounds = [0, 0, 1, 1]", "bonds = [0, 0, 1, 1]")), "[domain.place] does not say what it is: give"),
    (changed(more="[domain.mode]\nlabels = []\n"), "[domain.mode] Axis 'mode': labels must be one or more"),
    (changed(more="[domain.mode]\nlabels = ['a', 1]\n"), "[domain.mode] Axis 'mode': labels must be"),
    (changed(more="[domain.mode]\nlabels = ['a']\nother = 1.5\n"), "[domain.mode] other = 1.5 must be a label"),
    (changed(more="[domain.x]\nlabels = ['a']\n"), "[domain] axes are named 'x', 'y', 'x'"),
    (changed(more="[domain.t]\nevery = '1 h'\nstart = 2026-01-01\n"), "[domain.t] stop is missing: give a date"),
    (changed(more="[domain.t]\nevery = '1 hr'\nstart = 2026-01-01\nstop = 2027-01-01\n"), "every='1 hr' is not"),
    (changed(more="[domain.t]\ncycle = 'fortnight'\n"), "[domain.t] Axis 't': of='fortnight' is none of"),
    (changed(more="[domain.t]\nh3 = 8\n"), "[domain.t] cover is missing: give a path"),
    (changed(more="[domain.t]\nh3 = 8\ncover = [1.5, 'a']\n"), "must be a path, [lon0, lat0, lon1, lat1], or a list"),
    (changed(more="[domain.t]\nedges = [3, 2, 1]\n"), "[domain.t] Axis 't': edges must rise"),
    (changed(more="[domain.t]\nedges = [1, 2]\nnames = ['a']\n"), "names is for the axes of a grid"),
    (changed(more="[domain]\nt = 5\n"), "[domain] t = 5 must be a table, as under [domain.place]"),
    ("hide = 'anything()'\nask = 'histogram()'\nepsilon = 1\ndomain = 3", "domain = 3 must be a table"),
    ("hide = 'anything()'\nask = 'histogram()'\nepsilon = 1\n[domain]\nt = 5", "[domain] t = 5 must be a table"),
    ("hide = 'anything()'\nask = 'histogram()'\nepsilon = 1", "[domain] has 0 factors"),
    ("records = 0\n" + changed(), "records=0 must be a whole number of at least 1"),
    ("records = 'many'\n" + changed(), "records = 'many' must be a whole number"),
    (changed(more="[data]\npath = 5\n"), "[data] path = 5 must be text in quotes"),
    (changed(more="[data]\ncolumn = {x = 'lon'}\n"), "[data] 'column' is no key here. Did you mean 'columns'?"),
    (changed(more="[data]\ncolumns = {x = 5}\n"), "must be a table of texts"),
    (changed(more="[data]\noutside = 'ignore'\n"), "[data] outside = 'ignore' must be 'clamp' or 'drop'"),
    (changed(more="[account]\nledger = 'a.db'\nwithout_ledger = true\n"), "ledger and without_ledger exclude"),
    (changed(more="[stream]\nwindow = '24'\n"), "[stream] window = '24' must be a whole number"),
    (changed(more="[acount]\n"), "'acount' is no key here. Did you mean 'account'?"),
    ("".join(f"[domain.a{i}]\ncells = 2\nlow = 0\nhigh = 1\n" for i in range(33)), "epsilon is missing"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "words"), REFUSED, ids=range(len(REFUSED)))
def test_what_is_wrong_is_named_by_its_key(text: str, words: str) -> None:
    with pytest.raises((sf.InvalidInput, sf.FileFormatError)) as refused:
        sf.Publication.from_toml(text, name="visits.toml")
    assert str(refused.value).startswith("visits.toml")
    assert words in str(refused.value)


def test_the_message_is_whole() -> None:
    with pytest.raises(sf.InvalidInput) as refused:
        sf.Publication.from_toml(changed(("epsilon = 1", "epsilon = []")), name="visits.toml")
    assert str(refused.value) == (
        "visits.toml: epsilon = [] must be a number, or text such as '1/3'. Nothing was counted, drawn or recorded."
    )


# ---------------------------------------------------------------------- using it


@pytest.fixture
def visits(tmp_path: Path) -> Path:
    rng = np.random.default_rng(2)
    table = pa.table({"user": np.arange(300) % 100, "lon": rng.random(300), "lat": rng.random(300)})
    pq.write_table(table, tmp_path / "visits.parquet")
    text = changed(("epsilon = 1", "epsilon = 0.5\nmax_per_entity = 2")) + (
        '[data]\npath = "visits.parquet"\ncolumns = {x = "lon", y = "lat"}\nentity = "user"\n'
        '[account]\nledger = "budget.db"\ndataset = "city"\nlabel = "spring"\n'
    )
    (tmp_path / "visits.toml").write_text(text)
    return tmp_path / "visits.toml"


def test_it_plans_counts_and_publishes_from_its_own_folder(visits: Path) -> None:
    ledger = sf.Ledger.create(visits.parent / "budget.db", epsilon=1, dataset="city")
    publication = sf.load_publication(visits)
    policy = sf.within(sf.Grid(bounds=(0, 0, 1, 1), shape=(4, 4)), 0.1)
    plan = sf.plan(policy, sf.ranges(), epsilon=0.5, max_per_entity=2)
    assert publication.plan().to_dict() == plan.to_dict()
    counts = publication.count()
    assert (counts.values.sum(), counts.max_per_entity) == (200, 2)
    release = publication.publish()
    assert (release.total, release.guarantee) == (200, plan.guarantee)
    assert (ledger.spent, ledger.history()[-1].label) == (Fraction(1, 2), "spring")


def test_other_data_may_be_given(visits: Path) -> None:
    sf.Ledger.create(visits.parent / "budget.db", epsilon=1, dataset="city")
    other = pa.table({"user": [1, 2], "lon": [0.5, 0.6], "lat": [0.5, 0.6]})
    assert sf.load_publication(visits).publish(other).total == 2


def test_a_budget_that_is_spent_is_refused_and_nothing_is_counted(visits: Path) -> None:
    sf.Ledger.create(visits.parent / "budget.db", epsilon=0.7, dataset="city")
    publication = sf.load_publication(visits)
    publication.publish()
    with pytest.raises(sf.BudgetExceeded):
        publication.publish()


def test_without_data_it_says_what_to_give() -> None:
    with pytest.raises(sf.InvalidInput, match=r"names no data. Nothing was counted. Give them, or path under \[data\]"):
        sf.Publication.from_toml(GOOD).count()


def test_without_an_account_it_says_that_none_is_kept() -> None:
    publication = sf.Publication.from_toml(GOOD)
    assert publication.ledger() is None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", sf.NoLedgerWarning)
        assert publication.publish(pa.table({"x": [0.1], "y": [0.2]})).total == 1


def test_paths_lead_from_the_folder_of_the_file() -> None:
    publication = sf.Publication.from_toml(GOOD, folder="jobs")
    assert publication.place("visits/*.parquet") == "jobs/visits/*.parquet"
    assert publication.place("s3://bucket/visits.parquet") == "s3://bucket/visits.parquet"
    assert publication.place("/data/visits.csv") == "/data/visits.csv"
    assert sf.Publication.from_toml(GOOD).place("visits.csv") == "visits.csv"


def test_a_grid_with_a_crs_in_a_file(tmp_path: Path) -> None:
    """By its shape or by cells in metres; places beyond it are in no cell; written back with the CRS."""
    (tmp_path / "d.csv").write_text("lon,lat\n-74,40.7\n286.1,40.8\n5,5\n")
    text = (
        "hide = 'move(\"500 m\")'\nask = 'ranges()'\nepsilon = 100\n[domain.place]\n"
        "bounds = [-74.3, 40.5, -73.7, 40.95]\ncell = '5 km'\n"
        "[data]\npath = 'd.csv'\ncolumns = {lon = 'lon', lat = 'lat'}\n"
    )
    (tmp_path / "p.toml").write_text(text)
    publication = sf.load_publication(tmp_path / "p.toml")
    assert publication.domain == sf.Grid((-74.3, 40.5, -73.7, 40.95), (10, 10), crs="EPSG:4326")
    assert publication.publish().counts.sum() == 2
    assert 'crs = "EPSG:4326"' in publication.to_toml()
    (tmp_path / "again.toml").write_text(publication.to_toml())
    assert sf.load_publication(tmp_path / "again.toml").policy == publication.policy


def test_hexagons_in_a_file(tmp_path: Path) -> None:
    """Bounds or cells; records that name their cell; written back with the cells."""
    pytest.importorskip("h3", reason="needs sfumato[h3]")
    (tmp_path / "d.csv").write_text("cell,hour\n882a100d25fffff,3\n8a2a1072b59ffff,7\n882a100d25fffff,9\n")
    text = (
        "hide = 'move(\"500 m\")'\nask = 'histogram()'\nepsilon = 1\n[domain.place]\nh3 = 7\nlevels = [5]\n"
        "cover = [-74.05, 40.68, -73.9, 40.88]\n[data]\npath = 'd.csv'\ncolumns = {h3 = 'cell'}\n"
    )
    (tmp_path / "p.toml").write_text(text)
    publication = sf.load_publication(tmp_path / "p.toml")
    assert publication.domain == sf.H3(7, cover=(-74.05, 40.68, -73.9, 40.88), levels=[5])
    assert publication.publish().total == 3
    (tmp_path / "again.toml").write_text(publication.to_toml())
    assert sf.load_publication(tmp_path / "again.toml").policy == publication.policy
