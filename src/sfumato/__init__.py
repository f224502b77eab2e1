"""Publish where and when things happened with differential privacy tuned to distance."""

from sfumato._version import __version__

__all__ = ["__version__"]
