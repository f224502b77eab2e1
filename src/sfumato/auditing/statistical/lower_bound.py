"""The statistical audit, for any mechanism: run it on neighbours, learn what tells them apart, count it on fresh runs.

Many made-up neighbours get a few runs each; the better half gets twice as many, and so on until one pair is left. Its
runs, and some more, teach how to guess; fresh runs count the guesses. Only the last ones enter the bound, so the
choices before cost no confidence.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from sfumato._types import Floats, Integers
from sfumato.auditing.databases import Pair, pair
from sfumato.auditing.exact.question import Question
from sfumato.auditing.statistical.audit_source import AuditSource
from sfumato.auditing.statistical.distinguishers import learn, odds_bound
from sfumato.auditing.statistical.features import Features
from sfumato.mechanism import Mechanism

PAIRS_TRIED = 32
SHARE_FOR_CHOOSING = 0.35  # of the runs: the pair
SHARE_FOR_LEARNING = 0.2  # of the runs: how to guess
SHARE_FOR_TIMING = 0.02  # of the seconds: how long a run takes
FEWEST_RUNS = 60  # in a part, on both neighbours together
CONFIDENCE_WHILE_CHOOSING = 0.99  # with which neighbours are compared; it does not enter the bound


class Game(Protocol):
    """What is run: a mechanism, or anybody's function; and what whoever sees an output looks at."""

    @property
    def nominal(self) -> Sequence[int]:
        """The features that are names, written as numbers."""

    def names(self, neighbours: Any) -> list[str]:
        """What each feature is."""

    def played(self, neighbours: Any, first: int, second: int) -> tuple[Floats, Floats]:
        """The features of so many runs on the first of two neighbours, and of so many on the second, a row each."""


@dataclass(frozen=True)
class Found:
    """What the runs prove."""

    epsilon: float
    pair: Any
    event: str
    runs: int
    pairs: int


def search(
    game: Game,
    tried: Sequence[Any],
    *,
    samples: int,
    seconds: float,
    confidence: float,
    seed: int,
) -> Found:
    """The largest loss that so many runs (on each of two neighbours, on average), or so much time, prove."""
    runner = _Runner(game, np.random.default_rng(seed))
    affordable = min(2 * samples, max(3 * FEWEST_RUNS, int(seconds / runner.pace(tried[0], seconds))))
    began, runner.runs = time.thread_time(), 0
    looking = int(affordable * SHARE_FOR_CHOOSING)
    tried = tried[: max(1, looking // (FEWEST_RUNS * _rungs(len(tried))))]
    chosen, table = _most_telling(runner, tried, looking)
    table = table.more(runner.both(chosen, max(FEWEST_RUNS, int(affordable * SHARE_FOR_LEARNING))))
    _, guess = learn(table.before, table.after, affordable, confidence, game.nominal)
    # The clock may run faster than the first runs promised. How many runs are counted must not depend on how they go:
    # it is settled here, before the first of them.
    spent = max(time.thread_time() - began, 1e-9)
    fresh = min(2 * samples - runner.runs, int((seconds - spent) * runner.runs / spent))
    counted = runner.both(chosen, max(FEWEST_RUNS, fresh))
    right, guesses = guess.count(counted.before, counted.after)
    bound = odds_bound(right, guesses, confidence)
    words = (
        f"guessing {guess.describe(game.names(chosen))} was right {right:,} times in {guesses:,}, "
        f"in {counted.runs:,} runs on either by chance"
    )
    return Found(max(0.0, bound), chosen, words, counted.runs, len(tried))


def _most_telling(runner: _Runner, tried: Sequence[Any], runs: int) -> tuple[Any, _Tables]:
    """The pair that is told apart best, and its runs: the better half goes on, with twice the runs each."""
    alive = {i: _Tables.empty() for i in range(len(tried))}
    rungs = _rungs(len(tried))
    while len(alive) > 1:
        each = max(FEWEST_RUNS, runs // (rungs * len(alive)))
        alive = {i: table.more(runner.both(tried[i], each)) for i, table in alive.items()}
        promise = {i: _promise(table, runner.game.nominal) for i, table in alive.items()}
        ranked = sorted(alive, key=lambda i: -promise[i])
        alive = {i: alive[i] for i in ranked[: (len(alive) + 1) // 2]}
    ((chosen, table),) = alive.items()
    return tried[chosen], table


def _promise(table: _Tables, nominal: Sequence[int]) -> float:
    """What so many further runs would prove, about."""
    return learn(table.before, table.after, table.runs, CONFIDENCE_WHILE_CHOOSING, nominal)[0]


def _rungs(pairs: int) -> int:
    """How often they are halved until one is left."""
    return max(1, (pairs - 1).bit_length())


def neighbours(edges: Integers, databases: Sequence[Integers], records: int, rng: np.random.Generator) -> list[Pair]:
    """Some pairs: first, last and random edges, each on another database; an edge to ⊥ wherever there is one."""
    picked = [0, len(edges) - 1, *rng.permutation(len(edges)).tolist()]
    absent = np.flatnonzero(edges[:, 1] < 0)
    picked[1:1] = absent[:1].tolist() + absent[-1:].tolist()
    order = list(dict.fromkeys(picked))
    found = []
    for turn in range(PAIRS_TRIED):
        edge = edges[order[turn % len(order)]]
        base = databases[(turn + turn // len(order)) % len(databases)]
        found.append(pair(base, (int(edge[0]), int(edge[1])), records))
    return found


@dataclass(frozen=True, eq=False)
class _Tables:
    """Features of runs on either of two neighbours."""

    before: Floats
    after: Floats

    @classmethod
    def empty(cls) -> _Tables:
        return cls(np.empty((0, 0)), np.empty((0, 0)))

    @property
    def runs(self) -> int:
        return len(self.before) + len(self.after)

    def more(self, other: _Tables) -> _Tables:
        if not self.before.size:
            return other
        return _Tables(np.concatenate([self.before, other.before]), np.concatenate([self.after, other.after]))


@dataclass(frozen=True, eq=False)
class MechanismGame:
    """A mechanism of the library, run with fast random words from a seed."""

    mechanism: Mechanism
    public: bool
    source: AuditSource
    nominal: tuple[int, ...] = ()

    @classmethod
    def of(cls, question: Question, seed: int) -> MechanismGame:
        """The mechanism that a question is about."""
        return cls(question.mechanism, question.total_is_public, AuditSource(seed))

    def names(self, neighbours: Pair) -> list[str]:
        """Cells, sums, parities, digits."""
        return Features(self.mechanism, neighbours.edge).names()

    def played(self, neighbours: Pair, first: int, second: int) -> tuple[Floats, Floats]:
        """All runs on one side, then all on the other: they know nothing of each other."""
        return self._runs(neighbours, neighbours.before, first), self._runs(neighbours, neighbours.after, second)

    def _runs(self, neighbours: Pair, counts: Integers, runs: int) -> Floats:
        total = int(counts.sum()) if self.public else None
        mechanism = self.mechanism if total is None else self.mechanism.for_total(total)
        return Features(mechanism, neighbours.edge).table(counts, total, self.source, runs)


@dataclass(eq=False)
class _Runner:
    game: Game
    rng: np.random.Generator
    runs: int = 0

    def both(self, neighbours: Any, runs: int) -> _Tables:
        """So many runs, each on one of the two by the fall of a coin."""
        first = int(self.rng.binomial(runs, 0.5))
        self.runs += runs
        return _Tables(*self.game.played(neighbours, first, runs - first))

    def pace(self, neighbours: Any, seconds: float) -> float:
        """Seconds of computing a run, from a few."""
        self.both(neighbours, 4)  # tables and caches are filled before the clock counts
        began, runs, spent = time.thread_time(), 0, 0.0
        while spent < SHARE_FOR_TIMING * seconds and runs < FEWEST_RUNS:
            self.both(neighbours, 6)
            runs, spent = runs + 6, time.thread_time() - began
        return max(spent, 1e-9) / runs
