"""Edges of a grid and of its diagonals: hats over whatever crosses a grid line, and noise of its own on every edge.

Between two neighbouring columns of a grid lies a line that edges cross: at every cell one along the axis, and between
two cells the two diagonals. A line of n cells has 2n - 1 such places. Hats over all of them measure flows across the
line, and every edge is measured by itself, a diagonal by `diagonal` times its flow. A diagonal crosses a line of either
direction. Its two flows enter one line as their sum and the other as their difference, which noise of one scale tells
apart without correlation: so least squares falls apart into the lines, each with half the squared weight of a diagonal.

A query q on the cells asks of the edges along an axis how it differs between their ends, and of the two diagonals at a
place together the mean of the edges beside them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np

from sfumato._types import Floats, Integers
from sfumato.errors import InvalidInput
from sfumato.linear.compose import PseudoInverse
from sfumato.linear.elementary import Difference
from sfumato.linear.estimator import range_weights
from sfumato.linear.hat_variances import HatVariances
from sfumato.linear.hats import Hats
from sfumato.linear.operator import Array, Matrix, Operator
from sfumato.linear.queries import AllOfAKind, averaged

# Bits behind the point of estimates in fixed point.
FRACTION_BITS = 14
# Up to so many cells each may be a case of its own.
FEW_CELLS = 4096
# Numbers held at a time.
CHUNK = 1 << 22


class Crossing(Operator):
    """One line: hats of these widths, in cells, over all of its places; weights as for `Hats`, the last that of edges
    along the axis.
    """

    def __init__(self, n: int, widths: Sequence[int], weights: Sequence[int], diagonal: int) -> None:
        self.hats = Hats(2 * n - 1, [2 * b for b in widths], weights)
        self.diagonal = diagonal
        self.cols, self.rows = n, self.hats.hats + 2 * n - 1
        self.matrix = self.hats._hats
        self.own = self.hats._own[::2]

    @property
    def largest_share(self) -> int:
        """What a diagonal gives to hats, at the most."""
        return int((self.hats.total - self.hats._own[1::2]).max(initial=0))

    @cached_property
    def variances(self) -> HatVariances:
        """The system behind the hats."""
        return HatVariances(self.hats._levels, self._weights, self.matrix)

    @property
    def _weights(self) -> Any:
        """Of every place: that of its edge, or of its two diagonals together."""
        weights = self.hats._own.astype(np.float64)
        weights[1::2] = self.diagonal / math.sqrt(2)
        return weights

    def places(self, q: Array) -> Floats:
        """What a query along the line asks of every place."""
        asked = np.empty((*np.shape(q)[:-1], 2 * self.cols - 1))
        asked[..., ::2] = q
        asked[..., 1::2] = (q[..., 1:] + q[..., :-1]) / 2
        return asked

    def cells(self, places: Floats) -> Floats:
        """The transpose: what places have, at their cells."""
        found = places[..., ::2].copy()
        found[..., 1:] += places[..., 1::2] / 2
        found[..., :-1] += places[..., 1::2] / 2
        return found

    def felt(self, q: Array) -> tuple[Floats, Floats]:
        """(how strongly a query feels every hat, what hats leave of it at every place)."""
        asked = self.places(np.asarray(q, dtype=np.float64))
        if not self.hats.hats:
            return np.zeros((*asked.shape[:-1], 0)), asked
        hats = self.variances.solve(_applied(self.variances.spread, asked))
        return hats, asked - _applied(self.matrix.T, hats)

    def flow(self, hats: Floats) -> Floats:
        """What hats know better than the edges themselves, as a flow at every cell of the line."""
        if not self.hats.hats:
            return np.zeros((*hats.shape[:-1], self.cols))
        return self.cells(_applied(self.variances.spread.T, self.variances.solve(hats)))

    def crossed(self, edges: Array, diagonals: Array) -> Array:
        """H of what crosses: edges along the axis, and diagonals together."""
        whole = np.zeros((*edges.shape[:-1], 2 * self.cols - 1), dtype=edges.dtype)
        whole[..., ::2], whole[..., 1::2] = edges, diagonals
        return _applied(self.matrix, whole)

    # As a strategy of its own, of which the variance is that of one line.

    def forward(self, x: Array) -> Array:
        """What flows along the axis alone give to hats and to their own edges."""
        flat = np.asarray(x)
        none = np.zeros((*flat.shape[:-1], self.cols - 1), dtype=flat.dtype)
        own = np.zeros((*flat.shape[:-1], 2 * self.cols - 1))
        own[..., ::2] = self.own * flat
        return np.concatenate([self.crossed(flat, none), own], axis=-1)

    def transpose(self, y: Array) -> Array:
        """The same in reverse."""
        hats, own = y[..., : self.hats.hats], y[..., self.hats.hats :]
        return np.asarray(_applied(self.matrix.T, hats)[..., ::2] + self.own * own[..., ::2])

    def pinv_transpose(self, q: Array) -> Array:
        """Hats, then places."""
        hats, left = self.felt(q)
        return np.concatenate([hats, left / self._weights], axis=-1)

    def cell_variances(self) -> Floats:
        """Of every single cell."""
        cell = np.arange(self.cols, dtype=np.float64)
        return self._of_whole(cell, cell + 1)

    def prefix_variances(self) -> Floats:
        """Of the n prefixes that end behind each cell."""
        return self._of_whole(np.zeros(self.cols), np.arange(1.0, self.cols + 1))

    def _of_whole(self, low: Floats, high: Floats) -> Floats:
        """A range of whole cells holds half of the places beside its ends."""
        places = 2 * self.cols - 1
        return self.variances.of_ranges(np.maximum(2 * low - 0.5, 0.0), np.minimum(2 * high - 0.5, places))

    def inverse_mean_variance(self, queries: AllOfAKind) -> float:
        """Exact at any length."""
        return queries.by_prefixes(self)

    def inverse_range_moments(self, low: Floats, high: Floats) -> tuple[Floats, Floats]:
        """Whole ranges by their ends; those that cut cells written out."""
        whole = (low == np.floor(low)) & (high == np.floor(high)) & (high > low)
        second = np.zeros(len(low))
        second[whole] = self._of_whole(low[whole], high[whole])
        rest = np.flatnonzero(~whole)
        step = max(1, CHUNK // self.rows)
        for start in range(0, len(rest), step):
            part = rest[start : start + step]
            felt = self.pinv_transpose(range_weights(self.cols, low[part], high[part]))
            second[part] = (felt**2).sum(axis=-1)
        return second, second**2 / 7

    inverse_fourth_is_exact = False


class CrossingEstimator(Operator):
    """From noise on edges along both axes, on the diagonals that rise and fall, and on hats over the lines of either
    direction, one after the other, to the cells of a grid. `lines[i]` runs along axis i.
    """

    def __init__(self, shape: tuple[int, int], lines: tuple[Crossing, Crossing]) -> None:
        if lines[0].diagonal != lines[1].diagonal:
            raise InvalidInput("diagonals have one weight.")
        self.shape, self.lines, self.diagonal = shape, lines, lines[0].diagonal
        (nx, ny), (px, py) = shape, (line.hats.hats for line in lines)
        self.parts = ((nx - 1, ny), (nx, ny - 1), (nx - 1, ny - 1), (nx - 1, ny - 1), (nx - 1, py), (px, ny - 1))
        self.rows, self.cols = nx * ny, sum(a * b for a, b in self.parts)

    def split(self, noise: Array) -> list[Array]:
        """Edges along x, along y, rising and falling diagonals, hats over the lines between columns, between rows."""
        ends = np.cumsum([a * b for a, b in self.parts])[:-1]
        pieces = np.split(noise, ends, axis=-1)
        return [p.reshape(*p.shape[:-1], *size) for p, size in zip(pieces, self.parts, strict=True)]

    def edge_noise(self, z: Sequence[Array]) -> Array:
        """B·z for flows on edges along x and y and on both diagonals: what noise has to make up for."""
        x, y, rising, falling = z
        along_x, along_y = self.lines
        hats = [
            along_y.crossed(x, rising + falling),
            _swapped(along_x.crossed(_swapped(y), _swapped(rising - falling))),
        ]
        own = [along_y.own * x, along_x.own[:, None] * y, self.diagonal * rising, self.diagonal * falling]
        return np.concatenate([part.reshape(*part.shape[:-2], -1) for part in (*own, *hats)], axis=-1)

    def inverts(self) -> Operator:
        """B, one column for every edge: along x, along y, rising and falling. Written out."""
        sizes = self.parts[:4]
        ends = np.cumsum([a * b for a, b in sizes])
        pieces = np.split(np.eye(int(ends[-1]), dtype=np.int64), ends[:-1], axis=-1)
        return Matrix(self.edge_noise([p.reshape(-1, *size) for p, size in zip(pieces, sizes, strict=True)]).T)

    def divergence(self, z: Sequence[Array]) -> Array:
        """What flows do to the cells: each leaves one and enters another."""
        x, y, rising, falling = z
        field = np.zeros((*x.shape[:-2], *self.shape), dtype=x.dtype)
        for flow, here, there in (
            (x, (slice(-1), slice(None)), (slice(1, None), slice(None))),
            (y, (slice(None), slice(-1)), (slice(None), slice(1, None))),
            (rising, (slice(-1), slice(-1)), (slice(1, None), slice(1, None))),
            (falling, (slice(-1), slice(1, None)), (slice(1, None), slice(-1))),
        ):
            field[(..., *here)] += flow
            field[(..., *there)] -= flow
        return field.reshape(*x.shape[:-2], -1)

    def flows(self, own: Sequence[Array], hats: Sequence[Array]) -> list[Floats]:
        """The estimated flows, from those that edges say by themselves and noise on hats."""
        x, y, rising, falling = own
        along_x, along_y = self.lines
        more_x = along_y.flow(hats[0] - along_y.crossed(x, rising + falling))
        more_y = along_x.flow(_swapped(hats[1]) - along_x.crossed(_swapped(y), _swapped(rising - falling)))
        return [x + more_x, y + _swapped(more_y), rising, falling]

    def forward(self, x: Array) -> Array:
        """M·η in floating point."""
        parts = self.split(np.asarray(x, dtype=np.float64))
        own = [part / weight for part, weight in zip(parts, self._own, strict=False)]
        return self.divergence(self.flows(own, parts[4:]))

    @property
    def _own(self) -> list[Any]:
        along_x, along_y = self.lines
        return [along_y.own, along_x.own[:, None], self.diagonal, self.diagonal]

    def fixed(self, noise: Integers) -> Integers:
        """The same in integers with FRACTION_BITS behind the point, and *exactly* equivariant: B·z added to the noise
        adds the divergence of z.

        An edge's own noise is `w·a + ρ` with 0 ≤ ρ < w, and that on hats `H·a + r`. The remainders ρ and r do not
        change when an integer z is added to the flows, so neither does anything that is made of them.
        """
        parts = self.split(noise)
        whole, rest = [], []
        for part, weight in zip(parts, self._own, strict=False):
            a = np.floor_divide(part, weight)
            whole.append(a)
            rest.append((part - a * weight) / weight)
        x, y, rising, falling = whole
        along_x, along_y = self.lines
        left = [
            parts[4] - along_y.crossed(x, rising + falling),
            parts[5] - _swapped(along_x.crossed(_swapped(y), _swapped(rising - falling))),
        ]
        fine = self.flows(rest, [part.astype(np.float64) for part in left])
        rounded = [np.rint(np.ldexp(flow, FRACTION_BITS)).astype(np.int64) for flow in fine]
        return self.divergence([(a << FRACTION_BITS) + flow for a, flow in zip(whole, rounded, strict=True)])

    def transpose(self, y: Array) -> Array:
        """How strongly a query feels every noise."""
        q = np.asarray(y, dtype=np.float64).reshape(*np.shape(y)[:-1], *self.shape)
        along_x, along_y = self.lines
        hats_x, left_x = along_y.felt(q[..., :-1, :] - q[..., 1:, :])
        hats_y, left_y = along_x.felt(_swapped(q[..., :-1] - q[..., 1:]))
        left_y = _swapped(left_y)
        across, along = left_x[..., 1::2], left_y[..., 1::2, :]
        found = [
            left_x[..., ::2] / along_y.own,
            left_y[..., ::2, :] / along_x.own[:, None],
            (across + along) / self.diagonal,
            (across - along) / self.diagonal,
            hats_x,
            _swapped(hats_y),
        ]
        return np.concatenate([part.reshape(*part.shape[:-2], -1) for part in found], axis=-1)

    fourth_is_exact = False

    @property
    def largest_coefficient(self) -> float:
        """More than any noise counts in any range: a hat beside the end of a range may overshoot, by far less than
        once.
        """
        return 2.0 / min(self.diagonal, *(w for line in self.lines for w in line.hats.weights))

    def box_moments(self, shape: tuple[int, ...], low: Floats, high: Floats) -> tuple[Floats, Floats]:
        """(Σ c², and a guess of the fourth power): the lines that cut a box off on either side. What the two diagonals
        at a corner feel of both directions cancels.
        """
        del shape
        apart = [Difference(n).range_moments(low[:, i], high[:, i])[0] for i, n in enumerate(self.shape)]
        lines = [line.inverse_range_moments(low[:, i], high[:, i])[0] for i, line in enumerate(self.lines)]
        second = apart[0] * lines[1] + lines[0] * apart[1]
        return second, second**2 / 7

    def mean_square(self, kinds: Sequence[Any], shape: tuple[int, ...]) -> float:
        """The mean over products of queries, in closed form."""
        del shape

        def mean(kinds: Sequence[Any]) -> float:
            apart = [float(kind.mean_variance(Difference(n))) for kind, n in zip(kinds, self.shape, strict=True)]
            lines = [float(k.mean_variance(PseudoInverse(line))) for k, line in zip(kinds, self.lines, strict=True)]
            return apart[0] * lines[1] + lines[0] * apart[1]

        return averaged(kinds, mean)

    def cell_kinds(self, shape: tuple[int, ...], total_shares: tuple[Floats, ...] | None) -> Integers:
        """By their variances, and where there are few cells every one by itself."""
        del total_shares
        if math.prod(shape) <= FEW_CELLS:
            return np.arange(math.prod(shape)).reshape(shape)
        sides = [np.where((np.arange(n) == 0) | (np.arange(n) == n - 1), 1.0, 2.0) for n in shape]
        lines = [line.cell_variances() for line in self.lines]
        variances = np.outer(sides[0], lines[1]) + np.outer(lines[0], sides[1])
        return np.unique(np.round(variances / variances.max(), 12), return_inverse=True)[1].reshape(shape)


def _swapped(array: Array) -> Array:
    return np.swapaxes(array, -1, -2)


def _applied(matrix: Any, x: Array) -> Array:
    flat = np.asarray(x).reshape(-1, matrix.shape[1])
    return np.asarray((matrix @ flat.T).T).reshape(*np.shape(x)[:-1], matrix.shape[0])
