"""The figures that people publish from releases: rates, changes, and what a rule lets be shown.

Each is made of sums of cells of one release or of several, by the joint law of their noise, and has an interval that
holds as often as it says. Nothing here sees data: whatever is computed from releases is as private as they are.
"""

from sfumato.figures.changes import Difference, PercentChange, PercentChanges, difference, percent_change
from sfumato.figures.combined import added, scaled
from sfumato.figures.rates import Rates, rate
from sfumato.figures.rules import Rules
from sfumato.figures.suppression import Suppressed, suppress

__all__ = [
    "Difference",
    "PercentChange",
    "PercentChanges",
    "Rates",
    "Rules",
    "Suppressed",
    "added",
    "difference",
    "percent_change",
    "rate",
    "scaled",
    "suppress",
]
