"""The laws of sums of discrete Laplace noise: how wide an interval must be to hold them.

Two ways, each where it is right. Many noises add up to something close to normal, and the kurtosis says how close: the
quantile is then the widest that sums of Laplace variables with that variance and kurtosis have. Few noises live on a
lattice, where only some coverages can be had: their law is computed whole, by its characteristic function, and the
quantile is the smallest that holds at least the confidence.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from sfumato._types import Floats
from sfumato.noise import DiscreteLaplace

Group = tuple[Floats, Floats, DiscreteLaplace]

# A sum whose deviation is this many times its largest coefficient has steps too fine to matter.
SMOOTH = 10.0
# Coefficients that are no multiples of a common step are rounded to this many parts of the largest one.
RESOLUTION = 32
# A ripple of this height in the characteristic function moves a coverage by a fifth of a per cent at most.
_BLURRED = 0.1
# Numbers that one batch of transforms may hold.
_BATCH = 1 << 21


def smooth_quantile(variance: Floats, fourth: Floats, confidence: float, *, at_most: bool = False) -> Floats:
    """How many standard deviations hold the confidence, given the first two even cumulants; with `at_most`, given the
    variance and a bound on the fourth.
    """
    safe = np.where(variance > 0, variance, 1.0)
    excess = np.clip(np.where(variance > 0, fourth / safe**2, 0.0), 0.0, 3.0)
    knots, quantiles = _laplace_sums(confidence)
    return np.interp(excess, knots, np.maximum.accumulate(quantiles) if at_most else quantiles)


def cautious(confidence: float) -> float:
    """What to ask of a smooth law: discrete steps do a little beyond variance and kurtosis, within a thousandth of what
    may be missed.
    """
    return 1 - (1 - confidence) * (1 - 1e-3)


@lru_cache(maxsize=16)
def _laplace_sums(confidence: float) -> tuple[Floats, Floats]:
    """(excess kurtosis, quantile) of standardised sums of Laplace variables: normal with a random variance.

    Every sum of weighted Laplace variables is normal with a variance that is a sum of weighted exponential ones. Among
    those with one kurtosis two are outermost: m equal ones, a variance with a Gamma(m) law, and a single large one
    beside so many small ones that they are normal. The wider of the two is taken.
    """
    from scipy.special import erfc, gammainccinv, gammaincinv  # slow to import, and a plan needs no interval

    knots = np.concatenate([np.linspace(0.0, 0.5, 26), np.linspace(0.6, 3.0, 25)])
    # The mean over the law of the variance, as an integral over its quantiles u = 1/(1 + e^-s): the trapezoidal rule in
    # s meets both tails and converges exponentially.
    s = np.linspace(-40.0, 40.0, 641)
    below, above = 1 / (1 + np.exp(-s)), 1 / (1 + np.exp(s))
    weight = below * above * (s[1] - s[0])

    def gamma(shape: float) -> Floats:
        spread: Floats = np.where(s < 0, gammaincinv(shape, below), gammainccinv(shape, above)) / shape
        return spread

    def quantile(spread: Floats) -> float:
        root = np.sqrt(2 * np.maximum(spread, 1e-300))
        low, high = 0.0, 128.0
        for _ in range(60):  # bisection: what lies outside falls with the width
            t = 0.5 * (low + high)
            low, high = (t, high) if (weight * erfc(t / root)).sum() > 1 - confidence else (low, t)
        return high

    one, quantiles = gamma(1.0), []
    for excess in knots:
        large = np.sqrt(excess / 3)
        equal = gamma(3 / excess) if excess else np.ones_like(s)
        quantiles.append(max(quantile(equal), quantile(large * one + (1 - large))))
    return knots, np.array(quantiles)


def lattice_quantiles(groups: list[Group], smooth: Floats, confidence: float) -> Floats:
    """The half-widths of many sums. A group is (coefficients, how often each occurs, noise), one row a sum.

    The half-width t is the smallest with P[|S| ≤ t] ≥ confidence: exactly where the coefficients are multiples of one
    step. Elsewhere the other noises may have blurred the steps of the largest, and the smooth half-width is right,
    given what is left of them; or else the coefficients are rounded, and what rounding leaves of them is taken as a
    little normal noise.
    """
    parts = [(np.where(counts > 0, np.abs(c), 0.0), counts, noise) for c, counts, noise in groups]
    largest = np.max([size.max(axis=-1, initial=0.0) for size, _, _ in parts], axis=0)
    step, exact = common_steps([size for size, _, _ in parts], largest)
    result = smooth + 0.5 * largest  # steps this fine: the continuity correction is enough for any lattice
    variance = sum((noise.variance * (counts * size**2).sum(axis=-1) for size, counts, noise in parts), 0.0 * largest)
    steep = variance < (SMOOTH * largest) ** 2
    ripple = _ripple(parts, largest)
    blurred = steep & ~exact & (ripple <= _BLURRED)
    # A ripple of height r, of which a law adds up both flanks, holds back less than this share of a step.
    result[blurred] = (1.005 * smooth + np.minimum(2 * ripple / np.pi, 0.5) * largest)[blurred]
    rough = np.flatnonzero(steep & ~blurred)
    if len(rough) == 0:
        return result
    step, exact = step[rough], exact[rough]
    often, left_over = [], np.zeros(len(rough))
    for size, counts, noise in parts:
        ratio = size[rough] / step[:, None]
        many = np.broadcast_to(counts, size.shape)[rough]
        multiple = np.rint(ratio)
        left_over += noise.variance * (many * (ratio - multiple) ** 2).sum(axis=-1)
        place = (multiple + (RESOLUTION + 1) * np.arange(len(rough))[:, None]).astype(np.int64)
        tally = np.bincount(place.ravel(), many.ravel(), minlength=len(rough) * (RESOLUTION + 1))
        often.append(tally.reshape(len(rough), -1))
        often[-1][:, 0] = 0
    # In steps, rounded up so that sums which hardly differ share one law.
    smear = np.where(exact, 0.0, np.ceil(4 * np.sqrt(left_over)) / 4)
    table = np.ascontiguousarray(np.concatenate([*often, smear[:, None]], axis=1))
    keys = table.view(np.dtype((np.void, table.shape[1] * table.itemsize))).ravel()
    _, first, which = np.unique(keys, return_index=True, return_inverse=True)
    laws = table[first]
    quantiles = _quantiles(laws[:, :-1], laws[:, -1], [noise for _, _, noise in parts], confidence)[which.ravel()]
    # Off the integers an estimate is rounded, in floating or in fixed point, and must not fall off the end of its own
    # interval.
    found = step * quantiles + np.where(step == np.rint(step), 0.0, 1e-3 * largest[rough])
    # A coefficient that was rounded by half a step moves what it carries by so much; and where much was rounded away,
    # it need not be normal.
    rounded = found + 0.5 * step * np.maximum(found / largest[rough], 1.0)
    much = left_over * step**2 > 0.05 * variance[rough]
    result[rough] = np.where(exact, found, np.where(much, np.maximum(rounded, smooth[rough]), rounded))
    return result


def common_steps(sizes: list[Floats], largest: Floats) -> tuple[Floats, NDArray[np.bool_]]:
    """The step of each sum's lattice, and whether its coefficients are multiples of it.

    A common step is the smallest coefficient over a small whole number, if there is one.
    """
    least = 1e-12 * largest[:, None]
    smallest = np.min([np.where(size > least, size, np.inf).min(axis=-1, initial=np.inf) for size in sizes], axis=0)
    step, exact = largest / RESOLUTION, np.zeros(len(largest), dtype=bool)
    for parts in range(1, 9):
        rows = np.flatnonzero(~exact & (smallest * RESOLUTION >= parts * largest * (1 - 1e-9)))
        fits = np.ones(len(rows), dtype=bool)
        for size in sizes:
            ratio = parts * size[rows] / smallest[rows, None]
            fits &= (np.abs(ratio - np.rint(ratio)) < 1e-9 * np.maximum(ratio, 1)).all(axis=-1)
        exact[rows[fits]] = True
        step[rows[fits]] = smallest[rows[fits]] / parts
    return step, exact


def _ripple(groups: list[Group], largest: Floats) -> Floats:
    """How much of the steps of the largest coefficient is still seen in the whole law: its characteristic function
    there.
    """
    log = np.zeros(len(largest))
    for size, counts, noise in groups:
        log += (counts * np.log(noise.characteristic(2 * np.pi * size / largest[:, None]))).sum(axis=-1)
    return np.exp(log)


def _quantiles(laws: Floats, smear: Floats, noises: list[DiscreteLaplace], confidence: float) -> Floats:
    """Quantiles in steps. A law says, block after block, how often each multiple of the step occurs."""
    multiples = np.arange(RESOLUTION + 1)
    blocks = np.split(laws, len(noises), axis=1)
    variance = sum((b @ multiples**2) * noise.variance for b, noise in zip(blocks, noises, strict=True)) + smear**2
    # So far out that what comes round the circle is nothing beside 1 - confidence.
    far = (8 + 2 * math.log(1 / (1 - confidence))) * np.sqrt(variance) + 2 * RESOLUTION
    bits = np.ceil(np.log2(2 * far + 2)).astype(np.int64)
    result = np.empty(len(laws))
    for power in np.unique(bits):
        size = 1 << int(power)
        here = np.flatnonzero(bits == power)
        angle = 2 * np.pi * np.arange(size // 2 + 1) / size
        used = [np.flatnonzero(b[here].any(axis=0)) for b in blocks]
        logs = [np.log(noise.characteristic(np.outer(k, angle))) for k, noise in zip(used, noises, strict=True)]
        for start in range(0, len(here), max(1, _BATCH // size)):
            some = here[start : start + max(1, _BATCH // size)]
            # Smear finer than the lattice only moves the outermost atom: it is added to the width instead.
            law = np.where(smear[some] < 0.5, 0.0, -0.5 * smear[some] ** 2)[:, None] * angle**2
            for block, k, log in zip(blocks, used, logs, strict=True):
                law += block[np.ix_(some, k)] @ log
            mass = np.fft.irfft(np.exp(law), size, axis=-1)[:, : size // 2]
            mass[:, 1:] *= 2
            held = np.cumsum(mass, axis=-1)
            result[some] = (held < confidence - 1e-12).sum(axis=-1)
    return result + np.where(smear < 0.5, 3 * smear, 1.0)
