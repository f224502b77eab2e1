"""The joint law of a few figures: the noise that they share, and that which each has alone.

**What it rests on.** Every figure of a release is a sum of its cells, and its noise a sum Σ c·η over the release's
independent noises. A combination of figures, `a·x + b·y`, has the coefficients a·c + b·d: it is one more sum of the
same noises, whose law is known (`sfumato.release.laws`). Noises of two releases are independent: each brings its own.

Most noises reach some figures all alike. They are counted, so that a law is a short list: these coefficients, so often.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

import numpy as np

from sfumato._types import Floats, Integers
from sfumato.figures.reading import Reading
from sfumato.figures.weights import CHUNK, Part, Weights, Which
from sfumato.mechanism import NoiseModel
from sfumato.noise import DiscreteLaplace
from sfumato.release.intervals import group_margins
from sfumato.release.laws import SMOOTH, Group, cautious, smooth_quantile

# Kinds of coefficients that are listed; beyond, their sums say enough.
MOST_KINDS = 2048
# Digits to which coefficients are told apart, of the largest.
_DIGITS = 12
_FIXED = np.random.default_rng(0).uniform(1, 2, 64)  # to tell columns apart by one number; any will do


@dataclass(frozen=True, eq=False)
class Term:
    """Noise of one law: (rows, figures, kinds) coefficients, and (rows, kinds) how often each kind occurs."""

    coefficients: Floats
    counts: Floats
    noise: DiscreteLaplace

    def at(self, rows: Integers) -> Term:
        """Some of the rows."""
        return Term(self.coefficients[rows], self.counts[rows], self.noise)

    def group(self, weights: Floats) -> Group:
        """The noise in sums of the figures."""
        return np.einsum("rk,rkm->rm", weights, self.coefficients), self.counts, self.noise

    def powers(self, weights: Floats) -> tuple[Floats, Floats, Floats]:
        """(Σ c², Σ c⁴, the largest |c|) in sums of the figures."""
        c, n, _ = self.group(weights)
        return (n * c**2).sum(axis=-1), (n * c**4).sum(axis=-1), np.abs(c).max(axis=-1, initial=0.0)


@dataclass(frozen=True, eq=False)
class Summed:
    """Noise of one law that reaches figures in too many ways to list: sums over the products of two coefficients, and
    of four, and the largest coefficient of each figure.
    """

    second: Floats
    fourth: Floats
    largest: Floats
    noise: DiscreteLaplace

    @classmethod
    def of(cls, rows: Sequence[tuple[Floats, Floats]], noise: DiscreteLaplace) -> Summed:
        """From (coefficients, how often each occurs) of every row."""
        second, fourth = [], []
        for c, n in rows:
            pairs = (c[:, None, :] * c[None, :, :]).reshape(len(c) ** 2, -1)
            second.append(pairs @ n)
            fourth.append((pairs * n) @ pairs.T)
        largest = [np.abs(c).max(axis=1, initial=0.0) for c, _ in rows]
        return cls(np.stack(second), np.stack(fourth), np.stack(largest), noise)

    def at(self, rows: Integers) -> Summed:
        """Some of the rows."""
        return Summed(self.second[rows], self.fourth[rows], self.largest[rows], self.noise)

    def powers(self, weights: Floats) -> tuple[Floats, Floats, Floats]:
        """(Σ c², Σ c⁴, at least the largest |c|) in sums of the figures."""
        pairs = (weights[:, :, None] * weights[:, None, :]).reshape(len(weights), -1)
        second = np.maximum((pairs * self.second).sum(axis=-1), 0.0)
        fourth = np.maximum(np.einsum("ri,rij,rj->r", pairs, self.fourth, pairs), 0.0)
        return second, fourth, (np.abs(weights) * self.largest).sum(axis=-1)


@dataclass(frozen=True, eq=False)
class Joint:
    """The law of a few figures together, in many rows that have nothing to do with each other."""

    terms: tuple[Term, ...]
    summed: tuple[Summed, ...] = ()

    @classmethod
    def joined(cls, parts: Sequence[Joint]) -> Joint:
        """The rows of some laws of the same noises, one after the other."""
        terms = []
        for same in zip(*(part.terms for part in parts), strict=True):
            longest = max(term.counts.shape[1] for term in same)
            wide = [longest - term.counts.shape[1] for term in same]
            pairs = list(zip(same, wide, strict=True))
            coefficients = np.concatenate([np.pad(t.coefficients, ((0, 0), (0, 0), (0, more))) for t, more in pairs])
            counts = np.concatenate([np.pad(t.counts, ((0, 0), (0, more))) for t, more in pairs])
            terms.append(Term(coefficients, counts, same[0].noise))
        return cls(tuple(terms))

    @property
    def _every(self) -> tuple[Term | Summed, ...]:
        return (*self.terms, *self.summed)

    def at(self, rows: Integers) -> Joint:
        """Some of the rows."""
        return Joint(tuple(t.at(rows) for t in self.terms), tuple(t.at(rows) for t in self.summed))

    def margins(self, weights: Floats, confidence: float) -> tuple[Floats, Floats]:
        """(standard error, half-width) of such sums."""
        if not self.summed:
            return group_margins([term.group(weights) for term in self.terms], confidence)
        return self._by_powers(weights, confidence)

    def deviations(self, weights: Floats) -> Floats:
        """Their standard errors."""
        found = [term.noise.variance * term.powers(weights)[0] for term in self._every]
        return np.sqrt(sum(found, np.zeros(len(weights))))

    def _by_powers(self, weights: Floats, confidence: float) -> tuple[Floats, Floats]:
        """As `sfumato.release.intervals` has it where noises are not listed: by two cumulants where none of them is
        large beside the others; else by the widest law that a bound on the largest leaves.
        """
        variance, fourth, tails, steepest, largest = np.zeros((5, len(weights)))
        for term in self._every:
            second, power, size = term.powers(weights)
            variance += term.noise.variance * second
            fourth += term.noise.fourth_cumulant * power
            tails += 2 * term.noise.scale**2 * second
            steepest = np.maximum(steepest, 6 * (size * term.noise.scale) ** 2)
            largest = np.maximum(largest, size)
        deviation, wanted = np.sqrt(variance), cautious(confidence)
        smooth = deviation * smooth_quantile(variance, fourth, wanted)
        bound = np.minimum(steepest * tails, 3.0 * tails**2)
        wide = np.sqrt(tails) * smooth_quantile(tails, bound, wanted, at_most=True)
        margin = np.where(deviation < SMOOTH * largest, wide, smooth) + 0.5 * largest
        return deviation, np.where(deviation > 0, margin, 0.0)


def joint(figures: Sequence[tuple[Reading, Which]], rows: slice, *, most: float = MOST_KINDS) -> Joint:
    """The law of some figures, each of them told of one release, in these rows; with at most so many kinds listed."""
    terms, summed = list[Term](), list[Summed]()
    order = sorted(range(len(figures)), key=lambda i: figures[i][0].source)
    for _, some in groupby(order, key=lambda i: figures[i][0].source):
        own = list(some)
        model = figures[own[0]][0].model
        asked = [(figures[i][0].weights, figures[i][1]) for i in own]
        for t, block in enumerate(model.blocks):
            units = np.array([[figures[i][0].view.unit] for i in own])
            listed = [(columns * units, counts) for columns, counts in _listed(model, t, asked, rows)]
            if max((len(counts) for _, counts in listed), default=0) <= most:
                coefficients, counts = _padded(listed, own, len(figures))
                terms.append(Term(coefficients, counts, block.noise))
                continue
            among = []
            for columns, counts in listed:
                among.append((np.zeros((len(figures), len(counts))), counts))
                among[-1][0][own] = columns
            summed.append(Summed.of(among, block.noise))
    return Joint(tuple(terms), tuple(summed))


def _padded(listed: list[tuple[Floats, Floats]], own: list[int], figures: int) -> tuple[Floats, Floats]:
    """Short lists of different lengths in one array, with zeros behind them and for the figures of other releases."""
    longest = max([1, *(len(counts) for _, counts in listed)])
    coefficients, counts = np.zeros((len(listed), figures, longest)), np.zeros((len(listed), longest))
    for row, (columns, often) in enumerate(listed):
        coefficients[row, own, : len(often)] = columns
        counts[row, : len(often)] = often
    return coefficients, counts


def _listed(
    model: NoiseModel, block: int, asked: list[tuple[Weights, Which]], rows: slice
) -> list[tuple[Floats, Floats]]:
    """(kinds of coefficients of all figures asked, how often each occurs) of one block, row after row."""
    factors = model.blocks[block].estimator.factors
    if len(factors) == len(model.shape):
        products = [weights.products(rows, which) for weights, which in asked]
        known = [product for product in products if product is not None]
        if len(known) == len(products):
            return _by_axes(model, block, known)
    start, stop = rows.indices(asked[0][0].rows)[:2]
    step = max(1, CHUNK // max(np.prod(model.shape, dtype=int) * len(asked), 1))
    found: list[tuple[Floats, Floats]] = []
    for at in range(start, stop, step):
        some = slice(at, min(at + step, stop))
        each = [list(model.coefficients(weights.dense(some, which)))[block] for weights, which in asked]
        stacked = np.stack(each, axis=1)
        found += [distinct(row, np.ones(row.shape[1])) for row in stacked]
    return found


def _by_axes(model: NoiseModel, block: int, products: list[list[Part]]) -> list[tuple[Floats, Floats]]:
    """The same of noise that is a product along the axes: what is alike along each of them is counted first."""
    factors, figures = model.blocks[block].estimator.factors, len(products)
    known: dict[tuple[int, bytes], tuple[Floats, Floats]] = {}
    found = []
    for row in range(len(products[0][0][1])):
        columns, counts = np.ones((2 * figures, 1)), np.ones(1)
        share = np.ones(figures)
        for axis, factor in enumerate(factors):
            q = np.stack([product[axis][1][row] for product in products])
            less = q
            if model.centred and axis not in model.apart:
                g = model.total_shares[block][axis]
                share *= q @ g / g.sum()
                less = np.ones_like(q)
            key = (axis, q.tobytes())
            if key not in known:
                both = np.concatenate([factor.transpose(q), factor.transpose(less)]).astype(np.float64)
                known[key] = distinct(both, np.ones(both.shape[1]), keep_nothing=True)
            own, often = known[key]
            columns = (columns[:, :, None] * own[:, None, :]).reshape(2 * figures, -1)
            columns, counts = distinct(columns, np.multiply.outer(counts, often).ravel(), keep_nothing=True)
        if model.centred:
            columns = _less_totals(columns, share, figures)
        found.append(distinct(columns[:figures], counts))
    return found


def _less_totals(columns: Floats, share: Floats, figures: int) -> Floats:
    """Less what the exact totals say: of each figure its share of the totals. Where hardly a digit is left it is 0."""
    whole, totals = columns[:figures], share[:, None] * columns[figures:]
    left = whole - totals
    return np.concatenate([np.where(np.abs(left) <= 1e-12 * np.abs(whole), 0.0, left), columns[figures:]])


def distinct(columns: Floats, counts: Floats, *, keep_nothing: bool = False) -> tuple[Floats, Floats]:
    """Columns that differ, and how often each occurs; those of zeros reach no figure."""
    if not keep_nothing:
        felt = (columns != 0).any(axis=0)
        columns, counts = columns[:, felt], counts[felt]
    if columns.shape[1] <= 1:
        return columns, counts
    digits = np.round(columns / np.abs(columns).max(axis=1, keepdims=True, initial=1e-300), _DIGITS)
    _, first, which = np.unique(_FIXED[: len(digits)] @ digits, return_index=True, return_inverse=True)
    if not np.array_equal(digits[:, first][:, which.ravel()], digits):  # two columns with one number
        _, first, which = np.unique(digits, axis=1, return_index=True, return_inverse=True)
    return columns[:, first], np.bincount(which.ravel(), counts, len(first)).astype(np.float64)
