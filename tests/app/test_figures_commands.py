"""The command line for rates, changes and suppression: the figures of the library, in three forms, and refusals."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import sfumato as sf
from sfumato.app.cli import app

REGION = sf.Categories(["north", "south", "empty"], name="region")
STATE = sf.Categories(["ill", "well"], name="state")


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[sf.Release]:
    """Two years of one place, and how many live there."""
    monkeypatch.chdir(tmp_path)
    plan = sf.plan(sf.unbounded(REGION * STATE), sf.histogram(), epsilon=1, mechanism="identity")
    made = []
    for year, counts in ((2025, [[300, 700], [40, 60], [0, 0]]), (2026, [[600, 700], [20, 60], [0, 0]])):
        made.append(plan.publish(np.array(counts), source=sf.SeededSource(year)))
        made[-1].save(f"{year}.sfumato")
    Path("people.csv").write_text("region,people\nsouth,2000\nnorth,50000\nempty,10\n", encoding="utf-8")
    return made


def run(*words: str) -> str:
    result = CliRunner().invoke(app, list(words), catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.stdout


def refused(*words: str) -> str:
    result = CliRunner().invoke(app, list(words), catch_exceptions=False)
    assert result.exit_code == 2
    return result.stderr


def test_rates(files: list[sf.Release]) -> None:
    found: dict[str, Any] = json.loads(run("rate", "2026.sfumato", "--case", "ill", "--by", "region", "--json"))
    truth = files[1].rate(case="ill", by="region")
    assert [row["low"] for row in found["figures"]] == truth.low.tolist()
    assert found["figures"][2]["high"] is None and "may be 0" in found["figures"][2]["note"]
    text = run("rate", "2026.sfumato", "--case", "state=ill", "--by", "region", "--per", "1000", "--over", "people.csv")
    assert "per 1,000" in text and "ε = 1 per record" in text
    over = ["--over", "2025.sfumato", "--csv"]
    lines = run("rate", "2026.sfumato", "--case", "ill", "--by", "region", *over).splitlines()
    assert lines[0] == "region,value,low,high,note" and lines[3].split(",")[3] == "inf"
    together = run("rate", "2026.sfumato", "--case", "ill,well", "--where", "region=north")
    assert together.splitlines()[2].strip().startswith("1")
    assert "no label, nor a list of labels" in refused("rate", "2026.sfumato", "--case", "dead")
    result = CliRunner().invoke(app, ["rate", "2026.sfumato", "--case", "ill", "--csv", "--json"])
    assert result.exit_code == 2 and "two forms" in json.loads(result.stdout)["error"]["message"]


def test_changes(files: list[sf.Release]) -> None:
    found = json.loads(run("compare", "2026.sfumato", "2025.sfumato", "--by", "region", "--json"))
    truth: Any = sf.difference(files[1], files[0])
    assert [row["low"] for row in found["figures"]] == truth.answer(by="region").low.tolist()
    assert found["promise"].startswith("new: ") and "\nold: " in found["promise"]
    text = run("compare", "2026.sfumato", "2025.sfumato", "--by", "region", "--percent", "--where", "state=ill")
    assert "Change in per cent by region" in text and "the old figure may be 0" in text
    assert run("compare", "2026.sfumato", "2025.sfumato").startswith("all: ")
    assert "are one release" in refused("compare", "2026.sfumato", "2026.sfumato")


def test_suppression(files: list[sf.Release]) -> None:
    found = json.loads(run("suppress", "2026.sfumato", "--by", "region", "--below", "50", "--json"))
    assert found["figures"][2] == {
        "region": "empty",
        "value": None,
        "low": None,
        "high": None,
        "reason": "below 50",
    }
    assert (found["shown"], found["all"]) == (2, 3) and "2 of 3 figures are shown" in found["summary"]
    assert found["figures"][0]["low"] == files[1].suppress(by="region", below=50).low[0]
    text = run("suppress", "2026.sfumato", "--by", "region", "--largest", "1", "--off-by", "0.1", "--chance", "0.01")
    assert "false coverage rate" in text and "not among the 1 largest" in text
    assert "Nothing is shown" in run("suppress", "2026.sfumato", "--below", "1e9")
    assert "needs a rule" in refused("suppress", "2026.sfumato")


def test_ranges_of_changes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    plan = sf.plan(sf.unbounded(sf.Line(0, 8, cells=8)), sf.histogram(), epsilon=1, mechanism="identity")
    for name, count in (("old", 50), ("new", 80)):
        plan.publish(np.full(8, count), source=sf.SeededSource(count)).save(f"{name}.sfumato")
    lines = run("compare", "new.sfumato", "old.sfumato", "--range", "0,4", "--range", "4,8").splitlines()
    assert lines[0].startswith("0,4: 1") and lines[1].startswith("4,8: ") and "95% within [" in lines[1]
    rows = json.loads(run("compare", "new.sfumato", "old.sfumato", "--range", "0,4", "--range", "4,8", "--json"))
    assert [row["range"] for row in rows["figures"]] == ["0,4", "4,8"]
