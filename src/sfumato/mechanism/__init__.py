"""Mechanisms: integer noise, carried to the counts by a map; one file each, in families.

`cells`, `edges`, `grids`, `points`, `partitions` and `tables` are the families; every mechanism declares its `Entry` in
its own file, and `registry` lists what plans weigh, with what users have registered. `forms` are the ways in which
outputs come about, by which the auditor knows a mechanism. A mechanism states its cost before it sees a count, and only
its `run` and `draw`, and what these call, ever see one.
"""

from sfumato.linear.boxes import SummedArea
from sfumato.mechanism.base import MOST_RECORDS, AdditiveMechanism, LinearMechanism, MeasuredMechanism, Mechanism
from sfumato.mechanism.bound import singular_value_bound
from sfumato.mechanism.cells.given import rows_of
from sfumato.mechanism.cells.vertex import VertexMechanism
from sfumato.mechanism.model import Block, NoiseModel
from sfumato.mechanism.parts import Parts
from sfumato.mechanism.reference import REFERENCE_RECORDS, reference_counts, reference_population
from sfumato.mechanism.registry import (
    build,
    fresh,
    is_rehearsed,
    mechanism_from_spec,
    mechanisms,
    needs_cells,
    register,
    registered,
    tunings,
    variants,
)
from sfumato.mechanism.runs import Runs

__all__ = [
    "MOST_RECORDS",
    "REFERENCE_RECORDS",
    "AdditiveMechanism",
    "Block",
    "LinearMechanism",
    "MeasuredMechanism",
    "Mechanism",
    "NoiseModel",
    "Parts",
    "Runs",
    "SummedArea",
    "VertexMechanism",
    "build",
    "fresh",
    "is_rehearsed",
    "mechanism_from_spec",
    "mechanisms",
    "needs_cells",
    "reference_counts",
    "reference_population",
    "register",
    "registered",
    "rows_of",
    "singular_value_bound",
    "tunings",
    "variants",
]
