"""The same cell and the same choice on every engine, for values chosen to break them.

Every engine of `counting_engines.py` counts every case, by all of its paths: its own expression, batches brought here,
and one or two records a person. What is expected comes from definitions, record by record, and not from the library.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import pyarrow as pa
import pytest
from counting_engines import ENGINES, Engine
from numpy.typing import NDArray

from sfumato.counting import CountReport, count
from sfumato.counting.keyed import Keyed, priorities
from sfumato.counting.persons import person_numbers
from sfumato.domain import Categories, Cycle, Domain, Grid, Line, Times
from sfumato.errors import InvalidInput
from sfumato.noise import SeededSource

pytestmark = [
    pytest.mark.filterwarnings("ignore::DeprecationWarning:ibis.*"),
    pytest.mark.filterwarnings("ignore::sfumato.DataWarning"),
]
GRID = Grid(bounds=(-74.3, 40.5, -73.7, 40.95), shape=(60, 45))
Cell = int | None


@dataclass(frozen=True)
class Case:
    """A table, and for each of its records the cell by definition (None: no record) and whether it lies outside."""

    table: pa.Table
    domain: Domain
    columns: dict[str, str]
    cells: list[Cell]
    outside: list[bool]
    needs: frozenset[str] = field(default_factory=frozenset)


def on(edges: NDArray[np.float64], value: float) -> Cell:
    """The last cell whose lower edge is not above the value: comparison with the edges, and clamping."""
    if np.isnan(value):
        return None
    return int(np.clip(np.searchsorted(edges, value, side="right") - 1, 0, len(edges) - 2))


def doubles() -> Case:
    """Rounded numbers, edges and their neighbours, infinities, zeros of both signs, NaN and null."""
    rng = np.random.default_rng(5)
    columns, cells, outside = [], np.zeros(2500, np.int64), np.zeros(2500, np.bool_)
    absent = rng.random(2500) < 0.02
    for axis in GRID.intervals:
        near = [np.nextafter(axis.edges, direction) for direction in (-np.inf, np.inf)]
        rounded = [np.round(rng.uniform(axis.low, axis.high, 2000), places) for places in (1, 2, 3)]
        hard = np.concatenate([axis.edges, *near, [np.inf, -np.inf, 0.0, -0.0, 1e300, -1e300], *rounded])
        column = rng.choice(hard, 2500)
        columns.append(column)
        cells = cells * axis.cells + [on(axis.edges, value) or 0 for value in column]
        outside |= (column < axis.low) | (column > axis.high)
    table = {
        "lon": pa.array(np.where(absent & (rng.random(2500) < 0.5), np.nan, columns[0])),
        "lat": pa.array(columns[1], mask=absent),
    }
    found = [None if gone else int(cell) for cell, gone in zip(cells, absent, strict=True)]
    beyond = [bool(out) and not gone for out, gone in zip(outside, absent, strict=True)]
    return Case(pa.table(table), GRID, {"x": "lon", "y": "lat"}, found, beyond, frozenset({"nan"}))


def numbers(values: list[Any], kind: pa.DataType, line: Domain, *needs: str) -> Case:
    """Numbers of any type: the cell is that of the nearest double, computed from what is written."""
    axis = line.intervals[0]
    near = [None if value is None else float(Fraction(value)) for value in values]
    cells = [None if value is None else on(axis.edges, value) for value in near]
    outside = [value is not None and not axis.low <= value <= axis.high for value in near]
    return Case(pa.table({"x": pa.array(values, kind)}), line, {"x": "x"}, cells, outside, frozenset(needs))


def odd(name: str, *needs: str) -> Case:
    """A column that is not politely named, beside others that it could be taken for."""
    table = pa.table({"other": [7.0, 7.0, 7.0], name: [0.5, 1.5, 1.5], "c1": [1.5, 0.5, 0.5]})
    return Case(table, Grid((0, 0, 2, 2), (2, 2)), {"x": name, "y": "c1"}, [1, 2, 2], [False] * 3, frozenset(needs))


def twins() -> Case:
    table = pa.table({"x": [0.5, 0.5], "X": [1.5, 1.5]})
    return Case(table, Grid((0, 0, 2, 2), (2, 2)), {"x": "X", "y": "x"}, [2, 2], [False] * 2, frozenset({"twins"}))


def labels() -> Case:
    kinds = ["bus", None, "bike", "BUS", "", "straße", "bus ", "bus"]
    ages = [1, 2, 3, 2, 2, 1, 9, 3]
    table = pa.table({"kind": pa.array(kinds), "age": pa.array(ages, pa.int64())})
    one, other = Categories(["bike", "bus", "straße", "rest"], name="kind", other="rest"), (3, 1, 2, 0)
    domain = one * Categories(list(other), name="age", other=0)
    cells: list[Cell] = []
    outside = []
    for kind, age in zip(kinds, ages, strict=True):
        known = ["bike", "bus", "straße"].index(kind) if kind in ("bike", "bus", "straße") else 3
        cells.append(None if kind is None else known * 4 + (other.index(age) if age in other else 3))
        outside.append(cells[-1] is not None and (known == 3 or age not in other))
    return Case(table, domain, {}, cells, outside)


def moments() -> list[datetime.datetime]:
    """Around both changes of New York's clocks, and a step's edge by a microsecond."""
    utc = datetime.UTC
    nights = [datetime.datetime(2026, 3, 8, 7, tzinfo=utc), datetime.datetime(2026, 11, 1, 6, tzinfo=utc)]
    near = [-3_600_000_000, -1, 0, 1, 1_800_000_000, 3_600_000_000]
    return [night + datetime.timedelta(microseconds=n) for night in nights for n in near]


def zoned() -> Case:
    zone = ZoneInfo("America/New_York")
    values: list[Any] = [*moments(), None]
    cells = [None if value is None else value.astimezone(zone).hour for value in values]
    table = pa.table({"t": pa.array(values, pa.timestamp("us", "UTC"))})
    domain = Cycle("hour of day", name="t", tz="America/New_York")
    return Case(table, domain, {}, cells, [False] * len(values), frozenset({"zones"}))


def plain_times() -> Case:
    values: list[Any] = [*(moment.replace(tzinfo=None) for moment in moments()), None, datetime.datetime(1969, 7, 20)]
    first, last, hour = datetime.datetime(2026, 3, 8), datetime.datetime(2026, 11, 2), datetime.timedelta(hours=1)
    cells: list[Cell] = []
    outside = []
    for value in values:
        steps = (
            None if value is None else (min(max(value, first), last - datetime.timedelta.resolution) - first) // hour
        )
        cells.append(steps)
        outside.append(value is not None and not first <= value < last)
    table = pa.table({"t": pa.array(values, pa.timestamp("us"))})
    return Case(table, Times("2026-03-08", "2026-11-02", every="1 h"), {}, cells, outside)


BIG = [0, 1, -1, 2**53, 2**53 + 1, 2**53 - 1, 2**62 + 1, 2**63 - 1, -(2**63), None]
CASES: dict[str, Callable[[], Case]] = {
    "doubles": doubles,
    "decimals": lambda: numbers(
        [Decimal(n) / 1000 for n in range(0, 1000, 7)] + [None, Decimal("0.301"), Decimal("-1")],
        pa.decimal128(6, 3), Line(0, 1, cells=997), "decimals",
    ),
    "big integers": lambda: numbers(BIG, pa.int64(), Line(-(2.0**63), 2.0**63, cells=1 << 12)),
    "about 2^53": lambda: numbers(BIG, pa.int64(), Line(0, 2.0**54, cells=2)),
    "unsigned": lambda: numbers([0, 2**63, 2**64 - 1, 2**63 - 1], pa.uint64(), Line(0, 2.0**64, cells=4), "unsigned"),
    "a dot": lambda: odd("geo.lon"),
    "a backtick": lambda: odd("`x`"),
    "quotes": lambda: odd("a \"b\" 'c'; --"),
    "spaces": lambda: odd(" a  b "),
    "twins": twins,
    "labels": labels,
    "times": plain_times,
    "times with zones": zoned,
}  # fmt: skip
ONCE = ("RecordBatchReader", "Scanner", "Capsule")
"""What can be read once."""
MATRIX = [
    pytest.param(engine, case, id=f"{name}-{title}", marks=engine.marks)
    for name, engine in ENGINES.items()
    for title, case in CASES.items()
]


def fits(engine: Engine, case: Case) -> None:
    lacking = engine.lacks & case.needs
    if lacking == {"nan"}:
        return  # a null is as good: neither is a record
    if lacking:
        pytest.skip(f"the engine holds no {' or '.join(sorted(lacking))}")


def expected(case: Case) -> NDArray[np.int64]:
    cells = [cell for cell in case.cells if cell is not None]
    return np.bincount(cells, minlength=case.domain.size).reshape(case.domain.shape)


@pytest.mark.parametrize(("engine", "make"), MATRIX)
def test_every_record_is_in_the_cell_of_the_definition(
    engine: Engine, make: Callable[[], Case], tmp_path: Path
) -> None:
    case = make()
    fits(engine, case)
    report = CountReport(
        rows=len(case.cells), without_coordinates=case.cells.count(None), unreadable=None, outside=sum(case.outside)
    )
    data = engine.make(case.table, tmp_path)
    for way in (None,) if type(data).__name__ in ONCE else (None, "numpy", "native"):
        try:
            counts = count(data, case.domain, columns=case.columns, engine=way)  # type: ignore[arg-type]
        except InvalidInput as refusal:
            assert (way, str(refusal)[:24]) == ("native", "engine='native' on Ibis "), refusal
            continue
        assert (counts.values == expected(case)).all(), way
        assert replace(counts.report, in_other_box=None) == report, way


def kept_by_hand(persons: NDArray[np.uint64], cells: NDArray[np.int64], limit: int, size: int) -> NDArray[np.int64]:
    """The choice by its definition, person by person, under the key of the seed."""
    key = Keyed.drawn(limit, SeededSource(4)).key
    tally = np.zeros(size, np.int64)
    for person in np.unique(persons):
        theirs = np.sort(cells[persons == person])
        drawn = priorities(key, np.full(len(theirs), person), np.arange(len(theirs), dtype=np.uint64))
        np.add.at(tally, theirs[np.argsort(drawn, kind="stable")[:limit]], 1)
    return tally


@pytest.mark.parametrize("limit", [1, 3])
@pytest.mark.parametrize("named", [False, True], ids=["numbers", "names"])
@pytest.mark.parametrize(
    "engine", [pytest.param(engine, id=name, marks=engine.marks) for name, engine in ENGINES.items()]
)
def test_the_same_key_keeps_the_same_records_on_every_engine_in_any_order(
    engine: Engine, named: bool, limit: int, tmp_path: Path
) -> None:
    rng = np.random.default_rng(6)
    who, cells = rng.zipf(1.7, 600) % 90, rng.integers(0, 25, 600)
    names: Any = [f"person {w} of {'x' * (w % 30)}" for w in who] if named else who
    persons, _ = person_numbers(pa.array(names), Keyed.drawn(limit, SeededSource(4)).naming_key)
    table = pa.table({"who": names, "x": cells + 0.5}).take(rng.permutation(600))
    line = Line(0, 25, cells=25)
    counts = count(engine.make(table, tmp_path), line, entity="who", max_per_entity=limit, source=SeededSource(4))
    assert (counts.values == kept_by_hand(persons, cells, limit, 25)).all()
    records = np.bincount(who)
    assert counts.values.sum() == np.minimum(records, limit).sum()
    assert counts.report.entities_cut == np.count_nonzero(records > limit)
