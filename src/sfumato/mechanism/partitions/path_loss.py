"""What the splits of a private tree tell of one record, summed up exactly for discrete Laplace noise.

A box on level l with c records has the score b = max(c - l·decay, -floor), and is split where b + η > 0, η being
discrete Laplace noise of rate r of its own. A record changes the counts of the boxes on one path from the top.

**A record that appears** makes every split on its path likelier, by a factor e^ρ(b) for the score b, and the last box,
which is not split, less likely to be so. *Splits:* ρ does not rise with b, and is nothing where b and b + 1 are both
cut off at -floor. Counts fall along a path, so that scores fall by `decay` a level at least until they are cut off:
the scores of boxes that tell anything are, from the lowest one up, at least -floor, -floor + decay, -floor + 2·decay,
… So the factor is at most exp Σ_{j < depth} ρ(-floor + j·decay), which is reached. *The last box:* its factor is at
most e^r, and what was split before only lessens it. One path therefore tells max(Σρ, r); Σρ ≥ ρ(-floor) = r.

**A record that moves** leaves one path and enters another; boxes on both do not change. The one it enters tells at most
Σρ for more splits and r for fewer, the one it leaves the reverse: together Σρ + r at most, in either direction. That is
less than two paths that each tell as much as they can.

Zhang, Xiao, Xie: PrivTree (SIGMOD 2016) bound Σρ for Laplace noise by (2β - 1)/(β - 1) with decay = floor = ln β.
"""

from __future__ import annotations

import math
from fractions import Fraction

SLACK = 1e-9  # relative: the sums below are in double precision, and off by less than 1e-13
DIGITS = 4  # of a rate


def step_up(rate: float, score: int) -> float:
    """ρ: the logarithm of how much likelier a box is split with a score of one more."""
    if score <= 0:
        return rate  # P[η > k] is exactly exponential for k ≥ 0, and -1 still reaches there
    q, above = math.exp(-rate), math.exp(-rate * score)
    # 1 - above/(1 + q) is the probability of a split; with one more, above is q times that.
    return math.log1p(above * -math.expm1(-rate) / (q - math.expm1(-rate * score)))


def path_loss(rate: Fraction, decay: int, floor: int, depth: int, *, moves: bool) -> Fraction:
    """What the splits tell at most of a record that appears, or of one that moves where there are `moves`."""
    r = float(rate)
    splits = math.fsum(step_up(r, level * decay - floor) for level in range(depth))
    return Fraction((splits + r if moves else splits) * (1 + SLACK)) if depth else Fraction(0)


def best_rate(
    epsilon: Fraction, *, decay: Fraction, floor: Fraction, depth: int, moves: bool
) -> tuple[Fraction, int, int]:
    """(rate, decay, floor): the largest rate, to three digits, at which the splits tell no more than ε; decay and floor
    are so many of the noise's scales, rounded up.
    """

    def at(rate: Fraction) -> tuple[Fraction, int, int]:
        return rate, math.ceil(decay / rate), math.ceil(floor / rate)

    step = Fraction(10) ** (math.floor(math.log10(epsilon)) - DIGITS + 1)
    low, high = 0, math.ceil(epsilon / step)
    while high - low > 1:
        middle = (low + high) // 2
        if path_loss(*at(middle * step), depth, moves=moves) <= epsilon:
            low = middle
        else:
            high = middle
    return at(max(low, 1) * step)
