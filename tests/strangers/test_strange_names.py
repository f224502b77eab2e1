"""Names and labels that somebody else chose: in tables, in pictures, on a terminal."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

import sfumato as sf
from sfumato.app.cli import app

LABELS = ["=cmd|' /C calc'!A0", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", "plain", "a=1", "＝1"]
STRANGE = [
    "$\\foo$",
    "$x^$",
    "a_b^c%d",
    "\\frac{",
    "$",
    "$$",
    "\x1b[31mred\x07",
    "\u202eright to left",
    "\x9b2J",
    "two\nlines",
    "=1",
]


def released(domain: sf.Domain) -> sf.Release:
    plan = sf.plan(sf.unbounded(domain), sf.histogram(), 1, mechanism="identity")
    return plan.publish(np.zeros(domain.shape, dtype=int), source=sf.SeededSource(1))


def test_a_spreadsheet_takes_no_label_and_no_name_for_a_formula(tmp_path: Path) -> None:
    release = released(sf.Categories(LABELS, name="=HYPERLINK(1)"))
    release.to_csv(tmp_path / "a.csv")
    with (tmp_path / "a.csv").open(newline="", encoding="utf-8") as file:
        header, *rows = csv.reader(file)
    assert header == ["'=HYPERLINK(1)", "count", "stderr"]
    assert [row[0] for row in rows] == [f"'{label}" for label in LABELS[:6]] + ["plain", "a=1", "'＝1"]
    assert min(float(row[1]) for row in rows) < 0  # numbers stay numbers
    release.to_parquet(tmp_path / "a.parquet")
    assert pq.read_table(tmp_path / "a.parquet").column("=HYPERLINK(1)").to_pylist() == LABELS


def test_numbers_stay_numbers_in_csv(tmp_path: Path) -> None:
    released(sf.Domain((sf.Interval("-x", -3.5, 0, 2), sf.Labels("n", (-2, 3))))).to_csv(tmp_path / "a.csv")
    header, first, *_ = (tmp_path / "a.csv").read_text("utf-8").splitlines()
    assert header.startswith('"\'-x_low"')
    assert first.startswith("-3.5,-1.75,-2,")


@pytest.mark.slow  # a picture for every name
@pytest.mark.parametrize("name", STRANGE)
@pytest.mark.parametrize("suffix", [".png", ".svg", ".pdf"])
def test_every_name_can_be_drawn(name: str, suffix: str, tmp_path: Path) -> None:
    import xml.etree.ElementTree as tree

    for domain in (
        sf.Line(0, 1, cells=4, name=name),
        sf.Categories([name, "b"], name=name),
        sf.Domain((sf.Labels(name, (name, "b")), sf.Interval("y", 0, 1, 3))),
    ):
        path = tmp_path / f"a{suffix}"
        released(domain).plot(path, title=name)
        if suffix == ".svg":
            tree.parse(path)


@pytest.mark.parametrize("name", STRANGE)
def test_every_name_can_be_drawn_over_time(name: str, tmp_path: Path) -> None:
    where = sf.Categories([name, "b"], name=name)
    ledger = sf.Ledger.create(tmp_path / "budget.db", epsilon=1)
    series = sf.Stream(sf.bounded(where), sf.histogram(), epsilon=1, window=2, ledger=ledger, name="rides")
    series.publish(0, np.array([4, 5]))
    series.plot(tmp_path / "a.png", title=name)


@pytest.mark.parametrize("name", STRANGE)
def test_a_terminal_obeys_no_name(name: str, tmp_path: Path) -> None:
    domain = sf.Categories([name, "b"], name=name)
    release = released(domain)
    path = release.save(tmp_path / "a.sfumato")
    shown = [
        str(release.guarantee),
        repr(release),
        release.guarantee.describe(),
        str(sf.plan(sf.unbounded(domain), sf.histogram(), 1)),
    ]
    for arguments in (["--range", "b"], ["--range", "unknown"], ["--range", "b", "--json"]):
        result = CliRunner().invoke(app, ["query", str(path), *arguments])
        shown.append(result.output)
        if "--json" in arguments:
            json.loads(result.output)
    for text in shown:
        assert text.replace("\n", "").isprintable()
