"""Progress on long inputs: a bar on standard error, or a call with the rows done and the rows in all."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from sfumato.errors import InvalidInput

Progress = bool | Callable[[int, int | None], None] | None

_PATIENCE = 1.0  # seconds before a bar appears: what is quick needs none


@contextmanager
def advancing(progress: Progress, total: Callable[[], int] | None) -> Iterator[Callable[[int], None]]:
    """A function to call with the number of rows just read."""
    if progress is None or progress is False:
        yield _nothing
    elif progress is True:
        with _bar(None if total is None else total()) as advance:
            yield advance
    elif callable(progress):
        rows_in_all, done = None if total is None else total(), 0
        report = progress

        def call(rows: int) -> None:
            nonlocal done
            done += rows
            report(done, rows_in_all)

        yield call
    else:
        raise InvalidInput(
            f"progress={progress!r} is neither True nor False nor a function of (rows done, rows in all). "
            "Nothing was counted."
        )


def _nothing(rows: int) -> None:
    """Nobody wants to know."""
    del rows


@contextmanager
def _bar(total: int | None) -> Iterator[Callable[[int], None]]:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    bar = Progress(
        TextColumn("counting"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn(), console=Console(stderr=True)
    )
    task, begin = bar.add_task("counting", total=total), time.monotonic()

    def advance(rows: int) -> None:
        bar.advance(task, rows)
        if not bar.live.is_started and time.monotonic() - begin > _PATIENCE:
            bar.start()

    try:
        yield advance
    finally:
        if bar.live.is_started:
            bar.stop()
