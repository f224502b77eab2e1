"""Gradual release: what all levels together tell, from the joint law of a chain of refinements.

One noise is V = G⁺ - G⁻ at every level. A *refinement* says how a half becomes the half of the next level: by default
min(G, T) with a fresh geometric T (`sfumato.noise.gradual`). The joint law of the levels of both halves is summed up on
a small support; the largest ratio between the levels of x and those of x + 1 is the loss, and the promise is the last
level's rate. Every term is positive, so floating point keeps its digits; what is cut off is bounded by the tail of the
coarsest half and told apart from a mistake by `CUT_OFF`.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from fractions import Fraction

import numpy as np

from sfumato._types import Floats
from sfumato.auditing.result import Audit, Witness
from sfumato.errors import InvalidInput
from sfumato.exact import Number, positive_fraction

Refinement = Callable[[int, float, float, int], Floats]

LARGEST_NOISE = 3  # outputs are compared where the noise is at most that at every level, on either side
CUT_OFF = 1e-6  # relative, of a probability: what the tails beyond the support may hold


def minimum(half: int, rate: float, finer: float, last: int) -> Floats:
    """The law of min(G, T) given G = half, T geometric of rate finer - rate."""
    beta = math.exp(-(finer - rate))
    law = np.zeros(last + 1)
    law[:half] = (1 - beta) * beta ** np.arange(half)
    law[half] = beta**half
    return law


def audit_chain(rates: Sequence[Number], refinement: Refinement = minimum) -> Audit:
    """What two or three levels of one noise tell together, against the rate of the last.

    `refinement(half, rate, finer, last)` gives the probabilities of 0 … last for the next half. Rates of 0.5 and more:
    smaller ones need a support too large to sum over.
    """
    exact = [positive_fraction(rate, "rates") for rate in rates]
    if not 2 <= len(exact) <= 3 or any(b <= a for a, b in itertools.pairwise(exact)) or exact[0] < Fraction(1, 2):
        raise InvalidInput("rates must be two or three rising numbers of at least 0.5. Nothing was concluded.")
    tail = -math.log(CUT_OFF / 100)
    last = math.ceil((LARGEST_NOISE * float(exact[-1]) + tail) / (2 * float(exact[0]))) + LARGEST_NOISE
    joint = _levels(_halves([float(rate) for rate in exact], refinement, last), LARGEST_NOISE)
    loss, event = 0.0, ""
    for levels, p in joint.items():
        other = joint.get(tuple(level + 1 for level in levels))
        if other is None:
            continue
        ratio = abs(math.log(p / other)) if p > 0 and other > 0 else (math.inf if p != other else 0.0)
        if ratio > loss:
            loss, event = ratio, f"noise {', '.join(map(str, levels))} at the levels, against one more at each"
    promised = exact[-1]
    if abs(loss - float(promised)) <= CUT_OFF * len(exact):  # as equal as the cut-off tails allow
        loss = float(promised)
    return Audit(
        subject="chain of levels",
        promised=promised,
        epsilon=Fraction(promised) if loss == float(promised) else loss,
        method="exact",
        witness=Witness(event=event),
        looked_at=(f"{len(exact)} levels, {len(joint):,} outputs, halves up to {last}",),
    )


def _halves(rates: Sequence[float], refinement: Refinement, last: int) -> Floats:
    """P[G₁ = g₁, …, G_m = g_m] for one half."""
    alpha = math.exp(-rates[0])
    law: Floats = (1 - alpha) * alpha ** np.arange(last + 1, dtype=np.float64)
    for rate, finer in itertools.pairwise(rates):
        step = np.stack([refinement(half, rate, finer, last) for half in range(last + 1)])
        law = np.asarray(law[..., None] * step)
    return law


def _levels(half: Floats, reach: int) -> dict[tuple[int, ...], float]:
    """P[V₁ = v₁, …] for every v within the reach: two independent halves, subtracted."""
    size = half.shape[0]
    found = {}
    for levels in itertools.product(range(-reach, reach + 1), repeat=half.ndim):
        up = tuple(slice(max(k, 0), size + min(k, 0)) for k in levels)
        down = tuple(slice(max(-k, 0), size + min(-k, 0)) for k in levels)
        found[levels] = float((half[up] * half[down]).sum())
    return found
