"""Intervals that hold: standard errors and half-widths of answers, from the mechanism's noise alone.

Where a few noises dominate, the law of the answer is computed whole and the half-width is the smallest that holds at
least the confidence. Where many add up, steps are too fine to matter and two cumulants say enough: the widest law that
has them is taken, and half a step more, the continuity correction; answers in whole numbers then get a whole
half-width. Where but a bound on the fourth cumulant is known, the widest law under it is taken. An interval depends on
its own query alone, never on what else was asked.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from sfumato._types import Floats
from sfumato.errors import InvalidInput
from sfumato.exact import is_number
from sfumato.linear.estimator import box_weights
from sfumato.mechanism import NoiseModel
from sfumato.release.laws import SMOOTH, Group, cautious, lattice_quantiles, smooth_quantile

# Up to so many cells the coefficients of a range may be written out one by one where no structure lists them.
FEW_CELLS = 4096
# Noises a cell that are usual: where there are more, the cells stand for groups of them.
NOISES_A_CELL = 4
# Ranges treated at a time: a list of their coefficients stays in tens of megabytes.
CHUNK = 1 << 14


def check_confidence(confidence: float) -> float:
    """A probability strictly between zero and one."""
    if not is_number(confidence) or not 0 < confidence < 1:
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
    first, which = model.alike(low, high) or (np.arange(len(low)), np.arange(len(low)))
    for part in _chunks(len(first), CHUNK):  # one range stands for all that feel the noise as it does
        some = first[part]
        deviation[part], margin[part] = _some_ranges(model, low[some], high[some], confidence)
    return deviation[which], margin[which]


def cell_deviations(model: NoiseModel) -> Floats:
    """The standard error of every single cell where all blocks are products along the axes: no two need be alike."""
    return np.sqrt(model.cell_variances())


def cell_margins(model: NoiseModel, confidence: float) -> tuple[Floats, Floats]:
    """(standard error, half-width) of every single cell, in the domain's shape.

    Along an axis most cells feel the noise alike. One cell stands for all that share their place in every block.
    """
    _, first, which = np.unique(model.cell_kinds, return_index=True, return_inverse=True)
    low = np.stack(np.unravel_index(first, model.shape), axis=-1).astype(np.float64)
    deviation, margin = range_margins(model, low, low + 1, confidence)
    return deviation[which].reshape(model.shape), margin[which].reshape(model.shape)


def query_margins(model: NoiseModel | None, q: Floats, confidence: float | None) -> tuple[Floats, Floats]:
    """(standard error, half-width) of the answers to arbitrary linear queries, one row each; NaN as for ranges."""
    if model is None:
        return np.full(len(q), np.nan), np.full(len(q), np.nan)
    if confidence is None:
        return np.sqrt(model.query_cumulants(q)[0]), np.full(len(q), np.nan)
    ones = np.ones((1, 1))
    return group_margins(
        [(c, ones, block.noise) for c, block in zip(model.coefficients(q), model.blocks, strict=True)], confidence
    )


def group_margins(groups: Sequence[Group], confidence: float) -> tuple[Floats, Floats]:
    """(standard error, half-width) of many sums of noise, given as (coefficients, how often each occurs, noise), one
    row a sum.
    """
    rows = max((len(c) for c, _, _ in groups), default=0)
    variance = sum((noise.variance * (n * c**2).sum(axis=-1) for c, n, noise in groups), np.zeros(rows))
    fourth = sum((noise.fourth_cumulant * (n * c**4).sum(axis=-1) for c, n, noise in groups), np.zeros(rows))
    deviation = np.sqrt(variance)
    margin = deviation * smooth_quantile(variance, fourth, cautious(confidence))
    felt = np.flatnonzero(deviation > 0)
    if len(felt):
        some = [(c[felt], n[felt] if len(n) == rows else n, noise) for c, n, noise in groups]
        margin[felt] = lattice_quantiles(some, margin[felt], confidence)
    return deviation, margin


def _some_ranges(model: NoiseModel, low: Floats, high: Floats, confidence: float) -> tuple[Floats, Floats]:
    variance, fourth = model.range_cumulants(low, high)
    deviation, largest = np.sqrt(variance), model.largest_coefficient
    groups = model.range_groups(low, high) if model.centred else None
    if groups is not None:
        fourth = sum((law.fourth_cumulant * (n * c**4).sum(axis=-1) for c, n, law in groups), 0.0 * variance)
    if groups is not None or model.fourth_is_exact:
        quantile = smooth_quantile(variance, fourth, cautious(confidence))
    else:
        # These do not know their fourth cumulants, but their largest coefficient bounds them.
        bound = np.minimum(model.steepest * variance, 3.0 * variance**2)
        quantile = smooth_quantile(variance, bound, cautious(confidence), at_most=True)
    smooth = deviation * quantile
    whole = (low == np.floor(low)).all(axis=-1) & (high == np.floor(high)).all(axis=-1)
    whole &= model.keeps_integers
    # Half a step of the largest coefficient, the continuity correction, is enough for any lattice. Whole numbers have
    # steps of one.
    margin = np.where(deviation > 0, smooth + 0.5 * largest, 0.0)
    margin = np.where(whole, np.maximum(np.ceil(smooth - 0.5), 0.0), margin)
    rough = np.flatnonzero((deviation > 0) & (deviation < SMOOTH * largest))
    if len(rough):
        margin[rough] = _rough_ranges(model, low[rough], high[rough], smooth[rough], confidence)
    return deviation, margin


def _rough_ranges(model: NoiseModel, low: Floats, high: Floats, smooth: Floats, confidence: float) -> Floats:
    """Half-widths from the whole law, listed by structure or written out; else half a step is added."""
    groups = model.range_groups(low, high)
    if groups is not None:
        return lattice_quantiles(groups, smooth, confidence)
    size = max(int(np.prod(model.shape)), *(block.estimator.cols // NOISES_A_CELL for block in model.blocks))
    if size > FEW_CELLS and not model.is_listed:
        variance, _ = model.range_cumulants(low, high, continuous=True)
        bound = np.minimum(model.steepest_tails * variance, 3.0 * variance**2)
        outer = np.sqrt(variance) * smooth_quantile(variance, bound, cautious(confidence), at_most=True)
        return np.asarray(outer + 0.5 * model.largest_coefficient)
    margin = np.empty(len(low))
    for part in _chunks(len(low), max(1, (1 << 21) // size)):
        q = box_weights(model.shape, low[part], high[part])
        groups = [
            (c, np.ones((1, 1)), block.noise) for c, block in zip(model.coefficients(q), model.blocks, strict=True)
        ]
        margin[part] = lattice_quantiles(groups, smooth[part], confidence)
    return margin


def _chunks(count: int, step: int) -> Iterator[slice]:
    yield from (slice(start, min(start + step, count)) for start in range(0, count, step))
