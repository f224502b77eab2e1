"""Warnings of the library become sentences beside what they are about, each in the request that caused it."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from sfumato.errors import DataWarning, NoLedgerWarning, SfumatoWarning

_here = threading.local()


@contextmanager
def heard() -> Iterator[None]:
    """For as long as the studio runs, warnings of ours reach whoever listens in their thread, and stop nothing.

    What is wrong with the data is asked for where it is wanted, and that no account is kept was said by the operator.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("always", SfumatoWarning)
        for needless in (DataWarning, NoLedgerWarning):
            warnings.simplefilter("ignore", needless)
        usual = warnings.showwarning

        def shown(message: Warning | str, category: type[Warning], *where: Any, **more: Any) -> None:
            if issubclass(category, SfumatoWarning):
                getattr(_here, "said", []).append(str(message))
            else:
                usual(message, category, *where, **more)

        warnings.showwarning = shown
        yield


@contextmanager
def listening() -> Iterator[list[str]]:
    """What is said in this thread meanwhile, each sentence once."""
    before = getattr(_here, "said", None)
    _here.said = said = _Once()
    try:
        yield said
    finally:
        if before is None:
            del _here.said
        else:
            _here.said = before


class _Once(list[str]):
    def append(self, said: str) -> None:
        if said not in self:
            super().append(said)
