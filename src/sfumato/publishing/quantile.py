"""From private values to one published order statistic, or one for every part of the data: check, record, draw, hand
out.
"""

from __future__ import annotations

import math
import secrets
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.domain import Domain
from sfumato.errors import InvalidInput
from sfumato.exact import Number, fraction, positive_fraction, text
from sfumato.noise import DiscreteLaplace, Source, SystemSource
from sfumato.noise.source import require
from sfumato.promise import Guarantee
from sfumato.promise.guarantee import SAMPLER_SLACK
from sfumato.publishing.account import Account, require_account, warn_without_ledger
from sfumato.publishing.attribute import Attribute, attribute, records
from sfumato.publishing.lattice import place
from sfumato.publishing.private import elsewhere, left_out
from sfumato.quantiles import RANKS, OrderMechanism, moving, order_mechanism, rank_of, require_method
from sfumato.relations import Relation
from sfumato.release import Answer

CONFIDENCE = 0.95


@dataclass(frozen=True, eq=False, repr=False)
class QuantileAnswer(Answer):
    """A published quantile: its value, which quantile it is, by which method, and what is promised.

    Standard error and interval are known for "laplace", whose noise does not look at the data; the interval covers the
    sample's own order statistic (clamped to the bounds), not that of a population behind it. For the other methods the
    error depends on the data, stating it would be a second release, and all three are NaN.

    With groups, all four are arrays in the shape of `by`, in the declared order, and every interval holds by itself.
    """

    q: Fraction
    method: str
    guarantee: Guarantee
    by: Domain | None = field(default=None, kw_only=True)

    def __repr__(self) -> str:
        if self.by is not None:
            values = f"{np.size(self.value)} values by {' × '.join(map(repr, self.by.names))}"
        else:
            values = f"{self.value:.6g}"
        what = f"{values}, q={text(self.q)} by {self.method!r}"
        if np.isnan(self.stderr).all():
            error = "error unknown: it depends on the data"
        elif self.by is not None:
            error = f"{self.confidence:.0%} intervals, each for itself"
        else:
            error = f"{self.confidence:.0%} within [{self.low:.6g}, {self.high:.6g}]"
        return f"QuantileAnswer({what}, {error}{'' if self.guarantee.private else ', NOT PRIVATE'})"


def median(
    values: Any,
    *,
    x: str | None = None,
    by: Any = None,
    name: str | None = None,
    columns: Mapping[str, str] | None = None,
    bounds: Sequence[float],
    epsilon: Number,
    delta: Number | None = None,
    hide: Relation | None = None,
    public: Iterable[str] = (),
    method: str | None = None,
    slack: Number | None = None,
    cells: int | None = None,
    filtered: Collection[str] = (),
    ledger: Account | None = None,
    label: str | None = None,
    source: Source | None = None,
) -> QuantileAnswer:
    """The median of private values: `quantile` with q = ½. Of an even number of values it is the lower middle one.

    >>> ages = np.random.default_rng(1).integers(0, 90, 5_000)
    >>> 0 <= sf.median(ages, bounds=(0, 100), epsilon=1).value <= 100
    True
    """
    return quantile(
        values,
        Fraction(1, 2),
        x=x,
        by=by,
        name=name,
        columns=columns,
        bounds=bounds,
        epsilon=epsilon,
        delta=delta,
        hide=hide,
        public=public,
        method=method,
        slack=slack,
        cells=cells,
        filtered=filtered,
        ledger=ledger,
        label=label,
        source=source,
    )


def quantile(
    values: Any,
    q: Number,
    *,
    x: str | None = None,
    by: Any = None,
    name: str | None = None,
    columns: Mapping[str, str] | None = None,
    bounds: Sequence[float],
    epsilon: Number,
    delta: Number | None = None,
    hide: Relation | None = None,
    public: Iterable[str] = (),
    method: str | None = None,
    slack: Number | None = None,
    cells: int | None = None,
    filtered: Collection[str] = (),
    ledger: Account | None = None,
    label: str | None = None,
    source: Source | None = None,
) -> QuantileAnswer:
    """The q-quantile of private values, 0 < q < 1: the smallest value with at least a share q at or below it.

    **Promise.** ε-private when one value moves by less than `delta`, or (without `delta`) anywhere: replace-one; or
    under the relation `hide` between records. The number of values is public unless the relation hides that a record
    appears. Values outside the bounds count as the nearest bound; the bounds must be public too.

    **Records.** `values` is an array, whose attribute is `name`; or records on any engine that `sf.count` takes, and
    `x` the column, called `name` if that is given.

    **Groups.** `by` is a domain whose cells are the groups, such as `sf.Categories(["NY", "NJ"], name="state")`: each
    gets an answer, also an empty one. Its axes are columns (`columns={"state": "st"}` names others); of an array,
    `by=(domain, groups)` comes with the values' groups. The list is declared, and a record of no listed group counts
    nowhere. Where no change joins two groups ε is paid once, for all of them together: name then what they show,
    `hide=sf.change("fare"), public=["state"]`. Without `hide` and `delta` the group may change as well, which is paid
    for in two groups at a time; no group's number of records is public then.

    **How.** Values are put on a lattice of `cells` cells, which depends on bounds and `delta` alone, so that all
    quantiles of one dataset share one policy and one account; the answer is the middle of a cell. `method` is
    "inverse" (best for many values), "laplace" (best for few, and with an error bar), "smooth-pure" or "smooth" (which
    is only (ε, slack)-private and fits no ledger); without it one of the first two is chosen from public figures, for
    each group by itself. Where the number of values is hidden it is "ranks". No values at all give an answer too.

    With a ledger the release is charged first; `label` is kept there in plain text, and `filtered` names the attributes
    by which values were left out beforehand (`sf.Ledger.charge`). `source` is for tests and papers: a seeded one makes
    an answer that says it is not private, and no ledger takes it.

    >>> fares = np.random.default_rng(1).gamma(2, 8, 5_000)
    >>> 0 <= sf.quantile(fares, 0.9, bounds=(0, 200), epsilon=1).value <= 200
    True
    >>> states = sf.Categories(["NY", "NJ"], name="state")
    >>> where = np.random.default_rng(2).choice(["NY", "NJ", "CT"], 5_000)
    >>> sf.quantile(fares, 0.9, by=(states, where), name="fare", bounds=(0, 200), epsilon=1).value.shape
    (2,)
    """
    share = fraction(q, "q")
    if not 0 < share < 1:
        raise InvalidInput(f"q={q!r} must lie between 0 and 1, both excluded. Nothing was drawn or recorded.")
    budget = positive_fraction(epsilon, "epsilon")
    groups, given = _groups(by, x)
    seen = attribute(bounds, name=name or x, by=groups, delta=delta, hide=hide, public=public, cells=cells)
    located, parts = records(values, seen, column=x, groups=given, columns=columns)
    pieces = _pieces(located, parts, seen.parts)
    made = [_mechanism(seen, method, share, len(piece), budget, slack) for piece in pieces]
    noises = [mechanism.noise for mechanism in made]  # refuses an ε too small for it before anything is recorded
    names = " and ".join(sorted({mechanism.name for mechanism in made}))
    randomness = SystemSource() if source is None else require(source)
    worst = max(mechanism.slack for mechanism in made)
    guarantee = Guarantee(policy=seen.policy, epsilon=budget, slack=SAMPLER_SLACK + worst, private=randomness.private)
    if ledger is None and randomness.private:
        warn_without_ledger()
    if ledger is not None:
        _require_ledger(ledger, worst)
        guarantee = ledger.promised(guarantee)
        ledger.charge(
            guarantee,
            label=label or f"quantile {text(share)} ({names}) on {seen.line.size} cells{_of_groups(groups)}",
            release_id=secrets.token_hex(16),
            **left_out(filtered, [] if groups is None else elsewhere(groups)),
        )
    drawn = [_draw(*pair, share, randomness) for pair in zip(made, pieces, strict=True)]
    return _answer(seen, drawn, noises, share, names, guarantee)


def _groups(by: Any, x: str | None) -> tuple[Domain | None, Any]:
    """(the groups, what comes with them for an array of values)."""
    if by is None:
        return None, None
    pair = by if isinstance(by, tuple) and len(by) == 2 else (by, None)
    if not isinstance(pair[0], Domain):
        raise InvalidInput(
            f"by={type(by).__name__} is not a list of groups. Nothing was drawn or recorded. Declare them, such as "
            "by=sf.Categories(['NY', 'NJ'], name='state'), or for an array of values by=(sf.Categories(…), states)."
        )
    if (pair[1] is None) == (x is None):
        raise InvalidInput(
            "by needs the group of every record. Nothing was drawn or recorded. Give records and x='column', "
            "with groups in the column of their name; or an array of values, and by=(sf.Categories(…), groups)."
        )
    return pair


def _of_groups(by: Domain | None) -> str:
    return "" if by is None else f" for {by.size} groups by {', '.join(by.names)}"


def _pieces(located: NDArray[np.int64], parts: NDArray[np.int64], number: int) -> list[NDArray[np.int64]]:
    """The cells of every part's records."""
    if number == 1:
        return [located]
    order = np.argsort(parts, kind="stable")
    return np.split(located[order], np.searchsorted(parts[order], np.arange(1, number)))


def _mechanism(
    seen: Attribute, method: str | None, share: Fraction, count: int, epsilon: Fraction, slack: Number | None
) -> OrderMechanism:
    """What publishes one part, at what is left of ε when a change of a record is paid for wherever it is felt."""
    require_method(method)
    if seen.hides_number and method not in (None, RANKS):
        raise InvalidInput(
            f"method={method!r} publishes how many values there are, which is hidden here: {seen.policy.describe()}. "
            "Nothing was drawn or recorded. Use method='ranks', or leave it out."
        )
    name = RANKS if seen.hides_number and method is None else method
    if name == RANKS:
        price = seen.price(inside=moving(share), absent=Fraction(1))
    else:
        price = seen.price(inside=Fraction(1), absent=math.inf)
    return order_mechanism(
        name,
        count=count,
        epsilon=epsilon / price,
        theta=max(seen.step, 1),
        cells=seen.line.size,
        slack=slack,
        share=share,
    )


def _draw(mechanism: OrderMechanism, located: NDArray[np.int64], share: Fraction, source: Source) -> int:
    """The published cell. Where their number is public, no values are as one in the middle."""
    if len(located) == 0 and not mechanism.hides_number:
        located = np.array([mechanism.cells // 2])
    return mechanism.run(located, rank_of(share, len(located)), source)


def _answer(
    seen: Attribute,
    drawn: list[int],
    noises: list[DiscreteLaplace | None],
    share: Fraction,
    method: str,
    guarantee: Guarantee,
) -> QuantileAnswer:
    errors = [_error(seen.line, cell, noise) for cell, noise in zip(drawn, noises, strict=True)]
    rows = [(place(seen.line, Fraction(2 * cell + 1, 2)), *error) for cell, error in zip(drawn, errors, strict=True)]
    value, stderr, low, high = rows[0] if seen.by is None else np.array(rows).T.reshape(4, *seen.by.shape)
    return QuantileAnswer(
        value=value,
        stderr=stderr,
        low=low,
        high=high,
        confidence=CONFIDENCE,
        q=share,
        method=method,
        guarantee=guarantee,
        by=seen.by,
    )


def _require_ledger(ledger: Account, slack: Fraction) -> None:
    require_account(ledger)
    if slack:
        raise InvalidInput(
            f"method='smooth' promises ε only up to slack={text(slack)}, and a ledger adds up ε alone: the slack would "
            "be forgotten. Nothing was drawn or recorded. Use 'inverse', 'laplace' or 'smooth-pure'."
        )


def _error(line: Domain, cell: int, noise: DiscreteLaplace | None) -> tuple[float, float, float]:
    """Standard error and interval, both from the noise alone. Whole cells are covered, and none outside the bounds."""
    if noise is None:
        return math.nan, math.nan, math.nan
    margin = noise.quantile(CONFIDENCE)
    low, high = max(cell - margin, 0), min(cell + margin + 1, line.size)
    return noise.std * float(line.equal[0].width), place(line, Fraction(low)), place(line, Fraction(high))
