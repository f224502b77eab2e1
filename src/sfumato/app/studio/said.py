"""What the page says of a publication, as the tables of its file.

The page speaks no language of its own: what it sends is read key by key by `Publication.from_tables`, so that whatever
is refused is refused in the library's words, beside the field whose key they name.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from sfumato.errors import InvalidInput
from sfumato.publication import Publication

_NAME = "studio"
_WHERE = re.compile(rf"{_NAME}:(?: \[(?P<table>[^\]]*)\])?(?: (?P<key>[A-Za-z_]\w*)(?P<sign> ?=|:| is missing))?")


def publication_of(tables: Any, folder: Path) -> Publication:
    """The publication that the page describes; paths in it lead from the folder that the studio was started in."""
    if not isinstance(tables, Mapping):
        raise InvalidInput("a publication is a table of keys. Nothing was counted, drawn or recorded.")
    return Publication.from_tables(tables, name=_NAME, folder=folder)


def located(message: str) -> tuple[str, str | None]:
    """(a refusal without the place that stands before it, the key of the field that it is about, if it names one).

    >>> located("studio: [domain.place] shape = 'x' must be a list of whole numbers.")
    ("shape = 'x' must be a list of whole numbers.", 'domain.place.shape')
    >>> located("studio: hide: a length is missing.")
    ('a length is missing.', 'hide')
    >>> located("The ledger has too little left.")
    ('The ledger has too little left.', None)
    """
    found = _WHERE.match(message)
    if found is None:
        return message, None
    inner = found["table"] or ""
    field = ".".join(part for part in (inner, found["key"]) if part) or None
    begin = found.end() if found["sign"] == ":" or found["key"] is None else found.start("key")
    return message[begin:].strip(), field
