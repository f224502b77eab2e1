"""The private quadtree: its boxes, the loss along paths by brute force, the audit, what it tells, refusals."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from functools import cache
from itertools import pairwise, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sfumato as sf
from sfumato.auditing import audit
from sfumato.errors import FileFormatError, InvalidInput
from sfumato.mechanism import build, mechanism_from_spec
from sfumato.mechanism.partitions.halves import Halves
from sfumato.mechanism.partitions.path_loss import SLACK, best_rate, path_loss
from sfumato.noise import DiscreteLaplace, SeededSource

ONE = Fraction(1)


def line(cells):
    return sf.Line(0, cells, cells=cells)


def grid(*shape):
    return sf.Grid(bounds=(0,) * len(shape) + shape, shape=shape)


def tree(policy, epsilon=ONE, **options):
    return build("quadtree", policy, epsilon, **options)


# ------------------------------------------------------------------------------------------------------------- boxes


@given(st.lists(st.integers(1, 9), min_size=1, max_size=3))
def test_boxes_of_every_level_cover_the_grid_and_lie_in_those_above(shape):
    halves, cells = Halves(tuple(shape)), np.arange(math.prod(shape))
    levels = halves.counts(cells)
    assert len(levels[0]) == 1
    assert np.array_equal(levels[-1], cells)
    for level, table in enumerate(levels):
        low, high = halves.boxes(level, np.arange(len(table)))
        number = halves.spread(level, np.arange(len(table))).astype(int)
        for box, (start, stop) in enumerate(zip(low, high, strict=True)):
            inside = tuple(slice(a, b) for a, b in zip(start, stop, strict=True))
            assert (number[inside] == box).all()
            assert table[box] == cells.reshape(shape)[inside].sum()
            assert halves.single(level)[box] == ((stop - start) == 1).all()
        if level < halves.depth:
            sums = np.zeros(len(table), dtype=np.int64)
            np.add.at(sums, halves.parents(level), levels[level + 1])
            assert np.array_equal(sums, table)


# -------------------------------------------------------------------------------------------------------- loss on paths


def probability(rate, score):
    """P[score + η > 0], by summing up the noise."""
    q = math.exp(-rate)
    return sum((1 - q) / (1 + q) * q ** abs(k) for k in range(1 - score, 400))


def brute_path(rate, decay, floor, depth, most):
    """(the most that splits tell, the most that an end tells) of a record on a path, over all falling counts."""
    law = cache(lambda score: probability(rate, score))

    def score(count, level):
        return max(count - level * decay, -floor)

    splits = ends = 0.0
    for counts in product(range(most), repeat=depth):
        if any(a < b for a, b in pairwise(counts)):
            continue
        told = 0.0
        for level, count in enumerate(counts):
            one, two = law(score(count, level)), law(score(count + 1, level))
            ends = max(ends, math.log((1 - one) / (1 - two)) - told)
            told += math.log(two / one)
        splits = max(splits, told)
    return splits, ends


@pytest.mark.parametrize(("rate", "decay", "floor"), [("1/2", 2, 3), ("1", 1, 2), ("1/3", 4, 2), ("3/4", 1, 1)])
def test_the_loss_along_a_path_is_that_of_brute_force(rate, decay, floor):
    splits, ends = brute_path(float(Fraction(rate)), decay, floor, 3, 3 * (decay + floor))
    assert float(path_loss(Fraction(rate), decay, floor, 3, moves=False)) == pytest.approx(splits, rel=2 * SLACK)
    both = float(path_loss(Fraction(rate), decay, floor, 3, moves=True))
    assert splits + ends <= both == pytest.approx(splits + float(Fraction(rate)), rel=2 * SLACK)


@pytest.mark.parametrize("epsilon", ["1/1000000", "1/300", "1/3", "7", "1000"])
@pytest.mark.parametrize("moves", [False, True])
def test_the_noise_is_the_least_that_is_enough(epsilon, moves):
    epsilon = Fraction(epsilon)
    found = best_rate(epsilon, decay=Fraction(3, 5), floor=Fraction(6, 5), depth=8, moves=moves)
    assert 0.97 * epsilon < path_loss(*found, 8, moves=moves) <= epsilon


def test_no_levels_tell_nothing():
    assert path_loss(ONE, 3, 3, 0, moves=True) == 0


# -------------------------------------------------------------------------------------------------------------- privacy

POLICIES = {
    "add/remove": sf.unbounded,
    "replace-one": sf.bounded,
    "moves": lambda domain: sf.threshold(domain, 2),
    "both": lambda domain: (sf.presence() | sf.anything()).on(domain),
    "sources": lambda domain: sf.within(domain, 1.5, sources=[(0.5, 0.5)]),
}


@pytest.mark.parametrize("name", POLICIES)
def test_it_tells_no_more_than_epsilon_and_not_much_less(name):
    found = audit(tree(POLICIES[name](grid(4, 3))), seed=1)
    assert (found.method, found.passed, found.complete) == ("argument", True, True)
    assert 0.8 < found.epsilon <= 1


def test_what_it_says_to_tell_is_reached():
    mechanism = tree(sf.unbounded(grid(4, 4)))
    assert 0.99 < audit(mechanism, seed=1).epsilon <= mechanism.privacy_loss <= 1


@pytest.mark.parametrize("name", ["add/remove", "replace-one"])
def test_less_noise_is_caught(name):
    honest = tree(POLICIES[name](line(8)))
    for part in ("choice", "noise", "number") if honest.number else ("choice", "noise"):
        rate = getattr(honest, part).rate
        narrow = replace(honest, **{part: DiscreteLaplace(ONE if part == "number" else 2 * rate)})
        found = audit(narrow, seed=1)
        assert (found.method, found.passed) == ("argument", False)


class Peeking(type(tree(sf.unbounded(line(8))))):
    """Splits a box by its true number where that is large."""

    def scores(self, level, counts):
        return np.where(counts > 3, 10**6, super().scores(level, counts))


def test_a_tree_that_is_not_found_as_it_says_is_left_to_runs():
    honest = tree(sf.unbounded(line(8)))
    fields = {name: getattr(honest, name) for name in honest.__dataclass_fields__}
    found = audit(Peeking(**fields), seed=1, samples=60, seconds=0.5)
    assert found.method == "statistical"
    assert "it does not split boxes and then add noise to the numbers of the rest as it says" in found.describe()


# -------------------------------------------------------------------------------------------------------------- results


@pytest.mark.parametrize("shape", [(16,), (5, 7), (4, 4, 2)])
@pytest.mark.parametrize("policy", [sf.unbounded, sf.bounded])
def test_without_noise_crowded_cells_come_back_and_empty_places_are_one_box(shape, policy):
    domain = line(*shape) if len(shape) == 1 else grid(*shape)
    x = np.zeros(shape, dtype=np.int64)
    x[0], x[(0,) * len(shape)] = 1000, 5000
    mechanism = tree(policy(domain), Fraction(10**6))
    total = int(x.sum()) if mechanism.policy.total_is_public else None
    measured, found = mechanism.observe(x.ravel(), total, SeededSource(1))
    assert found == pytest.approx(x.ravel(), abs=1e-9)
    assert len(mechanism.runs(measured, total).values) < x.size


def test_few_boxes_are_found_where_hardly_anybody_lives():
    x = np.zeros((256, 256), dtype=np.int64)
    x[100, 37] = 5000
    mechanism = tree(sf.bounded(grid(256, 256)))
    measured, found = mechanism.observe(x.ravel(), 5000, SeededSource(3))
    assert found.sum() == 5000
    assert len(mechanism.runs(measured, 5000).values) < 200
    assert found.reshape(256, 256)[100, 37] == pytest.approx(5000, abs=60)


def test_runs_are_the_leaves_and_damaged_integers_have_none():
    mechanism, x = tree(sf.unbounded(grid(6, 5))), np.arange(30)
    measured, found = mechanism.observe(x, None, SeededSource(5))
    runs = mechanism.runs(measured, None)
    shared = np.zeros((6, 5))
    for low, high, value in zip(runs.low, runs.high, runs.values, strict=True):
        shared[low[0] : high[0], low[1] : high[1]] += value / (high - low).prod()
    assert found == pytest.approx(shared.ravel())
    for damaged in (None, measured[:-1], np.append(measured, 0), measured[None], measured[:0], measured + 5):
        assert mechanism.runs(damaged, None) is None


def test_what_is_known_of_boxes_is_least_squares_with_the_number_of_all():
    """Against the dense solution: m numbers of one variance, and their sum with another."""
    for policy, total in ((sf.unbounded(line(6)), None), (sf.bounded(line(6)), 60)):
        mechanism = tree(policy, Fraction(12))
        measured = mechanism.draw(np.full(6, 10), total, SeededSource(2))
        measured[-6:] += [3, -1, 0, 2, 5, -4]
        runs = mechanism.runs(measured, total)
        if total is None:
            measured[0] += 9
            rows, law = np.vstack([np.eye(6), np.ones(6)]), mechanism.number.variance / mechanism.noise.variance
            weights = np.diag([1.0] * 6 + [1 / law])
            solved = np.linalg.solve(rows.T @ weights @ rows, rows.T @ weights)
            assert mechanism.runs(measured, None).values == pytest.approx(
                solved @ np.append(measured[-6:], measured[0]), abs=1e-9
            )
        else:
            solved = np.hstack([np.eye(6) - 1 / 6, np.zeros((6, 1))])
            assert runs.values.sum() == pytest.approx(60, abs=1e-9)
        blocks = runs.model.blocks
        felt = np.hstack([block.estimator.forward(np.eye(block.estimator.cols)).T for block in blocks])
        assert felt == pytest.approx(solved[:, : felt.shape[1]], abs=1e-9)
        for block in blocks:
            dense = block.estimator.forward(np.eye(block.estimator.cols)).T
            assert block.estimator.transpose(np.eye(6)) == pytest.approx(dense, abs=1e-12)


def test_a_plan_weighs_it_with_public_counts_or_a_number_of_records():
    policy, like = sf.unbounded(grid(32, 32)), np.zeros((32, 32), dtype=np.int64)
    like[3, 4] = 9_000
    weighed = {other.name: other.error for other in sf.plan(policy, sf.scales(), 1, like=like).alternatives}
    assert weighed["quadtree"] < 0.5 * weighed["identity"]
    modelled = sf.plan(policy, sf.scales(), 1, mechanism="quadtree", records=9_000)
    assert 0 < modelled.expected_error < math.inf
    assert "by a model" in modelled.basis


def test_its_description_builds_it_again():
    for epsilon in ("1", "1/1000", "0.37"):
        made = tree(sf.threshold(grid(9, 4), 3), Fraction(epsilon), share="1/4")
        again = mechanism_from_spec(made.spec(), made.policy)
        assert (again.spec(), again.choice, again.noise) == (made.spec(), made.choice, made.noise)
        assert made.privacy_loss <= made.epsilon


# ------------------------------------------------------------------------------------------------------------- refusals


@pytest.mark.parametrize(
    ("policy", "options", "said"),
    [
        (sf.unbounded(line(1)), {}, "a single cell has nothing to split; use mechanism='identity'"),
        (sf.unbounded(sf.Categories(["a", "b"])), {}, "is for lines and grids, with no factor public"),
        (sf.unbounded(line(8)), {"share": 1}, "share=1 must lie between 0 and 1, both excluded"),
        (sf.unbounded(line(8)), {"number": "2/3"}, "number=2/3 must lie between 0 and 2/3"),
        (sf.bounded(line(8)), {"number": "1/9"}, "takes no option number"),
        (sf.unbounded(line(8)), {"branching": 3}, "takes no option branching"),
        (sf.unbounded(line(8)), {"rate": "1/9"}, "rate, decay and floor are given together or not at all"),
        (sf.unbounded(line(8)), {"rate": "1/9", "decay": 0, "floor": 3}, "decay=0 must be a whole number of records"),
        (sf.unbounded(line(8)), {"rate": "1/2", "decay": 3, "floor": 3}, "would let the tree tell 1"),
    ],
)
def test_what_does_not_fit_is_refused(policy, options, said):
    with pytest.raises(InvalidInput) as caught:
        tree(policy, **options)
    assert said in str(caught.value)


def test_an_epsilon_for_which_scores_would_not_fit_is_refused():
    with pytest.raises(InvalidInput, match="is too small for mechanism='quadtree'"):
        tree(sf.unbounded(line(8)), Fraction(1, 10**13))


def test_a_description_that_promises_too_much_is_refused():
    spec = tree(sf.unbounded(line(8))).spec()
    for change in ({"rate": "1/2"}, {"rate": "1e9999"}, {"decay": 1}, {"decay": "7"}, {"floor": 2**70}):
        with pytest.raises(FileFormatError):
            mechanism_from_spec(spec | {"options": spec["options"] | change}, sf.unbounded(line(8)))
