"""A release on regions or hexagons where no package for geography is installed: opened, read, and honest about it."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from maps import frame, shapely

import sfumato as sf

GEO = ("geopandas", "shapely", "pyproj", "h3")


def saved(path: Path, kind: str) -> Path:
    """A release of moves on the ground, which only the packages can tell the neighbours of."""
    shapes = [shapely.box(x, 50, x + 0.2, 50.4) for x in (8.0, 8.2, 8.4)]
    if kind == "h3":
        pytest.importorskip("h3", reason="needs sfumato[h3]")
        place: sf.Domain = sf.H3(5, cover=(8, 50, 8.6, 50.4))
    else:
        place = sf.Regions(frame(shapes), id="id")
    plan = sf.plan(sf.policy(place, hide=sf.move("1234 m")), sf.histogram(), epsilon=1)
    return plan.publish(np.arange(place.size) * 100).save(path / "map.sfumato")


def asks(path: Path) -> dict[str, Callable[[sf.Release], Any]]:
    return {
        "an interval": lambda release: release.answer(release.domain.axes[0].labels[0]),
        "a polygon": lambda release: release.answer(shapely.box(8.1, 50.1, 8.3, 50.3)),
        "a frame": lambda release: release.to_geopandas(),
        "a picture": lambda release: release.plot(path / "a.png"),
    }


@pytest.mark.parametrize("kind", ["geo", "h3"])
def test_it_is_opened_with_its_values_by_name_and_says_what_the_rest_needs(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, questions = saved(tmp_path, kind), asks(tmp_path)
    for name in GEO:
        monkeypatch.setitem(sys.modules, name, None)
    release = sf.load(path)
    named = dict(zip(release.domain.axes[0].cell_names(), release.counts.tolist(), strict=True))
    assert "elsewhere" in named and len(named) == release.domain.size
    assert release.total == sum(range(release.domain.size)) * 100
    assert "1234 m" in str(release.guarantee)
    for ask in questions.values():
        with pytest.raises(sf.MissingExtra, match=r"pip install 'sfumato\[(geo|h3)\]'"):
            ask(release)
    if kind == "geo":  # outlines are in the file, and the rule of location is the library's own
        assert release.domain.locate([(8.1, 50.2), (8.3, 50.2), (0.0, 0.0)]).tolist() == [0, 1, 3]
    assert not (tmp_path / "a.png").exists()
