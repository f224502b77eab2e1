"""`sfumato audit`: is the plan as private as it says? On made-up data, before any real data is touched."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from sfumato.app.groups import First, Question, takes_groups
from sfumato.app.options import Json
from sfumato.app.output import emit, reported, say
from sfumato.auditing import audit as run
from sfumato.auditing.audit import CONFIDENCE

FAILED = 7  # the exit code of an audit that found more loss than was promised


@takes_groups
def audit(
    question: Question,
    publication: First = None,
    seconds: Annotated[float, typer.Option(help="About how much computing a statistical audit may take.")] = 10.0,
    confidence: Annotated[float, typer.Option(help="How sure a statistical bound has to be.")] = CONFIDENCE,
    method: Annotated[str | None, typer.Option(help="Force exact or statistical.")] = None,
    as_json: Json = False,
) -> None:
    """Audit a plan: its true privacy loss beside its promise. Sees no data and costs nothing.

    Exit code 7 when the promise is broken.

    Example: sfumato audit --bounds 0,1 --shape 12 --delta 0.2 --epsilon 1      (or: sfumato audit visits.toml)
    """
    with reported(as_json):
        plan = question.meant(publication).publication.plan()
        found = run(plan, seconds=seconds, confidence=confidence, method=method)
        if as_json:
            emit(found.to_dict())
        else:
            say(str(found))
    if not found.passed:
        sys.exit(FAILED)
