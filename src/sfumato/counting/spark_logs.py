"""While Spark counts, its logs say nothing: an engine that fails quotes the record that it could not read.

What is silenced: the loggers of tasks, jobs and executors in the driver of classic Spark and on its workers, and those
by which PySpark itself prints the message of an error. They speak again when the count is over, also when it failed or
was interrupted; with several counts at a time, when the last one is. An executor that joins meanwhile is not silenced;
and what the server of Connect writes is for whoever runs it to say. For these ``docs/engines.md`` has the lines of a
log4j2.properties.
"""

from __future__ import annotations

import contextlib
import re
import threading
import time
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any

from sfumato.errors import DataWarning, warn_caller

JVM = (
    "org.apache.spark.scheduler.TaskSetManager",
    "org.apache.spark.scheduler.DAGScheduler",
    "org.apache.spark.executor.Executor",
    "org.apache.spark.api.python",
    "org.apache.spark.sql.execution.python",
    "org.apache.spark.util.Utils",
)
"""Loggers of the JVM that print what a task failed with."""
PYTHON = "SQLQueryContextLogger", "DataFrameQueryContextLogger"
"""Those of PySpark that print the message of an error that it raises."""

_LOG4J = "org.apache.logging.log4j"
_LEVEL = re.compile(r":([A-Z]+) ")
_PATIENCE = 30.0
_ROUNDS = 20
_WHO = "reflect('java.net.InetAddress', 'getLocalHost')", "reflect('java.lang.ProcessHandle', 'current')"
_AWHILE = "reflect('java.lang.Thread', 'sleep', CAST(20 AS BIGINT))"  # so that one worker cannot do all

_lock = threading.Lock()
_holders: list[object] = []
_undo: list[Callable[[], None]] = []


@contextlib.contextmanager
def silent(session: Any) -> Iterator[None]:
    """Silence for the length of a block."""
    holder = object()
    context = getattr(session, "_sc", None)  # Connect has none
    try:
        with _lock:
            _holders.append(holder)
            if len(_holders) == 1:
                _hush_python()
                if context is not None:
                    _tried(_hush_driver, context)
                    _tried(_hush_executors, session)
        yield
    except BaseException:
        if context is not None:  # parts that are being stopped say why, after the count has failed
            _tried(_wait_for_tasks, context)
        raise
    finally:
        with _lock:
            _holders.remove(holder)
            while _undo and not _holders:
                _tried(_undo.pop())


def _wait_for_tasks(context: Any) -> None:
    """Until no worker does anything, or for some seconds."""
    tracker, until = context._jsc.sc().statusTracker(), time.monotonic() + _PATIENCE
    while time.monotonic() < until and any(each.numRunningTasks() for each in tracker.getExecutorInfos()):
        time.sleep(0.05)
    time.sleep(0.2)  # what was heard last is being written


def _hush_python() -> None:
    try:
        from pyspark.logger import PySparkLogger  # it must make them: a plain logger of the name would not do
    except ImportError:  # before Spark 4 there were none
        return
    before = {logger: logger.disabled for logger in map(PySparkLogger.getLogger, PYTHON)}

    def undo() -> None:
        for logger, disabled in before.items():
            logger.disabled = disabled

    _undo.append(undo)  # first, here and below: whoever is interrupted in between has to take it back
    for logger in before:
        logger.disabled = True


def _hush_driver(context: Any) -> None:
    log4j = context._jvm.org.apache.logging.log4j
    levels, loggers = log4j.Level, log4j.LogManager.getContext(False)
    configuration = loggers.getConfiguration()
    before = {
        name: log4j.LogManager.getLogger(name).getLevel() if configuration.getLoggers().containsKey(name) else None
        for name in JVM
    }

    def undo() -> None:
        for name, level in before.items():
            if level is None:
                configuration.removeLogger(name)
            else:
                log4j.core.config.Configurator.setLevel(name, level)
        loggers.updateLoggers()

    _undo.append(undo)
    for name in JVM:
        log4j.core.config.Configurator.setLevel(name, levels.OFF)


def _hush_executors(session: Any) -> None:
    """On all workers: by static methods, which Spark's SQL can call by name."""
    rows = _everywhere(session, [f"reflect('{_LOG4J}.LogManager', 'getLogger', '{name}')" for name in JVM])
    levels = dict(zip(JVM, (_LEVEL.search(str(was)) for was in rows[0]), strict=False))

    def undo() -> None:
        columns = [_set(name, level[1]) for name, level in levels.items() if level]
        speaking = threading.Thread(target=_tried, args=(_everywhere, session, columns), daemon=True)
        speaking.start()
        speaking.join(_PATIENCE)  # workers that are gone need not be told

    _undo.append(undo)
    _everywhere(session, [_set(name, "OFF") for name in JVM])


def _set(name: str, level: str) -> str:
    return f"reflect('{_LOG4J}.core.config.Configurator', 'setLevel', '{name}', '{level}')"


def _everywhere(session: Any, columns: list[str]) -> list[Any]:
    """What some columns are on the workers, a row or more for each: tasks go out until every worker has had one."""
    tracker, tasks = session.sparkContext._jsc.sc().statusTracker(), 2 * session.sparkContext.defaultParallelism
    told: set[tuple[str, str]] = set()
    found: list[Any] = []
    for _ in range(_ROUNDS):
        for row in session.range(0, tasks, 1, tasks).selectExpr(*columns, *_WHO, _AWHILE).collect():
            told.add((row[len(columns)], row[len(columns) + 1]))
            found.append(row)
        if len(told) >= max(1, len(tracker.getExecutorInfos()) - 1):  # the driver is among them
            return found
    return found


def _tried(work: Callable[..., Any], *given: Any) -> Any:
    """The result, or None and a word to the operator: counting does not depend on what Spark's logs may be told."""
    try:
        return work(*given)
    except Exception as error:  # noqa: BLE001  # of Spark, of its gateway, of what keeps calls by name away
        _warn(type(error).__name__)
        return None


@lru_cache(maxsize=1)  # once a process
def _warn(kind: str) -> None:
    warn_caller(
        f"Spark's loggers could not be silenced for the time of the count ({kind}): if it fails, Spark's own logs may "
        "quote a record. Set their levels in log4j2.properties, or keep these logs from others.",
        DataWarning,
    )
