"""Units do not matter: what is near in metres is near in light years, and in multiples of them that nobody uses."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sfumato as sf
from sfumato.policies import steps_within

METRICS = ["euclidean", "manhattan", "chebyshev"]


def scaled(policy_of, exponent):
    """The policy with every length multiplied by a power of two, which rounds nothing."""
    return policy_of(lambda length: math.ldexp(length, exponent))


@settings(deadline=None, max_examples=150)
@given(
    exponent=st.integers(-1000, 1000),
    shape=st.tuples(st.integers(1, 9), st.integers(1, 9)),
    sides=st.tuples(st.floats(0.1, 10), st.floats(0.1, 10)),
    share=st.floats(0.05, 0.95),
    metric=st.sampled_from(METRICS),
    sources=st.sampled_from([None, "boundary", "point", "line"]),
)
def test_edges_and_sources_do_not_depend_on_the_unit(exponent, shape, sides, share, metric, sources):
    delta = share * min(sides)

    def policy(unit):
        low, high = (unit(0.0), unit(0.0)), tuple(unit(side) for side in sides)
        near = {
            "point": [tuple(x / 3 for x in high)],
            "line": [[tuple(x / 5 for x in high), (high[0] / 2, high[1] / 7), high]],
        }.get(sources, sources)
        grid = sf.Grid(bounds=(*low, *high), shape=shape)
        return sf.within(grid, unit(delta), metric=metric, sources=near)

    plain, far = scaled(policy, 0), scaled(policy, exponent)
    assert np.array_equal(plain.moves.offsets, far.moves.offsets)
    assert (plain.absent is None) == (far.absent is None)
    assert plain.absent is None or np.array_equal(plain.absent, far.absent)
    assert plain.diameter == far.diameter
    widest = {"euclidean": math.hypot(*sides), "manhattan": sum(sides), "chebyshev": max(sides)}[metric]
    if not math.isclose(2 * delta, widest, rel_tol=1e-9):  # there the digits in which δ is written decide
        assert steps_within(plain, 2) == steps_within(far, 2)
    corner = tuple(n - 1 for n in shape)
    assert plain.distance((0, 0), corner) == far.distance((0, 0), corner)


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("unit", [1e-300, 1e-160, 1e-157, 1.0, 1e157, 1e300])
def test_tiny_and_huge_units_miss_no_edge(metric, unit):
    """Below 10⁻¹⁵⁷ squares of gaps lose digits, and below 10⁻¹⁶² they are zero; above 10¹⁵⁴ they are infinite."""
    grid = sf.Grid(bounds=(0, 0, 12 * unit, 12 * unit), shape=(12, 12))
    policy = sf.within(grid, 3.3 * unit, metric=metric, sources=[(6 * unit, 6 * unit)])
    usual = sf.within(sf.Grid(bounds=(0, 0, 12, 12), shape=(12, 12)), 3.3, metric=metric, sources=[(6.0, 6.0)])
    assert np.array_equal(policy.moves.offsets, usual.moves.offsets)
    assert np.array_equal(policy.absent, usual.absent)


@pytest.mark.parametrize("metric", METRICS)
def test_axes_of_different_scales(metric):
    """One axis in metres, the other in billionths: each pair of cells is near or not, as in exact arithmetic."""
    grid = sf.Grid(bounds=(0, 0, 1, 1e-6), shape=(20, 20))
    policy = sf.within(grid, 0.2, metric=metric)
    offsets = {tuple(o) for o in np.abs(policy.moves.offsets).tolist()}
    assert offsets == {(a, b) for a in range(5) for b in range(20)} - {(0, 0)}
