"""A plan: a mechanism chosen for a policy and a workload, its guarantee and its error, all known before any data is
seen.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any

from numpy.typing import ArrayLike

from sfumato.counting import Counts
from sfumato.domain import Domain
from sfumato.exact import text
from sfumato.ledger import Ledger
from sfumato.mechanism import Mechanism, singular_value_bound
from sfumato.noise import Source
from sfumato.planning.by_scale import ScaleError, by_scale
from sfumato.planning.by_scale import in_words as scales_in_words
from sfumato.planning.valued import worth_of
from sfumato.planning.worth import in_words, short
from sfumato.policies import Policy
from sfumato.promise import Guarantee
from sfumato.publication import Publication
from sfumato.reading import visible
from sfumato.vault import Vault
from sfumato.workload import Workload

if TYPE_CHECKING:
    from sfumato.publishing import PartReleases
    from sfumato.release import Release


@dataclass(frozen=True)
class Alternative:
    """A candidate that was weighed: its expected error, or why it could not be used."""

    name: str
    options: str
    error: float | None
    reason: str = ""


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Plan:
    """What will be done, what it promises and how accurate it will be. A plan has seen no data and costs nothing.

    >>> sf.plan(sf.bounded(sf.Line(0, 1, cells=4)), sf.histogram(), epsilon=1, mechanism="identity")
    Plan(identity, epsilon=1, expected_error=5.88)
    """

    policy: Policy
    workload: Workload
    epsilon: Fraction
    mechanism: Mechanism
    expected_error: float
    alternatives: tuple[Alternative, ...]
    max_per_entity: int | None = None
    records: int | None = None
    """The public guess of how many records there will be, where one was given."""
    basis: str = ""
    steady: Alternative | None = None
    """Where the error was guessed for a population that nobody lives in: the best mechanism whose error is known."""
    even_error: float | None = None
    """The expected squared error of spreading the records evenly over the cells, which needs no look at them: on the
    counts given as `like`, or on a made-up population of `records`. None where neither was given."""
    even_rehearsed: bool = False
    publication: Publication | None = None
    """What it was made for, where that is one: its releases carry the public part."""

    @cached_property
    def lower_bound(self) -> float | None:
        """The least expected error of any matrix mechanism with integer noise (the singular value bound), where it can
        be computed.
        """
        if self.mechanism.biased:
            return None  # the bound is for unbiased answers, by mechanisms that do not look at the data
        found = singular_value_bound(self.policy.on_cells, self.workload, self.share_of(self.epsilon))
        return None if found is None else found * worth_of(self.policy) ** 2

    def share_of(self, epsilon: Fraction) -> Fraction:
        """What a mechanism may spend on one step of one unit, for a promise of ε: of a person each of so many records
        may change, and each by as many steps as a change of it takes.
        """
        return epsilon / ((self.max_per_entity or 1) * self.policy.units)

    def in_units(self) -> Plan:
        """With errors in the unit of what is summed, where a plan was made in steps."""
        square = worth_of(self.policy) ** 2
        if square == 1:
            return self
        others = tuple(
            a if a.error is None else Alternative(a.name, a.options, a.error * square, a.reason)
            for a in self.alternatives
        )
        return replace(self, expected_error=self.expected_error * square, alternatives=others, even_error=None)

    @property
    def tells_nothing(self) -> bool | None:
        """Whether an even spread of the records over the cells, which needs no look at them, is expected to be as good;
        None where neither `like` nor `records` was given.

        >>> line = sf.Line(0, 1, cells=64)
        >>> [sf.plan(sf.bounded(line), sf.ranges(), e, records=1_000).tells_nothing for e in (0.001, 1)]
        [True, False]
        """
        if self.even_error is None or math.isnan(self.expected_error):
            return None
        return self.expected_error >= self.even_error

    @property
    def worth(self) -> str:
        """What it tells beyond an even spread of the records, and beside what is known where its error was guessed, in
        words; empty where nothing is known.
        """
        said = []
        if self.even_error is not None and not math.isnan(self.expected_error):
            said.append(in_words(self.expected_error, self.even_error, self.even_rehearsed))
        if self.steady is not None and self.steady.error is not None:
            said.append(
                "records that are heaped up in few places make a guessed error many times larger: "
                f"{self.steady.name} has {short(self.steady.error)} whatever the data"
            )
        return "; ".join(said)

    @cached_property
    def by_scale(self) -> tuple[ScaleError, ...]:
        """What a cell, blocks of side 4, 16, 64, … and the whole will have, for every factor whose cells lie in an
        order; other factors are summed over. Empty where the error depends on the data.

        >>> line = sf.Line(0, 1, cells=16)
        >>> plan = sf.plan(sf.unbounded(line), sf.histogram(), epsilon=1, mechanism="identity")
        >>> [(scale.size, round(scale.error, 1)) for scale in plan.by_scale]
        [('a cell', 1.8), ('4 cells', 7.4), ('the whole', 29.5)]
        """
        square = worth_of(self.policy) ** 2
        return tuple(replace(scale, error=scale.error * square) for scale in by_scale(self.mechanism))

    @property
    def guarantee(self) -> Guarantee:
        """The promise that a release by this plan will carry."""
        return Guarantee(
            policy=self.policy,
            epsilon=self.epsilon,
            unit="record" if self.max_per_entity is None else "person",
            max_per_entity=self.max_per_entity,
        )

    @property
    def tables(self) -> Workload | None:
        """What `sf.count(…, tables=…)` is given for it: its workload where it measures tables, None where cells.

        >>> space = sf.Line(0, 24, cells=24, name="t") * sf.Categories(["bus", "bike"], name="mode")
        >>> plan = sf.plan(sf.bounded(space), sf.marginals(1), epsilon=1, mechanism="marginals")
        >>> sf.count({"t": [3, 7], "mode": ["bus", "bus"]}, space, tables=plan.tables).values[-2:].tolist()  # private
        [2, 0]
        """
        return None if self.mechanism.by_tables is None else self.workload

    @property
    def typical_error(self) -> float:
        """The half-width within which about 95 % of the workload's answers will lie: 1.96 root mean squared errors."""
        return 1.96 * math.sqrt(self.expected_error)

    def publish(
        self,
        counts: Counts | ArrayLike | None = None,
        *,
        points: ArrayLike | None = None,
        filtered: Collection[str] = (),
        ledger: Ledger | None = None,
        vault: Vault | None = None,
        label: str | None = None,
        source: Source | None = None,
    ) -> Release:
        """Publish private data by this plan: check, record in the ledger, draw, hand out.

        Give counts (from `sf.count`, or an integer array in the domain's shape) or raw `points`. The `ledger` is
        charged before any noise is drawn, and keeps `label` in plain text; `filtered` names the attributes by which
        records were left out before they were counted, since a change of those may take a record out. With a `vault`
        the noise is kept there, encrypted, and the release can be refined later. `source` is for tests and papers:
        seeded randomness makes a release that says it is not private.

        >>> plan = sf.plan(sf.threshold(sf.Line(0, 4, cells=4), theta=1), sf.histogram(), epsilon=1)
        >>> ledger = sf.Ledger.create("budget.db", epsilon=3)
        >>> release = plan.publish(np.array([3, 0, 5, 1]), ledger=ledger)
        >>> release.total, ledger.spent
        (9, 1)
        """
        from sfumato.publishing import publish  # the one door through which private data enters

        return publish(
            self, counts, points=points, filtered=filtered, ledger=ledger, vault=vault, label=label, source=source
        )

    def publish_parts(
        self,
        counts: Counts | ArrayLike,
        *,
        by: Domain,
        public: Iterable[str] = (),
        filtered: Collection[str] = (),
        ledger: Ledger | None = None,
        label: str | None = None,
        source: Source | None = None,
    ) -> PartReleases:
        """Publish every part of private data by this plan, a release for each, and charge all of them once.

        The parts are the cells of `by`, declared, never read off the data, such as `sf.Categories(["NY", "NJ"],
        name="state")`; one in which nobody is gets a release, too. `counts` are of all parts at once, `sf.count(data,
        by * domain, …)` for a plan on `domain`, or an integer array in that shape: so the records of a person are
        chosen before they are split. Every part is published at the plan's ε. Together they cost the largest, not the
        sum, where nothing that the account hides leads from one part to another; what it costs to vanish from one and
        to appear in another, where something does, or they are refused where the policy hides no presence: then the
        number of records of every part is public, and has to be named, `public=["state"]`. The rest is as for
        `publish`.

        >>> state, place = sf.Categories(["NY", "NJ"], name="state"), sf.Line(0, 4, cells=4, name="place")
        >>> plan = sf.plan(sf.within(place, 1), sf.histogram(), epsilon=1)
        >>> ledger = sf.Ledger.create("budget.db", epsilon=3, hide=sf.move(1), fixed=["state"])
        >>> releases = plan.publish_parts(np.array([[3, 0, 5, 1], [0, 0, 2, 0]]), by=state, public=["state"],
        ...                               ledger=ledger)
        >>> releases["NJ"].total, ledger.spent
        (2, 1)
        """
        from sfumato.publishing import publish_parts

        return publish_parts(
            self, counts, by=by, public=public, filtered=filtered, ledger=ledger, label=label, source=source
        )

    def to_toml(self) -> str:
        """The file of a publication by this plan, without data and account: `sf.load_publication` reads it, and the
        command line takes it. A mechanism that was forced is named in it, without its options.

        >>> plan = sf.plan(sf.bounded(sf.Line(0, 24, cells=24, name="hour")), sf.histogram(), epsilon=1)
        >>> print(plan.to_toml().splitlines()[0])
        hide = "anything()"
        """
        names = {other.name for other in self.alternatives}
        forced = self.mechanism.name if names == {self.mechanism.name} else None
        return Publication(
            policy=self.policy,
            ask=self.workload,
            epsilon=self.epsilon,
            max_per_entity=None if self.policy.covers_persons else self.max_per_entity,
            mechanism=forced,
            expected_records=self.records,
        ).to_toml()

    def describe(self) -> str:
        """The plan in plain words, for a terminal.

        >>> print(sf.plan(sf.bounded(sf.Line(0, 1, cells=4)), sf.histogram(), epsilon=1).describe())
        Plan for 4 cells at ε = 1
        ...
        """
        chosen = [f"Mechanism  {self.mechanism.describe()}"]
        chosen.append(f"Accuracy   {self.workload.describe()}: {self._accuracy()}")
        if self.worth:
            chosen.append(f"Worth      {self.worth}")
        if self.by_scale:
            chosen.append(f"By scale   {self._scales()}")
        if self.resolution:
            chosen.append(f"Resolution {self.resolution}")
        if self.lower_bound:
            times = self.expected_error / self.lower_bound
            chosen.append(
                f"Limit      {times:.3g} times the singular value bound, for matrix mechanisms with integer noise"
            )
        cells = "cell" if self.policy.domain.size == 1 else "cells"
        rows = [["", "mechanism", "expected squared error", "against the choice"]]
        for other in self.alternatives:
            mark = "→" if other.name == self.mechanism.name else ""
            name = f"{other.name}, {other.options}" if other.options else other.name
            if other.error is None:
                rows.append([mark, name, "—", other.reason])
            else:
                versus = "the choice" if mark else _ratio(other.error, self.expected_error)
                rows.append([mark, name, short(other.error), versus])
        return "\n".join(
            [
                f"Plan for {' × '.join(map(str, self.policy.domain.shape))} {cells} at ε = {text(self.epsilon)}",
                "",
                f"Promise    {self.guarantee}",
                *chosen,
                "",
                *_table(rows),
            ]
        )

    @property
    def resolution(self) -> str:
        """At which resolution its answers speak, in words; empty where every query is one of whole cells."""
        if not self.policy.domain.is_ordered:
            return ""
        grain = self.mechanism.grain or (1,) * self.policy.domain.ndim
        size = " × ".join(axis.size(cells) for axis, cells in zip(self.policy.domain.axes, grain, strict=True))
        if self.mechanism.grain is None:
            return f"estimates are of cells of {size}; intervals, if any, are as wide as the parts found in the data"
        what = "cells" if max(grain) == 1 else "bins"
        return f"answers speak of whole {what} of {size}; a range that cuts {what} gets a wider interval"

    def _scales(self) -> str:
        return scales_in_words(self.by_scale, self.policy.domain)

    def _accuracy(self) -> str:
        if math.isnan(self.expected_error):
            return "the error depends on the data and is not known; rehearse it with like=public counts"
        return (
            f"expected squared error {short(self.expected_error)}, so a typical answer is right to "
            f"±{short(self.typical_error)} (95 %)" + (f"; {self.basis}" if self.basis else "")
        )

    def __str__(self) -> str:
        return visible(self.describe())

    def __repr__(self) -> str:
        return f"Plan({self.mechanism.name}, epsilon={text(self.epsilon)}, expected_error={short(self.expected_error)})"

    def to_dict(self) -> dict[str, Any]:
        """The plan as plain data, for programs."""
        return {
            "mechanism": self.mechanism.spec(),
            "epsilon": str(self.epsilon),
            "guarantee": self.guarantee.to_dict(),
            "promise": str(self.guarantee),
            "workload": self.workload.spec(),
            "expected_error": None if math.isnan(self.expected_error) else self.expected_error,
            "typical_error": None if math.isnan(self.expected_error) else self.typical_error,
            "basis": self.basis or "exact",
            "even_error": self.even_error,
            "tells_nothing": self.tells_nothing,
            "by_scale": [
                {
                    "factor": scale.factor,
                    "blocks": list(scale.blocks),
                    "expected_error": scale.error,
                    "typical_error": scale.typical_error,
                }
                for scale in self.by_scale
            ],
            "resolution": [axis.finest for axis in self.policy.domain.intervals],
            "lower_bound": self.lower_bound,
            "alternatives": [
                {"name": a.name, "options": a.options, "expected_error": a.error, "reason": a.reason}
                for a in self.alternatives
            ],
        }

    def _repr_html_(self) -> str:
        from html import escape

        rows = "".join(
            f"<tr><td>{escape(a.name)} {escape(a.options)}</td>"
            f"<td style='text-align:right'>{'—' if a.error is None else short(a.error)}</td>"
            f"<td>{escape(a.reason) if a.error is None else _ratio(a.error, self.expected_error)}</td></tr>"
            for a in self.alternatives
        )
        return (
            f"<div><b>Plan</b>: {escape(self.mechanism.describe())}<br>"
            f"<b>Promise</b>: {escape(str(self.guarantee))}<br>"
            f"<b>Accuracy</b>: {escape(self.workload.describe())}: {escape(self._accuracy())}"
            + (f"<br><b>Worth</b>: {escape(self.worth)}" if self.worth else "")
            + (
                f"<br><b>By scale</b>: {escape(scales_in_words(self.by_scale, self.policy.domain))}"
                if self.by_scale
                else ""
            )
            + (f"<br><b>Resolution</b>: {escape(self.resolution)}" if self.resolution else "")
            + "<table><tr><th>mechanism</th><th>expected squared error</th><th>against the choice</th></tr>"
            f"{rows}</table></div>"
        )


def _ratio(error: float, chosen: float) -> str:
    if math.isclose(error, chosen, rel_tol=1e-11):
        return "the same"
    return f"{error / chosen:,.3g} times the error" if chosen > 0 else "more error"


def _table(rows: list[list[str]]) -> list[str]:
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    numeric = 2
    return [
        "  ".join(
            cell.rjust(w) if i == numeric else cell.ljust(w)
            for i, (cell, w) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]
