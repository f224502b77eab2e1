"""What is asked of a release, as the weight of every cell in every answer: in one row an answer, as products.

An answer is a sum over cells, and its noise is what these weights make of the release's. A range that cuts cells has
three sums: the cells wholly inside, all that it touches, and what lies in proportion.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property, reduce
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from sfumato._types import Floats, Integers
from sfumato.domain.cutting import Cut
from sfumato.linear.estimator import range_weights
from sfumato.release.areas import Pieces
from sfumato.release.asking import Asked
from sfumato.release.view import Boxes

Which = Literal["inside", "touched", "value"]
# The axes that a factor of a product is about, and the weights of their cells, one row an answer.
Part = tuple[tuple[int, ...], Floats]
# Weights written out at a time.
CHUNK = 1 << 22


class Weights(Protocol):
    """The weights of the cells in many answers, one row each."""

    @property
    def rows(self) -> int:
        """How many answers there are."""

    @property
    def cut(self) -> NDArray[np.bool_]:
        """Which answers have cells that are cut."""

    def products(self, rows: slice, which: Which) -> list[Part] | None:
        """Some rows as factors, in the order of the axes; None where they are no products."""

    def dense(self, rows: slice, which: Which) -> Floats:
        """Some rows written out, cell by cell in C order."""

    def sums(self, counts: Floats, which: Which, rows: slice) -> Floats:
        """The answers to some rows from estimates of the cells."""


@dataclass(frozen=True, eq=False)
class Listed:
    """The rows of a sparse matrix, one column a cell."""

    matrix: Any

    @property
    def rows(self) -> int:
        """One a row."""
        return int(self.matrix.shape[0])

    @property
    def cut(self) -> NDArray[np.bool_]:
        """None: weights are as they are given."""
        return np.zeros(self.rows, np.bool_)

    def products(self, rows: slice, which: Which) -> list[Part] | None:
        """Any weights are no products."""
        del rows, which
        return None

    def dense(self, rows: slice, which: Which) -> Floats:
        """Some rows."""
        del which
        return np.asarray(self.matrix[rows].todense(), dtype=np.float64)

    def sums(self, counts: Floats, which: Which, rows: slice) -> Floats:
        """The answers to some rows."""
        del which
        return np.asarray(self.matrix[rows] @ counts.ravel(), dtype=np.float64)


@dataclass(frozen=True, eq=False)
class Cells:
    """Single cells, by their numbers in C order."""

    cells: Integers
    shape: tuple[int, ...]

    @property
    def rows(self) -> int:
        """One a cell."""
        return len(self.cells)

    @property
    def cut(self) -> NDArray[np.bool_]:
        """None is cut."""
        return np.zeros(self.rows, np.bool_)

    def products(self, rows: slice, which: Which) -> list[Part] | None:
        """One cell along every axis."""
        del which
        places = np.unravel_index(self.cells[rows], self.shape)
        return [
            ((axis,), (np.arange(n) == place[:, None]).astype(np.float64))
            for axis, (n, place) in enumerate(zip(self.shape, places, strict=True))
        ]

    def dense(self, rows: slice, which: Which) -> Floats:
        """One, and zeros."""
        del which
        found = np.zeros((len(self.cells[rows]), math.prod(self.shape)))
        found[np.arange(len(found)), self.cells[rows]] = 1.0
        return found

    def sums(self, counts: Floats, which: Which, rows: slice) -> Floats:
        """The estimates of these cells."""
        del which
        return np.asarray(counts.ravel()[self.cells[rows]], dtype=np.float64)


@dataclass(frozen=True, eq=False)
class Asking:
    """A question by names to a release whose estimates have this shape."""

    question: Asked
    shape: tuple[int, ...]

    @property
    def rows(self) -> int:
        """How many answers there are."""
        return math.prod(self.question.shape)

    @cached_property
    def cut(self) -> NDArray[np.bool_]:
        """Which answers have cells that are cut."""
        flags = [step.boxes.cover.cut | step.pieces_cut for step in self._steps]
        return np.concatenate([np.zeros(0, np.bool_), *flags])

    def products(self, rows: slice, which: Which) -> list[Part] | None:
        """Some rows; None where a place has polygons over two axes."""
        found = self._products(rows, which)
        return found if all(len(axes) == 1 for axes, _ in found) else None

    def _products(self, rows: slice, which: Which) -> list[Part]:
        found: list[list[Part]] = []
        start, stop = rows.indices(self.rows)[:2]
        begin = 0
        for step in self._steps:
            own = slice(max(start - begin, 0), max(min(stop - begin, len(step.boxes)), 0))
            if own.start < own.stop:
                found.append(step.products(own, which, self.shape))
            begin += len(step.boxes)
        return [
            (parts[0][0], np.concatenate([part for _, part in parts])) for parts in zip(*found, strict=True)
        ]  # every step has its factors along the same axes

    def dense(self, rows: slice, which: Which) -> Floats:
        """Some rows written out, cell by cell in C order."""
        return written_out(self._products(rows, which), self.shape)

    def sums(self, counts: Floats, which: Which, rows: slice) -> Floats:
        """The answers to some rows from estimates of the cells."""
        flat, step = counts.ravel(), max(1, CHUNK // max(counts.size, 1))
        start, stop = rows.indices(self.rows)[:2]
        parts = [self.dense(slice(at, min(at + step, stop)), which) @ flat for at in range(start, stop, step)]
        return np.concatenate([np.zeros(0), *parts])

    @cached_property
    def _steps(self) -> list[_Step]:
        return list(_steps(self.question))


@dataclass(frozen=True, eq=False)
class _Step:
    """All groups of one polygon of each place, or all there is where no polygon is asked for."""

    question: Asked
    boxes: Boxes
    number: int

    @property
    def pieces_cut(self) -> bool:
        return any(len(self._cut(pieces).cut) > 0 for pieces in self.question.areas)

    def _cut(self, pieces: Pieces) -> Cut:
        return pieces.cuts[0 if pieces.single else self.number]

    def products(self, rows: slice, which: Which, shape: tuple[int, ...]) -> list[Part]:
        """The factors of some of its answers, in the order of the axes; all that is summed over counts once."""
        boxes, found = self.boxes.at(rows), []
        taken = {axis for pieces in self.question.areas for axis in pieces.axes}
        for pieces in self.question.areas:
            one, weight = self._cut(pieces), np.zeros(pieces.size)
            weight[one.inside] = 1.0
            if which != "inside":
                weight[one.cut] = 1.0 if which == "touched" else one.share
            found.append((pieces.axes, np.repeat(weight[None], len(boxes), axis=0)))
        for axis, cells in enumerate(shape):
            if axis not in taken:
                found.append(((axis,), self._along(boxes, axis, cells, which)))
        return sorted(found, key=lambda part: part[0])

    def _along(self, boxes: Boxes, axis: int, cells: int, which: Which) -> Floats:
        cover, question = boxes.cover, self.question
        if axis in question.levels:
            return np.asarray(question.levels[axis] == cover.inner_low[:, axis, None], dtype=np.float64)
        if axis in question.sets:
            row = np.zeros(cells)
            row[question.sets[axis]] = 1.0
            return np.repeat(row[None], len(boxes), axis=0)
        if which == "inside":
            return range_weights(cells, cover.inner_low[:, axis], cover.inner_high[:, axis])
        if which == "touched":
            return range_weights(cells, cover.outer_low[:, axis], cover.outer_high[:, axis])
        return range_weights(cells, boxes.low[:, axis], boxes.high[:, axis])


def _steps(question: Asked) -> Iterator[_Step]:
    many = [len(pieces.cuts) for pieces in question.areas if not pieces.single]
    for number in range(max([1, *many])):
        spans = question.spans
        if many:
            spans = {axis: span.at(number) if np.ndim(span.low) else span for axis, span in spans.items()}
        rest = replace(question, spans=spans, areas=())
        yield _Step(replace(question, spans=spans), rest.boxes(), number)


def written_out(parts: list[Part], shape: tuple[int, ...]) -> Floats:
    """Products as weights of all cells in C order."""
    order = [axis for axes, _ in parts for axis in axes]
    rows = len(parts[0][1])
    table = reduce(lambda left, right: (left[:, :, None] * right[:, None, :]).reshape(rows, -1), (w for _, w in parts))
    along = table.reshape(rows, *(shape[axis] for axis in order))
    return np.transpose(along, [0, *(1 + order.index(axis) for axis in range(len(shape)))]).reshape(rows, -1)
