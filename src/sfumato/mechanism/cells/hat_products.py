"""Products of hats and cells: noise on the cells, on hats along each axis, and on hats of all, for ranges on grids.

Promise: that of every vertex strategy, ε-private under the policy for one record. A has the rows `w·⊗_i B_i`, B_i being
hats or the identity along every axis, w by how many axes have hats. A move changes every row that tells its two cells
apart; columns have equal sums and the noise is scaled to twice what two columns do not share, of all pairs of cells
that one move joins, computed from what is built. A short move leaves most of what lies under hats where it is.

In a product of one line of hats and another (`hats`) weights multiply; here cells, hats along one axis and hats along
all are weighed by themselves, and the reach of the moves decides how much. With hats of one width the parts commute, so
that the error is a closed form. Where the total is public, estimates are least squares under it. What it does not do:
it has one width an axis, and on long ones under far moves several serve better (`hats`); under moves of one cell noise
on edges does (`edge_hats.py`).

The matrix mechanism: Li, Hay, Rastogi, Miklau, McGregor (PODS 2010); unions of products: McKenna, Miklau, Hay,
Machanavajjhala (VLDB 2018).
"""

from __future__ import annotations

from collections.abc import Iterator, Set
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

from sfumato._types import Floats, Integers
from sfumato.errors import InvalidInput
from sfumato.exact import is_whole
from sfumato.linear import HatProductEstimator, HatProducts
from sfumato.mechanism.base import Mechanism
from sfumato.mechanism.cells.hat_product_tuning import best_hat_products
from sfumato.mechanism.cells.strategies import no_options
from sfumato.mechanism.cells.vertex import VertexMechanism
from sfumato.mechanism.entry import Entry, Options
from sfumato.mechanism.model import Block, NoiseModel
from sfumato.mechanism.totals import with_exact_total
from sfumato.noise import DiscreteLaplace
from sfumato.policies import Policy
from sfumato.workload import Workload

# Cells of an axis up to which a plan tries it by itself, and the numbers of axes for which it was made.
LONGEST, AXES = 2048, (2, 3)


@dataclass(frozen=True, kw_only=True, eq=False)
class HatProductMechanism(VertexMechanism):
    """A strategy over the flat cells: `products` are its rows."""

    products: HatProducts

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.policy.public:
            raise InvalidInput(
                f"mechanism={self.name!r} knows one exact total at the most, and here there is one for every value of "
                "what is public. Nothing was drawn or recorded. Use mechanism='hats' or 'levels'."
            )

    @property
    def strategy(self) -> HatProducts:
        """The products."""
        return self.products

    @cached_property
    def _estimator(self) -> HatProductEstimator:
        return HatProductEstimator(self.products, total_known=self.policy.total_is_public)

    @cached_property
    def model(self) -> NoiseModel:
        """One block, A⁺, which leaves an exact total alone."""
        noise = DiscreteLaplace(self.epsilon / self.sensitivity)
        return NoiseModel(self.policy.domain.shape, (Block(self._estimator, noise),))

    def estimate(self, measured: Integers, total: int | None) -> Floats:
        """A⁺·y, moved along g to the public total."""
        estimates = self._estimator.forward(measured)
        if total is None:
            return estimates
        g = self._estimator.total_share
        return with_exact_total(estimates + g * (total / g.sum()), total)


def hat_products(policy: Policy, epsilon: Fraction, **options: Any) -> Mechanism:
    """Noise on cells, on hats along every axis and on products of hats: `hats` says how many of their widths every axis
    is long (0: no hats along it), `height` in how many parts a cell is split between two hats, and `weights` how much
    the products with hats along 0, 1, 2, … axes count, in whole numbers, 0 for none. Without them they are tuned.
    """
    names = ("hats", "height", "weights")
    given = [options.pop(name, None) for name in names]
    no_options("hat-products", options)
    if all(value is None for value in given):
        found = best_hat_products(policy, None)
        if found is None:
            raise InvalidInput(
                "mechanism='hat-products' needs an axis in order of at least 6 cells. Nothing was drawn or recorded. "
                "Use mechanism='identity'."
            )
        given = list(found)
    if any(value is None for value in given):
        raise InvalidInput("mechanism='hat-products' needs all of hats, height and weights, or none of them.")
    hats, height, weights = given
    shape = policy.domain.shape
    hats = [hats] * len(shape) if is_whole(hats) else hats
    for name, numbers in (("hats", hats), ("height", [height]), ("weights", weights)):
        if not isinstance(numbers, (list, tuple)) or not all(is_whole(k) and 0 <= k < 1 << 20 for k in numbers):
            raise InvalidInput(f"{name}={numbers!r} must be whole numbers of at least 0, below {1 << 20:,}.")
    if len(hats) != len(shape):
        raise InvalidInput(f"hats={list(hats)} must have a number for each of {len(shape)} axes.")
    hats, weights = [int(m) for m in hats], [int(w) for w in weights]
    chosen = {"hats": hats, "height": int(height), "weights": weights}
    products = HatProducts(shape, hats, int(height), weights)
    return HatProductMechanism(
        name="hat-products", policy=policy, epsilon=epsilon, options=chosen, factors=(), products=products
    )


def _tuned(policy: Policy, workload: Workload) -> Iterator[Options]:
    domain = policy.domain
    if max(domain.shape) > LONGEST or domain.ndim not in AXES or policy.public or not policy.whole:
        return
    found = best_hat_products(policy, workload)
    if found is not None:
        hats, height, weights = found
        yield {"hats": hats, "height": height, "weights": weights}


def _needed(policy: Policy) -> tuple[Set[str], ...]:
    del policy
    return ({"hats", "height", "weights"},)


HAT_PRODUCTS = Entry(name="hat-products", build=hat_products, candidates=_tuned, tunings=_tuned, needed=_needed)
