"""`sfumato check`: what is wrong with the data, before anything is charged. Charges nothing, draws nothing."""

from __future__ import annotations

import sys
from fractions import Fraction
from pathlib import Path
from typing import Annotated, Any

import typer

from sfumato.app import preflight
from sfumato.app.groups import Columns, Data, Publishing, Question, Source, takes_groups
from sfumato.app.options import Json
from sfumato.app.output import GROSS_DATA, emit, reported, say
from sfumato.counting.report import CountReport
from sfumato.errors import InvalidInput
from sfumato.exact import fraction

Limit = Annotated[str, typer.Option(help="The share above which an error is gross.")]


@takes_groups
def check(
    publication: Source,
    question: Question,
    columns: Columns,
    publishing: Publishing,
    data: Data = None,
    out: Annotated[Path | None, typer.Option(help="As for publish; nothing is written.")] = None,
    limit: Limit = "0.5",
    as_json: Json = False,
) -> None:
    """Look at private records before they are published: takes what publish takes, and charges nothing.

    Tells the shares of rows outside the bounds, without coordinates and without an entity, and what the release would
    cost. Exit code 8 when a share is above --limit. The figures are private: they are for whoever runs this. Bounds
    that are changed because of them are a choice by private data.

    Example: sfumato check visits.toml      (or: sfumato check visits.parquet --x lon --y lat
    --bounds=-74.3,40.5,-73.7,40.95 --shape 256x256 --delta 0.01)
    """
    with reported(as_json):
        share = limit_of(limit)
        meant = question.meant(publication, data, given=publishing.given(out), columns=columns)
        meant.need("data", "path", "the data")
        plan = meant.publication.plan()
        counts = meant.publication.count(progress=not as_json, tables=plan.tables)
        told: dict[str, Any] = {}
        ledger = meant.publication.ledger()
        if ledger is not None:
            cost = ledger.quote(plan.guarantee.counted(counts.max_per_entity))
            told = {"cost": str(cost), "ledger_left": str(ledger.remaining), "fits": cost <= ledger.remaining}
        show(counts.report, share, told, as_json)
        if told and not as_json:
            fits = "" if told["fits"] else ": it does not fit"
            say(f"The release would cost ε {told['cost']} of the {told['ledger_left']} left in the ledger{fits}.")
    if preflight.troubles(counts.report, share):
        sys.exit(GROSS_DATA)


def limit_of(given: str) -> Fraction:
    """A share from 0 to 1."""
    share = fraction(given, "--limit")
    if not 0 <= share <= 1:
        raise InvalidInput(f"--limit {given!r} must be a share from 0 to 1. Nothing was counted.")
    return share


def show(report: CountReport, limit: Fraction, more: dict[str, Any], as_json: bool) -> None:
    """All that the preflight knows; nothing was charged."""
    if as_json:
        emit(preflight.as_data(report, limit) | more)
        return
    say("For your eyes only (private, exact):")
    for line in preflight.lines(report, limit):
        say(line)
    say("Nothing was charged, drawn or recorded.")
