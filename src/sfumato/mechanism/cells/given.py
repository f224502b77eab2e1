"""A strategy that the user gives: any matrix of whole numbers, published with noise, estimated by least squares.

Promise: ε-private under the policy, for one record, as every vertex strategy is. A change along an edge (u, v) moves
the published integers by the difference of the columns u and v of A, the largest L1 norm of which over *all* edges of
the policy is computed exactly, in integers; the noise has that scale over ε. Nothing is asked of the matrix but that
it tells every cell, since its estimator is A⁺.

Where the total is public it joins the strategy as one more row: no edge moves it, so it costs nothing.

Fang, Chang (ASIA CCS 2014), section 5.2: any strategy A, with its δ-sensitivity.
"""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import scipy
from numpy.typing import NDArray

from sfumato.errors import InvalidInput, TooLarge
from sfumato.mechanism.base import LARGEST_PRODUCT, Mechanism
from sfumato.mechanism.cells.sets import LARGEST_CELLS, SetMatrix, SetMechanism
from sfumato.mechanism.cells.strategies import no_options
from sfumato.mechanism.entry import Entry, Options
from sfumato.policies import Policy

# Rows and entries that are taken. The coefficients of all cells are written out once, to a hundred megabytes.
LARGEST_ROWS = 1 << 14
LARGEST_ENTRIES = 1 << 20


class GivenMatrix(SetMatrix):
    """A user's strategy, with its least squares."""

    undetermined = (
        "strategy leaves some cell undetermined (or so nearly that rounding would decide): its rows have no full rank. "
        "Add rows, for instance every single cell. Nothing was drawn or recorded."
    )


@dataclass(frozen=True, kw_only=True, eq=False)
class GivenMechanism(SetMechanism):
    """The strategy of a user over the flat cells: `factors` is its one matrix."""

    @property
    def settings(self) -> str:
        """How many rows, and what they cost; the entries are for files."""
        return f"{len(self.options['rows'])} rows, sensitivity {self.sensitivity}"


def given(policy: Policy, epsilon: Fraction, **options: Any) -> Mechanism:
    """The mechanism of `rows`, each a list of cell, entry, cell, entry, …, as `rows_of` writes them."""
    rows = options.pop("rows", None)
    no_options(GIVEN.name, options)
    if rows is None:
        raise InvalidInput("mechanism='strategy' needs a matrix: give it with strategy=…, without mechanism=….")
    size = policy.domain.size
    _refuse_large(size, len(rows) if isinstance(rows, list) else 0)
    matrix = _decoded(rows, size)
    if policy.total_is_public:
        matrix = scipy.sparse.vstack([matrix, np.ones((1, size), dtype=np.int64)])
    return GivenMechanism(
        name=GIVEN.name, policy=policy, epsilon=epsilon, options={"rows": rows}, factors=(GivenMatrix(matrix),)
    )


def rows_of(strategy: Any, cells: int) -> Options:
    """A matrix that a user gave, dense or sparse, as the options that build its mechanism."""
    try:
        if isinstance(strategy, np.matrix) or not scipy.sparse.issparse(strategy):
            strategy = np.asarray(strategy)
            if strategy.ndim != 2:
                raise ValueError("not two-dimensional")
        shape, kind = strategy.shape, strategy.dtype.kind
    except (TypeError, ValueError) as error:
        raise InvalidInput(
            "strategy must be a two-dimensional array or sparse matrix of whole numbers, one column a cell. "
            "Nothing was drawn or recorded."
        ) from error
    if kind not in "biuf":
        raise InvalidInput(
            f"strategy holds entries of type {strategy.dtype}; give whole numbers. Nothing was drawn or recorded."
        )
    if shape[1] != cells:
        raise InvalidInput(
            f"strategy has {shape[1]:,} columns, but the domain has {cells:,} cells: one column a cell, in the order "
            "of the flat counts. Nothing was drawn or recorded."
        )
    _refuse_large(cells, shape[0])
    # Entries of one place add up before they are looked at; whole numbers in Python's own, which do not wrap.
    table = scipy.sparse.coo_array(strategy)
    places: list[dict[int, int]] = [{} for _ in range(shape[0])]
    for row, cell, entry in zip(*(part.tolist() for part in (*table.coords, table.data)), strict=True):
        sum_here = _whole(entry) + places[row].get(cell, 0)
        places[row][cell] = _whole(sum_here)
    return {"rows": [[part for item in sorted(row.items()) if item[1] for part in item] for row in places]}


def _whole(entry: float) -> int:
    if entry != entry or abs(entry) > LARGEST_PRODUCT or int(entry) != entry:
        raise InvalidInput(
            f"strategy holds {entry!r}: entries must be whole numbers of at most {LARGEST_PRODUCT}, since noise is "
            "added to whole numbers. Nothing was drawn or recorded. Multiply the matrix by a whole number and round "
            "it: a scale costs nothing."
        )
    return int(entry)


def _refuse_large(cells: int, rows: int) -> None:
    if cells > LARGEST_CELLS or rows > LARGEST_ROWS:
        raise TooLarge(
            f"strategy has {rows:,} rows over {cells:,} cells, and least squares without structure takes at most "
            f"{LARGEST_ROWS:,} over {LARGEST_CELLS:,}. Nothing was drawn or recorded. Use fewer, or register a "
            "mechanism whose operator knows its own inverse (sf.register)."
        )


def _decoded(rows: Any, cells: int) -> Any:
    """The matrix of `rows`; everything is checked, since files are read here."""
    if not isinstance(rows, list) or not all(isinstance(row, list) for row in rows):
        raise InvalidInput("rows must be a list of lists: cell, entry, cell, entry, … for every row.")
    if not rows or not all(rows):
        raise InvalidInput(
            "strategy has a row without entries, or no row: nothing but noise would be published for it. Leave it out. "
            "Nothing was drawn or recorded."
        )
    lengths = np.array([len(row) for row in rows])
    if lengths.sum() > 2 * LARGEST_ENTRIES:
        raise TooLarge(
            f"strategy has {lengths.sum() // 2:,} entries other than zero, and at most {LARGEST_ENTRIES:,} are taken. "
            "Nothing was drawn or recorded. Use fewer rows or a sparser matrix."
        )
    parts = [part for row in rows for part in row]
    if (lengths % 2).any() or any(type(part) is not int or abs(part) > LARGEST_CELLS for part in parts):
        raise InvalidInput("rows must hold cell, entry, cell, entry, …: whole numbers, none of them too large.")
    pairs: NDArray[np.int64] = np.array(parts, dtype=np.int64).reshape(-1, 2)
    index = np.repeat(np.arange(len(rows)), lengths // 2)
    inside = (pairs[:, 0] >= 0) & (pairs[:, 0] < cells) & (pairs[:, 1] != 0) & (abs(pairs[:, 1]) <= LARGEST_PRODUCT)
    if not inside.all() or len(np.unique(index * cells + pairs[:, 0])) < len(pairs):
        raise InvalidInput(
            f"rows must name cells from 0 to {cells - 1}, each once a row, with entries other than zero and of at "
            f"most {LARGEST_PRODUCT}."
        )
    return scipy.sparse.csr_array((pairs[:, 1], (index, pairs[:, 0])), shape=(len(rows), cells))


def _needed(policy: Policy) -> tuple[Set[str], ...]:
    del policy
    return ({"rows"},)


GIVEN = Entry(name="strategy", build=given, needed=_needed)
