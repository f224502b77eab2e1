"""Text that is written as calls in Python, and never run: `move("500 m") | change("mode")`.

A grammar is a closed list of names and operators. Besides them there are text, numbers and lists. Reading takes time in
proportion to the text, whose length and depth are bounded; what cannot be read is refused with its place.

    expression := operand (operator operand)*
    operand    := "(" expression ")"  |  name "(" arguments ")"  |  text  |  number  |  list
"""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from functools import partial
from typing import Any, NamedTuple, NoReturn

from sfumato.errors import InvalidInput
from sfumato.exact import fraction, shown
from sfumato.naming import nearest

MOST_CHARACTERS = 1 << 20
DEEPEST = 32  # parentheses and brackets in each other
MOST_JOINED = 4096  # operators in a text: what is made of them may grow with each

_ESCAPED = r"""\\(?:["'\\nrt]|x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8})"""
_TOKEN = re.compile(
    rf"""(?P<text>"(?:[^"\\\n]++|{_ESCAPED})*+"|'(?:[^'\\\n]++|{_ESCAPED})*+')"""
    r"""|(?P<number>(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?)"""
    r"""|(?P<name>[^\W\d]\w*(?:\.\w+)?)|(?P<mark>[][(),=|&+*-])""",
)
_SPACE = re.compile(r"\s*")
_ENDS = {"[": "]", "(": ")"}


@dataclass(frozen=True, kw_only=True)
class Call:
    """A name that may be called: what it makes, what must be given, what may follow, and what needs its name."""

    make: Callable[..., Any]
    first: tuple[str, ...] = ()
    optional: tuple[str, ...] = ()
    keys: tuple[str, ...] = ()
    any_key: bool = False
    many: bool = False
    """Whether any number of values may stand without a name."""

    @property
    def takes(self) -> str:
        """What goes into its parentheses, in words."""
        named = (*self.first, *self.optional, *(["values"] if self.many else []), *(f"{one}=…" for one in self.keys))
        return ", ".join((*named, *(["name=…"] if self.any_key else []))) or "nothing"


@dataclass(frozen=True, kw_only=True)
class Grammar:
    """What may be written, and what it means."""

    what: str
    """What is read, as the beginning of a message: 'the relation'."""
    example: str
    calls: Mapping[str, Call]
    operators: tuple[Mapping[str, Callable[[Any, Any], Any]], ...]
    """Those that bind least first."""

    def read(self, text: object) -> Any:
        """The value of a text."""
        if not isinstance(text, str):
            raise InvalidInput(f"{self.what} is read from text, not from {shown(text)}. Write it like {self.example}.")
        if len(text) > MOST_CHARACTERS:
            raise InvalidInput(
                f"{self.what} of {len(text):,} characters is too long: at most {MOST_CHARACTERS:,} are read."
            )
        return _Reader(self, text).whole()


def quoted(text: str) -> str:
    """Text in quotes as a grammar reads it, with escapes where there is something that no terminal shows."""
    if not text.isprintable():
        return ascii(text)
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def plain_number(value: float) -> str:
    """A double that is read back as itself, without a point where it is whole."""
    if math.isinf(value):
        return "1e999" if value > 0 else "-1e999"
    return repr(int(value)) if value.is_integer() and abs(value) < 1e15 else repr(value)


class _Token(NamedTuple):
    kind: str
    text: str
    at: int


class _Reader:
    """What was not read yet, from the front."""

    def __init__(self, grammar: Grammar, text: str) -> None:
        self.grammar = grammar
        self.source = text
        self.depth = 0
        self.joined = 0
        self.token = self._next(0)

    def whole(self) -> Any:
        """All of it."""
        found = self.expression()
        if self.token.kind != "end":
            marks = ", ".join(f"'{mark}'" for level in self.grammar.operators for mark in level)
            self.refuse(f"{marks} or the end")
        return found

    def expression(self, level: int = 0) -> Any:
        """Operands joined by operators, from the left."""
        if level == len(self.grammar.operators):
            return self.operand()
        found = self.expression(level + 1)
        while self.token.kind == "mark" and self.token.text in self.grammar.operators[level]:
            mark = self.take()
            self.joined += 1
            if self.joined > MOST_JOINED:
                self.wrong(mark.at, f"more than {MOST_JOINED:,} operators are more than are read.")
            other = self.expression(level + 1)
            found = self.said(mark.at, partial(self.grammar.operators[level][mark.text], found, other))
        return found

    def operand(self) -> Any:
        """An expression in parentheses, a call, or a plain value."""
        token = self.token
        if token.kind == "mark" and token.text == "[":
            return self.listed()
        if token.kind == "mark" and token.text == "(":
            return self.listed(alone=True)
        if token.kind == "text":
            return self.text()
        if token.kind == "number" or token.text in ("+", "-"):
            return self.number()
        if token.kind != "name":
            self.refuse(f"{', '.join(self.grammar.calls)} or '('")
        return self.call()

    def call(self) -> Any:
        """What a name makes of its arguments."""
        token, calls = self.take(), self.grammar.calls
        name = token.text.removeprefix("sf.")
        if name not in calls:
            bare = "" if self.token.text == "(" else " Text stands in quotes."
            self.wrong(token.at, f"{shown(name)} is none of {', '.join(calls)}.{nearest(name, calls)}{bare}")
        call = calls[name]
        if self.token.text != "(":
            self.refuse(f"'(' after {name}")
        self.open()
        plain: list[Any] = []
        named: dict[str, Any] = {}
        while self.token.text != ")":
            self.argument(name, call, plain, named)
            if self.token.text != ")":
                self.expect(",")
        self.close(")")
        missing = [key for key in call.first if key not in named]
        if missing:
            self.wrong(token.at, f"{name}(…) needs its {missing[0]}.")
        return self.said(token.at, partial(call.make, *plain, **named))

    def argument(self, name: str, call: Call, plain: list[Any], named: dict[str, Any]) -> None:
        """One argument, with a name or without."""
        start = self.token
        key = self.key()
        if key is None and call.many:
            plain.append(self.expression())
            return
        plain_names = (*call.first, *call.optional)
        if key is None and len(named) < len(plain_names):
            key = plain_names[len(named)]
        if key is None or not (call.any_key or key in (*plain_names, *call.keys)):
            hint = "" if key is None else nearest(key, (*plain_names, *call.keys))
            self.wrong(start.at, f"{name}(…) takes {call.takes}.{hint}")
        if key in named:
            self.wrong(start.at, f"{key} is given twice.")
        named[key] = self.expression()

    def key(self) -> str | None:
        """The name before a '=', if there is one; in quotes where it is no plain word."""
        start = self.token
        if start.kind not in ("name", "text") or self._next(start.at + len(start.text)).text != "=":
            return None
        key = self.text() if start.kind == "text" else self.take().text
        self.take()
        return str(key)

    def text(self) -> str:
        """What stands in quotes."""
        token = self.take()
        try:
            return str(ast.literal_eval(token.text))  # one string and nothing else, as the pattern says
        except (SyntaxError, ValueError):
            self.wrong(token.at, "this text has an escape that stands for no character.")

    def number(self) -> int | Decimal:
        """Digits, with a sign or without."""
        sign = self.take().text if self.token.kind == "mark" else ""
        if self.token.kind != "number":
            self.refuse(f"a number after '{sign}'")
        token = self.take()
        found: int | Decimal = self.said(token.at, partial(_number, sign + token.text))
        return found

    def listed(self, *, alone: bool = False) -> Any:
        """Values in brackets, as a list; in parentheses as a tuple, or the one value `alone` if there is no comma."""
        mark = self.token.text
        found: list[Any] = []
        comma = False
        self.open()
        while self.token.text != _ENDS[mark]:
            found.append(self.expression())
            if self.token.text != _ENDS[mark]:
                self.expect(",")
                comma = True
        self.close(_ENDS[mark])
        if alone and len(found) == 1 and not comma:
            return found[0]
        return tuple(found) if alone else found

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

    def said(self, at: int, make: Callable[[], Any]) -> Any:
        """What is made here; where it is refused, with its place."""
        try:
            return make()
        except InvalidInput as refusal:
            raise InvalidInput(f"{self.place(at)}: {refusal}") from refusal

    def refuse(self, wanted: str) -> NoReturn:
        """Something else stands here than could."""
        here = "the text ends" if self.token.kind == "end" else f"{shown(self.token.text)} stands"
        self.wrong(self.token.at, f"{here} where {wanted} is expected.")

    def wrong(self, at: int, why: str) -> NoReturn:
        """A refusal with its place."""
        raise InvalidInput(f"{self.place(at)}: {why} Write it like {self.grammar.example}.")

    def place(self, at: int) -> str:
        """Where something stands, for a message."""
        return f"{self.grammar.what}, at character {at + 1}"


def _number(text: str) -> int | Decimal:
    """Whole, or a decimal with all of its digits."""
    fraction(text, "the number")  # of a length that can be computed with
    return int(text) if text.lstrip("+-").isdecimal() else Decimal(text)
