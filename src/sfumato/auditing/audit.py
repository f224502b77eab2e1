"""The verb: audit whatever makes a promise."""

from __future__ import annotations

import math
import secrets
import time
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.auditing.changes import changes
from sfumato.auditing.databases import bases, tiny
from sfumato.auditing.exact.additive import faithful, numbered_change, worst_change
from sfumato.auditing.exact.forms import NoisyNumber
from sfumato.auditing.exact.orders import audit_order
from sfumato.auditing.exact.stages import ROUNDING, TwoStages
from sfumato.auditing.result import Audit, Witness
from sfumato.auditing.statistical.sampler import measured_rate
from sfumato.auditing.statistical.statistical import AuditSource, search
from sfumato.errors import InvalidInput, TooLarge
from sfumato.exact import finite_float, positive_int
from sfumato.mechanism import Mechanism
from sfumato.mechanism.base import AdditiveMechanism, LinearMechanism
from sfumato.mechanism.points.sorted import SortedWithAbsence
from sfumato.noise import DiscreteLaplace, Geometric
from sfumato.planning import Plan
from sfumato.policies import Policy
from sfumato.quantiles import OrderMechanism

Integers = NDArray[np.int64]

CONFIDENCE = 1 - 1e-6
SAMPLES = 200_000
LARGEST_CELLS = 4096


def audit(
    subject: Any,
    *,
    counts: Any = None,
    samples: int = SAMPLES,
    seconds: float = 10.0,
    confidence: float = CONFIDENCE,
    seed: int | None = None,
    method: str | None = None,
) -> Audit:
    """Whether a plan (a mechanism, an order statistic) is as private as it says, on made-up neighbouring databases.

    The loss is exact where noise is added to integers; elsewhere, and with method="statistical", runs give a lower
    bound on it: up to `samples` of them, on average, on each of two neighbours, for about so many `seconds` of
    computing. The bound is wrong with a probability of at most 1 - `confidence`. `counts` are *public or made-up*
    counts to try beside those that the audit makes up itself; never give private ones, since the result shows them.
    Small domains are best: what is wrong with a mechanism shows there, and more than 4,096 cells are refused.

    >>> plan = sf.plan(sf.threshold(sf.Line(0, 4, cells=4), theta=1), sf.histogram(), epsilon=1)
    >>> found = sf.audit(plan)
    >>> found.method, found.promised >= found.epsilon
    ('exact', True)
    """
    trust, limit = finite_float(confidence, "confidence"), finite_float(seconds, "seconds")
    if not 0.5 <= trust < 1:
        raise InvalidInput(f"confidence={confidence!r} must be at least 0.5 and below 1. Nothing was run.")
    if limit <= 0:
        raise InvalidInput(f"seconds={seconds!r} must be greater than zero. Nothing was run.")
    if method not in (None, "exact", "statistical"):
        raise InvalidInput(f"method={method!r} must be 'exact', 'statistical', or left out. Nothing was run.")
    runs = positive_int(samples, "samples")
    chance = _seed(seed)
    if isinstance(subject, OrderMechanism):
        return audit_order(subject)
    case = _subject(subject)
    mechanism, policy, promised, records = case
    if policy.domain.size > LARGEST_CELLS:
        raise TooLarge(
            f"an audit takes at most {LARGEST_CELLS:,} cells, and this domain has {policy.domain.size:,}. Nothing was "
            "run. Audit the same policy and mechanism on fewer cells: what is wrong shows there."
        )
    rng = np.random.default_rng(chance)
    made = bases(policy, rng, _public(counts, policy))
    edges, existing = changes(policy, rng)
    if not len(edges):
        return Audit(
            subject=mechanism.name,
            promised=promised,
            epsilon=Fraction(0),
            method="exact",
            looked_at=("no change to hide",),
        )
    began = time.thread_time()
    unfaithful: tuple[str, ...] = ()
    if method != "statistical":
        answer = _exact(case, edges, existing, made, began + limit, trust, chance)
        if isinstance(answer, Audit):
            return answer
        unfaithful = (answer,)
    if method == "exact":
        raise InvalidInput(
            f"method='exact' does not fit mechanism={mechanism.name!r}: {unfaithful[0]}. Nothing was concluded. "
            "Leave method out for a statistical audit."
        )
    found = search(
        mechanism,
        edges,
        made,
        public=policy.total_is_public,
        records=records,
        samples=runs,
        seconds=max(limit - (time.thread_time() - began), 0.5),
        confidence=trust,
        seed=chance,
    )
    return Audit(
        subject=mechanism.name,
        promised=promised,
        epsilon=found.epsilon,
        method="statistical",
        confidence=trust,
        witness=Witness(edge=found.pair.edge, databases=found.pair.databases, event=found.event),
        looked_at=(
            *unfaithful,
            f"{found.pairs} pairs of neighbours, one of them with {found.runs:,} fresh runs",
        ),
    )


def _exact(
    case: tuple[Mechanism, Policy, Fraction, int],
    edges: Integers,
    existing: int,
    made: list[Integers],
    deadline: float,
    confidence: float,
    seed: int,
) -> Audit | str:
    """The exact audit, or in words why there is none."""
    mechanism, policy, promised, records = case
    laws: set[DiscreteLaplace | Geometric]
    # Values that are linear move alike on every database; that they are is seen on the few made up before.
    databases = made if isinstance(mechanism, LinearMechanism) else [*made, *tiny(policy)]
    if (stages := TwoStages.of(mechanism)) is not None:
        if not stages.faithful(made, policy.total_is_public):
            return "it does not choose runs and then add noise to their totals as it says"
        parts = stages.worst(edges, made, deadline)
        if parts is None:
            return "no change was looked at"
        # Probabilities are summed up in floating point; rounding says nothing.
        near = parts.loss <= float(promised / records) * (1 + ROUNDING)
        found, laws = replace(parts, loss=min(parts.loss, promised / records)) if near else parts, set(stages.laws)
    elif isinstance(mechanism, SortedWithAbsence) and not policy.total_is_public:
        form = NoisyNumber(mechanism)
        if not form.faithful(made):
            return "it does not draw a number of records and then noisy sums"
        found = numbered_change(form, edges, databases, deadline)
        laws = {law for law in (mechanism.number_law, mechanism.law) if law is not None}
    else:
        additive = mechanism
        if not isinstance(additive, AdditiveMechanism):
            return "it does more than add noise to integers"
        total = int(made[-1].sum()) if policy.total_is_public else None
        if (reason := faithful(additive, made, policy.total_is_public)) is not None:
            return reason
        worst = worst_change(additive, edges, databases, policy.total_is_public, deadline)
        if worst is None:
            return "no change of its noise makes up for some change of a record, as far as can be told"
        fixed = additive if total is None else additive.for_total(total)
        found, laws = worst, {law for law, _ in fixed.noises(total)}
    loss, event, method, trust = found.loss * records, found.event, found.method, None
    drawn = [measured_rate(law, AuditSource(seed), confidence) for law in laws]
    wide = max(drawn, key=lambda one: one.excess, default=None)
    if wide is not None and wide.excess > 1:
        loss, method, trust = float(loss) * wide.excess, "statistical", confidence
        event = f"noise of rate {wide.law.rate} was drawn at a rate of at least {wide.rate:.4g}; {event}"
    return Audit(
        subject=mechanism.name,
        promised=promised,
        epsilon=loss,
        method=method,
        confidence=trust,
        witness=Witness(edge=found.pair.edge, databases=found.pair.databases, event=event),
        complete=found.edges >= existing or math.isinf(loss),
        looked_at=(
            f"{found.edges:,} of {existing:,} changes of a record, each on {found.databases} databases",
            f"draws of {len(drawn)} law{'' if len(drawn) == 1 else 's'} of noise",
        ),
    )


def _subject(subject: Any) -> tuple[Mechanism, Policy, Fraction, int]:
    """(mechanism, the policy of the promise, its ε, records of a person that change at once)."""
    if isinstance(subject, Plan):
        return subject.mechanism, subject.policy, subject.epsilon, subject.max_per_entity or 1
    if isinstance(subject, Mechanism):
        return subject, subject.policy, subject.epsilon, 1
    raise InvalidInput(
        f"subject={type(subject).__name__} cannot be audited. Nothing was run. Give a plan from sf.plan(…), a "
        "mechanism, or a mechanism for order statistics."
    )


def _public(counts: Any, policy: Policy) -> Integers | None:
    if counts is None:
        return None
    array = np.asarray(counts)
    if array.dtype.kind not in "iu" or array.shape != policy.domain.shape or array.min(initial=0) < 0:
        raise InvalidInput(
            f"counts must be public whole numbers of at least 0 in the domain's shape {policy.domain.shape}. "
            "Nothing was run."
        )
    return array.astype(np.int64).ravel()


def _seed(seed: Any) -> int:
    if seed is None:
        return secrets.randbits(63)
    if isinstance(seed, bool) or not isinstance(seed, (int, np.integer)) or seed < 0:
        raise InvalidInput(f"seed={seed!r} must be a whole number of at least 0, or left out. Nothing was run.")
    return int(seed)
