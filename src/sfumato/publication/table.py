"""A table of a file, read key by key: what is missing, unknown or of another type is refused by the name of its key."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass, fields
from datetime import date
from typing import Any, NamedTuple, NoReturn, TypeVar, get_type_hints

from sfumato.errors import InvalidInput
from sfumato.exact import is_number, is_whole, shown
from sfumato.naming import nearest

T = TypeVar("T")


class Kind(NamedTuple):
    """What a value has to be, in words and as a test."""

    words: str
    fits: Callable[[Any], bool]


def _list_of(fits: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, list) and all(map(fits, value))


def _text(value: Any) -> bool:
    return isinstance(value, str)


TEXT = Kind("text in quotes", _text)
TEXTS = Kind("a list of texts", _list_of(_text))
WHOLE = Kind("a whole number", is_whole)
WHOLES = Kind("a list of whole numbers", _list_of(is_whole))
NUMBER = Kind("a number", is_number)
NUMBERS = Kind("a list of numbers", _list_of(is_number))
EDGES = Kind(
    "a list of numbers, or one such list for every axis",
    lambda value: _list_of(is_number)(value) or _list_of(_list_of(is_number))(value),
)
EXACT = Kind("a number, or text such as '1/3'", lambda value: is_number(value) or _text(value))
FLAG = Kind("true or false", lambda value: isinstance(value, bool))
LABEL = Kind("a label: text, a whole number, or true or false", lambda value: isinstance(value, (str, int)))
LABELS = Kind("a list of labels", _list_of(LABEL.fits))
MOMENT = Kind("a date or a time, such as 2026-03-01", lambda value: isinstance(value, (str, date)))
STEP = Kind("text, a date, a time or a whole number", lambda value: is_whole(value) or MOMENT.fits(value))
RUNS = Kind("a list of [microseconds, how many]", _list_of(lambda run: _list_of(is_whole)(run) and len(run) == 2))
COVER = Kind(
    "a path, [lon0, lat0, lon1, lat1], or a list of cells as text",
    lambda value: _text(value) or _list_of(is_number)(value) or _list_of(_text)(value),
)
TABLE = Kind("a table", lambda value: isinstance(value, dict))
NAMES = Kind(
    'a table of texts, such as {x = "lon"}', lambda value: isinstance(value, dict) and all(map(_text, value.values()))
)


@dataclass(frozen=True)
class Table:
    """The values of a table, and where it stands, for messages."""

    where: str
    given: Mapping[str, Any]

    def known(self, names: tuple[str, ...]) -> None:
        """Refuse a key that is none of these, naming the nearest."""
        for name in self.given:
            if name not in names:
                self.refuse(f"{shown(name)} is no key here.{nearest(name, names)} Known are {', '.join(names)}.")

    def take(self, name: str, kind: Kind, default: Any = MISSING) -> Any:
        """A value of this kind, or the default; refused where there is none."""
        if name not in self.given:
            if default is MISSING:
                self.refuse(f"{name} is missing: give {kind.words}.")
            return default
        value = self.given[name]
        if not kind.fits(value):
            self.refuse(f"{name} = {shown(value)} must be {kind.words}.")
        return value

    def inner(self, name: str) -> Table:
        """The table of this name within; an empty one where there is none."""
        return Table(f"{self.where} [{name}]", self.take(name, TABLE, {}))

    def said(self, make: Callable[[], T], key: str | None = None) -> T:
        """What is made of the values; where it is refused, with its place."""
        try:
            return make()
        except InvalidInput as refusal:
            raise InvalidInput(f"{self.where}{'' if key is None else f' {key}:'} {refusal}") from refusal

    def refuse(self, why: str) -> NoReturn:
        """A refusal with its place."""
        raise InvalidInput(f"{self.where} {why} Nothing was counted, drawn or recorded.")


def read_as(made: type[T], table: Table) -> T:
    """A dataclass from its table: every field stands there under its name, and is annotated with its kind."""
    kinds = {name: told.__metadata__[0] for name, told in get_type_hints(made, include_extras=True).items()}
    table.known(tuple(kinds))
    found = {name: table.take(name, kind) for name, kind in kinds.items() if name in table.given}
    return table.said(lambda: made(**found))


def written_as(value: Any) -> dict[str, Any]:
    """What such a dataclass says, by name."""
    told = {one.name: getattr(value, one.name) for one in fields(value)}
    return {name: one for name, one in told.items() if one is not None and one != {} and one is not False}
