"""How far a plan is from the best that any matrix mechanism could do: the singular value bound.

For a workload W of m queries under add/remove, every matrix mechanism with continuous Laplace noise has a total squared
error of at least `(2/ε²)·(Σ σ_i(W))²/n`, n being the number of columns (Li and Miklau, ICDT 2013; the L1 sensitivity
that ε-privacy needs is at least the L2 one of their theorem). By transformational equivalence the same holds under a
policy with W·P in the place of W and the number of edges in the place of n. The squares of the singular values are the
eigenvalues of `L^½·G·L^½` with the Gram matrix G = WᵀW and the Laplacian L = P·Pᵀ.

Discrete noise has less variance, and beats that bound at large ε. What is compared here with integer noise is the bound
for integer noise: v(ε) = 1/(2·sinh²(ε/2)), the variance of discrete Laplace noise of rate ε, takes the place of 2/ε².
A mechanism x + L·η, with an integer vector c for every edge p = L·c and Σ |c_j|·r_j ≤ ε, has the error ‖W·L·V^½‖²,
V = diag(v(r_j)), and with C of all c in its columns the nuclear norm Σ σ(W·P) = ‖W·L·C‖* is at most
‖W·L·V^½‖·‖V^-½·C‖. Every column of V^-½·C has a squared norm of Σ c²·2·sinh²(r/2) ≤ 2·sinh²(Σ |c|·r/2) ≤ 1/v(ε): for
whole |c| ≥ 1 sinh(|c|·x) is at least |c|·sinh(x), and sinh² grows faster than sums. Data-dependent mechanisms may fall
below it.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from sfumato.noise import DiscreteLaplace
from sfumato.policies import Policy
from sfumato.workload import CELLS, PREFIXES, RANGES, AxisQueries, Workload

# Eigenvalues of a dense matrix this large take a fraction of a second.
LARGEST_DENSE = 1024


def singular_value_bound(policy: Policy, workload: Workload, epsilon: Fraction) -> float | None:
    """The least mean squared error a query of any matrix mechanism with integer noise, or None where it is not
    computed.
    """
    shape, unit = policy.domain.shape, DiscreteLaplace(epsilon).variance
    parts = workload.parts(policy.domain)
    if parts is not None and len(parts) == 1:
        kinds = parts[0].kinds
        if not policy.moves.exist and policy.hides_presence:
            norms = [kind.nuclear_norm(n) for kind, n in zip(kinds, shape, strict=True)]
            if None not in norms:
                nuclear = math.prod(norm for norm in norms if norm is not None)
                return unit * nuclear**2 / policy.domain.size
        moves = policy.moves.stencil
        if moves is not None and moves.longest == 1 and len(shape) == 1 and policy.absent is None:
            found = _path(shape[0], kinds[0])
            if found is not None:
                return unit * found
    if policy.domain.size > LARGEST_DENSE:
        return None
    laplacian, edges = _laplacian(policy)
    if edges == 0:
        return None
    gram = workload.gram(policy.domain)
    values, vectors = np.linalg.eigh(laplacian)
    half = vectors * np.sqrt(np.maximum(values, 0.0))
    spectrum = np.maximum(np.linalg.eigvalsh(half.T @ gram @ half), 0.0)
    return float(unit * np.sqrt(spectrum).sum() ** 2 / edges)


def _path(n: int, kind: AxisQueries) -> float | None:
    """(Σ σ)²/(edges · queries) of a line's queries seen from its n - 1 edges, where that has a closed form."""
    if n == 1:
        return 0.0
    if kind == PREFIXES:  # a prefix has one end: the identity over the edges, and the total
        return (n - 1) / n
    if kind == RANGES:  # every edge ends n ranges, every two edges end one together: (n + 1)·I - 1·1ᵀ
        return float(((n - 2) * math.sqrt(n + 1) + math.sqrt(2)) ** 2 / ((n - 1) * kind.count(n)))
    if kind == CELLS:  # DᵀD of a path, whose eigenvalues are 2 - 2·cos
        angles = math.pi * np.arange(1, n) / n
        return float(np.sqrt(2 - 2 * np.cos(angles)).sum() ** 2 / ((n - 1) * n))
    return None


def _laplacian(policy: Policy) -> tuple[NDArray[np.float64], int]:
    """(P·Pᵀ, the number of edges)."""
    size = policy.domain.size
    if policy.moves.join_all and policy.absent is None:
        return size * np.eye(size) - 1.0, size * (size - 1) // 2
    pairs = policy.edges()
    table = np.zeros((size, size))
    inner = pairs[pairs[:, 1] >= 0]
    np.add.at(table, (pairs[:, 0], pairs[:, 0]), 1.0)
    np.add.at(table, (inner[:, 1], inner[:, 1]), 1.0)
    np.add.at(table, (inner[:, 0], inner[:, 1]), -1.0)
    np.add.at(table, (inner[:, 1], inner[:, 0]), -1.0)
    return table, len(pairs)
