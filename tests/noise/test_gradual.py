"""Refinable noise: every level exact, a chain no more telling than its last level, and the paper's process behind it.

Figures are those of the continuous process of Koufogiannis, Han and Pappas (2015); `atom` and `density` below are its
equation 2, written as the law of the coarser value given the finer one.
"""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.stats import chi2

from sfumato.errors import InvalidInput
from sfumato.noise import DiscreteLaplace, SeededSource, SystemSource
from sfumato.noise.gradual import Refinable
from sfumato.noise.planes import STEADY

FALSE_ALARM = 1e-9  # of one statistical test; the module runs fewer than fifty
SIX_SIGMA = 6.2  # a normal deviate lies beyond with probability 6e-10
SYSTEM = SystemSource()


# --- by hand ----------------------------------------------------------------------------------------------------------


def test_the_value_is_what_discrete_laplace_draws_from_the_same_words():
    noise = Refinable.draw(Fraction(1, 10), (30, 7), SeededSource(5))
    assert np.array_equal(noise.value, DiscreteLaplace(Fraction(1, 10)).sample((30, 7), SeededSource(5)))
    assert noise.value.dtype == np.int64
    assert (noise.shape, noise.size) == ((30, 7), 210)


@pytest.mark.parametrize("size", [0, 5, (), (3, 4), STEADY, STEADY + 1, 200_000])
@pytest.mark.parametrize("rate", ["0.1001", "0.2", "50"])
def test_a_finer_level_lowers_the_halves_and_leaves_the_coarser_one_alone(size, rate):
    coarse = Refinable.draw("0.1", size, SYSTEM)
    plus, minus = coarse.plus.copy(), coarse.minus.copy()
    fine = coarse.refine(rate, SYSTEM)
    assert (fine.rate, fine.shape) == (Fraction(rate), coarse.shape)
    for half, before in ((fine.plus, plus), (fine.minus, minus)):
        assert (half >= 0).all()
        assert (half <= before).all()
    assert np.array_equal(coarse.plus, plus)
    assert np.array_equal(coarse.minus, minus)


def test_at_a_huge_rate_nothing_is_left_of_the_noise():
    assert not Refinable.draw(1, 5000, SYSTEM).refine(1000, SYSTEM).value.any()


def test_a_float_is_read_as_its_decimal():
    assert Refinable.draw(0.1, 3, SYSTEM).refine(0.3, SYSTEM).rate == Fraction(3, 10)


def test_nobody_can_change_a_half():
    noise = Refinable.draw(1, 3, SYSTEM)
    with pytest.raises(ValueError, match="read-only"):
        noise.plus[0] = 1
    with pytest.raises(AttributeError):
        noise.rate = Fraction(2)


# --- exact: the law of a chain, in rational numbers -------------------------------------------------------------------


def chain_law(first, steps, last):
    """P[G₁ = g₁, …, G_m = g_m] for one half from the definition, G_{i+1} = min(G_i, T_i), for all g up to `last`.

    `first` is α of G₁, `steps` those of the T_i: fractions, so that every probability is one.
    """
    law = {(g,): (1 - first) * first**g for g in range(last + 1)}
    for beta in steps:
        finer = {}
        for levels, p in law.items():
            g = levels[-1]
            for t in range(g):
                finer[*levels, t] = p * (1 - beta) * beta**t
            finer[*levels, g] = p * beta**g
        law = finer
    return law


CHAINS = [
    (Fraction(1, 2), (Fraction(1, 3),)),
    (Fraction(4, 5), (Fraction(9, 10), Fraction(1, 2))),
    (Fraction(2, 3), (Fraction(3, 4), Fraction(99, 100), Fraction(1, 7))),
]


@pytest.mark.parametrize(("first", "steps"), CHAINS)
def test_the_excess_of_a_coarser_level_is_independent_of_the_finer_ones(first, steps):
    """P[g₁, …, g_m] = P[g_m]·Π P[g_i - g_(i+1)], exactly: each level is the next one plus noise of its own."""
    law = chain_law(first, steps, last=9)
    parameters = list(itertools.accumulate((first, *steps), lambda a, b: a * b))
    for levels, p in law.items():
        product = (1 - parameters[-1]) * parameters[-1] ** levels[-1]
        for coarse, fine, before, after in zip(levels, levels[1:], parameters, parameters[1:], strict=False):
            atom = (1 - before) / (1 - after)
            excess = coarse - fine
            product *= atom if excess == 0 else (1 - atom) * (1 - before) * before ** (excess - 1)
        assert p == product


def joint(first, steps, last, reach):
    """P[V₁ = v₁, …] for every v within the reach, by summing over the two halves up to `last`.

    All terms are positive, so double precision keeps thirteen digits.
    """
    levels = len(steps) + 1
    half = np.zeros((last + 1,) * levels)
    for g, p in chain_law(first, steps, last).items():
        half[g] = float(p)
    law = {}
    for v in itertools.product(range(-reach, reach + 1), repeat=levels):
        up = tuple(slice(max(k, 0), last + 1 + min(k, 0)) for k in v)
        down = tuple(slice(max(-k, 0), last + 1 + min(-k, 0)) for k in v)
        law[v] = float((half[up] * half[down]).sum())
    return law


@pytest.mark.slow
def test_a_whole_chain_tells_neighbours_apart_by_no_more_than_its_last_level():
    """Three levels, α = ½, ⅜ and 3/10, each half summed up to 44: what is cut off is below 2⁻⁴⁰ of any value here.

    Seeing all levels of x against all levels of x + 1: at most exp(r₃) = 10/3, which is reached, and no less.
    """
    law = joint(Fraction(1, 2), (Fraction(3, 4), Fraction(4, 5)), last=44, reach=4)
    shifted = [(p, law[tuple(k + 1 for k in v)]) for v, p in law.items() if tuple(k + 1 for k in v) in law]
    ratios = np.array([(a / b, b / a) for a, b in shifted])
    assert ratios.max() <= 10 / 3 * (1 + 1e-10)
    assert ratios.max() == pytest.approx(10 / 3, rel=1e-10)


def test_refining_one_pair_twice_would_tell_more():
    """Why an older state must never come back: two finer levels of one pair, neither made from the other.

    α = ½ and two levels at ¼: together they tell x from x + 1 by more than the factor 4 of either.
    """
    alpha, beta, last = 0.5, 0.5, 60
    halves = np.zeros((last + 1, last + 1))
    for g in range(last + 1):
        finer = np.zeros(last + 1)
        finer[:g], finer[g] = (1 - beta) * beta ** np.arange(g), beta**g
        halves += (1 - alpha) * alpha**g * np.outer(finer, finer)
    both = {
        k: float((halves[k:, k:] * halves[: last + 1 - k, : last + 1 - k]).sum()) for k in range(9)
    }  # P[V = V' = k]
    assert both[7] / both[8] > 4 * 1.5


# --- the paper's process ----------------------------------------------------------------------------------------------


def atom(coarse, fine):
    """Equation 2: the probability that the value does not change between two levels."""
    return (coarse / fine) ** 2


def density(distance, coarse, fine):
    """Equation 2 over the Laplace density of the finer value: where else the coarser one lies, given the finer one."""
    return coarse * (fine**2 - coarse**2) / (2 * fine**2) * math.exp(-coarse * abs(distance))


def difference(k, coarse, fine):
    """P[V₁ - V₂ = k] of the integer process, from the law of the excess of each half."""
    alpha = math.exp(-coarse)
    stay = math.expm1(-coarse) / math.expm1(-fine)
    excess = np.concatenate([[stay], (1 - stay) * (1 - alpha) * alpha ** np.arange(60_000)])
    return float(excess[abs(k) :] @ excess[: excess.size - abs(k)])


@pytest.mark.parametrize(("coarse", "fine"), [(1.0, 2.0), (1.0, 1.05), (0.2, 3.0)])
def test_equation_two_has_laplace_margins(coarse, fine):
    """Integrated over the finer value, the coarser one is Laplace: the reference itself is right."""
    for x in (0.0, 0.3, -2.0):
        smooth = quad(
            lambda y, x=x: density(x - y, coarse, fine) * fine / 2 * math.exp(-fine * abs(y)), -60, 60, points=[0, x]
        )
        margin = smooth[0] + atom(coarse, fine) * fine / 2 * math.exp(-fine * abs(x))
        assert margin == pytest.approx(coarse / 2 * math.exp(-coarse * abs(x)), rel=1e-6)


@given(st.lists(st.floats(0.01, 50), min_size=3, max_size=3, unique=True), st.floats(0, 20))
@settings(deadline=None)
def test_steps_of_the_process_compose(rates, t):
    """Theorem 2: going from ε₁ to ε₂ to ε₃ is going from ε₁ to ε₃. In characteristic functions, which multiply."""

    def step(coarse, fine):
        return atom(coarse, fine) + (1 - atom(coarse, fine)) * coarse**2 / (coarse**2 + t**2)

    first, second, third = sorted(rates)
    assert step(first, second) * step(second, third) == pytest.approx(step(first, third), rel=1e-9)


@pytest.mark.parametrize("ratio", [1.01, 1.5, 2.0, 10.0])
def test_the_integer_process_tends_to_that_of_the_paper(ratio):
    """At scale 1000 the atom and the masses agree with equation 2 to a thousandth; the gap shrinks with the scale."""
    coarse, fine = 1e-3, 1e-3 * ratio
    assert difference(0, coarse, fine) == pytest.approx(atom(coarse, fine), abs=2e-3)
    for k in (1, 10, 1000, -3000):
        assert difference(k, coarse, fine) == pytest.approx(density(k, coarse, fine), rel=2e-2)
    gap = abs(difference(0, coarse, fine) - atom(coarse, fine))
    assert abs(difference(0, 10 * coarse, 10 * fine) - atom(coarse, fine)) > 3 * gap


# --- draws ------------------------------------------------------------------------------------------------------------


def p_value(values, rate):
    """Chi-square of the values against discrete Laplace, in cells of at least twenty expected values each; rarer ones
    are taken together with the next. The tail of the statistic is then at most twice that of its limit.
    """
    noise = DiscreteLaplace(rate)
    reach = noise.quantile(1 - 20 / values.size)
    edges = np.unique(np.linspace(-reach, reach, 201).round().astype(np.int64))
    expected = np.diff(np.concatenate([[0], noise.cdf(edges), [1]])) * values.size
    observed = np.bincount(np.searchsorted(edges, values.reshape(-1)), minlength=expected.size)
    rare = np.argsort(expected)[: 1 + np.count_nonzero(expected < 20)]
    observed, expected = (np.append(np.delete(cells, rare), cells[rare].sum()) for cells in (observed, expected))
    return chi2.sf(((observed - expected) ** 2 / expected).sum(), expected.size - 1)


def contingency(first, second):
    """The chi-square p-value of independence."""
    _, first = np.unique(first, return_inverse=True)
    _, second = np.unique(second, return_inverse=True)
    rows, columns = first.max() + 1, second.max() + 1
    observed = np.bincount(first * columns + second, minlength=rows * columns).reshape(rows, columns)
    expected = np.outer(observed.sum(axis=1), observed.sum(axis=0)) / observed.sum()
    assert expected.min() > 20
    return chi2.sf(((observed - expected) ** 2 / expected).sum(), (rows - 1) * (columns - 1))


@pytest.mark.slow
@pytest.mark.parametrize(
    "rates",
    [("0.1", "0.15", "0.3", "1.5"), ("1", "1.001", "1.01", "1.2"), ("1/1000", "11/10000", "2/1000", "1")],
    ids=lambda rates: " → ".join(rates),
)
def test_every_level_is_discrete_laplace_and_no_scale_ten_percent_off(rates):
    """2·10⁶ values in up to 201 cells at every level. A scale off by a tenth has a noncentrality above 300."""
    noise = Refinable.draw(rates[0], 2_000_000, SYSTEM)
    for rate in map(Fraction, rates[1:]):
        noise = noise.refine(rate, SYSTEM)
        assert p_value(noise.value, rate) > FALSE_ALARM
        assert p_value(noise.value, rate * Fraction(10, 9)) < FALSE_ALARM
        assert p_value(noise.value, rate * Fraction(10, 11)) < FALSE_ALARM


@pytest.mark.slow
def test_small_arrays_follow_the_same_law():
    """500 draws of 1000 values, which are refined without looking at the values first."""
    values = [Refinable.draw("0.1", 1000, SYSTEM).refine("0.11", SYSTEM).value for _ in range(500)]
    assert p_value(np.concatenate(values), Fraction(11, 100)) > FALSE_ALARM


@pytest.mark.parametrize("fine", ["1/2", "3/4", "2"])
def test_what_a_level_takes_away_is_independent_of_what_it_leaves(fine):
    """10⁶ values from rate 0.4: V₁ - V₂ against V₂ in a table; V₁ - V₂ against V₁, which it is part of, is not."""
    coarse = Refinable.draw("0.4", 1_000_000, SYSTEM)
    before, after = coarse.value, coarse.refine(fine, SYSTEM).value
    taken = np.searchsorted([-4, -1, 0, 1, 4], before - after)
    assert contingency(taken, np.clip(after, -2, 2)) > FALSE_ALARM
    assert contingency(taken, np.clip(before, -2, 2)) < FALSE_ALARM


@pytest.mark.slow
def test_the_process_has_no_memory_beyond_its_present_value():
    """2·10⁶ chains 0.5 → 1 → 2. Given V₂, the level before and the level after it are independent (Markov)."""
    first = Refinable.draw("0.5", 2_000_000, SYSTEM)
    second = first.refine(1, SYSTEM)
    third = second.refine(2, SYSTEM)
    for value in (-2, 0, 1):
        here = second.value == value
        before, after = np.clip(first.value[here], -4, 4), np.clip(third.value[here], -1, 1)
        assert contingency(before, after) > FALSE_ALARM
    assert contingency(np.clip(first.value, -4, 4), np.clip(third.value, -1, 1)) < FALSE_ALARM


@pytest.mark.parametrize(("coarse", "fine"), [("1/1000", "101/100000"), ("1/1000", "11/10000"), ("1/1000", "2/1000")])
def test_few_values_change_in_a_small_step(coarse, fine):
    """10⁶ values, Figure 2. A share (ε₁/ε₂)² stays: 98 % in a step of a hundredth, a quarter in a doubling."""
    count = 1_000_000
    noise = Refinable.draw(coarse, count, SYSTEM)
    stayed = int((noise.value == noise.refine(fine, SYSTEM).value).sum())
    share = difference(0, float(Fraction(coarse)), float(Fraction(fine)))
    assert share == pytest.approx(float(Fraction(coarse) / Fraction(fine)) ** 2, abs=1e-3)
    assert abs(stayed - share * count) < SIX_SIGMA * math.sqrt(count * share * (1 - share))


# --- privacy of the object and refusals -------------------------------------------------------------------------------


def test_one_seeded_source_makes_all_that_follows_not_private():
    assert Refinable.draw(1, 3, SYSTEM).refine(2, SYSTEM).private
    assert not Refinable.draw(1, 3, SeededSource(1)).private
    assert not Refinable.draw(1, 3, SYSTEM).refine(2, SeededSource(1)).private
    assert not Refinable.draw(1, 3, SeededSource(1)).refine(2, SYSTEM).private


def test_printing_shows_no_value():
    noise = Refinable(plus=np.full(2, 123456789), minus=np.full(2, 987654321), rate=Fraction(1, 10**8), private=True)
    assert repr(noise) == str(noise) == "Refinable(shape=(2,), rate=0.00000001, private=True)"


class Untouched:
    private = True

    def words(self, count):
        raise AssertionError("drawn")


@pytest.mark.parametrize(("rate", "shown"), [("0.5", "0.5"), (0.3, "0.3"), ("1/7", "1/7")])
def test_a_level_that_is_not_finer_is_refused_before_anything_is_drawn(rate, shown):
    noise = Refinable.draw("0.5", 3, SYSTEM)
    with pytest.raises(InvalidInput) as refusal:
        noise.refine(rate, Untouched())
    assert str(refusal.value) == (
        f"rate={shown} must be greater than 0.5, the rate of this noise: a level can only be finer than the one "
        "before. Nothing was drawn or recorded. For a coarser level use the release that was made at it."
    )


def test_a_step_too_small_for_64_bits_is_refused_before_anything_is_drawn():
    with pytest.raises(InvalidInput) as refusal:
        Refinable.draw(1, 3, SYSTEM).refine(1 + Fraction(1, 10**17), Untouched())
    assert str(refusal.value) == (
        "rate=1.00001 exceeds 1, the rate of this noise, by less than 4.3e-17, the smallest step. "
        "Nothing was drawn or recorded. Use a larger rate."
    )


@pytest.mark.parametrize("rate", [0, -1, "-1/2"])
def test_a_rate_that_is_not_positive_is_refused(rate):
    for use in (
        lambda: Refinable.draw(rate, 3, Untouched()),
        lambda: Refinable.draw(1, 3, SYSTEM).refine(rate, SYSTEM),
    ):
        with pytest.raises(InvalidInput) as refusal:
            use()
        assert str(refusal.value) == f"rate={rate!r} must be greater than zero. Nothing was drawn or recorded."


def test_a_generator_that_is_not_a_source_is_refused():
    with pytest.raises(InvalidInput) as refusal:
        Refinable.draw(1, 3, SYSTEM).refine(2, np.random.default_rng(1))
    assert str(refusal.value) == (
        "source=Generator is not a source of random words. Nothing was drawn or recorded. "
        "Use SystemSource(), or SeededSource(seed) in tests."
    )


ONES = np.ones(2, dtype=np.int64)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"plus": [1, 1]}, "plus of type list must be an array of int64."),
        ({"minus": ONES.astype(np.int32)}, "minus of type int32 must be an array of int64."),
        ({"plus": ONES - 2}, "plus must hold whole numbers from 0 to 2^61 - 1. None of them is shown."),
        ({"minus": ONES << 61}, "minus must hold whole numbers from 0 to 2^61 - 1. None of them is shown."),
        ({"plus": ONES[:1]}, "plus of shape (1,) and minus of shape (2,) must be alike."),
        ({"private": 1}, "private=1 must be True or False."),
    ],
)
def test_what_is_no_pair_of_halves_is_refused(change, message):
    parts = {"plus": ONES, "minus": ONES, "rate": Fraction(1), "private": True}
    with pytest.raises(InvalidInput) as refusal:
        Refinable(**(parts | change))
    assert str(refusal.value) == message


# --- the low bits first -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("start", [3, 17, 40, 1000])
def test_large_halves_are_cut_by_the_whole_of_t(start):
    """200,000 halves of one size, also beyond what the low bits of T can hold, refined by a small step: min(G, T) has
    its exact law. Chi-square over the values up to G with a false-alarm rate of one in ten million.
    """
    size, first, last = 200_000, Fraction(12, 10), Fraction(16, 10)
    halves = np.full(size, start, dtype=np.int64)
    state = Refinable(plus=halves, minus=np.zeros(size, dtype=np.int64), rate=first, private=False)
    drawn = state.refine(last, SeededSource(start)).plus
    step = float(last - first)
    below = np.exp(-step * np.arange(start)) * (1 - np.exp(-step))
    law = np.append(below, np.exp(-step * start))  # T = 0, 1, …, and T ≥ G
    expected = law * size
    common = expected > 20
    observed = np.bincount(drawn, minlength=start + 1)
    assert drawn.max() <= start
    seen = np.append(observed[common], observed[~common].sum())
    meant = np.append(expected[common], expected[~common].sum())
    used = meant > 0
    statistic = ((seen - meant)[used] ** 2 / meant[used]).sum()
    assert statistic < chi2.ppf(1 - 1e-7, used.sum() - 1)
