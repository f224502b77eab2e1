"""Publish where and when things happened with differential privacy tuned to distance.

import sfumato as sf

grid   = sf.Grid(bounds=(-74.3, 40.5, -73.7, 40.95), shape=(256, 256))
policy = sf.within(grid, delta=0.01)
plan   = sf.plan(policy, sf.ranges(), epsilon=1.0)
counts = sf.count("visits.parquet", grid, x="lon", y="lat")
release = plan.publish(counts, ledger=sf.Ledger("budget.db"))
release.answer((-74.0, 40.7, -73.95, 40.75))
"""

import importlib
from typing import TYPE_CHECKING, Any

from sfumato._version import __version__
from sfumato.counting import Counts, count
from sfumato.domain import H3, Categories, Cycle, Domain, Grid, Interval, Labels, Line, Regions, Times, network
from sfumato.errors import (
    AuditFailed,
    BudgetExceeded,
    DataWarning,
    DeclarationWarning,
    FileFormatError,
    InvalidInput,
    LedgerCreated,
    LedgerError,
    MissingExtra,
    NoLedgerWarning,
    PolicyMismatch,
    SfumatoError,
    SfumatoWarning,
    TooLarge,
    Undelivered,
    VaultError,
)
from sfumato.ledger import Ledger
from sfumato.mechanism import mechanisms, register
from sfumato.noise import SeededSource
from sfumato.planning import MeansPlan, Plan, epsilon_for, plan, plan_means, tune_bound
from sfumato.policies import ABSENT, Policy, bounded, graph, threshold, unbounded, within
from sfumato.policies.valued import policy
from sfumato.promise import Guarantee
from sfumato.publication import Publication, load_publication
from sfumato.publishing import median, quantile, refine_until
from sfumato.relations import Relation, adjacent, anything, change, move, presence, relation_from_text
from sfumato.release import Answer, Means, Release, Table, load, load_means
from sfumato.values import Amounts, People, amounts, people, values_from_text
from sfumato.vault import Vault
from sfumato.workload import (
    Workload,
    ask,
    histogram,
    levels,
    marginals,
    prefixes,
    queries,
    ranges,
    scales,
    workload_from_text,
)

if TYPE_CHECKING:
    from sfumato.allocation import Bernoulli, Empirical, Markov, Periodic, allocate
    from sfumato.auditing import Audit, audit
    from sfumato.figures import difference, percent_change
    from sfumato.signing import SigningKey
    from sfumato.statement import Statement
    from sfumato.stream import Outcome, Stream
    from sfumato.verification import Verification, verify

# Loaded when they are first asked for: not everybody has a stream or audits, and importing should stay quick.
_LATER = {
    "Audit": "sfumato.auditing",
    "Bernoulli": "sfumato.allocation",
    "Empirical": "sfumato.allocation",
    "Markov": "sfumato.allocation",
    "Outcome": "sfumato.stream",
    "Periodic": "sfumato.allocation",
    "SigningKey": "sfumato.signing",
    "Statement": "sfumato.statement",
    "Stream": "sfumato.stream",
    "Verification": "sfumato.verification",
    "allocate": "sfumato.allocation",
    "audit": "sfumato.auditing",
    "difference": "sfumato.figures",
    "percent_change": "sfumato.figures",
    "verify": "sfumato.verification",
}

__all__ = [
    "ABSENT",
    "H3",
    "Amounts",
    "Answer",
    "Audit",
    "AuditFailed",
    "Bernoulli",
    "BudgetExceeded",
    "Categories",
    "Counts",
    "Cycle",
    "DataWarning",
    "DeclarationWarning",
    "Domain",
    "Empirical",
    "FileFormatError",
    "Grid",
    "Guarantee",
    "Interval",
    "InvalidInput",
    "Labels",
    "Ledger",
    "LedgerCreated",
    "LedgerError",
    "Line",
    "Markov",
    "Means",
    "MeansPlan",
    "MissingExtra",
    "NoLedgerWarning",
    "Outcome",
    "People",
    "Periodic",
    "Plan",
    "Policy",
    "PolicyMismatch",
    "Publication",
    "Regions",
    "Relation",
    "Release",
    "SeededSource",
    "SfumatoError",
    "SfumatoWarning",
    "SigningKey",
    "Statement",
    "Stream",
    "Table",
    "Times",
    "TooLarge",
    "Undelivered",
    "Vault",
    "VaultError",
    "Verification",
    "Workload",
    "__version__",
    "adjacent",
    "allocate",
    "amounts",
    "anything",
    "ask",
    "audit",
    "bounded",
    "change",
    "count",
    "difference",
    "epsilon_for",
    "graph",
    "histogram",
    "levels",
    "load",
    "load_means",
    "load_publication",
    "marginals",
    "mechanisms",
    "median",
    "move",
    "network",
    "people",
    "percent_change",
    "plan",
    "plan_means",
    "policy",
    "prefixes",
    "presence",
    "quantile",
    "queries",
    "ranges",
    "refine_until",
    "register",
    "relation_from_text",
    "scales",
    "threshold",
    "tune_bound",
    "unbounded",
    "values_from_text",
    "verify",
    "within",
    "workload_from_text",
]


def __getattr__(name: str) -> Any:
    if name not in _LATER:
        raise AttributeError(f"module 'sfumato' has no attribute {name!r}")
    value = globals()[name] = getattr(importlib.import_module(_LATER[name]), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_LATER})
