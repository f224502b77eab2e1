"""The factors of a domain as tables of a file: `[domain.place]` with bounds and shape, `[domain.mode]` with labels.

Which kind a factor is follows from a key that it alone has. A new kind is a new entry below.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce
from operator import mul
from typing import Any

from sfumato.domain import H3, Categories, Cycle, Domain, Grid, Instants, Line, Times
from sfumato.domain.factor import Factor, default_names
from sfumato.errors import DeclarationWarning, InvalidInput
from sfumato.naming import nearest
from sfumato.publication.table import (
    COVER,
    EDGES,
    LABEL,
    LABELS,
    MOMENT,
    NUMBER,
    NUMBERS,
    RUNS,
    TEXT,
    TEXTS,
    WHOLE,
    WHOLES,
    Kind,
    Table,
)

MOST_FACTORS = 32


@dataclass(frozen=True)
class FactorKind:
    """What is needed, what may be given, and what is built: from the name of the factor and the values."""

    needed: dict[str, Kind]
    may: dict[str, Kind]
    build: Callable[..., Domain]


def _grid(name: str, **given: Any) -> Domain:
    return Grid(name=name, **given)


def _edges(name: str, edges: list[Any], names: list[str] | None = None) -> Domain:
    if edges and isinstance(edges[0], list):
        return Grid(edges=edges, name=name, names=names)
    if names is not None:
        raise InvalidInput("names is for the axes of a grid, and this is a line. Leave it out.")
    return Line(edges=edges, name=name)


def _steps(name: str, start: int, steps: list[list[int]], tz: str | None = None) -> Domain:
    made = Times.__new__(Times)
    Domain.__init__(made, (Instants(name, start, tuple((length, count) for length, count in steps), tz),))
    return made


def _line(name: str, low: float, high: float, cells: int) -> Domain:
    return Line(low, high, cells=cells, name=name)


# By the key that tells the kind.
KINDS: dict[str, FactorKind] = {
    "cell": FactorKind({"bounds": NUMBERS, "cell": TEXT}, {"names": TEXTS, "crs": TEXT}, _grid),
    "bounds": FactorKind({"bounds": NUMBERS, "shape": WHOLES}, {"names": TEXTS, "crs": TEXT}, _grid),
    "edges": FactorKind({"edges": EDGES}, {"names": TEXTS}, _edges),
    "low": FactorKind({"low": NUMBER, "high": NUMBER, "cells": WHOLE}, {}, _line),
    "h3": FactorKind(
        {"h3": WHOLE, "cover": COVER}, {"levels": WHOLES}, lambda name, h3, **more: H3(h3, name=name, **more)
    ),
    "labels": FactorKind(
        {"labels": LABELS}, {"other": LABEL}, lambda name, labels, **more: Categories(labels, name=name, **more)
    ),
    "cycle": FactorKind({"cycle": TEXT}, {"tz": TEXT}, lambda name, cycle, **more: Cycle(cycle, name=name, **more)),
    "steps": FactorKind({"start": WHOLE, "steps": RUNS}, {"tz": TEXT}, _steps),
    "every": FactorKind(
        {"start": MOMENT, "stop": MOMENT, "every": TEXT},
        {"tz": TEXT},
        lambda name, start, stop, **more: Times(start, stop, name=name, **more),
    ),
}


def read_domain(table: Table) -> Domain:
    """The product of the factors in the order in which they stand."""
    if not 1 <= len(table.given) <= MOST_FACTORS:
        table.refuse(f"has {len(table.given)} factors; give from 1 to {MOST_FACTORS}, such as [domain.place].")
    made = [_factor(name, Table(f"{table.where[:-1]}.{name}]", table.take(name, _FACTOR))) for name in table.given]
    return made[0] if len(made) == 1 else table.said(lambda: reduce(mul, made))


_FACTOR = Kind("a table, as under [domain.place]", lambda value: isinstance(value, dict))


def _factor(name: str, table: Table) -> Domain:
    found = next((kind for told, kind in KINDS.items() if told in table.given), None)
    if found is None:
        hints = "".join(nearest(name, KINDS) for name in table.given)
        table.refuse(f"does not say what it is: give bounds, edges, low, h3, labels, cycle or every.{hints}")
    wanted = found.needed | found.may
    table.known(tuple(wanted))
    given = {key: table.take(key, kind) for key, kind in found.needed.items()}
    given |= {key: table.take(key, kind) for key, kind in found.may.items() if key in table.given}
    return table.said(lambda: found.build(name, **given))


def written_domain(domain: Domain) -> dict[str, dict[str, Any]]:
    """A table for every factor; refused where the domain is no product of what a file can say."""
    tables = {factor.name: _written(domain, factor) for factor in domain.factors}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeclarationWarning)  # it was said when the domain was built
        again = read_domain(Table("[domain]", tables))
    if again != domain:
        raise InvalidInput(
            f"the domain {domain!r} is no product of grids, lines, hexagons, labels, times and cycles, each with its "
            "own name: it cannot be written to a file. Nothing was written."
        )
    return tables


def _written(domain: Domain, factor: Factor) -> dict[str, Any]:
    entries = [domain.axes[i].entry() for i in factor.positions]
    if len(entries) == 1:
        return entries[0]
    names = [domain.axes[i].name for i in factor.positions]
    more = {} if tuple(names) == default_names(len(names), factor.name) else {"names": names}
    if all("cells" in entry for entry in entries):
        ends = [entry["low"] for entry in entries] + [entry["high"] for entry in entries]
        more |= {name: entries[0][name] for name in ("crs",) if name in entries[0]}
        return {"bounds": ends, "shape": [entry["cells"] for entry in entries], **more}
    return {"edges": [entry.get("edges", []) for entry in entries], **more}
