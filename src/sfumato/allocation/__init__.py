"""Dividing a budget over time so that no window of consecutive steps spends more than ε.

`allocate` is the optimum when all weights are known, `OnlineAllocator` commits step by step against a distribution of
the weights to come, `TopUpAllocator` commits less at first and raises past steps when it is known what their windows
were needed for. Weights and budgets are public; every budget that leaves here keeps every window to ε, as fractions.
"""

from sfumato.allocation.allocate import allocate, total_error
from sfumato.allocation.distributions import Bernoulli, Distribution, Empirical, Markov, Periodic, draw
from sfumato.allocation.online import OnlineAllocator
from sfumato.allocation.topup import TopUpAllocator

__all__ = [
    "Bernoulli",
    "Distribution",
    "Empirical",
    "Markov",
    "OnlineAllocator",
    "Periodic",
    "TopUpAllocator",
    "allocate",
    "draw",
    "total_error",
]
