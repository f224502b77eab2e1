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

LedgerCreated           (UserWarning)   a warning, no error: a budget began that nobody asked for in so many words
"""

from __future__ import annotations

from pathlib import Path


class SfumatoError(Exception):
    """The root of everything that sfumato raises on purpose."""


class InvalidInput(SfumatoError, ValueError):
    """An argument is wrong. Nothing was drawn or recorded."""


class PolicyMismatch(InvalidInput):
    """Two policies, or a policy and a domain, do not fit each other."""


class TooLarge(SfumatoError, MemoryError):
    """The work would need more memory or time than allowed; it was estimated and not begun."""


class BudgetExceeded(SfumatoError, RuntimeError):
    """The ledger has too little budget left. Nothing was drawn or recorded."""


class LedgerError(SfumatoError, RuntimeError):
    """The ledger could not be read or written. Nothing was drawn."""


class LedgerCreated(UserWarning):
    """Opening a ledger created it: a full budget begins. `Ledger.create` does so on purpose, and without a warning."""


class VaultError(SfumatoError, RuntimeError):
    """The vault, its key, or the state of a release in it cannot be used. Nothing was handed out."""


class Undelivered(SfumatoError, OSError):
    """A release was charged, and could not be written where it was to be. `kept` is where it is, or None."""

    def __init__(self, message: str, kept: Path | None) -> None:
        super().__init__(message)
        self.kept = kept


class FileFormatError(SfumatoError, ValueError):
    """A file is corrupt, truncated, foreign, or from a newer version."""


class AuditFailed(SfumatoError, AssertionError):
    """An audit, on made-up data, found more privacy loss than was promised. Do not publish with what was audited."""


class MissingExtra(SfumatoError, ImportError):
    """An optional dependency is not installed; the message names the extra to install."""

    def __init__(self, package: str, extra: str, purpose: str) -> None:
        super().__init__(
            f"{purpose} needs the package '{package}', which is not installed. "
            f"Install it with: pip install 'sfumato[{extra}]'"
        )
