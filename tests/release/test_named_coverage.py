"""Answers by name on products hold the truth as often as they say: by the law of the noise itself, and by runs of the
whole for what is cut; what is public is exact.
"""

from __future__ import annotations

import math
from functools import lru_cache, reduce
from typing import Any

import numpy as np
import pytest
from coverage_oracle import Floats, Law, moved_by_noise

import sfumato as sf
from sfumato.mechanism.base import LinearMechanism
from sfumato.release import intervals

PLACE = sf.Grid(bounds=(0, 0, 4, 3), shape=(4, 3))
TIMES = sf.Times("2026-01-01", "2026-01-04", every="1 day", name="t")
MODE = sf.Categories(["bus", "bike", "car", "foot"], name="mode")
SPACE = PLACE * TIMES * MODE
MOVE = sf.move(1.5)
POLICIES = {
    "public table": lambda: sf.policy(SPACE, hide=MOVE, public=["t", "mode"]),
    "public days": lambda: sf.policy(SPACE, hide=MOVE | sf.change("mode"), public=["t"]),
    "public total": lambda: sf.policy(SPACE, hide=MOVE | sf.change("mode") | sf.move("25 h", of="t")),
    "private total": lambda: sf.unbounded(SPACE),
    "sources": lambda: sf.policy(
        SPACE, hide=sf.move(1.5, sources="boundary") | sf.change("mode") | sf.move("25 h", of="t")
    ),
}
QUESTIONS: list[dict[str, Any]] = [  # of whole cells
    {"mode": ["bus", "car"]},
    {"mode": ["bus", "foot"], "place": (1, 0, 3, 2)},
    {"mode": ["bike", "bus", "foot"], "t": ("2026-01-02", "2026-01-03")},
    {"place": (0, 0, 1, 1), "t": ("2026-01-01", "2026-01-03"), "mode": ["bike", "foot"]},
    {"place": (0, 1, 4, 3), "mode": "car"},
    {"t": ("2026-01-01", "2026-01-02")},
    {},
]


def weights(question: dict[str, Any]) -> Floats:
    """The cells of a question, one by one."""
    x0, y0, x1, y1 = question.get("place", (0, 0, 4, 3))
    first, last = (int(day[-2:]) - 1 for day in question.get("t", ("2026-01-01", "2026-01-04")))
    modes = question.get("mode", ["bus", "bike", "car", "foot"])
    modes = [modes] if isinstance(modes, str) else modes
    along = [
        (np.arange(4) >= x0) & (np.arange(4) < x1),
        (np.arange(3) >= y0) & (np.arange(3) < y1),
        (np.arange(3) >= first) & (np.arange(3) < last),
        np.isin(MODE.axes[0].labels, modes),  # type: ignore[attr-defined]
    ]
    return reduce(np.multiply.outer, along).ravel().astype(float)


@lru_cache
def releases(policy: str, epsilon: float = 1) -> dict[str, sf.Release]:
    """One by every mechanism that gives intervals."""
    found = {}
    for name in sf.mechanisms():
        try:
            plan = sf.plan(POLICIES[policy](), sf.histogram(), epsilon, mechanism=name)
        except sf.SfumatoError:
            continue
        if not plan.mechanism.biased:
            counts = np.random.default_rng(1).poisson(20, SPACE.shape)
            found[name] = plan.publish(counts, source=sf.SeededSource(2))
    return found


@pytest.mark.slow  # a law is summed up for every question
@pytest.mark.parametrize("policy", POLICIES)
def test_cells_taken_together_have_the_law_of_their_noise(policy: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where a domain is written out, and by its structure alone."""
    assert len(releases(policy)) > 3
    for release in releases(policy).values():
        mechanism = release.mechanism
        assert isinstance(mechanism, LinearMechanism)
        terms = moved_by_noise(mechanism)
        scale = math.sqrt(sum(law.variance for _, law in terms))
        for question in QUESTIONS:
            row = weights(question)
            law = Law([(row @ columns, noise) for columns, noise in terms])
            for few in (4096, 0):
                monkeypatch.setattr(intervals, "FEW_CELLS", few)
                answer = release.answer(**question, cut="proportion")
                assert answer.value == pytest.approx(float(row @ release.counts.ravel()), abs=1e-6)
                assert answer.stderr == pytest.approx(law.deviation, rel=1e-4, abs=1e-4 * scale)
                margin = (answer.high - answer.low) / 2
                if law.deviation < 1e-6 * scale:
                    assert margin == 0
                    continue
                assert law.holds(margin) >= 0.95 - 1e-9
                assert few == 0 or law.holds(0.8 * margin - 2 * law.largest) < 0.95  # not too wide either


@pytest.mark.parametrize("policy", ["public table", "public days"])
def test_what_is_public_is_exact_in_every_mechanism(policy: str) -> None:
    counts = np.random.default_rng(1).poisson(20, SPACE.shape)
    for release in releases(policy).values():
        day = release.marginal("t")
        assert day.value.tolist() == day.low.tolist() == day.high.tolist() == counts.sum(axis=(0, 1, 3)).tolist()
        assert day.stderr.tolist() == [0, 0, 0]
        some = release.answer(t=("2026-01-01", "2026-01-03"))
        assert some.low == some.value == some.high == counts[:, :, :2].sum()
        both = release.marginal("mode", "t")
        exact = bool((both.stderr == 0).all())
        assert exact == (policy == "public table")
        assert not exact or both.value.T.tolist() == counts.sum(axis=(0, 1)).tolist()
        together = release.answer(mode=["bus", "car"], by="t")
        assert (together.stderr == 0).all() == exact
        assert not exact or together.low.tolist() == counts[..., [0, 2]].sum(axis=(0, 1, 3)).tolist()


@pytest.mark.parametrize("policy", ["public table", "public days"])
def test_no_answer_exceeds_what_is_public_of_it(policy: str) -> None:
    for release in releases(policy, 0.002).values():
        day = release.marginal("t").value
        cells = release.answer(by=("place", "t", "mode"))
        most = release.marginal("t", "mode").value if policy == "public table" else day[:, None]
        assert (cells.high <= most).all()
        assert (cells.high == most).any()  # there is so much noise
        cut = release.answer((0.5, 0.5, 3.5, 2.5), by="t")
        assert cut.high.tolist() == day.tolist()
        assert (cut.low >= 0).all()


@pytest.mark.slow  # a hundred releases of each
@pytest.mark.parametrize(
    ("policy", "name"),
    [("public table", "edges"), ("public days", "hierarchy"), ("private total", "identity"), ("private total", "dawa")],
)
def test_intervals_hold_what_is_inside_and_what_is_touched(policy: str, name: str) -> None:
    """False alarms: 6 standard errors of a proportion of 95 %, less than one in a million for all together."""
    runs = 120
    counts = np.random.default_rng(3).poisson(3, SPACE.shape)
    plan = sf.plan(POLICIES[policy](), sf.histogram(), 1, mechanism=name)
    inner, outer = counts[1:3, 1:2], counts[0:4, 0:3]
    modes = counts[:, :, 1:, [1, 3]].sum(axis=(1, 2, 3))
    held: dict[str, Any] = {"cut": 0, "cut set": 0, "set by x": 0}
    for seed in range(runs):
        release = plan.publish(counts, source=sf.SeededSource(seed))
        box = (0.6, 0.4, 3.3, 2.7)
        found = {
            "cut": (release.answer(box, by=("t", "mode")), inner.sum(axis=(0, 1)), outer.sum(axis=(0, 1))),
            "cut set": (
                release.answer(box, mode=["bus", "car"], t=("2026-01-01T12:00", "2026-01-03")),
                inner[:, :, 1:2, [0, 2]].sum(),
                outer[:, :, 0:2, [0, 2]].sum(),
            ),
            "set by x": (release.answer(t=("2026-01-02", "2026-01-04"), mode=["bike", "foot"], by="x"), modes, modes),
        }
        for key, (answer, inside, touched) in found.items():
            assert np.all(answer.low <= answer.high)
            held[key] = held[key] + ((answer.low <= inside + 1e-9) & (touched - 1e-9 <= answer.high))
    least = runs * 0.95 - 6 * math.sqrt(runs * 0.95 * 0.05)
    assert {key: int(np.min(often)) for key, often in held.items() if np.min(often) < least} == {}
