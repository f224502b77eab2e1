"""Which changes to one record must stay hidden: policy graphs over the cells of a domain."""

from sfumato.policy.builders import bounded, graph, policy_from_spec, threshold, unbounded
from sfumato.policy.equivalence import Transformed, transform
from sfumato.policy.exchange import exchange_rate
from sfumato.policy.moves import ABSENT, Complete, Explicit, Moves, NoMoves, Stencil
from sfumato.policy.policy import Policy
from sfumato.policy.spanner import Spanner
from sfumato.policy.within import steps_within, within

__all__ = [
    "ABSENT",
    "Complete",
    "Explicit",
    "Moves",
    "NoMoves",
    "Policy",
    "Spanner",
    "Stencil",
    "Transformed",
    "bounded",
    "exchange_rate",
    "graph",
    "policy_from_spec",
    "steps_within",
    "threshold",
    "transform",
    "unbounded",
    "within",
]
