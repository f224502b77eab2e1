"""The names and types of columns, and what they are guessed to be. No value is read, not even the least or the largest.

Of Parquet files that is their schema. CSV files have no types: what a column of theirs is follows from its name alone.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass

from sfumato.counting import columnar, delimited
from sfumato.counting.doubts import ACROSS, UP, words
from sfumato.counting.files import find_files
from sfumato.counting.inputs import Database
from sfumato.errors import InvalidInput

_PLAIN = (("x", "y"), ("easting", "northing"))
_TIMES = frozenset({"t", "time", "timestamp", "datetime", "date", "when", "ts", "at", "started"})
_PERSONS = frozenset(
    {
        "user", "userid", "person", "personid", "patient", "customer", "client", "subscriber", "member", "rider",
        "driver", "passenger", "household", "device", "imsi", "imei", "uid", "entity", "individual", "employee",
        "student",
    }
)  # fmt: skip
_KINDS = frozenset(
    {
        "mode", "kind", "type", "category", "class", "group", "status", "sex", "gender", "purpose", "state",
        "region", "county", "borough", "district", "diagnosis", "case", "sector", "level", "age", "weekday",
        "payment", "reason",
    }
)  # fmt: skip
_LETTERS = ("VARCHAR", "BOOLEAN", "ENUM")
_RECORD = re.compile(r"\s*[-+]?[0-9.,:/eE\s-]*[0-9][-0-9.,:/eETZ+\s]*")  # a number, a date or a time


@dataclass(frozen=True)
class Column:
    """A column: its name, and its type where the file says one."""

    name: str
    kind: str | None

    @property
    def words(self) -> tuple[str, ...]:
        """The words of its name: pickupLon and pickup_lon have the same."""
        return words(self.name)

    @property
    def is_number(self) -> bool:
        """Whether its type allows for a coordinate."""
        return self.kind is None or self.kind.startswith(("DOUBLE", "FLOAT", "DECIMAL", "INT", "BIGINT", "SMALLINT"))

    @property
    def is_time(self) -> bool:
        """Whether its type says that it tells a time."""
        return self.kind is not None and self.kind.startswith(("TIMESTAMP", "DATE"))

    @property
    def is_text(self) -> bool:
        """Whether its type allows for labels."""
        return self.kind is None or self.kind.startswith(_LETTERS)


@dataclass(frozen=True, kw_only=True)
class Guess:
    """Which columns tell where, when, what and who."""

    place: tuple[Column, Column] | None
    time: Column | None
    category: Column | None
    entity: Column | None

    @property
    def used(self) -> frozenset[str]:
        """The names of all of them."""
        found = (*(self.place or ()), self.time, self.category, self.entity)
        return frozenset(column.name for column in found if column is not None)


def columns_of(data: str) -> tuple[Column, ...]:
    """The columns of Parquet or CSV files, by the first of them."""
    with closing(Database()) as database:
        kind, files = find_files([data], database)
        if kind == "parquet":
            (parquet, *_) = columnar.read_parts(files[:1], database, ())
            return tuple(Column(name, kind) for name, kind in zip(parquet.header, parquet.types, strict=False))
        (csv, *_) = delimited.read_parts(files[:1], database, ())
    if any(not name.strip() or _RECORD.fullmatch(name) for name in csv.header):
        raise InvalidInput(
            "the first line of the data looks like a record, and names of columns are what is needed. Nothing was "
            "written. Put a header line before it."
        )
    return tuple(Column(name, None) for name in csv.header)


def guessed(columns: Sequence[Column]) -> Guess:
    """By name and type, the first that fits."""
    place = _place(columns)
    left = [column for column in columns if column not in (place or ())]
    entity = next((one for one in left if _PERSONS & {*one.words} and not one.is_time), None)
    left = [column for column in left if column is not entity]
    time = next((one for one in left if one.is_time), None)
    time = time or next((one for one in left if one.is_text and _TIMES & {*one.words}), None)
    category = next((one for one in left if one is not time and one.is_text and _KINDS & {*one.words}), None)
    return Guess(place=place, time=time, category=category, entity=entity)


def _place(columns: Sequence[Column]) -> tuple[Column, Column] | None:
    """Longitude and latitude, or x and y, of the same thing: pickup_lon goes with pickup_lat."""
    numbers = [column for column in columns if column.is_number]
    for one in numbers:
        across = ACROSS & {*one.words}
        for other in numbers if across else ():
            up = UP & {*other.words}
            if up and {*one.words} - across == {*other.words} - up:
                return one, other
    for first, second in _PLAIN:
        named = {column.name.lower(): column for column in numbers}
        if first in named and second in named:
            return named[first], named[second]
    return None
