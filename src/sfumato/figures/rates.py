"""Rates: how many of those in a group are a case, or how many cases there are for each of so many.

**What is promised.** The interval of a group holds the true rate, of the records as they were counted, as often as it
says: over the noise in the numerator and in the denominator together (`sfumato.figures.ratio`). Where the denominator
is public its interval is that of the count, divided. Where it may be zero the interval has no upper end: nothing is
known of a rate among nobody. A part of the denominator is at most all of it, and an end that is finite is at most
`per`. Where a mechanism's noise has no law given the data, numerator and denominator are bracketed by themselves, each
missed half as often: wider, and it holds.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import NDArray

from sfumato.domain import Domain, Labels
from sfumato.errors import InvalidInput
from sfumato.exact import finite_float, shown
from sfumato.figures.bounds import Bounds, over_exact, quotient
from sfumato.figures.denominators import denominators
from sfumato.figures.reading import Reading, require_apart
from sfumato.figures.sheet import Sheet, shaped
from sfumato.release.brackets import check_cut
from sfumato.release.intervals import check_confidence

if TYPE_CHECKING:
    from sfumato.release.release import Release

UNBOUNDED = "no upper end: the denominator may be 0"
NOBODY = "no rate: the denominator is 0, and public"
MISSING = "no rate: no denominator was given"
NEAREST = "the nearest rate that is possible: the estimates lie beyond it"


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Rates(Sheet):
    """A rate for every group, with an interval that holds, in the domain's order.

    An end that is not known is infinite. The value is missing where the estimated denominator is not above zero, and
    `note` says what there is to say of a row.

    >>> space = sf.Categories(["north", "south"], name="region") * sf.Categories(["ill", "well"], name="state")
    >>> release = sf.plan(sf.unbounded(space), sf.histogram(), epsilon=1).publish(np.array([[30, 970], [2, 3]]))
    >>> rates = release.rate(case="ill", by="region", per=1000)
    >>> rates.value.shape, bool(rates.low[0] < 40 < rates.high[0]), rates.to_frame().column_names
    ((2,), True, ['region', 'value', 'low', 'high', 'note'])
    """

    per: float
    note: Any

    def _words(self) -> Mapping[str, Any]:
        return {"note": self.note}


def rate(
    release: Release,
    case: Any,
    *,
    by: str | Iterable[str] | None = None,
    over: Any = None,
    per: float = 1,
    where: Mapping[str, Any] | None = None,
    confidence: float = 0.95,
    cut: str = "bracket",
) -> Rates:
    """What `release.rate` gives."""
    confidence, cut = check_confidence(confidence), check_cut(cut)
    times = finite_float(per, "per")
    if times <= 0:
        raise InvalidInput(f"per={per!r} must be above zero, such as 100_000. Nothing was computed.")
    groups = None if by is None else (by,) if isinstance(by, str) else tuple(by)
    given = dict(where or {})
    chosen, everyone = _case(release.domain, case, groups or (), given)
    cases = Reading.of(release, None, {}, {**given, **chosen}, groups, cut)
    words = f"Rates of {_told(case)}{'' if groups is None else ' by ' + ', '.join(groups)}, per {times:,.15g}"
    statement = str(release.guarantee)
    if over is None:
        of = Reading.of(release, None, {}, {**given, **(everyone or {})}, groups, cut)
        require_apart(cases, of, "a rate")
        bounds = quotient(cases, of, confidence, cut, part="any" if everyone is None else "labels")
    elif hasattr(over, "guarantee") and hasattr(over, "answer"):
        of = Reading.of(over, None, {}, given, groups, cut)
        _require_alike(cases, of)
        require_apart(cases, of, "a rate over another release")
        bounds = quotient(cases, of, confidence, cut)
        statement = f"numerators: {statement}\ndenominators: {over.guarantee}"
    else:
        table = denominators(over, cases.question.keys)
        answer = cases.answer(confidence, cut)
        bounds = over_exact(answer, np.broadcast_to(table, cases.shape).ravel())
    return Rates(
        value=shaped(times * bounds.value, cases.shape),
        low=shaped(times * bounds.low, cases.shape),
        high=shaped(times * bounds.high, cases.shape),
        confidence=confidence,
        keys=cases.question.keys,
        about=words,
        statement=statement,
        per=times,
        note=_notes(bounds).reshape(cases.shape) if cases.shape else str(_notes(bounds)[0]),
    )


def _require_alike(cases: Reading, of: Reading) -> None:
    """The same groups on both sides, by name and in one order."""
    one, other = ([key.names for key in reading.question.keys] for reading in (cases, of))
    if one != other or cases.shape != of.shape:
        told = [" × ".join(str(len(names)) for names in side) or "none" for side in (one, other)]
        raise InvalidInput(
            f"over has other groups than this release: {told[1]} against {told[0]}, or other names or another order. "
            "Nothing was computed. Ask for groups that both have, or narrow both with where=."
        )


def _case(
    domain: Domain, case: Any, groups: Sequence[str], where: Mapping[str, Any]
) -> tuple[dict[str, Any], dict[str, Any] | None]:
    """What is asked of the numerator; and of the denominator, where the case is told by labels of one attribute."""
    if isinstance(case, Mapping):
        if not case or not all(isinstance(name, str) for name in case):
            raise InvalidInput(
                f"case={shown(case)} must map names of factors to what makes a case, such as {{'state': 'ill'}}. "
                "Nothing was computed."
            )
        twice = [name for name in case if name in where or name in groups]
        if twice:
            raise InvalidInput(
                f"case names {shown(twice[0])}, which by or where speaks of as well: a rate is taken among all of it. "
                "Nothing was computed. Leave it out of one of them."
            )
        labels = {axis.name: axis for axis in domain.axes if axis.reads == "labels"}
        only = next(iter(case)) if len(case) == 1 else None
        everyone = {only: list(cast(Labels, labels[only]).labels)} if only in labels else None
        return dict(case), everyone
    wanted = list(case) if isinstance(case, Iterable) and not isinstance(case, str) else [case]
    found = [
        cast(Labels, axis)
        for axis in domain.axes
        if axis.reads == "labels" and wanted and all(label in cast(Labels, axis).labels for label in wanted)
    ]
    free = [axis for axis in found if axis.name not in groups and axis.name not in where]
    if len(free) == 1:
        return {free[0].name: wanted}, {free[0].name: list(free[0].labels)}
    raise _no_case(domain, case, [axis.name for axis in found], [axis.name for axis in free])


def _no_case(domain: Domain, case: Any, found: list[str], free: list[str]) -> InvalidInput:
    """Why no attribute is the case's."""
    if len(free) > 1:
        return InvalidInput(
            f"case={shown(case)} is a label of {' and of '.join(map(repr, free))}. Nothing was computed. Say which: "
            f"case={{{free[0]!r}: …}}."
        )
    if found:
        return InvalidInput(
            f"case={shown(case)} is a label of {found[0]!r}, which by or where speaks of as well: a rate is taken "
            "among all of it. Nothing was computed. Leave it out of one of them."
        )
    names = [axis.name for axis in domain.axes if axis.reads == "labels"]
    return InvalidInput(
        f"case={shown(case)} is no label, nor a list of labels, of an attribute of this release, whose attributes are: "
        f"{', '.join(map(repr, names)) or 'none'}. Nothing was computed. Give labels of one of them, or a mapping from "
        "names to what makes a case."
    )


def _told(case: Any) -> str:
    if isinstance(case, Mapping):
        return shown(" and ".join(f"{name}={value}" for name, value in case.items())).strip("'")
    return shown(case if isinstance(case, str) else " or ".join(map(str, case)) if isinstance(case, list) else case)


def _notes(bounds: Bounds) -> NDArray[np.object_]:
    """What there is to say, row by row."""
    notes = np.full(len(bounds.value), "", dtype=object)
    notes[np.isinf(bounds.high)] = UNBOUNDED
    for flags, words in ((bounds.beyond, NEAREST), (bounds.nobody, NOBODY), (bounds.missing, MISSING)):
        notes[flags] = words
    return notes
