"""The joint law of figures is that of the noise which the mechanism itself carries to the cells."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

import numpy as np
import pytest
from coverage_oracle import Floats, Law, Terms, moved_by_noise
from released import GRID, LINE, MEANS, PLANS, known, sample

import sfumato as sf
from sfumato.figures.law import distinct, joint
from sfumato.figures.reading import Reading
from sfumato.figures.weights import Which
from sfumato.mechanism.base import LinearMechanism

PLACE = sf.Grid(bounds=(0, 0, 4, 3), shape=(4, 3))
SPACE = PLACE * sf.Categories(["bus", "bike", "car", "foot"], name="mode")
MOVE = sf.move(1.5)
POLICIES = {
    "public modes": lambda: sf.policy(SPACE, hide=MOVE, public=["mode"]),
    "public total": lambda: sf.policy(SPACE, hide=MOVE | sf.change("mode")),
    "private total": lambda: sf.unbounded(SPACE),
}
# Pairs of figures: a part and its whole, two parts, a fraction of cells.
PAIRS: list[tuple[dict[str, Any], dict[str, Any], str]] = [
    ({"mode": ["bus", "foot"]}, {}, "bracket"),
    ({"mode": "bike", "place": (1, 0, 3, 2)}, {"place": (0, 0, 2, 3)}, "bracket"),
    ({"mode": "bike", "place": (0.3, 0.5, 2.5, 2)}, {"place": (0.3, 0.5, 2.5, 2)}, "proportion"),
]
MIXES = np.array([[1.0, 0.0], [1.0, -1.0], [0.7, -0.21], [0.013, -1.0]])


@lru_cache
def releases(policy: str) -> dict[str, sf.Release]:
    """One by every mechanism whose noise has a law."""
    found = {}
    for name in sf.mechanisms():
        try:
            plan = sf.plan(POLICIES[policy](), sf.histogram(), 1, mechanism=name)
        except sf.SfumatoError:
            continue
        if not plan.mechanism.biased:
            found[name] = plan.publish(np.random.default_rng(1).poisson(20, SPACE.shape), source=sf.SeededSource(2))
    return found


def weighed(question: dict[str, Any]) -> Floats:
    """The cells of a question, one by one."""
    x0, y0, x1, y1 = question.get("place", (0, 0, 4, 3))
    modes = question.get("mode", ["bus", "bike", "car", "foot"])
    along = [
        np.clip(np.minimum(np.arange(4) + 1, x1) - np.maximum(np.arange(4), x0), 0, 1),
        np.clip(np.minimum(np.arange(3) + 1, y1) - np.maximum(np.arange(3), y0), 0, 1),
        np.isin(["bus", "bike", "car", "foot"], modes).astype(float),
    ]
    return np.multiply.outer(np.multiply.outer(along[0], along[1]), along[2]).ravel()


def felt(columns: Terms, mixed: Floats) -> Terms:
    """What noises do to a sum of cells."""
    return [(mixed @ c, law) for c, law in columns]


@pytest.mark.slow  # a law is summed up for every sum
@pytest.mark.parametrize("policy", POLICIES)
def test_sums_of_figures_have_the_law_of_the_mechanisms_own_noise(policy: str) -> None:
    assert len(releases(policy)) > 3
    for name, release in releases(policy).items():
        mechanism = release.mechanism
        assert isinstance(mechanism, LinearMechanism)
        columns = moved_by_noise(mechanism)
        for one, other, cut in PAIRS:
            side: Which = "value"
            readings = [Reading.of(release, None, {}, question, None, cut) for question in (one, other)]
            law = joint([(reading, side) for reading in readings], slice(None))
            for mix in MIXES:
                own = felt(columns, mix[0] * weighed(one) + mix[1] * weighed(other))
                exact = math.sqrt(sum(noise.variance * float((c**2).sum()) for c, noise in own))
                deviation, margin = law.margins(mix[None], 0.95)
                assert deviation[0] == pytest.approx(exact, rel=1e-4, abs=1e-4), (name, one, mix)
                if exact > 1e-3:
                    truth = Law(own)
                    assert truth.holds(float(margin[0])) >= 0.95 - 1e-9, (name, one, mix)
                    assert truth.holds(0.9 * float(margin[0]) - truth.largest / 2) < 0.95, (name, one, mix)


@pytest.mark.parametrize("name", [name for name in PLANS if "dawa" not in name])
def test_figures_of_every_mechanism_have_the_variance_that_answers_have(name: str) -> None:
    release = sample(name)
    if release.mechanism.biased:
        with pytest.raises(sf.InvalidInput, match="misses the truth by more than noise of a known law"):
            _ = Reading.of_cells(release).model
        return
    law = joint([(Reading.of_cells(release), "value")], slice(None))
    cells = release.cells()
    found = law.deviations(np.ones((release.domain.size, 1)))
    np.testing.assert_allclose(found, np.ravel(cells.stderr), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("name", ["unbounded hats", "bounded hierarchy", "within edges", "threshold prefix"])
def test_what_is_summed_is_never_narrower_than_the_law(name: str) -> None:
    """The same deviations as where all kinds are listed, and half-widths that hold by the mechanism's own noise."""
    release = sample(name)
    mechanism = release.mechanism
    assert isinstance(mechanism, LinearMechanism)
    rng, columns = np.random.default_rng(1), moved_by_noise(mechanism)
    matrix = rng.integers(0, 2, (2, release.domain.size))
    readings = [Reading(release, Reading.of_cells(release).question, matrix=row) for row in matrix]
    listed, summed = (joint([(one, "value") for one in readings], slice(None), most=n) for n in (np.inf, -1))
    assert listed.terms and not listed.summed and summed.summed and not summed.terms
    for mix in MIXES:
        exact, margin = listed.margins(mix[None], 0.95), summed.margins(mix[None], 0.95)
        assert margin[0][0] == pytest.approx(exact[0][0], rel=1e-6, abs=1e-6)
        truth = Law([(mix @ matrix @ c, law) for c, law in columns])
        assert truth.deviation < 1e-6 or truth.holds(float(margin[1][0])) >= 0.95 - 1e-9
        assert summed.at(np.array([0])).deviations(mix[None])[0] == margin[0][0]


def test_noise_of_two_releases_is_independent() -> None:
    one, other = (
        sample("unbounded identity"),
        sf.plan(sf.unbounded(GRID), sf.histogram(), 2).publish(np.ones((6, 5), int)),
    )
    readings = [Reading.of(release, None, {}, None, None, "bracket") for release in (one, other)]
    law = joint([(reading, "value") for reading in readings], slice(None))
    alone = [float(release.answer().stderr) for release in (one, other)]
    assert law.deviations(np.array([[1.0, -1.0]]))[0] == pytest.approx(math.hypot(*alone))
    same = joint([(readings[0], "value"), (readings[0], "value")], slice(None))
    assert same.deviations(np.array([[1.0, -1.0]]))[0] == 0


def test_columns_that_differ_are_told_apart() -> None:
    columns = np.array([[1.0, 2, 1, 0, 1], [3.0, 4, 3, 0, 3.5]])
    found, often = distinct(columns, np.array([1.0, 1, 5, 7, 2]))
    assert {(a, b): n for a, b, n in zip(*found.tolist(), often.tolist(), strict=True)} == {
        (1.0, 3.0): 6,
        (2.0, 4.0): 1,
        (1.0, 3.5): 2,
    }


def test_what_is_public_has_no_noise_left() -> None:
    space = LINE * sf.Categories(["a", "b"], name="kind")
    policy = sf.policy(space, hide=sf.change("kind"), public=["x"])
    release = sf.plan(policy, sf.histogram(), epsilon=1).publish(np.arange(16).reshape(8, 2))
    law = joint([(Reading.of(release, None, {}, None, "x", "bracket"), "value")], slice(None))
    assert (law.deviations(np.ones((8, 1))) == 0).all()


def test_one_release_of_known_counts_reads_them() -> None:
    release = known(MEANS, [3, 5, 9])
    reading = Reading.of(release, None, {}, None, MEANS.names[0], "bracket")
    assert reading.sums("value").tolist() == [3, 5, 9]
    assert reading.weights.dense(slice(1, 3), "touched").tolist() == [[0, 1, 0], [0, 0, 1]]
