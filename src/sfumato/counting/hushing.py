"""Engines quote the value that they could not read; we do not."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from sfumato.errors import InvalidInput, SfumatoError

_Result = TypeVar("_Result")


def hushed(what: str, work: Callable[[], _Result], advice: str = "") -> _Result:
    """The result of ``work``, or a refusal in our own words.

    Only the class of the engine's error is passed on, and the error itself is not kept as a cause or context. What is
    ours, or an interrupt, goes through as it is.
    """
    try:
        return work()
    except (SfumatoError, ImportError, MemoryError):
        raise
    except Exception as error:  # noqa: BLE001  # engines share no base class below this one
        kind = type(error).__name__
    # Raised outside the handler: inside, Python would keep the engine's error as its context.
    raise InvalidInput(
        f"{what}: the engine stopped with {kind}. Its message may quote a record and is not repeated. Nothing was "
        f"counted. {advice or 'Run the same read in the engine itself to see it.'}"
    )
