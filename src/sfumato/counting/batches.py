"""Counting here, batch by batch: DuckDB reads and decodes, NumPy places.

Memory does not grow with the number of records.
For a million cells this is faster than a group-by in SQL, which keeps a hash table of cells where an array
will do.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import NDArray

from sfumato.counting.columns import ENTITY, UNREADABLE, Field
from sfumato.counting.entities import Entities
from sfumato.counting.hushing import hushed
from sfumato.counting.inputs import Database
from sfumato.counting.keyed import Keyed
from sfumato.counting.persons import person_numbers
from sfumato.counting.place import Placer, fixed_width
from sfumato.counting.points import Transformation, places_in
from sfumato.counting.report import CountReport
from sfumato.counting.sql import FLOATS, INTEGERS
from sfumato.counting.streams import arrow_reader, duckdb_reader
from sfumato.counting.summed import Summed, adder, require_few
from sfumato.counting.tally import empty_tally
from sfumato.domain import Domain, Ground, Places
from sfumato.domain.timed import NO_TIME
from sfumato.linear.tables import Tables

if TYPE_CHECKING:
    from sfumato.counting.tables import View

_TOLD = INTEGERS | FLOATS | {"BOOLEAN", "DATE", "TIMESTAMP", "BLOB", "VARCHAR"}
"""Types whose values tell persons apart in Arrow as they do in DuckDB; of any other the text does."""


_TAKEN = {
    "labels": "{0}",
    "numbers": "coalesce(CAST({0} AS DOUBLE), 'NaN')",
    "times": f"coalesce({{0}}, CAST('{NO_TIME}' AS BIGINT))",
}
"""How a batch tells that there is no value, by what the axis reads."""


def _taken(field: Field) -> str:
    reads = "numbers" if field.is_number or field.axis is None else field.axis.reads
    return "{0}" if field.folded else _TAKEN[reads]


class Batches:
    """The needed columns of a frame, in batches."""

    def __init__(self, view: View, domain: Domain, database: Database, *, entity: str | None) -> None:
        self.domain, self.view, self.entity = domain, view, entity
        self._relation = relation_of(view, database)
        self._fields = [field for field in view.fields if field.axis is not None]
        axes = {field.alias: cast(Places | Ground, field.axis) for field in self._fields}
        self._ways = {alias: Transformation.between(crs, axes[alias].crs) for alias, crs in view.crs.items()}

    def rows(self) -> int:
        """How many rows there are; for Parquet files this is in their footers."""
        return hushed(
            "The rows could not be counted",
            lambda: int(self._relation.aggregate("count(*)").fetchall()[0][0]),
            self.view.advice,
        )

    @property
    def transformed(self) -> str | None:
        """How points come into the CRS of the domain, where they are in another one."""
        return "; ".join(dict.fromkeys(way.pipeline for way in self._ways.values())) or None

    def __iter__(self) -> Iterator[Any]:
        """Record batches of the axes' columns, of entities where they matter, and of whether a coordinate could not be
        read where that can be.
        """
        fields = [f"{_taken(field).format(field.alias)} AS {field.alias}" for field in self._fields]
        if self.entity is not None:
            fields.append(f"{hushed('The entities could not be read', self._whose, self.view.advice)} AS {ENTITY}")
        if self.view.unreadable:
            fields.append(f"CAST({UNREADABLE} AS UTINYINT) AS {UNREADABLE}")

        def opened() -> Iterator[Any]:
            return iter(duckdb_reader(self._relation.project(", ".join(fields))))

        batches = hushed("The records could not be read", opened, self.view.advice)
        while True:
            batch = hushed("The records could not be read", lambda: next(batches, None), self.view.advice)
            if batch is None:
                return
            yield self._unfolded(batch)

    def _unfolded(self, batch: Any) -> Any:
        """With two columns of coordinates in the place of one of points or of cells of H3."""
        if not any(field.folded for field in self._fields):
            return batch
        import pyarrow as pa

        columns: list[Any] = []
        for i, column in enumerate(batch.columns):
            field = self._fields[i] if i < len(self._fields) else None
            if field is None or not field.folded:
                columns.append(column)
                continue
            places = places_in(column, field)
            if field.alias in self._ways:
                places = np.stack(self._ways[field.alias](*places.T), axis=-1)
            columns += [pa.array(np.ascontiguousarray(places[:, k])) for k in range(2)]
        return pa.RecordBatch.from_arrays(columns, names=[f"c{i}" for i in range(len(columns))])

    def _whose(self) -> str:
        """SQL for the column of entities, as `persons` takes it."""
        kind = str(self._relation.project(ENTITY).types[0])
        return ENTITY if kind in _TOLD else f"CAST({ENTITY} AS VARCHAR)"


def count_batches(
    stream: Batches,
    *,
    drop: bool,
    choice: Keyed | None,
    advance: Callable[[int], None],
    tables: Tables | None = None,
    summed: Summed | None = None,
) -> tuple[NDArray[np.int64], CountReport]:
    """The flat counts or sums, of cells or of tables, and the report; of each entity what the ``choice`` keeps.

    Records without coordinates are no records and do not take part in the choice. Records outside the bounds do, even
    where they are dropped afterwards: leaving them out before would let the choice depend on where they lie.
    """
    tally = empty_tally(stream.domain, tables) if summed is None else summed.tally(tables)
    placer = Placer(stream.domain, drop=drop)
    into = adder(tally, summed, tables)
    bounded = None if choice is None else Entities(choice, cells=stream.domain.size)
    naming_key = b"" if choice is None else choice.naming_key

    def add(cells: NDArray[np.integer]) -> None:
        into(cells[cells >= 0] if drop or stream.domain.apart else cells)

    rows = missing = outside = nobody = unreadable = 0
    for batch in stream:
        cells, present, beyond = hushed("The records could not be placed", partial(placer, batch), stream.view.advice)
        if stream.view.unreadable:
            bad = int(np.count_nonzero(fixed_width(batch.column(batch.num_columns - 1), np.uint8)))
            unreadable, missing = unreadable + bad, missing - bad
        rows, missing, outside = rows + len(batch), missing + len(batch) - len(cells), outside + beyond
        require_few(rows)
        if bounded is None:
            add(cells)
        else:
            column = batch.column(sum(axis.arity for axis in stream.domain.axes))
            entities, known = person_numbers(column, naming_key)
            entities = entities if present is None else entities[present]
            if known is not None:  # a record of nobody is no record: whose share would it use up?
                known = known if present is None else known[present]
                nobody += int(np.count_nonzero(~known))
                entities, cells = entities[known], cells[known]
            bounded.add(entities, cells)
        advance(len(batch))
    if bounded is not None:
        for kept in bounded.kept():
            add(kept.cells)
    return tally, CountReport(
        rows=rows,
        without_coordinates=missing,
        unreadable=unreadable if stream.view.unreadable else None,
        outside=outside,
        without_entity=None if bounded is None else nobody,
        cut=None if bounded is None else bounded.cut,
        entities_cut=None if bounded is None else bounded.entities_cut,
        transformed=stream.transformed,
    )


def relation_of(view: View, database: Database) -> Any:
    """The needed columns as a DuckDB relation; those of other engines are handed over through Arrow, lazy ones batch
    by batch.
    """
    import narwhals as nw

    frame = view.frame
    if frame.implementation.is_duckdb():
        return frame.to_native()

    def handed_over() -> Any:
        records = arrow_reader(frame) if isinstance(frame, nw.LazyFrame) else frame.to_arrow()
        return database.connection.from_arrow(records)

    return hushed("The needed columns could not be read", handed_over, view.advice)
