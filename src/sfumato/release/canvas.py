"""What all pictures share: the kinds of files, an empty figure, quiet axes, and names that are shown as they are.

matplotlib is imported when something is drawn, and only its figures: nothing global is touched.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

from sfumato.errors import InvalidInput, MissingExtra

INK, SOFT, ACCENT = "#22252b", "#6b7078", "#5b2a86"
# Names are shown as they are: what stands between two $ is no formula, and % and _ mean themselves.
LITERAL: dict[str, Any] = {"parse_math": False, "usetex": False}
_FORMATS = (".png", ".svg", ".pdf")


def file_kind(path: str | Path | None) -> str | None:
    """What a picture is written as, by the name of its file."""
    if path is None:
        return None
    suffix = Path(path).suffix.lower()
    if suffix not in _FORMATS:
        raise InvalidInput(f"path={str(path)!r} must end in {', '.join(_FORMATS)}. Nothing was written.")
    return suffix[1:]


def blank(size: tuple[float, float], layout: Literal["compressed", "constrained"], purpose: str) -> Any:
    """An empty figure; refused where matplotlib is missing."""
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError as error:
        raise MissingExtra("matplotlib", "plot", purpose) from error
    figure = Figure(figsize=size, layout=layout, facecolor="white")
    FigureCanvasAgg(figure)
    return figure


def quiet(ax: Any) -> None:
    """Thin, soft axes: the data speak."""
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)
    for side in ("left", "bottom"):
        ax.spines[side].set(color=SOFT, linewidth=0.6)
    ax.tick_params(labelsize=8, colors=SOFT, length=2.5, width=0.6)
