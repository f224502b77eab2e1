"""Distinct people: who was in a cell, counted once there however often, and in so many cells at most."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from sfumato.calls import quoted
from sfumato.domain.axis import axis_name
from sfumato.errors import InvalidInput
from sfumato.exact import LARGEST, is_whole, shown


@dataclass(frozen=True)
class People:
    """Distinct people a cell, each in at most so many cells. Made by `sf.people`.

    >>> sf.people("user", cells=3).cells
    3
    """

    column: str
    cells: int

    def __post_init__(self) -> None:
        axis_name(self.column)
        if not is_whole(self.cells) or not 1 <= self.cells <= LARGEST:
            raise InvalidInput(
                f"cells={shown(self.cells)} must be a whole number of at least 1: in so many cells a person is "
                "counted at most. Nothing was counted, drawn or recorded."
            )
        object.__setattr__(self, "cells", int(self.cells))

    @property
    def name(self) -> str:
        """The attribute of a record that says whose it is."""
        return self.column

    @property
    def signed(self) -> bool:
        """Nobody is counted less than not at all."""
        return False

    @property
    def unit(self) -> Fraction:
        """A person in a cell."""
        return Fraction(1)

    @property
    def entities(self) -> str:
        """The column that tells people apart."""
        return self.column

    @property
    def what(self) -> str:
        """What is published, in words."""
        return f"number of distinct {self.column!r}"

    def describe(self) -> str:
        """What is counted, in words.

        >>> sf.people("user", cells=3).describe()
        "distinct people by 'user', each once a cell and in at most 3 cells; sums over cells count person-cells"
        """
        cells = "1 cell" if self.cells == 1 else f"{self.cells} cells"
        return (
            f"distinct people by {self.column!r}, each once a cell and in at most {cells}; sums over cells count "
            "person-cells"
        )

    def __str__(self) -> str:
        return self.describe()

    def to_text(self) -> str:
        """The same in one line as one writes it, for files and command lines; `sf.values_from_text` reads it.

        >>> sf.people("user", cells=3).to_text()
        'people("user", cells=3)'
        """
        return f"people({quoted(self.column)}, cells={self.cells})"

    def spec(self) -> dict[str, Any]:
        """Plain data that JSON can hold; `values_from_spec` reads it back."""
        return {"kind": "people", "column": self.column, "cells": self.cells}


def people(column: str, *, cells: int) -> People:
    """What is counted in the place of records: distinct people, told apart by a column.

    A person counts once in a cell, however many records lie there, and in at most `cells` cells: where a person was in
    more, so many are chosen by lot, each set of them equally likely, whatever and however much happened there. A sum
    over several cells counts a person in each of them; distinct people of a larger region are a count of their own, on
    a domain of such regions.

    The promise is about a person, whatever the relation: all records of one person change, or come and go, at once.

    >>> data = {"x": [0.5, 0.6, 3.5, 3.6], "user": ["a", "a", "a", "b"]}
    >>> sf.count(data, sf.Line(0, 4, cells=4), values=sf.people("user", cells=2)).values.tolist()  # private
    [1, 0, 0, 2]
    """
    return People(column, cells)
