"""What a stream is given, checked: where its releases lie beside a ledger, weights, and things of the right kind."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from urllib.parse import quote

from sfumato.errors import InvalidInput
from sfumato.exact import finite_float
from sfumato.ledger import Ledger
from sfumato.vault import Vault


def home_beside(ledger: Ledger, vault: Vault | None, outbox: str | Path | None) -> Path:
    """The folder beside the ledger; a ledger on a server has none, so it is beside what is on this machine."""
    beside = ledger.path
    if beside is None and outbox is not None:
        beside = Path(outbox).absolute()
    elif beside is None and vault is not None:
        beside = vault.path
    if beside is None or not beside.name:
        raise InvalidInput(
            f"outbox is missing: the ledger '{ledger.place}' is on a server, so there is no folder beside it for the "
            "releases. Nothing was drawn or recorded. Pass outbox, a folder, or a vault."
        )
    return beside.with_name(f"{beside.name}.streams")


def folder_name(name: str) -> str:
    """A name may be any text, '..' among them; a folder may not."""
    return quote(name, safe="").replace(".", "%2E")


def weight_of(given: Any) -> float | None:
    """How much a step matters: a number of at least zero, or nothing said."""
    if given is None:
        return None
    if finite_float(given, "weight") < 0:
        raise InvalidInput(
            f"weight={given!r} must be at least 0. Nothing was drawn or recorded. Use 0 to skip the step."
        )
    return float(given)


def require_kind(given: Any, kind: type, name: str, noun: str, example: str) -> None:
    """Refuse what is not of a kind, with the line that makes one."""
    if not isinstance(given, kind):
        raise InvalidInput(
            f"{name}={type(given).__name__} is not {noun}. Nothing was drawn or recorded. Open one with {example}."
        )
