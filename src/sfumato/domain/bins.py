"""An interval of the real line cut at given edges: fares, ages, incomes, where equal cells would say little.

The edges are doubles and part of the definition, as those of an interval are: cell i is half-open, ``[e_i, e_{i+1})``,
the last one is closed, values outside are clamped to the ends, and a value's cell is settled by comparison with the
edges and by nothing else. So it is the same on every engine that compares doubles.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sfumato.domain.axis import axis_name
from sfumato.domain.interval import listed, no_number, numbers, plain
from sfumato.domain.ordered import Ordered
from sfumato.errors import InvalidInput, TooLarge
from sfumato.exact import finite_float, shown

MOST_EDGES = 1 << 20
"""Edges of an axis: a list of more is no list that anybody wrote."""
MOST_GAPS = 1 << 31
"""Gaps between cells that are compared: a second or two."""


@dataclass(frozen=True, repr=False)
class Bins(Ordered):
    """The bins between edges that rise."""

    name: str
    cuts: tuple[float, ...]
    """The edges, from the first to the last."""

    reads = "numbers"

    def __post_init__(self) -> None:
        name = axis_name(self.name)
        if isinstance(self.cuts, str) or not isinstance(self.cuts, Iterable):
            raise InvalidInput(f"Axis {name!r}: edges={shown(self.cuts)} is not a list of numbers.")
        given = tuple(self.cuts)
        if not 2 <= len(given) <= MOST_EDGES:
            raise InvalidInput(
                f"Axis {name!r}: edges has {len(given):,} numbers. Give at least two, for one bin, and at most "
                f"{MOST_EDGES:,}."
            )
        # Adding 0.0 turns -0.0 into 0.0: equal axes are described alike.
        cuts = tuple(_edge(edge, name, i) + 0.0 for i, edge in enumerate(given))
        for i in range(len(cuts) - 1):
            if not cuts[i] < cuts[i + 1]:
                raise InvalidInput(
                    f"Axis {name!r}: edges must rise, and edges[{i}]={plain(cuts[i])} is not below "
                    f"edges[{i + 1}]={plain(cuts[i + 1])}. Give each edge once, from the lowest to the highest."
                )
        if not math.isfinite(cuts[-1] - cuts[0]):
            raise InvalidInput(
                f"Axis {name!r}: the distance from edges[0]={cuts[0]!r} to edges[{len(cuts) - 1}]={cuts[-1]!r} is not "
                "a finite double. Use edges closer to each other."
            )
        object.__setattr__(self, "name", name)
        object.__setattr__(self, "cuts", cuts)

    def __repr__(self) -> str:
        return f"Bins({self.name!r}, {listed(self.cuts)})"

    @property
    def cells(self) -> int:  # type: ignore[override]  # read, never set
        """One fewer than the edges."""
        return len(self.cuts) - 1

    @property
    def low(self) -> float:
        """The first edge."""
        return self.cuts[0]

    @property
    def high(self) -> float:
        """The last edge."""
        return self.cuts[-1]

    @cached_property
    def edges(self) -> NDArray[np.float64]:
        """The edges as a read-only array."""
        edges = np.array(self.cuts)
        edges.flags.writeable = False
        return edges

    def scale(self, values: ArrayLike) -> NDArray[np.float64]:
        """Numbers as doubles."""
        return numbers(values, self.name)

    def written(self, value: Any) -> str:
        """A double, without loss."""
        return plain(float(value))

    @property
    def comparisons(self) -> int:
        """Each of its edges but the last."""
        return self.cells

    def cells_at(self, scaled: NDArray[Any]) -> NDArray[np.int64]:
        """The cell of each double; NaN has none, and is refused without saying where it was found."""
        if np.isnan(scaled).any():
            raise InvalidInput(no_number(self.name))
        # The inner edges alone: what lies before the first or after the last is clamped.
        return np.searchsorted(self.edges[1:-1], scaled, side="right").astype(np.int64, copy=False)

    def gap(self, apart: NDArray[np.int64]) -> NDArray[np.float64]:
        """The smallest gap between cells so many apart, which grows with their number; infinite where none are."""
        kinds, which = np.unique(apart, return_inverse=True)
        if len(kinds) * self.cells > MOST_GAPS:
            raise TooLarge(
                f"Axis {self.name!r}: {len(kinds):,} kinds of moves between {self.cells:,} uneven cells are too many "
                "to be compared. Nothing was built. Use a smaller delta, fewer cells, or cells of one width."
            )
        return np.array([self._gap(int(k)) for k in kinds])[which].reshape(apart.shape)

    def _gap(self, apart: int) -> float:
        if apart <= 1:
            return 0.0
        edges = self.edges
        return float((edges[apart:-1] - edges[1:-apart]).min()) if apart < self.cells else math.inf

    def farthest(self, limit: float) -> int:
        """The most cells apart that two may be with a gap below the limit."""
        near, far = min(1, self.cells - 1), self.cells
        while far - near > 1:
            middle = (near + far) // 2
            near, far = (middle, far) if self._gap(middle) < limit else (near, middle)
        return near

    @property
    def depths(self) -> NDArray[np.float64]:
        """How far each cell lies from the nearer end, or the cell as many from the other end, whichever is less:
        a layer along the ends is then as many cells deep at both, and never too shallow.
        """
        place = np.arange(self.cells)
        rank = np.minimum(place, place[::-1])
        return np.minimum(self.edges[rank] - self.low, self.high - self.edges[self.cells - rank])

    @property
    def finest(self) -> float:
        """The width of the narrowest cell."""
        return float(np.diff(self.edges).min())

    def size(self, cells: int) -> str:
        """How wide so many cells are, in words: from the narrowest to the widest."""
        widths = self.edges[cells:] - self.edges[:-cells]
        if not len(widths):
            return f"{self.high - self.low:.3g}"
        low, high = (f"{width:.3g}" for width in (widths.min(), widths.max()))
        return low if low == high else f"{low} to {high}"

    def face(self) -> str:
        """A line with its edges."""
        name = "" if self.name == "x" else f", name={self.name!r}"
        return f"Line(edges={listed(self.cuts)}{name})"

    def entry(self) -> dict[str, Any]:
        """Its edges."""
        return {"edges": list(self.cuts)}

    def spec(self) -> dict[str, Any]:
        """The axis as plain data."""
        return {"kind": "bins", "name": self.name, "edges": list(self.cuts)}


def _edge(value: object, name: str, number: int) -> float:
    """An edge as a double, or a refusal: words are made for that alone, since names may be long, and edges many."""
    try:
        return finite_float(value, "edges")
    except InvalidInput:
        return finite_float(value, f"Axis {name!r}: edges[{number}]")
