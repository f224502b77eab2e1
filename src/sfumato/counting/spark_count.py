"""Counting on Spark: by its own expression and group-by where there is one, and by our code on its workers elsewhere.

*Records on intervals, labels and times* are counted by one expression, and the workers need nothing but Spark.
*Places, tables, long lists of edges and cycles of zones that change their clocks* are counted by `mapInArrow` with the
code that counts everywhere (`sfumato.counting.spark_partition`); what parts count is added up by a group-by.
*Persons*: all records of a person go to one part, which chooses and counts, and what it counts goes straight to the
driver. There is no step of Spark after the choice: it could take what a part counted at first together with what it
counted when it was done again.

What the driver holds does not grow with the records: one number for each cell, and what each part counted, a few bytes
for each of its cells that has records.
"""

from __future__ import annotations

import contextlib
import uuid
from collections.abc import Iterator
from dataclasses import replace
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sfumato.counting.columns import ENTITY
from sfumato.counting.keyed import Keyed
from sfumato.counting.native import from_keys, grouped_keys, is_dear
from sfumato.counting.report import CountReport
from sfumato.counting.spark import with_positions
from sfumato.counting.spark_failures import explained
from sfumato.counting.spark_logs import silent
from sfumato.counting.spark_partition import ROWS, WHOLE, Part, added, from_table, unpacked
from sfumato.counting.summed import Summed
from sfumato.counting.tally import empty_tally
from sfumato.domain import Domain
from sfumato.linear.tables import Tables

if TYPE_CHECKING:
    from sfumato.counting.tables import View

_COMPILED = 64
"""Comparisons of an axis beyond which Spark's compiler gives up the expression, and evaluates it step by step."""
_COUNTED = "The records could not be counted"


def count_spark(
    view: View,
    domain: Domain,
    *,
    drop: bool,
    choice: Keyed | None,
    tables: Tables | None,
    summed: Summed | None,
    engine: str | None,
) -> tuple[NDArray[np.int64], CountReport]:
    """The flat counts or sums, of cells or of tables, and the report."""
    read = domain if summed is None else summed.read
    native: Any = view.frame.to_native()
    tally = empty_tally(domain, tables) if summed is None else summed.tally(tables)
    with silent(native.sparkSession), _cancelled(native.sparkSession):
        short = engine == "native" or all(axis.comparisons <= _COMPILED for axis in read.axes)
        if choice is None and tables is None and engine != "numpy" and short and not is_dear(read):
            positioned = replace(view, frame=with_positions(view.frame, read))
            grouped = explained(_COUNTED, lambda: grouped_keys(positioned, read))
            return from_keys(grouped, view, read, drop=drop, summed=summed)
        part = Part.of(domain, view.fields, drop=drop, tables=tables, choice=choice, summed=summed)
        if choice is None:
            rows = explained(_COUNTED, lambda: _added_up(native.mapInArrow(part.rows, ROWS)))
            return tally, added([rows], tally, persons=False)
        parts = explained(_COUNTED, lambda: _by_person(native).mapInArrow(part.whole, WHOLE).collect())
        return tally, added((unpacked(row[0]) for row in parts), tally, persons=True)


def _added_up(rows: Any) -> Any:
    import narwhals as nw

    summed = nw.from_native(rows).group_by("key").agg(nw.col("records").sum())
    return from_table(summed.collect("pyarrow").to_arrow())


def _by_person(native: Any) -> Any:
    """All records of a person in one part, of so many parts as Spark is told to make; those of nobody spread out."""
    session = native.sparkSession
    parts = int(session.conf.get("spark.sql.shuffle.partitions"))
    others = ", ".join(name for name in native.columns if name != ENTITY)
    where = f"CASE WHEN {ENTITY} IS NULL THEN xxhash64({others}) ELSE xxhash64({ENTITY}) END"
    return native.repartition(parts, _functions(native).expr(where))


def _functions(native: Any) -> Any:
    connect = type(native).__module__.startswith("pyspark.sql.connect")
    return import_module("pyspark.sql.connect.functions" if connect else "pyspark.sql.functions")


@contextlib.contextmanager
def _cancelled(session: Any) -> Iterator[None]:
    """What is under way in the block is cancelled on the cluster when the block is interrupted."""
    context, tag = getattr(session, "_sc", None), f"sfumato-{uuid.uuid4().hex}"
    if context is None:
        add, remove, cancel = session.addTag, session.removeTag, session.interruptTag
    else:
        add, remove, cancel = context.addJobTag, context.removeJobTag, context.cancelJobsWithTag
    explained(_COUNTED, lambda: add(tag))
    try:
        yield
    except BaseException as error:
        if not isinstance(error, Exception):
            explained("The count could not be cancelled on the cluster", lambda: cancel(tag))
        raise
    finally:
        with contextlib.suppress(Exception):  # a session that is gone has no tags
            remove(tag)
