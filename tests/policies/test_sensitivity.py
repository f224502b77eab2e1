"""Sensitivities: the largest change over the edges of the policy, exact for whatever is built."""

from __future__ import annotations

import functools
import itertools
import math

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from policy_oracle import box, brute_sensitivity, small_policies

import sfumato as sf
from sfumato.linear import Haar, Hierarchy, Identity, Kronecker, Prefix, PseudoInverse, Stack, nested_blocks
from sfumato.policies import sensitivity

STRATEGIES = {
    "identity": Identity,
    "prefix": Prefix,
    "prefix reversed": lambda n: Prefix(n, reverse=True),
    "haar": Haar,
    "binary": lambda n: Hierarchy(n, nested_blocks(n, 2)),
    "ternary without root": lambda n: Hierarchy(n, nested_blocks(n, 3, root=False)),
}


# --- by hand ----------------------------------------------------------------------------------------------------------


def test_sensitivities_of_three_cells_by_hand():
    line = sf.Line(0, 1, cells=3)
    near, far, appear = sf.threshold(line, 1), sf.bounded(line), sf.unbounded(line)
    for policy, cells, sums, wavelet in [(near, 2, 1, 3), (far, 2, 2, 3), (appear, 1, 3, 3)]:
        assert policy.sensitivity(Identity(3)) == cells
        assert policy.sensitivity(Prefix(3)) == sums
        assert policy.sensitivity(np.tril(np.ones((3, 3)))) == sums
        assert policy.sensitivity(Haar(3)) == wavelet


def test_a_long_line_has_the_sensitivity_of_a_short_move():
    line = sf.Line(0, 1, cells=100_000)
    assert sf.threshold(line, 7).sensitivity(Prefix(line.size)) == 7
    assert sf.unbounded(line).sensitivity(Prefix(line.size)) == line.size
    assert sf.within(line, 0.001, sources=[0.0]).sensitivity(Prefix(line.size, reverse=True)) == 100


def test_one_cell_that_cannot_change_has_no_sensitivity():
    cell = sf.Line(0, 1, cells=1)
    assert sf.bounded(cell).sensitivity(Identity(1)) == 0
    assert sf.threshold(cell, 1).sensitivity(Identity(1)) == 0
    assert sf.unbounded(cell).sensitivity(Identity(1)) == 1


# --- oracle: structured operators equal brute force over every edge ---------------------------------------------------


@pytest.mark.parametrize(
    "shape", [(1,), (2,), (3,), (7,), (11,), (16,), (17,), (3, 4), (5, 5), (1, 6), (2, 3, 4)], ids=str
)
@pytest.mark.parametrize("name", STRATEGIES)
def test_structured_sensitivities_are_exact(name, shape):
    strategy = Kronecker([STRATEGIES[name](n) for n in shape])
    for policy in small_policies(box(shape)):
        got = policy.sensitivity(strategy)
        assert got == brute_sensitivity(policy, strategy), policy
        assert isinstance(got, int)


@pytest.mark.parametrize("names", [("haar", "prefix"), ("binary", "haar"), ("identity", "ternary without root")])
def test_different_strategies_along_different_axes(names):
    shape = (5, 6)
    strategy = Kronecker([STRATEGIES[name](n) for name, n in zip(names, shape, strict=True)])
    for policy in small_policies(box(shape)):
        assert policy.sensitivity(strategy) == brute_sensitivity(policy, strategy), policy


@settings(deadline=None, max_examples=30)
@given(data=st.data(), n=st.integers(1, 8), seed=st.integers(0, 999))
def test_any_matrix_under_any_policy(data, n, seed):
    rng = np.random.default_rng(seed)
    line = sf.Line(0, 1, cells=n)
    edges = [(u, v) for u in range(n) for v in [*range(u), sf.ABSENT]]
    drawn = data.draw(st.lists(st.sampled_from(edges), min_size=1, unique=True))
    policies = [*small_policies(line), sf.graph(line, drawn, publish_component_totals=True)]
    whole = rng.integers(-100, 100, (rng.integers(1, 6), n)).astype(rng.choice(["i1", "i2", "i8", "f4", "f8"]))
    real = rng.normal(size=whole.shape)
    for policy in policies:
        want = brute_sensitivity(policy, whole)
        for form in (whole, sp.csr_matrix(whole), sp.coo_array(whole), whole.tolist()):
            assert policy.sensitivity(form) == want
        got, want = policy.sensitivity(real), brute_sensitivity(policy, real)
        assert want <= got <= want * (1 + 1e-11)


def test_stacks_and_estimators_are_taken_as_they_are():
    """Operators without a structure of their own, and with fractions: nothing is rounded down."""
    for n in (2, 3, 5, 8):
        stack = Stack([Haar(n), Prefix(n), Identity(n)])
        inverse = PseudoInverse(Haar(n))
        for policy in small_policies(sf.Line(0, 1, cells=n)):
            assert policy.sensitivity(stack) == brute_sensitivity(policy, stack)
            want = brute_sensitivity(policy, inverse)
            assert want <= policy.sensitivity(inverse) <= want * (1 + 1e-11)


def test_narrow_integers_do_not_wrap_around():
    line = sf.Line(0, 1, cells=2)
    assert sf.threshold(line, 1).sensitivity(np.array([[127, -128]], dtype=np.int8)) == 255
    assert sf.threshold(line, 1).sensitivity(np.array([[0, 1]], dtype=np.uint8)) == 1
    assert sf.unbounded(line).sensitivity(np.array([[127, -128]], dtype=np.int8)) == 128


def test_entries_given_twice_are_added_first():
    twice = sp.coo_matrix(([5, -5, 1], ([0, 0, 0], [0, 0, 1])), shape=(1, 2))
    assert sf.unbounded(sf.Line(0, 1, cells=2)).sensitivity(twice) == 1


# --- refusals ---------------------------------------------------------------------------------------------------------


def test_a_strategy_for_other_cells_is_refused():
    with pytest.raises(sf.InvalidInput) as refusal:
        sf.bounded(sf.Line(0, 1, cells=4)).sensitivity(np.eye(3))
    assert str(refusal.value) == "strategy has 3 columns, but the domain has 4 cells: one column a cell."


def test_too_many_pairs_or_types_are_refused(monkeypatch):
    policy = sf.bounded(sf.Line(0, 1, cells=20))
    monkeypatch.setattr(sensitivity, "LARGEST_PAIRWISE", 100)
    with pytest.raises(sf.TooLarge) as refusal:
        policy.sensitivity(np.eye(20))
    assert str(refusal.value) == "this strategy has too many pairs of columns to compare one by one."
    monkeypatch.setattr(sensitivity, "LARGEST_TYPES", 5)
    with pytest.raises(sf.TooLarge) as refusal:
        policy.sensitivity(Haar(20))
    assert str(refusal.value) == (
        "the columns of this strategy differ in too many ways for an exact sensitivity on this domain."
    )


# --- sums beyond 64 bits ----------------------------------------------------------------------------------------------

CUBE = [(u, u ^ (1 << k)) for u in range(16) for k in range(4) if u < u ^ (1 << k)]


def test_a_hypercube_with_heavy_weights_is_refused_and_never_wraps():
    """By hand in Python's integers: 110,680,464,444,840,084,456, of which 64 bits keep 2,582,774,760 or the like."""
    cells = sf.Grid(bounds=(0,) * 4 + (1,) * 4, shape=(2,) * 4)
    columns = [[56989, 47924, 0], [56989, 0, 47924]]
    there, other = columns, columns[::-1]
    distance = sum(
        abs(math.prod(a) * x - math.prod(a) * y)
        for a in itertools.product(there[0], repeat=3)
        for x, y in zip(there[0], other[0], strict=True)
    )
    assert distance == 110_680_464_444_840_084_456
    heavy = Kronecker([Hierarchy(2, (2, 1), (56989, 47924))] * 4)
    for policy in (sf.graph(cells, CUBE), sf.graph(cells, [*CUBE, (0, sf.ABSENT)]), sf.threshold(cells, 1)):
        with pytest.raises(sf.TooLarge, match="too large for an exact sensitivity in 64 bits"):
            policy.sensitivity(heavy)
        with pytest.raises(sf.TooLarge, match="too large for an exact sensitivity in 64 bits"):
            sf.plan(policy, sf.histogram(), 1, mechanism="hierarchy", blocks=[2, 1], weights=[56989, 47924])


@settings(deadline=None, max_examples=60)
@given(
    data=st.data(),
    shape=st.sampled_from([(2,), (5,), (2, 3), (3, 2, 2), (2, 2, 2, 2)]),
    weights=st.lists(st.integers(1, 2**16), min_size=2, max_size=2),
)
def test_heavy_strategies_are_exact_or_refused(data, shape, weights):
    domain = box(shape)
    size = domain.size
    edges = [(u, v) for u in range(size) for v in [*range(u), sf.ABSENT]]
    drawn = data.draw(st.lists(st.sampled_from(edges), min_size=1, max_size=8, unique=True))
    strategy = Kronecker([Hierarchy(n, (2, 1), weights) for n in shape])
    # Written out factor by factor in Python's integers, which do not wrap.
    dense = [np.asarray(f.dense()).astype(object) for f in strategy.factors]
    whole = functools.reduce(np.kron, dense)
    for policy in (sf.graph(domain, drawn, publish_component_totals=True), sf.bounded(domain), sf.unbounded(domain)):
        want = brute_sensitivity(policy, whole)
        try:
            assert policy.sensitivity(strategy) == want
        except sf.TooLarge:
            assert 2**4 * want >= 2**60


def test_large_whole_numbers_are_told_apart():
    """2⁶⁰ + 1 and 2⁶⁰ are the same double."""
    line = sf.Line(0, 1, cells=2)
    near = np.array([[2**60 + 1, 2**60]])
    for policy in (sf.graph(line, [(0, 1)]), sf.bounded(line), sf.threshold(line, 1)):
        assert policy.sensitivity(near) == 1
        assert policy.sensitivity(near.astype(np.uint64)) == 1
    many = np.array([[2**53 + 1, 0]] * 3)  # a sum of doubles would lose the ones
    assert sf.bounded(line).sensitivity(many) == 3 * (2**53 + 1)
    for far in ([[2**62 + 1, 2**62]], [[-(2**63), 2**63 - 1]]):
        with pytest.raises(sf.TooLarge, match="numbers that double precision does not hold exactly"):
            sf.bounded(line).sensitivity(np.array(far))
    with pytest.raises(sf.TooLarge, match="too large for an exact sensitivity in 64 bits"):
        sf.bounded(line).sensitivity(np.full((5, 2), 2**60))
    with pytest.raises(sf.TooLarge):
        sf.bounded(line).sensitivity(np.array([[1e308, -1e308]]))
