"""Events that tell two samples apart, and what they prove.

An event is learned on one part of the runs and counted on another, so that its two counts are binomial with unknown
probabilities p and p'. Clopper and Pearson's bounds, each at half of the error allowed, give `log(p/p') ≥ log(low(p) /
high(p'))`: a lower bound on the privacy loss that is too large with probability at most 1 - confidence, whatever the
mechanism is. (Bichsel, Steffen, Bogunovic, Vechev: DP-Sniper, S&P 2021, with a simpler classifier.)
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

RIDGE = 1e-2
ROUNDS = 12
FEW = 6  # different values of a feature that count as categories


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
    clipped to the span between its two medians. Features of few values are split into one column a value.
    """

    low: Floats
    high: Floats
    categories: tuple[tuple[int, float], ...]

    @classmethod
    def of(cls, before: Floats, after: Floats) -> Encoder:
        """Learned from two tables of features."""
        first, second = np.median(before, axis=0), np.median(after, axis=0)
        spread = np.maximum(np.abs(before - first).mean(axis=0), 1e-9)
        same = first == second  # then what tells them apart is not their place: clip widely
        low = np.where(same, first - spread, np.minimum(first, second))
        high = np.where(same, first + spread, np.maximum(first, second))
        categories = []
        for j in range(before.shape[1]):
            values = np.unique(np.concatenate([before[:, j], after[:, j]]))
            if 1 < len(values) <= FEW:
                categories += [(j, float(value)) for value in values]
        return cls(low, high, tuple(categories))

    def columns(self, table: Floats) -> Floats:
        """The columns, and a constant one."""
        clipped = (np.clip(table, self.low, self.high) - self.low) / (self.high - self.low)
        flags = [table[:, j] == value for j, value in self.categories]
        return np.column_stack([np.ones(len(table)), clipped, *flags]).astype(np.float64)


@dataclass(frozen=True, eq=False)
class Event:
    """`feature ≥ threshold` (or ≤), the feature being the classifier's score or a single one."""

    encoder: Encoder
    weights: Floats
    feature: int
    threshold: float
    above: bool
    swapped: bool  # whether it is likelier for the second sample

    def holds(self, table: Floats) -> Bools:
        """For every run."""
        values = self.encoder.columns(table) @ self.weights if self.feature < 0 else table[:, self.feature]
        return values >= self.threshold if self.above else values <= self.threshold

    def describe(self, names: list[str]) -> str:
        """In words."""
        what = "the classifier's score" if self.feature < 0 else names[self.feature]
        return f"{what} {'≥' if self.above else '≤'} {self.threshold:.6g}"

    def bound(self, before: Floats, after: Floats, confidence: float) -> tuple[float, int, int]:
        """(the lower bound on the loss, hits before, hits after) on runs that it was not learned from."""
        hits, hits_after = int(self.holds(before).sum()), int(self.holds(after).sum())
        first, second = (hits, len(before)), (hits_after, len(after))
        if self.swapped:
            first, second = second, first
        return ratio_bound(*first, *second, confidence), hits, hits_after


def learn(before: Floats, after: Floats, runs: int, confidence: float) -> tuple[float, Event]:
    """(what it promises to prove on so many further runs, the event) with the largest promise."""
    from scipy.special import ndtri

    half = len(before) // 2
    encoder = Encoder.of(before[:half], after[:half])
    weights = _logistic(encoder.columns(before[:half]), encoder.columns(after[:half]))
    before, after = before[half:], after[half:]  # a score looks too good on the runs that it was fitted to
    scores = encoder.columns(before) @ weights, encoder.columns(after) @ weights
    best = (-math.inf, Event(encoder, weights, -1, 0.0, True, False))
    runs = min(runs, 2 * len(before))  # what was seen rarely is known badly, however many runs will follow
    deviate = float(ndtri(1 - (1 - confidence) / 2))
    for feature in range(-1, before.shape[1]):
        one, other = scores if feature < 0 else (before[:, feature], after[:, feature])
        for above in (True, False):
            threshold, gain, swapped = _best_threshold(one, other, above, runs, deviate)
            if gain > best[0]:
                best = (gain, Event(encoder, weights, feature, threshold, above, swapped))
    return best


def _best_threshold(one: Floats, other: Floats, above: bool, runs: int, deviate: float) -> tuple[float, float, bool]:
    """(threshold, expected bound, swapped) of the best event on one feature."""
    cuts = np.unique(np.quantile(np.concatenate([one, other]), np.linspace(0, 1, 201)))
    hits = [np.searchsorted(np.sort(values), cuts, side="left" if above else "right") for values in (one, other)]
    shares = [((len(v) - h if above else h) + 0.5) / (len(v) + 1) for v, h in zip((one, other), hits, strict=True)]
    ends = [_wilson(share, runs, deviate) for share in shares]
    gains = [np.log(np.maximum(ends[i][0], 1e-300) / ends[1 - i][1]) for i in (0, 1)]
    swapped = bool(gains[1].max() > gains[0].max())
    index = int(gains[swapped].argmax())
    return float(cuts[index]), float(gains[swapped][index]), swapped


def _wilson(p: Floats, runs: int, deviate: float) -> tuple[Floats, Floats]:
    """Wilson's bounds: close to Clopper and Pearson's, also where p is near zero, and fast. They only choose events."""
    square = deviate**2 / runs
    middle, half = p + square / 2, deviate * np.sqrt(p * (1 - p) / runs + square / (4 * runs))
    return (middle - half) / (1 + square), (middle + half) / (1 + square)


def _logistic(before: Floats, after: Floats) -> Floats:
    """Ridge logistic regression by Newton's method: scores high where the first sample is likelier."""
    table = np.concatenate([before, after])
    label = np.concatenate([np.ones(len(before)), np.zeros(len(after))])
    weights = np.zeros(table.shape[1])
    for _ in range(ROUNDS):
        p = 1 / (1 + np.exp(-np.clip(table @ weights, -30, 30)))
        slope = table.T @ (label - p) - RIDGE * len(table) * 0.01 * weights
        curve = (table * (p * (1 - p))[:, None]).T @ table
        curve[np.diag_indices_from(curve)] += RIDGE * len(table) * 0.01 + 1e-9
        step = np.linalg.solve(curve, slope)
        weights = weights + step
        if np.abs(step).max() < 1e-4:
            break
    return weights
