"""A weaker promise never costs more: over chains that a planner can name, the planned error does not rise as the policy
weakens, within one per cent for tuning.

Left out are searches that depend on the policy and look at every edge (`greedy`, at most 64 cells): what they find
under one policy they may miss under a weaker one, by up to three per cent on 8 × 8 cells with `sf.scales()`.
"""

from __future__ import annotations

import numpy as np
import pytest

import sfumato as sf
from sfumato.linear import Hats, Hierarchy, Identity, Kronecker

TUNING = 1.01
WORKLOADS = {"ranges": sf.ranges(), "cells": sf.histogram(), "prefixes": sf.prefixes(), "scales": sf.scales()}
SHAPES = [(100,), (20, 24), (64, 64), (6, 7, 8)]


def grid_of_unit_cells(shape):
    return (
        sf.Line(0, shape[0], cells=shape[0])
        if len(shape) == 1
        else sf.Grid(bounds=(0,) * len(shape) + shape, shape=shape)
    )


def steps(domain):
    longest = sum(domain.shape) - domain.ndim
    return [sf.threshold(domain, theta) for theta in (1, 2, 3, 4, 6, 8, 16, 32) if theta < longest]


def lengths(domain):
    return [sf.within(domain, delta) for delta in (0.5, 1.5, 2.5, 4.5, 8.5, 20.5) if delta < max(domain.shape)]


@pytest.mark.slow  # a plan for every policy of every chain
@pytest.mark.parametrize("epsilon", [0.1, 1, 4])
@pytest.mark.parametrize("asked", WORKLOADS)
@pytest.mark.parametrize("chain", [steps, lengths])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_the_planned_error_never_rises_as_the_policy_weakens(shape, chain, asked, epsilon):
    if epsilon != 1 and asked != "ranges":
        return
    domain = grid_of_unit_cells(shape)
    policies = [*chain(domain), sf.bounded(domain)]  # from the weakest to the strongest
    errors = [sf.plan(policy, WORKLOADS[asked], epsilon).expected_error for policy in policies]
    for weaker in range(len(errors)):
        assert errors[weaker] <= TUNING * min(errors[weaker:]), (shape, asked, [round(e, 1) for e in errors])


def test_on_listed_graphs_candidates_that_do_not_look_at_the_policy_never_rise():
    """Cells of 100 in a ring, and more and more chords; the last graph has every pair of cells a move apart."""
    domain, rng = sf.Line(0, 1, cells=100), np.random.default_rng(3)
    ring = [(i, (i + 1) % 100) for i in range(100)]
    chords = [tuple(int(c) for c in rng.choice(100, 2, replace=False)) for _ in range(400)]
    graphs = [sf.graph(domain, ring + chords[:count]) for count in (0, 20, 400)]
    for name in ("identity", "haar", "hierarchy", "hats"):
        errors = [sf.plan(p, sf.ranges(), 1, mechanism=name).expected_error for p in [*graphs, sf.bounded(domain)]]
        assert errors == sorted(errors), name


def test_long_lists_of_edges_are_weighed_without_a_dense_matrix():
    """20,000 cells, each with a chord to another one: counts with noise beat noise on every edge."""
    n, rng = 20_000, np.random.default_rng(0)
    chords = rng.integers(0, n, (2 * n, 2))
    edges = np.concatenate([np.stack([np.arange(n - 1), np.arange(1, n)], -1), chords[chords[:, 0] != chords[:, 1]]])
    plan = sf.plan(sf.graph(sf.Line(0, 1, cells=n), [(int(u), int(v)) for u, v in edges]), sf.histogram(), 1)
    weighed = {other.name: other.error for other in plan.alternatives}
    assert plan.mechanism.name == "identity"
    assert all(weighed[name] is not None for name in ("identity", "haar", "hierarchy", "edges"))


# --- what columns share -----------------------------------------------------------------------------------------------

FACTORS = [
    [Hats(12, (4,), (3, 5)), Hats(9, (3,), (2, 2))],
    [Hats(13, (5, 2), (7, 6, 5)), Identity(6)],
    [Identity(5), Identity(4)],
    [Hats(8, (2,), (4, 9)), Identity(3), Hats(7, (2,), (1, 1))],
]


@pytest.mark.parametrize("factors", FACTORS, ids=lambda factors: "×".join(str(f.cols) for f in factors))
def test_no_two_columns_are_farther_apart_than_is_said(factors):
    """Against every pair of columns, for every reach; and under replace-one nothing is given away."""
    product, shape = Kronecker(factors), tuple(f.cols for f in factors)
    dense = product.dense()
    cell = np.stack(np.unravel_index(np.arange(product.cols), shape), axis=-1)
    steps = np.abs(cell[:, None] - cell[None])
    distance = np.abs(dense[:, :, None] - dense[:, None, :]).sum(axis=0)
    tight = 0
    for reach in np.unique(steps.reshape(-1, len(shape)), axis=0):
        true = distance[(steps <= reach).all(axis=-1)].max()
        said = product.apart(reach[None])
        assert true <= said <= 2 * product.column_norms().max()
        tight += said == true
    assert tight >= 2
    assert product.apart(np.array(shape)[None] - 1) == distance.max()


def test_rows_of_reaches_are_taken_one_by_one():
    product = Kronecker([Hats(12, (4,), (3, 5)), Hats(9, (3,), (2, 2))])
    several = np.array([[1, 0], [0, 2], [0, 0]])
    assert product.apart(several) == max(product.apart(row[None]) for row in several)
    assert product.apart(np.empty((0, 2), dtype=np.int64)) == 0
    assert Kronecker([Hierarchy(4, (2, 1)), Identity(3)]).apart(several) is None


@pytest.mark.parametrize("policy", [lambda g: sf.threshold(g, 3), lambda g: sf.within(g, 0.2), sf.bounded])
def test_hats_on_a_grid_are_private_under_moves(policy):
    """Too large for types of columns, so by what columns share; compared with the columns of 4,000 random edges."""
    domain = sf.Grid(bounds=(0, 0, 1, 1), shape=(70, 66))
    mechanism = sf.plan(policy(domain), sf.ranges(), 1, mechanism="hats").mechanism
    rng, policy = np.random.default_rng(1), mechanism.policy
    if policy.moves.join_all:
        edges = rng.integers(0, domain.size, (4_000, 2))
    else:
        edges = policy.edges()
        edges = edges[rng.choice(len(edges), 4_000, replace=False)]
    changes = mechanism.strategy.column_distances(*edges.T)
    assert changes.max() <= mechanism.sensitivity <= 2 * mechanism.strategy.largest_norm
    assert changes.max() >= 0.9 * mechanism.sensitivity
    assert mechanism.privacy_loss == 1
