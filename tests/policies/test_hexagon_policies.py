"""What a move by metres hides on hexagons: planned, published, charged, written and read without the library."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
from maps import WGS84

import sfumato as sf
from sfumato.linear import Haar, Identity, Kronecker

h3 = pytest.importorskip("h3.api.basic_int", reason="needs sfumato[h3]")

SMALL = h3.grid_disk(h3.latlng_to_cell(40.78, -73.97, 8), 2)


def edges(policy):
    return {tuple(edge) for edge in policy.edges().tolist()}


@pytest.mark.parametrize("delta", [100, 3_000])
def test_no_move_of_a_record_is_left_out(delta):
    """Records in and around the cover, on the ellipsoid, in all directions, and an hour that changes as well."""
    place = sf.H3(8, cover=SMALL)
    space = place * sf.Line(0, 24, cells=24, name="t")
    hide = sf.move(f"{delta} m") & sf.move(1, of="t")
    rng = np.random.default_rng(delta)
    at = place.axes[0].centres[rng.integers(len(SMALL), size=20_000)]
    lon, lat, _ = WGS84.fwd(*at.T, rng.random(len(at)) * 360, rng.random(len(at)) * 1_200)
    to_lon, to_lat, _ = WGS84.fwd(lon, lat, rng.random(len(at)) * 360, rng.random(len(at)) * delta * (1 - 1e-9))
    hour = rng.random(len(at)) * 24
    later = np.clip(hour + rng.uniform(-1, 1, len(at)), 0, 24)
    u = space.locate((np.stack([lon, lat], 1), hour))
    v = space.locate((np.stack([to_lon, to_lat], 1), later))
    met = {tuple(sorted(pair)) for pair in zip(u.tolist(), v.tolist(), strict=True) if pair[0] != pair[1]}
    assert len(met) > 100 and not met - edges(sf.policy(space, hide=hide))


def test_sensitivities_are_those_of_the_edges():
    """Against every edge, alone (a list) and in a product (a leg), for strategies with structure and without."""
    place, hours = sf.H3(8, cover=SMALL[:9]), sf.Cycle("weekday", name="t")
    rng = np.random.default_rng(0)
    for hide in (sf.move("300 m"), sf.move("2 km") | sf.change("t"), sf.move("300 m") & sf.move("1 day", of="t")):
        domain = place if hide.names == () else place * hours
        policy = sf.policy(domain, hide=hide)
        u, v = policy.edges().T
        structured = [Kronecker([part(n) for n in domain.shape]) for part in (Identity, Haar)]
        for strategy in [*structured, rng.integers(-3, 4, (9, domain.size))]:
            table = strategy.sparse().toarray() if hasattr(strategy, "sparse") else strategy
            assert policy.sensitivity(strategy) == np.abs(table[:, u] - table[:, v]).sum(axis=0).max()


def test_what_means_nothing_on_hexagons_is_refused():
    place = sf.H3(8, cover=SMALL)
    for hide, words in (
        (sf.move(0.1), "measured in metres, such as '500 m'"),
        (sf.move("500 m", metric="great-circle"), "its hexagons are on the ellipsoid"),
        (sf.move("500 m", sources=[(0.0, 0.0)]), "sources, which are not known to hexagons"),
    ):
        with pytest.raises(sf.InvalidInput, match=words):
            sf.policy(place, hide=hide)


def test_hexagons_are_planned_published_charged_saved_and_loaded(tmp_path):
    place = sf.H3(8, cover=SMALL)
    space = place * sf.Cycle("hour of day", name="t")
    counts = np.random.default_rng(1).integers(0, 30, space.shape)
    for domain, hide, values in (
        (place, sf.move("500 m"), counts.sum(axis=1)),
        (space, sf.move("500 m") | sf.move("1 h", of="t"), counts),
    ):
        policy = sf.policy(domain, hide=hide)
        account = sf.Ledger.create(tmp_path / f"{domain.ndim}.db", epsilon=5, hide=hide)
        for mechanism in (None, "edges"):
            plan = sf.plan(policy, sf.histogram(), epsilon=1, mechanism=mechanism)
            release = plan.publish(values, ledger=account)
            loaded = sf.load(release.save(tmp_path / "map.sfumato"))
            assert loaded.guarantee == release.guarantee and loaded.total == values.sum()
            name = place.axes[0].ids[3]
            assert loaded.answer(place=name).value == pytest.approx(release.answer(place=name).value)
            assert loaded.answer(by="place").value.shape == (20,)
        assert account.spent == 2
    assert release.to_frame().column("place").to_pylist()[-1] == "elsewhere"


WITHOUT = """
import sys
sys.modules["h3"] = sys.modules["h3.api"] = sys.modules["h3.api.basic_int"] = None
import sfumato as sf
release = sf.load(sys.argv[1])
axis = release.domain.axes[0]
print(dict(zip(axis.labels, release.counts.tolist()))[axis.ids[3]], release.total, len(axis.parents(5).of))
for call in (
    lambda: release.answer(place=axis.ids[3]),
    lambda: axis.locate([[-74, 40.7]]),
    lambda: sf.H3(8, cover=["882a100d25fffff"]),
):
    try:
        call()
    except sf.MissingExtra as error:
        print(error)
"""


def test_a_release_is_read_without_the_extra(tmp_path):
    """Values by their cells; and what is missing for their errors."""
    plan = sf.plan(sf.policy(sf.H3(8, cover=SMALL), hide=sf.move("500 m")), sf.histogram(), epsilon=1)
    release = plan.publish(np.arange(20) * 10)
    path = release.save(tmp_path / "map.sfumato")
    command = [sys.executable, "-c", WITHOUT, str(path)]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    assert said[0] == f"{release.counts[3]} {release.total} 19"
    line = "needs the package 'h3', which is not installed. Install it with: pip install 'sfumato[h3]'"
    assert len(said) == 4 and all(error.endswith(line) for error in said[1:])
