"""What of a record an order statistic sees: a number, perhaps a part that it belongs to; and what of it is hidden."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.counting import NOWHERE, CountReport, locate_records, locate_values
from sfumato.domain import Domain
from sfumato.errors import InvalidInput, TooLarge
from sfumato.exact import Number
from sfumato.policies import Policy
from sfumato.policies.relation_policy import placed, policy
from sfumato.promise.parts import Part, Partition, Steps
from sfumato.publishing.lattice import NAME, lattice, lattice_policy
from sfumato.relations import Relation, anything, move, presence

MOST_PARTS = 10_000


@dataclass(frozen=True, kw_only=True, eq=False)
class Attribute:
    """A lattice, the parts of the data (one, or one for each cell of `by`), and what may happen to a record there.

    `step` is how many cells the number moves at most, `crossed` whether the part may change as well, and `presence`
    whether a record may appear or vanish: also by becoming one of no declared part.
    """

    policy: Policy
    line: Domain
    by: Domain | None
    step: int
    crossed: bool
    presence: bool

    @property
    def parts(self) -> int:
        """How many parts there are."""
        return 1 if self.by is None else self.by.size

    @property
    def hides_number(self) -> bool:
        """Whether it is hidden how many records a part has."""
        return self.presence or (self.crossed and self.parts > 1)

    def price(self, *, inside: Steps, absent: Steps) -> Fraction:
        """What a change of a record costs where every part is published at ε = 1, in which a move inside takes so many
        steps, and to appear so many; 1 where nothing changes.
        """
        part = Part(epsilon=Fraction(1), inside=inside if self.step else 0, absent=absent)
        found = Partition.alike(part, self.parts, crossed=self.crossed, presence=self.presence).price
        return max(found, Fraction(1))


def attribute(
    bounds: Sequence[float],
    *,
    name: str | None,
    by: Domain | None,
    delta: Number | None,
    hide: Relation | None,
    public: Iterable[str],
    cells: int | None,
) -> Attribute:
    """From what a call says. Without `hide` and `delta` a record may become any other: its part changes, too."""
    if hide is not None and delta is not None:
        raise InvalidInput(
            "hide and delta both say what is hidden. Nothing was drawn or recorded. Leave delta out, and say "
            f"sf.move({delta!r}, of={(name or NAME)!r})."
        )
    if by is not None and by.size > MOST_PARTS:
        raise TooLarge(
            f"by has {by.size:,} groups, and at most {MOST_PARTS:,} get an answer of their own. Nothing was drawn or "
            "recorded. Use fewer, or counts on a domain."
        )
    if by is None and hide is None:
        if tuple(public):
            raise InvalidInput("public names what groups may show, and there is no by=. Leave it out.")
        made = lattice_policy(bounds, delta=delta, cells=cells, name=name or NAME)
        return _seen(made, made.domain, None)
    return _related(bounds, name or NAME, by, _hidden(hide, delta, name or NAME), public, cells)


def _hidden(hide: Any, delta: Number | None, name: str) -> Relation:
    if hide is None:
        return anything() if delta is None else move(delta, of=name)
    if not isinstance(hide, Relation):
        raise InvalidInput(
            f"hide={type(hide).__name__} is not a relation. Nothing was drawn or recorded. Say what may change, such "
            f"as sf.change({name!r}), sf.anything() or sf.presence(), joined with | and &."
        )
    return hide


def _related(
    bounds: Sequence[float], name: str, by: Domain | None, hide: Relation, public: Iterable[str], cells: int | None
) -> Attribute:
    def joined(line: Domain) -> Domain:
        return line if by is None else by * line

    relation = placed(hide, joined(lattice(bounds, delta=None, cells=1, name=name)))
    limits = [rule.limit.amount for rule in relation.rules if rule.of == name and rule.limit is not None]
    line = lattice(bounds, delta=min(limits, default=None), cells=cells, name=name)
    changed = [f for f in (by.factors if by is not None else ()) if relation.changes_all or f.name in relation.names]
    if by is not None and any(by.axes[i].leaves_out for factor in changed for i in factor.positions):
        relation = relation | presence()  # whoever becomes one of no declared part is gone
    return replace(_seen(_policy(joined(line), relation, tuple(public)), line, by), crossed=bool(changed))


@lru_cache(maxsize=16)  # a step of many cells is a long list of moves
def _policy(domain: Domain, hide: Relation, public: tuple[str, ...]) -> Policy:
    return policy(domain, hide=hide, public=public)


def _seen(made: Policy, line: Domain, by: Domain | None) -> Attribute:
    """How far the number moves by itself, and whether records come and go."""
    alone = made if by is None else None
    relation = made.relation
    if alone is None and relation is not None:
        about = relation.about([line.names[0]])
        alone = None if about is None else about.on(line)
    step = 0 if alone is None else int(alone.moves.longest_along(line.shape)[0])
    return Attribute(policy=made, line=line, by=by, step=step, crossed=False, presence=not made.total_is_public)


def records(
    data: Any, seen: Attribute, *, column: str | None, groups: Any, columns: Mapping[str, str] | None
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """(cell on the lattice, part) of every record that has one, or a refusal that shows none of them."""
    if column is None:
        cells = _of_array(data, seen.line)
        parts = np.zeros(len(cells), np.int64) if seen.by is None else _grouped(groups, seen.by, len(cells))
    else:
        domain = seen.line if seen.by is None else seen.by * seen.line
        flat, report = locate_records(data, domain, {**(columns or {}), seen.line.names[0]: column})
        report.warn("Nothing is drawn or recorded yet; the answer goes on.")
        parts, cells = np.divmod(flat, seen.line.size)  # nowhere stays below zero
    there = parts > NOWHERE
    return (cells, parts) if there.all() else (cells[there], parts[there])


def _grouped(groups: Any, by: Domain, count: int) -> NDArray[np.int64]:
    """The part of every value of an array, NOWHERE for one of no declared part."""
    columns = tuple(np.asarray(column) for column in groups) if isinstance(groups, tuple) else (np.asarray(groups),)
    if len(columns) != by.ndim or any(column.shape != (count,) for column in columns):
        raise InvalidInput(
            f"by comes with {len(columns)} arrays of groups for {by.ndim} of its axes, one entry for each value. "
            "Nothing was drawn or recorded. Give by=(sf.Categories([…], name='state'), states), arrays as long as the "
            "values."
        )
    return locate_values(columns if by.ndim > 1 else columns[0], by)


def _of_array(values: Any, line: Domain) -> NDArray[np.int64]:
    try:
        # What is masked is no record, as null is none elsewhere.
        array = values.compressed() if isinstance(values, np.ma.MaskedArray) else np.asarray(values)
    except ValueError as error:
        raise InvalidInput("values are not a list of numbers. Nothing was drawn or recorded.") from error
    if array.ndim != 1 or (array.dtype.kind not in "fiu" and array.size):
        raise InvalidInput(
            f"values of type {array.dtype} in {array.ndim} dimensions are not a list of numbers. Nothing was drawn or "
            "recorded. Pass one number for each record."
        )
    numbers = array.astype(np.float64, copy=False)
    if not np.isfinite(numbers).all():
        raise InvalidInput(
            "values holds NaN or infinite numbers, which have no place between the bounds. Nothing was drawn or "
            "recorded. Remove missing values first: they are no records."
        )
    axis = line.intervals[0]
    outside = int(np.count_nonzero((numbers < axis.low) | (numbers > axis.high)))
    CountReport(rows=len(numbers), outside=outside).warn("Nothing is drawn or recorded yet; the answer goes on.")
    return line.locate(numbers)
