"""Workloads written out: the weighted Gram matrix of a union, query by query, from nothing but its definition."""

from __future__ import annotations

from itertools import product

import numpy as np

from sfumato.linear.estimator import box_weights


def cells(n):
    return [(i, i + 1) for i in range(n)]


def spans(n):
    return [(i, j) for i in range(n) for j in range(i + 1, n + 1)]


def prefixes(n):
    return [(0, i + 1) for i in range(n)]


def total(n):
    return [(0, n)]


def blocks(length):
    return lambda n: [(i, min(i + length, n)) for i in range(0, n, length)]


def rows(shape, *asked):
    """Every product of one query along every axis, one row each."""
    boxes = np.array(list(product(*(along(n) for along, n in zip(asked, shape, strict=True)))), dtype=float)
    return box_weights(shape, boxes[:, :, 0], boxes[:, :, 1])


def weighted_gram(*terms):
    """Σ w·QᵀQ over Σ w·(number of queries), for pairs (w, Q)."""
    return sum(w * q.T @ q for w, q in terms) / sum(w * len(q) for w, q in terms)
