"""Records that name their hexagon, or a finer one: the same cells from every kind of data."""

from __future__ import annotations

import duckdb
import numpy as np
import pandas
import polars
import pyarrow
import pytest

import sfumato as sf

h3 = pytest.importorskip("h3.api.basic_int", reason="needs sfumato[h3]")

N = 3_000
BOUNDS = (-74.05, 40.68, -73.9, 40.88)


@pytest.fixture(scope="module")
def space():
    return sf.H3(8, cover=BOUNDS) * sf.Line(0, 24, cells=6, name="h")


@pytest.fixture(scope="module")
def records():
    """Cells of resolutions 8 to 11; some missing, some that are none, some coarser than the domain's."""
    rng = np.random.default_rng(3)
    lon, lat = rng.normal(-73.97, 0.05, N), rng.normal(40.78, 0.05, N)
    cells = [
        h3.latlng_to_cell(y, x, r) for x, y, r in zip(lon.tolist(), lat.tolist(), 8 + np.arange(N) % 4, strict=True)
    ]
    cells[:4] = [h3.cell_to_parent(cell, 7) for cell in cells[:4]]
    cells[4:8] = [1, 1 << 62, (1 << 63) - 1, 0]
    table = pandas.DataFrame({"cell": np.array(cells, np.int64), "h": rng.random(N) * 24})
    table["who"] = rng.integers(0, 300, N)
    table["text"] = [format(cell, "x") for cell in cells]
    return table


@pytest.fixture(scope="module")
def expected(space, records):
    """By the library's own hierarchy."""
    place, values = space.axes[0], np.zeros(space.shape, np.int64)
    known = {name: i for i, name in enumerate(place.labels)}
    for cell, hour in zip(records.cell[8:].tolist(), records.h[8:], strict=True):
        values[known.get(format(h3.cell_to_parent(cell, 8), "x"), space.shape[0] - 1), int(hour // 4)] += 1
    assert values[-1].sum() > 100
    return values


def same(counts, expected):
    assert (counts.values == expected).all()
    report = counts.report
    assert (report.rows, report.without_coordinates, report.outside) == (N, 8, expected[-1].sum())


@pytest.mark.parametrize("column", ["cell", "text"])
def test_cells_of_every_engine(space, records, expected, tmp_path, column):
    records.to_parquet(tmp_path / "d.parquet")
    records.to_csv(tmp_path / "d.csv", index=False)
    table = pyarrow.Table.from_pandas(records)
    polar = polars.from_pandas(records)
    for data in (
        tmp_path / "d.parquet",
        tmp_path / "d.csv",
        records,
        records.astype({"text": "category", "cell": np.uint64}),
        polar,
        polar.with_columns(polars.col("text").cast(polars.Categorical), polars.col("cell").cast(polars.UInt64)),
        polar.lazy(),
        table,
        table.to_reader(),
        duckdb.from_arrow(table),
        {name: records[name].to_numpy() for name in (column, "h")},
    ):
        same(sf.count(data, space, h3=column), expected)


def test_columns_may_say_it_too(space, records, expected):
    for columns in ({"h3": "cell"}, {"place": {"h3": "text"}}):
        same(sf.count(records, space, columns=columns), expected)


def test_missing_cells_are_no_records(space, records):
    table = pyarrow.table({"cell": pyarrow.array([None, *records.cell[8:]]), "h": [1.0, *records.h[8:]]})
    texts = pyarrow.table({"cell": pyarrow.array([None, "", "x" * 15, *records.text[8:]]), "h": [1.0] * (N - 5)})
    assert sf.count(table, space, h3="cell").report.without_coordinates == 1
    assert sf.count(texts, space, h3="cell").report.without_coordinates == 3


def test_a_record_belongs_to_the_parent_of_its_fine_cell():
    """Which is not always the hexagon that holds its middle."""
    place = sf.H3(8, cover=BOUNDS)
    rng = np.random.default_rng(0)
    fine = [h3.latlng_to_cell(y, x, 9) for x, y in zip(rng.uniform(-74, -73.95, 500), rng.uniform(40.7, 40.8, 500))]  # noqa: B905
    by_index = sf.count({"c": np.array(fine, np.uint64)}, place, h3="c").values
    parents = [format(h3.cell_to_parent(cell, 8), "x") for cell in fine]
    assert by_index.tolist() == [parents.count(label) for label in place.axes[0].labels]


def test_persons_are_bounded_and_several_places_told_apart(space, records):
    counts = sf.count(records, space, h3="text", entity="who", max_per_entity=2)
    assert counts.max_per_entity == 2 and 500 < counts.values.sum() <= 600
    two = sf.H3(8, cover=BOUNDS, name="origin") * sf.H3(8, cover=BOUNDS, name="destination")
    both = sf.count(records[8:], two, columns={"origin": {"h3": "cell"}, "destination": {"h3": "text"}}).values
    assert both.trace() == both.sum() == N - 8


def refused(match, data, space, **keywords):
    with pytest.raises(sf.InvalidInput, match=match):
        sf.count(data, space, **keywords)


def test_columns_that_cannot_be_cells_are_refused(space, records):
    refused("needs cells of H3. Nothing was counted. Give them as text", records, space, h3="h")
    refused("needs cells of H3", records.astype({"cell": np.int32}), space, h3="cell")
    refused('or {"h3": column}', records, space, columns={"place": {"cells": "cell"}})
    refused("has no column 'cells'", records, space, h3="cells")
    refused("is told by two columns", records, space, h3="cell", geometry="cell")
    refused("has no expression for the hexagons", records, space, h3="cell", engine="native")


def test_cells_are_for_hexagons():
    maps = pytest.importorskip("maps")
    regions = sf.Regions(maps.frame(maps.voronoi(4)), id="id")
    refused("h3= is for hexagons, and 'place' is one of regions", {"c": np.zeros(1, np.int64)}, regions, h3="c")
    refused("h3= is no keyword of sf.count", {"x": np.zeros(1)}, sf.Line(0, 1, cells=2), h3="x")
