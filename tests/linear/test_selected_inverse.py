"""Entries of a sparse inverse, against the dense one: inside the pattern of the factor, and outside it."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse
from scipy.sparse.linalg import splu

from sfumato.linear.selected_inverse import SelectedInverse


@pytest.mark.parametrize("size", [1, 2, 5, 30])
@pytest.mark.parametrize("density", [0.0, 0.1, 0.5, 1.0])
def test_every_entry_equals_the_dense_inverse(size, density):
    rng = np.random.default_rng(size)
    half = rng.normal(size=(size, size)) * (rng.random((size, size)) < density)
    matrix = half @ half.T + np.eye(size)
    factors = splu(
        scipy.sparse.csc_matrix(matrix),
        permc_spec="NATURAL",
        diag_pivot_thresh=0.0,
        options={"SymmetricMode": True},
    )
    i, j = np.indices((size, size))
    np.testing.assert_allclose(SelectedInverse(factors)(i, j), np.linalg.inv(matrix), atol=1e-12)
