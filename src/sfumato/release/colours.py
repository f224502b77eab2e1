"""Scales of colours, from nothing to the largest value: no peak is cut off, and everybody tells the colours apart.

The maps of estimates and of errors run evenly from light to dark, which those who do not see red or green can read as
well, and a printer without colours.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from sfumato._types import Floats
from sfumato.release.canvas import ACCENT, INK, LITERAL, SOFT

ESTIMATES, ERRORS = "magma_r", "cividis_r"
LINES = ((ACCENT, "-"), ("#c77700", "--"), ("#0b6e4f", "-."), ("#8b9098", ":"))
"""Of curves in one panel: colours of different lightness, and strokes of different kinds."""
_USUAL, _FAR, _BODY = 0.998, 2.0, 0.8
"""Nearly all cells; how many times their largest value a peak is; and the share of the colours that they then get."""


def scale_of(values: Floats, least: float = 1.0) -> Any:
    """The scale of colours, from nothing to the largest value and to `least` at least: even, unless a few peaks would
    bleach all the rest. The lower four fifths of the colours are then those of nearly all cells, the upper fifth that
    of the peaks.
    """
    from matplotlib.colors import FuncNorm, Normalize

    known = values[np.isfinite(values)]
    usual = max(float(np.quantile(known, _USUAL)), least) if known.size else least
    top = max(float(known.max()), usual) if known.size else usual
    if top <= _FAR * usual:
        return Normalize(0.0, top)
    steep = math.log(top / usual) / (1 - _BODY)

    def forward(value: Any) -> Any:
        x = np.asarray(value, dtype=np.float64)
        return np.where(x <= usual, _BODY * x / usual, _BODY + np.log(np.maximum(x, usual) / usual) / steep)

    def backward(share: Any) -> Any:
        y = np.asarray(share, dtype=np.float64)
        return np.where(y <= _BODY, y * usual / _BODY, usual * np.exp((np.maximum(y, _BODY) - _BODY) * steep))

    return FuncNorm((forward, backward), 0.0, top)


def colour_bar(figure: Any, axes: Any, image: Any, values: Floats, label: str) -> None:
    """The scale of colours beside its maps; where it is not even, with ticks for what is usual and for the peak."""
    extend = "min" if bool((values < 0).any()) else "neither"
    bar = figure.colorbar(image, ax=axes, extend=extend, fraction=0.05, aspect=28, pad=0.02)
    bar.outline.set_visible(False)
    bar.ax.tick_params(labelsize=8, colors=SOFT, length=2)
    top, usual = float(image.norm.vmax), float(image.norm.inverse(_BODY))
    if usual < 0.79 * top:
        from matplotlib.ticker import MaxNLocator

        even = [tick for tick in MaxNLocator(5).tick_values(0.0, usual) if tick <= usual]
        bar.set_ticks([*even, top], labels=[*(f"{tick:g}" for tick in even), f"{top:,.0f}"])
        bar.ax.minorticks_off()
        label = f"{label}\n(colours above {usual:,.3g} are stretched)"
    bar.set_label(label, size=9, color=INK, **LITERAL)
