"""`sfumato studio`: what it refuses before anything is started, and what it warns of."""

from __future__ import annotations

import socket
import sys

import pytest
from typer.testing import CliRunner

import sfumato as sf
from sfumato.app.cli import app
from sfumato.app.studio import command, serve


@pytest.fixture
def started(monkeypatch):
    """What would be served, and where: nothing is."""
    found = []
    monkeypatch.setattr(serve, "serve", lambda studio, **more: found.append((studio, more)))
    monkeypatch.setattr(command.webbrowser, "open", lambda link: pytest.fail("a browser was opened"))
    return found


def run(*arguments):
    return CliRunner().invoke(app, ["studio", *arguments])


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["none.toml"], "Error: there is no file none.toml. Nothing was started."),
        (["--outlines", "none.geojson"], "Error: --outlines none.geojson is no file. Nothing was started."),
        (["--tiles", "https://a.example/x.png"], "is no address with {z}, {x} and {y} in it. Nothing was started."),
        (["--tiles", "file:///{z}/{x}/{y}"], "is no address with {z}, {x} and {y} in it. Nothing was started."),
    ],
)
def test_what_is_not_there_is_refused(tmp_path, monkeypatch, started, arguments, said):
    pytest.importorskip("starlette", reason="needs sfumato[studio]")
    monkeypatch.chdir(tmp_path)
    found = run(*arguments)
    assert found.exit_code == 2 and said in found.output
    assert not started


def test_the_folder_is_that_of_the_file(tmp_path, monkeypatch, started):
    pytest.importorskip("starlette", reason="needs sfumato[studio]")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "visits.csv").touch()
    assert run("deep/visits.csv").exit_code == 0
    assert run().exit_code == 0
    (one, where), (other, _) = started
    assert (one.folder, one.file) == (tmp_path / "deep", "visits.csv")
    assert (other.folder, other.file) == (tmp_path, None)
    assert (where["host"], where["port"]) == ("127.0.0.1", 0)


@pytest.mark.parametrize("host", ["0.0.0.0", "192.168.1.7", "example.org"])
def test_whoever_opens_it_to_other_machines_is_warned(started, host):
    pytest.importorskip("starlette", reason="needs sfumato[studio]")
    found = run("--host", host, "--no-browser")
    assert f"WARNING: --host {host} opens the studio to other machines, without encryption" in found.output
    assert "WARNING" not in run("--no-browser").output


def test_tiles_are_told_to_see_where_one_looks(started):
    pytest.importorskip("starlette", reason="needs sfumato[studio]")
    found = run("--tiles", "https://tiles.example/{z}/{x}/{y}.png")
    assert "Tiles come from tiles.example, which sees what part of the map you look at." in found.output


def test_a_port_that_is_taken_is_refused():
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        with pytest.raises(sf.InvalidInput, match=rf"--host 127\.0\.0\.1 --port {port} cannot be listened at: .*Leave"):
            serve.listen("127.0.0.1", port)


def test_what_is_printed_is_listened_at():
    with serve.listen("127.0.0.1", 0) as made, socket.create_connection(made.getsockname()):
        pass


@pytest.mark.parametrize("package", ["starlette", "uvicorn"])
def test_without_its_packages_it_says_which_line_installs_them(monkeypatch, package):
    monkeypatch.setitem(sys.modules, "starlette", sys.modules[__name__])
    monkeypatch.setitem(sys.modules, "uvicorn", sys.modules[__name__])
    monkeypatch.setitem(sys.modules, package, None)
    found = run()
    assert found.exit_code == 6
    assert f"The studio needs the package '{package}'" in found.output
    assert "pip install 'sfumato[studio]'" in found.output
