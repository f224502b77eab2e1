"""Budget distribution and budget absorption (Kellaris, Papadopoulos, Xiao, Papadias: VLDB 2014), simulated.

Unlike the allocations of `sfumato.stream` these look at the data: half of every window's ε goes to measuring, privately,
how far the counts have moved since the last publication, and a step is published only when that seems worth its noise.
They are w-event private for ε like the others, and are here for comparison. Floating-point Laplace noise: a simulation,
never a release.
"""

from __future__ import annotations

import numpy as np

Array = np.ndarray


def budget_distribution(counts: Array, window: int, epsilon: float, rng: np.random.Generator) -> tuple[Array, Array]:
    """Publications spend half of what the window has left. (Released counts, budget of publication) for each step."""
    released, spent = np.zeros(counts.shape), np.zeros(len(counts))
    last = np.zeros(counts.shape[1])
    for i, true in enumerate(counts):
        moved = _dissimilarity(true, last, window, epsilon, rng)
        budget = (epsilon / 2 - spent[max(i - window + 1, 0) : i].sum()) / 2
        if budget > 0 and moved > 1 / budget:
            last, spent[i] = true + rng.laplace(0, 1 / budget, true.size), budget
        released[i] = last
    return released, spent


def budget_absorption(counts: Array, window: int, epsilon: float, rng: np.random.Generator) -> tuple[Array, Array]:
    """Publications take up the even shares of steps skipped before them, and as many steps after them stay silent."""
    released, spent = np.zeros(counts.shape), np.zeros(len(counts))
    last, share = np.zeros(counts.shape[1]), epsilon / (2 * window)
    published, silent = -1, 0
    for i, true in enumerate(counts):
        moved = _dissimilarity(true, last, window, epsilon, rng)
        if i - published > silent:
            budget = share * min(i - (published + silent), window)
            if moved > 1 / budget:
                last, spent[i] = true + rng.laplace(0, 1 / budget, true.size), budget
                published, silent = i, round(budget / share) - 1
        released[i] = last
    return released, spent


def _dissimilarity(true: Array, last: Array, window: int, epsilon: float, rng: np.random.Generator) -> float:
    """The mean absolute change since the last publication, at ε/(2·window): one record moves it by 1/cells."""
    return float(np.abs(true - last).mean() + rng.laplace(0, 2 * window / (epsilon * true.size)))
