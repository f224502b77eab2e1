"""Linear mechanisms: integer noise, carried to the counts by an implicit linear map."""

from sfumato.mechanism.base import Mechanism
from sfumato.mechanism.boxes import SummedArea
from sfumato.mechanism.model import Block, NoiseModel
from sfumato.mechanism.registry import build, mechanism_from_spec, mechanisms, variants

__all__ = [
    "Block",
    "Mechanism",
    "NoiseModel",
    "SummedArea",
    "build",
    "mechanism_from_spec",
    "mechanisms",
    "variants",
]
