"""Intervals that hold: standard errors and half-widths of answers, from the mechanism's noise alone.

Where a few noises dominate, the law of the answer is computed whole and the half-width is the smallest that holds at
least the confidence. Where many add up, steps are too fine to matter and two cumulants say enough; answers in whole
numbers then get a whole half-width, by the continuity correction. An interval depends on its own query alone, never on
what else was asked.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import reduce

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import InvalidInput
from sfumato.linear import (
    Difference,
    Embedded,
    Hanging,
    Hats,
    Hierarchy,
    Identity,
    Incidence,
    Kronecker,
    Operator,
    Prefix,
    PrefixBlocks,
    PseudoInverse,
    Selection,
)
from sfumato.linear.operator import range_weights
from sfumato.mechanism import NoiseModel
from sfumato.release.laws import SMOOTH, lattice_quantiles, smooth_quantile

Floats = NDArray[np.float64]

# Up to so many cells the coefficients of a range may be written out one by one where no structure lists them.
FEW_CELLS = 4096
# Ranges treated at a time: a list of their coefficients stays in tens of megabytes.
CHUNK = 1 << 14


def check_confidence(confidence: float) -> float:
    """A probability strictly between zero and one."""
    if not isinstance(confidence, (int, float)) or isinstance(confidence, bool) or not 0 < confidence < 1:
        raise InvalidInput(f"confidence={confidence!r} must lie between 0 and 1, both excluded.")
    return float(confidence)


def range_margins(
    model: NoiseModel | None, low: Floats, high: Floats, confidence: float | None
) -> tuple[Floats, Floats]:
    """(standard error, half-width) of the answers to many ranges in cell coordinates; NaN where no law is known.

    Without a confidence there is no half-width either: that of the noise alone would not cover a bias.
    """
    deviation, margin = np.full(len(low), np.nan), np.full(len(low), np.nan)
    if model is None:
        return deviation, margin
    if confidence is None:
        return np.sqrt(model.range_cumulants(low, high)[0]), margin
    for part in _chunks(len(low), CHUNK):
        deviation[part], margin[part] = _some_ranges(model, low[part], high[part], confidence)
    return deviation, margin


def cell_deviations(model: NoiseModel) -> Floats:
    """The standard error of every single cell where all blocks are products along the axes: no two need be alike."""
    variance = np.zeros(model.shape)
    for t, block in enumerate(model.blocks):
        along = []
        for factor in _factors(block.estimator):
            cell = np.arange(factor.rows, dtype=np.float64)
            along.append(factor.range_moments(cell, cell + 1)[0])
        variance += block.noise.variance * reduce(np.multiply.outer, along)
        if model.centred:
            saved = [pull**2 / pull.sum() for pull in model.pulls[t]]
            variance -= block.noise.variance * reduce(np.multiply.outer, saved)
    return np.sqrt(np.maximum(variance, 0.0))


def cell_margins(model: NoiseModel, confidence: float) -> tuple[Floats, Floats]:
    """(standard error, half-width) of every single cell, in the domain's shape.

    Along an axis most cells feel the noise alike. One cell stands for all that share their place in every block.
    """
    cells = np.arange(int(np.prod(model.shape)))
    kind = np.zeros(model.shape, dtype=np.int64)
    for t, block in enumerate(model.blocks):
        if isinstance(block.estimator, (Incidence, Hanging, Selection)):
            felt = _noises(block.estimator).reshape(model.shape)  # all alike, so that their number says everything
            kind = kind * (int(felt.max()) + 1) + felt
        elif len(_factors(block.estimator)) < len(model.shape):
            kind = cells.reshape(model.shape)  # one estimator over all axes: every cell is a case of its own
        else:
            for axis, factor in enumerate(_factors(block.estimator)):
                alike, count = _alike(factor, model.pulls[t][axis] if model.centred else None)
                kind = kind * count + np.expand_dims(alike, [i for i in range(kind.ndim) if i != axis])
        kind = np.unique(kind, return_inverse=True)[1].reshape(model.shape)  # small numbers again
    _, first, which = np.unique(kind, return_index=True, return_inverse=True)
    low = np.stack(np.unravel_index(cells[first], model.shape), axis=-1).astype(np.float64)
    deviation, margin = range_margins(model, low, low + 1, confidence)
    return deviation[which].reshape(model.shape), margin[which].reshape(model.shape)


def _noises(estimator: Incidence | Hanging | Selection) -> NDArray[np.int64]:
    """How many noises each cell feels from its edges, or from being chosen."""
    if isinstance(estimator, Selection):
        return estimator.mask.astype(np.int64)
    if isinstance(estimator, Hanging):
        return estimator.degrees
    ends = np.concatenate([estimator.tail, estimator.head[estimator.head >= 0]])
    return np.bincount(ends, minlength=estimator.rows).astype(np.int64)


def _alike(factor: Operator, pull: Floats | None) -> tuple[NDArray[np.int64], int]:
    """(the kind of each cell along one axis, how many kinds there are), told by the moments of what it feels."""
    cell = np.arange(factor.rows, dtype=np.float64)
    signs = [*factor.range_moments(cell, cell + 1), np.zeros_like(cell) if pull is None else pull]
    kinds, alike = np.unique(np.round(np.stack(signs, axis=-1), 12), axis=0, return_inverse=True)
    return alike.ravel(), len(kinds)


def query_margins(model: NoiseModel | None, q: Floats, confidence: float | None) -> tuple[Floats, Floats]:
    """(standard error, half-width) of the answers to arbitrary linear queries, one row each; NaN as for ranges."""
    if model is None:
        return np.full(len(q), np.nan), np.full(len(q), np.nan)
    if confidence is None:
        return np.sqrt(model.query_cumulants(q)[0]), np.full(len(q), np.nan)
    coefficients = list(model.coefficients(q))
    pairs = list(zip(coefficients, model.blocks, strict=True))
    variance = sum((block.noise.variance * (c**2).sum(axis=-1) for c, block in pairs), np.zeros(len(q)))
    fourth = sum((block.noise.fourth_cumulant * (c**4).sum(axis=-1) for c, block in pairs), np.zeros(len(q)))
    size = np.abs(q).max(axis=-1, initial=0.0)
    variance = np.where(variance > _rounding(model) * size**2, variance, 0.0)
    deviation = np.sqrt(variance)
    margin = deviation * smooth_quantile(variance, fourth, confidence)
    largest = np.max([np.zeros(len(q)), *(np.abs(c).max(axis=-1, initial=0.0) for c in coefficients)], axis=0)
    rough = np.flatnonzero((deviation > 0) & (deviation < SMOOTH * largest))
    if len(rough):
        groups = [(c[rough], np.ones((1, 1)), block.noise) for c, block in pairs]
        margin[rough] = lattice_quantiles(groups, margin[rough], confidence)
    return deviation, margin


def _some_ranges(model: NoiseModel, low: Floats, high: Floats, confidence: float) -> tuple[Floats, Floats]:
    variance, fourth = model.range_cumulants(low, high)
    variance = np.where(variance > _rounding(model), variance, 0.0)
    deviation = np.sqrt(variance)
    quantile = smooth_quantile(variance, fourth, confidence)
    if any(_fourth_is_guessed(factor) for factor in _all_factors(model)):
        # These do not know their fourth cumulants, but their largest coefficient bounds them: the law lies between the
        # normal one and that of the bound.
        bound = np.minimum(_steepest(model) * variance, 3.0 * variance**2)
        quantile = np.maximum(
            smooth_quantile(variance, bound, confidence), smooth_quantile(variance, np.zeros_like(bound), confidence)
        )
    margin = deviation * quantile
    whole = (low == np.floor(low)).all(axis=-1) & (high == np.floor(high)).all(axis=-1)
    whole &= not model.centred and all(map(_keeps_integers, _all_factors(model)))
    margin = np.where(whole, np.maximum(np.ceil(margin - 0.5), 0.0), margin)
    # No coefficient exceeds one, since estimators average: only answers with little noise can be rough.
    rough = np.flatnonzero((deviation > 0) & (deviation < SMOOTH))
    if len(rough):
        margin[rough] = _rough_ranges(model, low[rough], high[rough], margin[rough], confidence)
    return deviation, margin


def _rough_ranges(model: NoiseModel, low: Floats, high: Floats, smooth: Floats, confidence: float) -> Floats:
    """Half-widths from the whole law, listed by structure or written out; else half a step is added."""
    groups = model.range_groups(low, high)
    if groups is not None:
        return lattice_quantiles(groups, smooth, confidence)
    listed = any(isinstance(block.estimator, Incidence) for block in model.blocks)  # has been written out already
    size = int(np.prod(model.shape))
    if size > FEW_CELLS and not listed:
        return smooth + 0.5
    margin = np.empty(len(low))
    for part in _chunks(len(low), max(1, (1 << 21) // size)):
        weights = [range_weights(n, low[part, i], high[part, i]) for i, n in enumerate(model.shape)]
        q = reduce(lambda a, b: (a[:, :, None] * b[:, None, :]).reshape(len(a), -1), weights)
        groups = [
            (c, np.ones((1, 1)), block.noise) for c, block in zip(model.coefficients(q), model.blocks, strict=True)
        ]
        margin[part] = lattice_quantiles(groups, smooth[part], confidence)
    return margin


def _fourth_is_guessed(factor: Operator) -> bool:
    factor = _inner(factor)
    return isinstance(factor, PseudoInverse) and isinstance(factor.strategy, (Hats, Hierarchy, PrefixBlocks))


def _steepest(model: NoiseModel) -> float:
    """The largest fourth cumulant a unit of variance: Σ c⁴κ₄ ≤ max c²·κ₄/σ² · Σ c²σ², block by block."""
    steepest = [0.0]
    for block in model.blocks:
        largest = 1.0
        for factor in map(_inner, _factors(block.estimator)):
            strategy = factor.strategy if isinstance(factor, PseudoInverse) else None
            if isinstance(strategy, Hierarchy):
                largest /= min(strategy.weights)
            elif isinstance(strategy, Hats):
                largest *= strategy.largest_coefficient
            elif isinstance(strategy, PrefixBlocks):
                largest /= min(strategy.weight, *strategy.inner.weights)
        steepest.append(largest**2 * block.noise.fourth_cumulant / block.noise.variance)
    return max(steepest)


def _rounding(model: NoiseModel) -> float:
    """Below this a variance is rounding: in a centred model that of the total is the difference of two large ones."""
    if not model.centred:
        return 0.0
    return 1e-13 * float(np.prod(model.shape)) * max(block.noise.variance for block in model.blocks)


def _inner(factor: Operator) -> Operator:
    """What an embedded operator does, wherever it is."""
    return factor.inner if isinstance(factor, Embedded) else factor


def _keeps_integers(factor: Operator) -> bool:
    factor = _inner(factor)
    if isinstance(factor, PseudoInverse):
        return isinstance(factor.strategy, (Identity, Prefix))
    return isinstance(factor, (Selection, Incidence, Hanging, Difference, Identity))


def _factors(estimator: Operator) -> tuple[Operator, ...]:
    return estimator.factors if isinstance(estimator, Kronecker) else (estimator,)


def _all_factors(model: NoiseModel) -> Iterator[Operator]:
    for block in model.blocks:
        yield from _factors(block.estimator)


def _chunks(count: int, step: int) -> Iterator[slice]:
    yield from (slice(start, min(start + step, count)) for start in range(0, count, step))
