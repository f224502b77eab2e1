"""One publication file for every command: its keys, options over them, and messages that name either."""

from __future__ import annotations

import json
from datetime import datetime, timedelta
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import typer
from typer.testing import CliRunner, Result

import sfumato as sf
from sfumato.app.cli import app

PUBLIC = """
hide = 'move(0.1)'
ask = "ranges()"
epsilon = 0.5

[domain.place]
bounds = [0, 0, 1, 1]
shape = [8, 8]
"""
PRIVATE = """
[data]
path = "visits.parquet"
columns = {x = "lon", y = "lat"}

[account]
ledger = "budget.db"
dataset = "city"

[output]
file = "visits.sfumato"
"""
PRODUCT = """
hide = 'move(0.1) | change("mode")'
ask = "ask(place=ranges(), mode=histogram())"
epsilon = 1
[domain.place]
bounds = [0, 0, 1, 1]
shape = [4, 4]
[domain.hour]
low = 0
high = 24
cells = 3
[domain.mode]
labels = ["bus", "bike, or trike"]
"""
HOURLY = """
hide = 'move(1.1)'
ask = "histogram()"
epsilon = 1
[domain.x]
low = 0
high = 4
cells = 4
[data]
path = "hourly.parquet"
[account]
ledger = "budget.db"
[output]
file = "out"
[stream]
name = "visits"
time = "t"
step = "1h"
window = 4
start = 2026-03-01T00:00:00
stop = "2026-03-01T03:00"
"""


def run(*arguments: object) -> Result:
    return CliRunner().invoke(app, [str(a) for a in arguments])


def ok(*arguments: object) -> str:
    result = run(*arguments)
    assert result.exit_code == 0, result.output
    return result.stdout


def refused(*arguments: object) -> str:
    result = run(*arguments)
    assert result.exit_code == 2, result.output
    return " ".join(result.stderr.split())


def planned(*arguments: object) -> dict:
    return json.loads(ok("plan", *arguments, "--json"))


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder beside the one that commands run in."""
    made = tmp_path / "job"
    made.mkdir()
    rng = np.random.default_rng(3)
    table = pa.table({"user": np.arange(1000) % 200, "lon": rng.random(1000), "lat": rng.random(1000)})
    pq.write_table(table, made / "visits.parquet")
    pq.write_table(table.slice(0, 10), made / "few.parquet")
    when = [datetime(2026, 3, 1) + timedelta(minutes=10 * i) for i in range(18)]
    pq.write_table(pa.table({"t": pa.array(when), "x": [0.5] * 18}), made / "hourly.parquet")
    sf.Ledger.create(made / "budget.db", epsilon=4, dataset="city")
    sf.Ledger.create(made / "budget.db", epsilon=4)
    (made / "visits.toml").write_text(PUBLIC + PRIVATE)
    (made / "product.toml").write_text(PRODUCT)
    (made / "hourly.toml").write_text(HOURLY)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    return made


def test_plan_of_a_file_is_that_of_the_publication(folder):
    plan = sf.load_publication(folder / "visits.toml").plan()
    assert planned(folder / "visits.toml") == json.loads(json.dumps(plan.to_dict()))


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (["--epsilon", "2"], {"epsilon": 2}),
        (["--set", "epsilon=2"], {"epsilon": 2}),
        (["--shape", "4x16"], {"shape": [4, 16]}),
        (["--bounds=0,0,2,2", "--shape", "4x4"], {"shape": [4, 4], "bounds": [0, 0, 2, 2]}),
        (["--set", "domain.place.shape=[5, 5]"], {"shape": [5, 5]}),
        (["--ask", "histogram"], {"ask": "histogram()"}),
        (["--ask", "ask(x=ranges(), y=histogram())"], {"ask": 'ask(x=ranges(), y=histogram())'}),
        (["--delta", "0.3"], {"hide": "move(0.3)"}),
        (["--hide", "move(0.3, metric='manhattan')"], {"hide": 'move(0.3, metric="manhattan")'}),
        (["--policy", "unbounded"], {"hide": "presence()"}),
        (["--policy", "threshold", "--theta", "2"], {"theta": 2}),
        (["--theta=2"], {"theta": 2}),
        (["--max-per-entity", "3"], {"max_per_entity": 3}),
        (["--mechanism", "identity"], {"mechanism": "identity"}),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)  # fmt: skip
def test_options_override_the_keys_of_the_file(folder, options, expected):
    tables = {"hide": "move(0.1)", "ask": "ranges()", "epsilon": 0.5}
    place = {"bounds": [0, 0, 1, 1], "shape": [8, 8]}
    for key, value in expected.items():
        (place if key in place else tables)[key] = value
    if "theta" in tables:
        del tables["hide"]
    wanted = sf.Publication.from_tables({**tables, "domain": {"place": place}}, name="wanted").plan()
    assert planned(folder / "visits.toml", *options) == json.loads(json.dumps(wanted.to_dict()))


def test_factors_of_a_product_are_overridden_where_it_is_clear_which_is_meant(folder):
    product = folder / "product.toml"
    lines = "low = 0\nhigh = 1\ncells = 2\n"
    (folder / "two.toml").write_text(
        f"hide = 'anything()'\nask = 'histogram()'\nepsilon = 1\n[domain.a]\n{lines}[domain.b]\n{lines}"
    )
    axes = planned(product, "--shape", "2x2", "--labels", 'tram,"bike, or trike"', "--public", "hour")
    x, y, hour, mode = axes["guarantee"]["policy"]["domain"]["axes"]
    assert (x["cells"], y["cells"], hour["cells"], mode["labels"]) == (2, 2, 3, ["tram", "bike, or trike"])
    assert axes["guarantee"]["policy"]["public"] == ["hour"]
    assert "public=['hour']" in refused("plan", product)
    assert "--bounds could mean [domain.a] and [domain.b] of the factors" in refused(
        "plan", folder / "two.toml", "--bounds=0,1"
    )
    assert planned(product, "--public", "hour", "--set", "domain.hour.cells=6")


def test_publish_takes_all_from_the_file_and_leads_its_paths_from_its_folder(folder):
    told = json.loads(ok("publish", folder / "visits.toml", "--json"))
    release = sf.load(folder / "visits.sfumato")
    assert (told["file"], told["total"], told["ledger_left"]) == (str(folder / "visits.sfumato"), 1000, "3.5")
    assert release.guarantee.epsilon == 0.5
    assert sf.Ledger(folder / "budget.db", dataset="city").spent == 0.5


def test_a_job_that_is_repeated_publishes_once(folder, monkeypatch):
    """Also where it says so itself; another publication's file is left alone."""
    with (folder / "visits.toml").open("a") as file:
        file.write("once = true\n")
    ok("publish", folder / "visits.toml")
    first, content = sf.load(folder / "visits.sfumato"), (folder / "visits.sfumato").read_bytes()
    text = ok("publish", folder / "visits.toml")
    assert f"{folder / 'visits.sfumato'} is there already: nothing was counted or charged." in text
    assert json.loads(ok("publish", folder / "visits.toml", "--once", "--json"))["id"] == first.id
    assert (folder / "visits.sfumato").read_bytes() == content
    assert sf.Ledger(folder / "budget.db", dataset="city").spent == 0.5
    for changed in (["--epsilon", "0.25"], ["--shape", "3x3"]):
        assert (
            f"--out {folder / 'visits.sfumato'} holds a release of another publication, and --once replaces nothing. "
            "Nothing was counted, drawn or recorded. Choose another file, or leave --once out."
        ) in refused("publish", folder / "visits.toml", *changed)
    ok("publish", folder / "visits.toml", "--set", "output.once=false")
    assert sf.load(folder / "visits.sfumato").id != first.id


def test_what_is_typed_leads_from_where_it_is_typed(folder, tmp_path):
    options = ["--out", "here.sfumato", "--epsilon", "1", "--dataset", "default", "--label", "--theta"]
    ok("publish", folder / "visits.toml", "../job/few.parquet", *options)
    assert sf.load(tmp_path / "elsewhere" / "here.sfumato").total == 10
    account = sf.Ledger(folder / "budget.db")
    assert account.spent == 1
    assert [entry.label for entry in account.history()][1:] == ["--theta"]
    ok("publish", folder / "visits.toml", "--without-ledger", "--out", "free.sfumato")
    assert sf.Ledger(folder / "budget.db", dataset="city").spent == 0


def test_check_reads_the_same_file_and_charges_nothing(folder):
    text = ok("check", folder / "visits.toml")
    assert "1,000 rows read" in text
    assert "The release would cost ε 0.5 of the 4 left in the ledger." in text
    assert json.loads(ok("check", folder / "visits.toml", folder / "few.parquet", "--json"))["rows"] == 10
    assert sf.Ledger(folder / "budget.db", dataset="city").spent == 0


def test_audit_reads_the_same_file(folder):
    told = json.loads(ok("audit", folder / "visits.toml", "--shape", "3x3", "--json"))
    assert (told["promised"], told["passed"]) == ("1/2", True)


def test_a_stream_takes_its_steps_from_the_file(folder):
    told = json.loads(ok("stream", folder / "hourly.toml", "--json"))
    assert (told["published"], told["last"], told["window"]) == (3, "2026-03-01 02:00:00", "4 hours")
    assert len(list((folder / "out").iterdir())) == 3
    assert json.loads(ok("stream", folder / "hourly.toml", "--stop", "2026-03-01T03:00", "--json"))["published"] == 0
    assert json.loads(ok("stream", folder / "hourly.toml", "--check", "--json"))["steps"] == 3


def test_weights_in_a_file_lead_from_the_folder_of_the_publication(folder):
    (folder / "weights.txt").write_text("1 0 1")
    with (folder / "hourly.toml").open("a") as file:
        file.write('allocation = "offline"\nweights = "weights.txt"\n')
    assert json.loads(ok("stream", folder / "hourly.toml", "--json"))["published"] == 2


@pytest.mark.parametrize(
    ("command", "old", "new", "words"),
    [
        ("plan", "epsilon = 0.5", "epsilon = -1", "visits.toml: epsilon=-1 must be greater than zero."),
        ("plan", "epsilon = 0.5\n", "", "visits.toml: epsilon is missing"),
        ("plan", "shape = [8, 8]", "shap = [8, 8]", "visits.toml: [domain.place] 'shap' is no key here. Did you mean"),
        ("plan", "'move(0.1)'", "'move(\"30 min\")'", "visits.toml: hide: hide moves 'place' by less than 30 min"),
        ("plan", "'move(0.1)'", "'change(\"mode\")'", "visits.toml: hide: hide names 'mode', which is no factor"),
        ("publish", 'path = "visits.parquet"\n', "", "give the data, or path under [data] of"),
        ("publish", 'file = "visits.sfumato"\n', "", "give --out, or file under [output] of"),
        ("publish", 'ledger = "budget.db"\n', "", "or ledger or without_ledger under [account] of"),
        ("publish", "[output]", '[stream]\nstep = "1h"\n[output]', "speaks of a stream: sfumato stream publishes it."),
        ("stream", "[output]", "[outputs]", "visits.toml: 'outputs' is no key here. Did you mean 'output'?"),
        ("stream", "[output]", "[output]", "give --time COLUMN, or time under [stream] of"),
    ],
)
def test_what_is_wrong_in_the_file_is_named_by_its_key(folder, command, old, new, words):
    text = (PUBLIC + PRIVATE).replace(old, new)
    (folder / "visits.toml").write_text(text)
    assert words in refused(command, folder / "visits.toml")
    assert sf.Ledger(folder / "budget.db", dataset="city").spent == 0


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--set", "epsilon"], "--set 'epsilon' must be KEY=VALUE"),
        (["--set", "epsillon=2"], "--set 'epsillon' names no key of a publication. Did you mean 'epsilon'?"),
        (["--set", "data.pat=2"], "--set 'data.pat' names no key of a publication. Did you mean 'data.path'?"),
        (["--theta", "many"], "--theta 'many' must be a whole number."),
        (["--publish-component-totals=perhaps"], "--publish-component-totals 'perhaps' must be true or false."),
        (["--columns", "lon"], "--columns 'lon' must be AXIS=COLUMN,AXIS=COLUMN."),
        (["--hide", "move(1)", "--delta", "2"], "--hide stands alone"),
        (["--labels", "a,b"], "--labels could mean none of the factors in the file."),
        (["--epsilon", "0"], "epsilon='0' must be greater than zero."),
        (["--theta"], "--set"),
        (["--bounds=0,1"], "[domain.place] bounds"),
        (["more.parquet"], "unexpected extra argument"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_what_is_wrong_among_the_options_is_named_by_the_option(folder, options, words):
    assert words in refused("plan", folder / "visits.toml", *options)


def test_two_sets_of_data_are_refused(folder):
    assert "are two sets of data" in refused("publish", "a.parquet", "b.parquet", "--bounds=0,1", "--shape", "4")


@pytest.mark.parametrize(
    ("key", "value", "words"),
    [
        ('time = "t"', 'time = "when"', "time under [stream] of {file} 'when' is not a column of the data."),
        ('step = "1h"', 'step = "1 moon"', "step under [stream] of {file} '1 moon' is not a length"),
        ("start = 2026-03-01T00:00:00", "start = 2026-03-01T00:00:00Z", "start under [stream] of {file} "),
        ("start = 2026-03-01T00:00:00\n", "", "say when its first step begins, with start under [stream] of {file}"),
        ("window = 4", 'window = 4\nweights = "a,b"', "weights under [stream] of {file} 'a,b' is not a list"),
        ("window = 4", 'window = 4\ndistribution = "x"', "distribution under [stream] of {file} 'x' is not one of"),
    ],
)  # fmt: skip
def test_what_is_wrong_with_the_steps_is_named_by_its_key(folder, key, value, words):
    file = folder / "hourly.toml"
    file.write_text(HOURLY.replace(key, value))
    assert words.format(file=file) in refused("stream", file)
    assert sf.Ledger(folder / "budget.db").streams() == ()


def test_commands_have_few_options_of_their_own():
    """Everything else is a key of the file, and is an option by that name."""
    commands = typer.main.get_command(app).commands
    counted = {name: len(commands[name].params) for name in ("plan", "audit", "publish", "check", "stream")}
    assert counted == {"plan": 11, "audit": 14, "publish": 21, "check": 22, "stream": 22}
    shown = {name: [one for one in commands[name].params if not getattr(one, "hidden", False)] for name in counted}
    assert len(shown["stream"]) == 12 and all(len(shown[name]) == counted[name] for name in counted if name != "stream")
