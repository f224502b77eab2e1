"""A finite list of labels:
regions, age groups, hours by name. The list is declared, never collected from the data.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sfumato.domain.axis import Axis, axis_name
from sfumato.domain.coarser import Coarse, Level, checked_levels, nested
from sfumato.errors import InvalidInput

Label = str | int | bool

_ARRAY_KINDS = {str: "UTO", int: "iuO", bool: "bO"}


@dataclass(frozen=True, repr=False)
class Labels(Axis):
    """One cell for each label, in the order given.

    All labels are strings, all whole numbers or all truth values. A value that is not among them is refused,
    without being shown; with ``other`` (one of the labels) it is counted there instead.

    >>> sf.Labels("mode", ("bus", "bike", "rest"), other="rest").labels
    ('bus', 'bike', 'rest')
    """

    name: str
    labels: tuple[Label, ...]
    other: Label | None = None
    levels: tuple[Level, ...] = ()
    cells: int = field(init=False)

    reads = "labels"
    named = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "name", axis_name(self.name))
        if isinstance(self.labels, str) or not isinstance(self.labels, Iterable):
            raise InvalidInput(f"Axis {self.name!r}: labels={self.labels!r} is not a list of labels.")
        labels = tuple(x.item() if isinstance(x, np.generic) else x for x in self.labels)
        object.__setattr__(self, "labels", labels)
        object.__setattr__(self, "cells", len(labels))
        kinds = {type(label) for label in labels}
        if len(kinds) != 1 or not kinds <= _ARRAY_KINDS.keys():
            raise InvalidInput(
                f"Axis {self.name!r}: labels must be one or more values, all str, all int or all bool; "
                f"received {len(labels)} of type {', '.join(sorted(k.__name__ for k in kinds)) or 'none'}."
            )
        if len(set(labels)) < len(labels):
            seen: set[Label] = set()
            twice = next(label for label in labels if label in seen or seen.add(label))  # type: ignore[func-returns-value]
            raise InvalidInput(f"Axis {self.name!r}: the label {twice!r} occurs twice. Give each label once.")
        if self.other is not None and (type(self.other) not in kinds or self.other not in labels):
            raise InvalidInput(f"Axis {self.name!r}: other={self.other!r} is not one of the labels. Add it to them.")
        checked_levels(self.name, self.levels, len(labels))

    def __repr__(self) -> str:
        other = "" if self.other is None else f", other={self.other!r}"
        return f"Labels({self.name!r}, {shorten(self.labels)}{other})"

    @property
    def kind(self) -> type[Label]:
        """``str``, ``int`` or ``bool``: what the labels are."""
        return type(self.labels[0])

    @property
    def leaves_out(self) -> bool:
        """All that is not among the labels, unless there is one for the rest."""
        return self.other is None

    @cached_property
    def coarser(self) -> tuple[Coarse, ...]:
        """The levels as groups within groups."""
        return nested(self.levels)

    def locate(self, values: ArrayLike) -> NDArray[np.int64]:
        """The position of each value in the list; an unknown one goes to ``other`` or is refused."""
        array = np.asarray(values)
        if array.dtype.kind not in _ARRAY_KINDS[self.kind] and array.size:
            raise InvalidInput(
                f"Axis {self.name!r}: values of type {array.dtype} cannot be compared with its labels, "
                f"which are of type {self.kind.__name__}. Nothing was counted."
            )
        table = {label: cell for cell, label in enumerate(self.labels)}
        unknown = -1 if self.other is None else table[self.other]
        flat = array.reshape(-1).tolist()
        cells = np.fromiter(
            (table.get(v, unknown) if type(v) is self.kind else unknown for v in flat),
            np.int64,
            count=len(flat),
        )
        if (cells < 0).any():
            raise InvalidInput(unknown_label(self.name))
        return cells.reshape(array.shape)

    def cell_names(self) -> list[str]:
        """The labels."""
        return [str(label) for label in self.labels]

    def size(self, cells: int) -> str:
        """So many labels."""
        return "1 label" if cells == 1 else f"{cells} labels"

    def face(self) -> str:
        """Categories."""
        name = "" if self.name == "category" else f", name={self.name!r}"
        other = "" if self.other is None else f", other={self.other!r}"
        levels = f", levels={[level.name for level in self.levels]!r}" if self.levels else ""
        return f"Categories({shorten(self.labels)}{name}{other}{levels})"

    def entry(self) -> dict[str, Any]:
        """The labels, and the one for the rest."""
        if self.levels:
            return super().entry()
        return {"labels": list(self.labels)} | ({} if self.other is None else {"other": self.other})

    def spec(self) -> dict[str, Any]:
        """The axis as plain data."""
        spec: dict[str, Any] = {"kind": "labels", "name": self.name, "labels": list(self.labels), "other": self.other}
        if self.levels:  # descriptions without them stay what they were
            spec["levels"] = [{"name": level.name, "of": list(level.of)} for level in self.levels]
        return spec


def labels_from_spec(spec: Mapping[str, Any]) -> Labels:
    """What `Labels.spec()` described."""
    levels = tuple(Level(level["name"], _listed(level["of"])) for level in _listed(spec.get("levels", [])))
    return Labels(spec["name"], _listed(spec["labels"]), spec["other"], levels)


def _listed(value: Any) -> tuple[Any, ...]:
    if not isinstance(value, list):
        raise TypeError("list")
    return tuple(value)


def unknown_label(name: str) -> str:
    """What is said when a value is not among the labels; the value is private and stays unsaid."""
    return (
        f"Axis {name!r}: some values are not among its labels. Nothing was counted. "
        "Declare the missing labels, or give the axis a label for the rest with other=…."
    )


def shorten(labels: tuple[Label, ...]) -> str:
    """A list of labels short enough to print."""
    if len(labels) <= 6:
        return repr(list(labels))
    return f"[{', '.join(map(repr, labels[:3]))}, …, {labels[-1]!r}] ({len(labels)} labels)"
