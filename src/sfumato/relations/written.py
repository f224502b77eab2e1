"""Relations as one line of text, for a command line or a file: `move("500 m") | change("mode")`.

The form is what one writes in Python, and nothing of it is run: four names, `|`, `&` and parentheses, and as arguments
text, numbers and lists of numbers. Reading takes time in proportion to the text, which is bounded.

    relation := both ("|" both)*        both := one ("&" one)*        one := "(" relation ")" | name "(" arguments ")"
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable
from functools import partial
from operator import and_
from typing import Any, NamedTuple, NoReturn

from sfumato.errors import InvalidInput
from sfumato.exact import fraction, shown
from sfumato.naming import nearest
from sfumato.relations.relation import MOST_TERMS, Relation, anything, change, move, presence

MOST_CHARACTERS = 1 << 20
DEEPEST = 32  # parentheses and brackets in each other

_ESCAPED = r"""\\(?:["'\\nrt]|x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8})"""
_TOKEN = re.compile(
    rf"""(?P<text>"(?:[^"\\\n]|{_ESCAPED})*"|'(?:[^'\\\n]|{_ESCAPED})*')"""
    r"""|(?P<number>[-+]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?)"""
    r"""|(?P<name>[^\W\d]\w*(?:\.\w+)?)|(?P<mark>[][(),=|&])""",
)
_SPACE = re.compile(r"\s*")


class _Kind(NamedTuple):
    make: Callable[..., Relation]
    first: tuple[str, ...]  # the name of what may stand without one
    keys: tuple[str, ...]


_KINDS = {
    "move": _Kind(move, ("delta",), ("of", "metric", "sources")),
    "change": _Kind(change, ("name",), ()),
    "anything": _Kind(anything, (), ()),
    "presence": _Kind(presence, (), ()),
}


class _Token(NamedTuple):
    kind: str
    text: str
    at: int


def relation_from_text(text: str) -> Relation:
    """The relation that `Relation.to_text()` wrote, or somebody by hand.

    >>> hide = sf.relation_from_text('move("500 m") | change("mode")')
    >>> hide == sf.move("500 m") | sf.change("mode")
    True
    """
    if not isinstance(text, str):
        raise InvalidInput(f"a relation is read from text, not from {shown(text)}, such as 'move(\"500 m\")'.")
    if len(text) > MOST_CHARACTERS:
        raise InvalidInput(f"a relation of {len(text):,} characters is too long: at most {MOST_CHARACTERS:,} are read.")
    return _Reader(text).whole()


class _Reader:
    """What was not read yet, from the front."""

    def __init__(self, text: str) -> None:
        self.source = text
        self.depth = 0
        self.token = self._next(0)

    def whole(self) -> Relation:
        """All of it."""
        found = self.union()
        if self.token.kind != "end":
            self.refuse("'|', '&' or the end")
        return found

    def union(self) -> Relation:
        """Terms joined by |."""
        found = self.both()
        while self.token.text == "|":
            self.take()
            found = self.bounded(found | self.both())
        return found

    def both(self) -> Relation:
        """Terms joined by &, which binds tighter."""
        found = self.one()
        while self.token.text == "&":
            at = self.take().at
            other = self.one()
            if len(found.terms) * len(other.terms) > MOST_TERMS:
                self.too_many(at)
            found = self.said(at, partial(and_, found, other))
        return found

    def one(self) -> Relation:
        """A relation in parentheses, or one of the four kinds."""
        if self.token.text == "(":
            self.open()
            found = self.union()
            self.close(")")
            return found
        if self.token.kind != "name":
            self.refuse("move, change, anything, presence or '('")
        token = self.take()
        name = token.text.removeprefix("sf.")
        if name not in _KINDS:
            known = ", ".join(_KINDS)
            self.wrong(token.at, f"{shown(name)} is none of {known}.{nearest(name, _KINDS)}")
        given = self.arguments(token.at, name)
        return self.said(token.at, lambda: _KINDS[name].make(**given))

    def arguments(self, at: int, name: str) -> dict[str, Any]:
        """What stands in the parentheses of a kind, by name."""
        kind = _KINDS[name]
        found: dict[str, Any] = {}
        if self.token.text != "(":
            self.refuse(f"'(' after {name}")
        self.open()
        while self.token.text != ")":
            key = kind.first[0] if kind.first and not found else ""
            start = self.token
            if start.kind == "name":
                key = self.take().text
                if self.token.text != "=":
                    self.refuse(f"'=' after {key}")
                self.take()
            if key not in (*kind.first, *kind.keys):
                takes = ", ".join((*kind.first, *(f"{one}=…" for one in kind.keys))) or "nothing"
                self.wrong(start.at, f"{name}(…) takes {takes}.{nearest(key, kind.keys) if key else ''}")
            if key in found:
                self.wrong(start.at, f"{key} is given twice.")
            found[key] = self.value(exact=key == "delta")
            if self.token.text != ")":
                self.expect(",")
        self.close(")")
        for needed in kind.first:
            if needed not in found:
                self.wrong(at, f"{name}(…) needs its {needed}.")
        return found

    def value(self, *, exact: bool = False) -> Any:
        """Text, a number, or a list of values."""
        token = self.token
        if token.text in ("[", "(") and token.kind == "mark":
            return self.listed()
        if token.kind not in ("text", "number"):
            self.refuse("text in quotes, a number or a list")
        self.take()
        if token.kind == "number":
            return self.said(token.at, lambda: fraction(token.text, "number") if exact else float(token.text))
        try:
            return ast.literal_eval(token.text)  # one string and nothing else, as the pattern says
        except (SyntaxError, ValueError):
            return self.wrong(token.at, "this text has an escape that stands for no character.")

    def listed(self) -> list[Any]:
        """Values in brackets or parentheses."""
        end, found = {"[": "]", "(": ")"}[self.token.text], []
        self.open()
        while self.token.text != end:
            found.append(self.value())
            if self.token.text != end:
                self.expect(",")
        self.close(end)
        return found

    def open(self) -> None:
        """One bracket deeper."""
        at = self.take().at
        self.depth += 1
        if self.depth > DEEPEST:
            self.wrong(at, f"brackets lie more than {DEEPEST} deep in each other.")

    def close(self, mark: str) -> None:
        """And back."""
        self.expect(mark)
        self.depth -= 1

    def expect(self, mark: str) -> None:
        """This mark, and on."""
        if self.token.kind != "mark" or self.token.text != mark:
            self.refuse(f"'{mark}'")
        self.take()

    def take(self) -> _Token:
        """What is next; and on."""
        token = self.token
        self.token = self._next(token.at + len(token.text))
        return token

    def _next(self, at: int) -> _Token:
        start = _SPACE.match(self.source, at).end()  # type: ignore[union-attr]  # matches nothing as well
        if start == len(self.source):
            return _Token("end", "", start)
        found = _TOKEN.match(self.source, start)
        if found is None:
            self.wrong(start, f"{shown(self.source[start : start + 20])} cannot be read.")
        return _Token(str(found.lastgroup), found[0], start)

    def bounded(self, relation: Relation) -> Relation:
        """Not more terms than a file may ask for."""
        return self.too_many(self.token.at) if len(relation.terms) > MOST_TERMS else relation

    def said(self, at: int, make: Callable[[], Any]) -> Any:
        """What is made here; where it is refused, with its place."""
        try:
            return make()
        except InvalidInput as refusal:
            raise InvalidInput(f"{_place(at)}: {refusal}") from refusal

    def too_many(self, at: int) -> NoReturn:
        """More terms than anybody means."""
        self.wrong(at, f"a relation has at most {MOST_TERMS} terms.")

    def refuse(self, wanted: str) -> NoReturn:
        """Something else stands here than could."""
        here = "the text ends" if self.token.kind == "end" else f"{shown(self.token.text)} stands"
        self.wrong(self.token.at, f"{here} where {wanted} is expected.")

    def wrong(self, at: int, why: str) -> NoReturn:
        """A refusal with its place."""
        raise InvalidInput(f'{_place(at)}: {why} Write it as in Python: \'move("500 m") | change("mode")\'.')


def _place(at: int) -> str:
    return f"the relation, at character {at + 1}"
