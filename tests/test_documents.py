"""Every block of code in README and docs runs as it is printed, in the order of its page, in an empty folder.

A page may use nothing that it does not make itself. `make demo` stands for the command that it runs.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from sfumato.mechanism import registered

ROOT = Path(__file__).resolve().parent.parent
PAGES = sorted([ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").glob("*.md")])
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
TARGET = re.compile(r"^([a-z]+):", re.MULTILINE)
RECIPES = {"demo": "sfumato demo --people 5000"}  # of the demonstration's 60,000


def blocks(page):
    """(line of the page, language, code) of every block."""
    text = page.read_text(encoding="utf-8")
    return [(text[: found.start()].count("\n") + 1, found[1], found[2]) for found in BLOCK.finditer(text)]


def shell(code):
    """What is typed, with `make` taken for its recipe: a target has to be there, and the demonstration is run."""
    lines = []
    for line in code.splitlines():
        target = re.match(r"make (\w+)", line)
        if target:
            assert target[1] in TARGET.findall((ROOT / "Makefile").read_text(encoding="utf-8")), line
            lines += [RECIPES[target[1]]] if target[1] in RECIPES else []
        else:
            lines.append(line)
    return "\n".join(lines)


@pytest.mark.slow  # a page makes data, plans and publishes: seconds
@pytest.mark.parametrize("page", [page for page in PAGES if blocks(page)], ids=lambda page: page.name)
def test_what_is_printed_runs(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    programs = [str(Path(sys.executable).parent), sysconfig.get_path("scripts")]
    monkeypatch.setenv("PATH", os.pathsep.join([*programs, os.environ["PATH"]]))
    names: dict[str, object] = {"__name__": "__main__"}
    for line, language, code in blocks(page):
        where = f"{page.name}, line {line}"
        if language == "python":
            with registered():  # a page that registers a mechanism does so in one block
                exec(compile("\n" * line + code, str(page), "exec"), names)
        elif language == "sh":
            run = subprocess.run(
                ["bash", "-euo", "pipefail", "-c", shell(code)], capture_output=True, text=True, check=False
            )
            assert run.returncode == 0, f"{where}: {run.stderr or run.stdout}"
        else:
            assert language in ("text", ""), f"{where}: say which language a block is in, or `text`"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_what_a_page_links_to_is_there(page):
    for target in re.findall(r"\]\(([^)#\s]+)", page.read_text(encoding="utf-8")):
        if "://" not in target:
            assert (page.parent / target).exists(), f"{page.name} links to {target}"


def test_every_make_target_that_a_page_names_is_there():
    known = set(TARGET.findall((ROOT / "Makefile").read_text(encoding="utf-8")))
    for page in PAGES:
        named = set(re.findall(r"(?:`|^ {4})make ([a-z]+)", page.read_text(encoding="utf-8"), re.MULTILINE))
        assert named <= known, f"{page.name}: {named - known}"
