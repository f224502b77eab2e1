"""Who pays for a release: a ledger, a step of a stream, or nobody, which is said once before anything is drawn."""

from __future__ import annotations

from collections.abc import Collection
from fractions import Fraction
from pathlib import Path
from threading import Lock
from typing import Any, Protocol

from sfumato.errors import InvalidInput, NoLedgerWarning, warn_caller
from sfumato.exact import Number
from sfumato.promise import Epsilon, Guarantee

_said: set[str] = set()
_saying = Lock()


class Account(Protocol):
    """What `publish` and `refine` ask of whoever pays. A guarantee is charged as it is, before anything is drawn."""

    @property
    def payer(self) -> str:
        """What a vault seals as the one who paid."""

    @property
    def reached(self) -> tuple[str, Fraction | None]:
        """How far it has come, for a vault to remember; it only grows."""

    @property
    def path(self) -> Path | None:
        """Its file, beside which a release can be rescued, where there is one."""

    @property
    def where(self) -> str:
        """Its name in messages."""

    def forgotten(self, reached: Fraction | None, known: Fraction) -> str:
        """What is said when a vault remembers more than it knows."""

    def promised(self, guarantee: Guarantee) -> Guarantee:
        """What a release that is charged here promises."""

    def charge(
        self,
        guarantee: Guarantee,
        /,
        *,
        label: str,
        release_id: str,
        filtered: Collection[str] = (),
        dropped: Collection[str] = (),
    ) -> object:
        """Check that the release fits, and record it durably. `filtered` names the attributes by which records were
        left out before they were counted, `dropped` those of the release of which values beyond its own were. Neither
        is passed where all records are counted.
        """

    def level(self, release_id: str) -> tuple[int, Epsilon] | None:
        """(level, ε) at which a release stands; None when it was never charged here."""

    def quote_level(self, release_id: str, *, epsilon: Number) -> Epsilon:
        """What the next level would take, or its refusal."""

    def raise_level(
        self, release_id: str, *, level: int, epsilon: Number, label: str, token: str | None = None
    ) -> object:
        """Charge what a finer level costs beyond the levels before it, and count it."""

    def stamp(self, release_id: str, level: int) -> str | None:
        """The token of the noise that was charged for a level."""


_ASKED = ("charge", "promised", "level", "quote_level", "raise_level", "stamp")


def require_account(given: Any) -> None:
    """Refuse what nothing can be charged to."""
    if not all(callable(getattr(type(given), name, None)) for name in _ASKED):
        raise InvalidInput(f"ledger={type(given).__name__} is not a ledger. Open one with sf.Ledger(path).")


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
