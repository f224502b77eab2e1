"""Sets of cells as a mechanism: publish how many records lie in each, estimate all cells by least squares.

Promise: that of every vertex strategy. A is the matrix of the sets, zeros and ones; a change along an edge moves as
many published integers as there are sets that cut it, each by one, and the noise is scaled to the largest such number.

Where the total is public, the set of all cells joins the strategy: no edge cuts it, so it costs nothing, and with the
total known exactly its noise has no weight in any estimate.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
import scipy
from numpy.typing import NDArray

from sfumato._types import Floats, Integers
from sfumato.domain import Domain
from sfumato.errors import InvalidInput, TooLarge
from sfumato.exact import is_whole
from sfumato.linear import Matrix, PseudoInverse
from sfumato.linear.estimator import Array, box_weights
from sfumato.mechanism.cells.vertex import VertexMechanism
from sfumato.mechanism.model import Block, NoiseModel
from sfumato.mechanism.totals import with_exact_totals
from sfumato.noise import DiscreteLaplace
from sfumato.policies import Policy
from sfumato.workload import AxisQueries, Part, Workload

Bools = NDArray[np.bool_]

# Least squares without structure is cubic in the cells: at this size it takes a tenth of a second.
LARGEST_CELLS = 1024
# A pivot this small beside the largest entry of AᵀA is rounding: the sets do not tell every cell.
SMALLEST_PIVOT = 1e-9


class SetMatrix(Matrix):
    """A matrix that determines every cell, with its least squares by one Cholesky factor over the cells."""

    undetermined = (
        "sets leave some cell undetermined: no combination of them gives its count. "
        "Add sets, for instance every single cell. Nothing was drawn or recorded."
    )

    def __init__(self, matrix: Any) -> None:
        super().__init__(matrix)
        # Products of nearly full matrices are quicker dense; that is at most as large as twenty times the entries.
        full = self._matrix.nnz * 20 > self.rows * self.cols
        table = self._matrix.astype(np.float64).toarray() if full else self._matrix
        gram = table.T @ table if full else (table.T @ table).toarray()
        self._factor = factorised(np.asarray(gram, dtype=np.float64))
        if self._factor is None:
            raise InvalidInput(self.undetermined)

    def pinv(self, y: Array) -> Array:
        """(AᵀA)⁻¹·Aᵀ·y."""
        return self._solve(self.transpose(y))

    def pinv_transpose(self, q: Array) -> Array:
        """A·(AᵀA)⁻¹·q."""
        return self.forward(self._solve(q))

    def _solve(self, x: Array) -> Array:
        flat = np.asarray(x, dtype=np.float64).reshape(-1, self.cols)
        return scipy.linalg.cho_solve((self._factor, True), flat.T).T.reshape(np.shape(x))


class FlatModel(NoiseModel):
    """The noise of one estimator over all cells at once, without a factor for every axis."""

    def error_terms(self, workload: Workload, domain: Domain) -> list[float]:
        """From the Gram matrix of the workload."""
        return [self._mean_square(workload.gram(domain))]

    def product_terms(self, kinds: Sequence[AxisQueries]) -> list[float]:
        """From the Gram matrix of the products: no axis has a factor of its own."""
        return [self._mean_square(Part(Fraction(1), tuple(kinds)).gram(self.shape))]

    def _mean_square(self, gram: Floats) -> float:
        """The mean of qᵀ·Σ·q is trace(G·Σ)."""
        (felt,) = self.coefficients(np.eye(len(gram)))
        return float(np.einsum("ij,ij->", felt, gram @ felt))

    def _range_moments(self, low: Floats, high: Floats) -> Iterator[tuple[Floats, Floats]]:
        second, fourth = np.empty(len(low)), np.empty(len(low))
        step = max(1, (1 << 21) // self.blocks[0].estimator.cols)
        for start in range(0, len(low), step):
            part = slice(start, start + step)
            (felt,) = self.coefficients(box_weights(self.shape, low[part], high[part]))
            second[part], fourth[part] = (felt**2).sum(axis=-1), (felt**4).sum(axis=-1)
        yield second, fourth

    def range_groups(self, low: Floats, high: Floats) -> None:
        """A range feels every set in its own way; who needs the whole law writes the coefficients out."""
        del low, high


@dataclass(frozen=True, kw_only=True, eq=False)
class SetMechanism(VertexMechanism):
    """A binary strategy over the flat cells: `factors` is its one matrix."""

    @cached_property
    def model(self) -> NoiseModel:
        """One block, A⁺, corrected to the total where that is public."""
        noise = DiscreteLaplace(self.epsilon / self.sensitivity)
        block = Block(PseudoInverse(self.factors[0]), noise)
        return FlatModel(self.policy.domain.shape, (block,), centred=self.policy.total_is_public)

    def _with_totals(self, estimates: Floats, totals: Integers) -> Floats:
        """Only factors of one cell are public beside the total: the set of all cells does not tell components apart."""
        g = self.model.total_shares[0][0].ravel()
        return with_exact_totals(self.policy, estimates + g * ((totals.sum() - estimates.sum()) / g.sum()), totals)

    @property
    def settings(self) -> str:
        """How many sets, and what they cost; the list itself is for files."""
        return f"{sum(map(len, self.options.values()))} sets, sensitivity {self.sensitivity}"


def set_mechanism(name: str, policy: Policy, epsilon: Fraction, options: dict[str, Any]) -> SetMechanism:
    """The mechanism of `boxes` and `sets`, as `encoded` writes them."""
    size = policy.domain.size
    refuse_large(size)
    members = decoded(options, policy.domain.shape)
    if policy.total_is_public:
        members = np.concatenate([members, np.ones((1, size), dtype=bool)])
    factors = (SetMatrix(members),)
    return SetMechanism(name=name, policy=policy, epsilon=epsilon, options=options, factors=factors)


def refuse_large(size: int) -> None:
    """Beyond the limit nothing is begun."""
    if size > LARGEST_CELLS:
        raise TooLarge(
            f"mechanism='greedy' takes at most {LARGEST_CELLS:,} cells, and this domain has {size:,}. Use fewer cells, "
            "or mechanism='hierarchy' or 'edges'. Nothing was drawn or recorded."
        )


def covariance(members: Bools, total_known: bool) -> Floats | None:
    """Σ of the least-squares estimates for noise of variance one on every set, None where a cell is undetermined."""
    factor = factorised(precision(members, total_known))
    if factor is None:
        return None
    return centred(scipy.linalg.cho_solve((factor, True), np.eye(members.shape[1])), total_known)


def precision(members: Bools, total_known: bool) -> Floats:
    """AᵀA, with the set of all cells where the total is known."""
    table = members.astype(np.float64)
    return np.asarray(table.T @ table + (1.0 if total_known else 0.0))


def centred(sigma: Floats, total_known: bool) -> Floats:
    """The covariance once the total is known exactly: it falls by g·gᵀ/(1·g), g = Σ·1."""
    if not total_known:
        return sigma
    g = sigma.sum(axis=1)
    return np.asarray(sigma - np.outer(g, g) / g.sum())


def factorised(gram: Floats) -> Floats | None:
    """The lower Cholesky factor, None where the matrix is singular up to rounding."""
    try:
        factor = np.linalg.cholesky(gram)
    except np.linalg.LinAlgError:
        return None
    return (
        np.asarray(factor, dtype=np.float64)
        if (factor.diagonal() ** 2 > SMALLEST_PIVOT * gram.diagonal().max()).all()
        else None
    )


def encoded(members: Bools, shape: tuple[int, ...]) -> dict[str, Any]:
    """Sets as plain lists of whole numbers: `boxes` (lo…, hi…) of cell indices, half-open; `sets` of cell numbers
    for all others.
    """
    boxes: list[list[int]] = []
    others: list[list[int]] = []
    for row in members:
        cells = np.flatnonzero(row)
        index = np.stack(np.unravel_index(cells, shape))
        low, high = index.min(axis=1), index.max(axis=1) + 1
        if (high - low).prod() == len(cells):
            boxes.append([*low.tolist(), *high.tolist()])
        else:
            others.append(cells.tolist())
    return {"boxes": boxes, **({"sets": others} if others else {})}


def decoded(options: dict[str, Any], shape: tuple[int, ...]) -> Bools:
    """The sets that `encoded` wrote, or that a user did; everything is checked, since files are read here."""
    size, d = int(np.prod(shape)), len(shape)
    boxes = _whole_numbers(options.get("boxes", []), "boxes")
    others = _whole_numbers(options.get("sets", []), "sets")
    members = np.zeros((len(boxes) + len(others), size), dtype=bool)
    for row, box in zip(members, boxes, strict=False):
        low, high = box[:d], box[d:]
        if len(box) != 2 * d or not all(0 <= a < b <= n for a, b, n in zip(low, high, shape, strict=True)):
            raise InvalidInput(
                f"boxes holds {box!r}: give (lo…, hi…) in cell indices, half-open and not empty, inside the shape "
                f"{shape}."
            )
        row.reshape(shape)[tuple(slice(a, b) for a, b in zip(low, high, strict=True))] = True
    for row, cells in zip(members[len(boxes) :], others, strict=True):
        if not cells or not all(0 <= cell < size for cell in cells):
            raise InvalidInput(f"sets holds {cells!r}: give cell numbers from 0 to {size - 1}, at least one a set.")
        row[cells] = True
    return members


def _whole_numbers(given: Any, name: str) -> list[list[int]]:
    lists = given.tolist() if isinstance(given, np.ndarray) else given
    if not isinstance(lists, (list, tuple)) or not all(isinstance(entry, (list, tuple)) for entry in lists):
        raise InvalidInput(f"{name} must be a list of lists of whole numbers.")
    if not all(is_whole(k) for entry in lists for k in entry):
        raise InvalidInput(f"{name} must be a list of lists of whole numbers.")
    return [[int(k) for k in entry] for entry in lists]
