"""Some entries of the inverse of a sparse symmetric matrix: those where its factors have entries.

Takahashi, Fagan, Chin (1973): with Q = L·D·Lᵀ and Z = Q⁻¹, `Z = D⁻¹·L⁻¹ + (I - Lᵀ)·Z`. Read from the last column to
the first, an entry of Z inside the pattern of L needs none outside it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato._types import Floats, Integers


class SelectedInverse:
    """Entries of Q⁻¹, from SuperLU's factors of a symmetric Q in natural order: quick where L has one, else solved."""

    def __init__(self, factors: Any) -> None:
        lower = factors.L.tocsc()
        lower.sort_indices()
        size, pivots = lower.shape[0], factors.U.diagonal()
        start, rows = lower.indptr.astype(np.int64), lower.indices.astype(np.int64)
        self._factors, self._size = factors, size
        self._keys = np.repeat(np.arange(size), np.diff(start)) * size + rows  # ascending: column by column
        self._values = np.zeros(len(rows))
        for j in range(size - 1, -1, -1):
            begin, end = start[j] + 1, start[j + 1]  # the diagonal comes first
            below, column = rows[begin:end], lower.data[begin:end]
            self._values[begin:end] = -self(below[:, None], below[None, :]) @ column
            self._values[start[j]] = 1 / pivots[j] - column @ self._values[begin:end]

    def __call__(self, i: Integers, j: Integers) -> Floats:
        """Q⁻¹[i, j], entry by entry."""
        values, there = self._listed(i, j)
        if not there.all():
            column, which = np.unique(np.broadcast_to(i, there.shape)[~there], return_inverse=True)
            units = np.zeros((self._size, len(column)))
            units[column, np.arange(len(column))] = 1.0
            values[~there] = self._factors.solve(units)[np.broadcast_to(j, there.shape)[~there], which.ravel()]
        return values

    def _listed(self, i: Integers, j: Integers) -> tuple[Floats, NDArray[np.bool_]]:
        """(the entries that are kept, and which ones those are)."""
        wanted = np.minimum(i, j) * self._size + np.maximum(i, j)
        at = np.minimum(np.searchsorted(self._keys, wanted), len(self._keys) - 1)
        return self._values[at], self._keys[at] == wanted
