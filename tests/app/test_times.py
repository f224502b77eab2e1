"""Times as people write them: `sfumato stream` on text, zones and formats, and its preflight.

Exact totals are read off the releases, whose policy makes them public.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner, Result

import sfumato as sf
from sfumato.app.cli import app as APP

BEGIN = datetime(2026, 3, 1)
# The hours 0 to 5 of two days whose numbers can be a month as well; hour h of each day has h + 1 visits.
TIMES = [
    BEGIN + timedelta(days=day, hours=hour, minutes=7 * i)
    for day in (0, 1)
    for hour in range(6)
    for i in range(hour + 1)
]
WHERE = ["--x", "x", "--bounds=0,4", "--shape", "4", "--policy", "threshold", "--theta", "1", "--workload", "histogram"]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    sf.Ledger.create(tmp_path / "budget.db", epsilon=1)
    return tmp_path


def write(folder: Path, values: list[object], *, name: str = "visits.csv", x: float = 0.5) -> Path:
    table = pa.table({"t": values, "x": [x] * len(values)})
    if name.endswith(".parquet"):
        pq.write_table(table, folder / name)
    else:
        pyarrow.csv.write_csv(table, folder / name, pyarrow.csv.WriteOptions(quoting_style="none"))
    return folder / name


def run(folder: Path, data: Path, *more: object, start: str = "2026-03-01", stop: str = "2026-03-01T06:00") -> Result:
    base = ["--time", "t", "--step", "1h", "--window", 6, "--ledger", folder / "budget.db", "--name", "visits"]
    arguments = [data, *base, "--out", folder / "out", *WHERE, "--start", start, "--stop", stop, *more]
    return CliRunner().invoke(APP, ["stream", *map(str, arguments)])


def totals(folder: Path) -> list[int]:
    return [sf.load(path).total for path in sorted((folder / "out").iterdir())]


def untouched(folder: Path) -> bool:
    ledger = sf.Ledger(folder / "budget.db")
    return ledger.streams() == () and ledger.spent == 0 and not (folder / "out").exists()


def refused(folder: Path, data: Path, *more: object, **times: str) -> str:
    result = run(folder, data, *more, **times)
    assert result.exit_code == 2, result.output
    assert untouched(folder)
    return " ".join(result.stderr.split())


Writing = Callable[[datetime], str]
FORMATS: dict[str, tuple[Writing, list[str]]] = {
    "iso": (lambda t: t.isoformat(), []),
    "iso with a space": (lambda t: t.isoformat(" ", "minutes"), ["--time-format", "iso"]),
    "year first, slashes": (lambda t: f"{t:%Y/%m/%d %H:%M}", []),
    "digits beyond microseconds": (lambda t: f"{t:%Y-%m-%dT%H:%M}:59.9999999", []),
    "m/d/Y": (lambda t: f"{t:%m/%d/%Y %H:%M:%S}", ["--time-format", "%m/%d/%Y %H:%M:%S"]),
    "d.m.y": (lambda t: f"{t:%d.%m.%y %H:%M}", ["--time-format", "%d.%m.%y %H:%M"]),
    "a quarter past one in the morning": (lambda t: f"{t:%d %b %Y %I:%M %p}", ["--time-format", "%d %b %Y %I:%M %p"]),
    "one number": (lambda t: f"{t:%Y%m%d%H%M}", ["--time-format", "%Y%m%d%H%M"]),
}


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
@pytest.mark.parametrize("name", FORMATS)
def test_a_declared_format_is_read_and_every_record_lies_in_its_hour(folder, name, suffix):
    written, options = FORMATS[name]
    data = write(folder, [written(time) for time in TIMES], name=f"visits{suffix}")
    if suffix == ".parquet" and not options:
        text = refused(folder, data)
        assert "Column 't' is of type String, which is no time. Nothing was counted, drawn or recorded." in text
        options = ["--time-format", "iso"]
    assert run(folder, data, *options).exit_code == 0
    assert totals(folder) == [1, 2, 3, 4, 5, 6]


def test_whole_numbers_can_be_declared_to_be_dates(folder):
    data = write(folder, [int(f"{time:%Y%m%d%H%M}") for time in TIMES], name="visits.parquet")
    assert run(folder, data, "--time-format", "%Y%m%d%H%M").exit_code == 0
    assert totals(folder) == [1, 2, 3, 4, 5, 6]


@pytest.mark.parametrize("written", ["%m/%d/%Y %H:%M:%S", "%m/%d/%Y %I:%M:%S %p", "%d-%m-%Y %H:%M:%S", "%d/%m/%y"])
def test_a_column_in_no_declared_format_is_refused_and_no_window_is_spent(folder, written):
    """A reader that guesses takes the first of March for the third of January: twenty-four empty hours."""
    data = write(folder, [f"{time:{written}}" for time in TIMES])
    assert "no value of column 't' can be read as a time such as 2026-03-01T14:30." in refused(folder, data)
    other = refused(folder, data, "--time-format", "%Y.%m.%d")
    assert "no value of column 't' can be read as --time-format '%Y.%m.%d' says." in other
    assert "no value of column 't'" in refused(folder, data, "--check")


def test_single_values_that_cannot_be_read_are_no_records_and_are_told(folder):
    odd = ["soon", "03/01/2026 05:00", "2026-02-30T05:00", "2026-03-01T05:00+01:00", "10/11/12", "1772341200"]
    data = write(folder, [*(time.isoformat() for time in TIMES), *odd, None, ""])
    result = run(folder, data)
    assert result.exit_code == 0, result.output
    assert totals(folder) == [1, 2, 3, 4, 5, 6]
    assert "For your eyes only (private): 6 times could not be read: no records." in result.stderr
    assert "6 times" not in result.stdout
    assert not any(value in result.stderr for value in odd)


def test_offsets_are_followed_and_values_without_one_are_unreadable_among_them(folder):
    zone = "+02:00"
    data = write(folder, [*((time + timedelta(hours=2)).isoformat() + zone for time in TIMES), "2026-03-01T05:00"])
    result = run(folder, data, start="2026-03-01T00:00Z", stop="2026-03-01T08:00+02:00")
    assert result.exit_code == 0, result.output
    assert totals(folder) == [1, 2, 3, 4, 5, 6]
    assert "1 times could not be read" in result.stderr


@pytest.mark.parametrize(
    ("values", "name", "format_"),
    [
        ([time.replace(tzinfo=UTC) for time in TIMES], "zoned.parquet", []),
        ([time.isoformat() + "Z" for time in TIMES], "zoned.csv", []),
        ([time.isoformat() + "+0000" for time in TIMES], "zoned.csv", ["--time-format", "%Y-%m-%dT%H:%M:%S%z"]),
    ],
)
def test_a_zone_on_one_side_alone_is_refused(folder, values, name, format_):
    data = write(folder, values, name=name)
    zoned = {"start": "2026-03-01T00:00+00:00", "stop": "2026-03-01T06:00Z"}
    assert refused(folder, data, *format_, start="2026-03-01", stop=zoned["stop"]) == (
        "Error: --start '2026-03-01' has no time zone, and column 't' has one. Nothing was counted, drawn or recorded. "
        "Say which, as in 2026-03-01T00:00+00:00."
    )
    assert "--stop '2026-03-01T06:00' has no time zone" in refused(folder, data, *format_, start=zoned["start"])
    naive = write(folder, [time.isoformat() for time in TIMES], name="naive.csv")
    assert "--start '2026-03-01T00:00+00:00' has a time zone, and column 't' has none" in refused(
        folder, naive, **zoned
    )
    assert run(folder, data, *format_, **zoned).exit_code == 0
    assert totals(folder) == [1, 2, 3, 4, 5, 6]


@pytest.mark.parametrize(
    ("format_", "message"),
    [
        ("%H:%M", "does not say year, month and day"),
        ("%m/%d %H:%M", "does not say year, month and day"),
        ("%Y-%m-%d %Q", "is not a format such as '%m/%d/%Y %H:%M' or 'iso'"),
    ],
)
def test_a_format_that_is_none_is_refused(folder, format_, message):
    data = write(folder, [time.isoformat() for time in TIMES])
    assert message in refused(folder, data, "--time-format", format_)


def test_a_format_for_times_or_for_whole_steps_is_refused(folder):
    typed = write(folder, list(TIMES), name="typed.parquet")
    assert "is for text, and column 't' is of type Datetime" in refused(folder, typed, "--time-format", "%Y-%m-%d")
    numbers = write(folder, list(range(60)), name="numbers.parquet")
    text = refused(folder, numbers, "--time-format", "iso", "--step", "10", start="0", stop="60")
    assert "does not go with --step '10', a whole number" in text
    assert "is not a column of the data" in refused(folder, write(folder, ["a"]), "--time", "when")


# ---------------------------------------------------------------------------------------------- the preflight


def test_the_preflight_of_a_stream_tells_what_lies_in_no_step_and_opens_no_account(folder):
    data = write(folder, [*(time.isoformat() for time in TIMES), "soon", None])
    result = run(folder, data, "--check", stop="2026-03-03")
    assert result.exit_code == 0, result.output
    assert "44 rows read, 1 without a time, 1 with a time that cannot be read, 0 in no step." in result.stdout
    assert "42 rows read, 0 without coordinates, 0 outside the bounds." in result.stdout
    assert untouched(folder)
    late = run(folder, data, "--check", start="2027-03-01", stop="2027-03-02")
    assert late.exit_code == 8
    assert "Gross: 95.5 % of the rows lie in no step. Are the first step, the zone and the format right?" in late.stdout
    assert untouched(folder)


def test_the_preflight_of_a_stream_finds_what_lies_outside(folder):
    data = write(folder, [time.isoformat() for time in TIMES], x=-73.9)
    told = run(folder, data, "--check", "--json", stop="2026-03-03")
    assert told.exit_code == 8
    answer = json.loads(told.stdout)
    assert (answer["ok"], answer["times"]["ok"], answer["records"]["outside"], answer["steps"]) == (False, True, 42, 48)
    assert untouched(folder)


def test_a_stream_that_is_new_needs_a_start_to_be_looked_at(folder):
    data = write(folder, [time.isoformat() for time in TIMES])
    base = [data, "--time", "t", "--step", "1h", "--window", 6, "--ledger", folder / "budget.db", "--name", "visits"]
    arguments = [*base, "--out", folder / "out", *WHERE, "--stop", "2026-03-02", "--check"]
    result = CliRunner().invoke(APP, ["stream", *map(str, arguments)])
    assert result.exit_code == 2 and "stream 'visits' is new: say when its first step begins" in result.stderr
    assert untouched(folder)
    assert run(folder, data).exit_code == 0
    spent = len(sf.Ledger(folder / "budget.db").stream("visits"))
    again = CliRunner().invoke(APP, ["stream", *map(str, [*arguments, "--json"])])
    assert again.exit_code == 0, again.output
    assert json.loads(again.stdout)["times"]["in_no_step"] == 21  # those of the second day
    assert len(sf.Ledger(folder / "budget.db").stream("visits")) == spent == 6


def test_an_unattended_stream_warns_and_publishes(folder):
    """Whether a step appears must not depend on the data."""
    outside = write(folder, [time.isoformat() for time in TIMES], x=-73.9)
    result = run(folder, outside)
    assert result.exit_code == 0
    assert "Warning: All (100 %) of the records lie outside the bounds" in result.stderr
    assert result.stderr.count("Warning: ") == 1  # once a run, not once a step
    assert totals(folder) == [1, 2, 3, 4, 5, 6]


def test_a_stream_that_begins_elsewhere_is_warned_of_once(folder):
    data = write(folder, [time.isoformat() for time in TIMES])
    result = run(folder, data, start="2027-03-01", stop="2027-03-01T06:00")
    assert result.exit_code == 0
    assert "Warning: All (100 %) of the rows lie in no step." in result.stderr
    assert totals(folder) == [0] * 6


def test_nothing_is_warned_of_where_nothing_is_wrong(folder):
    data = write(folder, [time.isoformat() for time in TIMES if time < BEGIN + timedelta(days=1)])
    assert "Warning" not in run(folder, data).stderr
