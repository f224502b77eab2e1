"""What will be asked of a release. A plan weighs its candidates by the error they make on a workload."""

from sfumato.workload.axis import AxisQueries
from sfumato.workload.workload import (
    GivenRanges,
    MatrixQueries,
    ProductQueries,
    Workload,
    histogram,
    prefixes,
    queries,
    ranges,
)

__all__ = [
    "AxisQueries",
    "GivenRanges",
    "MatrixQueries",
    "ProductQueries",
    "Workload",
    "histogram",
    "prefixes",
    "queries",
    "ranges",
]
