"""Noise that is safe and fast: integers drawn exactly, from cryptographic randomness.

Nothing here knows what noise is for: no count and no policy comes in, and what is drawn is never a floating-point
number.

    Source           where random words come from
    ├── SystemSource     the operating system: private
    └── SeededSource     a seed: repeatable, for tests and papers only
    Geometric        0, 1, 2, … with weights α^g, α = exp(-rate)
    DiscreteLaplace  the difference of two of them: the noise of every mechanism
    Refinable        such a difference that can be made smaller later

Floating-point noise leaks through the bits of its result; these integers do not. The files, from the bottom: `source`,
`expansion` (the digits of the bit probabilities, proven), `planes` (many coins at once), `geometric`, `laplace`,
`gradual`; beside them `exponential` (the weights of a choice among cells), and `continuous` for what is rounded at
once.
"""

from sfumato.noise.geometric import Geometric
from sfumato.noise.gradual import Refinable
from sfumato.noise.laplace import DiscreteLaplace
from sfumato.noise.source import SeededSource, Source, SystemSource

__all__ = ["DiscreteLaplace", "Geometric", "Refinable", "SeededSource", "Source", "SystemSource"]
