"""What a command is to do: a publication file, options over its keys, and for the simple case options alone."""

from __future__ import annotations

import os
from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from sfumato.app import options
from sfumato.app.keys import NOTHING, Key, set_keys
from sfumato.counting.choice import choose_columns
from sfumato.domain.factor import PLACE
from sfumato.errors import InvalidInput
from sfumato.publication import Publication
from sfumato.publication.factors import written_domain
from sfumato.publication.publication import load_tables

_PATHS = (("data", "path"), ("account", "ledger"), ("output", "file"), ("output", "vault"), ("output", "key"))
_RULES = (("hide",), ("theta",))


def is_publication(given: str | None) -> bool:
    """Whether an argument names a publication file, by its ending."""
    return given is not None and Path(given).suffix.lower() == ".toml"


@dataclass(frozen=True, kw_only=True)
class Simple:
    """The options of the simple case, as they were typed."""

    bounds: str | None = None
    shape: str | None = None
    labels: str | None = None
    policy: str | None = None
    delta: str | None = None
    ask: str | None = None


@dataclass(frozen=True, kw_only=True)
class Meant:
    """A publication, and where it was said: in a file, or by options."""

    publication: Publication
    file: str | None
    told: frozenset[Key]
    """What options said."""

    def name(self, table: str, key: str, option: str | None = None) -> str:
        """A key as it was said, or is to be said: by its option, or by its place in the file."""
        if self.file is None or (table, key) in self.told:
            return option or f"--{key.replace('_', '-')}"
        return f"{key} under [{table}] of {self.file}"

    def need(self, table: str, key: str, option: str | None = None, *, example: str = "") -> Any:
        """A value without which the command cannot go on; refused where it is not said."""
        value = getattr(getattr(self.publication, table), key)
        if value is None:
            said = option or f"--{key.replace('_', '-')}"
            where = f", or {key} under [{table}] of a publication file" if self.file is None else ""
            missing = "" if self.file is None else f", or {key} under [{table}] of {self.file}"
            raise InvalidInput(f"give {said}{example}{where}{missing}. {NOTHING}")
        return value

    def place(self, table: str, key: str) -> str | None:
        """A path or an address that it names, as it is meant from here."""
        value = getattr(getattr(self.publication, table), key)
        return None if value is None else self.publication.place(value)


def mean(
    first: str | None,
    data: str | None = None,
    *,
    simple: Simple,
    keys: list[str] | None = None,
    given: Mapping[Key, Any] | None = None,
    letters: tuple[str | None, str | None] = (None, None),
) -> Meant:
    """What the arguments and options of a command say together.

    `first` is a publication file or the data, `keys` is what `--set` has, `given` what other options say of the file's
    keys, and `letters` are the columns of the first two axes.
    """
    file, records = (first, data) if is_publication(first) else (None, first)
    if file is None and data is not None:
        raise InvalidInput(
            f"{first!r} and {data!r} are two sets of data. {NOTHING} Name one; a publication ends in .toml."
        )
    said, short = set_keys(keys or [])
    said |= {key: value for key, value in (given or {}).items() if value is not None}
    said |= {} if records is None else {("data", "path"): records}
    tables = {} if file is None else load_tables(file)
    folder = Path() if file is None else Path(file).parent
    if folder != Path():
        said |= {key: _anchored(str(said[key])) for key in _PATHS if key in said}
    alone = {} if file is not None or any(key[0] == "domain" for key in said) else _simple_domain(simple, short)
    said |= _rule(simple, said, short, new=file is None)
    said |= {} if simple.ask is None else {("ask",): options.asked(simple.ask)}
    if file is None:
        said = {("ask",): "ranges()", ("epsilon",): "1"} | said
    whole = _merged(tables, said)
    whole["domain"] = alone or _domain(whole.get("domain", {}), simple, short.get("other"))
    name = f"{Path(file).name}:" if file is not None else "the options:"
    publication = Publication.from_tables(whole, name=name[:-1], folder=folder)
    return Meant(publication=_lettered(publication, letters), file=file, told=frozenset(said))


def _anchored(path: str) -> str:
    """What was typed, from where it was typed."""
    return path if "://" in path else os.path.abspath(path)  # noqa: PTH100 - a pattern is no path


def _merged(tables: Mapping[str, Any], said: Mapping[Key, Any]) -> dict[str, Any]:
    """The tables of a file with what was said over them."""
    found = deepcopy(dict(tables))
    if any(rule in said for rule in _RULES):
        found = {name: value for name, value in found.items() if (name,) not in _RULES}
    for one, other in (("ledger", "without_ledger"), ("without_ledger", "ledger")):
        if ("account", one) in said and isinstance(found.get("account"), dict):
            found["account"].pop(other, None)
    for path, value in said.items():
        table = found
        for part in path[:-1]:
            table = table.setdefault(part, {})
            if not isinstance(table, dict):
                raise InvalidInput(f"--set {'.'.join(path)}: {part} is no table of the file. {NOTHING}")
        old = table.get(path[-1])
        table[path[-1]] = old | value if isinstance(old, dict) and isinstance(value, dict) else value
    return found


def _rule(simple: Simple, said: Mapping[Key, Any], short: Mapping[str, str], *, new: bool) -> dict[Key, Any]:
    """What is hidden, where options say so: `hide` or `theta`."""
    typed = simple.policy, simple.delta, short.get("sources"), short.get("metric")
    if ("hide",) in said:
        if any(typed):
            raise InvalidInput(f"--hide stands alone: leave --policy, --delta, --sources and --metric out. {NOTHING}")
        return {}
    if not any(typed) and (not new or ("theta",) in said):
        return {}
    name, delta, sources, metric = typed
    return options.rule(name or "within", delta, said.get(("theta",)), sources, metric)


def _simple_domain(simple: Simple, short: Mapping[str, str]) -> dict[str, Any]:
    """The tables of a domain that options alone say."""
    return written_domain(options.domain(simple.bounds, simple.shape, simple.labels, short.get("other")))


def _domain(tables: Any, simple: Simple, other: str | None) -> Any:
    """The tables of the domain, with the options for its one grid, line or labels over them."""
    if not isinstance(tables, dict):
        return tables  # and is refused by the name of its key
    for option, value, keys in (
        ("--bounds", simple.bounds, ("bounds", "low")),
        ("--shape", simple.shape, ("shape", "cells")),
        ("--labels", simple.labels, ("labels",)),
        ("--other", other, ("labels",)),
    ):
        if value is not None:
            table = _only(tables, keys, option)
            table |= options.factor_keys(option, value, line="low" in table or "cells" in table)
    return tables


def _only(tables: dict[str, Any], keys: tuple[str, ...], option: str) -> dict[str, Any]:
    """The one factor that an option can mean: the place, or the only one with such a key."""
    fitting = {name: one for name, one in tables.items() if isinstance(one, dict) and any(key in one for key in keys)}
    if PLACE in fitting:
        place: dict[str, Any] = fitting[PLACE]
        return place
    if len(fitting) != 1:
        words = "none" if not fitting else " and ".join(f"[domain.{name}]" for name in fitting)
        raise InvalidInput(
            f"{option} could mean {words} of the factors in the file. {NOTHING} Say which, as in "
            f"--set domain.NAME.{keys[0]}=…"
        )
    return next(iter(fitting.values()))


def _lettered(publication: Publication, letters: tuple[str | None, str | None]) -> Publication:
    """The columns that --x and --y name, for the axes of these names or else the first two."""
    if not any(letters):
        return publication
    names = publication.domain.names
    choose_columns(publication.domain, (*letters, None), None, None)  # refuses what names no axis
    columns = {
        letter if letter in names else names[i]: column
        for i, (letter, column) in enumerate(zip("xy", letters, strict=True))
        if column is not None
    }
    return replace(publication, data=replace(publication.data, columns=publication.data.columns | columns))
