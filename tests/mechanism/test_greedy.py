"""The greedy search: free sets are added, the sensitivity stays what is said, and the error is the mechanism's."""

from __future__ import annotations

import itertools
import json
import math
from fractions import Fraction

import numpy as np
import pytest
from mechanism_oracle import all_queries, box, cases, cost, label, some_noise, unit, witness
from test_cuts import squares

import sfumato as sf
from sfumato.mechanism.cells.candidates import candidates, starts
from sfumato.mechanism.cells.cuts import crossings, cut_sensitivity
from sfumato.mechanism.cells.greedy import greedy, greedy_strategy, greedy_variants
from sfumato.mechanism.cells.sets import decoded, encoded, set_mechanism

ONE = Fraction(1)
FOUR = sf.Line(0, 1, cells=4)
SOURCE = sf.graph(FOUR, [(0, 1), (1, 2), (2, 3), (0, sf.ABSENT)])
SMALL = [p for p in cases() if p.connected and p.domain.size > 1]
WINDOW = sf.within(sf.Line(0, 1, cells=32), 0.1, sources="boundary")


def workload(policy):
    return sf.ranges() if policy.domain.is_spatial else sf.histogram()


# --- by hand ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("start", [None, "nothing"])
def test_the_triangle_of_four_bins_is_matched(start):
    """Section 5.1: sensitivity 1 and a total variance of 32 over the ten ranges, not the 38 that Table 3 adds up to."""
    found = greedy_strategy(SOURCE, sf.ranges(), start=start)
    assert found.sensitivity == 1
    assert 10 * found.variance == pytest.approx(32)


def test_with_a_known_total_the_triangle_needs_one_set_less():
    """Six of the ten ranges end at one of the three edges, three at two, and one at none: 12 edges of variance 2."""
    policy = sf.threshold(FOUR, 1)
    for start in ("nothing", "prefixes"):
        found = greedy_strategy(policy, sf.ranges(), start=start)
        assert (len(found.members), found.sensitivity) == (3, 1)
        assert 10 * found.variance == pytest.approx(24)


def test_cells_alone_have_the_variances_of_table_1():
    """Rows of Table 3 for published counts: 8 a cell, 160 over the ten ranges."""
    found = greedy_strategy(SOURCE, sf.ranges(), start="cells", raises=0)
    assert found.sensitivity_before == 2
    assert 10 * found.variance_before == pytest.approx(4 * 8 + 3 * 16 + 2 * 24 + 32)


def test_shifted_squares_are_added_for_nothing():
    """Figure 1: squares of four cells leave the edges inside them uncut, and the search uses them."""
    policy = sf.threshold(box((6, 6)), 1)
    solid = squares(6, 0)
    found = greedy_strategy(policy, sf.ranges(), start=np.concatenate([solid, np.eye(36, dtype=int)]), raises=0)
    assert found.sensitivity == found.sensitivity_before == 4
    assert len(found.members) > found.sets_before
    assert found.variance < found.variance_before
    assert found.start == "the given sets"


def test_sources_at_the_boundary_are_where_a_plan_gains():
    """One set of all cells cuts only edges to ⊥, which single cells cut once: it is free, and saves a third."""
    policy = sf.within(box((8, 8)), 0.1, sources="boundary")
    found = greedy_strategy(policy, sf.ranges())
    assert (found.sets_before, len(found.members), found.sensitivity) == (64, 65, 2)
    assert found.members[-1].all()
    assert found.variance < 0.7 * found.variance_before


# --- oracle -----------------------------------------------------------------------------------------------------------


def by_hand(found, asked):
    """2Δ² times the mean variance of the queries, by dense least squares with the total as a constraint."""
    a = found.members.astype(float)
    size = a.shape[1]
    if found.policy.total_is_public:
        basis = np.linalg.svd(np.ones((1, size)))[2][1:].T
        effect = asked @ basis @ np.linalg.pinv(a @ basis)
    else:
        effect = asked @ np.linalg.pinv(a)
    return 2 * found.policy.sensitivity(a) ** 2 * (effect**2).sum(axis=1).mean()


@pytest.mark.parametrize("policy", SMALL, ids=label)
def test_the_variance_is_that_of_least_squares_and_of_the_mechanism(policy):
    asked = workload(policy)
    found = greedy_strategy(policy, asked)
    assert found.sensitivity == policy.sensitivity(found.members.astype(int))
    assert found.variance == pytest.approx(by_hand(found, all_queries(asked, policy.domain)))
    mechanism = greedy(policy, ONE, **found.options)
    assert mechanism.sensitivity == found.sensitivity
    assert mechanism.model.expected_error(asked, policy.domain) == pytest.approx(found.expected_error(1))


@pytest.mark.parametrize("policy", SMALL, ids=label)
def test_a_search_never_ends_above_its_start_nor_above_its_sensitivity(policy):
    for name in starts(policy):
        stages = [greedy_strategy(policy, workload(policy), start=name, raises=raises) for raises in (0, 1, 3)]
        assert stages[0].sensitivity <= max(stages[0].sensitivity_before, 1)
        variances = [stages[0].variance_before, *(stage.variance for stage in stages)]
        assert all(b <= a * (1 + 1e-9) or math.isinf(a) for a, b in itertools.pairwise(variances))
        for raises, stage in zip((0, 1, 3), stages, strict=True):
            assert stage.sensitivity <= max(stage.sensitivity_before, 1) + raises
            assert len(stage.members) >= stage.sets_before


@pytest.mark.parametrize("policy", [p for p in SMALL if p.domain.size <= 16], ids=label)
def test_nothing_fits_any_more_that_would_help(policy):
    """Every candidate either cuts a full edge or lowers the error by less than a millionth."""
    found = greedy_strategy(policy, workload(policy), start="cells", raises=0)
    full = crossings(found.members, policy.edges()).sum(axis=0) >= found.sensitivity
    asked = all_queries(workload(policy), policy.domain)
    for extra in candidates(policy).members:
        if not (crossings(extra, policy.edges()) & full).any():
            more = greedy_strategy(policy, workload(policy), start=np.vstack([found.members, extra]), raises=0)
            assert by_hand(more, asked) >= found.variance * (1 - 1e-5)


@pytest.mark.parametrize("policy", SMALL, ids=label)
def test_candidates_over_corners_are_the_candidates_over_cells(policy):
    pool = candidates(policy)
    matrix = np.random.default_rng(3).normal(size=(policy.domain.size,) * 2)
    matrix += matrix.T
    members = pool.members.astype(float)
    want = np.einsum("ij,jk,ik->i", members, matrix, members)
    assert np.allclose(pool.quadratic(pool.lifted(matrix)), want)
    assert np.array_equal(pool.cut, crossings(pool.members, policy.edges()).sum(axis=1))
    assert len(np.unique(pool.members, axis=0)) == len(pool.members)


def test_thinned_candidates_keep_prefixes_and_suffixes():
    pool = candidates(sf.threshold(sf.Line(0, 1, cells=64), 1), most=600)
    assert len(pool.members) <= 600
    kept = {row.tobytes() for row in pool.members}
    for i in range(1, 64):
        low = np.arange(64) < i
        assert {low.tobytes(), (~low).tobytes()} <= kept


# --- the mechanism ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("policy", SMALL, ids=label)
def test_a_change_along_an_edge_is_hidden_by_noise_of_its_cost(policy):
    mechanism = greedy(policy, Fraction(1, 2))
    rng = np.random.default_rng(7)
    counts = rng.integers(0, 9, policy.domain.size)
    noise = some_noise(mechanism, rng)
    for u, v in policy.edges():
        (c,) = witness(mechanism, u, v)
        assert cost(mechanism, [c]) <= mechanism.epsilon
        moved = mechanism.measure(counts - unit(policy.domain.size, u, v), [noise[0] + c])
        assert np.array_equal(mechanism.measure(counts, noise), moved)
    assert mechanism.privacy_loss == mechanism.epsilon


@pytest.mark.parametrize("policy", SMALL, ids=label)
def test_without_noise_the_counts_come_back(policy):
    mechanism = greedy(policy, ONE)
    counts = np.random.default_rng(8).integers(0, 99, policy.domain.size)
    total = int(counts.sum()) if policy.total_is_public else None
    silent = [np.zeros(block.estimator.cols, dtype=np.int64) for block in mechanism.model.blocks]
    assert np.allclose(mechanism.estimate(mechanism.measure(counts, silent), total), counts)


@pytest.mark.parametrize("policy", SMALL, ids=label)
def test_the_noise_of_ranges_is_that_of_the_estimates(policy):
    mechanism = greedy(policy, ONE)
    domain, rng = policy.domain, np.random.default_rng(9)
    ends = np.sort(rng.uniform(0, 1, (5, 2, domain.ndim)) * domain.shape, axis=1)
    weights = np.ones((5, 1))
    for axis, n in enumerate(domain.shape):
        cell = np.arange(n)
        along = np.clip(np.minimum(ends[:, 1, axis, None], cell + 1) - np.maximum(ends[:, 0, axis, None], cell), 0, 1)
        weights = (weights[:, :, None] * along[:, None, :]).reshape(5, -1)
    got = mechanism.model.range_cumulants(ends[:, 0], ends[:, 1])
    want = mechanism.model.query_cumulants(weights)
    assert np.allclose(got, want)
    assert mechanism.model.range_groups(ends[:, 0], ends[:, 1]) is None
    total = 0 if policy.total_is_public else None
    columns = np.eye(mechanism.strategy.rows, dtype=np.int64)
    effect = np.array([mechanism.estimate(column * 10**6, total) for column in columns]) / 10**6
    assert np.allclose(((weights @ effect.T) ** 2).sum(axis=1) * mechanism.model.blocks[0].noise.variance, got[0])


def test_sets_survive_a_file():
    for policy in (WINDOW, sf.threshold(box((6, 6)), 1), sf.graph(FOUR, [(0, 2), (2, 1), (1, 3), (3, 0)])):
        found = greedy_strategy(policy, sf.ranges())
        read = json.loads(json.dumps(found.options))
        assert sorted(map(bytes, decoded(read, policy.domain.shape))) == sorted(map(bytes, found.members))
        again = greedy(policy, ONE, **read)
        assert again.spec() == {"name": "greedy", "epsilon": "1", "options": found.options}
        assert again.describe() == (
            f"greedy, {len(found.members)} sets, sensitivity {found.sensitivity}; noise of scale {found.sensitivity}"
        )


def test_boxes_are_written_as_boxes_and_others_as_cells():
    members = np.zeros((3, 2, 3), dtype=bool)
    members[0, :, 1:] = True
    members[1, 0, 0] = members[1, 1, 2] = True
    members[2] = True
    written = encoded(members.reshape(3, 6), (2, 3))
    assert written == {"boxes": [[0, 1, 2, 3], [0, 0, 2, 3]], "sets": [[0, 5]]}
    assert np.array_equal(decoded(written, (2, 3)), members.reshape(3, 6)[[0, 2, 1]])


@pytest.mark.slow  # a search a plan
def test_a_plan_tries_what_was_found_for_its_workload():
    (options,) = greedy_variants(WINDOW, sf.ranges())
    assert options == greedy_strategy(WINDOW, sf.ranges()).options
    found = list(greedy_variants(sf.unbounded(WINDOW.domain), sf.ranges([[0, 0.25], [0.25, 0.75], [0.5, 1]])))
    assert [0, 8] in found[0]["boxes"]


@pytest.mark.parametrize(
    "policy",
    [
        sf.bounded(sf.Line(0, 1, cells=1)),
        sf.threshold(sf.Line(0, 1, cells=257), 1),
        sf.bounded(sf.Line(0, 1, cells=200)),
        sf.graph(FOUR, [(0, 1)], publish_component_totals=True),
        sf.threshold(FOUR, 1),
    ],
    ids=["one cell", "many cells", "many edges", "two parts", "nothing to add"],
)
def test_a_plan_does_not_search_where_it_would_wait_or_gain_nothing(policy):
    assert list(greedy_variants(policy, sf.ranges())) == []


def test_a_result_says_itself_in_one_line():
    assert greedy_strategy(SOURCE, sf.ranges(), start="cells", raises=0).describe() == (
        "from cells: 4 to 5 sets, sensitivity 2 to 2, mean squared error 16 to 8 at ε = 1"
    )


# --- refusals ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "kind", "message"),
    [
        (
            lambda: greedy_strategy(sf.threshold(sf.Line(0, 1, cells=1025), 1), sf.ranges()),
            sf.TooLarge,
            "mechanism='greedy' takes at most 1,024 cells, and this domain has 1,025. Use fewer cells, or "
            "mechanism='hierarchy' or 'edges'. Nothing was drawn or recorded.",
        ),
        (
            lambda: greedy_strategy(sf.bounded(sf.Line(0, 1, cells=400)), sf.ranges()),
            sf.TooLarge,
            "mechanism='greedy' takes policies of at most 50,000 edges, and this one has 79,800. Use fewer cells, or "
            "mechanism='hierarchy' or 'edges'. Nothing was drawn or recorded.",
        ),
        (
            lambda: greedy(sf.threshold(sf.Line(0, 1, cells=257), 1), ONE),
            sf.InvalidInput,
            "mechanism='greedy' searches by itself on at most 256 cells and 4,000 edges; here give boxes=… or sets=…, "
            "or use mechanism='hierarchy' or 'edges'. Nothing was drawn or recorded.",
        ),
        (
            lambda: greedy(sf.graph(FOUR, [(0, 1)], publish_component_totals=True), ONE),
            sf.InvalidInput,
            "mechanism='greedy' needs a connected policy; under this one use mechanism='edges'.",
        ),
        (
            lambda: greedy(sf.bounded(sf.Line(0, 1, cells=1)), ONE),
            sf.InvalidInput,
            "mechanism='greedy': under this policy no change of a record moves any value; use mechanism='edges'.",
        ),
        (
            lambda: greedy_strategy(SOURCE, sf.ranges(), start="halfs"),
            sf.InvalidInput,
            "start='halfs' is not one of 'subtrees', 'cells', 'halves', 'nothing'.",
        ),
        (
            lambda: greedy_strategy(SOURCE, sf.ranges(), start=[[1, 2, 0, 0]]),
            sf.InvalidInput,
            "sets holds entries other than 0 and 1: a cell is in a set or it is not.",
        ),
        (
            lambda: greedy_strategy(SOURCE, sf.ranges(), raises=-1),
            sf.InvalidInput,
            "raises=-1 must be a whole number of at least 0, or None.",
        ),
        (
            lambda: greedy(SOURCE, ONE, boxes=[[0, 4], [0, 2]]),
            sf.InvalidInput,
            "sets leave some cell undetermined: no combination of them gives its count. Add sets, for instance every "
            "single cell. Nothing was drawn or recorded.",
        ),
        (
            lambda: greedy(SOURCE, ONE, boxes=[[0, 5]]),
            sf.InvalidInput,
            "boxes holds [0, 5]: give (lo…, hi…) in cell indices, half-open and not empty, inside the shape (4,).",
        ),
        (
            lambda: greedy(SOURCE, ONE, boxes=[[0, 1, 2]]),
            sf.InvalidInput,
            "boxes holds [0, 1, 2]: give (lo…, hi…) in cell indices, half-open and not empty, inside the shape (4,).",
        ),
        (
            lambda: greedy(SOURCE, ONE, sets=[[0, -1]]),
            sf.InvalidInput,
            "sets holds [0, -1]: give cell numbers from 0 to 3, at least one a set.",
        ),
        (
            lambda: greedy(SOURCE, ONE, sets=[[]]),
            sf.InvalidInput,
            "sets holds []: give cell numbers from 0 to 3, at least one a set.",
        ),
        (
            lambda: greedy(SOURCE, ONE, sets=[[0.5]]),
            sf.InvalidInput,
            "sets must be a list of lists of whole numbers.",
        ),
        (
            lambda: greedy(SOURCE, ONE, boxes="all"),
            sf.InvalidInput,
            "boxes must be a list of lists of whole numbers.",
        ),
        (
            lambda: greedy(SOURCE, ONE, width=3),
            sf.InvalidInput,
            "mechanism='greedy' takes no option width.",
        ),
        (
            lambda: set_mechanism("greedy", sf.unbounded(sf.Line(0, 1, cells=2000)), ONE, {}),
            sf.TooLarge,
            "mechanism='greedy' takes at most 1,024 cells, and this domain has 2,000. Use fewer cells, or "
            "mechanism='hierarchy' or 'edges'. Nothing was drawn or recorded.",
        ),
    ],
)
def test_refusals_say_what_to_do(call, kind, message):
    with pytest.raises(kind) as refusal:
        call()
    assert str(refusal.value) == message


@pytest.mark.slow
def test_a_thousand_cells_are_searched():
    policy = sf.threshold(sf.Line(0, 1, cells=1000), 4)
    found = greedy_strategy(policy, sf.ranges(), start="cells", raises=1, most=10_000)
    assert cut_sensitivity(policy, found.members) == found.sensitivity == 3
    assert found.variance < 0.05 * found.variance_before


@pytest.mark.parametrize("policy", [sf.bounded, sf.unbounded, lambda grid: sf.threshold(grid, 2)], ids=["b", "u", "t"])
def test_a_plan_on_a_grid_is_printed_with_the_errors_of_its_blocks(policy):
    """Where the total is public no axis has a factor of its own to be corrected: printing ended in an IndexError."""
    grid = sf.Grid(bounds=(0, 0, 1, 1), shape=(6, 5))
    plan = sf.plan(policy(grid), sf.histogram(), 1, mechanism="greedy")
    assert "a cell ±" in str(plan)
    ends = np.stack(np.nonzero(np.ones(grid.shape)), axis=-1).astype(float)
    cell, whole = plan.by_scale[0], plan.by_scale[-1]
    assert cell.error == pytest.approx(plan.mechanism.model.range_cumulants(ends, ends + 1)[0].mean())
    everything = np.zeros((1, 2)), np.array([[6.0, 5.0]])
    assert whole.error == pytest.approx(plan.mechanism.model.range_cumulants(*everything)[0][0], abs=1e-9)
    assert (whole.error < 1e-9) == plan.policy.total_is_public
