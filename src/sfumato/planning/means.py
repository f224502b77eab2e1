"""Means of a value: sums around the middle of its bounds and numbers of records, one budget divided between the two.

The error of a mean of N records is that of the sum less that of their number times μ - c, over N, where c is the middle
that was taken off. Noise variances fall as the squares of the two shares, so that shares in proportion to the cube
roots of the two variances at one ε are best; for μ the plan takes any place between the bounds as equally likely.
Taking off the middle halves the largest value, and with it the noise.
"""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from sfumato.counting import Counts
from sfumato.errors import InvalidInput
from sfumato.exact import Number, plannable, text
from sfumato.ledger import Ledger
from sfumato.noise import Source
from sfumato.planning.plan import Plan
from sfumato.planning.planner import plan
from sfumato.planning.worth import short
from sfumato.policies import Policy, with_values
from sfumato.promise import Guarantee
from sfumato.reading import visible
from sfumato.values import Amounts, Values
from sfumato.workload import Workload

if TYPE_CHECKING:
    from sfumato.release import Means

_PARTS = 1 << 10  # of the budget, between which the shares are chosen


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class MeansPlan:
    """What will be done for means, what it promises and how accurate it will be. It has seen no data and costs
    nothing.

    >>> fares = sf.amounts("fare", clip=(0, 100), step=1)
    >>> plan = sf.plan_means(sf.unbounded(sf.Line(0, 4, cells=4)), sf.histogram(), epsilon=1, values=fares)
    >>> plan.sums.epsilon + plan.numbers.epsilon == plan.epsilon
    True
    """

    policy: Policy
    epsilon: Fraction
    sums: Plan
    """Of the values, each less the middle of their bounds."""
    numbers: Plan

    @property
    def guarantee(self) -> Guarantee:
        """The promise of both together, between records as the sums see them."""
        return Guarantee(
            policy=self.policy,
            epsilon=self.epsilon,
            unit=self.sums.guarantee.unit,
            max_per_entity=self.sums.max_per_entity,
        )

    def typical_error(self, records: int) -> float:
        """The half-width within which about 95 % of the means of so many records will lie, for the questions asked.

        >>> fares = sf.amounts("fare", clip=(0, 100), step=1)
        >>> made = sf.plan_means(sf.unbounded(sf.Line(0, 4, cells=4)), sf.histogram(), epsilon=1, values=fares)
        >>> made.typical_error(10_000) < made.typical_error(1_000) < 1
        True
        """
        return 1.96 * math.sqrt(self._variance) / records

    @property
    def _variance(self) -> float:
        return self.sums.expected_error + _away(self.sums) ** 2 * self.numbers.expected_error

    def publish(
        self,
        counts: Counts,
        *,
        filtered: Collection[str] = (),
        ledger: Ledger | None = None,
        label: str | None = None,
        source: Source | None = None,
    ) -> Means:
        """Publish sums and numbers of private data by this plan: check, record both at once in the ledger, draw, hand
        out.

        `counts` are `sf.count(data, domain, values=…)` with the value that the plan is for: the numbers are of the same
        records. The rest is as for `Plan.publish`.
        """
        from sfumato.publishing import publish_means

        return publish_means(self, counts, filtered=filtered, ledger=ledger, label=label, source=source)

    def describe(self) -> str:
        """The plan in plain words, for a terminal."""
        share = float(self.sums.epsilon / self.epsilon)
        return "\n".join(
            [
                f"Plan for means of {self._value.column!r} at ε = {text(self.epsilon)}",
                "",
                f"Promise    {self.guarantee}",
                f"Sums       {share:.0%} of ε; {self.sums.mechanism.describe()}",
                f"Numbers    {1 - share:.0%} of ε; {self.numbers.mechanism.describe()}",
                f"Accuracy   {self.sums.workload.describe()}: a typical mean of 1,000 records is right to "
                f"±{short(self.typical_error(1_000))} (95 %), of 100,000 to ±{short(self.typical_error(100_000))}",
            ]
        )

    @property
    def _value(self) -> Amounts:
        values = self.policy.values
        if not isinstance(values, Amounts):
            raise InvalidInput("these are no sums.")  # as was checked
        return values

    def __str__(self) -> str:
        return visible(self.describe())

    def __repr__(self) -> str:
        return f"MeansPlan({self._value.column!r}, epsilon={text(self.epsilon)})"


def plan_means(
    policy: Policy,
    workload: Workload,
    epsilon: Number,
    *,
    values: Values | None = None,
    max_per_entity: int | None = None,
) -> MeansPlan:
    """A plan for means of a value: of its sums and of the numbers of records, with ε divided so that means err least.

    `policy`, `workload` and `max_per_entity` are as for `sf.plan`, `values` an `sf.amounts(…)`, or those that the
    policy was made for. What the plan promises holds for both releases together.

    >>> place, fares = sf.Line(0, 4, cells=4, name="place"), sf.amounts("fare", clip=(0, 100), step=1)
    >>> policy = sf.policy(place, hide=sf.move(1) | sf.change("fare"), values=fares)
    >>> sf.plan_means(policy, sf.ranges(), epsilon=1)
    MeansPlan('fare', epsilon=1)
    """
    budget = plannable(epsilon, "epsilon")
    if not isinstance(policy, Policy):
        raise InvalidInput(
            f"policy={type(policy).__name__} is not a policy. Build one, such as sf.within(grid, delta=0.01)."
        )
    seen = policy if values is None else with_values(policy, values)
    value = seen.values
    if not isinstance(value, Amounts):
        raise InvalidInput(
            f"means are of a value, and the plan is for {'records' if value is None else value.describe()}. Nothing "
            "was drawn or recorded. Give values=sf.amounts('fare', clip=(0, 100), step=0.01)."
        )
    policies = seen.around(value.centred()), seen.of_numbers()
    sums, numbers = (plan(one, workload, budget / 2, max_per_entity=max_per_entity) for one in policies)
    for name, made in (("sums", sums), ("numbers", numbers)):
        if made.mechanism.biased or math.isnan(made.expected_error):
            raise InvalidInput(f"no mechanism of a known error fits the {name} of this policy and workload.")
    a = sums.expected_error ** (1 / 3)
    b = (_away(sums) ** 2 * numbers.expected_error) ** (1 / 3)
    share = Fraction(min(max(round(_PARTS * a / (a + b)), 1), _PARTS - 1), _PARTS) if a + b else Fraction(1, 2)
    return MeansPlan(
        policy=seen,
        epsilon=budget,
        sums=plan(policies[0], workload, budget * share, max_per_entity=max_per_entity),
        numbers=plan(policies[1], workload, budget * (1 - share), max_per_entity=max_per_entity),
    )


def _away(sums: Plan) -> float:
    """How far a mean lies from the middle, as the root of a mean square over all places between the bounds."""
    values: Any = sums.policy.values
    return float(values.clip[1] - values.clip[0]) / math.sqrt(12)
