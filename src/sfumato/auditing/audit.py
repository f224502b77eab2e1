"""The verb: audit whatever makes a promise."""

from __future__ import annotations

import math
import secrets
import time
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from sfumato._types import Integers
from sfumato.auditing.databases import bases, tiny
from sfumato.auditing.exact.by_form import audit_by_form
from sfumato.auditing.exact.given_strategy import audit_strategy
from sfumato.auditing.exact.order_statistics import audit_order
from sfumato.auditing.exact.question import Finding, Question
from sfumato.auditing.functions import audit_function
from sfumato.auditing.record_changes import changes
from sfumato.auditing.result import Audit, Witness
from sfumato.auditing.statistical.audit_source import AuditSource
from sfumato.auditing.statistical.lower_bound import Found, MechanismGame, neighbours, search
from sfumato.auditing.statistical.sampler import measured_rate
from sfumato.auditing.summed_changes import units_needed
from sfumato.errors import InvalidInput, TooLarge
from sfumato.exact import Number, finite_float, is_whole, positive_fraction, positive_int
from sfumato.mechanism import Mechanism
from sfumato.planning import Plan
from sfumato.policies import Policy
from sfumato.quantiles import OrderMechanism

CONFIDENCE = 1 - 1e-6
SAMPLES = 200_000  # runs on either neighbour
LARGEST_CELLS = 4096
LEAST_SECONDS = 0.5  # of computing for runs, when the search for a proof has taken all


def audit(
    subject: Any = None,
    *,
    policy: Policy | None = None,
    epsilon: Number | None = None,
    inputs: Any = None,
    records: int = 1,
    strategy: Any = None,
    scales: Any = None,
    noise: Any = "laplace",
    mixing: Any = None,
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

    **Other people's mechanisms.** Any function is run: `sf.audit(function, epsilon=1, policy=policy)` calls it with
    counts in the domain's shape, made up or from `inputs`, on neighbours that differ by `records` changes of the
    policy; without a policy `inputs` are pairs of neighbours of whatever it takes. Outputs are of any type. A linear
    mechanism is audited exactly from what stands on paper: `sf.audit(strategy=A, scales=b, noise="laplace",
    policy=policy, epsilon=1)` for A·x + noise of these scales ("discrete-laplace" for whole numbers, and `mixing=M`
    where M·noise is added).

    >>> plan = sf.plan(sf.threshold(sf.Line(0, 4, cells=4), theta=1), sf.histogram(), epsilon=1)
    >>> found = sf.audit(plan)
    >>> found.method, found.promised >= found.epsilon
    ('exact', True)
    >>> cells = sf.Line(0, 4, cells=4)
    >>> prefixes = np.tril(np.ones((4, 4)))
    >>> sf.audit(strategy=prefixes, scales=1, policy=sf.unbounded(cells), epsilon=1).epsilon
    Fraction(4, 1)
    """
    trust, limit = finite_float(confidence, "confidence"), finite_float(seconds, "seconds")
    if not 0.5 <= trust < 1:
        raise InvalidInput(f"confidence={confidence!r} must be at least 0.5 and below 1. Nothing was run.")
    if limit <= 0:
        raise InvalidInput(f"seconds={seconds!r} must be greater than zero. Nothing was run.")
    if method not in (None, "exact", "statistical"):
        raise InvalidInput(f"method={method!r} must be 'exact', 'statistical', or left out. Nothing was run.")
    runs, changed = positive_int(samples, "samples"), positive_int(records, "records")
    chance = _seed(seed)
    if strategy is not None or (callable(subject) and not isinstance(subject, (Plan, Mechanism, OrderMechanism))):
        promised = _promised(policy, epsilon, strategy is not None)
        if strategy is not None:
            if subject is not None or policy is None:
                raise InvalidInput(
                    "strategy stands alone, under a policy: leave the subject out, and give policy=…. Nothing was run."
                )
            return audit_strategy(
                strategy,
                scales=scales,
                noise=noise,
                mixing=mixing,
                policy=policy,
                epsilon=promised,
                records=changed,
                seed=chance,
            )
        return audit_function(
            subject,
            epsilon=promised,
            policy=policy,
            inputs=inputs,
            records=changed,
            samples=runs,
            seconds=limit,
            confidence=trust,
            seed=chance,
        )
    if (policy, epsilon, inputs, scales, mixing) != (None,) * 5:
        raise InvalidInput(
            "policy, epsilon, inputs, scales and mixing are for functions and strategies; a plan or a mechanism says "
            "itself what it promises. Nothing was run. Leave them out."
        )
    if isinstance(subject, OrderMechanism):
        return audit_order(subject)
    claim = Claim.of(subject)
    if claim.policy.domain.size > LARGEST_CELLS:
        raise TooLarge(
            f"an audit takes at most {LARGEST_CELLS:,} cells, and this domain has {claim.policy.domain.size:,}. "
            "Nothing was run. Audit the same policy and mechanism on fewer cells: what is wrong shows there."
        )
    rng = np.random.default_rng(chance)
    databases = bases(claim.policy, rng, _public(counts, claim.policy))
    edges, existing = changes(claim.policy, rng)
    if not len(edges):
        return claim.audited(epsilon=Fraction(0), method="exact", looked_at=("no change to hide",))
    began = time.thread_time()
    question = Question(
        mechanism=claim.mechanism,
        promised=claim.promised / claim.records,
        total_is_public=claim.policy.total_is_public,
        edges=edges,
        databases=databases,
        tiny=list(tiny(claim.policy)),
        deadline=began + limit,
    )
    unproved = ""
    if method != "statistical":
        proved = audit_by_form(question)
        if isinstance(proved, Finding):
            return _proved(claim, proved, existing, trust, chance)
        unproved = proved
    if method == "exact":
        raise InvalidInput(
            f"method='exact' does not fit mechanism={claim.mechanism.name!r}: {unproved}. Nothing was concluded. "
            "Leave method out for a statistical audit."
        )
    found = search(
        MechanismGame.of(question, chance),
        neighbours(edges, databases, claim.records, np.random.default_rng(chance)),
        samples=runs,
        seconds=max(limit - (time.thread_time() - began), LEAST_SECONDS),
        confidence=trust,
        seed=chance,
    )
    return _seen(claim, found, unproved, trust)


@dataclass(frozen=True)
class Claim:
    """A mechanism, and what is promised of it: ε under a policy, for so many records that one person changes at once;
    where a value is summed, for so many steps of one unit.
    """

    mechanism: Mechanism
    policy: Policy
    promised: Fraction
    records: int

    @classmethod
    def of(cls, subject: Any) -> Claim:
        """What a plan or a mechanism says of itself."""
        if isinstance(subject, Plan):
            needed = units_needed(subject.policy, np.random.default_rng(11))
            steps = (subject.max_per_entity or 1) * max(subject.policy.units, needed)
            return cls(subject.mechanism, subject.policy.on_cells, subject.epsilon, steps)
        if isinstance(subject, Mechanism):
            return cls(subject, subject.policy, subject.epsilon, 1)
        raise InvalidInput(
            f"subject={type(subject).__name__} cannot be audited. Nothing was run. Give a plan from sf.plan(…), a "
            "mechanism, a mechanism for order statistics, or a function with epsilon=… and policy=… or inputs=…."
        )

    def audited(self, **found: Any) -> Audit:
        """What was found, beside the promise."""
        return Audit(subject=self.mechanism.name, promised=self.promised, **found)


def _promised(policy: Policy | None, epsilon: Number | None, on_paper: bool) -> Fraction:
    """What is promised of somebody else's mechanism, and under which policy."""
    if epsilon is None:
        raise InvalidInput("epsilon is missing: what is promised. Nothing was run. Say it, as in epsilon=1.")
    if policy is not None and not isinstance(policy, Policy):
        raise InvalidInput(f"policy={type(policy).__name__} is not a policy. Nothing was run.")
    if policy is not None and policy.domain.size > LARGEST_CELLS and not on_paper:
        raise TooLarge(
            f"an audit takes at most {LARGEST_CELLS:,} cells, and this domain has {policy.domain.size:,}. Nothing was "
            "run. Audit the same function on fewer cells: what is wrong shows there."
        )
    return positive_fraction(epsilon, "epsilon")


def _proved(claim: Claim, found: Finding, existing: int, confidence: float, seed: int) -> Audit:
    """The loss by the laws of noise that are stated; where draws prove a law to be narrower, by what they prove."""
    drawn = [measured_rate(law, AuditSource(seed), confidence) for law in found.laws]
    narrow = max(drawn, key=lambda one: one.excess, default=None)
    loss, event, method, trust = found.loss * claim.records, found.event, found.method, None
    if narrow is not None and narrow.excess > 1:
        loss, method, trust = float(loss) * narrow.excess, "statistical", confidence
        event = f"noise of rate {narrow.law.rate} was drawn at a rate of at least {narrow.rate:.4g}; {event}"
    return claim.audited(
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


def _seen(claim: Claim, found: Found, unproved: str, confidence: float) -> Audit:
    """What runs showed, and why there is no proof, if one was looked for."""
    runs = f"{found.pairs} pairs of neighbours, one of them with {found.runs:,} fresh runs"
    return claim.audited(
        epsilon=found.epsilon,
        method="statistical",
        confidence=confidence,
        witness=found.pair.witness(found.event),
        looked_at=(unproved, runs) if unproved else (runs,),
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
    if not is_whole(seed) or seed < 0:
        raise InvalidInput(f"seed={seed!r} must be a whole number of at least 0, or left out. Nothing was run.")
    return int(seed)
