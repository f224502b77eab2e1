"""Interruptions put off: between a charge and the moment when what was paid for is safe, a wish to stop waits.

Ctrl-C, and a request to end by the system (SIGTERM, SIGHUP), are obeyed when the block is over, the first one that
came, in the way that was set up before. Whoever insists three times is obeyed at once, and so is SIGKILL. Signals reach
the main thread alone, so elsewhere there is nothing to put off.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

INSISTING = 3  # so many signals are obeyed at once
_SIGNALS = tuple(getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name))
_under_way: list[_Waiting] = []  # in the main thread: the block that is outermost


class _Waiting:
    """The signals that came meanwhile, and what was to be done about them."""

    def __init__(self) -> None:
        self.came: list[int] = []
        self._before: dict[int, Any] = {}

    def begin(self) -> None:
        for number in _SIGNALS:
            before = signal.getsignal(number)
            if before is not None and before is not signal.SIG_IGN:  # ignored, or not Python's to change
                self._before[number] = before
                signal.signal(number, self._note)

    def end(self) -> None:
        for number, before in self._before.items():
            signal.signal(number, before)
        self._before.clear()

    def _note(self, number: int, _: Any) -> None:
        self.came.append(number)
        if len(self.came) >= INSISTING:
            self.end()
            signal.raise_signal(number)


@contextmanager
def undisturbed() -> Iterator[Callable[[], bool]]:
    """Put interruptions off for the length of the block; a block within another one leaves all to the outer one.

    Gives a function that says whether one came which this block will obey at its end.
    """
    if threading.current_thread() is not threading.main_thread() or _under_way:
        yield lambda: False
        return
    waiting = _Waiting()
    _under_way.append(waiting)
    try:
        waiting.begin()
        yield lambda: bool(waiting.came)
    finally:
        _under_way.clear()
        waiting.end()
        if 0 < len(waiting.came) < INSISTING:
            signal.raise_signal(waiting.came[0])
