"""What answers are grouped by."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sfumato.domain import Axis


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
