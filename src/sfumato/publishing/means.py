"""From private sums and numbers to means: both are charged at once, and drawn after that."""

from __future__ import annotations

import secrets
from collections.abc import Collection
from dataclasses import replace
from typing import Any

import numpy as np

from sfumato.counting import Counts
from sfumato.errors import InvalidInput, PolicyMismatch
from sfumato.interruptions import undisturbed
from sfumato.noise import Source, SystemSource
from sfumato.noise.source import require
from sfumato.planning.means import MeansPlan
from sfumato.planning.plan import Plan
from sfumato.publishing.account import Account, require_account, warn_without_ledger
from sfumato.publishing.private import are_private, dropped_of, left_out, private_counts
from sfumato.publishing.publish import observed, released, require_kept
from sfumato.release import Means, Release
from sfumato.release.outbox import rescued_parts
from sfumato.values import Amounts


def publish_means(
    plan: MeansPlan,
    counts: Any,
    *,
    filtered: Collection[str] = (),
    ledger: Account | None = None,
    label: str | None = None,
    source: Source | None = None,
) -> Means:
    """Publish sums and numbers by a plan; the arguments are those of `MeansPlan.publish`."""
    plans = (plan.sums, plan.numbers)
    given = [private_counts(p.policy, p.max_per_entity, c, None, p.mechanism) for p, c in zip(
        plans, _parted(plan, counts), strict=True
    )]  # fmt: skip
    randomness = SystemSource() if source is None else require(source)
    private = randomness.private and are_private(counts)
    bound = given[0][1]
    together = replace(plan.guarantee.counted(bound), private=private)
    guarantees = [replace(p.guarantee.counted(bound), private=private) for p in plans]
    if sum(guarantee.epsilon for guarantee in guarantees) > together.epsilon:
        raise InvalidInput(
            "the plans of the sums and of the numbers spend more together than the plan promises. Nothing was drawn or "
            "recorded. Make it with sf.plan_means(…)."
        )
    for p, guarantee in zip(plans, guarantees, strict=True):
        require_kept(p.mechanism, guarantee)
    totals = [_total(p, values) for p, (values, _) in zip(plans, given, strict=True)]
    if ledger is None and private:
        warn_without_ledger()
    with undisturbed() as interrupted:  # what was charged is either in hand or kept
        if ledger is not None:
            require_account(ledger)
            together = ledger.promised(together)
            shape = " × ".join(map(str, plan.policy.domain.shape))
            names = f"{plan.sums.mechanism.name} and {plan.numbers.mechanism.name}"
            ledger.charge(
                together,
                label=label or f"means by {names} on {shape} cells",
                release_id=secrets.token_hex(16),
                **left_out(filtered, dropped_of(counts)),
            )
        releases: list[Release] = []
        for p, guarantee, (values, _), total in zip(plans, guarantees, given, totals, strict=True):
            mechanism = p.mechanism if total is None else p.mechanism.for_total(total)
            releases.append(released(p, mechanism, guarantee, observed(mechanism, values, total, randomness)))
        if ledger is not None and interrupted():  # whoever asked for them is not there to take them
            raise rescued_parts(releases, "It was interrupted", KeyboardInterrupt(), ledger=ledger.path)
    return Means(releases[0], releases[1], together)


def _total(plan: Plan, values: Any) -> int | None:
    return int(plan.mechanism.records(values)) if plan.policy.total_is_public else None


def _parted(plan: MeansPlan, counts: Any) -> tuple[Counts, Counts]:
    """The sums around the middle, and the numbers, of the same records."""
    around: Any = plan.sums.policy.values
    if not isinstance(counts, Counts) or counts.numbers is None or not isinstance(counts.counted, Amounts):
        raise PolicyMismatch(
            "means need sums and the numbers of the same records. Nothing was drawn or recorded. Count with "
            f"sf.count(…, values={plan.policy.values.to_text() if plan.policy.values else ''})."
        )
    if replace(counts.counted, less=around.less) != around:
        raise PolicyMismatch(
            f"counts are {counts.counted.describe()}, and the plan is for means of {around.describe()}. Nothing was "
            "drawn or recorded. Count with the value that the plan was made for."
        )
    moved = (counts.counted.less - around.less) / around.step
    sums = counts.values + int(moved) * np.asarray(counts.numbers)
    return (
        replace(counts, values=sums, counted=around),
        replace(counts, values=counts.numbers, counted=None, numbers=None),
    )
