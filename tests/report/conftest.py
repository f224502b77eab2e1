"""A real browser for pages from disk: Chromium as it is installed, and what it asks for or complains of."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
PATIENCE = 120_000
"""Milliseconds after which something is taken to never happen: a limit for failures, nothing waits that long."""


class Opened:
    """A page from disk, with what it asked for beside itself, and what its console said."""

    def __init__(self, page: Any, file: Path) -> None:
        self.page = page
        self.asked: list[str] = []
        self.said: list[str] = []
        page.set_default_timeout(PATIENCE)
        page.on("request", lambda request: self.asked.append(request.url))
        page.on("console", lambda message: self.said.append(message.text))
        page.on("pageerror", lambda error: self.said.append(str(error)))
        page.goto(file.as_uri())
        self.asked.remove(file.as_uri())


@pytest.fixture
def opened(chromium: Any) -> Iterator[Callable[..., Opened]]:
    """Opens a file as somebody with such a screen does; whatever it asks for or complains of fails the test."""
    contexts, pages = [], []

    def open(file: Path, *, width: int = 1100, height: int = 900, dark: bool = False, **options: Any) -> Opened:
        scheme = "dark" if dark else "light"
        contexts.append(
            chromium.new_context(viewport={"width": width, "height": height}, color_scheme=scheme, **options)
        )
        pages.append(Opened(contexts[-1].new_page(), file))
        return pages[-1]

    yield open
    told = [line for one in pages for line in (*one.asked, *one.said) if not line.startswith("blob:")]
    for context in contexts:
        context.close()
    assert not told


@pytest.fixture(scope="session")
def axe() -> str:
    """The script of axe-core, which says what a screen reader would stumble over."""
    places = (ROOT / "tests" / "app" / "axe-core", ROOT / "page" / "node_modules" / "axe-core")
    found = [place / "axe.min.js" for place in places if (place / "axe.min.js").exists()]
    if not found:
        pytest.skip("needs axe-core: npm ci in page/")
    return found[0].read_text(encoding="utf-8")
