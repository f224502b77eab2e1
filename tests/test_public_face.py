"""What a user writes, from the first line to the last: `import sfumato as sf` and nothing else."""

from __future__ import annotations

import numpy as np
import pytest

import sfumato as sf

BOUNDS = (-74.3, 40.5, -73.7, 40.95)


@pytest.fixture
def visits(tmp_path):
    """Two thousand visits of five hundred users, some outside the box, in a file."""
    rng = np.random.default_rng(0)
    path = tmp_path / "visits.csv"
    user = rng.integers(0, 500, 2000)
    lon, lat = rng.normal(-74, 0.15, 2000), rng.normal(40.7, 0.1, 2000)
    rows = [f"{u},{x:.6f},{y:.6f}" for u, x, y in zip(user, lon, lat, strict=True)]
    path.write_text("\n".join(["user,lon,lat", *rows]) + "\n")
    return path


def test_from_a_file_of_visits_to_an_answer_with_its_error(visits, tmp_path):
    grid = sf.Grid(bounds=BOUNDS, shape=(32, 32))
    policy = sf.within(grid, delta=0.02)
    plan = sf.plan(policy, sf.ranges(), epsilon=1.0)
    assert plan.expected_error > 0
    assert "expected squared error" in str(plan)
    ledger = sf.Ledger.create(tmp_path / "budget.db", epsilon=1.5)
    counts = sf.count(visits, grid, x="lon", y="lat")
    release = plan.publish(counts, ledger=ledger)
    assert (ledger.spent, ledger.remaining) == (1, sf.Ledger(tmp_path / "budget.db").total - 1)
    assert release.counts.shape == (32, 32)
    assert release.total == 2000 == release.counts.sum()
    answer = release.answer((-74.1, 40.6, -73.9, 40.8))
    assert answer.low <= answer.value <= answer.high
    assert answer.stderr > 0
    many = release.answer([(-74.1, 40.6, -73.9, 40.8), BOUNDS])
    assert many.value.shape == (2,)
    assert many.value[0] == pytest.approx(answer.value)
    assert many.value[1] == pytest.approx(2000)
    with pytest.raises(sf.BudgetExceeded):
        plan.publish(counts, ledger=ledger)


def test_a_release_goes_to_someone_who_has_no_data_and_no_secret(visits, tmp_path):
    grid = sf.Grid(bounds=BOUNDS, shape=(16, 16))
    counts = sf.count(visits, grid, x="lon", y="lat")
    release = sf.plan(sf.threshold(grid, theta=2), sf.ranges(), epsilon=0.5).publish(counts)
    release.save(tmp_path / "visits.sfumato")
    again = sf.load(tmp_path / "visits.sfumato")
    assert np.array_equal(again.counts, release.counts)
    assert again.guarantee == release.guarantee
    box = (-74.1, 40.6, -73.9, 40.8)
    assert again.answer(box).value == release.answer(box).value
    assert again.answer(box).stderr == release.answer(box).stderr


def test_a_promise_about_persons(visits):
    grid = sf.Grid(bounds=BOUNDS, shape=(16, 16))
    counts = sf.count(visits, grid, x="lon", y="lat", entity="user", max_per_entity=2)
    plan = sf.plan(sf.unbounded(grid), sf.histogram(), epsilon=1.0, max_per_entity=2)
    release = plan.publish(counts)
    assert "person" in str(release.guarantee)
    assert release.guarantee.max_per_entity == 2


def test_lines_categories_and_graphs():
    hours = sf.Line(0, 24, cells=48, name="hour")
    day = sf.plan(sf.threshold(hours, theta=1), sf.prefixes(), epsilon=1.0).publish(points=np.linspace(0, 24, 1000))
    assert day.answer((0, 24)).value == pytest.approx(1000)
    modes = sf.Categories(["bus", "tram", "rest"], other="rest")
    policy = sf.graph(modes, edges=[("bus", "tram"), ("tram", "rest"), ("rest", sf.ABSENT)])
    ridden = sf.plan(policy, sf.histogram(), epsilon=1.0).publish(points=np.array(["bus", "tram", "ferry"]))
    assert ridden.answer("bus").stderr > 0
    assert ridden.answer(["bus", "tram"]).value.shape == (2,)


def test_choosing_epsilon_from_the_accuracy_that_is_needed():
    line = sf.Line(0, 100, cells=4096)
    policy = sf.within(line, delta=0.01)
    epsilon = sf.epsilon_for(policy, sf.ranges(), error=100.0)
    assert sf.plan(policy, sf.ranges(), epsilon=epsilon).expected_error <= 100


def test_every_error_is_ours_and_a_built_in_at_once():
    for ours, built_in in [
        (sf.InvalidInput, ValueError),
        (sf.PolicyMismatch, ValueError),
        (sf.TooLarge, MemoryError),
        (sf.BudgetExceeded, RuntimeError),
        (sf.LedgerError, RuntimeError),
        (sf.FileFormatError, ValueError),
        (sf.MissingExtra, ImportError),
    ]:
        assert issubclass(ours, sf.SfumatoError)
        assert issubclass(ours, built_in)


def test_the_version_is_that_of_the_package():
    from importlib.metadata import version

    assert sf.__version__ == version("sfumato")
