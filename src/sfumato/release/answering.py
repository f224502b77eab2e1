"""From a question to an answer, or to a table of answers where it is grouped."""

from __future__ import annotations

from sfumato.release.answer import Answer
from sfumato.release.asking import Asked
from sfumato.release.table import Table
from sfumato.release.view import View


def answered(view: View, question: Asked, confidence: float, cut: str) -> Answer:
    """What a release says to what is asked."""
    if question.keys:
        return tabled(view, question, confidence, cut)
    found = view.figures(question.boxes(), confidence, cut, question.sets)
    told = {"cut_share": found.share, "range": question.ranges, "cut": cut}
    return Answer.within(found.value, found.stderr, found.low, found.high, confidence, question.shape, **told)


def tabled(view: View, question: Asked, confidence: float, cut: str) -> Table:
    """The same to a question that is grouped."""
    asked = (question.boxes(), confidence, cut, question.sets)
    found = view.at_levels(*asked, question.levels) if question.levels else view.figures(*asked)
    fields = (found.value, found.stderr, found.low, found.high, found.share)
    value, stderr, low, high, share = (part.reshape(question.shape) for part in fields)
    told = {"cut_share": share, "range": question.ranges, "cut": cut, "keys": question.keys}
    return Table(value, stderr, low, high, confidence, **told)
