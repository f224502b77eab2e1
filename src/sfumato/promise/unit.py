"""The unit of privacy: what one step of the policy is taken by.

- `record`: one record changes along an edge of the policy.
- `person`: one person's records change, each of the at most `max_per_entity` that are counted along an edge.

A record unit may carry `max_per_entity` as well. The promise then still speaks of one record, and the
bound is a known fact about the counts: at most so many of the records counted belong to one person.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, cast

from sfumato.errors import InvalidInput
from sfumato.exact import positive_int

UnitName = Literal["record", "person"]


@dataclass(frozen=True, slots=True)
class Unit:
    """Record or person, and how many counted records one person has at most (None: any number)."""

    name: UnitName
    max_per_entity: int | None = None

    def __post_init__(self) -> None:
        if self.name not in ("record", "person"):
            raise InvalidInput(f"unit={self.name!r} is not known. Use 'record' or 'person'.")
        if self.max_per_entity is not None:
            object.__setattr__(self, "max_per_entity", positive_int(self.max_per_entity, "max_per_entity"))
        elif self.name == "person":
            raise InvalidInput(
                "unit='person' needs max_per_entity, the largest number of records counted of one person. "
                "Pass max_per_entity=1 or more, or use unit='record'."
            )

    def __str__(self) -> str:
        if self.max_per_entity is None:
            return self.name
        return f"{self.name}, at most {self.max_per_entity} counted of each person"


def unit_of(name: str, max_per_entity: int | None) -> Unit:
    """A unit from its two public parameters."""
    return Unit(cast(UnitName, name), max_per_entity)


def account_unit_of(name: str | None, max_per_entity: int | None) -> Unit | None:
    """The unit an account is opened for: None leaves it to the first release, `max_per_entity` alone means a person."""
    if name is None:
        return None if max_per_entity is None else unit_of("person", max_per_entity)
    if name == "record" and max_per_entity is not None:
        raise InvalidInput(
            f"max_per_entity={max_per_entity!r} belongs to an account of unit 'person'. Nothing was created. Leave it "
            "out, or use unit='person'."
        )
    return unit_of(name, max_per_entity)
