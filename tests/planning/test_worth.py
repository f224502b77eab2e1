"""A plan says whether it tells more than an even spread of the records would, and what stands beside a guess."""

from __future__ import annotations

import math

import numpy as np
import pytest

import sfumato as sf

LINE = sf.Line(0, 1, cells=64)
GRID = sf.Grid(bounds=(0, 0, 1, 1), shape=(64, 64))


def heaped() -> np.ndarray:
    counts = np.zeros((64, 64), dtype=np.int64)
    counts[20, 30] = 400_000
    return counts


def test_by_hand_the_even_guess_of_four_cells() -> None:
    line = sf.Line(0, 1, cells=4)
    plan = sf.plan(sf.bounded(line), sf.histogram(), 1, like=np.array([8, 0, 0, 0]))
    assert plan.even_error == (6**2 + 3 * 2**2) / 4
    assert plan.tells_nothing is False
    assert (
        "spreading the records evenly, without a look at them, has an error of 12 on the counts given as like"
        in str(plan)
    )


def test_nothing_can_be_told_of_even_records_at_a_small_epsilon() -> None:
    plan = sf.plan(sf.bounded(LINE), sf.ranges(), 0.01, like=np.full(64, 10))
    assert plan.even_error == 0
    assert plan.tells_nothing is True
    assert "nothing can be told at this ε" in str(plan)
    assert "nothing can be told at this ε" in plan._repr_html_()
    assert plan.to_dict()["tells_nothing"] is True


def test_a_number_of_records_is_enough_and_more_of_them_tell_more() -> None:
    few, many = (sf.plan(sf.unbounded(LINE), sf.ranges(), 0.01, records=n) for n in (100, 1_000_000))
    assert few.tells_nothing is True
    assert many.tells_nothing is False
    assert "on as many records of a made-up population" in str(many)
    assert many.even_error is not None and few.even_error is not None
    assert 10**7 < many.even_error / few.even_error < 10**9  # with the square of their number


def test_little_is_said_to_be_little() -> None:
    like = np.tile([100, 60], 32)
    error = sf.plan(sf.bounded(LINE), sf.histogram(), 1, mechanism="identity").expected_error
    plan = sf.plan(sf.bounded(LINE), sf.histogram(), 1 / math.sqrt(400 * 0.75 / error), mechanism="identity", like=like)
    assert plan.even_error == 400
    assert plan.tells_nothing is False
    assert "little can be told at this ε" in plan.worth


@pytest.mark.parametrize(
    ("domain", "given"), [(LINE, {}), (sf.Categories(["a", "b"]), {"records": 100}), (LINE, {"mechanism": "sorted"})]
)
def test_where_nothing_is_known_nothing_is_said(domain: sf.Domain, given: dict[str, object]) -> None:
    plan = sf.plan(sf.bounded(domain), sf.histogram(), 1, **given)  # type: ignore[arg-type]
    assert plan.even_error is None
    assert plan.tells_nothing is None
    assert plan.worth == ""
    assert "Worth" not in str(plan)


def test_beside_a_guess_stands_what_is_known() -> None:
    """A width chosen on a population that nobody lives in: on one heap it is off by a factor of thousands."""
    policy = sf.within(GRID, 1 / 64)
    plan = sf.plan(policy, sf.ranges(), 1, mechanism="shifted-edges", width=4, like=heaped())
    guessed = sf.plan(policy, sf.ranges(), 1, mechanism="shifted-edges")
    known = sf.plan(policy, sf.ranges(), 1)
    assert guessed.steady is not None
    assert (guessed.steady.name, guessed.steady.error) == (known.mechanism.name, known.expected_error)
    assert f"{known.mechanism.name} has" in str(guessed)
    assert plan.expected_error > 1000 * known.expected_error
    assert plan.steady is None and known.steady is None


def test_the_population_for_a_width_has_as_many_records_as_there_are() -> None:
    """Bias grows with the square of their number, noise does not: bins are narrower where there are more."""
    policy = sf.within(sf.Grid(bounds=(0, 0, 1, 1), shape=(128, 128)), 1 / 128)
    few, many = (sf.plan(policy, sf.ranges(), 0.1, mechanism="shifted-edges", records=n) for n in (10_000, 10_000_000))
    assert few.mechanism.options["width"] > many.mechanism.options["width"]
    assert "a reference population of 10,000 records" in few.basis
