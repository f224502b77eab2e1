"""Releases read as points: synthetic records, quantiles, the distribution function, files and pictures."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

import sfumato as sf

LINE = sf.Line(0, 100, cells=1000)
GRID = sf.Grid(bounds=(0, 0, 2, 1), shape=(16, 8))


def sorted_release(domain: sf.Domain, counts: np.ndarray, epsilon: float = 1e5, **options: int) -> sf.Release:
    policy = sf.bounded(domain)
    return sf.plan(policy, sf.ranges(), epsilon, mechanism="sorted", **options).publish(counts)


def test_quantiles_of_sorted_points_follow_the_data() -> None:
    """Nearly without noise: records 0 to 99 at 0.1, 0.2, …: the median of 1,000 evenly spread ones is 50."""
    release = sorted_release(LINE, np.ones(1000, dtype=int), group=1)
    assert release.quantile(0.5) == pytest.approx(50, abs=0.2)
    assert release.quantile([0.1, 0.9]) == pytest.approx([10, 90], abs=0.2)
    assert release.distribution(25.0) == pytest.approx(0.25, abs=0.002)
    assert release.distribution([0, 100]) == pytest.approx([0, 1])
    for beyond in (-5, [50, 200], float("nan"), float("inf")):
        with pytest.raises(sf.InvalidInput, match="lies outside the bounds, 0 to 100: records"):
            release.distribution(beyond)


@pytest.mark.parametrize("mechanism", ["edges", "identity", "sorted"])
def test_any_release_on_a_line_has_quantiles(mechanism: str) -> None:
    counts = np.zeros(1000, dtype=int)
    counts[300] = 500
    release = sf.plan(sf.within(LINE, 1), sf.ranges(), 1e4, mechanism=mechanism).publish(counts)
    assert release.quantile(0.5) == pytest.approx(30.05, abs=0.06)
    assert 0.0 <= release.distribution(10.0) <= release.distribution(90.0) <= 1.0


@pytest.mark.parametrize("domain", [LINE, GRID, sf.Grid(bounds=(0, 0, 0, 1, 1, 1), shape=(4, 4, 4))], ids=repr)
def test_synthetic_points_are_as_many_as_the_records_and_lie_where_they_do(domain: sf.Domain) -> None:
    counts = np.zeros(domain.shape, dtype=int)
    counts[(0,) * domain.ndim] = 30
    counts[(2,) * domain.ndim] = 20
    points = sorted_release(domain, counts, group=1).points()
    assert points.shape == (50, domain.ndim)
    again = np.bincount(domain.locate(points), minlength=domain.size).reshape(domain.shape)
    assert np.abs(again - counts).sum() <= 4


def test_points_go_to_parquet_with_their_axes(tmp_path: Path) -> None:
    release = sorted_release(GRID, np.ones((16, 8), dtype=int))
    table = pq.read_table(release.to_parquet(tmp_path / "cloud.parquet", points=True))
    assert table.column_names == ["x", "y"]
    assert table.num_rows == 128
    assert b"guarantee" in table.schema.metadata


def test_a_release_of_no_records_has_no_points() -> None:
    release = sorted_release(LINE, np.zeros(1000, dtype=int))
    assert release.points().shape == (0, 1)
    assert 0 <= release.quantile(0.5) <= 100
    assert release.distribution(50.0) == 0.0


@pytest.mark.parametrize("epsilon", [1e4, 0.1])
@pytest.mark.parametrize("domain", [LINE, GRID], ids=repr)
def test_adaptive_histograms_are_drawn(domain: sf.Domain, epsilon: float, tmp_path: Path) -> None:
    for counts in (np.zeros(domain.shape, dtype=int), np.random.default_rng(0).integers(0, 5, domain.shape)):
        release = sorted_release(domain, counts, epsilon)
        figure = release.plot(tmp_path / "a.png")
        assert (tmp_path / "a.png").stat().st_size > 5_000
        assert figure.axes


def test_points_survive_the_file(tmp_path: Path) -> None:
    release = sorted_release(LINE, np.arange(1000) % 3, 1.0)
    again = sf.load(release.save(tmp_path / "a.sfumato"))
    assert np.array_equal(again.points(), release.points())
    assert again.quantile(0.25) == release.quantile(0.25)


def test_points_survive_the_file_where_records_may_vanish(tmp_path: Path) -> None:
    release = sf.plan(sf.unbounded(LINE), sf.ranges(), 1, mechanism="sorted").publish(np.arange(1000) % 3)
    again = sf.load(release.save(tmp_path / "a.sfumato"))
    assert np.array_equal(again.points(), release.points())


def test_refusals() -> None:
    release = sf.plan(sf.bounded(GRID), sf.ranges(), 1, mechanism="identity").publish(np.ones((16, 8), dtype=int))
    with pytest.raises(sf.InvalidInput, match="only a release by mechanism='sorted' can be read as points"):
        release.points()
    with pytest.raises(sf.InvalidInput, match=r"release\.quantile is for releases on a line"):
        release.quantile(0.5)
    line = sorted_release(LINE, np.ones(1000, dtype=int))
    for q in (0, 1, [0.5, 2]):
        with pytest.raises(sf.InvalidInput, match="must lie between 0 and 1, both excluded"):
            line.quantile(q)
