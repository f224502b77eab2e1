"""From the form that a mechanism says it has to the audit that fits it: the one place where forms are told apart."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from sfumato.auditing.exact.additive import audit_additive
from sfumato.auditing.exact.nested import audit_nested
from sfumato.auditing.exact.noisy_number import audit_noisy_number
from sfumato.auditing.exact.question import Finding, Question
from sfumato.auditing.exact.splits import audit_splits
from sfumato.auditing.exact.two_stage import audit_two_stages
from sfumato.mechanism.forms import Additive, Nested, NoisyNumber, Splits, TwoStage

AUDITS: dict[type, Callable[[Any, Question], Finding | str]] = {
    Additive: audit_additive,
    TwoStage: audit_two_stages,
    NoisyNumber: audit_noisy_number,
    Nested: audit_nested,
    Splits: audit_splits,
}


def audit_by_form(question: Question) -> Finding | str:
    """The worst loss, proved; or in words why it cannot be."""
    form = question.mechanism.form
    audit = AUDITS.get(type(form))
    if audit is None:
        return "it does not say how its output comes about"
    shown = question.shown_by_the_total
    if shown is not None:
        told = "the number of records is published exactly"
        return Finding(loss=math.inf, method="exact", pair=shown, event=told, edges=1, databases=1)
    return audit(form, question)
