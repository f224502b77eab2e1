"""What will be asked of a release. A plan weighs its candidates by the error they make on a workload.

A workload is public: it is declared, never read off the data. It knows no mechanism and no policy. Wherever it can it
says itself as a union of `Part`s: one kind of query along every axis, and a weight.
"""

from sfumato.workload.ask import Ask, ask
from sfumato.workload.axis import CELLS, PREFIXES, RANGES, AxisQueries
from sfumato.workload.grouped import Groups
from sfumato.workload.listed import TOTAL, Blocks, Given
from sfumato.workload.part import Part
from sfumato.workload.scales import Levels, Scales, levels, scales
from sfumato.workload.simple import (
    GivenRanges,
    MatrixQueries,
    ProductQueries,
    histogram,
    prefixes,
    queries,
    ranges,
)
from sfumato.workload.tables import Marginals, marginals
from sfumato.workload.workload import Union, Workload
from sfumato.workload.written import workload_from_text

__all__ = [
    "CELLS",
    "PREFIXES",
    "RANGES",
    "TOTAL",
    "Ask",
    "AxisQueries",
    "Blocks",
    "Given",
    "GivenRanges",
    "Groups",
    "Levels",
    "Marginals",
    "MatrixQueries",
    "Part",
    "ProductQueries",
    "Scales",
    "Union",
    "Workload",
    "ask",
    "histogram",
    "levels",
    "marginals",
    "prefixes",
    "queries",
    "ranges",
    "scales",
    "workload_from_text",
]
