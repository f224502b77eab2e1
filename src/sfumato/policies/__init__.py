"""Which changes to one record must stay hidden: policy graphs over cells, drawn or seen from a relation.

A policy answers with distances, sensitivities and exchange rates, exactly, from the graph as it is built. It sees no
counts, and nothing is expanded to a list of edges but what the user listed.
"""

from sfumato.policies.absent import ABSENT
from sfumato.policies.builders import bounded, graph, threshold, unbounded
from sfumato.policies.described import policy_from_spec
from sfumato.policies.equivalence import Transformed, transform
from sfumato.policies.exchange import exchange_rate
from sfumato.policies.listed_moves import Explicit
from sfumato.policies.moves import Complete, Moves, NoMoves, Stencil
from sfumato.policies.policy import Policy
from sfumato.policies.price import price
from sfumato.policies.product_moves import Leg, ProductMoves, dearest_along
from sfumato.policies.spanner import Spanner
from sfumato.policies.valued import Valued, with_values
from sfumato.policies.within import steps_within, within

__all__ = [
    "ABSENT",
    "Complete",
    "Explicit",
    "Leg",
    "Moves",
    "NoMoves",
    "Policy",
    "ProductMoves",
    "Spanner",
    "Stencil",
    "Transformed",
    "Valued",
    "bounded",
    "dearest_along",
    "exchange_rate",
    "graph",
    "policy_from_spec",
    "price",
    "steps_within",
    "threshold",
    "transform",
    "unbounded",
    "with_values",
    "within",
]
