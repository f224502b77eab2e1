"""Tables of blocks of several lengths: their cost by brute force, their error in closed form, and what a plan finds."""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np
import pytest

import sfumato as sf
from sfumato.linear import BlockSums, Nests
from sfumato.mechanism import build
from sfumato.mechanism.cells.level_tuning import best_levels, change_costs, expected_errors
from sfumato.policies import ABSENT
from sfumato.workload import CELLS, Blocks

PLACE = sf.Grid(bounds=(0, 0, 1, 1), shape=(4, 3))
HOUR = sf.Cycle("hour of day", name="t")
WEEK = sf.Line(0, 5, cells=5, name="week")
MODE = sf.Categories(["bus", "bike", "car"], name="mode")
SPACE = PLACE * WEEK * MODE
TABLES = [[1, 1, 1, 1], [4, 3, 1, 1], [2, 3, 6, 1], [4, 3, 6, 3], [2, 1, 2, 3]]
WEIGHTS = [3, 5, 2, 7, 4]
RELATIONS = [
    (sf.presence(), []),
    (sf.anything(), []),
    (sf.presence() | sf.anything(), []),
    (sf.change("place") | sf.change("week") | sf.change("mode"), []),
    (sf.change("place") & sf.change("week") & sf.change("mode"), []),
    (sf.move(0.3) | sf.move(2, of="week") | sf.change("mode"), []),
    (sf.move(0.3) & sf.move(2, of="week"), ["mode"]),
    (sf.move(0.3, sources=((0.1, 0.1),)) | sf.change("week"), []),
    (sf.change("mode"), ["place", "week"]),
    (sf.move(0.3) | sf.presence(), []),
]


def policy_of(relation, public):
    """Without what a relation with sources need not name."""
    try:
        return sf.policy(SPACE, hide=relation, public=public)
    except sf.InvalidInput:
        return sf.policy(SPACE, hide=relation, public=["mode"])


def by_brute_force(policy, matrix):
    edges = policy.edges()
    columns = np.concatenate([matrix.dense(), np.zeros((matrix.rows, 1), dtype=np.int64)], axis=1)
    return int(np.abs(columns[:, edges[:, 0]] - columns[:, edges[:, 1]]).sum(axis=0).max())


@pytest.mark.parametrize(("relation", "public"), RELATIONS)
def test_the_sensitivity_is_the_largest_over_every_edge(relation, public):
    policy = policy_of(relation, public)
    assert ABSENT == -1  # ⊥ is the column of zeros at the end
    rng = np.random.default_rng(0)
    lengths = [(1, 2, 4), (1, 3), (1, 2, 6), (1, 3)]
    every = list(itertools.product(*lengths))
    for _ in range(4):
        chosen = [(1, 1, 1, 1), *(every[i] for i in rng.choice(np.arange(1, len(every)), 6, replace=False))]
        sums = BlockSums(SPACE.shape, chosen, rng.integers(1, 9, len(chosen)).tolist())
        assert policy.sensitivity(sums) == by_brute_force(policy, sums)


def test_what_a_change_costs_by_hand():
    factor = sf.policy(SPACE, hide=sf.change("place") | sf.change("week") | sf.change("mode"))
    sums = BlockSums(SPACE.shape, TABLES, WEIGHTS)
    assert sf.unbounded(SPACE).sensitivity(sums) == 21  # every table
    assert sf.bounded(SPACE).sensitivity(sums) == 2 * 14  # all but the total
    # finer than the whole: of places 3 + 2 + 4, of weeks 3 + 5 + 4, of modes 3 + 5 + 2
    assert factor.sensitivity(sums) == 2 * 12
    costs = change_costs(factor, sums.nests)
    weights = np.zeros(sums.nests.depth)
    for table, weight in zip(sums.tables, WEIGHTS, strict=True):
        weights[table] = weight
    assert max((costs * weights).reshape(len(costs), -1).sum(axis=1)) == 24
    assert len(change_costs(sf.unbounded(SPACE), sums.nests)) == len(change_costs(sf.bounded(SPACE), sums.nests)) == 1


@pytest.mark.parametrize(("relation", "public"), RELATIONS[:9])
def test_what_is_expected_is_the_error_of_the_matrix(relation, public):
    policy = policy_of(relation, public)
    mechanism = build("levels", policy, Fraction(1), blocks=TABLES, weights=WEIGHTS)
    (block,) = mechanism.model.blocks
    written = block.estimator.dense()
    covariance = block.noise.variance * written @ written.T
    asked = sf.ask(place=sf.ranges(), mode=sf.histogram()) + 3 * sf.marginals(2) + sf.ask(week=sf.prefixes())
    expected = float((asked.gram(SPACE) * covariance).sum())
    assert mechanism.model.expected_error(asked, SPACE) == pytest.approx(expected)
    assert block.noise.rate == Fraction(1) / by_brute_force(policy, mechanism.strategy)


def test_weights_are_tuned_for_the_error_that_the_plan_states():
    policy = sf.unbounded(SPACE)
    asked = sf.ask(place=sf.histogram()) + sf.ask(week=sf.ranges(), mode=sf.histogram())
    blocks, weights = best_levels(policy, asked)
    mechanism = build("levels", policy, Fraction(1, 100), blocks=blocks, weights=weights)
    nests = mechanism.strategy.nests
    found = np.zeros((1, *nests.depth))
    for table, weight in zip(mechanism.strategy.tables, weights, strict=True):
        found[(0, *table)] = weight
    shares = asked.shares(SPACE)
    gaps = sum(
        share
        * np.prod(
            np.array(np.meshgrid(*(nests.explained(i, k)[:, 0] for i, k in enumerate(p.kinds)), indexing="ij")), 0
        )
        for share, p in shares
    )
    guess = expected_errors(gaps, nests.volumes(), change_costs(policy, nests), found)[0] * 2 * 100**2
    assert mechanism.model.expected_error(asked, SPACE) == pytest.approx(guess, rel=1e-3)  # noise is nearly continuous
    for name in ("identity", "hierarchy", "haar", "hats"):
        other = sf.plan(policy, asked, epsilon=Fraction(1, 100), mechanism=name).expected_error
        assert mechanism.model.expected_error(asked, SPACE) < other
    step = [max(w + d, 1) for w, d in zip(weights, itertools.cycle([5, -5]), strict=False)]
    worse = build("levels", policy, Fraction(1, 100), blocks=blocks, weights=step)
    assert worse.model.expected_error(asked, SPACE) > mechanism.model.expected_error(asked, SPACE)


CITY = sf.Grid(bounds=(0, 0, 1, 1), shape=(32, 32)) * sf.Line(0, 24, cells=24, name="hour")
CITY = CITY * sf.Categories(["a", "b", "c", "d"], name="group")
ASKED = [
    sf.ask(place=sf.histogram()),
    sf.ask(place=sf.histogram(), hour=sf.histogram()),
    sf.ask(hour=sf.ranges(), group=sf.histogram()),
    sf.ask(place=sf.ranges(), hour=sf.ranges(), group=sf.histogram()),
]


@pytest.mark.parametrize(
    ("policy", "most"),
    [
        (sf.unbounded(CITY), 12.4),
        (sf.bounded(CITY), 12.5),
        (sf.policy(CITY, hide=sf.change("place") | sf.change("hour") | sf.change("group")), 6.4),
    ],
)
def test_four_questions_of_a_city_cost_less_than_a_budget_for_each(policy, most):
    """A quarter of the budget for each of four questions costs each of them 16 times its best error alone."""
    alone = [sf.plan(policy, asked, epsilon=1, mechanism="levels").expected_error for asked in ASKED]
    each = [Fraction(1 / (w.count(CITY) * e)) * w for w, e in zip(ASKED, alone, strict=True)]
    plan = sf.plan(policy, each[0] + each[1] + each[2] + each[3], epsilon=1)
    assert plan.mechanism.name == "levels"
    errors = [plan.mechanism.model.expected_error(asked, CITY) for asked in ASKED]
    assert np.mean([error / best for error, best in zip(errors, alone, strict=True)]) < most


def test_named_without_options_or_on_a_line_it_finds_its_own():
    line = sf.unbounded(sf.Line(0, 1, cells=100))
    plan = sf.plan(line, sf.ranges(), epsilon=1, mechanism="levels")
    assert plan.expected_error < sf.plan(line, sf.ranges(), epsilon=1, mechanism="hierarchy").expected_error * 1.1
    blocks = build("levels", line, Fraction(1)).options["blocks"]
    assert [1] in blocks and all(len(row) == 1 for row in blocks)
    named = sf.plan(line, sf.histogram(), epsilon=1, mechanism="levels", blocks=[[1], [10]])
    assert named.mechanism.options == {"blocks": [[1], [10]], "weights": [1, 1]}
    assert named.mechanism.settings == "blocks 1 (weight 1), 10 (weight 1)"


def test_grids_that_are_asked_at_every_scale_get_a_block_of_every_scale():
    grid = sf.Grid(bounds=(0, 0, 1, 1), shape=(64, 64))
    plan = sf.plan(sf.unbounded(grid), sf.scales(), epsilon=1)
    assert plan.mechanism.name == "levels"
    assert plan.mechanism.options["blocks"] == [[1, 1], [4, 4], [16, 16], [64, 64]]
    hats = next(other.error for other in plan.alternatives if other.name == "hats")
    assert plan.expected_error < hats / 3


def test_trips_are_told_by_cells_and_by_districts_from_one_release():
    """A flat table has 7.8 for a pair of cells, and 256 times as much for one of districts of 16 cells each."""
    flows = sf.Grid(bounds=(0, 0, 1, 1), shape=(16, 16), name="origin")
    flows = flows * sf.Grid(bounds=(0, 0, 1, 1), shape=(16, 16), name="destination")
    policy = sf.bounded(flows)
    model = build("levels", policy, Fraction(1), blocks=[[1] * 4, [4] * 4], weights=[1, 1]).model
    assert model.error_of([CELLS] * 4) < 32 and model.error_of([Blocks(4)] * 4) < 32
    moved = sf.policy(flows, hide=sf.change("origin") | sf.change("destination"))
    maps = sf.ask(origin=sf.histogram()) + sf.ask(destination=sf.histogram())
    shared, apart = (sf.plan(hidden, maps, 1, mechanism="levels").expected_error for hidden in (policy, moved))
    assert apart < shared / 3.9  # neither map costs a change of the other end anything


@pytest.mark.parametrize("public", [["mode"], ["week"], ["place", "week"]])
def test_what_is_public_is_exact_also_where_blocks_reach_beyond_the_axis(public):
    """Blocks of 2 and 6 weeks on an axis of 5: the sixth is not there, and takes nothing of what is exact."""
    changed = [name for name in ("place", "week", "mode") if name not in public]
    relation = sf.change(changed[0])
    for name in changed[1:]:
        relation = relation | sf.change(name)
    policy = sf.policy(SPACE, hide=relation, public=public)
    counts = np.random.default_rng(3).integers(0, 9, SPACE.shape)
    plan = sf.plan(policy, sf.histogram(), epsilon=1, mechanism="levels", blocks=TABLES, weights=WEIGHTS)
    release = plan.publish(counts)
    axes = tuple(i for i, name in enumerate(["place", "place", "week", "mode"]) if name not in public)
    assert np.array_equal(release.counts.sum(axis=axes), counts.sum(axis=axes))
    assert release.total == counts.sum()


def test_noise_is_as_large_as_said():
    """1,000 errors of each of 180 cells: 4 % are 7 standard errors of their mean square; 10 % more or less is told."""
    policy = sf.policy(SPACE, hide=sf.change("place") | sf.change("week") | sf.change("mode"))
    mechanism = build("levels", policy, Fraction(1), blocks=TABLES, weights=WEIGHTS)
    source, size = sf.SeededSource(11), mechanism.strategy.rows
    (law, length) = mechanism.noises(0)[0]
    assert length == size
    drawn = np.stack([law.sample(size, source) for _ in range(1_000)])
    errors = np.asarray(mechanism.model.blocks[0].estimator.forward(drawn))
    stated = mechanism.model.expected_error(sf.histogram(), SPACE)
    found = float((errors**2).mean())
    assert 0.96 * stated < found < 1.04 * stated
    assert not 0.96 * 1.1 * stated < found and not found < 1.04 * 0.9 * stated


def test_it_goes_the_whole_way(tmp_path):
    policy = sf.policy(SPACE, hide=sf.move(0.3) | sf.change("week") | sf.change("mode"))
    plan = sf.plan(policy, sf.histogram(), epsilon=0.5, mechanism="levels", blocks=TABLES, weights=WEIGHTS)
    assert "blocks 4 × 3 × 6 × 3 (weight 7), 4 × 3 × 1 × 1 (weight 5)" in str(plan)
    ledger, vault = sf.Ledger.create(tmp_path / "b.db", epsilon=2), sf.Vault(tmp_path / "v", key=tmp_path / "k")
    counts = np.random.default_rng(1).integers(0, 50, SPACE.shape)
    release = plan.publish(counts, ledger=ledger, vault=vault)
    better = release.refine(epsilon=1, ledger=ledger, vault=vault)
    assert (ledger.spent, better.guarantee.epsilon) == (1, 1)
    again = sf.load(better.save(tmp_path / "r.sfumato"))
    assert np.array_equal(again.counts, better.counts)
    assert again.mechanism.spec() == better.mechanism.spec()
    some = again.answer(mode=["bus", "car"], week=(0, 2))
    asked = np.zeros(SPACE.shape)
    asked[:, :, :2, [0, 2]] = 1
    written = again.query(asked.ravel())
    assert (some.value, some.stderr) == (pytest.approx(written.value), pytest.approx(written.stderr))


def test_an_audit_finds_the_whole_of_epsilon_and_no_more():
    small = sf.Line(0, 3, cells=3, name="x") * sf.Categories(["a", "b"], name="kind")
    policy = sf.policy(small, hide=sf.change("x") | sf.change("kind"))
    plan = sf.plan(policy, sf.histogram(), 0.5, mechanism="levels", blocks=[[1, 1], [4, 1], [2, 2]], weights=[2, 1, 3])
    found = sf.audit(plan, method="exact")
    assert found.passed and found.method == "exact" and found.epsilon == pytest.approx(0.5)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"blocks": 3}, "blocks must be a list of 1 to 4096 tables"),
        ({"blocks": []}, "blocks must be a list of 1 to 4096 tables"),
        ({"blocks": [[1, 1, 1]]}, "blocks must give every table 4 lengths"),
        ({"blocks": [[1, 1, 1, 1.5]]}, "blocks must hold lists of whole numbers"),
        ({"blocks": [[1, 1, 1, 1]], "weights": [0]}, "weights must hold lists of whole numbers of at least 1"),
        ({"blocks": [[1, 1, 1, 1]], "weights": [1, 2]}, "one for each of the 1 rows of blocks"),
        ({"width": 3}, "mechanism='levels' takes no option width"),
    ],
)
def test_what_cannot_be_is_refused(options, message):
    with pytest.raises(sf.InvalidInput, match=message):
        build("levels", sf.unbounded(SPACE), Fraction(1), **options)


def test_a_domain_with_more_levels_than_are_weighed_is_left_to_others():
    huge = sf.Domain(tuple(sf.Interval(f"x{i}", 0, 1, 2) for i in range(14)))
    assert best_levels(sf.unbounded(huge), sf.histogram()) is None
    with pytest.raises(sf.TooLarge, match="too many levels to weigh"):
        build("levels", sf.unbounded(huge), Fraction(1))
    assert Nests((2,), [(1,)]).lengths == ((1, 2),)
