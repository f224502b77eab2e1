"""Which column feeds which axis, and whether it can:
settled from names and types, before a record is read.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sfumato.domain import Axis, Domain, Labels
from sfumato.errors import InvalidInput

if TYPE_CHECKING:
    import narwhals as nw

ENTITY = "entity"
UNREADABLE = "unreadable"
"""The private names of the column that says whose a record is, and of one that says that a coordinate was written in a
way that cannot be read."""


@dataclass(frozen=True)
class Columns:
    """One column name for each axis, in order, and the column that names the entity, if any."""

    axes: tuple[str, ...]
    entity: str | None = None

    @property
    def needed(self) -> tuple[str, ...]:
        """Every column that has to be read, once."""
        return tuple(dict.fromkeys((*self.axes, *(() if self.entity is None else (self.entity,)))))

    def fields(self, domain: Domain) -> tuple[Field, ...]:
        """What is to be read, under names that no engine can take for another column's."""
        axes = [Field(f"c{i}", name, axis) for i, (axis, name) in enumerate(zip(domain.axes, self.axes, strict=True))]
        return (*axes, *(() if self.entity is None else (Field(ENTITY, self.entity, None),)))


@dataclass(frozen=True)
class Field:
    """A column to read: the name that the engine is given, the name in the data, and the axis that it feeds.

    Names in the data may differ in case only, or be read as SQL; those given to engines do not. Without an axis the
    column names the entity.
    """

    alias: str
    column: str
    axis: Axis | None

    @property
    def labels(self) -> Labels | None:
        """The axis, where it is one of labels."""
        return self.axis if isinstance(self.axis, Labels) else None

    @property
    def is_number(self) -> bool:
        """Whether the column is a coordinate."""
        return self.axis is not None and self.labels is None

    @property
    def needs(self) -> str:
        """What takes the column, in words."""
        return "the entity" if self.axis is None else f"axis {self.axis.name!r}"

    @property
    def stranger(self) -> int:
        """A 64-bit number that is none of the axis's labels, for numbers beyond that range."""
        labels = set() if self.labels is None else set(self.labels.labels)
        return next(number for number in range(len(labels) + 1) if number not in labels)


def choose_columns(
    domain: Domain,
    by_order: tuple[str | None, str | None, str | None],
    by_name: Mapping[str, str] | None,
    entity: str | None,
) -> Columns:
    """``x``, ``y`` and ``z`` name the columns of the first axes, ``columns`` those of axes by name;
    else it is the axis's own name.
    """
    chosen = dict(zip(domain.names, domain.names, strict=True))
    for i, (keyword, column) in enumerate(zip("xyz", by_order, strict=True)):
        if column is not None and i >= domain.ndim:
            raise InvalidInput(
                f"{keyword}={column!r} names a column for axis {i + 1}, and the domain has {domain.ndim}. Leave it out."
            )
        if column is not None:
            chosen[domain.names[i]] = column
    for axis, column in (by_name or {}).items():
        if axis not in chosen:
            raise InvalidInput(
                f"columns={dict(by_name or {})!r} names the axis {axis!r}; the axes are {_list(domain.names)}."
            )
        if domain.names.index(axis) < 3 and by_order[domain.names.index(axis)] not in (None, column):
            raise InvalidInput(f"The column of axis {axis!r} is given twice. Name it once.")
        chosen[axis] = column
    return Columns(tuple(chosen[name] for name in domain.names), entity)


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
        elif not _fits(field.labels, kind):
            wanted = "numbers" if field.labels is None else f"labels of type {field.labels.kind.__name__}"
            raise InvalidInput(
                f"Column {name!r} is of type {kind}, and axis {axis.name!r} needs {wanted}. "
                "Nothing was counted. Convert the column first."
            )


def _tells_apart(dtype: nw.dtypes.DType) -> bool:
    """Whether equal values of a type are equal to every engine, and different ones different.

    Python objects are not: some compare addresses. Durations and times of day may have nanoseconds, which DuckDB cuts.
    """
    import narwhals as nw

    plain = (nw.String, nw.Categorical, nw.Enum, nw.Boolean, nw.Binary, nw.Date, nw.Datetime)
    return dtype.is_numeric() or isinstance(dtype, plain)


def _fits(labels: Labels | None, dtype: nw.dtypes.DType) -> bool:
    import narwhals as nw

    if labels is None:
        return dtype.is_numeric()
    if labels.kind is str:
        return isinstance(dtype, (nw.String, nw.Categorical, nw.Enum))
    return isinstance(dtype, nw.Boolean) if labels.kind is bool else dtype.is_integer()


def _list(names: tuple[str, ...]) -> str:
    return ", ".join(map(repr, names))
