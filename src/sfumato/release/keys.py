"""What answers are grouped by."""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

import numpy as np
from numpy.typing import NDArray

from sfumato.domain import Axis
from sfumato.domain.ordered import Ordered


@dataclass(frozen=True, eq=False)
class Key:
    """Cells of one axis, by which answers are grouped."""

    position: int
    axis: Axis
    cells: NDArray[np.int64]

    @property
    def names(self) -> list[str]:
        """What the cells are called."""
        named = self.axis.cell_names()
        return [named[cell] for cell in self.cells.tolist()]

    @property
    def short_names(self) -> list[str]:
        """The same for columns: of a cell between edges, the lower one."""
        if not self.axis.ordered or self.axis.winds:
            return self.names
        axis = cast(Ordered, self.axis)
        return [axis.written(axis.edges[cell]) for cell in self.cells.tolist()]
