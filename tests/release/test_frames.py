"""Answers and cells as frames of others: one row a cell, named columns, and names as odd as a file may hold."""

from __future__ import annotations

import json
import sys
from datetime import datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from released import CUBE, GRID, LINE, MIXED, PLANS, known, sample

import sfumato as sf

PLACE = sf.Grid(bounds=(0, 0, 4, 3), shape=(4, 3))
DAYS = sf.Times("2026-01-01", "2026-01-04", every="1 day", name="t")
MODE = sf.Categories(["bus", "bike"], name="mode")
SPACE = PLACE * DAYS * MODE
ODD = ['=1+1"', "a,b\nc", "<b>&amp;</b>"]
ODD_SPACE = (
    PLACE
    * sf.Categories(ODD, name='m","x":1')
    * sf.Cycle("weekday", name="=week")
    * sf.Line(edges=[0, 1, 10], name="value")
)


def test_every_cell_is_a_row_with_named_columns() -> None:
    counts = np.random.default_rng(0).integers(0, 9, SPACE.shape)
    release = known(SPACE, counts)
    frame = release.to_frame()
    assert isinstance(frame, pa.Table)
    named = ["x_low", "x_high", "y_low", "y_high", "t_low", "t_high", "mode"]
    assert frame.column_names == [*named, "value", "stderr", "low", "high"]
    assert frame.num_rows == SPACE.size
    assert frame["value"].to_numpy().tolist() == counts.ravel().tolist()
    row = frame.slice(np.ravel_multi_index((2, 1, 1, 1), SPACE.shape), 1).to_pylist()[0]
    answer = release.answer((2, 1, 3, 2), t=("2026-01-02", "2026-01-03"), mode="bike")
    assert row == {
        "x_low": 2, "x_high": 3, "y_low": 1, "y_high": 2, "mode": "bike",
        "t_low": datetime(2026, 1, 2), "t_high": datetime(2026, 1, 3),
        "value": answer.value, "stderr": answer.stderr, "low": answer.low, "high": answer.high,
    }  # fmt: skip
    assert frame.schema.metadata[b"guarantee"].decode() == str(release.guarantee)


@pytest.mark.parametrize("name", PLANS)
def test_the_frame_of_any_release_says_what_its_answers_say(name: str) -> None:
    release = sample(name)
    frame = release.to_frame("pandas", confidence=0.9)
    if release.mechanism.biased:
        assert frame["low"].isna().all()
        return
    table = release.answer(by=release.domain.names, confidence=0.9)
    for column in ("value", "stderr", "low", "high"):
        assert frame[column].to_numpy() == pytest.approx(getattr(table, column).ravel(), abs=1e-9), column


def test_frames_come_as_what_one_has() -> None:
    table = known(SPACE, np.ones(SPACE.shape)).marginal("mode", "t")
    arrow, pandas, polars = (table.to_frame(kind) for kind in ("arrow", "pandas", "polars"))
    assert isinstance(arrow, pa.Table)
    assert isinstance(pandas, pd.DataFrame)
    assert isinstance(polars, pl.DataFrame)
    assert list(pandas.columns) == polars.columns == arrow.column_names
    assert pandas["mode"].tolist() == ["bus"] * 3 + ["bike"] * 3
    assert polars["t_low"].to_list() == [datetime(2026, 1, day) for day in (1, 2, 3)] * 2
    with pytest.raises(sf.InvalidInput) as refusal:
        table.to_frame("panda")
    assert str(refusal.value) == "kind='panda' must be one of 'arrow', 'pandas', 'polars'. Did you mean 'pandas'?"


@pytest.mark.parametrize("kind", ["pandas", "polars"])
def test_a_missing_frame_names_its_extra(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, kind, None)
    with pytest.raises(sf.MissingExtra, match=rf"pip install 'sfumato\[{kind}\]'"):
        known(LINE, range(8)).to_frame(kind)


def test_many_ranges_have_numbers() -> None:
    table = known(SPACE, np.ones(SPACE.shape)).answer([(0, 0, 1, 1), (0, 0, 4, 3)], by="mode")
    assert table.to_frame().to_pydict()["range"] == [0, 0, 1, 1]


def test_instants_keep_their_zone() -> None:
    zoned = sf.Times("2026-03-28", "2026-03-31", every="1 day", name="t", tz="Europe/Berlin")
    frame = known(zoned, [1, 2, 3]).to_frame()
    assert str(frame.schema.field("t_low").type) == "timestamp[us, tz=Europe/Berlin]"
    assert frame["t_high"].to_pylist()[1].isoformat() == "2026-03-30T00:00:00+02:00"
    fixed = known(sf.Times("2026-03-28", "2026-03-29", every="1 day", tz="+01:00"), [1]).to_frame()
    assert fixed["t_low"].to_pylist()[0].isoformat() == "2026-03-28T00:00:00+01:00"


def test_exports_have_columns_for_every_kind_of_axis(tmp_path: Path) -> None:
    space = DAYS * sf.Cycle("weekday") * sf.Line(edges=[0, 1, 10], name="fare")
    release = known(space, np.arange(42))
    columns = ["t_low", "t_high", "weekday", "fare_low", "fare_high", "count", "stderr"]
    assert pq.read_table(release.to_parquet(tmp_path / "a.parquet")).column_names == columns
    csv = pd.read_csv(release.to_csv(tmp_path / "a.csv"))
    assert list(csv.columns) == columns
    assert csv["weekday"].tolist()[:4] == ["Monday", "Monday", "Tuesday", "Tuesday"]
    assert csv["t_low"].tolist()[0].startswith("2026-01-01 00:00:00")
    assert csv["fare_high"].tolist()[:2] == [1, 10]


# ---------------------------------------------------------------------------------------------- maps


def test_a_map_of_a_product_has_a_property_for_every_column(tmp_path: Path) -> None:
    counts = np.random.default_rng(0).integers(0, 9, SPACE.shape)
    release = known(SPACE, counts)

    def read(**asked: Any) -> list[dict[str, Any]]:
        content = json.loads(release.to_geojson(tmp_path / "a.geojson", **asked).read_text("utf-8"))
        return content["features"]

    summed = read()
    assert [f["properties"]["count"] for f in summed] == counts.sum(axis=(2, 3)).ravel().tolist()
    modes = read(by="mode", where={"t": ("2026-01-01", "2026-01-03")})
    assert list(modes[0]["properties"]) == [
        f"{n}_{m}" for m in MODE.axes[0].cell_names() for n in ("count", "stderr", "low", "high")
    ]
    assert [f["properties"]["count_bike"] for f in modes] == counts[:, :, :2, 1].sum(axis=2).ravel().tolist()
    days = read(by=("t", "mode"))
    assert list(days[0]["properties"])[:2] == ["count_2026-01-01_bus", "stderr_2026-01-01_bus"]
    part = read(where={"place": (1, 1, 3, 2)})
    assert [f["geometry"]["coordinates"][0][0] for f in part] == [[1, 1], [2, 1]]
    one = release.answer((1, 1, 2, 2), confidence=0.9)
    found = read(where={"place": (1, 1, 3, 2)}, confidence=0.9)[0]["properties"]
    assert found == {"count": one.value, "stderr": one.stderr, "low": one.low, "high": one.high}


@pytest.mark.parametrize(
    "domain",
    [
        CUBE,
        MIXED,
        sf.Grid(bounds=(0, 0, 1, 1), shape=(2, 2), name="a") * sf.Grid(bounds=(0, 0, 1, 1), shape=(2, 2), name="b"),
    ],
)
def test_a_map_needs_one_place(domain: sf.Domain, tmp_path: Path) -> None:
    with pytest.raises(sf.InvalidInput, match=r"A map needs regions, hexagons|has several places: 'a', 'b'"):
        known(domain, np.zeros(domain.shape)).to_geojson(tmp_path / "a")
    assert list(tmp_path.iterdir()) == []


# ---------------------------------------------------------------------------------------------- odd names


def test_odd_names_and_labels_go_through_every_format(tmp_path: Path) -> None:
    counts = np.arange(ODD_SPACE.size)
    release = known(ODD_SPACE, counts)
    release = sf.load(release.save(tmp_path / "r.sfumato"))
    frame = release.to_frame("pandas")
    assert list(frame.columns)[4:8] == ['m","x":1', "=week", "value_low", "value_high"]
    assert frame['m","x":1'].unique().tolist() == ODD
    assert pq.read_table(release.to_parquet(tmp_path / "a.parquet"))['m","x":1'].unique().to_pylist() == ODD
    csv = pd.read_csv(release.to_csv(tmp_path / "a.csv"))
    assert csv['m","x":1'].unique().tolist() == ["'=1+1\"", "a,b\nc", "<b>&amp;</b>"]
    assert "'=week" in csv.columns
    table = release.answer(where={'m","x":1': ODD[0]}, by=("=week", 'm","x":1'))
    assert table.to_frame().column_names[:2] == ["=week", 'm","x":1']
    content = json.loads(release.to_geojson(tmp_path / "a.geojson", by='m","x":1').read_text("utf-8"))
    assert [f"count_{label}" in content["features"][0]["properties"] for label in ODD] == [True] * 3
    twins = known(PLACE * sf.Categories(["a_b", "a"], name="m") * sf.Categories(["c", "b_c"], name="n"), range(48))
    content = json.loads(twins.to_geojson(tmp_path / "b.geojson", by=("m", "n")).read_text("utf-8"))
    assert len(content["features"][0]["properties"]) == 16


# ---------------------------------------------------------------------------------------------- xarray


def test_a_dataset_has_a_dimension_for_every_axis(monkeypatch: pytest.MonkeyPatch) -> None:
    """With a stand-in, so that what is handed over is seen everywhere."""
    made = SimpleNamespace(assign_attrs=lambda attributes: SimpleNamespace(attrs=attributes, **vars(made)))

    def dataset(variables: dict[str, Any], coordinates: dict[str, Any]) -> Any:
        made.variables, made.coordinates = variables, coordinates
        return made

    monkeypatch.setitem(sys.modules, "xarray", SimpleNamespace(Dataset=dataset))
    release = known(SPACE, np.arange(SPACE.size))
    found = release.to_xarray()
    dims, value = found.variables["value"]
    assert (dims, value.shape) == (["x", "y", "t", "mode"], SPACE.shape)
    assert list(found.variables) == ["value", "stderr", "low", "high"]
    assert found.coordinates["x"][1].tolist() == [0.5, 1.5, 2.5, 3.5]
    assert found.coordinates["x_low"][0] == "x"
    assert found.coordinates["t"][1].tolist() == [datetime(2026, 1, day) for day in (1, 2, 3)]
    assert found.coordinates["mode"][1].tolist() == ["bus", "bike"]
    assert found.attrs["guarantee"] == str(release.guarantee)
    table = release.answer([(0, 0, 1, 1)] * 2, mode="bus", by="t").to_xarray()
    assert (table.variables["low"][0], table.variables["low"][1].shape) == (["range", "t"], (2, 3))
    odd = known(sf.Line(0, 1, cells=2, name="value"), [1, 2]).to_xarray()
    assert odd.variables["value"][0] == ["value_"]


def test_xarray_itself_takes_it() -> None:
    xarray = pytest.importorskip("xarray")
    found = known(SPACE, np.arange(SPACE.size)).to_xarray()
    assert isinstance(found, xarray.Dataset)
    assert (
        float(found["value"].sel(mode="bike", t="2026-01-02").sum())
        == np.arange(SPACE.size).reshape(SPACE.shape)[:, :, 1, 1].sum()
    )
    assert found["x_low"].dims == ("x",)


def test_without_xarray_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "xarray", None)
    with pytest.raises(sf.MissingExtra, match=r"pip install 'sfumato\[xarray\]'"):
        known(GRID, range(30)).to_xarray()


def test_a_folder_that_is_not_there_is_named_and_nothing_is_written(tmp_path):
    release = sf.plan(sf.unbounded(sf.Line(0, 4, cells=4)), sf.histogram(), 1).publish(np.arange(4))
    for write in (release.save, release.to_csv, release.to_html):
        with pytest.raises(FileNotFoundError, match="no such folder, and nothing was written") as caught:
            write(tmp_path / "none" / "a-file")
        assert caught.value.filename == str(tmp_path / "none")
    assert not list(tmp_path.iterdir())
