"""CSV files: nothing hangs on what a sample looks like, and no message quotes a record, not even as a name."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sfumato.counting import CountReport, count
from sfumato.counting.choice import choose_columns
from sfumato.counting.inputs import Database, open_frame
from sfumato.domain import Categories, Domain, Grid, Interval, Labels, Line
from sfumato.errors import InvalidInput

LINE = Line(0, 10, cells=10)
GRID = Grid((0, 0, 10, 10), (10, 10))


def text(path: Path, content: str, encoding: str = "utf-8") -> str:
    path.write_bytes(content.encode(encoding))
    return str(path)


def people(data: Any) -> int:
    return int(count(data, LINE, entity="who", max_per_entity=1).values.sum())


# --- entities are text ---


def test_an_entity_is_the_text_that_is_written(tmp_path: Path) -> None:
    assert people(text(tmp_path / "a.csv", "x,who\n1,007\n1,7\n1,7.0\n1,7\n1,007\n")) == 3


def test_an_entity_column_that_looks_like_numbers_for_long_may_hold_names(tmp_path: Path) -> None:
    """The type once came from the first 20,000 rows, and the first name stopped the count."""
    rows = "".join(f"1,{i}\n" for i in range(30_000))
    assert people(text(tmp_path / "a.csv", "x,who\n" + rows + '1,anna\n1,anna\n1,"b, c"\n')) == 30_002


def test_files_whose_entities_look_different_name_the_same_people(tmp_path: Path) -> None:
    text(tmp_path / "a.csv", "x,who\n1,7\n1,8\n")
    text(tmp_path / "b.csv", "who,x\n7,1\nanna,1\n")
    text(tmp_path / "c.csv", "x,who\n")
    assert people(tmp_path) == 3


@pytest.mark.parametrize(
    ("one", "other", "kinds"),
    [
        ("7", "7.0", "DOUBLE and text"),
        ("7\n1,anna", "7.0", "DOUBLE and text"),
        ("2026-01-01", "2026-01-01 00:00:00", ""),
    ],
)
def test_people_written_in_two_ways_are_refused(one: str, other: str, kinds: str, tmp_path: Path) -> None:
    text(tmp_path / "a.csv", f"x,who\n1,{one}\n")
    text(tmp_path / "b.csv", f"x,who\n1,{other}\n")
    text(tmp_path / "c.csv", "x,who\n1,\n")  # an hour in which nobody is named says nothing
    with pytest.raises(InvalidInput, match=r"Column 'who' names the entity and is written in two ways, as " + kinds):
        people(tmp_path)
    assert count(tmp_path, LINE).values.sum() in (3, 4)


def test_blank_is_nobody(tmp_path: Path) -> None:
    path = text(tmp_path / "a.csv", 'x,who\n1,\n1,""\n1,"  "\n1,anna\n')
    counts = count(path, LINE, entity="who", max_per_entity=1)
    assert (counts.values.sum(), counts.report.without_entity) == (1, 3)


# --- values ---


@pytest.mark.parametrize("engine", ["numpy", "native"])
def test_a_value_that_cannot_be_read_is_no_record(engine: Any, tmp_path: Path) -> None:
    path = text(
        tmp_path / "a.csv", "x,y\n1,1\nsecret,1\n,1\nnan,1\n2,1_a\n secret , secret \ninf,1\n,secret\n 3 ,1e0\n"
    )
    counts = count(path, GRID, engine=engine)
    assert counts.values.sum() == 3
    assert counts.values[[1, 9, 3], 1].tolist() == [1, 1, 1]
    assert counts.report == CountReport(rows=9, without_coordinates=2, unreadable=4, outside=1)


def test_what_is_unreadable_takes_no_share(tmp_path: Path) -> None:
    path = text(tmp_path / "a.csv", "x,who\n" + "secret,7\n" * 50 + "1,7\n")
    counts = count(path, LINE, entity="who", max_per_entity=1)
    assert counts.values[1] == 1
    assert (counts.report.unreadable, counts.report.cut) == (50, 0)


def test_whole_numbers_for_long_do_not_make_all_numbers_whole(tmp_path: Path) -> None:
    path = text(tmp_path / "a.csv", "x\n" + "1\n" * 30_000 + "0.7\n")
    assert count(path, LINE).values[:2].tolist() == [1, 30_000]


@pytest.mark.parametrize("engine", ["numpy", "native"])
def test_labels_are_read_as_their_axis_needs_them(engine: Any, tmp_path: Path) -> None:
    path = text(tmp_path / "a.csv", f"k\n1\n 2 \n007\n7.0\n1.5\n+2\n{2**70}\n0\nsecret\n\n")
    numbers = count(path, Domain((Labels("k", (0, 1, 2, 7, 99), other=99),)), engine=engine)
    assert numbers.values.tolist() == [1, 1, 2, 2, 1]
    assert numbers.report.unreadable == 2
    names = count(path, Domain((Labels("k", ("1", "007", "rest"), other="rest"),)), engine=engine)
    assert names.values.tolist() == [1, 1, 7]
    path = text(tmp_path / "b.csv", "k\ntrue\nFALSE\nTrue\nsecret\n")
    assert count(path, Domain((Labels("k", (False, True)),)), engine=engine).values.tolist() == [1, 2]


@pytest.mark.parametrize(
    "content", ["x;y;who\n0,5;1,5;a\n7;1,2;b\n0,7;1,2;b\n", 'x,y,who\n"0,5","1,5",a\n"0,7","1,2",b\n']
)
def test_decimal_commas_are_named(content: str, tmp_path: Path) -> None:
    with pytest.raises(InvalidInput) as refusal:
        count(text(tmp_path / "a.csv", content), GRID)
    assert str(refusal.value) == (
        "Column 'x' has values that are not numbers as axis 'x' needs them. Nothing was counted. It seems to have "
        "decimal commas. Write points instead, or read the file with an engine that takes them "
        "(duckdb.read_csv(…, decimal_separator=',')) and give the relation."
    )


def test_a_column_without_any_number_is_refused(tmp_path: Path) -> None:
    path = text(tmp_path / "a.csv", "x,y\nsecret,1\nsecrets,1\n")
    with pytest.raises(InvalidInput) as refusal:
        count(path, LINE)
    assert str(refusal.value) == (
        "Column 'x' has values that are not numbers as axis 'x' needs them. Nothing was counted. Name another column, "
        "or convert it first."
    )


# --- headers ---


def test_a_file_without_a_header_is_told_what_is_missing_and_no_more(tmp_path: Path) -> None:
    path = text(tmp_path / "a.csv", "Anna Secret,0.5,1.5\nBert Private,0.6,1.2\n")
    with pytest.raises(InvalidInput) as refusal:
        count(path, GRID, entity="who", max_per_entity=1)
    assert str(refusal.value) == (
        f"{path!r} has no column 'x', 'y', 'who'. Nothing was counted. If the file has no header line, add one: the "
        "first line is taken for names. Name the columns with x=, y=, z= or columns={axis: column}, and the entity's "
        "with entity=."
    )


@pytest.mark.parametrize("content", ["x,y,who\n", "x;y;who\n", "\ufeffx,y,who\r\n", "x\ty\twho\n", "x,y,who"])
def test_a_header_alone_is_no_records(content: str, tmp_path: Path) -> None:
    """An hour without records is an hour without records: silence of a nightly job would be an output."""
    counts = count(text(tmp_path / "a.csv", content), GRID, entity="who", max_per_entity=1)
    assert counts.values.sum() == 0
    assert counts.report.rows == 0


@pytest.mark.parametrize("content", ["", "\n", "\n\n\n"])
def test_an_empty_file_is_refused(content: str, tmp_path: Path) -> None:
    path = text(tmp_path / "a.csv", content)
    with pytest.raises(InvalidInput) as refusal:
        count(path, LINE)
    assert str(refusal.value) == (
        f"{path!r} is empty: it has no header line. Nothing was counted. Give a file whose first line names its "
        "columns; without further lines it counts as no records."
    )


@pytest.mark.parametrize(
    "content",
    [
        "x,y\n0.5,1.5\n0.5,secret,9\n",
        "x,y,who\n0,5,1,5,secret\n",
        "x,y\n" + "0.5,1.5\n" * 50_000 + "0.5,1,secret,9\n",
        'x,y\n0.5,1.5\n0.5,"secret\n',
    ],
)
def test_lines_that_do_not_fit_the_header_are_told_without_being_shown(content: str, tmp_path: Path) -> None:
    with pytest.raises(InvalidInput) as refusal:
        count(text(tmp_path / "a.csv", content), GRID)
    assert "A line may have more or fewer fields than the header" in str(refusal.value)
    assert "secret" not in str(refusal.value)


def test_text_in_another_encoding_is_told(tmp_path: Path) -> None:
    path = text(tmp_path / "a.csv", "x,who\n1,José\n", "latin-1")
    with pytest.raises(InvalidInput, match="the text may not be in UTF-8") as refusal:
        people(path)
    assert "Jos" not in str(refusal.value)


@pytest.mark.parametrize(
    "content",
    ["# secret\nx,y\n1,2\n", "x, y \n1,2\n", '"x","y"\n1,2\n', "y,x\n2,1\n", 'x,y,z\n1,2,"a,b"\n', "x|y\n1|2\n"],
)
def test_headers_as_people_write_them(content: str, tmp_path: Path) -> None:
    assert count(text(tmp_path / "a.csv", content), GRID).values[1, 2] == 1


def test_quotes_that_begin_after_the_sample_are_quotes(tmp_path: Path) -> None:
    path = text(tmp_path / "a.csv", "x,who\n" + "1,anna\n" * 30_000 + '2,"b, c"\n')
    assert people(path) == 2


# --- all columns, for streams ---


def test_a_frame_of_all_columns_reads_each_as_it_is_needed(tmp_path: Path) -> None:
    path = text(tmp_path / "a.csv", "t,n,x,who,other\n" + "2026-01-01 00:30:00,1,1,007,a\nsoon,one,secret,7,b\n" * 2)
    domain = Domain((Interval("x", 0, 10, 10),))
    database = Database()
    fields = choose_columns(domain, (None, None, None), None, "who").fields(domain)
    rows = open_frame(path, database, fields).select("x", "who").collect("pyarrow").to_arrow().to_pydict()
    database.close()
    assert rows == {"x": [1.0, None] * 2, "who": ["007", "7"] * 2}


def test_times_of_a_csv_are_times(tmp_path: Path) -> None:
    rows = "".join(f"2026-01-01 00:{i:02}:00,2026-01-01,{i},01/02/2026,{i}.5\n" for i in range(60))
    path = text(tmp_path / "a.csv", "t,d,n,american,x\n" + rows)
    database = Database()
    kinds = {name: str(kind) for name, kind in open_frame(path, database).collect_schema().items()}
    database.close()
    assert kinds.pop("t").startswith("Datetime")
    assert kinds == {"d": "Date", "n": "Int64", "american": "String", "x": "Float64"}


def test_every_double_survives_being_written(tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    values = rng.integers(0, 2**64, 5000, dtype=np.uint64).view(np.float64)
    values = np.concatenate([values[np.isfinite(values)], LINE.intervals[0].edges])
    path = text(tmp_path / "a.csv", "x\n" + "\n".join(map(repr, values.tolist())) + "\n")
    assert (count(path, LINE).values == np.bincount(LINE.locate(values), minlength=10)).all()


def test_categories_may_be_words_that_look_like_numbers(tmp_path: Path) -> None:
    path = text(tmp_path / "a.csv", "category\n1\n2\n2\n")
    assert count(path, Categories(["1", "2"])).values.tolist() == [1, 2]
