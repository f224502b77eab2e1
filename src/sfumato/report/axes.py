"""The cells along one axis as a page tells them: their edges, or their names, with nothing that a screen would obey."""

from __future__ import annotations

from typing import Any, cast

import numpy as np

from sfumato.domain.instants import Instants
from sfumato.domain.ordered import Ordered
from sfumato.reading import visible
from sfumato.release.keys import Key


def described(key: Key, edges: Any = None) -> dict[str, Any]:
    """As plain data; `edges` where cells are taken together."""
    axis = key.axis
    found: dict[str, Any] = {"name": visible(axis.name), "what": axis.what}
    if axis.winds or not axis.ordered:
        return found | {"kind": "names", "names": [visible(name) for name in key.names]}
    if edges is None:
        edges = np.asarray(cast(Ordered, axis).edges)[int(key.cells[0]) : int(key.cells[-1]) + 2]
    if axis.reads == "times":
        times = cast(Instants, axis)
        zone = "" if times.tz is None else visible(times.tz)
        return found | {"kind": "times", "edges": [times.written(edge) for edge in edges], "zone": zone}
    return found | {"kind": "numbers", "edges": [float(edge) for edge in edges]}
