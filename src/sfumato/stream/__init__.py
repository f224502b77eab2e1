"""Publishing again and again: releases over time under one promise for every window.

What a step gets is decided from public history alone, recorded in the stream's account, and only then drawn. No count
decides whether a step is published, what it costs or what later steps get.
"""

from sfumato.stream.outcome import Outcome
from sfumato.stream.publisher import Stream

__all__ = ["Outcome", "Stream"]
