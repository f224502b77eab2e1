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


@dataclass(frozen=True)
class Columns:
    """One column name for each axis, in order, and the column that names the entity, if any."""

    axes: tuple[str, ...]
    entity: str | None = None

    @property
    def needed(self) -> tuple[str, ...]:
        """Every column that has to be read, once."""
        return tuple(dict.fromkeys((*self.axes, *(() if self.entity is None else (self.entity,)))))


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


def check_columns(columns: Columns, domain: Domain, schema: Mapping[str, nw.dtypes.DType]) -> None:
    """Every column is there and of a type that its axis can place."""
    missing = [name for name in columns.needed if name not in schema]
    if missing:
        raise InvalidInput(
            f"The data has no column {_list(missing)}; its columns are {_list(schema)}. Nothing was counted. "
            "Name the columns with x=, y=, z= or columns={axis: column}, and the entity's with entity=."
        )
    for axis, name in zip(domain.axes, columns.axes, strict=True):
        if not _fits(axis, schema[name]):
            wanted = f"labels of type {axis.kind.__name__}" if isinstance(axis, Labels) else "numbers"
            raise InvalidInput(
                f"Column {name!r} is of type {schema[name]}, and axis {axis.name!r} needs {wanted}. "
                "Nothing was counted. Convert the column first."
            )

    if columns.entity is not None and not _tells_apart(schema[columns.entity]):
        raise InvalidInput(
            f"Column {columns.entity!r} is of type {schema[columns.entity]}, by which an entity cannot be told from "
            "another one reliably. Nothing was counted. Convert the column to whole numbers or strings first."
        )


def _tells_apart(dtype: nw.dtypes.DType) -> bool:
    """Whether equal values of a type are equal to every engine; Python objects are not: some compare addresses."""
    import narwhals as nw

    plain = (nw.String, nw.Categorical, nw.Enum, nw.Boolean, nw.Binary, nw.Date, nw.Datetime, nw.Duration, nw.Time)
    return dtype.is_numeric() or isinstance(dtype, plain)


def _fits(axis: Axis, dtype: nw.dtypes.DType) -> bool:
    import narwhals as nw

    if not isinstance(axis, Labels):
        return dtype.is_numeric()
    if axis.kind is str:
        return isinstance(dtype, (nw.String, nw.Categorical, nw.Enum))
    return isinstance(dtype, nw.Boolean) if axis.kind is bool else dtype.is_integer()


def _list(names: Mapping[str, object] | tuple[str, ...] | list[str]) -> str:
    return ", ".join(map(repr, names))
