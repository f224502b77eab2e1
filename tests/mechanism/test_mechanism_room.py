"""No sum of counts up to the declared cap leaves 64 bits: what might is refused when the plan is made."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

import sfumato as sf
from sfumato.mechanism import MOST_RECORDS, build, fresh, mechanisms, variants
from sfumato.mechanism.cells.vertex import VertexMechanism


def grid(shape):
    d = len(shape)
    return sf.Line(0, 1, cells=shape[0]) if d == 1 else sf.Grid(bounds=(0,) * d + (1,) * d, shape=shape)


SHAPES = [(4096,), (300, 200), (40, 30, 20), (20, 3, 20, 18), (20, 18, 17, 18, 19)]


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("policy", [sf.bounded, sf.unbounded, lambda domain: sf.threshold(domain, 1)])
def test_what_a_plan_tries_has_room_for_every_record(shape, policy):
    """The row with the largest entry, of all the records that there may be, and the most noise that it may get."""
    chosen = policy(grid(shape))
    for name, options in variants(chosen, sf.ranges()):
        if name not in ("identity", "haar", "hierarchy", "hats", "prefix", "blocks"):
            continue
        try:
            mechanism = fresh(name, chosen, Fraction(1), **options)
        except sf.InvalidInput as refusal:
            assert "64-bit" not in str(refusal), (name, options)
            continue
        if isinstance(mechanism, VertexMechanism):
            entry = mechanism.strategy.largest_entry
            assert isinstance(entry, int)
            assert entry * MOST_RECORDS < 2**63 - 2**53, (name, options)


def test_five_axes_answer_for_a_billion_records():
    """A true 1.5·10⁹ came back negative: the weights of five axes multiply."""
    domain = grid((20, 2, 2, 2, 20))
    plan = sf.plan(sf.bounded(domain), sf.ranges(), 1, mechanism="hierarchy")
    counts = np.zeros(domain.shape, dtype=np.int64)
    counts[0, 0, 0, 0, 0] = 1_500_000_000
    release = plan.publish(counts, source=sf.SeededSource(1))
    answer = release.answer((0, 0, 0, 0, 0, 0.5, 0.5, 0.5, 0.5, 0.5))
    assert abs(answer.value - 1_500_000_000) < 10_000


@pytest.mark.parametrize(
    ("shape", "name", "options"),
    [
        ((20,) * 5, "hierarchy", {"blocks": [4, 1], "weights": [5, 4]}),
        ((16, 16), "hierarchy", {"blocks": [4, 1], "weights": [32, 31]}),
        ((16,), "hierarchy", {"blocks": [4, 1], "weights": [1025, 1]}),
        ((16, 16), "hats", {"widths": [5], "weights": [256, 256]}),
        ((64,), "hats", {"widths": [5], "weights": [65536, 1]}),
    ],
)
def test_weights_that_might_wrap_are_refused_at_plan_time_and_read_from_old_files(shape, name, options):
    policy = sf.bounded(grid(shape))
    with pytest.raises(sf.InvalidInput, match=r"might not fit 64-bit integers\. Nothing was drawn or recorded\. Use "):
        sf.plan(policy, sf.ranges(), 1, mechanism=name, **options)
    build(name, policy, Fraction(1), **options)  # what an old file says is built as it was


def test_weights_are_divided_by_what_they_have_in_common():
    domain = grid((16, 16))
    heavy = sf.plan(sf.bounded(domain), sf.ranges(), 1, mechanism="hierarchy", blocks=[4, 1], weights=[3000, 2000])
    light = sf.plan(sf.bounded(domain), sf.ranges(), 1, mechanism="hierarchy", blocks=[4, 1], weights=[3, 2])
    assert heavy.mechanism.options == light.mechanism.options
    assert heavy.mechanism.sensitivity == light.mechanism.sensitivity == 50
    mixed = fresh("hierarchy", sf.bounded(domain), Fraction(1), blocks=[[4, 1], [2, 1]], weights=[[2, 4], [3, 6]])
    assert mixed.options["weights"] == [[1, 2], [1, 2]]


def test_the_largest_noise_counts_as_well():
    line = grid((4,))
    star = sf.graph(sf.Categories([str(i) for i in range(600)]), [(0, i) for i in range(1, 600)])
    small = Fraction(1, 10**15)
    with pytest.raises(sf.InvalidInput, match="might not fit 64-bit integers"):
        sf.plan(star, sf.histogram(), small, mechanism="edges")
    sf.plan(sf.unbounded(line), sf.histogram(), small, mechanism="identity")


def test_nothing_is_refused_that_a_plan_without_options_chooses():
    for shape in [(30,), (20, 20), (6, 6, 6)]:
        for name in mechanisms():
            try:
                sf.plan(sf.bounded(grid(shape)), sf.ranges(), 1, mechanism=name)
            except (sf.InvalidInput, sf.TooLarge) as refusal:
                assert "64-bit" not in str(refusal), (shape, name)


WIDE = {"shifted": {"width": 4}, "shifted-edges": {"width": 4}}


@pytest.mark.parametrize("policy", [sf.bounded, sf.unbounded, lambda line: sf.threshold(line, 2)], ids=["b", "u", "t"])
def test_noise_without_room_is_refused_by_the_plan_and_by_nothing_after_it(policy):
    """`dawa` and `consistent` refused where they drew: "nothing was recorded", and the ledger had been charged."""
    chosen, finest = policy(sf.Line(0, 1, cells=16)), {}
    for name in mechanisms():
        for power in (1, 12, 15, 16, 17, 18):
            epsilon = Fraction(1, 10**power)
            try:
                plan = sf.plan(chosen, sf.histogram(), epsilon, mechanism=name, **WIDE.get(name, {}))
            except sf.SfumatoError:
                break
            plan.publish(np.full(16, MOST_RECORDS // 16), source=sf.SeededSource(power))
            finest[name] = power
    assert all(12 <= finest[name] < 18 for name in ("dawa", "consistent", "identity")), finest
    assert max(finest.values()) < 18, finest
