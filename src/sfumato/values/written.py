"""Values as one line of text, for a command line or a file, and as plain data."""

from __future__ import annotations

from typing import Any

from sfumato.calls import Call, Grammar
from sfumato.errors import InvalidInput
from sfumato.exact import shown, written
from sfumato.values.amounts import Amounts, amounts
from sfumato.values.people import People, people

_EXAMPLE = 'amounts("fare", clip=[0, 100], step=0.01)'


def values_from_text(text: str) -> Amounts | People:
    """What `Amounts.to_text()` or `People.to_text()` wrote, or somebody by hand.

    >>> sf.values_from_text('people("user", cells=3)') == sf.people("user", cells=3)
    True
    """
    found = _GRAMMAR.read(text)
    if not isinstance(found, (Amounts, People)):
        raise InvalidInput(f"{shown(found)} stands where values are expected, such as {_EXAMPLE}.")
    return found


def values_from_spec(spec: object) -> Amounts | People:
    """The values that `spec()` described. The kinds are a closed list; anything else is refused."""
    try:
        known: Any = spec
        if known["kind"] == "people" and set(known) == {"kind", "column", "cells"}:
            return People(_text(known["column"]), known["cells"])
        if known["kind"] != "amounts" or set(known) - {"less"} != {"kind", "column", "clip", "step"}:
            raise ValueError("kind")
        low, high = known["clip"]
        bounds = (written(low, "clip"), written(high, "clip"))
        less = written(known.get("less", "0"), "less")
        return Amounts(_text(known["column"]), bounds, written(known["step"], "step"), less)
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        raise InvalidInput("The description of the values is damaged, or from a newer version.") from error


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError("column")
    return value


def _amounts(column: Any, clip: Any, step: Any, less: Any = 0) -> Amounts:
    return amounts(column, clip=clip, step=step, less=less)


def _people(column: Any, cells: Any) -> People:
    return people(column, cells=cells)


_GRAMMAR = Grammar(
    what="the values",
    example=_EXAMPLE,
    calls={
        "amounts": Call(make=_amounts, first=("column", "clip", "step"), keys=("less",)),
        "people": Call(make=_people, first=("column", "cells")),
    },
    operators=(),
)
