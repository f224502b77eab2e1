"""What DAWA really knows: the totals of the runs of cells that it found, without bias.

It shares the total of a run out equally among the cells, which is a guess. The runs were released, and the noise on
the nodes of the tree over them is independent of how they were found: given the runs, every sum of their totals is
unbiased, with a law of noise that follows from the tree.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from sfumato._types import Floats, Integers
from sfumato.linear import Operator
from sfumato.mechanism.model import Block, NoiseModel
from sfumato.mechanism.partitions.bucket_tree import UNITS, BucketTree
from sfumato.noise import DiscreteLaplace


@dataclass(frozen=True, eq=False)
class Runs:
    """The smallest box of cells around every run, what is estimated for it, and the noise in that."""

    low: Integers
    high: Integers
    values: Floats
    model: NoiseModel

    def queries(self, chosen: Floats, held: Floats) -> Floats:
        """What to ask of the values for sets of runs, one row each, of which some are held by a range."""
        del held
        return chosen

    @classmethod
    def of(
        cls,
        tree: BucketTree,
        measured: Sequence[Integers],
        *,
        cells: Integers,
        epsilon: Fraction,
        total: int | None,
    ) -> Runs:
        """The runs of a tree over cells, given by their coordinates in the order of the line, one row each."""
        starts, lengths = tree.buckets.starts, tree.buckets.lengths
        share = None if total is None else lengths / tree.buckets.size
        values = tree.estimate(measured)
        if share is not None and total is not None:
            values = values + share * (total - values.sum())
        kinds = np.unique(np.concatenate(tree.units))
        blocks = [
            Block(_Nodes(tree, units, share), DiscreteLaplace(epsilon * Fraction(units, UNITS)))
            for units in kinds[kinds > 0].tolist()
        ]
        return cls(
            np.minimum.reduceat(cells, starts, axis=0),
            np.maximum.reduceat(cells, starts, axis=0) + 1,
            values,
            NoiseModel((len(starts),), tuple(blocks)),
        )


class _Nodes(Operator):
    """From the noise on the nodes that have so many units of the budget to the totals of all runs; with `share`, a
    missing public total is handed out by it.
    """

    def __init__(self, tree: BucketTree, units: int, share: Floats | None) -> None:
        self.tree, self.share = tree, share
        self.chosen = [np.flatnonzero(level == units) for level in tree.units]
        self.rows, self.cols = len(tree.buckets), sum(map(len, self.chosen))

    largest_coefficient = 1.0

    def forward(self, x: NDArray[np.number]) -> NDArray[np.number]:
        """What the noise does to the totals."""
        flat = np.asarray(x, dtype=np.float64).reshape(-1, self.cols)
        found = np.empty((len(flat), self.rows))
        for i, row in enumerate(flat):
            parts = np.split(row, np.cumsum([len(chosen) for chosen in self.chosen])[:-1])
            levels = [np.zeros(len(units)) for units in self.tree.units]
            for level, chosen, part in zip(levels, self.chosen, parts, strict=True):
                level[chosen] = part
            found[i] = self.tree.estimate(levels)
        if self.share is not None:
            found -= found.sum(axis=-1, keepdims=True) * self.share
        return found.reshape(*np.shape(x)[:-1], self.rows)

    def transpose(self, y: NDArray[np.number]) -> NDArray[np.number]:
        """How much each of these nodes counts in sums of totals."""
        queries = np.asarray(y, dtype=np.float64)
        if self.share is not None:
            queries = queries - (queries @ self.share)[..., None]
        levels = self.tree.coefficients(queries)
        return np.concatenate([level[..., at] for level, at in zip(levels, self.chosen, strict=True)], axis=-1)
