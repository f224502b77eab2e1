"""The exception tree. Every error is ours and a built-in at once, and none carries a private value.

SfumatoError
├── InvalidInput        (ValueError)    an argument is wrong; nothing was drawn or recorded
│   └── PolicyMismatch                  two policies or domains do not fit each other
├── TooLarge            (MemoryError)   the work would not fit; estimated before it was begun
├── BudgetExceeded      (RuntimeError)  the ledger has too little left; nothing was drawn or recorded
├── LedgerError         (RuntimeError)  the ledger cannot be read or written; nothing was drawn
├── VaultError          (RuntimeError)  the vault or its key cannot be used; nothing was handed out
├── Undelivered         (OSError)       a release was charged and could not be written; it is kept, and where is said
├── FileFormatError     (ValueError)    a file is corrupt, truncated, foreign or too new
├── AuditFailed         (AssertionError) an audit found more privacy loss than was promised
└── MissingExtra        (ImportError)   an optional dependency is not installed

SfumatoWarning           (UserWarning)   what is allowed and looks like a mistake; none stops anything
├── DataWarning                          much of the data lies outside, is null or cannot be read
├── DeclarationWarning                   bounds, a range or a distance that was probably meant otherwise
├── LedgerCreated                        a budget began that nobody asked for in so many words
└── NoLedgerWarning                      something was published and nobody keeps account; said once a process
"""

from __future__ import annotations

import sys
import warnings
from pathlib import Path

__all__ = [
    "AuditFailed",
    "BudgetExceeded",
    "DataWarning",
    "DeclarationWarning",
    "FileFormatError",
    "InvalidInput",
    "LedgerCreated",
    "LedgerError",
    "MissingExtra",
    "NoLedgerWarning",
    "PolicyMismatch",
    "SfumatoError",
    "SfumatoWarning",
    "TooLarge",
    "Undelivered",
    "VaultError",
]

_PACKAGE = str(Path(__file__).parent)


class SfumatoError(Exception):
    """The root of everything that sfumato raises on purpose.

    >>> issubclass(sf.InvalidInput, sf.SfumatoError)
    True
    """


class InvalidInput(SfumatoError, ValueError):
    """An argument is wrong. Nothing was drawn or recorded.

    >>> sf.Line(0, 1, cells=0)
    Traceback (most recent call last):
        ...
    sfumato.errors.InvalidInput: cells=0 ...
    """


class PolicyMismatch(InvalidInput):
    """Two policies, or a policy and a domain, do not fit each other.

    >>> plan = sf.plan(sf.bounded(sf.Line(0, 1, cells=4)), sf.histogram(), epsilon=1)
    >>> plan.publish(sf.Counts(np.zeros(3, dtype=int), sf.Line(0, 1, cells=3)))
    Traceback (most recent call last):
        ...
    sfumato.errors.PolicyMismatch: ...
    """


class TooLarge(SfumatoError, MemoryError):
    """The work would need more memory or time than allowed; it was estimated and not begun.

    >>> sf.audit(sf.plan(sf.bounded(sf.Line(0, 1, cells=10_000)), sf.histogram(), epsilon=1))
    Traceback (most recent call last):
        ...
    sfumato.errors.TooLarge: ...
    """


class BudgetExceeded(SfumatoError, RuntimeError):
    """The ledger has too little budget left. Nothing was drawn or recorded.

    >>> plan = sf.plan(sf.bounded(sf.Line(0, 1, cells=4)), sf.histogram(), epsilon=2)
    >>> plan.publish(np.array([3, 0, 5, 1]), ledger=sf.Ledger.create("budget.db", epsilon=1))
    Traceback (most recent call last):
        ...
    sfumato.errors.BudgetExceeded: ...
    """


class LedgerError(SfumatoError, RuntimeError):
    """The ledger could not be read or written. Nothing was drawn.

    >>> _ = Path("notes.txt").write_text("no ledger")
    >>> sf.Ledger("notes.txt")
    Traceback (most recent call last):
        ...
    sfumato.errors.LedgerError: ...
    """


class VaultError(SfumatoError, RuntimeError):
    """The vault, its key, or the state of a release in it cannot be used. Nothing was handed out.

    >>> sf.Vault("secrets", key="vault.key").levels("no-such-release")
    Traceback (most recent call last):
        ...
    sfumato.errors.VaultError: ...
    """


class Undelivered(SfumatoError, OSError):
    """A release was charged, and could not be written where it was to be. `kept` is where it is, or None.

    >>> error = sf.Undelivered("It is charged and kept.", Path("kept.sfumato"))
    >>> error.kept.name
    'kept.sfumato'
    """

    def __init__(self, message: str, kept: Path | None) -> None:
        super().__init__(message)
        self.kept = kept


class FileFormatError(SfumatoError, ValueError):
    """A file is corrupt, truncated, foreign, or from a newer version.

    >>> _ = Path("notes.txt").write_text("no release")
    >>> sf.load("notes.txt")
    Traceback (most recent call last):
        ...
    sfumato.errors.FileFormatError: ...
    """


class AuditFailed(SfumatoError, AssertionError):
    """An audit, on made-up data, found more privacy loss than was promised. Do not publish with what was audited.

    >>> plan = sf.plan(sf.threshold(sf.Line(0, 4, cells=4), theta=1), sf.histogram(), epsilon=1)
    >>> found = sf.audit(plan).require()  # raises AuditFailed when more is lost than was promised
    """


class MissingExtra(SfumatoError, ImportError):
    """An optional dependency is not installed; the message names the extra to install.

    >>> print(sf.MissingExtra("matplotlib", "plot", "A picture"))
    A picture needs the package 'matplotlib', ... Install it with: pip install 'sfumato[plot]'
    """

    def __init__(self, package: str, extra: str, purpose: str) -> None:
        super().__init__(
            f"{purpose} needs the package '{package}', which is not installed. "
            f"Install it with: pip install 'sfumato[{extra}]'"
        )


class SfumatoWarning(UserWarning):
    """The root of what sfumato warns of. A warning is for whoever runs the program and enters no release.

    >>> issubclass(sf.DataWarning, sf.SfumatoWarning)
    True
    """


class DataWarning(SfumatoWarning):
    """Much of the data lies outside the bounds, is null or cannot be read. For the operator's eyes: it is private.

    >>> warnings.simplefilter("ignore", sf.DataWarning)  # where bad rows are nothing new
    """


class DeclarationWarning(SfumatoWarning):
    """Bounds, a range or a distance is allowed and was probably meant otherwise. Judged without a look at any data.

    >>> warnings.simplefilter("error", sf.DeclarationWarning)  # stop where bounds or distances look mistaken
    """


class LedgerCreated(SfumatoWarning):
    """Opening a ledger created it: a full budget begins. `Ledger.create` does so on purpose, and without a warning.

    >>> warnings.simplefilter("error", sf.LedgerCreated)  # stop where a ledger is missing
    >>> sf.Ledger("no-such-budget.db", epsilon=1)
    Traceback (most recent call last):
        ...
    sfumato.errors.LedgerCreated: ...
    """


class NoLedgerWarning(SfumatoWarning):
    """Something was published without a ledger, so that nobody adds up what is spent. Said once in a process.

    >>> warnings.simplefilter("error", sf.NoLedgerWarning)  # nothing is published without a ledger
    """


def warn_caller(message: str, category: type[SfumatoWarning]) -> None:
    """Warn at the line of whoever called into the package, however deep inside it something was noticed."""
    frame, level = sys._getframe(1), 2
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)
