"""From a question about polygons to its figures: one polygon after the other, each with all the groups asked for."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from sfumato._types import Floats
from sfumato.release.areas import Pieces, Seen, shares_of
from sfumato.release.asking import Asked
from sfumato.release.brackets import Known
from sfumato.release.by_parts import Marked, by_grids, by_runs
from sfumato.release.spans import Span
from sfumato.release.view import Boxes, Figures, View


def figures_of(view: View, question: Asked, confidence: float, cut: str) -> Figures:
    """The answers to a question, in the order of its shape and in the unit of what was counted."""
    return _in_steps(view, question, confidence, cut).in_units(view.unit)


def _in_steps(view: View, question: Asked, confidence: float, cut: str) -> Figures:
    if not question.areas:
        return _figures(view, question, confidence, cut)
    steps = max([1, *(len(pieces.cuts) for pieces in question.areas if not pieces.single)])
    if steps == 1 and not any(pieces.shape for pieces in question.areas):
        return _one(view, question, 0, confidence, cut)
    return Figures.joined([_one(view, _at(question, step), step, confidence, cut) for step in range(steps)])


def _figures(view: View, question: Asked, confidence: float, cut: str) -> Figures:
    boxes = question.boxes()
    if question.levels:
        return view.at_levels(boxes, confidence, cut, question.sets, question.levels)
    return view.figures(boxes, confidence, cut, question.sets)


def _at(question: Asked, step: int) -> Asked:
    """The question of one of many polygons, with that of the ranges in step with it."""
    spans = {axis: span.at(step) if np.ndim(span.low) else span for axis, span in question.spans.items()}
    return replace(question, spans=spans)


def _one(view: View, question: Asked, step: int, confidence: float, cut: str) -> Figures:
    """The figures for one polygon, or for one of each place."""
    seen = [Seen.of(pieces, pieces.cuts[0 if pieces.single else step]) for pieces in question.areas]
    rest = replace(question, areas=())
    plain, boxed = replace(view, shared=None, grids=(), runs=None), dict(rest.spans)
    for one in seen:
        plain = plain.combined(one.sums)
        boxed |= _along(one.sums.axes, 0, one.inner, one.outer)
    exact = all(one.shares is None for one in seen)
    shared, shares = replace(view, grids=(), runs=None), dict(rest.spans)
    for one in seen:
        shared = shared.combined(one.shares or one.sums)
        shares |= _along(one.sums.axes, 0, *((one.inner, one.inner) if one.shares is None else (1, 1)))
    found = _figures(shared, replace(rest, spans=shares), confidence, cut if exact else "proportion")
    bracket = replace(rest, spans=boxed)
    inner = found if exact else _figures(plain, bracket, confidence, cut)
    share = found.share if exact else shares_of(found.value, inner.value, cut=True)
    found = replace(found, share=share)
    if cut == "proportion":
        return found
    if view.grids or view.runs is not None:
        low, high = _by_parts(view, plain, question, bracket, step, confidence)
        return replace(found, low=low, high=high)
    return found if exact else replace(found, low=inner.low, high=inner.high)


def _along(axes: tuple[int, ...], start: int, inner: int, outer: int) -> dict[int, Span]:
    """Rows of sums as spans: those inside and those touched along the first axis, all there is along the others. What
    is estimated for it is the sum over those inside.
    """
    first = np.array(start, dtype=np.int64)
    held, met = np.array(inner, dtype=np.int64), np.array(outer, dtype=np.int64)
    span = Span(first.astype(np.float64), held.astype(np.float64), first, held, first, met)
    return {axis: span if axis == axes[0] else Span.whole(1) for axis in axes}


def _by_parts(
    view: View, plain: View, question: Asked, bracket: Asked, step: int, confidence: float
) -> tuple[Floats, Floats]:
    """The ends of the intervals by the parts of a mechanism that smooths."""
    boxes = bracket.boxes()
    known = Known.of(plain.public, boxes.cover)
    marked = [_marked(pieces, view.counts.shape, step) for pieces in question.areas]
    taken = {axis for pieces in question.areas for axis in pieces.axes}
    for axis in range(view.counts.ndim):
        if axis not in taken:
            marked.append(_others(boxes, question, axis, view.counts.shape[axis]))
    rows = len(boxes)
    marked = [replace(one, inner=_rows(one.inner, rows), outer=_rows(one.outer, rows)) for one in marked]
    if view.runs is not None and not view.grids:
        return by_runs(view.runs, marked, confidence, known)
    return by_grids(view.grids, marked, confidence, known)


def _rows(flags: Any, rows: int) -> Any:
    return np.broadcast_to(flags, (rows, *flags.shape[1:]))


def _marked(pieces: Pieces, shape: tuple[int, ...], step: int) -> Marked:
    """The cells of a place that a polygon holds, and those that it touches."""
    one = pieces.cuts[0 if pieces.single else step]
    inner = np.zeros(pieces.size, np.bool_)
    inner[one.inside] = True
    outer = inner.copy()
    outer[one.cut] = True
    sides = tuple(shape[i] for i in pieces.axes)
    return Marked(pieces.axes, inner.reshape(1, *sides), outer.reshape(1, *sides))


def _others(boxes: Boxes, question: Asked, axis: int, cells: int) -> Marked:
    """The cells of another axis that are asked for in every row."""
    at = np.arange(cells)
    if axis in question.sets:
        held = np.isin(at, question.sets[axis])[None]
        return Marked((axis,), held, held)
    cover = boxes.cover
    if axis in question.levels:
        held = question.levels[axis] == cover.inner_low[:, axis, None]
        return Marked((axis,), held, held)
    inner = (at >= cover.inner_low[:, axis, None]) & (at < cover.inner_high[:, axis, None])
    outer = (at >= cover.outer_low[:, axis, None]) & (at < cover.outer_high[:, axis, None])
    return Marked((axis,), inner, outer)
