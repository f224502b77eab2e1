"""Guesses that tell two samples apart, and what they prove.

**The game.** A coin chooses one of two neighbours, the mechanism runs on it, and whoever sees the output says which
one it was, or passes. Of an ε-private mechanism no output speaks for one side by odds of more than e^ε, so that every
guess is right with a probability of at most e^ε / (1 + e^ε), however it is made. Guesses are independent of each other:
given how many there are, the right ones are binomial. Clopper and Pearson's lower bound s on their probability proves a
loss of at least log(s / (1 - s)); it is too large with probability at most 1 - confidence, whatever the mechanism is.

Guessing uses both tails of a score at once. An event and its complement, each bounded by itself, take twice the runs or
more for the same proof. How to guess is learned on other runs than those that are counted. (Bichsel, Steffen,
Bogunovic, Vechev: DP-Sniper, S&P 2021, for events that are learned; Steinke, Nasr, Jagielski: Privacy auditing with one
training run, NeurIPS 2023, for guesses that may pass.)
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from sfumato._types import Floats

RIDGE_PER_ROW = 1e-4  # of the logistic regression
NEWTON_STEPS = 12
MOST_CATEGORIES = 6  # different values of a feature, up to which each gets a column
TAIL_QUANTILES = (0.0, 0.001, 0.003, 0.01, 0.02, 0.035)
THRESHOLD_QUANTILES = np.array(
    [*TAIL_QUANTILES, *np.linspace(0.05, 0.95, 19), *(1 - level for level in reversed(TAIL_QUANTILES))]
)
"""Of a feature, tried as thresholds for either guess."""
SHARE_TRUSTED = 0.5  # of the runs a guess is chosen on: the best of many looks better than it is


def odds_bound(right: int, guesses: int, confidence: float) -> float:
    """A lower bound on log(s / (1 - s)) from `right` of so many guesses; minus infinity where none was right."""
    from scipy.special import betaincinv

    if right == 0:
        return -math.inf
    low = float(betaincinv(right, guesses - right + 1, 1.0 - confidence))
    return math.log(low) - math.log1p(-low) if low > 0 else -math.inf


def ratio_bound(hits: int, runs: int, hits_after: int, runs_after: int, confidence: float) -> float:
    """A lower bound on log(p/p') from two binomial counts; minus infinity where the first event was never seen."""
    from scipy.special import betaincinv

    if hits == 0:
        return -math.inf
    alpha = (1.0 - confidence) / 2
    low = float(betaincinv(hits, runs - hits + 1, alpha))
    high = 1.0 if hits_after == runs_after else float(betaincinv(hits_after + 1, runs_after - hits_after, 1 - alpha))
    return math.log(low / high) if low > 0 else -math.inf


@dataclass(frozen=True, eq=False)
class Encoder:
    """Columns for a linear classifier, from what the learning part looked like.

    Laplace noise around two centres has a log-ratio that is linear between them and constant outside: every feature is
    clipped to the span between its two medians. Features of few values are split into one column a value. A nominal
    feature is a name, written as a number: how much likelier it was on one side than on the other takes its place. What
    was always the same is left out.
    """

    places: tuple[int, ...]
    low: Floats
    high: Floats
    categories: tuple[tuple[int, float], ...]
    named: tuple[tuple[int, Floats, Floats], ...] = ()

    @classmethod
    def of(cls, before: Floats, after: Floats, nominal: Sequence[int] = ()) -> Encoder:
        """Learned from two tables of features, of which some are nominal."""
        low, high = (getattr(np.concatenate([before, after]), end)(axis=0) for end in ("min", "max"))
        varied = np.flatnonzero(low < high).tolist()
        places = [j for j in varied if j not in nominal]
        first, second = np.median(before[:, places], axis=0), np.median(after[:, places], axis=0)
        spread = np.maximum(np.abs(before[:, places] - first).mean(axis=0), 1e-9)
        same = first == second  # then what tells them apart is not their place: clip widely
        low = np.where(same, first - spread, np.minimum(first, second))
        high = np.where(same, first + spread, np.maximum(first, second))
        categories = []
        for j in places:
            values = np.unique(np.concatenate([before[:, j], after[:, j]]))
            if 1 < len(values) <= MOST_CATEGORIES:
                categories += [(j, float(value)) for value in values]
        named = tuple((j, *_weights_of_names(before[:, j], after[:, j])) for j in nominal if j in varied)
        return cls(tuple(places), low, high, tuple(categories), named)

    def columns(self, table: Floats) -> Floats:
        """The columns, and a constant one."""
        clipped = (np.clip(table[:, self.places], self.low, self.high) - self.low) / (self.high - self.low)
        flags = [table[:, j] == value for j, value in self.categories]
        told = []
        for j, names, weights in self.named:
            at = np.minimum(np.searchsorted(names, table[:, j]), len(names) - 1)
            told.append(np.where(names[at] == table[:, j], weights[at], 0.0))  # of a name never met nothing is known
        return np.column_stack([np.ones(len(table)), clipped, *flags, *told]).astype(np.float64)


@dataclass(frozen=True, eq=False)
class Guess:
    """ "The first" where a value is at least `high`, "the second" where it is at most `low`; pass in between.

    The value is the classifier's score, or a single feature, or a feature's negative.
    """

    encoder: Encoder
    weights: Floats
    feature: int
    sign: int
    low: float
    high: float

    def values(self, table: Floats) -> Floats:
        """What the guess goes by, for every run."""
        return self.encoder.columns(table) @ self.weights if self.feature < 0 else self.sign * table[:, self.feature]

    def describe(self, names: list[str]) -> str:
        """In words."""
        what = "the classifier's score" if self.feature < 0 else names[self.feature]
        low, high = self.low * self.sign, self.high * self.sign
        above, below = ("≥", "≤") if self.sign > 0 else ("≤", "≥")
        ways = [
            f"“the {side}” where {what} {relation} {limit:.6g}"
            for side, relation, limit in (("first", above, high), ("second", below, low))
            if math.isfinite(limit)
        ]
        return " and ".join(ways) if ways else "no guess"

    def count(self, before: Floats, after: Floats) -> tuple[int, int]:
        """(right guesses, guesses) on runs that it was not learned from."""
        one, other = self.values(before), self.values(after)
        right = int((one >= self.high).sum() + (other <= self.low).sum())
        wrong = int((one <= self.low).sum() + (other >= self.high).sum())
        return right, right + wrong


def learn(
    before: Floats, after: Floats, runs: int, confidence: float, nominal: Sequence[int] = ()
) -> tuple[float, Guess]:
    """(what it promises to prove on so many further runs, the guess) with the largest promise."""
    halves = len(before) // 2, len(after) // 2
    encoder = Encoder.of(before[: halves[0]], after[: halves[1]], nominal)
    weights = _logistic(encoder.columns(before[: halves[0]]), encoder.columns(after[: halves[1]]))
    # A score looks too good on the runs that it was fitted to; features were not fitted.
    rest = before[halves[0] :], after[halves[1] :]
    score = [(encoder.columns(table) @ weights)[:, None] for table in rest]
    gain, _, sign, low, high = _best_thresholds(score[0], score[1], runs, confidence)
    single, feature, way, least, most = _best_thresholds(before, after, runs, confidence)
    if single > gain:
        return single, Guess(encoder, weights, feature, way, least, most)
    return gain, Guess(encoder, sign * weights, -1, 1, low, high)


def _weights_of_names(before: Floats, after: Floats) -> tuple[Floats, Floats]:
    """(the names that were met, how much likelier each was before than after, as a logarithm); rare ones count less."""
    names, which = np.unique(np.concatenate([before, after]), return_inverse=True)
    first = np.bincount(which[: len(before)], minlength=len(names)) + 0.5
    second = np.bincount(which[len(before) :], minlength=len(names)) + 0.5
    return names, np.log(first / second) - np.log((len(before) + 1) / (len(after) + 1))


def _best_thresholds(one: Floats, other: Floats, runs: int, confidence: float) -> tuple[float, int, int, float, float]:
    """(expected bound, column, its sign, low, high) of the best two thresholds; either may be out of reach."""
    seen = len(one) + len(other)
    share = min(runs, SHARE_TRUSTED * seen) / seen  # what was seen rarely is known badly, however many runs will follow
    pooled = np.sort(np.concatenate([one, other]).T, axis=1)
    cuts = pooled[:, np.rint(THRESHOLD_QUANTILES * (seen - 1)).astype(np.int64)]
    ends = np.full((len(cuts), 1), np.inf)
    high, low = np.hstack([cuts, ends]), np.hstack([-ends, cuts])
    above, below = [], []
    for table in (one, other):
        columns = np.sort(table.T, axis=1)
        above.append(len(table) - _positions(columns, high, "left"))
        below.append(_positions(columns, low, "right"))
    right = share * (above[0][:, :, None] + below[1][:, None, :])
    wrong = share * (above[1][:, :, None] + below[0][:, None, :])
    apart = high[:, :, None] > low[:, None, :]
    gains = np.stack(
        [np.where(apart, _expected(*pair, confidence), -np.inf) for pair in ((right, wrong), (wrong, right))]
    )
    way, column, i, j = np.unravel_index(int(gains.argmax()), gains.shape)
    gain, least, most = float(gains[way, column, i, j]), float(low[column, j]), float(high[column, i])
    # The negative of a value turns the two guesses round.
    return (gain, int(column), 1, least, most) if way == 0 else (gain, int(column), -1, -most, -least)


def _expected(right: Floats, wrong: Floats, confidence: float) -> Floats:
    """What so many guesses prove, about. Half a wrong one is added: a part without any does not prove everything."""
    from scipy.special import ndtri

    guesses = right + wrong + 0.5
    least = _wilson(right / guesses, guesses, float(ndtri(confidence)))
    return np.log(np.maximum(least, 1e-300)) - np.log1p(-least)


def _positions(columns: Floats, cuts: Floats, side: Literal["left", "right"]) -> Floats:
    """For every column how many of its sorted values lie below its cuts, or at most at them."""
    return np.array([np.searchsorted(column, at, side=side) for column, at in zip(columns, cuts, strict=True)], float)


def _wilson(p: Floats, runs: Floats, deviate: float) -> Floats:
    """Wilson's lower bound: close to Clopper and Pearson's, also near zero and one, and fast. It only chooses."""
    square = deviate**2 / runs
    return (p + square / 2 - deviate * np.sqrt(p * (1 - p) / runs + square / (4 * runs))) / (1 + square)


def _logistic(before: Floats, after: Floats) -> Floats:
    """Ridge logistic regression by Newton's method: scores high where the first sample is likelier."""
    table = np.concatenate([before, after])
    label = np.concatenate([np.ones(len(before)), np.zeros(len(after))])
    weights = np.zeros(table.shape[1])
    for _ in range(NEWTON_STEPS):
        p = 1 / (1 + np.exp(-np.clip(table @ weights, -30, 30)))
        slope = table.T @ (label - p) - RIDGE_PER_ROW * len(table) * weights
        curve = (table * (p * (1 - p))[:, None]).T @ table
        curve[np.diag_indices_from(curve)] += RIDGE_PER_ROW * len(table) + 1e-9
        step = np.linalg.solve(curve, slope)
        weights = weights + step
        if np.abs(step).max() < 1e-4:
            break
    return weights
