"""Coarser names for the cells of an axis: the county of a tract, the parent of a hexagon, the branch of a code.

Levels are nested: what two cells share on one level they share on every coarser one. A name that occurs under several
parents is several groups: there is a Washington County in thirty states. Cells that lie in nothing, such as elsewhere,
are a group of their own on every level.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import InvalidInput
from sfumato.naming import nearest


@dataclass(frozen=True)
class Level:
    """A coarser name of every cell that was declared one, such as the county of every tract."""

    name: str
    of: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class Coarse:
    """The cells of an axis in groups: what the groups are called, and the group of every cell.

    Groups are numbered so that those of one parent follow one another.
    """

    name: str
    names: tuple[str, ...]
    of: NDArray[np.int64]


def nested(levels: Iterable[Level]) -> tuple[Coarse, ...]:
    """Levels from the coarsest to the finest as groups within groups.

    >>> [level.names for level in nested([Level("state", ("a", "a", "b")), Level("county", ("x", "y", "x"))])]
    [('a', 'b'), ('a / x', 'y', 'b / x')]
    """
    found: list[Coarse] = []
    above: NDArray[np.int64] | None = None
    paths: list[str] = []
    for level in levels:
        known: dict[str, int] = {}
        own = np.fromiter((known.setdefault(name, len(known)) for name in level.of), np.int64, len(level.of))
        key = own if above is None else above * len(known) + own
        groups, of = np.unique(key, return_inverse=True)
        called = list(known)
        plain = [called[k] for k in (groups % len(known)).tolist()]
        if above is not None:
            long = [f"{paths[k]} / {name}" for k, name in zip((groups // len(known)).tolist(), plain, strict=True)]
            often = np.bincount(groups % len(known), minlength=len(known))
            twice = (often > 1)[groups % len(known)].tolist()
            paths = [path if again else name for path, name, again in zip(long, plain, twice, strict=True)]
        else:
            paths = plain
        above = of.reshape(-1).astype(np.int64)
        found.append(Coarse(level.name, tuple(paths), above))
    return tuple(found)


def checked_levels(axis: str, levels: Sequence[Level], cells: int) -> tuple[Level, ...]:
    """Levels with names of their own, each with a name for every cell."""
    names = [level.name for level in levels]
    for name in names:
        if not isinstance(name, str) or not name.strip():
            raise InvalidInput(f"Axis {axis!r}: levels has the name {name!r}. Give a string that is not empty.")
        if names.count(name) > 1 or name == axis:
            raise InvalidInput(
                f"Axis {axis!r}: the level {name!r} is called like {'the axis' if name == axis else 'another one'}. "
                "Give each a name of its own."
            )
    for level in levels:
        if len(level.of) != cells:
            raise InvalidInput(
                f"Axis {axis!r}: the level {level.name!r} names {len(level.of)} cells, and there are {cells}. Give one "
                "name for each."
            )
        if not all(isinstance(name, str) for name in level.of):
            raise InvalidInput(f"Axis {axis!r}: the level {level.name!r} has names that are not text.")
    return tuple(levels)


def level_named(levels: Sequence[Coarse], name: object, axis: str) -> Coarse:
    """The level of a name, or a refusal that tells the nearest."""
    for level in levels:
        if level.name == name:
            return level
    known = [level.name for level in levels]
    listed = ", ".join(map(repr, known)) or "none"
    near = nearest(name, known) if isinstance(name, str) else ""
    raise InvalidInput(f"{name!r} is no level of {axis!r}, whose levels are: {listed}.{near} Nothing was computed.")
