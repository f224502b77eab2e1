"""Several files are one table by the names of their columns, and a path means the file that it names."""

from __future__ import annotations

import gzip
import os
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sfumato.counting import count
from sfumato.domain import Categories, Grid, Line
from sfumato.errors import InvalidInput

GRID = Grid((0, 0, 2, 2), (2, 2))
LINE = Line(0, 10, cells=10)


def write(path: Path, **columns: Any) -> str:
    """A small Parquet file; lists of numbers are doubles."""
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table(columns), path)
    return str(path)


def text(path: Path, content: str) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content, encoding="utf-8")
    return str(path)


def at(*values: float) -> list[int]:
    return np.bincount(np.array(values, int), minlength=10).tolist()


# --- several files ---


@pytest.mark.parametrize("engine", [None, "numpy", "native"])
@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_files_are_joined_by_name(kind: str, engine: Any, tmp_path: Path) -> None:
    if kind == "csv":
        text(tmp_path / "a.csv", "x,y\n0.5,1.5\n")
        text(tmp_path / "b.csv", "y,x\n1.5,0.5\n")
    else:
        write(tmp_path / "a.parquet", x=[0.5], y=[1.5])
        write(tmp_path / "b.parquet", y=[1.5], x=[0.5])
    assert count(tmp_path, GRID, engine=engine).values.tolist() == [[0, 2], [0, 0]]


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_one_person_in_two_files_of_another_order_keeps_one_record(kind: str, tmp_path: Path) -> None:
    x = np.arange(1000) % 10 + 0.5
    if kind == "csv":
        text(tmp_path / "a.csv", "x,who\n" + "".join(f"{v},7\n" for v in x))
        text(tmp_path / "b.csv", "who,x\n" + "".join(f"7,{v}\n" for v in x))
    else:
        write(tmp_path / "a.parquet", x=x, who=["7"] * 1000)
        write(tmp_path / "b.parquet", who=["7"] * 1000, x=x)
    counts = count(tmp_path, LINE, entity="who", max_per_entity=1)
    assert counts.values.sum() == 1
    assert (counts.report.rows, counts.report.cut, counts.report.entities_cut) == (2000, 1999, 1)


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_files_with_other_columns_are_refused(kind: str, tmp_path: Path) -> None:
    if kind == "csv":
        one, other = text(tmp_path / "a.csv", "x,private\n1,2\n"), text(tmp_path / "b.csv", "x,secret\n1,2\n")
    else:
        one, other = (
            write(tmp_path / "a.parquet", x=[1.0], private=[1]),
            write(tmp_path / "b.parquet", x=[1], secret=[1]),
        )
    with pytest.raises(InvalidInput) as refusal:
        count(tmp_path, LINE)
    assert str(refusal.value) == (
        f"{one!r} and {other!r} have different columns, and may hold different things. Nothing was counted. Give files "
        "of one kind; or join them in DuckDB (read_parquet or read_csv with union_by_name=true) and give the relation."
    )


@pytest.mark.parametrize(
    ("types", "said"),
    [
        ((pa.string(), pa.int64()), ("VARCHAR", "BIGINT")),
        ((pa.int64(), pa.float64()), ("BIGINT", "DOUBLE")),
        ((pa.string(), pa.binary()), ("VARCHAR", "BLOB")),
    ],
)
def test_entities_of_two_types_are_refused(types: tuple[pa.DataType, pa.DataType], said: Any, tmp_path: Path) -> None:
    """A string '7' and a double 7.0 would be two people with a share each."""
    values = {pa.string(): ["7"], pa.binary(): [b"7"], pa.int64(): [7], pa.float64(): [7.0]}
    paths = [write(tmp_path / f"{i}.parquet", x=[0.5], who=pa.array(values[t], t)) for i, t in enumerate(types)]
    with pytest.raises(InvalidInput) as refusal:
        count(tmp_path, LINE, entity="who", max_per_entity=1)
    assert str(refusal.value) == (
        f"Column 'who' is of type {said[0]} in {paths[0]!r} and of type {said[1]} in {paths[1]!r}: a string '7' and a "
        "number 7 would be two entities. Nothing was counted. Write it as one type in all files."
    )
    assert count(tmp_path, LINE).values.sum() == 2  # where nobody asks whose they are, the type does not matter


def test_whole_numbers_of_any_width_name_the_same_entity(tmp_path: Path) -> None:
    for i, kind in enumerate((pa.int16(), pa.int64(), pa.uint64(), pa.uint8())):
        write(tmp_path / f"{i}.parquet", x=[i + 0.5], who=pa.array([7], kind))
    assert count(tmp_path, LINE, entity="who", max_per_entity=1).values.sum() == 1


@pytest.mark.parametrize("engine", ["numpy", "native"])
def test_coordinates_of_any_type_of_number_are_joined_without_loss(engine: Any, tmp_path: Path) -> None:
    """The first file's type once decided: whole numbers there made 0.7 a 1 everywhere."""
    write(tmp_path / "a.parquet", x=pa.array([3], pa.int64()))
    write(tmp_path / "b.parquet", x=[0.7, 16777217.5])
    write(tmp_path / "c.parquet", x=pa.array([0.7], pa.float32()))
    write(tmp_path / "d.parquet", x=pa.array([0.3]).cast(pa.decimal128(30, 20)))
    assert count(tmp_path, LINE, engine=engine).values.tolist() == at(3, 0, 9, 0, 0)
    far = Line(16777217, 16777218, cells=2)
    assert count(tmp_path / "b.parquet", far, engine=engine).values[1] == 1


def test_coordinates_that_are_text_in_one_file_are_refused(tmp_path: Path) -> None:
    one, other = write(tmp_path / "a.parquet", x=[0.5]), write(tmp_path / "b.parquet", x=["0.5"])
    with pytest.raises(InvalidInput) as refusal:
        count(tmp_path, LINE)
    assert str(refusal.value) == (
        f"Column 'x' is of type DOUBLE in {one!r} and of type VARCHAR in {other!r}: axis 'x' takes one type. Nothing "
        "was counted. Write it as one type in all files."
    )


def test_partitions_are_columns(tmp_path: Path) -> None:
    write(tmp_path / "mode=bus" / "a.parquet", x=[0.5, 1.5])
    write(tmp_path / "mode=tram" / "a.parquet", x=[2.5])
    assert count(tmp_path, Categories(["bus", "tram"], name="mode")).values.tolist() == [2, 1]
    assert count(tmp_path, LINE).values.tolist() == at(0, 1, 2)


def test_nested_columns_do_not_shift_names(tmp_path: Path) -> None:
    table = pa.table({"who": [{"x": 9.5, "y": {"x": 8.5}}], "list": [[7.5, 6.5]], "x": [0.5]})
    pq.write_table(table, tmp_path / "a.parquet")
    write(tmp_path / "b.parquet", x=[1.5], who=table["who"], list=table["list"])
    assert count(tmp_path, LINE).values.tolist() == at(0, 1)


# --- what a path means ---


@pytest.mark.parametrize("name", ["g[1]", "s*r", "q?", "[", "]", "{a,b}", "b\\s", "sp ace", "quo'te", 'quo"te', "ä"])
@pytest.mark.parametrize("kind", ["parquet", "csv"])
@pytest.mark.parametrize("inside", [False, True], ids=["file", "folder"])
def test_a_path_that_exists_is_a_path(name: str, kind: str, inside: bool, tmp_path: Path) -> None:
    for i, called in enumerate((name, "g1", "sr", "sxr", "qx", "a", "b")):  # what the name as a pattern would match
        path = tmp_path / called / f"a.{kind}" if inside else tmp_path / f"{called}.{kind}"
        if kind == "csv":
            text(path, f"x\n{i}.5\n")
        else:
            write(path, x=[i + 0.5])
    given = tmp_path / name if inside else tmp_path / f"{name}.{kind}"
    assert count(given, LINE).values.tolist() == at(0)
    assert count(str(given), LINE, engine="native").values.tolist() == at(0)
    assert count([given], LINE).values.tolist() == at(0)


@pytest.mark.parametrize("pattern", ["", "*", "**/*.parquet", "*.parquet", "?*.parquet", "**"])
def test_hidden_and_unfinished_files_are_left_out(pattern: str, tmp_path: Path) -> None:
    write(tmp_path / "a.parquet", x=[0.5])
    for hidden in (".b.parquet", "_c.parquet", ".hidden/a.parquet", "_temporary/0/a.parquet", "_delta_log/a.parquet"):
        write(tmp_path / hidden, x=[5.5])
    write(tmp_path / "deep" / "er" / "_d" / "a.parquet", x=[5.5])
    (tmp_path / "_SUCCESS").touch()
    assert count(str(tmp_path / pattern) if pattern else tmp_path, LINE).values.tolist() == at(0)


def test_hidden_files_are_counted_where_they_are_named(tmp_path: Path) -> None:
    write(tmp_path / "_u" / ".v" / "a.parquet", x=[0.5])
    write(tmp_path / "_u" / "_w.parquet", x=[1.5])
    inside = tmp_path / "_u"
    assert count(inside / ".v", LINE).values.tolist() == at(0)
    assert count(str(inside / "_*.parquet"), LINE).values.tolist() == at(1)
    assert count(inside / "_w.parquet", LINE).values.tolist() == at(1)
    assert count(str(inside / ".v" / "*"), LINE).values.tolist() == at(0)


def test_each_file_of_a_folder_is_counted_once(tmp_path: Path) -> None:
    write(tmp_path / "2026" / "a.parquet", x=[0.5])
    (tmp_path / "2026" / "latest.parquet").symlink_to(tmp_path / "2026" / "a.parquet")
    (tmp_path / "current").symlink_to(tmp_path / "2026")
    (tmp_path / "2026" / "loop").symlink_to(tmp_path)
    (tmp_path / "nowhere").symlink_to(tmp_path / "missing")
    (tmp_path / "itself.parquet").symlink_to(tmp_path / "itself.parquet")
    os.link(tmp_path / "2026" / "a.parquet", tmp_path / "2026" / "hard.parquet")
    for data in (tmp_path, str(tmp_path / "**"), str(tmp_path / "*"), str(tmp_path / "**" / "*.parquet")):
        assert count(data, LINE).values.tolist() == at(0)
    assert count(tmp_path / "current", LINE).values.tolist() == at(0)  # a link that is named is followed


def test_a_file_named_twice_is_refused(tmp_path: Path) -> None:
    path = write(tmp_path / "a.parquet", x=[0.5])
    (tmp_path / "link.parquet").symlink_to(path)
    for data in ([path, path], [path, str(tmp_path)], [path, str(tmp_path / "link.parquet")]):
        with pytest.raises(InvalidInput, match=r"twice, or under two names: each of its records would"):
            count(data, LINE)


def test_endings_in_any_case(tmp_path: Path) -> None:
    write(tmp_path / "p" / "a.PARQUET", x=[0.5])
    write(tmp_path / "p" / "b.Pq", x=[1.5])
    assert count(tmp_path / "p", LINE).values.tolist() == at(0, 1)
    text(tmp_path / "c" / "a.CSV", "x\n0.5\n")
    text(tmp_path / "c" / "b.tsv", "x\n1.5\n")
    (tmp_path / "c" / "c.csv.GZ").write_bytes(gzip.compress(b"x\n2.5\n"))
    assert count(tmp_path / "c", LINE).values.tolist() == at(0, 1, 2)


def test_folders_that_cannot_be_counted_say_why(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(InvalidInput) as refusal:
        count(tmp_path / "empty", LINE)
    assert str(refusal.value) == (
        f"data={str(tmp_path / 'empty')!r} is a folder without files to count: none ends in .parquet, .pq, .csv, .tsv "
        "(also with .gz, .zst), and names that begin with '.' or '_' are left out. Nothing was counted. Check the path."
    )
    write(tmp_path / "a.parquet", x=[0.5])
    text(tmp_path / "a.csv", "x\n0.5\n")
    with pytest.raises(InvalidInput, match=r"mixes Parquet and CSV\. Nothing was counted\. Name the files of one kind"):
        count(tmp_path, LINE)


def test_what_is_no_parquet_file_says_so(tmp_path: Path) -> None:
    path = text(tmp_path / "a.parquet", "secret")
    with pytest.raises(InvalidInput) as refusal:
        count(path, LINE)
    assert str(refusal.value) == (
        f"{path!r} could not be read as Parquet: the engine stopped with InvalidInputException. Its message may quote "
        "a record and is not repeated. Nothing was counted. Check that the file or address is there, may be read, and "
        "is a whole Parquet file."
    )


def test_a_bad_address_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    for ending in ("parquet", "csv"):
        with pytest.raises(InvalidInput, match=r"Check that the file or address is there"):
            count(f"nosuch://nowhere.invalid/records.{ending}", LINE)


# --- names of folders ---


@pytest.mark.parametrize("engine", [None, "numpy", "native"])
@pytest.mark.parametrize("name", ["x", "X"])
def test_a_folder_does_not_replace_what_a_record_says(name: str, engine: Any, tmp_path: Path) -> None:
    write(tmp_path / f"{name}=9" / "a.parquet", x=[0.5, 1.5])
    assert count(tmp_path, LINE, engine=engine).values.tolist() == at(0, 1)


@pytest.mark.parametrize("kind", ["csv", "parquet"])
@pytest.mark.parametrize("folder", ["who", "WHO", "wh%6F", "k0", "k1"])
def test_one_person_in_many_folders_keeps_one_record(folder: str, kind: str, tmp_path: Path) -> None:
    for i in range(20):
        home = tmp_path / f"{folder}={i}"
        if kind == "csv":
            text(home / "a.csv", f"x,who\n{i % 10}.5,bob\n")
        else:
            write(home / "a.parquet", x=[i % 10 + 0.5], who=["bob"])
    for data in (tmp_path, f"{tmp_path}/*/*.{kind}", sorted(tmp_path.rglob(f"*.{kind}"))):
        assert count(data, LINE, entity="who", max_per_entity=1).values.sum() == 1  # type: ignore[arg-type]


def test_a_folder_still_names_what_no_record_says(tmp_path: Path) -> None:
    for mode in ("bus", "tram"):
        write(tmp_path / f"mode={mode}" / "a.parquet", x=[0.5])
    assert count(tmp_path, Categories(["bus", "tram"]), x="mode").values.tolist() == [1, 1]


@pytest.mark.parametrize("metadata", [{b"\xff\xfe": b"\xff"}, {b"geo": b"\xff\xfe"}, {b"geo": b"{"}, {b"a": b"\xff"}])
def test_metadata_that_are_no_text_keep_nobody_from_counting(metadata: dict[bytes, bytes], tmp_path: Path) -> None:
    """Other programs write what they like there."""
    table = pa.table({"x": [0.5, 1.5]})
    pq.write_table(table.replace_schema_metadata(metadata), tmp_path / "a.parquet")
    pq.write_table(table, tmp_path / "b.parquet")
    files = [tmp_path / "a.parquet", tmp_path / "b.parquet"]
    assert count(files, Line(0, 2, cells=2)).values.tolist() == [2, 2]
