"""The built pages: scripts, styles and documents for a browser, made from `page/` and shipped as they are.

Nothing is computed here, nothing is written, and no file outside of a page's own folder is ever handed out.
"""

from __future__ import annotations

import json
from functools import cache
from importlib.resources import files

_LIST = "sources.json"


@cache
def names(page: str) -> tuple[str, ...]:
    """The files of a page, `studio` or `report`, as its build listed them."""
    told = json.loads(files(__name__).joinpath(page, _LIST).read_text(encoding="utf-8"))
    return tuple(told["built"])


@cache
def read(page: str, name: str) -> bytes:
    """A file of a page. Raises KeyError for what its build did not list."""
    if name not in names(page):
        raise KeyError(name)
    return files(__name__).joinpath(page, name).read_bytes()
