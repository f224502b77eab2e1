"""What a publisher knows about the weights to come: distributions from which futures are drawn.

Weights are public, and so is everything here: samples come from an ordinary generator seeded with public numbers, so
that the same history always leads to the same budget, also after a restart. Nothing here is noise, and nothing here
may be learned from private data, present or past.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import InvalidInput
from sfumato.exact import finite_float, positive_int

Array = NDArray[np.float64]


class Distribution(Protocol):
    """Anything that can draw futures."""

    def sample(self, count: int, horizon: int, *, step: int, weight: float | None, seed: int) -> Array:
        """`count` futures, one a row: the weights of the `horizon` steps that follow step number `step`.

        `weight` is the weight of that step. Whole sequences from the beginning follow step -1, of weight None.
        """


@dataclass(frozen=True)
class Bernoulli:
    """Every step is published with probability p, independently, at weight 1.

    >>> sf.Bernoulli(0.5).sample(2, 7, step=0, weight=1.0, seed=0).shape
    (2, 7)
    """

    p: float

    def __post_init__(self) -> None:
        _check_probability(self.p, "p")

    def sample(self, count: int, horizon: int, *, step: int, weight: float | None, seed: int) -> Array:
        """Independent coins: the past says nothing."""
        del weight
        return (_generator(seed, step).random((count, horizon)) < self.p).astype(np.float64)


@dataclass(frozen=True)
class Periodic:
    """The weights repeat: step i has weight pattern[i mod len(pattern)].

    >>> sf.Periodic([1, 0, 0]).sample(1, 5, step=0, weight=1.0, seed=0).tolist()
    [[0.0, 0.0, 1.0, 0.0, 0.0]]
    """

    pattern: tuple[float, ...]

    def __init__(self, pattern: Sequence[float]) -> None:
        object.__setattr__(self, "pattern", _checked_weights(pattern, "pattern"))

    def sample(self, count: int, horizon: int, *, step: int, weight: float | None, seed: int) -> Array:
        """The one future there is, `count` times."""
        del weight, seed
        future = np.resize(np.roll(self.pattern, -(step + 1)), horizon)
        return np.tile(future, (count, 1))


@dataclass(frozen=True)
class Markov:
    """A chain over a few levels of weight: row i of `transition` holds the probabilities of each level after level i.

    `Markov([0, 1], [[0.9, 0.1], [0.3, 0.7]])` is busy in bursts. A weight that is none of the levels counts as the
    nearest one; before the first step the chain is at its long-run frequencies.

    >>> sf.Markov([0, 1], [[0.9, 0.1], [0.3, 0.7]]).frequencies().round(2).tolist()
    [0.75, 0.25]
    """

    levels: tuple[float, ...]
    transition: tuple[tuple[float, ...], ...]

    def __init__(self, levels: Sequence[float], transition: Sequence[Sequence[float]]) -> None:
        object.__setattr__(self, "levels", _checked_weights(levels, "levels"))
        rows = tuple(
            tuple(finite_float(value, f"transition[{i}]") for value in row) for i, row in enumerate(transition)
        )
        object.__setattr__(self, "transition", rows)
        if len(rows) != len(self.levels) or any(len(row) != len(self.levels) for row in rows):
            raise InvalidInput(
                f"transition must have {len(self.levels)} rows of {len(self.levels)}, one for each level."
            )
        for i, row in enumerate(rows):
            if min(row) < 0 or abs(sum(row) - 1) > 1e-9:
                raise InvalidInput(f"transition[{i}]={list(row)} must be probabilities that sum to 1.")

    def sample(self, count: int, horizon: int, *, step: int, weight: float | None, seed: int) -> Array:
        """Walks of the chain from the level of the present weight."""
        levels, cumulative = np.array(self.levels), np.cumsum(self.transition, axis=1)
        uniform = _generator(seed, step).random((horizon + 1, count))
        if weight is None:
            state = np.searchsorted(np.cumsum(self.frequencies())[:-1], uniform[0], side="right")
            # The frequencies are those of the first step itself: it is drawn, not walked to.
            walk = [state] if horizon else []
        else:
            state = np.full(count, int(np.argmin(np.abs(levels - weight))))
            walk = []
        for i in range(len(walk), horizon):
            state = (uniform[i + 1][:, None] >= cumulative[state][:, :-1]).sum(axis=1)
            walk.append(state)
        return levels[np.array(walk, dtype=np.int64).reshape(horizon, count).T]

    def frequencies(self) -> Array:
        """How often each level occurs in the long run (one answer of several when the chain falls apart)."""
        size = len(self.levels)
        equations = np.vstack([np.array(self.transition).T - np.eye(size), np.ones(size)])
        found = np.linalg.lstsq(equations, np.append(np.zeros(size), 1.0), rcond=None)[0].clip(min=0)
        return found / found.sum()


@dataclass(frozen=True)
class Empirical:
    """A record of public weights, replayed from places that look like the present one.

    A future starts after a random place in the record whose step was published or idle as the present step is, runs on
    and wraps around: bursts and gaps keep their lengths.

    >>> sf.Empirical([1, 0, 1, 1, 0]).sample(3, 10, step=0, weight=1.0, seed=0).shape
    (3, 10)
    """

    record: tuple[float, ...]

    def __init__(self, record: Sequence[float]) -> None:
        object.__setattr__(self, "record", _checked_weights(record, "record"))

    def sample(self, count: int, horizon: int, *, step: int, weight: float | None, seed: int) -> Array:
        """Runs of the record, circular."""
        record = np.array(self.record)
        alike = np.arange(record.size) if weight is None else np.flatnonzero((record > 0) == (weight > 0))
        if not alike.size:
            alike = np.arange(record.size)
        starts = _generator(seed, step).choice(alike, count)
        return record[(starts[:, None] + 1 + np.arange(horizon)) % record.size]


def draw(distribution: Distribution, *, count: int, length: int, seed: int = 0) -> Array:
    """Whole sequences of weights from the beginning, one a row: for simulations."""
    return distribution.sample(
        positive_int(count, "count"), positive_int(length, "length"), step=-1, weight=None, seed=seed
    )


def _generator(seed: int, step: int) -> np.random.Generator:
    return np.random.default_rng([seed, step + 1])


def _check_probability(value: object, name: str) -> None:
    if not 0 <= finite_float(value, name) <= 1:
        raise InvalidInput(f"{name}={value!r} must be a probability from 0 to 1. Nothing was drawn or recorded.")


def _checked_weights(values: Sequence[float], name: str) -> tuple[float, ...]:
    weights = tuple(finite_float(value, f"{name}[{i}]") for i, value in enumerate(values))
    if not weights:
        raise InvalidInput(f"{name} is empty. Nothing was drawn or recorded. Give at least one weight.")
    if min(weights) < 0:
        raise InvalidInput(f"{name}={list(weights)} must not hold negative weights. Nothing was drawn or recorded.")
    return weights
