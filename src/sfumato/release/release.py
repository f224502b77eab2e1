"""A release: what may be handed to anyone. It holds estimates, their error and the guarantee, and no secret."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sfumato.errors import InvalidInput
from sfumato.exact import Number
from sfumato.ledger import Ledger
from sfumato.mechanism import Mechanism
from sfumato.promise import Guarantee
from sfumato.release import points
from sfumato.release.adjust import Adjusted, rounded, without_negative
from sfumato.release.answer import Answer
from sfumato.release.answering import answered, every_cell, queried, tabled
from sfumato.release.asking import asked
from sfumato.release.brackets import check_cut
from sfumato.release.figured import Figured
from sfumato.release.intervals import check_confidence
from sfumato.release.origin import Origin
from sfumato.release.outward import Outward
from sfumato.release.patch import Patch, patch_between, patched
from sfumato.release.seen import Seen
from sfumato.release.table import Table
from sfumato.vault import Vault

if TYPE_CHECKING:
    from sfumato.publication import Publication


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Release(Seen, Outward, Figured):
    """Estimated counts of every cell, and all that is needed to answer queries on them with honest errors.

    `counts` of a linear mechanism are unbiased, and may be negative or fractional; `adjusted()` makes them look like
    counts, at a price that it names. Where the policy makes the total public they sum to it exactly. Whatever is
    computed from a release is as private as the release.

    Where tables of some factors were measured, and no cells, `marginal` and `answer` give them and `counts` is refused;
    `estimates` is what is kept, counts or tables.

    `measured` are the noisy integers that the counts were computed from, private like them; they are kept where the
    release can be refined, or says more than its counts.

    >>> plan = sf.plan(sf.threshold(sf.Line(0, 4, cells=4), theta=1), sf.histogram(), epsilon=1)
    >>> release = plan.publish(np.array([3, 0, 5, 1]))
    >>> release.total, release.counts.shape
    (9, (4,))
    """

    id: str
    estimates: NDArray[np.float64]
    guarantee: Guarantee
    mechanism: Mechanism
    workload: str
    created: str = ""
    measured: NDArray[np.int64] | None = None
    origin: Origin | None = None

    def __post_init__(self) -> None:
        estimates, shape = np.asarray(self.estimates, dtype=np.float64), self.mechanism.shape
        if estimates.shape != shape:
            raise InvalidInput(f"estimates of shape {estimates.shape} do not fit the domain's {shape}.")
        estimates.flags.writeable = False  # a release is a value
        object.__setattr__(self, "estimates", estimates)
        if self.measured is not None:
            measured = np.asarray(self.measured, dtype=np.int64)
            measured.flags.writeable = False
            object.__setattr__(self, "measured", measured)

    @property
    def counts(self) -> NDArray[np.float64]:
        """Estimated counts of all cells, in the domain's shape; refused of a release that has tables alone."""
        if self._tables is not None:
            raise self._tables.no_cells()
        return self._outward(self.estimates)

    @property
    def private(self) -> bool:
        """False for a release made with seeded randomness, which promises nothing."""
        return self.guarantee.private

    @property
    def publication(self) -> Publication | None:
        """The public part of the publication that it came from, if it came from one: what was asked for, and no paths,
        columns or account.

        >>> asked = sf.Publication(policy=sf.bounded(sf.Line(0, 4, cells=4)), ask=sf.ranges(), epsilon="1/3")
        >>> asked.plan().publish(np.array([3, 0, 5, 1])).publication.ask.to_text()
        'ranges()'
        """
        from sfumato.publication import Publication  # the door to what was asked

        told = self.origin
        if told is None:
            return None
        return Publication(
            policy=self.guarantee.policy,
            ask=told.workload,
            epsilon=told.epsilon,
            max_per_entity=told.max_per_entity,
            mechanism=told.mechanism,
            expected_records=told.records,
        )

    def answer(
        self,
        ranges: Any = None,
        *,
        by: str | Iterable[str] | None = None,
        where: Mapping[str, Any] | None = None,
        confidence: float = 0.95,
        cut: str = "bracket",
        estimate: str = "plain",
        **named: Any,
    ) -> Answer:
        """How many records lie in a range, or in each of many ranges at once; with `by`, in each group of a table.

        A range is half-open and in the domain's units: (lo, hi) on a line, (x0, y0, x1, y1) on a grid, (lo…, hi…) in
        general. On categories give a label or a list of labels. On a product the range in front is that of the place,
        and other axes and factors are asked by name: a range along times and lines (times as text or datetimes), a
        label, or a list of labels that are taken together. What is not named is summed over. `where` takes names that
        are keywords here; `by` names what to group by, and gives a `Table`. Both take levels as well, by="county" and
        county="Kings".

        On a place polygons may stand for ranges: a geometry of shapely, a list of them, or a GeoDataFrame, whose CRS is
        transformed. Cells are inside or cut as the polygon says, exactly; beyond regions and hexagons it touches
        elsewhere. Needs ``sfumato[geo]``.

        The release knows whole cells. `cut` says what becomes of those that a range cuts: under "bracket" the interval
        holds the number of records in the range, on whichever side of the cut they lie; under "proportion" the interval
        is that of the noise alone, and wrong where records are not spread evenly within a cell; under "snap" the
        nearest range of whole cells is answered, and named in the answer's `range`. The value counts cut cells in
        proportion.

        With `estimate="nonnegative"` values are those of `nonnegative()`, kept within one standard error of the plain
        ones and at zero or above: much nearer to the truth where hardly anybody is, and biased. Intervals are the same
        under either, and hold the number of records as often as they say, since they are made of the plain estimate.

        >>> plan = sf.plan(sf.threshold(sf.Line(0, 4, cells=4), theta=1), sf.ranges(), epsilon=1)
        >>> answer = plan.publish(np.array([30, 0, 50, 10])).answer([(0, 4), (0, 2)], confidence=0.9)
        >>> answer.value.shape, float(answer.value[0])
        ((2,), 90.0)
        >>> space = sf.Line(0, 24, cells=4, name="hour") * sf.Categories(["bus", "bike"], name="mode")
        >>> release = sf.plan(sf.bounded(space), sf.histogram(), epsilon=1).publish(np.full((4, 2), 100))
        >>> release.answer(hour=(0, 12), mode="bike").stderr > 0, release.answer(hour=(6, 18), by="mode").value.shape
        (True, (2,))
        """
        confidence, cut = check_confidence(confidence), check_cut(cut)
        question = asked(self.domain, ranges, named, where, by, cut)
        found = answered(*self._seen(question, estimate), confidence, cut)
        return replace(found, _law=(self, question) if estimate == "plain" else None)

    def marginal(self, *names: str, confidence: float = 0.95) -> Table:
        """The table over these factors or axes, everything else summed over. A table that is public is exact.

        >>> space = sf.Line(0, 24, cells=4, name="hour") * sf.Categories(["bus", "bike"], name="mode")
        >>> policy = sf.policy(space, hide=sf.change("mode"), public=["hour"])
        >>> table = sf.plan(policy, sf.histogram(), epsilon=1).publish(np.full((4, 2), 100)).marginal("hour")
        >>> table.value.tolist(), table.stderr.tolist()
        ([200.0, 200.0, 200.0, 200.0], [0.0, 0.0, 0.0, 0.0])
        """
        confidence = check_confidence(confidence)
        if not names:
            raise InvalidInput("marginal() needs names of axes or factors. The total is release.answer().")
        question = asked(self.domain, None, {}, None, names, "bracket")
        return replace(tabled(*self._seen(question), confidence, "bracket"), _law=(self, question))

    def query(self, matrix: Any, *, confidence: float = 0.95) -> Answer:
        """The answers to any linear queries: a (sparse) matrix, one row a query, one column a cell in C order.

        >>> plan = sf.plan(sf.threshold(sf.Line(0, 4, cells=4), theta=1), sf.histogram(), epsilon=1)
        >>> plan.publish(np.array([30, 0, 50, 10])).query([[1, 1, 1, 1], [1, -1, 0, 0]]).value.shape
        (2,)
        """
        found = queried(self._view, matrix, check_confidence(confidence))
        return replace(found, _law=(self, asked(self.domain, None, {}, None, None, "bracket"), matrix))

    def cells(self, *, confidence: float = 0.95) -> Answer:
        """Every cell as a query of its own, in the domain's shape."""
        found = every_cell(self._view, check_confidence(confidence))
        question = asked(self.domain, None, {}, None, self.domain.names, "bracket")
        return replace(found, _law=(self, question, None, np.arange(self.counts.size)))

    def nonnegative(self, *, integers: bool = False) -> NDArray[np.float64]:
        """The estimated counts with no negative one among them, in the domain's shape; whole numbers if asked.

        From the whole downwards, every block's number is shared out among its halves: to the nearest numbers that sum
        to it and are none of them negative. The public total stays, and so does a public table, exactly; elsewhere the
        estimated total. Empty cells and small ranges come much nearer to the truth, and large ranges stay near the
        plain estimates, which single cells set to zero would not do. All are biased, empty cells upwards and full ones
        downwards, so that no interval is known for sums of these numbers; `answer(…, estimate="nonnegative")` has both.

        >>> plan = sf.plan(sf.threshold(sf.Line(0, 4, cells=4), theta=1), sf.histogram(), epsilon=1)
        >>> counts = plan.publish(np.array([3, 0, 5, 1])).nonnegative()
        >>> float(counts.sum()), bool((counts >= 0).all())
        (9.0, True)
        """
        return self._outward(self._without_negative(integers=integers))

    def adjusted(self, *, non_negative: bool = True, integers: bool = False) -> Adjusted:
        """Counts made non-negative or whole, for those who need them so. Both bias; the result says so and has no
        intervals. `nonnegative()` gives the counts alone.

        >>> plan = sf.plan(sf.threshold(sf.Line(0, 4, cells=4), theta=1), sf.histogram(), epsilon=1)
        >>> bool((plan.publish(np.array([3, 0, 5, 1])).adjusted(integers=True).counts >= 0).all())
        True
        """
        if not non_negative:
            made = rounded(self.estimates, self.exact_total, integers=integers)
            return replace(made, counts=self._outward(made.counts))
        known = self.guarantee.policy.total_is_public
        return without_negative(self.nonnegative(integers=integers), total_known=known, integers=integers)

    # ------------------------------------------------------------------ as points

    @overload
    def quantile(self, q: float) -> float: ...

    @overload
    def quantile(self, q: ArrayLike) -> float | NDArray[np.float64]: ...

    def quantile(self, q: ArrayLike) -> float | NDArray[np.float64]:
        """Where the share q of the records lies below, on a line; one value, or an array of them."""
        return points.quantile(self, q)

    @overload
    def distribution(self, x: float) -> float: ...

    @overload
    def distribution(self, x: ArrayLike) -> float | NDArray[np.float64]: ...

    def distribution(self, x: ArrayLike) -> float | NDArray[np.float64]:
        """The share of the records below x, on a line."""
        return points.distribution(self, x)

    def points(self) -> NDArray[np.float64]:
        """Synthetic points in the domain's units, one row a record, from a release of sorted points."""
        return points.points(self)

    # ------------------------------------------------------------------ levels

    def refine(
        self, epsilon: Number, *, vault: Vault, ledger: Ledger | None = None, label: str | None = None
    ) -> Release:
        """The same release at a larger ε: this one and all its levels together cost the largest ε, not the sum.

        Needs the vault that the release was published with, and no counts. The ledger is charged the difference. Asked
        for a level that was made before, it gives that very release again. See `sfumato.publishing.refine`.

        >>> plan = sf.plan(sf.threshold(sf.Line(0, 4, cells=4), theta=1), sf.histogram(), epsilon=1)
        >>> vault, ledger = sf.Vault("secrets", key="vault.key"), sf.Ledger.create("budget.db", epsilon=3)
        >>> release = plan.publish(np.array([3, 0, 5, 1]), vault=vault, ledger=ledger)
        >>> release.refine(epsilon=2, vault=vault, ledger=ledger).guarantee.epsilon, ledger.spent
        (2, 2)
        """
        from sfumato.publishing import refine  # the door to the vault

        return replace(refine(self, epsilon, vault=vault, ledger=ledger, label=label), origin=self.origin)

    def patch_from(self, previous: Release) -> Patch:
        """What changed since a coarser level of this release, for those who have that one."""
        return patch_between(previous, self)

    def apply(self, patch: Patch) -> Release:
        """The finer level that a patch leads to."""
        return patched(self, patch)

    # ------------------------------------------------------------------ files, and what goes out

    def save(self, path: str | Path) -> Path:
        """Write the release to one file that `sf.load` reads: Parquet with the description in its metadata.

        >>> plan = sf.plan(sf.threshold(sf.Line(0, 4, cells=4), theta=1), sf.histogram(), epsilon=1)
        >>> path = plan.publish(np.array([3, 0, 5, 1])).save("visits.sfumato")
        >>> sf.load(path).total
        9
        """
        from sfumato.release.writing import save

        return save(self, path)

    def __repr__(self) -> str:
        loud = "" if self.private else "NOT PRIVATE (seeded randomness), "
        shape = " × ".join(map(str, self.domain.shape))
        return f"Release({loud}{shape} cells, {self.mechanism.name}, epsilon={self.guarantee.epsilon})"
