"""Sliding windows as a banded matrix: sums over windows, their transpose, and Newton's matrix factorised.

Window j of δ steps holds the steps j-δ+1 … j that exist. Sums are added up afresh for every window: differences of
running totals would lose the small prices beside the large ones, which differ by ten orders of magnitude near the
optimum.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Factor = Callable[[Array], Array]  # the solution of (factorised matrix)·x = right-hand side


def window_sums(steps: Array, window: int, count: int) -> Array:
    """A·x: the sum of the steps in each of the first `count` windows."""
    n = len(steps)
    sums = np.zeros((count, *steps.shape[1:]))
    for back in range(min(window, n + count)):
        top = min(count - back, n)
        if top > 0:
            sums[back : back + top] += steps[:top]
    return sums


def spread(windows: Array, window: int, n: int) -> Array:
    """Aᵀ·λ: for each of n steps the sum over the windows that hold it."""
    sums = np.zeros((n, *windows.shape[1:]))
    for ahead in range(min(window, len(windows))):
        top = min(len(windows) - ahead, n)
        if top > 0:
            sums[:top] += windows[ahead : ahead + top]
    return sums


def smallest(windows: Array, window: int, n: int) -> Array:
    """For each of n steps the smallest value among the windows that hold it."""
    least = np.full((n, *windows.shape[1:]), np.inf)
    for ahead in range(min(window, len(windows))):
        top = min(len(windows) - ahead, n)
        if top > 0:
            np.minimum(least[:top], windows[ahead : ahead + top], out=least[:top])
    return least


def factorise(diagonal: Array, weights: Array, active: NDArray[np.bool_], window: int) -> Factor:
    """Factorise `diag(diagonal) + Aᵀ·diag(weights)·A` on the active steps; the others are left out."""
    n, batch = diagonal.shape
    width = min(window, n)
    bands = np.zeros((width, n, batch))  # bands[m, i] is entry (i, i + m)
    # Entry (i, i + m) is the sum of the weights of windows i + m … i + δ - 1: each band adds one term to the next.
    total = np.zeros((n, batch))
    for m in range(min(window, len(weights)) - 1, -1, -1):
        top = min(len(weights) - m, n)
        total[:top] += weights[m : m + top]
        if m < width:
            bands[m, : n - m] = total[: n - m] * (active[: n - m] & active[m:])
    bands[0] += diagonal
    bands[0][~active] = 1.0
    return _lapack(bands) if batch == 1 else _batched(bands)


def _lapack(bands: Array) -> Factor:
    """One sequence: LAPACK."""
    from scipy.linalg import cho_solve_banded, cholesky_banded

    factor = cholesky_banded(bands[:, :, 0], lower=True, overwrite_ab=True, check_finite=False)
    return lambda right: cho_solve_banded((factor, True), right, check_finite=False)


def _batched(bands: Array) -> Factor:
    """Many sequences: L·D·Lᵀ without square roots, one step after the other, all sequences at once."""
    width, n, _ = bands.shape
    for i in range(n):
        reach = min(width - 1, n - 1 - i)
        if reach == 0:
            continue
        column = bands[1 : reach + 1, i]
        scaled = column / bands[0, i]
        for a in range(reach):
            bands[: reach - a, i + 1 + a] -= scaled[a] * column[a:]
        column[...] = scaled
    lower = bands

    def solve(right: Array) -> Array:
        x = right.copy()
        for i in range(n - 1):
            reach = min(width - 1, n - 1 - i)
            x[i + 1 : i + 1 + reach] -= lower[1 : reach + 1, i] * x[i]
        x /= lower[0]
        for i in range(n - 2, -1, -1):
            reach = min(width - 1, n - 1 - i)
            x[i] -= np.einsum("mb,mb->b", lower[1 : reach + 1, i], x[i + 1 : i + 1 + reach])
        return x

    return solve
