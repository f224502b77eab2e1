"""Implicit linear operators: matrices that are applied, never stored, and that answer for themselves.

An operator knows its rows, columns and entries, and what noise it carries costs a query. It knows no policy and no
data, and no dense matrix of cells × cells is built here.
"""

from sfumato.linear.bins import Bins, Coarse
from sfumato.linear.block_sums import BlockEstimator, BlockSums, levels_apart
from sfumato.linear.centred import Centred, without_mean
from sfumato.linear.compose import Kronecker, Product, PseudoInverse, Stack
from sfumato.linear.crossings import Crossing, CrossingEstimator
from sfumato.linear.cube_incidence import CubeIncidence
from sfumato.linear.elementary import Difference, Identity, Prefix
from sfumato.linear.embedded import Embedded
from sfumato.linear.haar import Haar
from sfumato.linear.hat_axis import HatAxis
from sfumato.linear.hat_products import HatProductEstimator, HatProducts, asked_of, least_shared
from sfumato.linear.hats import Hats
from sfumato.linear.hierarchy import Hierarchy, nested_blocks
from sfumato.linear.incidence import Incidence
from sfumato.linear.nests import Level, Nests, combined
from sfumato.linear.operator import Matrix, Operator
from sfumato.linear.pairs import PairTypes
from sfumato.linear.prefix_blocks import PrefixBlocks
from sfumato.linear.rows import distinct, distinct_rows
from sfumato.linear.selection import Selection
from sfumato.linear.tree import Tree

__all__ = [
    "Bins",
    "BlockEstimator",
    "BlockSums",
    "Centred",
    "Coarse",
    "Crossing",
    "CrossingEstimator",
    "CubeIncidence",
    "Difference",
    "Embedded",
    "Haar",
    "HatAxis",
    "HatProductEstimator",
    "HatProducts",
    "Hats",
    "Hierarchy",
    "Identity",
    "Incidence",
    "Kronecker",
    "Level",
    "Matrix",
    "Nests",
    "Operator",
    "PairTypes",
    "Prefix",
    "PrefixBlocks",
    "Product",
    "PseudoInverse",
    "Selection",
    "Stack",
    "Tree",
    "asked_of",
    "combined",
    "distinct",
    "distinct_rows",
    "least_shared",
    "levels_apart",
    "nested_blocks",
    "without_mean",
]
