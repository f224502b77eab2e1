"""What a release made of parts costs: arithmetic, without any data.

A record lies in one of several public, declared parts, or in none (⊥); each part i is published by itself, at ε_i under
a policy of its own, in which d_i counts steps. A change of one record then costs

- inside part i, from u to v: ε_i·d_i(u, v), and nothing elsewhere;
- from part i to part j: ε_i·d_i(u, ⊥) + ε_j·d_j(v, ⊥), since it vanishes here and appears there;
- presence: ε_i·d_i(u, ⊥).

*Proof.* All parts but those that the record leaves or enters see the same records, and their noise is independent. ∎

The price is the maximum over all changes: the largest and not the sum where no change joins two parts. A part that is
published without ⊥ shows its exact total: d_i(u, ⊥) is infinite, and what joins it with another part is refused.

**Persons**, of whom at most m records are counted: bounded *before* the split into parts, so that the records chosen do
not depend on where they lie, at most m of them change, each along one edge, and the price is that of the m costliest
changes; they may all be the same one, so m times the maximum: what a unit of m records makes of a price. (Bounded in
every part by itself, each part may see m records change, and all parts would add up; such counts are refused.)
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from sfumato.errors import InvalidInput, PolicyMismatch
from sfumato.exact import positive_fraction, positive_int

Steps = Fraction | float  # infinite where there is no way


@dataclass(frozen=True, kw_only=True)
class Part:
    """One part of a release: its ε, and how many steps of its policy a change of a record takes at most.

    `inside` is the largest d(u, v) over the changes after which the record still lies in the part, `absent` the largest
    d(u, ⊥).
    """

    epsilon: Fraction
    inside: Steps
    absent: Steps = math.inf

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", positive_fraction(self.epsilon, "epsilon"))
        for name in ("inside", "absent"):
            steps = getattr(self, name)
            if not steps >= 0:
                raise InvalidInput(f"{name}={steps!r} must be a number of steps, at least 0.")
            object.__setattr__(self, name, steps if math.isinf(steps) else Fraction(steps))

    @property
    def staying(self) -> Steps:
        """What a change inside costs."""
        return self.epsilon * self.inside

    @property
    def coming(self) -> Steps:
        """What it costs that a record appears or vanishes."""
        return self.epsilon * self.absent


@dataclass(frozen=True, kw_only=True)
class Partition:
    """All parts of a release, which pairs of them a change joins, and whether a record may appear or vanish.

    >>> from fractions import Fraction
    >>> north, south = (Part(epsilon=Fraction(e), inside=1, absent=1) for e in ("1/2", "1/3"))
    >>> Partition(parts=(north, south)).price, Partition(parts=(north, south), joined=((0, 1),)).price
    (Fraction(1, 2), Fraction(5, 6))
    """

    parts: tuple[Part, ...]
    joined: tuple[tuple[int, int], ...] = ()
    presence: bool = False

    @classmethod
    def alike(cls, part: Part, number: int, *, crossed: bool, presence: bool) -> Partition:
        """So many parts that are published alike; where `crossed`, a record may go over from any one to any other.

        Two of them say as much as all.
        """
        shown = min(positive_int(number, "number"), 2)
        joined = ((0, 1),) if crossed and shown > 1 else ()
        return cls(parts=(part,) * shown, joined=joined, presence=presence)

    @property
    def price(self) -> Fraction:
        """What one record's change costs at most."""
        costs: list[Steps] = [part.staying for part in self.parts]
        costs += [self.parts[i].coming + self.parts[j].coming for i, j in self.joined]
        if self.presence:
            costs += [part.coming for part in self.parts]
        price = max(costs)
        if math.isinf(price):
            raise PolicyMismatch(
                "a record may go over from one part to another, or appear or vanish, and a part that is published "
                "without ⊥ shows its exact total: no price is high enough. Nothing was drawn or recorded. Publish the "
                "parts under a policy that hides presence too, such as … | sf.presence()."
            )
        return Fraction(price)
