"""What the tests of pages share: the data of a page unpacked without its script, and releases of every kind."""

from __future__ import annotations

import base64
import json
import re
from typing import Any

import numpy as np

import sfumato as sf

DATA = re.compile(r'<script type="application/json" id="data">(.*?)</script>', re.DOTALL)
NASTY = [
    "</script><script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "=cmd()",
    "\u202eevil",
    "a,\"b\"\n'c'&amp;",
]
MAP = sf.Grid(bounds=(-74.1, 40.55, -73.7, 40.92), shape=(12, 9), crs="EPSG:4326")


def data_of(html: str) -> dict[str, Any]:
    (found,) = DATA.findall(html)
    return json.loads(found)


def unpacked(packed: dict[str, Any] | None, size: int, value: Any = None) -> Any:
    """The numbers, as the page's own script has to read them."""
    if packed is None:
        return None
    ((kind, held),) = packed.items()
    if kind == "all":
        return np.full(size, held)
    if kind in ("less", "more"):
        return np.maximum(value + (held if kind == "more" else -held), 0.0)
    return np.frombuffer(base64.b64decode(held), f"<{kind}").astype(np.float64)


def figures(view: dict[str, Any], beside: list[int]) -> dict[str, Any]:
    """Value, stderr, low and high of a table of a view, those beside in front."""
    (held,) = [one for one in view["tables"] if one["beside"] == beside]
    shape = [count(view["beside"][i]) for i in beside] + [count(axis) for axis in view["along"]]
    size = int(np.prod(shape))
    value = unpacked(held["value"], size)
    parts = {name: unpacked(held[name], size, value) for name in ("stderr", "low", "high")}
    return {name: None if part is None else part.reshape(shape) for name, part in {"value": value, **parts}.items()}


def count(axis: dict[str, Any]) -> int:
    return len(axis["names"]) if axis["kind"] == "names" else len(axis["edges"]) - 1


def published(
    domain: sf.Domain, seed: int | None = None, mechanism: str | None = None, mean: float = 20.0
) -> sf.Release:
    """Counts around a mean under add/remove, or for `consistent` under moves to the next cell."""
    counts = np.random.default_rng(7).poisson(mean, domain.shape)
    options = {} if mechanism is None else {"mechanism": mechanism}
    policy = sf.threshold(domain, 1) if mechanism == "consistent" else sf.unbounded(domain)
    plan = sf.plan(policy, sf.histogram(), epsilon=1, **options)
    return plan.publish(counts, **({} if seed is None else {"source": sf.SeededSource(seed)}))
