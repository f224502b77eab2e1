"""How the command line speaks: text for people, JSON for programs, errors with an exit code."""

from __future__ import annotations

import json
import os
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import typer

from sfumato.errors import (
    BudgetExceeded,
    DataWarning,
    FileFormatError,
    LedgerError,
    MissingExtra,
    NoLedgerWarning,
    SfumatoError,
    SfumatoWarning,
    TooLarge,
    Undelivered,
    VaultError,
)
from sfumato.reading import visible

GROSS_DATA = 8
"""The exit code of a preflight that found gross errors, or was answered with no."""


class Stopped(SfumatoError, RuntimeError):
    """The operator, or --strict, stopped the command before anything was charged."""


EXIT_CODES: tuple[tuple[type[BaseException], int], ...] = (
    (BudgetExceeded, 3),
    (LedgerError, 4),
    (VaultError, 4),
    (FileFormatError, 4),
    (OSError, 4),
    (TooLarge, 5),
    (MissingExtra, 6),
    (Stopped, GROSS_DATA),
    (SfumatoError, 2),
)
"""2 an argument is wrong, 3 the budget is spent, 4 a file cannot be read or written, 5 too large, 6 an extra is
missing, 8 stopped by the preflight.
"""


def say(text: str = "") -> None:
    """A line for people, on standard output."""
    typer.echo(visible(text))


def tell_operator(text: str) -> None:
    """A line for the operator alone, on standard error: it may speak of private data and must not be published."""
    typer.echo(visible(text), err=True)


def emit(payload: dict[str, Any]) -> None:
    """One JSON object on standard output."""
    text = json.dumps(payload, indent=2, ensure_ascii=False, allow_nan=False)
    if not text.replace("\n", "").isprintable():  # JSON escapes some control characters, and not those beyond ASCII
        text = json.dumps(payload, indent=2, allow_nan=False)
    typer.echo(text)


@contextmanager
def _warnings_told() -> Iterator[None]:
    """Warnings of ours become a line on standard error, whatever Python is told to do with warnings: none stops a run.

    What is wrong with the data is told by the commands themselves, and that no account is kept was asked for.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("always", SfumatoWarning)
        for needless in (DataWarning, NoLedgerWarning):
            warnings.simplefilter("ignore", needless)
        usual = warnings.showwarning

        def shown(message: Warning | str, category: type[Warning], *where: Any, **more: Any) -> None:
            if issubclass(category, SfumatoWarning):
                tell_operator(f"Warning: {message}")
            else:
                usual(message, category, *where, **more)

        warnings.showwarning = shown
        yield


@contextmanager
def reported(as_json: bool) -> Iterator[None]:
    """Errors of ours become a message and an exit code.

    Anything else is a bug. Its message may quote a record, so only its class is told; with SFUMATO_DEBUG set, which is
    for machines where nobody minds, the traceback is shown.
    """
    try:
        with _warnings_told():
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
