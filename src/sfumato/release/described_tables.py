"""What a file says of its tables, where it has tables in the place of cells; checked before anything is made of it.

The cells of the product say nothing about the size of such a file, and may be too many to hold. So every factor must be
as small as a table of it, and the policy one that is told without a look at the cells.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

from sfumato.domain import Domain
from sfumato.linear.tables import Tables
from sfumato.mechanism import Mechanism
from sfumato.release.described import unreadable

# Cells of a factor, and of a product under a policy that is searched.
_MOST_CELLS = 1 << 24
_MOST_AXES = 1 << 10
_TOLD = ("bounded", "unbounded", "relation")


def are_tables(value: Any) -> bool:
    """Lists of whole numbers; that they are those of the mechanism is seen once it is built."""
    lists = isinstance(value, list) and all(isinstance(axes, list) for axes in value)
    return lists and all(type(i) is int and 0 <= i < _MOST_AXES for axes in value for i in axes)


def numbers_in_tables(path: str | Path, description: dict[str, Any], domain: Domain) -> int:
    """How many numbers all tables have together."""
    policy = description["guarantee"]["policy"]
    widest = max(math.prod(domain.shape[i] for i in factor.positions) for factor in domain.factors)
    told = policy["name"] in _TOLD and not any(
        "sources" in rule for term in policy.get("hide", {}).get("terms", []) for rule in term.get("rules", [])
    )
    if widest > _MOST_CELLS or (domain.size > _MOST_CELLS and not told):
        raise unreadable(path, "its factors, or its policy, have too many cells for tables.")
    return Tables(domain.shape, tuple(tuple(axes) for axes in description["tables"])).length


def require_tables(path: str | Path, description: dict[str, Any], mechanism: Mechanism) -> None:
    """The tables in the description are those of the mechanism."""
    tables = None if mechanism.by_tables is None else [list(axes) for axes in mechanism.by_tables.tables.sets]
    if description.get("tables") != tables:
        raise unreadable(path, "its tables are not those of its mechanism.")
