"""Mechanisms: integer noise, carried to the counts by a map; one file each, in families.

`cells`, `edges`, `grids`, `points` and `partitions` are the families, `registry` lists what plans weigh. A mechanism
states its cost before it sees a count, and only its `run` and `draw` ever see one.
"""

from sfumato.linear.boxes import SummedArea
from sfumato.mechanism.base import MOST_RECORDS, AdditiveMechanism, LinearMechanism, MeasuredMechanism, Mechanism
from sfumato.mechanism.bound import singular_value_bound
from sfumato.mechanism.model import Block, NoiseModel
from sfumato.mechanism.parts import Parts
from sfumato.mechanism.registry import build, fresh, mechanism_from_spec, mechanisms, tunings, variants
from sfumato.mechanism.runs import Runs

__all__ = [
    "MOST_RECORDS",
    "AdditiveMechanism",
    "Block",
    "LinearMechanism",
    "MeasuredMechanism",
    "Mechanism",
    "NoiseModel",
    "Parts",
    "Runs",
    "SummedArea",
    "build",
    "fresh",
    "mechanism_from_spec",
    "mechanisms",
    "singular_value_bound",
    "tunings",
    "variants",
]
