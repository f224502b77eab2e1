"""What happened to the records: for the operator's eyes, and gross errors in words."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, fields, replace
from fractions import Fraction

from sfumato.errors import DataWarning, InvalidInput, warn_caller
from sfumato.exact import Number, fraction

GROSS = Fraction(1, 2)
"""More than this share of the rows, or of the records, is a gross error."""


@dataclass(frozen=True, kw_only=True)
class CountReport:
    """What happened to the records. For the operator's eyes: exact, private, and never part of a release.

    ``rows`` were read; ``without_coordinates`` had a missing value (null or NaN) and were no records, nor
    were those with one written in a way that is ``unreadable`` (in files of text; None where types say what a value
    is), nor those ``without_entity`` where contributions are bounded;
    ``outside`` lay beyond the bounds or were not among the labels, and were clamped, put under the axis's
    ``other``, or dropped; ``cut`` were left out because their entity, one of ``entities_cut``, had more than
    its share. Where rows are cut into steps of time, ``without_time`` had no time, ``unreadable_time`` one that could
    not be read, and ``in_no_step`` one that lies in no step. ``in_other_box`` is the share of the counted records that
    lie in the small box which the bounds describe when they are read as (xmin, xmax, ymin, ymax), where there is one.
    What is not known is None. ``transformed`` is the pipeline of PROJ by which points came into the CRS of the domain,
    where they were in another one.
    """

    rows: int | None = None
    without_coordinates: int | None = None
    unreadable: int | None = None
    without_entity: int | None = None
    outside: int | None = None
    cut: int | None = None
    entities_cut: int | None = None
    without_time: int | None = None
    unreadable_time: int | None = None
    in_no_step: int | None = None
    in_other_box: Fraction | None = None
    transformed: str | None = None

    @property
    def records(self) -> int | None:
        """The rows that have a place in time and space; None where the rows are not known."""
        if self.rows is None:
            return None
        return self.rows - sum(
            n or 0
            for n in (
                self.without_coordinates,
                self.unreadable,
                self.without_time,
                self.unreadable_time,
                self.in_no_step,
            )
        )

    @property
    def shares(self) -> dict[str, Fraction]:
        """The exact share of whatever is known and may be wrong, by its name; private, as the report is.

        What lies outside is a share of the records, the rest are shares of all rows.
        """
        return {name: share for name, share, _ in self._parts()}

    def gross(self, limit: Number = GROSS) -> tuple[str, ...]:
        """A sentence for each share above the limit, without any value of the data; empty where there is none."""
        most = fraction(limit, "limit")
        if not 0 <= most <= 1:
            raise InvalidInput(f"limit={limit!r} must be a share from 0 to 1.")
        return tuple(f"{percent(share)} {words}" for _, share, words in self._parts() if share > most)

    def _parts(self) -> Iterator[tuple[str, Fraction, str]]:
        """(name, share, the rest of a sentence) of everything that is known."""
        rows, records = self.rows or 0, self.records or 0
        for name, part, whole, words in (
            ("without time", self.without_time, rows, "have no time (null)."),
            (
                "unreadable time",
                self.unreadable_time,
                rows,
                "have a time that cannot be read. Declare how times are written.",
            ),
            ("in no step", self.in_no_step, rows, "lie in no step. Are the first step, the zone and the format right?"),
            (
                "without coordinates",
                self.without_coordinates,
                rows,
                "have no coordinates (null or NaN). Is it the right column?",
            ),
            ("unreadable", self.unreadable, rows, "have coordinates that cannot be read. Is it the right column?"),
            ("without entity", self.without_entity, rows, "have no entity (null). Is it the right column?"),
            (
                "outside",
                self.outside,
                records,
                "lie outside the bounds or are none of the labels. Are the columns swapped (x is the longitude), in "
                "another unit or CRS than the bounds, or the bounds in another order than (lo…, hi…)?",
            ),
        ):
            if part is not None and whole:
                yield name, Fraction(part, whole), f"of the {'records' if name == 'outside' else 'rows'} {words}"
        if self.in_other_box is not None:
            yield (
                "in other box",
                self.in_other_box,
                "of the records lie in the small box that the bounds describe when read as (xmin, xmax, ymin, ymax). "
                "Were they meant so? Give bounds=(x0, y0, x1, y1).",
            )

    def warn(self, so_far: str = "Nothing was drawn or recorded.") -> None:
        """Warn the operator of gross errors; nothing is stopped and nothing enters a release."""
        for sentence in self.gross():
            warn_caller(f"{sentence} {so_far}", DataWarning)


def percent(share: Fraction) -> str:
    """A share as people read it; all of it only where it is all."""
    if share == 1:
        return "All (100 %)"
    return f"{min(max(float(100 * share), 0.1), 99.9):.1f} %" if share else "0 %"


def added(reports: Iterable[CountReport]) -> CountReport:
    """The report of several counts together: what is known of all is added up."""
    parts = [report for report in reports if report.rows]
    sums: dict[str, int | None] = {}
    for field in fields(CountReport):
        values = [getattr(report, field.name) for report in parts]
        if field.name not in ("in_other_box", "transformed") and values and None not in values:
            sums[field.name] = sum(values)
    boxed = [report for report in parts if report.in_other_box is not None]
    weight = sum(report.records or 0 for report in boxed)
    share = sum(((report.in_other_box or 0) * (report.records or 0) for report in boxed), Fraction(0))
    pipelines = {report.transformed for report in parts}
    transformed = pipelines.pop() if len(pipelines) == 1 else None
    boxed_share = share / weight if weight else None
    return replace(CountReport(**sums), in_other_box=boxed_share, transformed=transformed)  # type: ignore[arg-type]
