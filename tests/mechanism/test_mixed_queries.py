"""Expected errors of every mechanism that a plan can choose, on questions of several kinds, against dense matrices."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

import sfumato as sf
from sfumato.errors import SfumatoError
from sfumato.mechanism import fresh, singular_value_bound, variants
from sfumato.mechanism.cells.along import Mixture, asked_along
from sfumato.workload import CELLS, RANGES, TOTAL

PLACE = sf.Grid(bounds=(0, 0, 1, 1), shape=(4, 3))
LINE = sf.Line(0, 11, cells=11, name="t")
MODES = sf.Categories(["bus", "bike", "car"], name="mode")
SPACE = sf.Grid(bounds=(0, 0, 1, 1), shape=(3, 2)) * MODES
HALVES = [(0, 0, 0.5, 0.5), (0.1, 0.25, 0.75, 1), (0, 0, 1, 1)]
BENT = sf.graph(LINE, [(i, i + 1) for i in range(10)] + [(0, 5), (3, sf.ABSENT)])
POLICIES = [
    sf.unbounded(SPACE),
    sf.bounded(SPACE),
    sf.unbounded(PLACE),
    sf.bounded(PLACE),
    sf.threshold(PLACE, theta=1),
    sf.threshold(PLACE, theta=3),
    sf.within(PLACE, delta=0.4, sources="boundary"),
    sf.unbounded(LINE),
    sf.bounded(LINE),
    sf.threshold(LINE, theta=1),
    sf.threshold(LINE, theta=3),
    BENT,
]


def questions(domain):
    """Some of every kind that the domain has an answer for."""
    by_name = {
        "place": [sf.scales(), sf.levels(), sf.ask(x=sf.ranges()), sf.ranges(HALVES), sf.ranges() + sf.histogram()],
        "t": [sf.scales(), sf.levels(), sf.ranges([(0, 2.5), (3, 11)]), sf.prefixes() + 2 * sf.histogram()],
        "mode": [sf.histogram(), sf.levels()],
    }
    for name in (factor.name for factor in domain.factors):
        yield from (sf.ask(**{name: along}) for along in by_name[name])
    yield sf.ask()
    yield sf.marginals(1) + 0.5 * sf.histogram()
    if len(domain.factors) > 1:
        yield sf.ask(place=sf.ranges(HALVES), mode=sf.histogram())
        yield sf.ask(place=sf.ranges(), mode=sf.histogram()) + 3 * sf.marginals("mode", "x") + sf.ask(y=sf.prefixes())


def covariance(model, size):
    """Of the estimates of all cells, from what each cell feels."""
    felt = [(block.noise.variance, c) for block, c in zip(model.blocks, model.coefficients(np.eye(size)), strict=True)]
    return sum(variance * c @ c.T for variance, c in felt) if felt else np.zeros((size, size))


@pytest.mark.slow  # dense matrices of every mechanism
@pytest.mark.parametrize("policy", POLICIES, ids=repr)
def test_expected_errors_are_those_of_dense_matrices(policy):
    size, weighed = policy.domain.size, set()
    for workload in questions(policy.domain):
        workload.check(policy.domain)
        gram = workload.gram(policy.domain)
        for name, options in variants(policy, workload):
            try:
                built = fresh(name, policy, Fraction(1), **options)
            except SfumatoError:
                continue  # says why it does not fit the policy
            if built.biased or built.model is None or built.by_tables is not None:
                continue  # tables have a test of their own
            dense = covariance(built.model, size)
            want = float(np.einsum("ij,ij->", gram, dense))
            found = built.model.expected_error(workload, policy.domain)
            assert found == pytest.approx(want, rel=1e-9, abs=1e-9 * dense.max(initial=1.0)), (name, workload)
            weighed.add(name)
    assert {"identity", "hierarchy"} <= weighed


def test_the_total_alone_is_exact_where_it_is_public():
    for policy in (sf.bounded(SPACE), sf.bounded(PLACE), sf.threshold(PLACE, theta=2), sf.threshold(LINE, theta=3)):
        for name in ("identity", "haar", "hierarchy", "hats", "edges"):
            try:
                built = fresh(name, policy, Fraction(1))
            except SfumatoError:
                continue
            assert built.model.expected_error(sf.ask(), policy.domain) == 0, (policy, name)


# --- what strategies are tuned for ------------------------------------------------------------------------------------


def test_every_axis_is_tuned_for_what_is_asked_along_it():
    asked = asked_along(sf.ask(x=sf.ranges(), mode=sf.histogram()), SPACE)
    assert asked == (RANGES, TOTAL, CELLS)
    union = sf.ask(x=sf.ranges()) + 15 * sf.marginals("x")
    assert asked_along(union, PLACE)[0] == Mixture(((1 / 7, RANGES), (6 / 7, CELLS)))  # 10 ranges, 15 × 4 cells
    assert asked_along(sf.ranges(HALVES), PLACE) == (RANGES, RANGES)
    assert asked_along(sf.queries(np.eye(18)), SPACE) == (RANGES, RANGES, RANGES)


def options(name, policy, workload):
    return next(chosen for known, chosen in variants(policy, workload) if known == name)


def test_labels_get_no_hats_and_no_blocks_where_cells_are_asked_for():
    space = sf.Grid(bounds=(0, 0, 1, 1), shape=(64, 64)) * MODES
    asked = sf.ask(place=sf.ranges(), mode=sf.histogram())
    hats, nested = (options(name, sf.unbounded(space), asked) for name in ("hats", "hierarchy"))
    assert [len(widths) for widths in hats["widths"]] == [1, 1, 0] and hats["weights"][2] == (1,)
    assert nested["blocks"][2] == (1,) and len(nested["blocks"][0]) > 1


def test_an_axis_that_is_summed_over_gets_one_block_over_everything():
    nested = options("hierarchy", sf.unbounded(LINE * MODES), sf.ask(mode=sf.histogram()))
    assert nested["blocks"] == [(11, 1), (1,)]
    assert nested["weights"][0][0] > 50 * nested["weights"][0][1]


def test_knowing_what_is_asked_helps():
    """A map by mode, in ranges of place: what is tuned for it beats what is tuned for ranges along every axis."""
    grid = sf.Grid(bounds=(0, 0, 1, 1), shape=(64, 64))
    policy = sf.unbounded(grid * sf.Categories(list("abcdefgh"), name="mode"))
    asked = sf.ask(place=sf.ranges(), mode=sf.histogram())
    plan = sf.plan(policy, asked, epsilon=1)
    alone = sf.plan(sf.unbounded(grid), sf.ranges(), epsilon=1)
    assert plan.expected_error == pytest.approx(alone.expected_error)


# --- how far from the best --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("policy", [p for p in POLICIES if p.domain is not SPACE], ids=repr)
def test_the_bound_is_that_of_the_weighted_queries(policy):
    for workload in questions(policy.domain):
        edges = policy.edges()
        incidence = np.zeros((policy.domain.size, len(edges)))
        for j, (u, v) in enumerate(edges):
            incidence[u, j] = 1
            if v >= 0:
                incidence[v, j] = -1
        spectrum = np.linalg.eigvalsh(incidence.T @ workload.gram(policy.domain) @ incidence)
        nuclear = np.sqrt(np.maximum(spectrum, 0)).sum()
        unit = fresh("identity", sf.unbounded(LINE), Fraction(1)).model.blocks[0].noise.variance
        found = singular_value_bound(policy, workload, Fraction(1))
        assert found == pytest.approx(unit * nuclear**2 / len(edges), rel=1e-4, abs=1e-6)
