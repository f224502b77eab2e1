"""Intervals that hold: half-widths for sums of discrete Laplace noise, from one noise to millions.

Where many noises add up the sum is close to normal, and its kurtosis says how close: the quantile is taken from the
family of sums of m Laplace variables with the same variance and kurtosis, which is exact at both ends (m = 1 and m =
∞). Where a few noises dominate, the sum lives on a lattice and only some coverages can be had; its law is then
computed whole, by the characteristic function on a lattice of the largest coefficient over RESOLUTION, and the
half-width is the smallest that holds at least the confidence.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import InvalidInput
from sfumato.mechanism import NoiseModel
from sfumato.noise import DiscreteLaplace

Floats = NDArray[np.float64]

RESOLUTION = 48
# A sum whose deviation is this many times its largest coefficient has steps too fine to matter (about one per cent of
# coverage).
SMOOTH = 10.0
# So many different laws are computed whole; further ones are bounded by the smooth quantile and half a step.
MOST_LAWS = 1024


def check_confidence(confidence: float) -> float:
    """A probability strictly between zero and one."""
    if not isinstance(confidence, (int, float)) or isinstance(confidence, bool) or not 0 < confidence < 1:
        raise InvalidInput(f"confidence={confidence!r} must lie between 0 and 1, both excluded.")
    return float(confidence)


def range_margins(model: NoiseModel, low: Floats, high: Floats, confidence: float) -> tuple[Floats, Floats]:
    """(standard error, half-width) of the answers to many ranges in cell coordinates."""
    variance, fourth = model.range_cumulants(low, high)
    deviation = np.sqrt(variance)
    margin = deviation * smooth_quantile(variance, fourth, confidence)
    # No coefficient exceeds one: estimators average. Only answers with little noise can be rough.
    rough = np.flatnonzero((deviation > 0) & (deviation < SMOOTH))
    if len(rough) == 0:
        return deviation, margin
    groups = model.range_groups(low[rough], high[rough])
    if groups is None:
        margin[rough] += 0.5
    else:
        margin[rough] = _rough_margins(groups, margin[rough], deviation[rough], confidence)
    return deviation, margin


def query_margins(model: NoiseModel, q: Floats, confidence: float) -> tuple[Floats, Floats]:
    """(standard error, half-width) of the answers to arbitrary linear queries, one row each."""
    variance, fourth = model.query_cumulants(q)
    deviation = np.sqrt(variance)
    margin = deviation * smooth_quantile(variance, fourth, confidence)
    coefficients = list(model.coefficients(q))
    largest = np.max([np.abs(c).max(axis=-1, initial=0.0) for c in coefficients], axis=0)
    rough = np.flatnonzero((deviation > 0) & (deviation < SMOOTH * largest))
    if len(rough):
        groups = [
            (c[rough], np.ones_like(c[rough]), block.noise) for c, block in zip(coefficients, model.blocks, strict=True)
        ]
        margin[rough] = _rough_margins(groups, margin[rough], deviation[rough], confidence)
    return deviation, margin


def smooth_quantile(variance: Floats, fourth: Floats, confidence: float) -> Floats:
    """How many standard deviations hold the confidence, given the first two even cumulants."""
    safe = np.where(variance > 0, variance, 1.0)
    excess = np.clip(np.where(variance > 0, fourth / safe**2, 0.0), 0.0, 3.0)
    knots, quantiles = _laplace_sums(confidence)
    return np.interp(excess, knots, quantiles)


@lru_cache(maxsize=16)
def _laplace_sums(confidence: float) -> tuple[Floats, Floats]:
    """(excess kurtosis, quantile) of standardised sums of m Laplace variables: normal with a Gamma(m) variance."""
    from scipy.special import erf, gammaincinv  # slow to import, and a plan needs no interval

    knots = np.array([0.0, 0.02, 0.05, 0.1, 0.2, 0.35, 0.6, 1.0, 1.5, 2.0, 2.5, 3.0])
    middle = (np.arange(20_000) + 0.5) / 20_000
    quantiles = []
    for excess in knots:
        spread = np.ones(1) if excess == 0 else gammaincinv(3 / excess, middle) * excess / 3
        root = np.sqrt(2 * np.maximum(spread, 1e-300))
        low, high = 0.0, 64.0
        for _ in range(60):  # bisection: the coverage rises with the width
            t = 0.5 * (low + high)
            low, high = (t, high) if erf(t / root).mean() < confidence else (low, t)
        quantiles.append(high)
    return knots, np.array(quantiles)


def _rough_margins(
    groups: list[tuple[Floats, Floats, DiscreteLaplace]], smooth: Floats, deviation: Floats, confidence: float
) -> Floats:
    """Half-widths from the whole law, one computation for every law that occurs."""
    largest = np.max(
        [np.where(counts > 0, np.abs(c), 0.0).max(axis=-1, initial=0.0) for c, counts, _ in groups], axis=0
    )
    step = largest / RESOLUTION
    parts, remainder = [], np.zeros(len(step))
    for c, counts, noise in groups:
        size = np.where(counts > 0, np.abs(c), 0.0) / step[:, None]
        multiple = np.rint(size)
        remainder += noise.variance * (counts * (size - multiple) ** 2).sum(axis=-1)
        often = np.zeros((len(step), RESOLUTION + 1))
        np.add.at(often, (np.arange(len(step))[:, None], multiple.astype(np.int64)), counts)
        often[:, 0] = 0
        parts.append(often)
    smear = np.sqrt(remainder)  # in steps: what the lattice is too coarse for
    laws, which = np.unique(np.concatenate([*parts, np.round(smear, 3)[:, None]], axis=1), axis=0, return_inverse=True)
    which = which.ravel()
    margins = smooth + 0.5 * np.minimum(largest, 1.0)
    fine = deviation >= SMOOTH * largest
    margins[fine] = smooth[fine]
    noises = [noise for _, _, noise in groups]
    for i in np.unique(which[~fine])[:MOST_LAWS]:
        law = np.split(laws[i, :-1], len(noises))
        here = (which == i) & ~fine
        margins[here] = step[here] * _lattice_quantile(law, noises, float(laws[i, -1]), confidence)
    return margins


def _lattice_quantile(often: list[Floats], noises: list[DiscreteLaplace], smear: float, confidence: float) -> float:
    """The smallest t with P[|S| ≤ t] ≥ confidence for S = Σ k·η over multiples k of the step, plus a little smear."""
    multiples = np.arange(RESOLUTION + 1)
    variance = sum(
        float((count * multiples**2).sum()) * noise.variance for count, noise in zip(often, noises, strict=True)
    )
    reach = 16 * np.sqrt(variance + smear**2) + 4 * RESOLUTION
    size = 1 << int(np.ceil(np.log2(2 * reach + 2)))
    angle = 2 * np.pi * np.arange(size // 2 + 1) / size
    log_law = -0.5 * (angle * smear) ** 2
    for count, noise in zip(often, noises, strict=True):
        for k in np.flatnonzero(count):
            log_law = log_law + count[k] * np.log(noise.characteristic(k * angle))
    mass = np.fft.irfft(np.exp(log_law), size)
    held = np.cumsum(np.concatenate([mass[:1], 2 * mass[1 : size // 2]]))
    t = int(np.searchsorted(held, confidence - 1e-9))
    # Smear finer than the lattice moves an atom across its end: half of it would be lost.
    return t + 3 * smear if smear < 0.5 else float(t)
