"""Which changes to one record must stay hidden: policy graphs over the cells of a domain."""

from sfumato.policy.builders import bounded, graph, policy_from_spec, threshold, unbounded, within
from sfumato.policy.exchange import exchange_rate
from sfumato.policy.moves import ABSENT, Complete, Explicit, Moves, NoMoves, Stencil
from sfumato.policy.policy import Policy

__all__ = [
    "ABSENT",
    "Complete",
    "Explicit",
    "Moves",
    "NoMoves",
    "Policy",
    "Stencil",
    "bounded",
    "exchange_rate",
    "graph",
    "policy_from_spec",
    "threshold",
    "unbounded",
    "within",
]
