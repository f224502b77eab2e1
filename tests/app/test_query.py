"""`sfumato query` by name: what is typed after --range, --where and --by, and the three forms of the answer."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner, Result

import sfumato as sf
from sfumato.app.cli import app

PLACE = sf.Grid(bounds=(0, 0, 1, 1), shape=(4, 4))
DAYS = sf.Times("2026-01-01", "2026-01-08", every="1 day", name="t")
MODES = sf.Categories(["bus", "bike, or trike", "=HYPERLINK(1)"], name="mode")
FARE = sf.Line(edges=[0, 5, 20, 100], name="fare")


def run(*arguments: object) -> Result:
    return CliRunner().invoke(app, ["query", *(str(a) for a in arguments)])


def ok(*arguments: object) -> str:
    result = run(*arguments)
    assert result.exit_code == 0, result.output
    return result.stdout


def told(*arguments: object) -> list[dict]:
    return json.loads(ok(*arguments, "--json"))["answers"]


def refused(*arguments: object) -> str:
    result = run(*arguments)
    assert result.exit_code == 2, result.output
    return " ".join(result.stderr.split())


def released(domain: sf.Domain, folder: Path) -> Path:
    plan = sf.plan(sf.unbounded(domain), sf.histogram(), epsilon=1, mechanism="identity")
    return plan.publish(np.arange(domain.size).reshape(domain.shape)).save(folder / "r.sfumato")


@pytest.fixture(scope="module")
def product(tmp_path_factory) -> Path:
    return released(PLACE * DAYS * MODES * FARE, tmp_path_factory.mktemp("query"))


def equal(row: dict, answer: sf.Answer, *place: int) -> bool:
    figures = ("value", "stderr", "low", "high", "cut_share")
    return all(row[name] == float(np.asarray(getattr(answer, name))[place]) for name in figures)


def test_values_without_negative_ones_are_asked_for(product):
    (row,) = told(product, "--where", "mode=bus", "--estimate", "nonnegative")
    assert equal(row, sf.load(product).answer(mode="bus", estimate="nonnegative"))
    assert "estimate='none' must be one of 'plain', 'nonnegative'" in refused(
        product, "--where", "mode=bus", "--estimate", "none"
    )


@pytest.mark.parametrize(
    ("typed", "where"),
    [
        (["mode=bus"], {"mode": "bus"}),
        (["mode=bike, or trike"], {"mode": "bike, or trike"}),
        (['mode="bike, or trike",bus'], {"mode": ["bus", "bike, or trike"]}),
        (["mode==HYPERLINK(1)"], {"mode": "=HYPERLINK(1)"}),
        (["t=2026-01-02/2026-01-04"], {"t": ("2026-01-02", "2026-01-04")}),
        (["t=2026-01-02T06:00,2026-01-04"], {"t": ("2026-01-02T06:00", "2026-01-04")}),
        (["fare=5,20", "mode=bus"], {"fare": (5, 20), "mode": "bus"}),
        (["fare=5/20"], {"fare": (5, 20)}),
        (["x=0,0.5"], {"x": (0, 0.5)}),
        (["place=0,0,0.5,1"], {"place": (0, 0, 0.5, 1)}),
    ],
)
def test_where_asks_by_name(product, typed, where):
    (row,) = told(product, *(part for one in typed for part in ("--where", one)))
    assert equal(row, sf.load(product).answer(where=where))


def test_ranges_in_front_are_those_of_the_place(product):
    asked = ["--range=0,0,0.5,0.5", "--range=0.1,0,1,1", "--where", "mode=bus", "--by", "t", "--by", "fare"]
    rows = told(product, *asked)
    table = sf.load(product).answer([(0, 0, 0.5, 0.5), (0.1, 0, 1, 1)], mode="bus", by=("t", "fare"))
    assert len(rows) == 2 * 7 * 3
    for i, row in enumerate(rows):
        assert equal(row, table, *np.unravel_index(i, (2, 7, 3)))
    assert rows[0]["range"] == "0,0,0.5,0.5" and rows[21]["range"] == "0.1,0,1,1"
    assert (rows[4]["t_low"], rows[4]["fare_low"], rows[4]["fare_high"]) == ("2026-01-02T00:00:00", 5.0, 20.0)


def test_a_range_and_a_group_of_the_same_axis_give_the_cells_of_the_range(product):
    rows = told(product, "--where", "t=2026-01-02/2026-01-04", "--by", "t")
    assert [row["t_low"] for row in rows] == ["2026-01-02T00:00:00", "2026-01-03T00:00:00"]


def test_csv_is_a_table_that_no_spreadsheet_runs(product):
    rows = list(csv.DictReader(io.StringIO(ok(product, "--by", "mode", "--csv"))))
    table = sf.load(product).answer(by="mode")
    assert [row["mode"] for row in rows] == ["bus", "bike, or trike", "'=HYPERLINK(1)"]
    assert list(rows[0]) == ["mode", "value", "stderr", "low", "high", "cut_share"]
    assert [float(row["value"]) for row in rows] == table.value.tolist()


def test_people_get_a_column_for_each_group(product):
    lines = ok(product, "--by", "mode", "--by", "t").splitlines()
    assert lines[0].split()[:3] == ["mode", "t_low", "t_high"]
    assert lines[8].startswith("bike, or trike  2026-01-01 00:00:00  2026-01-02 00:00:00")
    assert len([line for line in lines if "[" in line]) == 21


def test_cycles_go_by_the_names_of_their_cells(tmp_path):
    path = released(sf.Cycle("weekday", name="day") * sf.Categories([True, False], name="ill"), tmp_path)
    release = sf.load(path)
    (row,) = told(path, "--where", "day=Saturday,Sunday", "--where", "ill=true")
    assert equal(row, release.answer(day=["Saturday", "Sunday"], ill=True))
    assert [row["day"] for row in told(path, "--by", "day")][:2] == ["Monday", "Tuesday"]


@pytest.mark.parametrize("domain", [sf.Categories([18, 30], name="age"), sf.Categories(["a,b", "c"], name="age")])
def test_a_range_on_labels_is_a_label(domain, tmp_path):
    path = released(domain, tmp_path)
    first, second = domain.axes[0].labels
    rows = told(path, "--range", str(first), "--range", str(second))
    assert [row["range"] for row in rows] == [str(first), str(second)]
    assert [row["value"] for row in rows] == sf.load(path).counts.tolist()


def test_a_line_of_times_takes_from_and_to(tmp_path):
    path = released(DAYS, tmp_path)
    (row,) = told(path, "--range", "2026-01-02/2026-01-04")
    assert equal(row, sf.load(path).answer(("2026-01-02", "2026-01-04")))


def test_a_product_of_lines_takes_ends_for_all_axes_or_a_name(tmp_path):
    path = released(PLACE * sf.Line(0, 24, cells=4, name="hour"), tmp_path)
    release = sf.load(path)
    assert equal(told(path, "--range", "0,0,0,1,1,12")[0], release.answer((0, 0, 0, 1, 1, 12)))
    assert equal(
        told(path, "--range", "0,0,1,0.5", "--where", "hour=6,12")[0], release.answer((0, 0, 1, 0.5), hour=(6, 12))
    )
    assert equal(told(path, "--range", "0,0,1,0.5")[0], release.answer((0, 0, 1, 0.5)))


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ([], "ask something: --range"),
        (["--where", "bike"], "--where 'bike' must be NAME=VALUE"),
        (["--where", "mod=bike"], "--where 'mod=bike': 'mod' is no factor and no axis of this release"),
        (["--where", "mode=tram"], "--where 'mode=tram': 'tram' is no label of 'mode', which has 'bus', 'bike"),
        (["--where", "mode=bus", "--where", "mode=bus"], "--where speaks of 'mode' twice."),
        (["--where", "t=2026-01-02"], "--where 't=2026-01-02' must be FROM/TO"),
        (["--where", "fare=5"], "--where 'fare=5' needs 2 numbers"),
        (["--where", "fare=a,b"], "--where 'fare=a,b' is not a list of numbers"),
        (["--where", "place=0,1"], "--where 'place=0,1' needs 4 numbers"),
        (["--by", "hour"], "--by 'hour': 'hour' is no factor and no axis"),
        (["--range", "0,1"], "--range '0,1' needs 4 numbers"),
        (["--range", "0,0,1,1", "--where", "place=0,0,1,1"], "--range '0,0,1,1' could be a range of any of"),
        (["--by", "t", "--json", "--csv"], "--csv and --json are two forms."),
        (["--where", "t=2026-01-02Z/2026-01-03Z"], "t"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)  # fmt: skip
def test_what_is_wrong_is_named_by_its_option(product, options, words):
    if "--json" in options:
        assert run(product, *options).exit_code == 2
    else:
        assert words in refused(product, *options)
