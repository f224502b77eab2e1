"""`sfumato statement`: one page for an auditor, from a release, a ledger, or both."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

import sfumato as sf
from sfumato.app.options import Json
from sfumato.app.output import emit, reported, say
from sfumato.errors import InvalidInput


def statement(
    release: Annotated[
        Path | None, typer.Argument(help="A release file; leave it out for a statement of the ledger alone.")
    ] = None,
    ledger_place: Annotated[
        str | None, typer.Option("--ledger", help="The ledger that keeps account of it: a file or a URL.")
    ] = None,
    dataset: Annotated[str, typer.Option(help="The dataset's account in the ledger.")] = "default",
    out: Annotated[
        Path | None,
        typer.Option(
            help="Where to write it: .html, .md, .json, or .yaml for a registry's record. Else Markdown here."
        ),
    ] = None,
    fact: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=TEXT", help="What only you know: --fact 'Publisher=City of X'. Repeat for more."),
    ] = None,
    title: Annotated[str | None, typer.Option(help="A title for the page.")] = None,
    as_json: Json = False,
) -> None:
    """Write what was published and promised, and first of all what is not hidden, for auditors and regulators.

    Example: sfumato statement visits.sfumato --ledger budget.db --out visits.html --fact 'Publisher=City of X'
    """
    with reported(as_json):
        facts = dict(_fact(one) for one in fact or [])
        account = None if ledger_place is None else sf.Ledger(ledger_place, dataset=dataset)
        if release is not None:
            made = sf.load(release).statement(ledger=account, facts=facts, title=title)
        elif account is not None:
            made = account.statement(facts=facts, title=title)
        else:
            raise InvalidInput("give a release file, --ledger, or both. Nothing was written.")
        if out is not None:
            made.save(out)
        if as_json:
            emit({"file": None if out is None else str(out), "title": made.title, "figures": dict(made.figures)})
        else:
            say(made.to_markdown() if out is None else f"Wrote {out}: {made.title}")


def _fact(given: str) -> tuple[str, str]:
    name, equals, said = given.partition("=")
    if not equals:
        raise InvalidInput(f"--fact {given!r} is not NAME=TEXT. Nothing was written.")
    return name, said
