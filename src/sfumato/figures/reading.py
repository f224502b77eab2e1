"""One question to one release, with the law of the noise in its answers."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy

from sfumato._types import Floats, Integers
from sfumato.errors import InvalidInput
from sfumato.figures.weights import Asking, Cells, Listed, Weights, Which
from sfumato.mechanism import NoiseModel
from sfumato.release.answer import Answer
from sfumato.release.answering import answered, queried
from sfumato.release.asking import Asked, asked
from sfumato.release.view import View

if TYPE_CHECKING:
    from sfumato.release.release import Release


@dataclass(frozen=True, eq=False)
class Reading:
    """What a release says to a question, row by row: answers with intervals, and the weights behind them.

    The question is one by names; or, where it is none, the rows of a matrix.
    """

    release: Release
    question: Asked
    matrix: Any = None
    cells: Integers | None = None
    """Which cells alone, where the question is about every single one."""

    def __post_init__(self) -> None:
        values = self.release.values
        if values is not None and values.signed:
            raise InvalidInput(
                f"this release is of {values.describe()}, which may be negative: what is computed from it would be cut "
                "at zero. Nothing was computed. Ask the release itself, or sf.Means for means."
            )

    @classmethod
    def of(cls, release: Release, ranges: Any, named: Any, where: Any, by: Any, cut: str) -> Reading:
        """As `release.answer` is asked."""
        return cls(release, asked(release.domain, ranges, named, where, by, cut))

    @classmethod
    def of_cells(cls, release: Release, cells: Integers | None = None) -> Reading:
        """Every single cell, or some of them; refused of a release of tables."""
        where = np.arange(release.counts.size) if cells is None else cells
        return cls(release, asked(release.domain, None, {}, None, release.domain.names, "bracket"), cells=where)

    @cached_property
    def _seen(self) -> tuple[View, Asked]:
        return self.release._seen(self.question)

    @property
    def view(self) -> View:
        """What answers."""
        return self._seen[0]

    @property
    def seen(self) -> Asked:
        """The question in the words of what answers: of a release of tables, the table that it is about."""
        return self._seen[1]

    @property
    def shape(self) -> tuple[int, ...]:
        """That of the answers."""
        return self.question.shape if self.matrix is None else (self.weights.rows,)

    @cached_property
    def weights(self) -> Weights:
        """The weights of the cells in every answer."""
        if self.matrix is not None:
            return Listed(scipy.sparse.csr_matrix(self.matrix, dtype=np.float64))
        shape = self.view.counts.shape
        return Asking(self._seen[1], shape) if self.cells is None else Cells(self.cells, shape)

    @property
    def source(self) -> tuple[str, str, tuple[int, ...]]:
        """What noise it has a part in: figures with the same source have one law together, others are independent."""
        release = self.release
        return release.id, str(release.guarantee.epsilon), self.question.axes if release._tables is not None else ()

    @property
    def has_law(self) -> bool:
        """Whether answers miss the truth by noise alone, of a law that does not depend on the data."""
        return self.view.model is not None and not self.view.biased

    @property
    def model(self) -> NoiseModel:
        """The law of the noise; refused where there is none."""
        model = self.view.model
        if model is None or self.view.biased:
            raise InvalidInput(
                f"mechanism {self.release.mechanism.name!r} misses the truth by more than noise of a known law: what "
                "is added, subtracted or shown by a rule would have no interval that holds. Nothing was computed. "
                "Publish with a linear mechanism, such as 'identity' or 'hats'."
            )
        return model

    def answer(self, confidence: float, cut: str) -> Answer:
        """What the release says."""
        if self.matrix is not None:
            return queried(self.view, self.matrix, confidence)
        return answered(self.view, self._seen[1], confidence, cut)

    def sums(self, which: Which, rows: slice = slice(None)) -> Floats:
        """What is estimated, one number a row."""
        whole = which == "value" or not self.weights.cut[rows].any()
        if whole and self.matrix is None and self.cells is None:
            return self._values[rows]
        return self.weights.sums(np.asarray(self.view.counts, dtype=np.float64), which, rows) * self.view.unit

    @cached_property
    def _values(self) -> Floats:
        """What the release says to every row, cut cells in proportion."""
        return np.ravel(np.asarray(self.answer(0.95, "proportion").value, dtype=np.float64))


def require_apart(a: Reading, b: Reading, doing: str) -> bool:
    """Whether two readings share their noise; refused where they are two levels of one release."""
    if a.source == b.source:
        return True
    one, other = a.release, b.release
    if one.id == other.id and one.guarantee.epsilon != other.guarantee.epsilon:
        finer = max(one.guarantee.epsilon, other.guarantee.epsilon)
        raise InvalidInput(
            f"{doing} needs independent noise, and these are two levels of one release, {one.id!r}: the noise of the "
            f"coarser one contains that of the finer, and both are about the same records. Nothing was computed. Use "
            f"the finest level alone (epsilon={finer})."
        )
    if one.id == other.id:
        raise InvalidInput(
            f"{doing} needs the joint law of two tables of release {one.id!r}, which were asked of different factors. "
            "Nothing was computed. Ask both of the same factors, as with by= or a list of all labels."
        )
    return False
