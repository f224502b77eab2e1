"""Hats for the ranges of a line, in closed form: equal weights, and widths in geometric progression.

With L levels and N cells to serve, widths q, q², …, q^L where q^(L+1) = N and the same weight for every level and for
the cells are within one per cent of what a search over widths and weights found for a private total on 64 to 65,536
cells: a range then pays as much for each of the L + 1 scales on which it ends, and the error is flat around that. N is
larger than n where the total is private, since the widest hats have to carry it, and smaller where it is public. One
more level pays as soon as the hats of one level hold too many of the next; the first three limits were measured up to
a million cells, those beyond go on in the same proportion.
"""

from __future__ import annotations

from functools import lru_cache

# N/n for a private and for a public total, and the N from which on 2, 3, 4, … levels are best.
PRIVATE_TOTAL, PUBLIC_TOTAL = 1.5, 0.7
DEEPER = (1_000, 18_500, 300_000, 5_000_000, 80_000_000)
# The weight of every level: steps so fine that rounding hats to whole numbers costs nothing that can be measured.
WEIGHT = 256


@lru_cache(maxsize=256)
def best_hats(n: int, total_known: bool, largest: int | None = None) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """(widths, weights) from the widest level to single cells; on a line too short for any hat the cells alone.

    A cell at an end of the line may keep all weights by itself: together they are not more than `largest`.
    """
    served = n * (PUBLIC_TOTAL if total_known else PRIVATE_TOTAL)
    levels = 1 + sum(served > limit for limit in DEEPER)
    widths = tuple(round(served ** (level / (levels + 1))) for level in range(levels, 0, -1))
    if widths[-1] < 2 or 5 * widths[0] > 2 * n:
        widths = ()
    if not widths:
        return widths, (1,)
    weight = WEIGHT if largest is None else max(1, min(WEIGHT, largest // (len(widths) + 1)))
    return widths, (weight,) * (len(widths) + 1)
