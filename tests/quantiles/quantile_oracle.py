"""Every dataset on a small lattice, and what follows by brute force."""

from __future__ import annotations

from functools import cache
from itertools import combinations_with_replacement

import numpy as np


@cache
def datasets(n, cells):
    """Every dataset of n points, as a sorted tuple."""
    return list(combinations_with_replacement(range(cells), n))


@cache
def neighbours(data, cells, theta):
    """What one move of one point by at most θ cells can make of it, itself not included."""
    found = set()
    for i, point in enumerate(data):
        for place in range(max(0, point - theta), min(cells - 1, point + theta) + 1):
            found.add(tuple(sorted((*data[:i], place, *data[i + 1 :]))))
    return found - {data}


def pairs(n, cells, theta):
    """Every ordered pair of neighbours."""
    return [(one, other) for one in datasets(n, cells) for other in neighbours(one, cells, theta)]


def distances(starts, cells, theta):
    """Steps from the nearest of the starts to every dataset, by breadth-first search."""
    found = dict.fromkeys(starts, 0)
    border = list(starts)
    while border:
        border = [next_ for data in border for next_ in neighbours(data, cells, theta) if _new(found, next_, data)]
    return found


def _new(found, data, before):
    if data in found:
        return False
    found[data] = found[before] + 1
    return True


def scores(n, cells, theta, rank):
    """{dataset: how many steps make each cell the point of that rank}."""
    by_cell = [
        distances([data for data in datasets(n, cells) if data[rank - 1] == cell], cells, theta)
        for cell in range(cells)
    ]
    return {data: [found[data] for found in by_cell] for data in datasets(n, cells)}


def local_sensitivities(n, cells, theta, rank):
    """{dataset: how far the point of that rank moves at most in one step}."""
    return {
        data: max((abs(data[rank - 1] - other[rank - 1]) for other in neighbours(data, cells, theta)), default=0)
        for data in datasets(n, cells)
    }


def smooth_sensitivities(n, cells, theta, rank, beta):
    """{dataset: the definition of smooth sensitivity, over all datasets}."""
    local = local_sensitivities(n, cells, theta, rank)
    result = {}
    for data in local:
        steps = distances([data], cells, theta)
        result[data] = max(np.exp(-beta * steps[other]) * local[other] for other in local)
    return result
