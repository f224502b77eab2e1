"""Publishing without a ledger: said once in a process, before anything is drawn."""

from __future__ import annotations

from threading import Lock

from sfumato.errors import NoLedgerWarning, warn_caller

_said: set[str] = set()
_saying = Lock()


def warn_without_ledger() -> None:
    """Say once that nobody adds up what is spent; where warnings are errors, every time.

    A release by seeded randomness promises nothing and spends nothing: it is not spoken of.
    """
    with _saying:
        if _said:
            return
        warn_caller(
            "this is published without a ledger: nobody adds up what all releases about the data say together, and the "
            "promise of each holds for that one alone. Give ledger=sf.Ledger(path); where that is meant, say so with "
            "warnings.simplefilter('ignore', sf.NoLedgerWarning). This is said once.",
            NoLedgerWarning,
        )
        _said.add("without a ledger")
