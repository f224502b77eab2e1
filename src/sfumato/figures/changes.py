"""Changes from one release to another, which answer like a release: differences, and per cent.

**What is promised.** The interval holds the true change, of the records as they were counted in either, as often as it
says: over the noise of both releases, which is independent. Each release keeps its own promise, perhaps under another
relation; `statement` names both. Two releases about the same people spend together what each of them spends.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from sfumato.errors import InvalidInput
from sfumato.figures.bounds import Bounds, quotient
from sfumato.figures.combined import Sum, law_of, require_alike
from sfumato.figures.reading import Reading, require_apart
from sfumato.figures.sheet import Sheet, shaped
from sfumato.release.answer import Answer
from sfumato.release.brackets import check_cut
from sfumato.release.intervals import check_confidence
from sfumato.release.table import Table

if TYPE_CHECKING:
    from sfumato.release.release import Release

UNBOUNDED = "no upper end: the old figure may be 0"
NOBODY = "no change in per cent: the old figure is 0, and public"
NEAREST = "the nearest change that is possible: the estimates lie beyond it"


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class PercentChanges(Sheet):
    """Changes in per cent of what was: -100 where nothing is left; no upper end where the old figure may be zero."""

    note: Any

    def _words(self) -> Mapping[str, Any]:
        return {"note": self.note}


@dataclass(frozen=True, eq=False, repr=False)
class Change(ABC):
    """Two releases that are compared on the answers that both can give."""

    new: Release
    old: Release

    def __post_init__(self) -> None:
        for name, one in (("new", self.new), ("old", self.old)):
            if not (hasattr(one, "guarantee") and hasattr(one, "answer")):
                raise InvalidInput(
                    f"{name}={type(one).__name__} is no release. Nothing was computed. Give two releases, or for a "
                    "change in per cent two answers."
                )
        if self.new.id == self.old.id:
            if self.new.guarantee.epsilon == self.old.guarantee.epsilon:
                raise InvalidInput(
                    f"new and old are one release, {self.new.id!r}: nothing has changed. Nothing was computed. For "
                    "changes over time inside of one release subtract its answers, or give two of them to "
                    "sf.percent_change."
                )
            new, old = (Reading.of(one, None, {}, None, None, "bracket") for one in (self.new, self.old))
            require_apart(new, old, "a change")

    @property
    def statement(self) -> str:
        """What both releases promise, each for itself."""
        return f"new: {self.new.guarantee}\nold: {self.old.guarantee}"

    def answer(
        self,
        ranges: Any = None,
        *,
        by: str | Iterable[str] | None = None,
        where: Mapping[str, Any] | None = None,
        confidence: float = 0.95,
        cut: str = "bracket",
        **named: Any,
    ) -> Any:
        """The change of what `release.answer` says, asked alike of both releases."""
        check_cut(cut)
        groups = None if by is None else (by,) if isinstance(by, str) else tuple(by)
        new, old = (Reading.of(one, ranges, named, where, groups, cut) for one in (self.new, self.old))
        self._require_alike(new, old)
        return self._compared(new, old, check_confidence(confidence), cut)

    def marginal(self, *names: str, confidence: float = 0.95) -> Any:
        """The table over these factors or axes, everything else summed over."""
        if not names:
            raise InvalidInput("marginal() needs names of axes or factors. The total is answer().")
        return self.answer(by=names, confidence=confidence)

    def cells(self, *, confidence: float = 0.95) -> Any:
        """The change of every cell, in the shape of the domain, which both releases must have."""
        if self.new.domain != self.old.domain:
            raise InvalidInput(
                "these releases have different domains, and their cells are not the same. Nothing was computed. Ask "
                "for what both can answer: ranges, polygons, levels or labels that both have, in answer()."
            )
        new, old = (Reading.of_cells(one) for one in (self.new, self.old))
        return self._compared(new, old, check_confidence(confidence), "bracket")

    def _require_alike(self, new: Reading, old: Reading) -> None:
        names = [[key.names for key in side.question.keys] for side in (new, old)]
        if new.shape != old.shape or names[0] != names[1]:
            told = [" × ".join(map(str, side.shape)) or "one" for side in (new, old)]
            raise InvalidInput(
                f"the new release answers {told[0]} groups and the old one {told[1]}, or they are called otherwise. "
                "Nothing was computed. Ask for groups that both have: by= a level or labels that they share, or "
                "where=."
            )

    @abstractmethod
    def _compared(self, new: Reading, old: Reading, confidence: float, cut: str) -> Any:
        """What comes of two readings."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}(new={self.new!r}, old={self.old!r})"


@dataclass(frozen=True, eq=False, repr=False)
class Difference(Change):
    """How much more there is than there was, with intervals over the noise of both releases.

    >>> plan = sf.plan(sf.unbounded(sf.Line(0, 4, cells=4)), sf.histogram(), epsilon=1)
    >>> old, new = plan.publish(np.array([30, 10, 20, 40])), plan.publish(np.array([130, 10, 20, 40]))
    >>> change = sf.difference(new, old)
    >>> change.answer((0, 1)).low > 50, change.cells().value.shape
    (True, (4,))
    """

    def _compared(self, new: Reading, old: Reading, confidence: float, cut: str) -> Answer:
        zeros = np.zeros(new.shape)
        told: dict[str, Any] = {"range": new.question.ranges, "cut": cut}
        like: Answer
        if new.question.keys:
            like = Table(zeros, zeros, zeros, zeros, confidence, keys=new.question.keys, **told)
        else:
            like = Answer(zeros, zeros, zeros, zeros, confidence, **told)
        return Sum(((1.0, new), (-1.0, old))).answer(like)


@dataclass(frozen=True, eq=False, repr=False)
class PercentChange(Change):
    """How much more there is in per cent of what there was.

    >>> plan = sf.plan(sf.unbounded(sf.Line(0, 4, cells=4)), sf.histogram(), epsilon=1)
    >>> old, new = plan.publish(np.array([300, 10, 20, 0])), plan.publish(np.array([600, 10, 20, 0]))
    >>> change = sf.percent_change(new, old).answer((0, 1))
    >>> bool(90 < change.value < 110), bool(change.low < 100 < change.high)
    (True, True)
    """

    def _compared(self, new: Reading, old: Reading, confidence: float, cut: str) -> PercentChanges:
        found = quotient(new, old, confidence, cut)
        return per_cent(found, new, confidence, self.statement)


def difference(new: Any, old: Any) -> Difference | Answer:
    """How much more there is than there was: of two releases something that answers like one, of two answers one more.

    Releases may be of different domains, mechanisms, ε and relations: they are compared on the answers that both can
    give, and both promises are named. See `sfumato.figures.changes`.

    >>> plan = sf.plan(sf.unbounded(sf.Categories(["bus", "bike"], name="mode")), sf.histogram(), epsilon=1)
    >>> old, new = plan.publish(np.array([300, 40])), plan.publish(np.array([310, 90]))
    >>> sf.difference(new, old).answer(by="mode").to_frame().column_names
    ['mode', 'value', 'stderr', 'low', 'high']
    """
    if isinstance(new, Answer) and isinstance(old, Answer):
        found: Answer = new - old
        return found
    return Difference(new, old)


def percent_change(new: Any, old: Any) -> PercentChange | PercentChanges:
    """How much more there is in per cent of what there was: of two releases something that answers like one, of two
    answers the changes between them. An end that is not known is infinite: where the old figure may be zero.

    >>> when = sf.Times("2025-01-01", "2027-01-01", every="1 day", name="t")
    >>> release = sf.plan(sf.unbounded(when), sf.ranges(), epsilon=1).publish(np.full(730, 100))
    >>> old, new = (release.answer(t=(f"{year}-01-01", f"{year + 1}-01-01")) for year in (2025, 2026))
    >>> bool(abs(sf.percent_change(new, old).value) < 10)
    True
    """
    if not (isinstance(new, Answer) and isinstance(old, Answer)):
        return PercentChange(new, old)
    pair = [law_of(answer) for answer in (new, old)]
    require_alike(new, old)
    pair[0].plus(pair[1])  # refuses what has no joint law
    plain = [one.terms[0][1] for one in pair if len(one.terms) == 1 and one.terms[0][0] == 1 and one.constant == 0]
    if len(plain) < 2:
        raise InvalidInput(
            "percent_change compares what releases answer, and one of these was computed from answers. Nothing was "
            "computed. Ask the releases for both figures."
        )
    found = quotient(plain[0], plain[1], new.confidence, new.cut or "bracket")
    promises = [str(one.release.guarantee) for one in plain]
    statement = promises[0] if promises[0] == promises[1] else f"new: {promises[0]}\nold: {promises[1]}"
    return per_cent(found, plain[0], new.confidence, statement)


def per_cent(found: Bounds, new: Reading, confidence: float, statement: str) -> PercentChanges:
    """Quotients as changes in per cent."""
    notes = np.full(len(found.value), "", dtype=object)
    notes[np.isinf(found.high)] = UNBOUNDED
    for flags, words in ((found.beyond, NEAREST), (found.nobody, NOBODY)):
        notes[flags] = words
    keys = new.question.keys if new.matrix is None else ()
    return PercentChanges(
        value=shaped(100 * (found.value - 1), new.shape),
        low=shaped(100 * (found.low - 1), new.shape),
        high=shaped(100 * (found.high - 1), new.shape),
        confidence=confidence,
        keys=keys,
        about=f"Change in per cent{' by ' + ', '.join(key.axis.name for key in keys) if keys else ''}",
        statement=statement,
        note=notes.reshape(new.shape) if new.shape else str(notes[0]),
    )
