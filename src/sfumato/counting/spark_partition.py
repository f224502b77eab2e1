"""What a worker of Spark does with its part of the records: the same code that counts everywhere, on a stream of Arrow.

A part gives its cells that have records and how many, and under numbers below zero what happened to the rest. Nothing
else leaves a worker: an error is told in our words, and what it quotes is not (`sfumato.counting.spark_failures`).

**The same cells.** A worker that would locate otherwise than the driver, by another version of the package, of the
hexagons' library or of a zone's table, refuses.

**Persons.** Of a person all records come to one part, and the choice among them depends on them and the key alone
(`sfumato.counting.keyed`). What a part gives is one row, taken whole or not at all: a part that is done again because
a worker was lost gives the same, and the driver takes one of the two. So nobody is counted more than m times, whatever
fails, even where the data itself changes when Spark reads it again.
"""

from __future__ import annotations

import hashlib
import json
import zlib
from collections.abc import Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import chain
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from sfumato._version import __version__
from sfumato.counting.columns import ENTITY, Field
from sfumato.counting.counts import CountReport
from sfumato.counting.keyed import Keyed
from sfumato.counting.place import fixed_width
from sfumato.counting.spark_failures import told
from sfumato.counting.summed import Summed
from sfumato.domain import Domain, Places, Timed, domain_from_spec
from sfumato.errors import InvalidInput
from sfumato.linear.tables import Tables
from sfumato.values import Amounts

ROWS = "key bigint, records bigint"
WHOLE = "part binary"
"""What parts give: a row for each number, or all of it as one row."""

_REPORTED = ("rows", "without_coordinates", "outside", "without_entity", "cut", "entities_cut")
"""The fields of a report that numbers below zero stand for, from -1 down."""
_NUMBERS = np.arange(-len(_REPORTED), 0)
_BLOCK = 1 << 17

Sparse = tuple[NDArray[np.int64], NDArray[np.int64]]
"""Numbers, rising, and what is counted under each: cells from 0 on, and below what was reported."""


@dataclass(frozen=True, eq=False)
class Part:
    """All that a worker is told. The key of ``choice`` is secret: nothing that Spark writes about a part shows it."""

    domain: str
    fields: tuple[tuple[str, str, int | None, bool, bool], ...]
    footing: str
    drop: bool
    tables: Tables | None = None
    amounts: Amounts | None = None
    choice: Keyed | None = field(default=None, repr=False)

    @classmethod
    def of(
        cls,
        domain: Domain,
        fields: Iterable[Field],
        *,
        drop: bool,
        tables: Tables | None,
        choice: Keyed | None,
        summed: Summed | None,
    ) -> Part:
        """For columns of private names."""
        axes = {id(axis): i for i, axis in enumerate((domain if summed is None else summed.read).axes)}
        told = tuple((f.alias, f.column, axes.get(id(f.axis)), f.geometry, f.indices) for f in fields)
        amounts = None if summed is None else summed.amounts
        return cls(json.dumps(domain.spec()), told, footing(domain), drop, tables, amounts, choice)

    def rows(self, batches: Iterator[Any]) -> Iterator[Any]:
        """What the part counts, a row for each number."""
        import pyarrow as pa

        keys, records = self._told(batches)
        for start in range(0, len(keys), _BLOCK):
            block = slice(start, start + _BLOCK)
            yield pa.RecordBatch.from_arrays([pa.array(keys[block]), pa.array(records[block])], ["key", "records"])

    def whole(self, batches: Iterator[Any]) -> Iterator[Any]:
        """What the part counts, as one row."""
        import pyarrow as pa

        yield pa.RecordBatch.from_arrays([pa.array([packed(self._told(batches))], pa.binary())], ["part"])

    def _told(self, batches: Iterator[Any]) -> Sparse:
        try:
            return self.counted(batches)
        except Exception as error:  # noqa: BLE001  # whatever it is, Spark would write all of it to its logs
            failure = told(error)
        raise failure  # outside the handler, or the error itself would be written as its context

    def counted(self, batches: Iterator[Any]) -> Sparse:
        """The counts of record batches of private columns."""
        import narwhals as nw
        import pyarrow as pa

        from sfumato.counting.batches import Batches, count_batches
        from sfumato.counting.inputs import Database
        from sfumato.counting.tables import View

        domain = _domain(self.domain)
        if footing(domain) != self.footing:
            raise InvalidInput(_ANOTHER)
        summed = None if self.amounts is None else Summed(domain, self.amounts)
        read = domain if summed is None else summed.read
        fields = tuple(
            Field(alias, column, None if axis is None else read.axes[axis], geometry, indices)
            for alias, column, axis, geometry, indices in self.fields
        )
        first = next(batches, None)
        if first is None:
            return np.zeros(0, np.int64), np.zeros(0, np.int64)
        with closing(Database()) as database:
            database.connection.execute("SET threads = 1")  # Spark gives a part one core
            reader = pa.RecordBatchReader.from_batches(first.schema, chain([first], batches))
            view = View(nw.from_native(database.connection.from_arrow(reader)), fields=fields)
            stream = Batches(view, read, database, entity=None if self.choice is None else ENTITY)
            tally, report = count_batches(
                stream, drop=self.drop, choice=self.choice, advance=_unseen, tables=self.tables, summed=summed
            )
        cells = np.flatnonzero(tally)
        told = np.array([getattr(report, name) or 0 for name in _REPORTED[::-1]], np.int64)
        return np.concatenate([_NUMBERS, cells]), np.concatenate([told, tally[cells]])


def added(parts: Iterable[Sparse], tally: NDArray[np.int64], *, persons: bool) -> CountReport:
    """All parts together: the counts into ``tally``, and the report."""
    sums = np.zeros(len(_REPORTED), np.int64)
    for keys, records in parts:
        cells = keys >= 0
        np.add.at(tally, keys[cells], records[cells])
        np.add.at(sums, -1 - keys[~cells], records[~cells])
    rows, missing, outside, nobody, cut, entities_cut = sums.tolist()
    report = CountReport(rows=rows, without_coordinates=missing, outside=outside)
    return replace(report, without_entity=nobody, cut=cut, entities_cut=entities_cut) if persons else report


def packed(found: Sparse) -> bytes:
    """A few bytes for each number: steps between numbers and counts are small, and pack well."""
    keys, records = found
    steps = np.diff(keys, prepend=0).astype("<i8")
    return zlib.compress(steps.tobytes() + np.ascontiguousarray(records, "<i8").tobytes(), 1)


def unpacked(part: bytes) -> Sparse:
    """What `packed` made."""
    both = np.frombuffer(zlib.decompress(part), "<i8").reshape(2, -1)
    return np.cumsum(both[0]), both[1]


def from_table(table: Any) -> Sparse:
    """The same of an Arrow table with rows for all numbers."""
    key, records = (table.column(name).combine_chunks().cast("int64") for name in ("key", "records"))
    return fixed_width(key, np.int64), fixed_width(records, np.int64)


def footing(domain: Domain) -> str:
    """What cells depend on besides the description of the domain, as one word."""
    found = hashlib.sha256(__version__.encode())
    for axis in domain.axes:
        zone = cast(Timed, axis).zone if axis.reads == "times" else None
        if zone is not None:
            found.update(zone.changes.tobytes() + zone.offsets.tobytes())
        if axis.reads == "places" and cast(Places, axis).indexed:
            import h3

            found.update(h3.versions()["c"].encode())
    return found.hexdigest()


def _unseen(rows: int) -> None:
    """A worker shows no progress."""
    del rows


_ANOTHER = (
    "A worker of Spark has another version of sfumato, of its time zones (tzdata) or of h3 than the driver, and would "
    "put records into other cells. Nothing was counted. Install the same versions on all of them."
)


@lru_cache(maxsize=2)  # a worker does part after part, and what regions are found by is made once
def _domain(spec: str) -> Domain:
    return domain_from_spec(json.loads(spec))
