"""Which column feeds which axis, and whether it can:
settled from names and types, before a record is read.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, NoReturn

from sfumato.domain import Axis, Domain, Labels, Timed
from sfumato.errors import InvalidInput

if TYPE_CHECKING:
    import narwhals as nw

ENTITY = "entity"
UNREADABLE = "unreadable"
"""The private names of the column that says whose a record is, and of one that says that a coordinate was written in a
way that cannot be read."""


@dataclass(frozen=True)
class Index:
    """A column of cells of H3, which tells a place of hexagons by itself."""

    column: str


@dataclass(frozen=True)
class Both:
    """A column of points, which tells both axes of a grid on the ground; None in the place of the second one's."""

    column: str


@dataclass(frozen=True)
class Columns:
    """The column of each axis, in order (two of a place that is told by two), and that of the entity, if any."""

    axes: tuple[str | Index | Both | tuple[str, ...] | None, ...]
    entity: str | None = None

    def fields(self, domain: Domain) -> tuple[Field, ...]:
        """What is to be read, under names that no engine can take for another column's."""
        found: list[Field] = []
        for axis, given in zip(domain.axes, self.axes, strict=True):
            if given is None:
                continue
            if isinstance(given, (Index, Both)):
                told = isinstance(given, Index)
                found.append(Field(f"c{len(found)}", given.column, axis, geometry=not told, indices=told))
                continue
            names = given if isinstance(given, tuple) else (given,)
            found += [Field(f"c{len(found) + i}", name, axis, len(names) < axis.arity) for i, name in enumerate(names)]
        return (*found, *(() if self.entity is None else (Field(ENTITY, self.entity, None),)))


@dataclass(frozen=True)
class Field:
    """A column to read: the name that the engine is given, the name in the data, and the axis that it feeds.

    Names in the data may differ in case only, or be read as SQL; those given to engines do not. Without an axis the
    column names the entity.
    """

    alias: str
    column: str
    axis: Axis | None
    geometry: bool = False
    """Whether it holds points, both coordinates of a place at once."""
    indices: bool = False
    """Whether it holds cells of H3."""

    @property
    def labels(self) -> Labels | None:
        """The axis, where it is one of labels."""
        return self.axis if isinstance(self.axis, Labels) else None

    @property
    def times(self) -> Timed | None:
        """The axis, where it is one of times."""
        return self.axis if isinstance(self.axis, Timed) else None

    @property
    def is_number(self) -> bool:
        """Whether the column is a coordinate."""
        return self.axis is not None and self.axis.reads in ("numbers", "places") and not self.folded

    @property
    def folded(self) -> bool:
        """Whether one column tells a place by itself, so that it becomes two coordinates."""
        return self.geometry or self.indices

    @property
    def needs(self) -> str:
        """What takes the column, in words."""
        return "the entity" if self.axis is None else f"axis {self.axis.name!r}"

    def check_zone(self, *, zoned: bool) -> None:
        """Refuse times without a zone where the axis needs one, and the other way round."""
        if self.times is not None and not self.times.takes(zoned=zoned):
            raise InvalidInput(f"Column {self.column!r} does not fit {self.needs}: {self.times.misfit(zoned=zoned)}")

    @property
    def stranger(self) -> int:
        """A 64-bit number that is none of the axis's labels, for numbers beyond that range."""
        labels = set() if self.labels is None else set(self.labels.labels)
        return next(number for number in range(len(labels) + 1) if number not in labels)


def check_columns(fields: tuple[Field, ...], schema: Mapping[str, nw.dtypes.DType]) -> None:
    """Every column is of a type that its axis can place, or that tells entities apart."""
    for field in fields:
        axis, kind, name = field.axis, schema[field.alias], field.column
        if axis is None:
            if not _tells_apart(kind):
                raise InvalidInput(
                    f"Column {name!r} is of type {kind}, by which an entity cannot be told from another one reliably. "
                    "Nothing was counted. Convert the column to whole numbers or strings first."
                )
        elif not field.geometry and not (_tells_cells(kind) if field.indices else _fits(axis, kind)):
            refuse_type(field, str(kind))
        if field.times is not None:
            field.check_zone(zoned=getattr(kind, "time_zone", None) is not None)


def refuse_type(field: Field, kind: str) -> NoReturn:
    """Say that a column is of a type that its axis does not take."""
    labels = "" if field.labels is None else f"labels of type {field.labels.kind.__name__}"
    wanted, how = labels or "numbers", "Convert the column first."
    if field.indices:
        wanted, how = "cells of H3", "Give them as text in hexadecimal, or as whole numbers of 64 bits."
    if field.times is not None:
        wanted = "times"
        how = "Convert the column to datetimes first (pandas.to_datetime, str.to_datetime, CAST … AS TIMESTAMP)."
    raise InvalidInput(
        f"Column {field.column!r} is of type {kind}, and {field.needs} needs {wanted}. Nothing was counted. {how}"
    )


def _tells_apart(dtype: nw.dtypes.DType) -> bool:
    """Whether equal values of a type are equal to every engine, and different ones different.

    Python objects are not: some compare addresses. Durations and times of day may have nanoseconds, which DuckDB cuts.
    """
    import narwhals as nw

    plain = (nw.String, nw.Categorical, nw.Enum, nw.Boolean, nw.Binary, nw.Date, nw.Datetime)
    return dtype.is_numeric() or isinstance(dtype, plain)


def _tells_cells(dtype: nw.dtypes.DType) -> bool:
    import narwhals as nw

    return isinstance(dtype, (nw.Int64, nw.UInt64, nw.String, nw.Categorical, nw.Enum))


def _fits(axis: Axis, dtype: nw.dtypes.DType) -> bool:
    import narwhals as nw

    if axis.reads == "times":
        return isinstance(dtype, (nw.Datetime, nw.Date))
    if not isinstance(axis, Labels):
        return dtype.is_numeric()
    if axis.kind is str:
        return isinstance(dtype, (nw.String, nw.Categorical, nw.Enum))
    return isinstance(dtype, nw.Boolean) if axis.kind is bool else dtype.is_integer()
