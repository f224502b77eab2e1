"""The blocks of code of a page, and what running them shows."""

from __future__ import annotations

import contextlib
import importlib.util
import io
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sfumato.mechanism import registered

_BLOCK = re.compile(r"^(?:<!-- needs: ([\w.]+) -->\n)?```(\w*)\n(.*?)^```\n?", re.DOTALL | re.MULTILINE)
_SHOWN = (".png", ".svg")
_NEEDS = {"java": "Java, or pyspark,"}


@dataclass(frozen=True)
class Block:
    """Code between two fences: its language, the code, where in the page it stands, and what it cannot do without: a
    package named in a comment before it.
    """

    language: str
    code: str
    start: int
    end: int
    line: int
    needs: str | None = None

    @property
    def possible(self) -> bool:
        """Whether what it needs is installed, or is Java and is there."""
        if self.needs is None:
            return True
        if self.needs == "java":
            return shutil.which("java") is not None and _is_there("pyspark")
        return _is_there(self.needs)


def _is_there(package: str) -> bool:
    try:
        return importlib.util.find_spec(package) is not None
    except ModuleNotFoundError:  # the package above it
        return False


@dataclass(frozen=True)
class Shown:
    """What a block said, and the pictures and pages that it made, by their names."""

    text: str
    pictures: tuple[str, ...]
    pages: tuple[str, ...]


def blocks(page: str) -> Iterator[Block]:
    """All of them, in order."""
    for found in _BLOCK.finditer(page):
        line = page[: found.start()].count("\n") + 1 + (found[1] is not None)
        yield Block(found[2], found[3], found.start(), found.end(), line, found[1])


def run(page: str, name: str, folder: Path) -> Iterator[tuple[Block, Shown]]:
    """Run the blocks of a page one after the other, in a folder that is empty before; a warning is an error.

    A block of Python goes on where the one before it ended. What it prints is what a reader sees below it.
    """
    with registered():  # a mechanism that a page registers is that page's alone
        yield from _run(page, name, folder)


def _run(page: str, name: str, folder: Path) -> Iterator[tuple[Block, Shown]]:
    names: dict[str, Any] = {"__name__": "__main__"}
    for block in blocks(page):
        before = _files(folder)
        with _inside(folder):
            if not block.possible:
                said = f"(not run here: {_NEEDS.get(block.needs, block.needs)} is not installed)"
            elif block.language == "python":
                said = _python(block, name, names)
            elif block.language == "sh":
                said = _shell(block, name)
            elif block.language in ("text", "toml", ""):
                said = ""
            else:
                raise ValueError(f"{name}, line {block.line}: nobody runs {block.language!r}; say python, sh or text")
        new = sorted(_files(folder) - before)
        pictures = tuple(path for path in new if path.endswith(_SHOWN))
        yield block, Shown(said, pictures, tuple(path for path in new if path.endswith(".html")))


def _files(folder: Path) -> set[str]:
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}


@contextlib.contextmanager
def _inside(folder: Path) -> Iterator[None]:
    with contextlib.chdir(folder):
        yield


def _python(block: Block, name: str, names: dict[str, Any]) -> str:
    said = io.StringIO()
    with contextlib.redirect_stdout(said), warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", category=DeprecationWarning, module=r"(?!sfumato)")
        warnings.filterwarnings("ignore", category=FutureWarning, module=r"pyspark\.")  # of the pandas beside it
        exec(compile("\n" * block.line + block.code, name, "exec"), names)
    return said.getvalue()


def _shell(block: Block, name: str) -> str:
    programs = [str(Path(sys.executable).parent), sysconfig.get_path("scripts")]
    environment = {**os.environ, "PATH": os.pathsep.join([*programs, os.environ["PATH"]]), "COLUMNS": "110"}
    ran = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", block.code], capture_output=True, text=True, check=False, env=environment
    )
    if ran.returncode != 0:
        raise RuntimeError(f"{name}, line {block.line}: {ran.stderr or ran.stdout}")
    return ran.stdout
