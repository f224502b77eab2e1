"""From a question to an answer, or to a table of answers where it is grouped."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy

from sfumato.errors import InvalidInput
from sfumato.release.answer import Answer
from sfumato.release.asking import Asked
from sfumato.release.intervals import cell_deviations, cell_margins, query_margins
from sfumato.release.over_areas import figures_of
from sfumato.release.table import Table
from sfumato.release.view import View


def answered(view: View, question: Asked, confidence: float, cut: str) -> Answer:
    """What a release says to what is asked."""
    if question.keys:
        return tabled(view, question, confidence, cut)
    found = figures_of(view, question, confidence, cut)
    told = {"cut_share": found.share, "range": question.ranges, "cut": cut}
    return Answer.within(found.value, found.stderr, found.low, found.high, confidence, question.shape, **told)


def tabled(view: View, question: Asked, confidence: float, cut: str) -> Table:
    """The same to a question that is grouped."""
    found = figures_of(view, question, confidence, cut)
    fields = (found.value, found.stderr, found.low, found.high, found.share)
    value, stderr, low, high, share = (part.reshape(question.shape) for part in fields)
    told = {"cut_share": share, "range": question.ranges, "cut": cut, "keys": question.keys}
    return Table(value, stderr, low, high, confidence, **told)


def queried(view: View, matrix: Any, confidence: float) -> Answer:
    """The answers to the rows of a matrix with one column a cell."""
    size, model = view.counts.size, view.model
    sparse = scipy.sparse.issparse(matrix)
    try:
        table = scipy.sparse.csr_matrix(matrix if sparse else np.atleast_2d(matrix), dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InvalidInput("matrix must be numbers: one row a query, one column a cell in C order.") from error
    if table.shape[1] != size:
        raise InvalidInput(f"matrix has {table.shape[1]} columns; the domain has {size} cells: one each.")
    if not np.isfinite(table.data).all():
        raise InvalidInput("matrix holds entries that are not finite numbers.")
    shape = () if not sparse and np.ndim(matrix) == 1 else (table.shape[0],)
    stderr, margin = np.empty(table.shape[0]), np.empty(table.shape[0])
    step = max(1, (1 << 22) // size)
    for start in range(0, table.shape[0], step):
        part = slice(start, start + step)
        dense = np.asarray(table[part].todense())
        stderr[part], margin[part] = query_margins(model, dense, None if view.biased else confidence)
    value = np.asarray(table @ view.counts.ravel())
    return Answer.of(value * view.unit, stderr * view.unit, margin * view.unit, confidence, shape)


def every_cell(view: View, confidence: float) -> Answer:
    """Every cell as a query of its own."""
    shape, model = view.counts.shape, view.model
    unknown = np.full(shape, np.nan)
    if model is None:
        stderr, margin = unknown, unknown
    elif view.biased:
        stderr, margin = cell_deviations(model), unknown
    else:
        stderr, margin = cell_margins(model, confidence)
    return Answer.of(view.counts * view.unit, stderr * view.unit, margin * view.unit, confidence, shape)
