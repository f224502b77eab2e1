"""What is handed out: every dataset yields a release, in the domain's shape, with the promise and no private figure."""

from __future__ import annotations

import dataclasses
import json

import numpy as np
import pytest

import sfumato as sf

LINE = sf.Line(0, 1, cells=4)
GRID = sf.Grid(bounds=(0, 0, 1, 1), shape=(3, 5))
TRAMS = sf.Categories(["bus", "tram", "rest"])


def policies(domain):
    yield sf.bounded(domain)
    yield sf.unbounded(domain)
    if domain.is_spatial:
        yield sf.threshold(domain, 1)
        yield sf.threshold(domain, 3)
        yield sf.within(domain, 0.3)
        yield sf.within(domain, 0.3, sources="boundary")
        yield sf.within(domain, 0.3, sources=[[0.5] * domain.ndim])
    if domain.size == 1:
        yield sf.graph(domain, [(0, sf.ABSENT)])
    if domain.size > 2:
        yield sf.graph(domain, [(i, i + 1) for i in range(domain.size - 1)])
        yield sf.graph(domain, [(0, 1)], publish_component_totals=True)


def workload(domain):
    return sf.ranges() if domain.is_spatial else sf.histogram()


# --- total mechanisms -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "domain",
    [LINE, GRID, TRAMS, sf.Line(0, 1, cells=1), sf.Categories(["only"]), sf.Grid(bounds=(0, 0, 1, 1), shape=(1, 1))],
    ids=repr,
)
@pytest.mark.parametrize("fill", [0, 1, 10**9])
def test_every_dataset_yields_a_release_under_every_policy(domain, fill):
    counts = np.full(domain.shape, fill, dtype=np.int64)
    for policy in policies(domain):
        release = sf.plan(policy, workload(domain), 1).publish(counts)
        assert release.counts.shape == domain.shape
        assert np.isfinite(release.counts).all()
        assert release.guarantee.policy == policy
        assert release.guarantee.epsilon == 1
        if policy.total_is_public:
            assert release.counts.sum() == counts.sum()
            assert release.total == counts.sum()


@pytest.mark.parametrize(
    "name", ["identity", "haar", "hierarchy", "hat-products", "edges", "edge-haar", "edge-hierarchy", "edge-hats"]
)
@pytest.mark.parametrize("largest", [0, 10, 10**6, 10**9, 10**12])
def test_public_totals_are_exact_whatever_the_size_of_the_counts(name, largest):
    grid = sf.Grid(bounds=(0, 0, 1, 1), shape=(20, 33))
    counts = np.random.default_rng(1).integers(0, largest + 1, grid.shape)
    release = sf.plan(sf.threshold(grid, 2), sf.ranges(), 0.3, mechanism=name).publish(counts)
    assert release.counts.sum() == counts.sum()
    assert release.counts.ravel()[::-1].cumsum()[-1] == counts.sum()
    assert release.total == int(counts.sum())


def test_parts_whose_totals_are_public_keep_them():
    policy = sf.graph(LINE, [(0, 1), (2, 3)], publish_component_totals=True)
    release = sf.plan(policy, sf.ranges(), 0.1).publish(np.array([5, 6, 7, 8]))
    assert release.counts[:2].sum() == 11
    assert release.counts[2:].sum() == 15


# --- inputs -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.int8, np.int32, np.uint8, np.uint64])
def test_counts_of_any_whole_type_are_the_same_counts(dtype):
    plan = sf.plan(sf.threshold(LINE, 1), sf.ranges(), 1)
    want = plan.publish(np.array([3, 1, 4, 1]), source=sf.SeededSource(3)).counts
    given = np.array([3, 1, 4, 1], dtype=dtype)
    assert np.array_equal(plan.publish(given, source=sf.SeededSource(3)).counts, want)
    assert np.array_equal(plan.publish(given.tolist(), source=sf.SeededSource(3)).counts, want)
    assert np.array_equal(plan.publish(sf.Counts(given, LINE), source=sf.SeededSource(3)).counts, want)


def test_points_are_counted_first():
    """Half-open cells, the last one closed; points outside are clamped."""
    plan = sf.plan(sf.threshold(GRID, 1), sf.ranges(), 1)
    points = np.array([[0.0, 0.0], [0.4, 0.2], [1.0, 1.0], [-5.0, 9.0], [0.99, 0.5]])
    counts = np.zeros(GRID.shape, dtype=int)
    for cell in [(0, 0), (1, 1), (2, 4), (0, 4), (2, 2)]:
        counts[cell] += 1
    by_counts, by_points = (
        plan.publish(**given, source=sf.SeededSource(4)) for given in ({"counts": counts}, {"points": points})
    )
    assert np.array_equal(by_counts.counts, by_points.counts)


@pytest.mark.parametrize("domain", [LINE, GRID, TRAMS], ids=repr)
def test_no_points_are_a_dataset_too(domain):
    points = np.empty((0, domain.ndim)) if domain.is_spatial else np.empty(0, dtype=str)
    release = sf.plan(sf.bounded(domain), workload(domain), 1).publish(points=points)
    assert release.total == 0


def test_counts_are_not_changed_by_publishing():
    counts = np.arange(15).reshape(3, 5)
    before = counts.copy()
    sf.plan(sf.threshold(GRID, 1), sf.ranges(), 1).publish(counts)
    assert np.array_equal(counts, before)
    counts.flags.writeable = False
    sf.plan(sf.threshold(GRID, 1), sf.ranges(), 1).publish(counts)


# --- what a release does not carry ------------------------------------------------------------------------------------


def test_a_release_carries_no_figure_of_its_input():
    """Under add/remove nothing in it may tell how many rows there were, nor how many points lay outside."""
    rows = 123_457
    points = np.full((rows, 2), 0.5)
    points[:777] = 99.0
    release = sf.plan(sf.unbounded(GRID), sf.ranges(), 1, mechanism="haar").publish(points=points)
    told = {field.name: getattr(release, field.name) for field in dataclasses.fields(release) if field.name != "counts"}
    words = repr(told) + json.dumps(release.guarantee.to_dict()) + json.dumps(release.mechanism.spec()) + repr(release)
    words = words.replace(release.id, "")  # random, and so may hold any digits
    assert str(rows) not in words
    assert "777" not in words


def test_a_release_cannot_be_changed():
    release = sf.plan(sf.threshold(LINE, 1), sf.ranges(), 1).publish(np.array([3, 1, 4, 1]))
    with pytest.raises(ValueError, match="read-only"):
        release.counts[0] = 7
    with pytest.raises(dataclasses.FrozenInstanceError):
        release.counts = np.zeros(4)
