"""What went wrong on Spark, in our own words: its messages quote records, and so do the workers'.

A worker's error is told between two marks (`told`), and only what is ours is told: the message of an error of ours,
which carries no private value, or the class of any other. On the driver the engine's text is searched for these marks
and for the few mishaps that have an advice of their own, and then forgotten; it is no cause and no context of what is
raised.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, TypeVar

from sfumato.errors import InvalidInput, SfumatoError, TooLarge

_Result = TypeVar("_Result")

_OPEN, _CLOSE = "<sfumato ", " sfumato>"
_TOLD = re.compile(f"{_OPEN}(ours|foreign) (.*?){_CLOSE}", re.DOTALL)
_ABSENT = re.compile(r"No module named '([A-Za-z0-9_]+)")
_SHIPPED = "sfumato", "numpy", "scipy", "narwhals", "duckdb", "pyarrow", "cryptography", "h3", "pandas"
"""Packages that a worker may lack; no other name is repeated."""

STOPPED = (
    "The Spark session of the data has stopped. Nothing was counted. Start one with SparkSession.builder.getOrCreate() "
    "and read the data again."
)
_ROOM = (
    "What the workers counted is more than spark.driver.maxResultSize lets through to the driver. Nothing was counted. "
    "Raise it (--conf spark.driver.maxResultSize=4g), or ask for fewer parts (spark.sql.shuffle.partitions) or fewer "
    "cells: a part sends its cells that have records, a few bytes each."
)
_MEMORY = (
    "Spark ran out of memory while counting. Nothing was counted. Give the driver and the executors more "
    "(--driver-memory, --executor-memory, spark.executor.memoryOverhead for their Python), or ask for more and smaller "
    "parts (spark.sql.shuffle.partitions)."
)
_LOST = (
    "The Spark cluster was lost while counting: its driver, its master or too many of its executors went away. Nothing "
    "was counted. Nothing is kept of what was under way; start the session again and repeat the count."
)
_PYTHON = (
    "Driver and workers of Spark run different versions of Python. Nothing was counted. Set PYSPARK_PYTHON to one "
    "version on all of them."
)
_MISHAPS: tuple[tuple[type[SfumatoError], str, tuple[str, ...]], ...] = (
    (TooLarge, _ROOM, ("spark.driver.maxResultSize", "maxResultSize")),
    (InvalidInput, _PYTHON, ("PYTHON_VERSION_MISMATCH",)),
    (
        InvalidInput,
        STOPPED,
        ("Cannot call methods on a stopped SparkContext", "[SESSION_CLOSED]", "[NO_ACTIVE_SESSION]"),
    ),
    (
        TooLarge,
        _MEMORY,
        ("java.lang.OutOfMemoryError", "SparkOutOfMemoryError", "exceeding memory limits", "MemoryError"),
    ),
    (
        InvalidInput,
        _LOST,
        (
            "ExecutorLostFailure",
            "SparkContext was shut down",
            "SparkContext has been shutdown",
            "Master removed our application",
            "All masters are unresponsive",
            "Connection refused",
            "An error occurred while trying to connect to the Java server",
            "Answer from Java side is empty",
            "StatusCode.UNAVAILABLE",
            "failed to connect to all addresses",
        ),
    ),
)
_GATEWAY = {
    "Py4JError",
    "Py4JNetworkError",
    "ConnectionRefusedError",
    "ConnectionResetError",
    "BrokenPipeError",
    "EOFError",
}


class _WorkerError(RuntimeError):
    """An error as a worker tells it."""


def told(error: Exception) -> Exception:
    """What a worker may raise in the place of an error: our own words, or nothing but a class."""
    ours = isinstance(error, SfumatoError)
    said = str(error) if ours else type(error).__name__
    return _WorkerError(f"{_OPEN}{'ours' if ours else 'foreign'} {said}{_CLOSE}")


def explained(what: str, work: Callable[[], _Result]) -> _Result:
    """The result of ``work``, or a refusal in our own words. An interruption goes through as it is."""
    try:
        return work()
    except (SfumatoError, ImportError):
        raise
    except Exception as error:  # noqa: BLE001  # engines share no base class below this one
        kind, text, stopped = type(error).__name__, f"{type(error).__name__}: {error}", _is_interruption(error)
    # Raised outside the handler: inside, Python would keep the engine's error as its context.
    raise KeyboardInterrupt if stopped else _refusal(what, kind, text)


def _is_interruption(error: BaseException | None) -> bool:
    """Whether an error came while an interruption was on its way: PySpark closes what is open, which fails then."""
    while error is not None and not isinstance(error, KeyboardInterrupt):
        error = error.__context__
    return error is not None


def _refusal(what: str, kind: str, text: str) -> SfumatoError:
    worker = _TOLD.search(text)
    if worker is not None and worker[1] == "ours":
        return InvalidInput(worker[2])
    absent = _ABSENT.search(text)
    if absent is not None and absent[1] in _SHIPPED:
        return InvalidInput(
            f"The workers of Spark have no package {absent[1]!r}, which this count needs there. Nothing was counted. "
            "Install sfumato where the executors run, in the version that is here; or send it along: "
            "spark-submit --archives environment.tar.gz#environment, or spark.addArtifacts(…, pyfile=True)."
        )
    if worker is None:
        for error, said, marks in _MISHAPS:
            if any(mark in text for mark in marks):
                return error(said)
        if kind in _GATEWAY:
            return InvalidInput(_LOST)
    elif worker[2] == "MemoryError":
        return TooLarge(_MEMORY)
    return InvalidInput(
        f"{what}: Spark stopped with {worker[2] if worker else kind}. Its message may quote a record and is not "
        "repeated. Nothing was counted. Run the same read in Spark itself to see it."
    )


def refuse_stopped(native: Any) -> None:
    """Refuse a frame of classic Spark whose session has stopped, before anything is asked of it."""
    context = getattr(native.sparkSession, "_sc", None)  # Connect has none
    if context is None:
        return
    if explained("The Spark session could not be asked", lambda: context._jsc is None or context._jsc.sc().isStopped()):
        raise InvalidInput(STOPPED)
