"""What the studio is asked, and what it says: the library's words beside the field, and no private value."""

from __future__ import annotations

import base64
import json

import numpy as np
import pytest

import sfumato as sf
from sfumato.app.studio import areas, planned
from sfumato.app.studio.hearing import heard, listening
from sfumato.app.studio.python import python_of, with_sf
from sfumato.app.studio.routes import Studio, make_app
from sfumato.app.studio.said import located, publication_of
from sfumato.mechanism import reference_population

pytest.importorskip("starlette", reason="needs sfumato[studio]")
testclient = pytest.importorskip("starlette.testclient", reason="the client of Starlette needs httpx2")

TABLES = {
    "hide": "move(0.2)",
    "ask": "ranges()",
    "epsilon": "1/2",
    "domain": {"place": {"bounds": [0, 0, 1, 1], "shape": [8, 8]}},
    "data": {"path": "visits.csv", "columns": {"x": "x", "y": "y"}},
    "account": {"ledger": "budget.db"},
    "output": {"file": "visits.sfumato"},
}
SECRET = "0.7391246"  # stands in the data alone


@pytest.fixture
def folder(tmp_path):
    """Data with a value that is to stay where it is, and an account."""
    points = np.random.default_rng(5).random((300, 2)).round(4)
    lines = ["x,y,mode", *(f"{x},{y},bus" for x, y in points), *(f"{SECRET},{SECRET},bus" for _ in range(200))]
    (tmp_path / "visits.csv").write_text("\n".join(lines) + "\n")
    sf.Ledger.create(tmp_path / "budget.db", epsilon=3)
    return tmp_path


@pytest.fixture
def post(folder):
    """(status, what is said) to a request, with nobody before the studio."""
    studio = Studio(folder=folder, file="visits.csv")
    client = testclient.TestClient(make_app(studio))

    def asked(name, **more):
        answer = client.post(f"/api/{name}", json=more)
        assert SECRET[:6] not in answer.text
        return answer.status_code, answer.json()

    with heard():
        yield asked
    studio.close()


def finished(post, kind, **tables):
    """What came of a piece of work."""
    publication = {**TABLES, **tables}
    status, told = post(kind, publication=publication, agreed=True)
    assert status == 200
    while told["running"]:
        _, told = post("job", kind=kind, publication=publication)
    return told


def unpacked(text):
    return np.frombuffer(base64.b64decode(text), "<f4")


def test_to_begin_with_it_names_what_is_there(post, folder):
    (folder / "old.sfumato").touch()
    (folder / ".hidden.csv").touch()
    _, told = post("start")
    assert told["data"] == "visits.csv" and told["publication"] is None
    assert told["listed"] == {"data": ["visits.csv"], "releases": ["old.sfumato"], "ledgers": ["budget.db"], "maps": []}
    assert str(folder.parent) not in json.dumps(told)


def test_columns_are_names_and_types(post):
    _, told = post("columns", path="visits.csv")
    assert [one["name"] for one in told["columns"]] == ["x", "y", "mode"]
    assert told["guess"]["place"] == ["x", "y"]
    status, told = post("columns", path="nothing.csv")
    assert status == 200
    assert told["error"]["message"] == "there is no file 'nothing.csv' there (data.path). Nothing was read."


@pytest.mark.parametrize(
    ("changed", "field", "message"),
    [
        ({"epsilon": "-1"}, "epsilon", "epsilon='-1' must be greater than zero."),
        ({"epsilon": None}, "epsilon", "epsilon = None must be a number, or text such as '1/3'."),
        ({"hide": "mve(3)"}, "hide", "'mve' is none of move"),
        ({"ask": "sums()"}, "ask", "'sums' is none of"),
        ({"domain": {"place": {"bounds": [0, 0, 1, 1], "shape": "8"}}}, "domain.place.shape", "shape = '8' must be"),
        ({"domain": {"place": {"shape": [8, 8]}}}, "domain.place", "does not say what it is: give bounds, edges"),
        ({"domain": {"place": {"bounds": [0, 0, 1, 1]}}}, "domain.place.shape", "shape is missing"),
        ({"domain": {}}, "domain", "has 0 factors"),
        ({"max_per_entity": 0}, None, "max_per_entity"),
        ({"hidden": "x"}, None, "'hidden' is no key here"),
        ({"data": {"path": 3}}, "data.path", "path = 3 must be text in quotes"),
    ],
)
def test_what_is_refused_is_said_with_its_field(post, changed, field, message):
    for name in ("describe", "plan"):
        status, told = post(name, publication={**TABLES, **changed})
        assert status == 200
        assert message in told["error"]["message"] and not told["error"]["message"].startswith("studio")
        assert told["error"]["field"] == field or field is None


def test_messages_without_a_place_stay_as_they_are():
    assert located("[x] y = 3") == ("[x] y = 3", None)
    assert located("studio: [domain.place] Grid is too large.") == ("Grid is too large.", "domain.place")


def test_a_plan_is_the_library_s(post):
    _, told = post("plan", publication=TABLES)
    plan = publication_of(TABLES, ".").plan()
    assert told["mechanism_name"] == plan.mechanism.name
    assert told["typical_error"] == pytest.approx(plan.typical_error)
    assert [one["typical"] for one in told["scales"]] == [one.typical_error for one in plan.by_scale]
    _, words = post("words", publication=TABLES)
    assert "\n\n".join([words["promise"], *words["limits"]]) == plan.guarantee.describe()


def test_warnings_of_the_library_are_told(post):
    doubtful = {"hide": "move(20)", "domain": {"place": {"bounds": [-60, -30, 0, 30], "shape": [8, 8]}}}
    with pytest.warns(sf.DeclarationWarning) as said:
        publication_of({**TABLES, **doubtful}, ".")
    _, told = post("describe", publication={**TABLES, **doubtful})
    assert told["warnings"] == [str(said[0].message)]


def test_the_preview_is_of_made_up_people_and_of_no_others(post, folder, monkeypatch):
    monkeypatch.setattr(sf.Publication, "count", lambda *a, **k: pytest.fail("the data were read"))
    _, told = post("preview", publication={**TABLES, "records": 5000})
    domain = publication_of(TABLES, folder).domain
    assert np.array_equal(unpacked(told["truth"]), reference_population(domain, 5000).ravel())
    assert told["records"] == 5000 and len(unpacked(told["value"])) == 64
    noise = unpacked(told["value"]) - unpacked(told["truth"])
    assert 0 < np.abs(noise).max() < 500  # seeded: the same every time
    (folder / "visits.csv").unlink()
    assert "error" not in post("preview", publication={**TABLES, "records": 5000})[1]


def test_the_look_at_the_data_tells_verdicts_and_no_figures(post, capfd):
    told = finished(post, "check")
    assert told["result"]["looks"] and all(one["ok"] for one in told["result"]["looks"])
    assert told["result"]["account"] == {
        "total": "3", "spent": "0", "left": "3", "cost": "0.5", "after": "2.5", "fits": True, "refusal": None
    }  # fmt: skip
    assert "500 rows read" in capfd.readouterr().err  # for whoever runs the studio
    assert "500" not in json.dumps(told)
    far = {"place": {"bounds": [50, 50, 51, 51], "shape": [8, 8]}}
    looks = {one["what"]: one["ok"] for one in finished(post, "check", domain=far)["result"]["looks"]}
    assert looks["within the bounds"] is False and looks["coordinates are there"] is True


def test_nothing_is_published_that_nobody_agreed_to(post, folder):
    status, told = post("publish", publication=TABLES)
    assert status == 200
    assert told["error"]["message"] == "nobody agreed to this. Nothing was counted, drawn or recorded."
    assert sf.Ledger(folder / "budget.db").spent == 0


def test_a_release_is_read_as_the_library_reads_it(post, folder):
    assert finished(post, "publish")["error"] is None
    release = sf.load(folder / "visits.sfumato")
    _, told = post("release", path="visits.sfumato")
    assert told["id"] == release.id and told["total"] == release.total
    _, cells = post("cells", path="visits.sfumato")
    table = release.answer(by="place")
    for name in ("value", "stderr", "low", "high"):
        assert np.allclose(unpacked(cells[name]), getattr(table, name).ravel(), rtol=1e-6)
    _, told = post("answer", path="visits.sfumato", rectangle=[0.1, 0.2, 0.7, 0.9])
    answer = release.answer((0.1, 0.2, 0.7, 0.9))
    assert [told[name] for name in ("value", "low", "high")] == [answer.value, answer.low, answer.high]
    assert "release.answer((0.1, 0.2, 0.7, 0.9))" in told["python"]
    pytest.importorskip("shapely", reason="needs sfumato[geo]")
    from shapely.geometry import Polygon

    corners = [[0.1, 0.1], [0.9, 0.2], [0.5, 0.8]]
    _, told = post("answer", path="visits.sfumato", polygon=corners)
    assert told["value"] == pytest.approx(release.answer(Polygon(corners)).value)
    status, told = post("answer", path="visits.sfumato", polygon=[[0, 0], [1, 1], [1, 0], [0, 1]])
    assert status == 200 and "crosses itself" in told["error"]["message"]


def test_small_figures_are_left_out_by_the_library_s_rule(post, folder):
    grid = sf.Grid(bounds=(0, 0, 1, 1), shape=(4, 4))
    plan = sf.plan(sf.unbounded(grid), sf.histogram(), epsilon=1)
    release = plan.publish(np.arange(16).reshape(4, 4) * 5)
    release.save(folder / "a.sfumato")
    _, told = post("cells", path="a.sfumato", below=30)
    kept = release.suppress(by=("x", "y"), below=30)
    assert told["suppressed"] == kept.summary
    assert np.isnan(unpacked(told["value"])).sum() == 16 - kept.shown > 0
    for name in ("value", "low", "high"):
        assert np.allclose(unpacked(told[name]), getattr(kept, name).ravel(), equal_nan=True, rtol=1e-6)
    _, told = post("cells", path="a.sfumato", below="many")
    assert told["error"]["message"] == "below is a number of records. Nothing was computed."


def test_two_releases_are_compared_by_the_law_of_both(post, folder):
    grid = sf.Grid(bounds=(0, 0, 1, 1), shape=(4, 4))
    plan = sf.plan(sf.unbounded(grid), sf.histogram(), epsilon=1)
    old, new = plan.publish(np.full((4, 4), 50)), plan.publish(np.full((4, 4), 80))
    old.save(folder / "old.sfumato")
    new.save(folder / "new.sfumato")
    _, told = post("changes", path="new.sfumato", old="old.sfumato")
    change = sf.difference(new, old)
    for name in ("value", "stderr", "low", "high"):
        assert np.allclose(unpacked(told[name]), getattr(change.cells(), name).ravel(), rtol=1e-6)
    _, told = post("change", path="new.sfumato", old="old.sfumato", rectangle=[0, 0, 0.5, 1])
    answer = change.answer((0, 0, 0.5, 1))
    assert [told[name] for name in ("value", "low", "high")] == [answer.value, answer.low, answer.high]
    _, told = post("changes", path="new.sfumato", old="new.sfumato")
    assert "new and old are one release" in told["error"]["message"]


@pytest.mark.parametrize(
    "bad", [{"rectangle": [1, 2, 3]}, {"rectangle": ["a"] * 4}, {"polygon": [[0, 0]]}, {"at": {"x": 99}}, {"at": [1]}]
)
def test_questions_that_are_none_are_refused(post, folder, bad):
    grid = sf.Grid(bounds=(0, 0, 1, 1), shape=(4, 4))
    sf.plan(sf.bounded(grid), sf.histogram(), epsilon=1).publish(np.ones((4, 4), int)).save(folder / "a.sfumato")
    status, told = post("answer", path="a.sfumato", **bad)
    assert status == 200 and "Nothing was answered." in told["error"]["message"]


def test_other_factors_are_held_at_a_cell_or_summed_over(post, folder):
    space = sf.Grid(bounds=(0, 0, 1, 1), shape=(4, 4)) * sf.Categories(["bus", "bike"], name="mode")
    plan = sf.plan(sf.bounded(space), sf.histogram(), epsilon=1)
    release = plan.publish(np.arange(32).reshape(4, 4, 2))
    release.save(folder / "a.sfumato")
    _, whole = post("cells", path="a.sfumato")
    _, bikes = post("cells", path="a.sfumato", at={"mode": 1})
    assert np.allclose(unpacked(whole["value"]), release.counts.sum(axis=2).ravel(), atol=1e-4)
    assert np.allclose(unpacked(bikes["value"]), release.counts[..., 1].ravel(), atol=1e-4)
    _, told = post("answer", path="a.sfumato", rectangle=[0, 0, 0.5, 0.5], at={"mode": 1})
    assert told["value"] == pytest.approx(release.answer((0, 0, 0.5, 0.5), mode="bike").value)


def test_hexagons_are_drawn_with_elsewhere_beside_them(post, folder):
    pytest.importorskip("h3", reason="needs sfumato[h3]")
    place = sf.H3(6, cover=(-74.1, 40.6, -73.9, 40.8))
    release = sf.plan(sf.bounded(place), sf.histogram(), epsilon=1).publish(np.full(place.shape, 100))
    release.save(folder / "a.sfumato")
    _, told = post("release", path="a.sfumato")
    _, cells = post("cells", path="a.sfumato")
    assert len(told["domain"]["place"]["outlines"]) == place.size - 1 == len(unpacked(cells["value"]))
    assert cells["elsewhere"]["value"] == pytest.approx(release.counts[-1])
    pytest.importorskip("shapely", reason="needs sfumato[geo]")
    from shapely.geometry import box

    _, told = post("answer", path="a.sfumato", rectangle=[-74.05, 40.65, -73.95, 40.75])
    answer = release.answer(box(-74.05, 40.65, -73.95, 40.75))
    assert [told[name] for name in ("value", "low", "high")] == [answer.value, answer.low, answer.high]
    assert "release.answer(box(-74.05, 40.65, -73.95, 40.75))" in told["python"]


def test_curves_where_there_is_no_place(post, folder):
    space = sf.Line(0, 24, cells=24, name="hour") * sf.Categories(["a", "b"], name="mode")
    release = sf.plan(sf.bounded(space), sf.histogram(), epsilon=1).publish(np.ones((24, 2), int))
    release.save(folder / "a.sfumato")
    _, cells = post("cells", path="a.sfumato", at={"mode": 0})
    assert cells["along"] == "hour"
    assert np.allclose(unpacked(cells["value"]), release.counts[:, 0], atol=1e-5)


def test_an_account_is_opened_and_shown(post, folder):
    status, told = post("account", ledger="new.db")
    assert status == 200 and told["error"]["field"] == "account.ledger" and not (folder / "new.db").exists()
    _, told = post("open_account", ledger="new.db", dataset="city", epsilon="5/2", hide="move(0.2)", fixed=[])
    assert (told["left"], told["dataset"], told["relation"]) == ("2.5", "city", 'move(0.2, of="place")')
    status, told = post("open_account", ledger="new.db", dataset="city", epsilon="9", hide="move(0.2)")
    assert status == 200 and sf.Ledger(folder / "new.db", dataset="city").total == 2.5
    assert post("account", ledger="new.db")[1]["history"][0]["kind"] == "open"


def test_the_statement_is_the_ledger_s(post, folder):
    _, told = post("statement", ledger="budget.db")
    assert told["html"] == sf.Ledger(folder / "budget.db").statement().to_html()
    _, told = post("statement", ledger="none.db")
    assert "none.db" in told["error"]["message"]
    assert not (folder / "none.db").exists()


def test_streams_are_shown_and_not_published(post, folder):
    line = sf.Line(0, 1, cells=4)
    ledger = sf.Ledger(folder / "budget.db")
    stream = sf.Stream(sf.bounded(line), sf.histogram(), epsilon=1, window=2, ledger=ledger, name="s")
    stream.publish(1, np.ones(4, int))
    _, told = post("account", ledger="budget.db")
    assert [(one["name"], one["epsilon"], len(one["steps"])) for one in told["streams"]] == [("s", "1", 1)]
    told = finished(post, "publish", stream={"step": "1 day", "time": "t"})
    assert told["error"]["message"].startswith("this publication speaks of a stream: sfumato stream publishes it.")


def test_an_area_is_outlines_alone_and_never_the_data(post, folder):
    shape = {"type": "Polygon", "coordinates": [[[0, 0], [1, 0], [1, 2], [0, 0]]]}
    (folder / "a.geojson").write_text(json.dumps({"type": "Feature", "geometry": shape, "properties": {"who": "Ms X"}}))
    _, told = post("area", path="a.geojson", data="visits.csv")
    assert told["bounds"] == [0, 0, 1, 2] and "Ms X" not in json.dumps(told)
    assert told["geojson"]["features"] == [{"type": "Feature", "properties": {}, "geometry": shape}]
    status, told = post("area", path="visits.csv", data="visits.csv")
    assert status == 200 and "is the data itself, and an area is public." in told["error"]["message"]
    status, told = post("area", path="visits.csv")
    assert told["error"]["message"] == "'visits.csv' is no GeoJSON with outlines. Nothing was drawn."
    with pytest.raises(sf.InvalidInput, match="0 corners of outlines"):
        (folder / "b.geojson").write_text('{"type": "FeatureCollection", "features": []}')
        areas.read(folder / "b.geojson")


def test_a_wish_that_its_page_has_outlived_is_not_fulfilled(post, folder):
    studio = Studio(folder=folder)
    old, new = studio.wish({"tab": "a", "number": 1}), studio.wish({"tab": "a", "number": 2})
    other = studio.wish({"tab": "b", "number": 1})
    assert (old(), new(), other()) == (False, True, True)
    assert studio.wish({})() is True
    studio.close()
    post("plan", publication=TABLES, tab="t", number=9)
    status, told = post("plan", publication=TABLES, tab="t", number=3)
    assert (status, told["error"]["kind"]) == (200, "Outdated")
    assert post("describe", publication=TABLES, tab="t", number=3)[1].get("error") is None  # another kind


def test_requests_that_are_no_tables_are_refused(folder):
    client = testclient.TestClient(make_app(Studio(folder=folder)))
    for body in ("", "[]", "3", "{", "[" * 100_000):
        answer = client.post("/api/job" if body else "/api/plan", content=body)
        assert answer.status_code in (200, 400) and "Nothing was" in answer.json()["error"]["message"]
    assert client.get("/static/../guard.py").status_code == 404
    assert client.get("/static/sources.json").status_code == 404
    assert client.get("/static/studio.js").headers["content-type"].startswith("text/javascript")
    assert client.get("/api/start").status_code == 405


EVERY = {
    "grid": {"place": {"bounds": [0, 0, 1, 1], "shape": [4, 4]}},
    "cell": {"place": {"bounds": [-74.1, 40.6, -73.9, 40.8], "cell": "2 km"}},
    "names": {"place": {"bounds": [0, 0, 1, 1], "shape": [4, 4], "names": ["u", "v"]}},
    "line": {"h": {"low": 0, "high": 24, "cells": 4}},
    "edges": {"fare": {"edges": [0, 5, 10, 50]}},
    "labels": {"mode": {"labels": ["a (b)", "c"], "other": "c"}},
    "times": {"t": {"start": "2026-01-01", "stop": "2026-01-08", "every": "1 day", "tz": "Europe/Berlin"}},
    "cycle": {"t": {"cycle": "hour of day"}},
    "product": {"place": {"bounds": [0, 0, 1, 1], "shape": [2, 2]}, "space": {"labels": ["a", "b"]}},
    "runs": {"t": {"start": 0, "steps": [[3600000000, 4], [7200000000, 2]]}},
}


@pytest.mark.parametrize("kind", EVERY)
def test_the_lines_of_python_say_the_same(kind, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    tables = {"hide": "anything()", "ask": "histogram()", "epsilon": "1/3", "domain": EVERY[kind], "max_per_entity": 2}
    if kind == "labels":
        tables["hide"] = 'change("mode")'
    publication = publication_of(tables, tmp_path)
    (tmp_path / "publication.toml").write_text(publication.to_toml())
    names = {}
    exec(python_of(publication), names)
    assert names["plan"].policy == publication.policy
    assert (names["plan"].epsilon, names["plan"].max_per_entity) == (publication.epsilon, 2)
    assert names["plan"].workload.to_text() == publication.ask.to_text()
    assert "Plan for" in capsys.readouterr().out


def test_the_lines_of_python_publish_the_same(folder, monkeypatch, capsys):
    monkeypatch.chdir(folder)
    tables = {**TABLES, "epsilon": 1, "account": {"ledger": "budget.db", "label": "a note"}}
    exec(python_of(publication_of(tables, folder)), {})
    assert sf.load("visits.sfumato").total == 500
    assert sf.Ledger("budget.db").history()[-1].label == "a note"


def test_calls_in_quotes_are_no_calls():
    assert with_sf("ask(place=ranges(), mode='a(b)')") == "sf.ask(place=sf.ranges(), mode='a(b)')"


def test_warnings_reach_whoever_listens_in_their_thread():
    import warnings

    with heard():
        with listening() as outer, listening() as said:
            warnings.warn("one", sf.DeclarationWarning, stacklevel=1)
            warnings.warn("one", sf.DeclarationWarning, stacklevel=1)
        assert (said, outer) == (["one"], [])
        warnings.warn("to nobody", sf.DeclarationWarning, stacklevel=1)


@pytest.mark.parametrize(
    ("hide", "delta"),
    [('move("500 m")', (500.0, True)), ('move("1.5 km")', (1500.0, True)), ("anything()", None)],
)
def test_the_circle_is_the_length_that_is_hidden(hide, delta):
    grid = {"place": {"bounds": [-74.1, 40.6, -73.9, 40.8], "shape": [8, 8], "crs": "EPSG:4326"}}
    told = planned.delta_of(publication_of({**TABLES, "hide": hide, "domain": grid}, "."))
    assert told == (None if delta is None else {"length": delta[0], "metres": delta[1]})
    assert planned.delta_of(publication_of(TABLES, ".")) == {"length": 0.2, "metres": False}
