"""What sorted points publish: exact sums and totals, and an output for every count vector."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sfumato as sf
from sfumato.mechanism import build
from sfumato.mechanism.base import AdditiveMechanism
from sfumato.mechanism.points.sorted import SortedPoints, SortedWithAbsence, sorted_points
from sfumato.mechanism.points.sorted_groups import cell_counts, distribution, group_sizes, group_sums
from sfumato.noise import SeededSource

EPSILON = Fraction(1, 2)


def line(cells):
    return sf.Line(0, 1, cells=cells)


def grid(*shape):
    return sf.Grid(bounds=(0,) * len(shape) + (1,) * len(shape), shape=shape)


# --- by hand ----------------------------------------------------------------------------------------------------------


def test_positions_and_the_distribution_of_three_groups_by_hand():
    """Means 1, 1, 4 of groups of 2: a block of four records at 1 and one of two at 4; in cell coordinates, 1.5, 4.5."""
    mechanism = sorted_points(sf.bounded(line(6)), Fraction(1), group=2)
    measured = np.array([3, 1, 8])  # means 1.5, 0.5, 4: out of order, so the first two are tied
    positions, weights = mechanism.positions(measured, 6)
    assert positions.tolist() == [1.5, 1.5, 4.5]
    assert weights.tolist() == [2, 2, 2]
    knots, records = mechanism.distribution(measured, 6)
    # Between the two lies half of each, two and one; they meet where the first has given two thirds of the way.
    assert knots.tolist() == [0.0, 1.5, 1.5, 3.5, 3.5, 4.5, 4.5, 6.0]
    assert records.tolist() == [0.0, 2.0, 2.0, 4.0, 4.0, 5.0, 5.0, 6.0]
    estimates = mechanism.estimate(measured, 6)
    assert estimates.sum() == 6
    assert np.allclose(estimates, np.diff(np.interp(np.arange(7), [0, 1.5, 4.5, 6], [0, 2, 5, 6])))


def test_a_heap_beside_few_records_stays_in_its_place():
    """Eight records at 0 lend one to the slope towards a single one at 4, not four."""
    knots, records = distribution(np.array([0.0, 4.0]), np.array([8, 1]), 5, 1e9)
    assert np.interp([-0.5, 0.0, 2.0, 4.0, 5.5], knots, records) == pytest.approx([0.0, 7.0, 7.75, 8.5, 9.0])
    assert np.interp(-1e-9, knots, records) == pytest.approx(1.0)


def test_without_noise_heaps_and_single_records_come_back_as_they_were():
    """Three records in one cell, one in another, five in the last: groups of one and no noise give the counts."""
    x = np.array([3, 0, 0, 1, 0, 0, 0, 5])
    mechanism = sorted_points(sf.bounded(line(8)), Fraction(10**6), group=1)
    assert np.allclose(mechanism.estimate(mechanism.values(x), 9), x, atol=1e-3)
    same = np.array([0, 0, 0, 0, 7, 0, 0, 0])
    for group in (1, 2):
        mechanism = sorted_points(sf.bounded(line(8)), Fraction(10**6), group=group)
        assert np.allclose(mechanism.estimate(mechanism.values(same), 7), same, atol=1e-3)


# --- sums by an oracle ------------------------------------------------------------------------------------------------


@settings(deadline=None)
@given(
    counts=st.lists(st.integers(0, 4), min_size=1, max_size=12),
    missing=st.integers(-8, 8),
    group=st.integers(1, 9),
    pad_low=st.booleans(),
)
def test_group_sums_are_those_of_the_list_itself(counts, missing, group, pad_low):
    whole = np.repeat(np.arange(len(counts)), counts)
    guess = max(len(whole) + missing, 0)
    missing = guess - len(whole)
    padding = np.full(max(missing, 0), 0 if pad_low else len(counts) - 1)
    if pad_low:
        listed = np.concatenate([padding, whole[max(-missing, 0) :]])
    else:
        listed = np.concatenate([whole[:guess], padding])
    sizes = group_sizes(guess, group)
    assert sizes.sum() == guess
    assert (sizes <= group).all()
    assert len(sizes) == 0 or sizes.max() - sizes.min() <= 1
    expected = [int(part.sum()) for part in np.split(listed, np.cumsum(sizes)[:-1])] if guess else []
    assert group_sums(np.array(counts), sizes, missing=missing, pad_low=pad_low).tolist() == expected


def test_sums_stay_exact_where_prefix_sums_leave_64_bits():
    """2⁵³ records on 2¹³ cells: the sum of all positions is beyond 2⁶⁴, that of a group is not."""
    counts = np.zeros(1 << 13, dtype=np.int64)
    counts[3], counts[-1] = 1 << 52, 1 << 52
    mechanism = sorted_points(sf.bounded(line(1 << 13)), Fraction(1), group=1 << 45)
    assert mechanism.values(counts).tolist() == [3 << 45] * 128 + [8191 << 45] * 128
    estimates = mechanism.estimate(mechanism.values(counts), 1 << 53)
    assert estimates.sum() == 1 << 53


def test_so_many_records_that_groups_must_be_larger_than_asked_for():
    mechanism = sorted_points(sf.bounded(line(4)), Fraction(1), group=1)
    assert mechanism.group_size(1 << 24) == 1
    assert mechanism.group_size((1 << 24) + 1) == 2


# --- every dataset has an output --------------------------------------------------------------------------------------

EDGE_CASES = {
    "none": [0, 0, 0, 0, 0, 0],
    "one": [0, 0, 1, 0, 0, 0],
    "two": [0, 1, 0, 0, 1, 0],
    "all equal": [0, 0, 50, 0, 0, 0],
    "on the lower end": [9, 0, 0, 0, 0, 0],
    "on the upper end": [0, 0, 0, 0, 0, 9],
    "duplicates": [7, 0, 7, 7, 0, 1],
}


@pytest.mark.parametrize("counts", EDGE_CASES.values(), ids=EDGE_CASES)
@pytest.mark.parametrize("group", [None, 1, 2, 7, 1000])
@pytest.mark.parametrize("epsilon", [Fraction(1, 100), Fraction(1), Fraction(50)])
def test_counts_are_never_negative_and_sum_to_the_public_total(counts, group, epsilon):
    x = np.array(counts)
    options = {} if group is None else {"group": group}
    for policy in (sf.bounded(line(6)), sf.threshold(line(6), 1), sf.bounded(grid(2, 3)), sf.bounded(grid(1, 3, 2))):
        estimates = sorted_points(policy, epsilon, **options).run(x, int(x.sum()), SeededSource(1))
        assert estimates.shape == x.shape
        assert estimates.min() >= 0
        assert estimates.sum() == x.sum() == estimates[::-1].cumsum()[-1]
    for policy in (sf.unbounded(line(6)), sf.within(line(6), 0.2, sources="boundary"), sf.unbounded(grid(2, 3))):
        mechanism = sorted_points(policy, epsilon, **options)
        measured = mechanism.draw(x, None, SeededSource(2))
        estimates = mechanism.estimate(measured, None)
        assert estimates.min() >= 0
        assert estimates.sum() == measured[0]


@settings(deadline=None)
@given(
    steps=st.lists(st.floats(0, 3), min_size=0, max_size=20),
    weights=st.lists(st.integers(1, 10**6), min_size=20, max_size=20),
    noise=st.sampled_from([0.0, 0.3, 5.0, 1e9]),
)
def test_a_distribution_is_monotone_inside_the_domain_and_its_cells_sum_exactly(steps, weights, noise):
    means = np.minimum(np.cumsum(steps), 9.0)
    sizes = np.array(weights[: len(means)], dtype=np.int64)
    positions, records = distribution(means, sizes, 9, noise)
    assert (np.diff(positions) >= 0).all()
    assert (np.diff(records) >= 0).all()
    assert -0.5 <= positions[0] <= positions[-1] <= 9.5
    assert records[0] == 0
    assert records[-1] == sizes.sum()
    counts = cell_counts(positions, records, 10)
    assert counts.min() >= 0
    assert counts.sum() == sizes.sum() == counts[::-1].cumsum()[-1]


def test_without_noise_prefix_sums_of_scattered_records_are_off_by_little_more_than_a_group():
    x = np.bincount(np.random.default_rng(5).choice(4096, 500, replace=False), minlength=4096)
    for group in (1, 5, 20):
        mechanism = sorted_points(sf.bounded(line(4096)), EPSILON, group=group)
        off = np.cumsum(mechanism.estimate(mechanism.values(x), 500) - x)
        assert np.abs(off).max() <= 1.5 * group


def test_one_cell_needs_no_noise():
    mechanism = sorted_points(sf.bounded(line(1)), EPSILON)
    assert mechanism.noises(5) == []
    assert mechanism.privacy_loss == 0
    assert mechanism.run(np.array([5]), 5, SeededSource(1)).tolist() == [5]
    assert mechanism.describe() == "sorted, groups by the number of records; no noise needed"
    assert mechanism.modelled_error(sf.ranges(), 5) == 0
    alone = sorted_points(sf.unbounded(line(1)), EPSILON)
    assert alone.privacy_loss == EPSILON / 10
    measured = alone.draw(np.array([5]), None, SeededSource(1))
    assert alone.estimate(measured, None).tolist() == [measured[0]]


def test_a_number_of_records_below_zero_is_read_as_none():
    mechanism = sorted_points(sf.unbounded(line(4)), Fraction(1, 1000))
    drawn = [mechanism.draw(np.zeros(4, dtype=np.int64), None, SeededSource(seed)) for seed in range(40)]
    guesses = [int(measured[0]) for measured in drawn]
    assert min(guesses) == 0 < max(guesses)
    assert all((mechanism.estimate(measured, None) >= 0).all() for measured in drawn)


def test_points_in_space_lie_in_the_middle_of_the_cells_of_their_positions():
    mechanism = sorted_points(sf.bounded(grid(4, 4)), EPSILON)
    assert mechanism.places(np.array([0.2, 15.9, 16.0])).tolist() == [[0.5, 0.5], [3.5, 0.5], [3.5, 0.5]]
    assert sorted_points(sf.bounded(line(4)), EPSILON).places(np.array([0.2, 3.9])).tolist() == [[0.2], [3.9]]


def test_a_record_is_found_again_where_it_was_on_a_grid():
    """ε so large that the noise is zero: every cell of the curve maps back to itself."""
    mechanism = sorted_points(sf.bounded(grid(5, 3)), Fraction(10**4), group=1)
    for cell in range(15):
        x = np.zeros(15, dtype=np.int64)
        x[cell] = 40
        positions, _ = mechanism.positions(mechanism.draw(x, 40, SeededSource(1)), 40)
        place = np.floor(mechanism.places(positions)).astype(int)
        assert (np.ravel_multi_index(tuple(place.T), (5, 3)) == cell).all()


# --- what is built ----------------------------------------------------------------------------------------------------


def test_the_group_size_knows_the_number_of_records_and_nothing_else_of_them():
    mechanism = sorted_points(sf.bounded(line(8)), EPSILON)
    shapes = {mechanism.values(x).shape for x in (np.bincount([c] * 500, minlength=8) for c in range(8))}
    assert len(shapes) == 1
    assert mechanism.group_size(500) < mechanism.group_size(50_000)


def test_only_a_public_number_of_records_can_be_refined():
    public, hidden = (sorted_points(policy(line(8)), EPSILON) for policy in (sf.bounded, sf.unbounded))
    assert isinstance(public, SortedPoints)
    assert isinstance(public, AdditiveMechanism)
    assert public.refinable
    assert isinstance(hidden, SortedWithAbsence)
    assert not hidden.refinable
    assert hidden.model is None
    assert public.keeps_measured
    assert hidden.keeps_measured


def test_a_group_size_that_was_written_down_outlives_the_rule_for_it():
    mechanism = sorted_points(sf.bounded(line(512)), EPSILON).for_total(1000)
    again = sorted_points(mechanism.policy, 2 * EPSILON, **mechanism.spec()["options"])
    assert again.group == mechanism.group == sorted_points(sf.bounded(line(512)), EPSILON).group_size(1000)
    assert again.noises(1000)[0][1] == mechanism.noises(1000)[0][1]


def test_a_spec_with_a_share_builds_the_same_again():
    mechanism = sorted_points(sf.unbounded(line(9)), EPSILON, share=0.3, group=4)
    again = sorted_points(mechanism.policy, EPSILON, **mechanism.spec()["options"])
    assert again.spec() == mechanism.spec() == {
        "name": "sorted", "epsilon": "1/2", "options": {"group": 4, "share": "3/10"}
    }  # fmt: skip
    assert mechanism.describe() == "sorted, group 4, share 3/10; noise of scale 160/7"


def test_measuring_changes_neither_counts_nor_noise():
    mechanism = sorted_points(sf.bounded(grid(3, 3)), EPSILON, group=2)
    counts, noise = np.arange(9), np.arange(18)
    mechanism.measure(counts, [noise])
    mechanism.run(counts, 36, SeededSource(1))
    assert counts.tolist() == list(range(9))
    assert noise.tolist() == list(range(18))


# --- refusals ---------------------------------------------------------------------------------------------------------

PLACE = (
    "mechanism='sorted' needs a line, or a grid of two or three dimensions; labels have no order, and in more "
    "dimensions no curve keeps near things together. Use mechanism='hierarchy' or 'identity'."
)
REFUSED = {
    "labels": (sf.bounded(sf.Categories(["a", "b"])), {}, PLACE),
    "four dimensions": (sf.bounded(grid(2, 2, 2, 2)), {}, PLACE),
    "unknown option": (sf.bounded(line(4)), {"width": 3}, "mechanism='sorted' takes no option width."),
    "group": (sf.bounded(line(4)), {"group": 0}, "group=0 must be a whole number of at least 1."),
    "too large a group": (
        sf.bounded(line(4)),
        {"group": 1 << 60},
        "group=1152921504606846976 is too large for sums of 4 positions in 64 bits. "
        "Use at most 576460752303423488, or leave it out.",
    ),
    "share of nothing": (
        sf.bounded(line(4)),
        {"share": 0.1},
        "share=0.1: under this policy the number of records is public and nothing need be spent on it. "
        "Leave share out.",
    ),
    "all for the number": (
        sf.unbounded(line(4)),
        {"share": 1},
        "share=1 must lie between 0 and 1, both excluded: the part of epsilon for the number of records. "
        "Nothing was drawn or recorded.",
    ),
    "not a number": (sf.unbounded(line(4)), {"share": "much"}, "share='much' is not a finite number."),
}


@pytest.mark.parametrize("case", REFUSED.values(), ids=REFUSED)
def test_what_cannot_be_built_is_refused(case):
    policy, options, message = case
    with pytest.raises(sf.InvalidInput) as refusal:
        sorted_points(policy, EPSILON, **options)
    assert str(refusal.value) == message


def test_a_missing_public_total_is_refused():
    with pytest.raises(sf.InvalidInput) as refusal:
        sorted_points(sf.bounded(line(4)), EPSILON).noises(None)
    assert str(refusal.value) == "total=None: under this policy the number of records is public, and needed."


def test_a_budget_too_small_for_noise_in_64_bits_is_refused_before_anything_is_recorded():
    for policy in (sf.bounded(line(1000)), sf.unbounded(line(1000)), sf.unbounded(line(1))):
        with pytest.raises(sf.InvalidInput, match="Nothing was drawn"):
            build("sorted", policy, Fraction(1, 10**17))
