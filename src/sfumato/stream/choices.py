"""How a stream divides its budget: five ways, each from public figures alone.

What a step gets depends on its number, its weight and what the steps before it got. No count comes near this module:
`Past` has no place for one. Budgets come from the allocators as doubles and are taken for exactly what they are.

**Late steps.** A step that was never mentioned while later ones were gets what its allocation would have given it on
time, or what the fullest window that holds it has left, whichever is less. Each window then still sums to at most ε,
whatever comes in which order: that is all the promise needs, since every release is private given all before it, and
the time of the data says which windows it counts in. What came after it stays as it is; what is still to come is
divided as if the step had been on time. By allocation:

- even: ε / window, unless another allocation spent more around it; it never takes from another step.
- sample: ε, where nothing else was published in any window that holds it.
- offline: its part of the plan. A step that was passed over has freed its part for those after it, so that this may
  be gone; what is left of it is given.
- online: what was best at its time, or what the steps after it have left of that.
- top-up: what online would give, all of it at once, of what is neither spent nor kept for raising the steps around it.
  Its floor is cut so that the floors of a window, too, sum to at most ε: they are the budgets of an online stream that
  could have been, and raising leans on that. That topping up never ends worse than online is said of steps on time.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any, Literal, Protocol, get_args

import numpy as np
from numpy.typing import NDArray

from sfumato.allocation.allocate import allocate, checked_weights
from sfumato.allocation.distributions import Distribution
from sfumato.allocation.feasible import largest_reading
from sfumato.allocation.online import OnlineAllocator
from sfumato.allocation.topup import TopUpAllocator
from sfumato.errors import InvalidInput
from sfumato.stream.past import Ending, Later, Past

AllocationName = Literal["even", "sample", "offline", "online", "top-up"]

# What is left of a window below this part of ε is left alone: a release with it would drown in its noise.
SMALLEST_SHARE = Fraction(1, 10**6)
# A raise by less than this part is not made: every level is a release of its own, to be stored and sent.
SMALLEST_RAISE = Fraction(1, 1000)


@dataclass(frozen=True)
class Commitment:
    """The budget of a step, zero for none, and what the online algorithm would give it where that is kept."""

    epsilon: Fraction
    floor: float | None = None


class Allocation(Protocol):
    """A way to divide the budget. `reach` is how many past steps it looks at."""

    @property
    def reach(self) -> int:
        """How many past steps `commit` looks at."""

    def weight(self, step: int, given: float | None) -> float:
        """The weight of a step, of which the caller may have said something."""

    def commit(self, past: Past, weight: float) -> Commitment:
        """The budget of the next step, of this weight."""

    def late(self, past: Past, later: Later, weight: float) -> Commitment:
        """The budget of a step that was passed over; zero where the windows that hold it have nothing left for it."""


@dataclass(frozen=True)
class _Windowed:
    """What all of them know."""

    window: int
    epsilon: Fraction

    @property
    def reach(self) -> int:
        """The steps that share a window with the next one."""
        return self.window - 1

    def weight(self, step: int, given: float | None) -> float:
        """What the caller says, 1 by default."""
        del step
        return 1.0 if given is None else given

    def room(self, past: Past) -> Fraction:
        """What is left of ε in the window that ends with the next step."""
        return self.epsilon - sum(past.recent(self.window - 1), Fraction(0))

    def commit(self, past: Past, weight: float) -> Commitment:
        """The budget of the next step, of this weight."""
        raise NotImplementedError

    def late(self, past: Past, later: Later, weight: float) -> Commitment:
        """What it would have got on time, or what the fullest window that holds it has left."""
        on_time = replace(self).commit(past, weight)  # by a division of its own: what is to come keeps its plan
        return Commitment(self._worth(min(on_time.epsilon, self.room_around(past.budgets, later.budgets))))

    def room_around(self, before: Sequence[Fraction], after: Sequence[Fraction]) -> Fraction:
        """What is left of ε in the fullest window that holds a step, given what was spent just before and after it."""
        span = self.window - 1
        around = [*before[max(len(before) - span, 0) :], Fraction(0), *after[:span]]
        return self.epsilon - max(sum(around[i : i + self.window], Fraction(0)) for i in range(len(around)))

    def _worth(self, budget: Fraction) -> Fraction:
        """A budget, or none where its release would drown in its noise."""
        return budget if budget >= SMALLEST_SHARE * self.epsilon / self.window else Fraction(0)


@dataclass(frozen=True)
class Even(_Windowed):
    """The same for every step: ε over the steps of a window."""

    def commit(self, past: Past, weight: float) -> Commitment:
        """ε / window, or what is left where another allocation went before."""
        return Commitment(self._worth(min(self.epsilon / self.window, self.room(past))) if weight > 0 else Fraction(0))


@dataclass(frozen=True)
class Sample(_Windowed):
    """All of ε for one step, then nothing until that step has left the window."""

    def commit(self, past: Past, weight: float) -> Commitment:
        """ε if nothing is spent in the window, else none."""
        return Commitment(self.epsilon if weight > 0 and self.room(past) == self.epsilon else Fraction(0))


@dataclass(frozen=True)
class Offline(_Windowed):
    """The optimum when all weights are known in advance.

    A step that was to be published and was not frees its budget: the steps that are left are then divided anew.
    """

    weights: tuple[float, ...]

    @cached_property
    def _planned(self) -> NDArray[np.float64]:
        """The budget of every step, as far as it is known what is published."""
        return allocate(self.weights, window=self.window, epsilon=self.epsilon)

    def weight(self, step: int, given: float | None) -> float:
        """What was said in advance; another one now is refused, except 0, which skips the step."""
        if step >= len(self.weights):
            raise InvalidInput(
                f"time: this is step {step + 1} of the stream, and weights has {len(self.weights)}. Nothing was drawn "
                "or recorded. Open the stream again with a weight for every step to come."
            )
        known = self.weights[step]
        if given is not None and given not in (0, known):
            raise InvalidInput(
                f"weight={given!r} differs from weights[{step}]={known!r}, by which the budget was divided. Nothing "
                "was drawn or recorded. Leave weight out, or use allocation='online'."
            )
        return known if given is None else given

    def commit(self, past: Past, weight: float) -> Commitment:
        """What the plan gives this step."""
        if weight == 0:
            return Commitment(Fraction(0))
        recent = past.recent(self.window - 1)
        start = past.step - len(recent)
        if [float(value) for value in recent] != self._planned[start : past.step].tolist():
            self._planned[start:] = allocate(
                self.weights[start:], window=self.window, epsilon=self.epsilon, committed=recent
            )
        return Commitment(Fraction(float(self._planned[past.step])))


@dataclass(frozen=True)
class Online(_Windowed):
    """What is best on average over the futures that a distribution draws."""

    distribution: Distribution

    @cached_property
    def allocator(self) -> OnlineAllocator:
        """The algorithm."""
        return OnlineAllocator(distribution=self.distribution, window=self.window, epsilon=self.epsilon)

    def commit(self, past: Past, weight: float) -> Commitment:
        """The budget with the smallest expected error."""
        history = Ending(past.step, past.recent(self.window - 1))
        return Commitment(Fraction(self.allocator.step(history, weight)))


@dataclass(frozen=True)
class TopUp(_Windowed):
    """Less at first, and more when it is known what the windows of a step were needed for."""

    distribution: Distribution

    @cached_property
    def allocator(self) -> TopUpAllocator:
        """The algorithm, on top of the online one."""
        online = OnlineAllocator(distribution=self.distribution, window=self.window, epsilon=self.epsilon)
        return TopUpAllocator(online=online)

    @property
    def reach(self) -> int:
        """Steps wait a few windows for their raise, and their own windows begin before them."""
        return (self.allocator.patience + 2) * self.window

    def commit(self, past: Past, weight: float) -> Commitment:
        """A part of the online budget."""
        floor = self.allocator.online.step(Ending(past.step, past.floors), weight)
        first = self.allocator.step(past.budgets, (*past.weights, weight), floor=(*past.floors, floor))
        return Commitment(Fraction(first), floor)

    def late(self, past: Past, later: Later, weight: float) -> Commitment:
        """The online budget at once, of what is neither spent nor kept for raising the steps around it."""
        online = self.allocator.online
        before, after = ([largest_reading(value) for value in floors] for floors in (past.floors, later.floors))
        kept = self.room_around(before, after) * Fraction(2) ** online.lattice.exponent
        least = Fraction(max(math.floor(kept) - 1, 0)) / Fraction(2) ** online.lattice.exponent  # by either reading
        floor = min(Fraction(online.step(Ending(past.step, past.floors), weight)), least)
        budget = self._worth(min(floor, self.room_around(past.budgets, later.budgets)))
        return Commitment(budget, float(floor))

    def raises(self, past: Past, *, ended: bool) -> list[tuple[int, Fraction]]:
        """(place in `past`, new budget) of the steps that are raised now, oldest first."""
        if not past.budgets:
            return []
        raised = self.allocator.raises(past.budgets, past.weights, floor=past.floors, ended=ended)
        budgets = [Fraction(float(value)) for value in raised]
        return [
            (place, value) for place, value in enumerate(budgets) if value > (1 + SMALLEST_RAISE) * past.budgets[place]
        ]


def choose(name: Any, window: int, epsilon: Fraction, weights: Any, distribution: Any) -> Allocation:
    """The allocation of a name, or a refusal of what does not go with it."""
    if name not in get_args(AllocationName):
        raise InvalidInput(
            f"allocation={name!r} is not one of {', '.join(map(repr, get_args(AllocationName)))}. Nothing was drawn or "
            "recorded."
        )
    _require(name, "weights", weights is not None, name == "offline", "[1, 0, 1, …], one for every step")
    _require(name, "distribution", distribution is not None, name in ("online", "top-up"), "sf.Bernoulli(0.5)")
    if distribution is not None and not callable(getattr(distribution, "sample", None)):
        raise InvalidInput(
            f"distribution={type(distribution).__name__} is not a distribution of weights. Nothing was drawn or "
            "recorded. Use sf.Bernoulli(0.5), sf.Periodic(…), sf.Markov(…) or sf.Empirical(…)."
        )
    makers: dict[str, Callable[[], Allocation]] = {
        "even": lambda: Even(window, epsilon),
        "sample": lambda: Sample(window, epsilon),
        "offline": lambda: Offline(window, epsilon, _known(weights)),
        "online": lambda: Online(window, epsilon, distribution),
        "top-up": lambda: TopUp(window, epsilon, distribution),
    }
    return makers[name]()


def _known(weights: Any) -> tuple[float, ...]:
    known = checked_weights(weights)
    if known.ndim != 1 or not known.any():
        raise InvalidInput(
            f"weights of shape {known.shape} must be one sequence in which some step weighs more than 0. Nothing was "
            "drawn or recorded. Give the weight of every step, 0 where nothing is published."
        )
    return tuple(known.tolist())


def _require(name: str, argument: str, given: bool, needed: bool, example: str) -> None:
    if needed and not given:
        raise InvalidInput(
            f"allocation={name!r} needs {argument}=…. Nothing was drawn or recorded. Give {argument}={example}, or use "
            "allocation='even'."
        )
    if given and not needed:
        raise InvalidInput(
            f"{argument} does not go with allocation={name!r}, which would not look at it. Nothing was drawn or "
            f"recorded. Leave {argument} out, or use another allocation."
        )
