"""An operator over some of the cells of a line, seen from all of them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import InvalidInput
from sfumato.linear.operator import Array, Operator
from sfumato.linear.queries import AllOfAKind


class Embedded(Operator):
    """An estimator over the chosen `cells` (rising positions) of a line of n cells; the others receive nothing.

    A range over the line is a range over the chosen cells too: a place t of the line lies at `Σ_j clip(t - c_j, 0, 1)`
    among them. So whatever the inner operator knows about ranges holds here, fractions of cells included.
    """

    def __init__(self, inner: Operator, cells: NDArray[np.int64], n: int) -> None:
        rising = len(cells) == 0 or (cells[0] >= 0 and cells[-1] < n and bool((np.diff(cells) > 0).all()))
        if len(cells) != inner.rows or not rising:
            raise InvalidInput(f"cells must be {inner.rows} rising positions on a line of {n} cells, one for each row.")
        self.inner, self.cells = inner, cells
        self.rows, self.cols = n, inner.cols

    @property
    def key(self) -> tuple[object, ...] | None:
        """That of what is embedded, and where."""
        inner = self.inner.key
        return None if inner is None else ("embedded", self.rows, self.cells.tobytes(), inner)

    def forward(self, x: Array) -> Array:
        """The inner result, put into its cells."""
        values = self.inner.forward(x)
        result = np.zeros_like(values, shape=(*values.shape[:-1], self.rows))
        result[..., self.cells] = values
        return result

    def transpose(self, y: Array) -> Array:
        """What the chosen cells hold, sent back."""
        return self.inner.transpose(y[..., self.cells])

    def inverts(self) -> Operator:
        """What the inner operator inverts: the other cells receive nothing."""
        return self.inner.inverts()

    def range_terms(self, low: NDArray[np.float64], high: NDArray[np.float64]) -> tuple[Array, Array] | None:
        """Those of the range among the chosen cells."""
        return self.inner.range_terms(self._place(low), self._place(high))

    def range_moments(self, low: NDArray[np.float64], high: NDArray[np.float64]) -> tuple[Array, Array]:
        """Likewise."""
        return self.inner.range_moments(self._place(low), self._place(high))

    def mean_variance(self, queries: AllOfAKind) -> float:
        """Closed where the inner operator has a form for some cells of a line."""
        known = self.inner.mean_variance_at(queries, self.rows, self.cells)
        return queries.measured(self) if known is None else known

    @property
    def largest_coefficient(self) -> float:
        """That of what is embedded."""
        return self.inner.largest_coefficient

    @property
    def fourth_is_exact(self) -> bool:
        """As for what is embedded."""
        return self.inner.fourth_is_exact

    @property
    def keeps_integers(self) -> bool:
        """As for what is embedded."""
        return self.inner.keeps_integers

    def _place(self, t: NDArray[np.float64]) -> NDArray[np.float64]:
        """Where a place on the line lies among the chosen cells."""
        cell = np.floor(t)
        before = np.searchsorted(self.cells, cell, side="left")
        cut = np.searchsorted(self.cells, cell, side="right") > before  # the place lies in a chosen cell
        place: NDArray[np.float64] = before.astype(np.float64) + np.where(cut, t - cell, 0.0)
        return place
