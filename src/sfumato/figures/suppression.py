"""Suppression: figures that a rule lets be shown, with intervals that hold given that they are shown.

**What is promised.** The rules look at released figures alone, so that what is missing tells nothing that the release
does not. For each figure all rules together are one threshold: y is shown if y ≥ τ, where τ follows from the rules and
the law of the noise, not from any data. The interval of a figure that is shown holds the number of records as often as
it says *among the times that it is shown* (`sfumato.figures.selected`); near the threshold its lower end is zero, since
noise alone may have lifted it there. A figure of which nothing is shown says why.

Where a rule looks at several figures at once (`largest`), no figure has such a law by itself. Intervals then are those
of the false coverage rate: at the level 1 - (1 - c)·shown/all, so that of all intervals shown the expected share that
misses is at most 1 - c (Benjamini and Yekutieli 2005); where figures share noise, with their factor Σ 1/i for that.

Of cells that are empty in truth some are shown. Expected are at most the sum, over all figures, of the chance that one
of an empty cell is; `empty` is that, as a share of what is shown.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from sfumato._types import Floats, Integers
from sfumato.errors import InvalidInput
from sfumato.exact import shown
from sfumato.figures.areas import areas_of
from sfumato.figures.law import Joint, joint
from sfumato.figures.reading import Reading
from sfumato.figures.rules import Rules
from sfumato.figures.selected import Selected
from sfumato.figures.sheet import Sheet, shaped
from sfumato.figures.tails import Tail, at_most
from sfumato.release.intervals import check_confidence
from sfumato.release.laws import Group

if TYPE_CHECKING:
    from sfumato.release.release import Release

INTERVALS = ("given shown", "false coverage")
_ROWS, _ENTRIES = 1024, 1 << 23
# Laws up to which all are written out; and what of a standard error is none.
_FEW, _ROUNDING = 256, 1e-7


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Suppressed(Sheet):
    """The figures that rules let be shown; others are missing, and `reason` says why.

    `shown` of `all` figures are there. `empty` bounds the expected share of those shown that are empty in truth.
    `level` is the confidence that the intervals were made at: a higher one where they hold `together`, by the false
    coverage rate.

    >>> plan = sf.plan(sf.unbounded(sf.Line(0, 4, cells=4)), sf.histogram(), epsilon=1)
    >>> release = plan.publish(np.array([0, 2, 90, 40]))
    >>> table = release.suppress(below=20)
    >>> table.shown, table.reason[0], bool(np.isnan(table.value[0])), bool(table.low[2] < 90 < table.high[2])
    (2, 'below 20', True, True)
    """

    reason: Any
    shown: int
    all: int
    empty: float
    level: float
    together: bool
    rules: Rules

    def _words(self) -> Mapping[str, Any]:
        return {"reason": self.reason}

    def __repr__(self) -> str:
        return f"{super().__repr__()}\n{self.summary}"

    @property
    def summary(self) -> str:
        """How much is shown, what the intervals mean, and how much of it may be empty."""
        rules = ", ".join(self.rules.words)
        if not self.shown:
            return (
                f"Nothing is shown: all {self.all:,} figures are suppressed ({rules}). Ask for larger groups, or give "
                "milder rules."
            )
        if not self.together:
            holds = (
                f"Each interval holds at least {self.confidence:.0%} of the times that its figure is shown; near the "
                "threshold its lower end is 0, since noise alone may have lifted the figure there."
            )
        else:
            holds = (
                f"Of the intervals shown at most {1 - self.confidence:.0%} miss, in expectation (false coverage rate): "
                f"each was made at {self.level:.2%}."
            )
        share = "less than 0.01%" if self.empty < 1e-4 else f"at most {self.empty:.2%}"
        empty = f" In expectation {share} of those shown are empty in truth." if self.rules.by_figure else ""
        return f"{self.shown:,} of {self.all:,} figures are shown ({rules}). {holds}{empty}"


def suppress(
    release: Release,
    rules: Rules,
    *,
    by: str | Iterable[str] | None = None,
    where: Mapping[str, Any] | None = None,
    intervals: str | None = None,
    confidence: float = 0.95,
) -> Suppressed:
    """What `release.suppress` gives."""
    confidence, largest = check_confidence(confidence), rules.largest
    if release.values is not None and release.values.entities is None:
        raise InvalidInput(
            f"this release is of {release.values.describe()}, and rules for small figures are about numbers of records "
            "or of people. Nothing was suppressed. Suppress by a release of records on the same cells."
        )
    if intervals is None:
        intervals = INTERVALS[0] if largest is None else INTERVALS[1]
    _check(intervals, largest)
    groups = by if by is None or isinstance(by, str) else tuple(by)
    reading = Reading.of(release, None, {}, where, release.domain.names if groups is None else groups, "bracket")
    if reading.weights.cut.any():
        raise InvalidInput(
            "where cuts cells, of which nobody but the data knows how many records lie on which side. Nothing was "
            "suppressed. Ask for whole cells: ends on edges, names, or levels."
        )
    area = None if rules.area is None else areas_of(release, reading)
    values, laws = reading.sums("value", slice(None)), _laws(reading)
    thresholds, reasons = rules.thresholds(laws), rules.reasons(values, laws, area)
    there = reasons == ""
    if largest is not None:
        order = np.argsort(-np.where(there, values, -np.inf), kind="stable")
        late = order[largest:]
        reasons[late[there[late]]] = f"not among the {largest:,} largest"
        there = reasons == ""
    count, level = int(there.sum()), confidence
    low, high = np.full(len(values), np.nan), np.full(len(values), np.nan)
    if intervals == INTERVALS[1]:
        level = _false_coverage(confidence, count, len(values), independent=_independent(reading))
    if count and (intervals == INTERVALS[1] or not rules.by_figure):
        plain = reading.answer(level, "bracket")
        low[there], high[there] = np.ravel(plain.low)[there], np.ravel(plain.high)[there]
    elif count:
        low[there] = high[there] = values[there]  # what is public is exact
        for kind in np.unique(laws.of[there & (laws.deviations[laws.of] > 0)]).tolist():
            own = np.flatnonzero(there & (laws.of == kind))
            law = Selected(laws.tail(kind), float(thresholds[kind]), confidence)
            low[own], high[own] = law.intervals(values[own])
    fits = np.ones(len(values), np.bool_) if area is None or rules.area is None else ~(area < rules.area)
    empty = min(1.0, float(laws.lifted(thresholds)[laws.of][fits].sum()) / count) if count else 0.0
    names = ", ".join(reading.question.keys[i].axis.name for i in range(len(reading.question.keys)))
    return Suppressed(
        value=shaped(np.where(there, values, np.nan), reading.shape),
        low=shaped(low, reading.shape),
        high=shaped(high, reading.shape),
        confidence=confidence,
        keys=reading.question.keys,
        about=f"Records by {names}" if names else "Records",
        statement=str(release.guarantee),
        reason=reasons.reshape(reading.shape) if reading.shape else str(reasons[0]),
        shown=count,
        all=len(values),
        empty=empty,
        level=level,
        together=intervals == INTERVALS[1],
        rules=rules,
    )


@dataclass(frozen=True, eq=False)
class Laws:
    """The laws that occur among many figures, and which is that of each."""

    law: Joint
    of: Integers

    @property
    def count(self) -> int:
        """How many."""
        return int(self.of.max(initial=-1)) + 1

    def groups(self, kind: int) -> list[Group]:
        """The noise in a figure under one of them."""
        return [(t.coefficients[kind, 0], t.counts[kind], t.noise) for t in self.law.terms]

    def tail(self, kind: int) -> Tail:
        """One of them, whole."""
        return Tail.of(self.groups(kind))

    @cached_property
    def deviations(self) -> Floats:
        """The standard error under every law; nothing of what rounding leaves of an exact figure."""
        found = self.law.deviations(np.ones((self.count, 1)))
        return np.where(found > _ROUNDING * found.max(initial=0.0), found, 0.0)

    def lifted(self, thresholds: Floats) -> Floats:
        """The chance that nobody at all is shown, at most, under every law: exactly where laws are few."""
        kinds = range(self.count)
        if self.count <= _FEW:
            return np.array([float(self.tail(i).most(thresholds[i])) for i in kinds])
        return np.array([at_most(self.groups(i), float(thresholds[i])) for i in kinds])


def _laws(reading: Reading) -> Laws:
    """Figures whose noise is alike share a law."""
    model = reading.model
    question = reading.seen
    whole = len(question.keys) == len(model.shape) and not question.levels
    if whole and reading.weights.rows == int(np.prod(model.shape)):
        order = [key.position for key in question.keys]
        kinds = np.transpose(model.cell_kinds, order).ravel()
        _, first, of = np.unique(kinds, return_index=True, return_inverse=True)
        cells = np.transpose(np.arange(kinds.size).reshape(model.shape), order).ravel()[first]
        law = joint([(Reading(reading.release, reading.question, cells=cells), "value")], slice(None), most=np.inf)
        return Laws(law, of.ravel())
    known: dict[bytes, int] = {}
    of, firsts = np.empty(reading.weights.rows, dtype=np.int64), list[Joint]()
    cols = sum(block.estimator.cols for block in model.blocks)
    step = max(1, min(_ROWS, _ENTRIES // max(cols, 1)))
    for at in range(0, len(of), step):
        rows = slice(at, min(at + step, len(of)))
        law = joint([(reading, "value")], rows, most=np.inf)
        for row in range(rows.stop - rows.start):
            key = b"".join(
                np.round(np.sort(np.abs(t.coefficients[row, 0]) + 1j * t.counts[row]), 9).tobytes() for t in law.terms
            )
            if key not in known:
                known[key] = len(known)
                firsts.append(law.at(np.array([row])))
            of[at + row] = known[key]
    return Laws(Joint.joined(firsts), of)


def _false_coverage(confidence: float, count: int, every: int, *, independent: bool) -> float:
    """The level at which intervals are made so that the expected share of those shown that miss is what is said."""
    factor = 1.0 if independent else float((1 / np.arange(1, every + 1)).sum())
    return 1 - (1 - confidence) * max(count, 1) / (every * factor)


def _independent(reading: Reading) -> bool:
    """Whether every noise reaches one figure at the most, which is known of noise on cells alone."""
    model = reading.model
    if len(reading.shape) > len(reading.question.keys):  # many ranges may overlap
        return False
    return not model.centred and all(block.estimator.is_identity for block in model.blocks) and len(model.blocks) == 1


def _check(intervals: str, largest: int | None) -> None:
    if intervals not in INTERVALS:
        raise InvalidInput(
            f"intervals={shown(intervals)} must be one of {', '.join(map(repr, INTERVALS))}. Nothing was suppressed."
        )
    if largest is not None and intervals != INTERVALS[1]:
        raise InvalidInput(
            "largest looks at all figures together, and none has a law given that it is shown. Nothing was "
            "suppressed. Use intervals='false coverage'."
        )
