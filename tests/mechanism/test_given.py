"""A strategy that the user gives: sensitivity, errors and intervals against brute force, files, and every refusal."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.sparse
from release.coverage_oracle import Law, boxes, moved_by_noise

import sfumato as sf
from sfumato.errors import FileFormatError
from sfumato.mechanism import mechanism_from_spec

LINE = sf.Line(0, 5, cells=5)
GRID = sf.Grid(bounds=(0, 0, 3, 2), shape=(3, 2))
RING = sf.graph(sf.Line(0, 5, cells=5), [(0, 1), (1, 2), (2, 3), (3, 4), (4, 0), (2, sf.ABSENT)])
PAIRS = np.eye(5, dtype=int) + np.eye(5, k=1, dtype=int) + np.eye(5, k=-4, dtype=int)
STEEP = np.array([[3, -2, 0, 0, 1], [0, 7, 0, 0, 0], [1, 1, 1, 1, 1], [0, -1, 5, 0, 0], [0, 0, 4, -9, 0]])
TREE = np.array([[1, 1, 0, 0, 0], [0, 1, -1, 0, 0], [0, 0, 2, 1, 0], [0, 0, 0, 1, -3]])  # with the total, all cells


def wide(policy):
    """Random whole numbers, more rows than cells."""
    return np.random.default_rng(7).integers(-4, 5, (9, policy.domain.size))


CASES = [
    (sf.unbounded(LINE), PAIRS),
    (sf.unbounded(LINE), STEEP),
    (sf.bounded(LINE), STEEP),
    (sf.bounded(LINE), TREE),
    (sf.threshold(LINE, 2), TREE),
    (sf.threshold(LINE, 2), wide(sf.threshold(LINE, 2))),
    (RING, STEEP),
    (sf.unbounded(GRID), wide(sf.unbounded(GRID))),
    (sf.threshold(GRID, 1), wide(sf.threshold(GRID, 1))),
]


def columns(policy, matrix):
    """Every change that an edge makes, brute force."""
    for u, v in policy.edges().tolist():
        yield matrix[:, u] - (matrix[:, v] if v >= 0 else 0)


@pytest.mark.parametrize(("policy", "matrix"), CASES)
def test_noise_follows_the_largest_change_over_every_edge(policy, matrix):
    made = sf.plan(policy, sf.histogram(), 0.5, strategy=matrix).mechanism
    largest = max(int(abs(change).sum()) for change in columns(policy, matrix))
    assert made.sensitivity == largest
    assert [law.rate * largest for law, _ in made.noises(0)] == [made.epsilon]
    assert made.privacy_loss == made.epsilon


@pytest.mark.parametrize(("policy", "matrix"), CASES)
def test_errors_and_intervals_are_those_of_the_exact_law(policy, matrix):
    plan = sf.plan(policy, sf.ranges(), 0.5, strategy=matrix)
    felt, shape = moved_by_noise(plan.mechanism), policy.domain.shape
    every = np.array(list(np.ndindex(*(n + 1 for n in shape))))
    pairs = [(a, b) for a in every for b in every if (a < b).all()]
    low, high = (np.array(side, dtype=float) for side in zip(*pairs, strict=True))
    q = boxes(shape, low, high)
    exact = sum(law.variance * ((q @ moves) ** 2).sum(axis=1).mean() for moves, law in felt)
    assert plan.expected_error == pytest.approx(exact)
    release = plan.publish(np.full(shape, 10**6), source=sf.SeededSource(5))
    for confidence in (0.8, 0.95):
        answers = release.answer(np.concatenate([low, high], axis=1), confidence=confidence)
        for i in range(0, len(q), 3):
            law = Law([(q[i] @ moves, noise) for moves, noise in felt])
            assert answers.stderr[i] == pytest.approx(law.deviation, abs=1e-6)
            margin = max(answers.high[i] - answers.value[i], answers.value[i] - answers.low[i])
            assert law.holds(float(margin) + 1e-9) >= confidence - 1e-9 or law.deviation < 1e-6


@pytest.mark.parametrize("form", [np.asarray, scipy.sparse.csr_matrix, scipy.sparse.coo_array, lambda m: m * 1.0, list])
def test_dense_and_sparse_are_one_strategy(form):
    plan = sf.plan(sf.unbounded(LINE), sf.histogram(), 1, strategy=form(STEEP))
    assert plan.mechanism.spec() == sf.plan(sf.unbounded(LINE), sf.histogram(), 1, strategy=STEEP).mechanism.spec()
    assert np.array_equal(plan.mechanism.strategy.dense(), STEEP)


def test_it_is_refined_saved_loaded_and_audited(tmp_path):
    plan = sf.plan(sf.bounded(LINE), sf.ranges(), 0.5, strategy=TREE)
    assert plan.mechanism.describe() == "strategy, 4 rows, sensitivity 6; noise of scale 12"
    assert sf.audit(plan, method="exact").require().epsilon == pytest.approx(0.5)
    ledger, vault = sf.Ledger.create(tmp_path / "b.db", epsilon=2), sf.Vault(tmp_path / "v", key=tmp_path / "k")
    release = plan.publish(np.array([4, 0, 2, 7, 1]), ledger=ledger, vault=vault)
    better = release.refine(epsilon=1, ledger=ledger, vault=vault)
    assert ledger.spent == 1
    again = sf.load(better.save(tmp_path / "r"))
    assert again.mechanism.spec() == better.mechanism.spec()
    assert np.array_equal(again.counts, better.counts) and again.counts.sum() == 14
    assert again.answer((1, 4)).high == better.answer((1, 4)).high


@pytest.mark.parametrize(
    ("matrix", "message"),
    [
        (np.eye(5) * 0.5, "strategy holds 0.5: entries must be whole numbers"),
        (np.diag([1, 1, 1, 1, math.nan]), "strategy holds nan: entries must be whole numbers"),
        (np.diag([1, 1, 1, 1, math.inf]), "strategy holds inf: entries must be whole numbers"),
        (np.eye(5, dtype=int) * 1024, "strategy holds 1024: entries must be whole numbers of at most 1023"),
        (np.full((5, 5), -(2**63)), "strategy holds -9223372036854775808: entries"),
        (np.eye(4), "strategy has 4 columns, but the domain has 5 cells"),
        (np.ones(5), "strategy must be a two-dimensional array"),
        ([[1], [1, 2]], "strategy must be a two-dimensional array"),
        (np.eye(5) * 1j, "strategy holds entries of type complex128"),
        (np.array([["a"] * 5]), "strategy holds entries of type"),
        (np.zeros((0, 5)), "strategy has a row without entries, or no row"),
        (np.vstack([np.eye(5), np.zeros(5)]), "strategy has a row without entries, or no row"),
        (TREE, "strategy leaves some cell undetermined"),
        (np.ones((1 << 14) + 1)[:, None] * np.ones(5), "strategy has 16,385 rows over 5 cells"),
    ],
)
def test_what_is_no_strategy_is_refused(matrix, message):
    with pytest.raises(sf.SfumatoError, match=message) as refusal:
        sf.plan(sf.unbounded(LINE), sf.histogram(), 1, strategy=matrix)
    assert "Nothing was drawn or recorded." in str(refusal.value)


def test_an_epsilon_is_found_for_an_error():
    found = sf.epsilon_for(sf.bounded(LINE), sf.ranges(), 40, strategy=STEEP)
    assert sf.plan(sf.bounded(LINE), sf.ranges(), found, strategy=STEEP).expected_error == pytest.approx(40, rel=1e-2)
    with pytest.raises(sf.InvalidInput, match="exclude each other"):
        sf.epsilon_for(sf.bounded(LINE), sf.ranges(), 40, strategy=STEEP, mechanism="haar")


def test_entries_of_one_place_add_up_before_they_are_bounded():
    doubled = scipy.sparse.coo_array(([1000] * 10, ([*range(5)] * 2, [*range(5)] * 2)), shape=(5, 5))
    with pytest.raises(sf.InvalidInput, match="at most 1023"):
        sf.plan(sf.unbounded(LINE), sf.histogram(), 1, strategy=doubled)


def test_too_many_cells_are_refused():
    with pytest.raises(sf.TooLarge, match=r"over 1,025 cells.*\(sf.register\)"):
        sf.plan(sf.unbounded(sf.Line(0, 1, cells=1025)), sf.histogram(), 1, strategy=scipy.sparse.eye_array(1025))


def test_a_strategy_is_no_named_mechanism():
    with pytest.raises(sf.InvalidInput, match=r"mechanism='haar' and strategy=… exclude each other"):
        sf.plan(sf.unbounded(LINE), sf.histogram(), 1, strategy=STEEP, mechanism="haar")
    with pytest.raises(sf.InvalidInput, match=r"options belong to a mechanism"):
        sf.plan(sf.unbounded(LINE), sf.histogram(), 1, strategy=STEEP, width=3)
    with pytest.raises(sf.InvalidInput, match=r"give it with strategy=…"):
        sf.plan(sf.unbounded(LINE), sf.histogram(), 1, mechanism="strategy")
    assert "strategy" not in sf.mechanisms()


@pytest.mark.parametrize(
    "rows",
    [
        None,
        [],
        [[]],
        [[0, 1]],
        [[0, 1, 1]],
        [[5, 1]],
        [[-1, 1]],
        [[0, 0]],
        [[0, 1, 0, 1]],
        [[0, 1.0]],
        [[0, True]],
        [[0, 10**30]],
        [[0, 1024]],
        {"0": 1},
        [[1, 1]] * (1 << 15),
    ],
)
def test_a_forged_description_is_refused(rows):
    whole = [[cell, 1] for cell in range(4)]  # but the last cell
    for given in (rows, [*whole, *rows] if isinstance(rows, list) and rows != [[0, 1]] else rows):
        with pytest.raises(FileFormatError):
            mechanism_from_spec({"name": "strategy", "epsilon": "1", "options": {"rows": given}}, sf.unbounded(LINE))


def test_a_forged_description_on_many_cells_costs_nothing():
    large = sf.unbounded(sf.Grid(bounds=(0, 0, 1, 1), shape=(4096, 4096)))
    with pytest.raises(FileFormatError):
        mechanism_from_spec({"name": "strategy", "epsilon": "1", "options": {"rows": [[0, 1]]}}, large)
