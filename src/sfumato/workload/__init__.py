"""What will be asked of a release. A plan weighs its candidates by the error they make on a workload.

A workload is public: it is declared, never read off the data. It knows no mechanism and no policy.
"""

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
