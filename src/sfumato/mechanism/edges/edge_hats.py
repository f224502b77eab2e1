"""Overlapping hats over the edges of every grid line.

Promise: that of the edge mechanism (`edges.py`), with hats along the other axes for B: ε-private under any policy of
moves on a grid, for one record. A move costs `Σ_i |o_i|·w_i`, w_i being the product of the hats' totals along the other
axes, and the estimator satisfies `f(η + B·z) = f(η) + z` to the last bit (`Hats.solved`).

A range pays for its boundary: two lines of edges across every axis, each a range of edges, which hats answer better
than nested blocks do. On n × n cells under G¹ the mean over all ranges is 4·e·(n - 1)/(n + 1), e being the mean
squared error of hats over the ranges of a line of n cells.
"""

from __future__ import annotations

from collections.abc import Iterator, Set
from fractions import Fraction
from typing import Any

from sfumato.errors import InvalidInput
from sfumato.mechanism.base import Mechanism
from sfumato.mechanism.cells.along import asked_along
from sfumato.mechanism.cells.hat_tuning import best_hats
from sfumato.mechanism.cells.strategies import LONGEST, WEIGHED, hats_along
from sfumato.mechanism.edges.edges import EdgeMechanism
from sfumato.mechanism.edges.named import if_centred, taken_centred
from sfumato.mechanism.entry import Entry, Options
from sfumato.policies import Policy
from sfumato.workload import Workload

# The weight of a level: so fine that rounding hats to whole numbers costs nothing that can be measured, and no finer,
# since fixed point has 64 bits for noise, hats and fractions. In three dimensions the totals multiply.
WEIGHT, WEIGHT_3D = 48, 12


def edge_hats(policy: Policy, epsilon: Fraction, **options: Any) -> Mechanism:
    """Noise on sums of edges along every grid line under overlapping hats, and on every edge; `widths` and `weights` as
    for `hats`.
    """
    shape = policy.domain.shape
    if len(shape) < 2:
        raise InvalidInput("mechanism='edge-hats' is for grids; on a line use mechanism='edges'.")
    if max(shape) > LONGEST:
        raise InvalidInput(
            f"mechanism='edge-hats' is for axes of at most {LONGEST} cells, here {max(shape)}: its variances take a "
            "kilobyte a cell. Nothing was drawn or recorded. Use mechanism='edge-hierarchy'."
        )
    kept = {"centred": list(options["centred"])} if options.get("centred") else {}
    centred = taken_centred(policy, "edge-hats", options)
    tuned = [best_hats(n, False, _largest(policy, n)) for n in shape]
    usual = WEIGHT if len(shape) == 2 else WEIGHT_3D
    across, chosen = hats_along("edge-hats", shape, tuned, usual, options)
    return EdgeMechanism(
        name="edge-hats", policy=policy, epsilon=epsilon, options=chosen | kept, across=across, centred=centred
    )


def _largest(policy: Policy, n: int) -> int:
    levels = len(best_hats(n, False)[1])
    return levels * (WEIGHT if policy.domain.ndim == 2 else WEIGHT_3D)


def _hats(policy: Policy, workload: Workload) -> Iterator[Options]:
    if policy.domain.ndim < 2 or max(policy.domain.shape) > WEIGHED:
        return
    several = [kind.partial for kind in asked_along(workload, policy.domain)]
    centred = next(if_centred(policy, workload), {})
    if all(several):
        yield centred
    elif any(several):  # hats along the axes of which sums are asked, and along the others the cells alone
        along = zip(policy.domain.shape, several, strict=True)
        tuned = [best_hats(n, False, _largest(policy, n)) if there else ((), (1,)) for n, there in along]
        yield {"widths": [list(b) for b, _ in tuned], "weights": [list(w) for _, w in tuned], **centred}


def _needed(policy: Policy) -> tuple[Set[str], ...]:
    del policy
    return ({"widths", "weights"},)


EDGE_HATS = Entry(name="edge-hats", build=edge_hats, candidates=_hats, tunings=if_centred, needed=_needed)
