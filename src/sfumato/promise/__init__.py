"""What is promised, as data: ε, the unit it speaks of, the window of time it holds for, and all of it in plain words.

A promise is a value. It keeps no account and opens no file; the meaning of one that was made never changes.
"""

from sfumato.promise.budget import Epsilon
from sfumato.promise.guarantee import SAMPLER_SLACK, Guarantee
from sfumato.promise.parts import Part, Partition
from sfumato.promise.unit import Unit
from sfumato.promise.window import Window

__all__ = ["SAMPLER_SLACK", "Epsilon", "Guarantee", "Part", "Partition", "Unit", "Window"]
