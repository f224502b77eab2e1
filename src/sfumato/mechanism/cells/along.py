"""What a strategy along one axis is tuned for: the queries along it, or a mixture of those of several parts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from sfumato.domain import Domain
from sfumato.workload import CELLS, RANGES, TOTAL, AxisQueries, Workload


class Asked(Protocol):
    """Queries along one axis, as far as tuning knows them; a value that can be looked up."""

    @property
    def partial(self) -> bool:
        """Whether some of them add up several cells and leave out others."""

    @property
    def lengths(self) -> frozenset[int]:
        """How long the equal blocks of cells are that are asked for, if any."""

    def __hash__(self) -> int:
        """As of any value."""

    def explained(self, n: int, length: int) -> float:
        """tr(G·Π) for the Gram matrix G and the projection Π onto what is constant on blocks of `length` cells."""


@dataclass(frozen=True)
class Mixture:
    """Several kinds along one axis, each with its share of all queries."""

    kinds: tuple[tuple[float, AxisQueries], ...]

    @property
    def partial(self) -> bool:
        """Whether some kind is."""
        return any(kind.partial for _, kind in self.kinds)

    @property
    def lengths(self) -> frozenset[int]:
        """Of all kinds."""
        return frozenset().union(*(kind.lengths for _, kind in self.kinds))

    def explained(self, n: int, length: int) -> float:
        """The mean."""
        return sum(share * kind.explained(n, length) for share, kind in self.kinds)


def asked_along(workload: Workload, domain: Domain) -> tuple[Asked, ...]:
    """For every axis what is asked along it. Given ranges, and queries that are no products, count as all ranges."""
    shares = workload.shares(domain)
    if shares is None:
        return (RANGES,) * domain.ndim
    return tuple(_mixed([(share, part.kinds[axis]) for share, part in shares]) for axis in range(domain.ndim))


def whole_is_asked(asked: Asked) -> bool:
    """Whether a sum over the whole axis is worth a level of its own."""
    return asked == TOTAL or (isinstance(asked, Mixture) and any(kind == TOTAL for _, kind in asked.kinds))


def share_of(asked: Asked, kind: AxisQueries) -> float:
    """How much of what is asked is of one kind."""
    kinds = asked.kinds if isinstance(asked, Mixture) else ((1.0, asked),)
    return sum(share for share, other in kinds if other == kind)


def cells_alone(asked: tuple[Asked, ...]) -> bool:
    """Whether single cells are all that is asked, along every axis."""
    return all(kind == CELLS for kind in asked)


def _mixed(kinds: list[tuple[float, AxisQueries]]) -> Asked:
    together: dict[AxisQueries, float] = {}
    for share, kind in kinds:
        kept = RANGES if kind.steps is not None else kind
        together[kept] = together.get(kept, 0.0) + share
    if len(together) == 1:
        return next(iter(together))
    return Mixture(tuple((share, kind) for kind, share in together.items()))
