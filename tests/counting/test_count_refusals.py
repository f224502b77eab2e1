"""What cannot be counted is refused before anything is read, and no refusal carries a record."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sfumato.counting import Counts, count, count_points, progress
from sfumato.counting.place import Placer
from sfumato.domain import Categories, Grid, Line
from sfumato.errors import DataWarning, InvalidInput, PolicyMismatch, TooLarge

GRID = Grid((0, 0, 2, 2), (2, 2))
FRAME = pd.DataFrame({"x": [0.5], "y": [0.5], "text": ["secret"], "who": [1]})


class Apart:
    allows_dropping = False


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"x": "lon"},
            "The data has no column 'lon'. Nothing was counted. Name the columns with x=, y=, z= or "
            "columns={axis: column}, and the entity's with entity=.",
        ),
        (
            {"entity": "user", "max_per_entity": 1},
            "The data has no column 'user'. Nothing was counted. Name the columns with x=, y=, z= or "
            "columns={axis: column}, and the entity's with entity=.",
        ),
        (
            {"y": "text"},
            "Column 'text' is of type String, and axis 'y' needs numbers. Nothing was counted. "
            "Convert the column first.",
        ),
        ({"z": "who"}, "z='who' names a column for axis 3, and the domain has 2. Leave it out."),
        ({"columns": {"w": "x"}}, "columns={'w': 'x'} names the axis 'w'; the axes are 'x', 'y'."),
        ({"x": "x", "columns": {"x": "y"}}, "The column of axis 'x' is given twice. Name it once."),
        (
            {"entity": "who"},
            "entity is given without max_per_entity. Nothing was counted. Give both to bound what one entity "
            "contributes, or neither to protect single records.",
        ),
        (
            {"max_per_entity": 1},
            "max_per_entity is given without entity. Nothing was counted. Give both to bound what one entity "
            "contributes, or neither to protect single records.",
        ),
        ({"entity": "who", "max_per_entity": 0}, "max_per_entity=0 must be a whole number of at least 1."),
        ({"outside": "wrap"}, "outside='wrap' is unknown. Use 'clamp' or 'drop'. Nothing was counted."),
        (
            {"engine": "spark"},
            "engine='spark' is unknown. Use 'numpy' or 'native', or leave it out. Nothing was counted.",
        ),
        (
            {"engine": "native", "entity": "who", "max_per_entity": 1},
            "engine='native' cannot choose records by entity: no expression for it is common to all engines. "
            "Nothing was counted. Use engine='numpy', or leave it out.",
        ),
        (
            {"progress": 7},
            "progress=7 is neither True nor False nor a function of (rows done, rows in all). Nothing was counted.",
        ),
        (
            {"source": 7},
            "source=int is not a source of random words. Nothing was drawn or recorded. Use SystemSource(), "
            "or SeededSource(seed) in tests.",
        ),
    ],
    ids=str,
)
def test_arguments_that_do_not_fit_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidInput) as refusal:
        count(FRAME, GRID, **options)
    assert str(refusal.value) == message


@pytest.mark.parametrize(
    ("policy", "received"),
    [(None, "no policy was given"), (Apart(), "the policy given has border cells that are not")],
)
def test_dropping_is_refused_where_the_total_is_public(policy: Any, received: str) -> None:
    with pytest.raises(PolicyMismatch) as refusal:
        count(FRAME, GRID, outside="drop", policy=policy)
    assert str(refusal.value) == (
        f"outside='drop' is possible only under a policy whose border cells are all joined to ⊥, and {received}: a "
        "record that moves across the border would change the exact total, which is public there. Nothing was counted. "
        "Use outside='clamp', or pass such a policy."
    )


def test_unknown_labels_are_refused_without_being_shown() -> None:
    for engine in ("numpy", "native"):
        with pytest.raises(InvalidInput) as refusal:
            count(FRAME, Categories(["public"]), x="text", engine=engine)  # type: ignore[arg-type]
        assert str(refusal.value) == (
            "Axis 'category': some values are not among its labels. Nothing was counted. Declare the missing labels, "
            "or give the axis a label for the rest with other=…."
        )


def test_labels_of_another_type_are_refused() -> None:
    with pytest.raises(InvalidInput) as refusal:
        count(FRAME, Categories([1, 2]), x="text")
    assert str(refusal.value) == (
        "Column 'text' is of type String, and axis 'category' needs labels of type int. Nothing was counted. "
        "Convert the column first."
    )


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ("nowhere.parquet", "data='nowhere.parquet' does not exist. Nothing was counted. Check the path."),
        (
            "http://example.org/records.xlsx",
            "data='http://example.org/records.xlsx' has none of the known endings .parquet, .pq, .csv, .tsv (also with "
            ".gz, .zst). Nothing was counted. Rename the file, or open it with DuckDB or Polars and give the relation "
            "or frame.",
        ),
        (
            ["http://example.org/a.csv", "http://example.org/b.parquet"],
            "data=['http://example.org/a.csv', 'http://example.org/b.parquet'] mixes Parquet and CSV. Nothing was "
            "counted. Name the files of one kind with a pattern such as 'folder/*.parquet'.",
        ),
        (
            np.zeros((3, 2)),
            "data of type ndarray cannot be counted. Give a path to Parquet or CSV files, a pandas, Polars or PySpark "
            "frame, an Arrow table, a DuckDB relation or a dict of arrays; give a NumPy array to "
            "plan.publish(points=…). Nothing was counted.",
        ),
        (
            [],
            "data of type list cannot be counted. Give a path to Parquet or CSV files, a pandas, Polars or PySpark "
            "frame, an Arrow table, a DuckDB relation or a dict of arrays; give a NumPy array to "
            "plan.publish(points=…). Nothing was counted.",
        ),
        (
            "*.no-such.parquet",
            "data='*.no-such.parquet' matches no file; names that begin with '.' or '_' are left out unless the "
            "pattern spells them out. Nothing was counted. Check the pattern, and the folder that it starts from.",
        ),
    ],
    ids=str,
)
def test_data_that_cannot_be_opened_is_refused(data: Any, message: str) -> None:
    with pytest.raises(InvalidInput) as refusal:
        count(data, GRID)
    assert str(refusal.value) == message


def everything_said(error: BaseException | None) -> str:
    said = ""
    while error is not None:
        said += f"{error!r} "
        error = error.__cause__ or error.__context__
    return said


def bad_csv(folder: Path) -> Path:
    """Numbers for so long that the type is settled, then a secret."""
    path = folder / "records.csv"
    path.write_text("x,y\n" + "0.5,1\n" * 200_000 + "0.5,my secret,1\n")
    return path


@pytest.mark.parametrize("engine", ["numpy", "native"])
def test_an_engine_that_fails_is_not_quoted(engine: Any, tmp_path: Path) -> None:
    with pytest.raises(InvalidInput) as refusal:
        count(bad_csv(tmp_path), Line(0, 1, cells=2), engine=engine)
    assert "the engine stopped with" in str(refusal.value)
    assert "secret" not in everything_said(refusal.value)


def test_a_record_that_cannot_be_placed_is_not_quoted(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(placer: Placer, batch: Any) -> Any:
        raise pa.ArrowInvalid("secret")

    monkeypatch.setattr(Placer, "__call__", fail)
    with pytest.raises(InvalidInput, match="could not be placed: the engine stopped with ArrowInvalid") as refusal:
        count(FRAME, GRID, engine="numpy")
    assert "secret" not in everything_said(refusal.value)


@pytest.mark.parametrize("entity", [None, "who"])
def test_labels_that_are_all_missing_are_no_records(entity: str | None) -> None:
    nothing = pd.DataFrame({"mode": [None] * 3, "who": [1, 2, 3]})
    with pytest.warns(DataWarning, match="All"):
        counts = count(nothing, Categories(["bus"], name="mode"), entity=entity, max_per_entity=entity and 1)
    assert (counts.values.tolist(), counts.report.rows, counts.report.without_coordinates) == ([0], 3, 3)


def test_a_lazy_frame_that_fails_is_not_quoted(tmp_path: Path) -> None:
    path = tmp_path / "numbers.csv"
    path.write_text("x\n" + "0.5\n" * 1000 + "my secret\n")
    frame = pl.scan_csv(path, schema={"x": pl.Float64})
    with pytest.raises(InvalidInput) as refusal:
        count(frame, Line(0, 1, cells=2))
    assert "secret" not in everything_said(refusal.value)


def test_a_domain_too_large_for_an_array_is_refused_before_reading() -> None:
    for call in (lambda d: count_points(np.zeros((1, 2)), d), lambda d: count(FRAME, d)):
        with pytest.raises(TooLarge) as refusal:
            call(Grid((0, 0, 1, 1), (1 << 15, 1 << 14)))
        assert str(refusal.value) == (
            "The domain has 536870912 cells; counting holds one number for each and allows 268435456. "
            "Nothing was read. Use fewer cells."
        )


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (
            np.zeros((2, 3), int),
            "values of type int64 and shape (2, 3) are not counts on this domain. Give whole numbers (int64) in the "
            "shape (2, 2). Nothing was drawn or recorded.",
        ),
        (
            np.zeros((2, 2)),
            "values of type float64 and shape (2, 2) are not counts on this domain. Give whole numbers (int64) in the "
            "shape (2, 2). Nothing was drawn or recorded.",
        ),
        (
            np.full((2, 2), 2**63, np.uint64),
            "values hold a count beyond the range of int64. Nothing was drawn or recorded.",
        ),
    ],
)
def test_arrays_that_are_no_counts_are_refused(values: Any, message: str) -> None:
    with pytest.raises(InvalidInput) as refusal:
        Counts(values, GRID)
    assert str(refusal.value) == message


def test_progress_is_told_the_rows_done_and_the_rows_in_all(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    pq.write_table(pa.table({"x": np.zeros(300_000)}), path)
    calls: list[tuple[int, int | None]] = []
    count(path, Line(0, 1, cells=2), progress=lambda done, total: calls.append((done, total)))
    assert calls[-1] == (300_000, 300_000)
    assert len(calls) > 1
    calls.clear()
    count(pa.table({"x": [0.5]}), Line(0, 1, cells=2), progress=lambda done, total: calls.append((done, total)))
    assert calls == [(1, None)]


def test_a_bar_appears_on_standard_error_only_when_it_takes_long(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "t.parquet"
    pq.write_table(pa.table({"x": np.zeros(1000)}), path)
    monkeypatch.setattr(progress, "_PATIENCE", float("inf"))  # a busy machine may need any time for a thousand rows
    count(path, Line(0, 1, cells=2), progress=True)
    assert capsys.readouterr() == ("", "")
    monkeypatch.setattr(progress, "_PATIENCE", -1.0)
    count(path, Line(0, 1, cells=2), progress=True)
    shown = capsys.readouterr()
    assert shown.out == ""
    assert "1000/1000" in shown.err
