"""Counting here, batch by batch: DuckDB reads and decodes, NumPy places. Memory does not grow with the number of records.

For a million cells this is faster than a group-by in SQL, which keeps a hash table of cells where an array
will do.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sfumato.count.columns import Columns
from sfumato.count.counts import CountReport
from sfumato.count.inputs import hushed
from sfumato.count.reservoir import Reservoir, Share
from sfumato.count.tally import empty_tally
from sfumato.domain import Axis, Domain, Interval, Labels
from sfumato.domain.labels import unknown_label
from sfumato.errors import InvalidInput
from sfumato.noise import Source

if TYPE_CHECKING:
    from sfumato.count.inputs import Frame

BATCH = 1 << 17
DROPPED = -1


class Stream:
    """The needed columns of a frame, as batches that can be read more than once."""

    def __init__(self, frame: Frame, domain: Domain, columns: Columns) -> None:
        self.domain, self.columns = domain, columns
        self._relation = relation_of(frame, columns)

    def rows(self) -> int | None:
        """How many rows there are."""
        return int(self._relation.aggregate("count(*)").fetchone()[0])

    def batches(self, share: Share) -> Iterator[Any]:
        """Record batches of the axes' columns and, where there is an entity, its digest as the last column."""
        fields = [
            f"CAST({quoted(name)} AS DOUBLE) AS c{i}" if isinstance(axis, Interval) else f"{quoted(name)} AS c{i}"
            for i, (axis, name) in enumerate(zip(self.domain.axes, self.columns.axes, strict=True))
        ]
        relation = self._relation
        if self.columns.entity is not None:
            digest = f"hash({quoted(self.columns.entity)})"
            fields.append(f"{digest} AS entity")
            if share.parts > 1:
                relation = relation.filter(f"{digest} % {share.parts} = {share.residue}")
        selected = relation.project(", ".join(fields))
        read = getattr(selected, "to_arrow_reader", None) or selected.fetch_arrow_reader  # the name before
        1.4 yield from read(BATCH)


def count_stream(
    stream: Stream, *, drop: bool, limit: int | None, source: Source, advance: Callable[[int], None]
) -> tuple[NDArray[np.int64], CountReport]:
    """The flat counts and the report; ``limit`` records an entity at most, when given.

    Records without coordinates are no records and do not take part in the choice. Records outside the bounds
    do, even where they are dropped afterwards: leaving them out before would let the choice depend on where
    they lie.
    """
    tally, placer = empty_tally(stream.domain), Placer(stream.domain, drop=drop)
    rows = missing = outside = cut = entities_cut = 0
    shares = [Share()]
    while shares:
        share = shares.pop()
        reservoir = None if limit is None else Reservoir(limit, source, share)
        for batch in _reads(stream, share):
            cells, present, beyond = placer(batch)
            if share.parts == 1:  # the first pass sees every row, later ones see some of them again
                rows, missing, outside = rows + len(batch), missing + len(batch) - len(cells), outside +
                beyond
            if reservoir is None:
                np.add.at(tally, cells[cells >= 0] if drop else cells, 1)
            else:
                entities = batch.column(len(stream.domain.axes)).to_numpy(zero_copy_only=False)
                reservoir.add(entities if present is None else entities[present], cells)
            advance(len(batch))
        if reservoir is not None:
            cells = reservoir.kept()
            np.add.at(tally, cells[cells >= 0], 1)
            cut, entities_cut = cut + reservoir.cut, entities_cut + reservoir.entities_cut
            shares.extend(reservoir.left)
    return tally, CountReport(
        rows=rows,
        without_coordinates=missing,
        outside=outside,
        cut=None if limit is None else cut,
        entities_cut=None if limit is None else entities_cut,
    )


def _reads(stream: Stream, share: Share) -> Iterator[Any]:
    """The batches of a share; when the engine fails, its words are not passed on."""
    batches = stream.batches(share)
    while True:
        with hushed("The records could not be read"):
            batch = next(batches, None)
        if batch is None:
            return
        yield batch


class Placer:
    """From a batch of columns to the cells of its records."""

    def __init__(self, domain: Domain, *, drop: bool) -> None:
        self.domain, self.drop = domain, drop

    def __call__(self, batch: Any) -> tuple[NDArray[np.int64], NDArray[np.bool_] | None, int]:
        """The cells of the records, which rows are records (None: all), and how many of them lie outside."""
        columns = [self._column(axis, batch.column(i)) for i, axis in enumerate(self.domain.axes)]
        lost = np.zeros(len(batch), np.bool_)
        for column in columns:
            lost |= np.isnan(column)
        present = None
        if lost.any():
            present = ~lost
            columns = [column[present] for column in columns]
        cells = np.zeros(len(columns[0]), np.int64)
        outside = np.zeros(len(cells), np.bool_)
        for axis, column in zip(self.domain.axes, columns, strict=True):
            if isinstance(axis, Interval):
                outside |= (column < axis.low) | (column > axis.high)
                axis.accumulate(column, cells)
            else:
                self._accumulate_labels(axis, column, cells, outside)
        if self.drop:
            cells[outside] = DROPPED
        return cells, present, int(np.count_nonzero(outside))

    def _column(self, axis: Axis, values: Any) -> NDArray[np.float64]:
        """A column as doubles, NaN where it is null:
        a coordinate, or the position of a label (-1 where it is unknown).
        """
        if isinstance(axis, Labels):
            import pyarrow as pa
            import pyarrow.compute as pc

            if pa.types.is_dictionary(values.type):
                values = values.dictionary_decode()
            positions = pc.fill_null(pc.index_in(values, value_set=pa.array(axis.labels, values.type)), -1)
            values = pc.if_else(values.is_null(), None, positions).cast(pa.float64())
        column: NDArray[np.float64] = values.to_numpy(zero_copy_only=False)
        return column

    def _accumulate_labels(
        self, axis: Axis, positions: NDArray[np.float64], cells: NDArray[np.int64], outside: NDArray[np.bool_]
    ) -> None:
        unknown = positions < 0
        if isinstance(axis, Labels) and unknown.any():
            if axis.other is None and not self.drop:
                raise InvalidInput(unknown_label(axis.name))
            outside |= unknown
            positions = np.where(unknown, 0 if axis.other is None else axis.labels.index(axis.other),
            positions)
        np.multiply(cells, axis.cells, out=cells)
        np.add(cells, positions, out=cells, casting="unsafe")


def relation_of(frame: Frame, columns: Columns) -> Any:
    """The needed columns as a DuckDB relation; those of an eager frame are handed over through Arrow.

    A lazy frame of another engine is collected, the needed columns only: choosing records by entity needs
    them more than once, and no expression for it is common to all engines. A stream that can be read only
    once is held as well when there is an entity.
    """
    import duckdb
    import narwhals as nw

    if frame.implementation.is_duckdb():
        native = frame.to_native()
        if columns.entity is None or native.type != "ARROW_SCAN_RELATION":
            return native
    selected: Any = frame.select(*columns.needed)
    with hushed("The needed columns could not be read"):
        table = (selected.collect("pyarrow") if isinstance(selected, nw.LazyFrame) else selected).to_arrow()
    return duckdb.connect().from_arrow(table)


def quoted(name: str) -> str:
    """A column name as SQL takes it."""
    return '"' + name.replace('"', '""') + '"'
