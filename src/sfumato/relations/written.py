"""Relations as one line of text, for a command line or a file: `move("500 m") | change("mode")`."""

from __future__ import annotations

from typing import Any

from sfumato.calls import Call, Grammar
from sfumato.errors import InvalidInput
from sfumato.exact import shown
from sfumato.relations.relation import MOST_TERMS, Relation, adjacent, anything, change, move, presence

_EXAMPLE = "move(\"500 m\") | change('mode')"


def relation_from_text(text: str) -> Relation:
    """The relation that `Relation.to_text()` wrote, or somebody by hand.

    >>> hide = sf.relation_from_text('move("500 m") | change("mode")')
    >>> hide == sf.move("500 m") | sf.change("mode")
    True
    """
    return _checked(_GRAMMAR.read(text))


def _either(first: Any, second: Any) -> Relation:
    found = _checked(first) | _checked(second)
    return _few(found, len(found.terms))


def _both(first: Any, second: Any) -> Relation:
    one, other = _checked(first), _checked(second)
    if max(len(a.rules) + len(b.rules) for a in one.terms for b in other.terms) > MOST_TERMS:
        raise InvalidInput(f"at most {MOST_TERMS} things of a record change at once.")
    return _few(one, len(one.terms) * len(other.terms)) & other


def _checked(value: Any) -> Relation:
    if not isinstance(value, Relation):
        raise InvalidInput(f"{shown(value)} stands where a relation is expected, such as {_EXAMPLE}.")
    return value


def _few(relation: Relation, terms: int) -> Relation:
    if terms > MOST_TERMS:
        raise InvalidInput(f"a relation has at most {MOST_TERMS} terms.")
    return relation


def _adjacent(regions: Any = None, **more: Any) -> Relation:
    if regions is not None and not isinstance(regions, str):
        raise InvalidInput(f"adjacent takes the name of a place as text, not {shown(regions)}.")
    return adjacent(regions, **more)


_GRAMMAR = Grammar(
    what="the relation",
    example=_EXAMPLE,
    calls={
        "move": Call(make=move, first=("delta",), keys=("of", "metric", "sources", "keep", "along")),
        "change": Call(make=change, first=("name",)),
        "adjacent": Call(make=_adjacent, optional=("regions",), keys=("contiguity", "map")),
        "anything": Call(make=anything),
        "presence": Call(make=presence),
    },
    operators=({"|": _either}, {"&": _both}),
)
