"""The doors from a release to the figures that people publish: rates, and what rules let be shown."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from sfumato.figures import Rates, Suppressed
    from sfumato.release.release import Release


class Figured:
    """Rates and suppression of a release."""

    def rate(
        self,
        case: Any,
        *,
        by: str | Iterable[str] | None = None,
        over: Any = None,
        per: float = 1,
        where: Mapping[str, Any] | None = None,
        confidence: float = 0.95,
        cut: str = "bracket",
    ) -> Rates:
        """The share of the records that are a case, in each group; or cases by another denominator, for each `per`.

        `case` is a label of an attribute, a list of labels that are taken together, or a mapping from names to what
        makes a case. `over` is what to divide by: all records of this release, unless it is another release, whose
        noise is independent, or a public table: a mapping from the names of the groups to numbers, a frame, or numbers
        in the domain's order. `by`, `where` and `cut` are those of `answer`. See `sfumato.figures.rates`.

        Intervals hold the true rate over the noise of both parts. Where a denominator may be zero they have no upper
        end, which is then infinite. See `sf.difference` for changes.

        >>> space = sf.Categories(["north", "south"], name="region") * sf.Categories(["ill", "well"], name="state")
        >>> release = sf.plan(sf.unbounded(space), sf.histogram(), epsilon=1).publish(np.array([[30, 970], [2, 3]]))
        >>> release.rate(case="ill", by="region", per=100_000, over={"north": 52_000, "south": 310}).value.shape
        (2,)
        """
        from sfumato.figures import rate  # the door to rates, changes and suppression

        return rate(cast("Release", self), case, by=by, over=over, per=per, where=where, confidence=confidence, cut=cut)

    def suppress(
        self,
        *,
        by: str | Iterable[str] | None = None,
        where: Mapping[str, Any] | None = None,
        below: float | None = None,
        relative_error: float | None = None,
        off_by: float | None = None,
        chance: float | None = None,
        min_area: str | None = None,
        largest: int | None = None,
        intervals: str | None = None,
        confidence: float = 0.95,
    ) -> Suppressed:
        """The figures that rules on released figures let be shown, one a cell, or a group with `by`; others are
        missing, with a reason. All rules that are given must hold.

        `below`: at least so many. `relative_error`: a standard error of at most this share of the figure. `off_by` and
        `chance` (0.05): a chance of at most this that the noise is more than this share of the figure. `min_area`: a
        group of at least "3 km2". `largest`: among so many largest. `by` and `where` are those of `answer`.

        Intervals hold as often as `confidence` (0.95) says *given that the figure is shown*; with
        `intervals="false coverage"`, and always with `largest`, all that are shown together do. See
        `sfumato.figures.suppression`.

        >>> line = sf.Line(0, 4, cells=4)
        >>> release = sf.plan(sf.unbounded(line), sf.histogram(), epsilon=1).publish(np.array([0, 2, 90, 40]))
        >>> release.suppress(below=20, off_by=0.1).to_frame().column_names
        ['x_low', 'x_high', 'value', 'low', 'high', 'reason']
        """
        from sfumato.figures import Rules, suppress

        rules = Rules.of(below, relative_error, off_by, chance, min_area, largest)
        return suppress(cast("Release", self), rules, by=by, where=where, intervals=intervals, confidence=confidence)
