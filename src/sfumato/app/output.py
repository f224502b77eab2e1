"""How the command line speaks: text for people, JSON for programs, errors with an exit code."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import typer

from sfumato.errors import (
    BudgetExceeded,
    FileFormatError,
    LedgerError,
    MissingExtra,
    SfumatoError,
    TooLarge,
    Undelivered,
    VaultError,
)

EXIT_CODES: tuple[tuple[type[BaseException], int], ...] = (
    (BudgetExceeded, 3),
    (LedgerError, 4),
    (VaultError, 4),
    (FileFormatError, 4),
    (OSError, 4),
    (TooLarge, 5),
    (MissingExtra, 6),
    (SfumatoError, 2),
)
"""2 an argument is wrong, 3 the budget is spent, 4 a file cannot be read or written, 5 too large, 6 an extra is
missing.
"""


def say(text: str = "") -> None:
    """A line for people, on standard output."""
    typer.echo(text)


def tell_operator(text: str) -> None:
    """A line for the operator alone, on standard error: it may speak of private data and must not be published."""
    typer.echo(text, err=True)


def emit(payload: dict[str, Any]) -> None:
    """One JSON object on standard output."""
    typer.echo(json.dumps(payload, indent=2, ensure_ascii=False, allow_nan=False))


@contextmanager
def reported(as_json: bool) -> Iterator[None]:
    """Errors of ours become a message and an exit code.

    Anything else is a bug. Its message may quote a record, so only its class is told; with SFUMATO_DEBUG set, which is
    for machines where nobody minds, the traceback is shown.
    """
    try:
        yield
        sys.stdout.flush()
    except BrokenPipeError:
        # Whoever reads has seen enough, as `| head` has. What was to be recorded is recorded; there is nothing to tell.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(0)
    except (SfumatoError, OSError) as error:
        code = next(code for kind, code in EXIT_CODES if isinstance(error, kind))
        kind, message = type(error).__name__, str(error)
        kept = str(error.kept) if isinstance(error, Undelivered) and error.kept is not None else None
    except Exception as error:  # whatever it is, its text is not to be printed
        if os.environ.get("SFUMATO_DEBUG"):
            raise
        code, kind, kept = 1, type(error).__name__, None
        message = (
            f"an unexpected {kind} stopped the program. Its message may quote a record and is not shown; "
            "set SFUMATO_DEBUG=1 to see it. Please report it."
        )
    else:
        return
    if as_json:
        emit({"error": {"kind": kind, "message": message, "exit_code": code, **({"kept": kept} if kept else {})}})
    else:
        tell_operator(f"Error: {message}")
    sys.exit(code)
