"""Every key of a publication file is an option: `--set KEY=VALUE`, or `--KEY VALUE` where no other option has its name.

What is typed becomes what the file would hold, by the kind of the key; a value that does not fit is refused by the name
of the option.
"""

from __future__ import annotations

import csv
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, get_type_hints

from typer.core import TyperCommand

from sfumato.errors import InvalidInput
from sfumato.exact import shown
from sfumato.naming import nearest
from sfumato.publication.publication import PUBLIC_KEYS, SETTINGS
from sfumato.publication.table import FLAG, NAMES, TEXTS, WHOLE, Kind

NOTHING = "Nothing was counted, drawn or recorded."

# Of what --labels and --delta begin, and no keys of the file: they stay beside them.
SHORT = ("other", "metric", "sources")

Key = tuple[str, ...]
"""The path of a key: ("epsilon",), or ("data", "entity")."""


def _kinds() -> dict[Key, Kind]:
    found: dict[Key, Kind] = {(name,): kind for name, kind in PUBLIC_KEYS.items()}
    for table, made in SETTINGS.items():
        for name, told in get_type_hints(made, include_extras=True).items():
            found[table, name] = told.__metadata__[0]
    return found


KINDS = _kinds()
BY_NAME: dict[str, Key] = {path[-1]: path for path in KINDS}


class Keyed(TyperCommand):
    """A command whose options are also all keys of the file: `--theta 2` is `--set theta=2`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """As always, once such options are told as the file's keys."""
        own = {name: bool(getattr(option, "is_flag", False)) for option in self.params for name in option.opts}
        return list(super().parse_args(ctx, list(_as_keys(args, own))))


class Filed(Keyed):
    """One for which a file says most: what repeats the file's keys works as an option, and `--help` leaves it out."""

    def __init__(self, *given: Any, **more: Any) -> None:
        super().__init__(*given, **more)
        for option in self.params:
            if option.name in _IN_FILES:
                option.hidden = True  # type: ignore[attr-defined]


_IN_FILES = frozenset(
    {"bounds", "shape", "labels", "policy", "delta", "workload", "max_per_entity", "x", "y", "entity"}
)


def _as_keys(args: Sequence[str], own: Mapping[str, bool]) -> Iterator[str]:
    """The arguments, options that are keys alone told as `--set`; `own` are the others, and whether each is a flag."""
    rest = iter(args)
    for one in rest:
        option, mark, value = one.partition("=")
        name = option[2:].replace("-", "_") if option.startswith("--") else ""
        if option in own or not (name in BY_NAME or name in SHORT):
            yield one
            if one == "--":
                yield from rest
            elif not (mark or own.get(option, True)):  # what follows is its value, whatever it looks like
                yield from _next(rest)
            continue
        yield "--set"
        if mark:
            yield f"{name}={value}"
        elif KINDS.get(BY_NAME.get(name, ())) is FLAG:
            yield f"{name}=true"
        else:
            yield from (f"{name}={following}" for following in _next(rest))


def _next(rest: Iterator[str]) -> list[str]:
    """What comes next, if anything does: the parser says what is missing."""
    following = next(rest, None)
    return [] if following is None else [following]


def set_keys(given: Sequence[str]) -> tuple[dict[Key, Any], dict[str, str]]:
    """The values of `--set` by the paths of their keys, and those of what is short for more."""
    found: dict[Key, Any] = {}
    short: dict[str, str] = {}
    for one in given:
        key, mark, text = one.partition("=")
        if not mark:
            raise InvalidInput(f"--set {shown(one)} must be KEY=VALUE, such as --set epsilon=2. {NOTHING}")
        if key in SHORT:
            short[key] = text
            continue
        path = tuple(key.split(".")) if "." in key else BY_NAME.get(key, (key,))
        if path in KINDS:
            found[path] = _READERS.get(KINDS[path], _as_it_is)(f"--{key.replace('_', '-')}", text)
        elif path[0] == "domain" and len(path) == 3:
            found[path] = _loose(text)
        else:
            names = [*BY_NAME, *(f"{a}.{b}" for a, b in (p for p in KINDS if len(p) == 2)), "domain.NAME.KEY"]
            raise InvalidInput(f"--set {shown(key)} names no key of a publication.{nearest(key, names)} {NOTHING}")
    return found, short


def listed(text: str) -> list[str]:
    """What commas separate; what holds a comma itself stands in double quotes."""
    return [part.strip() for part in next(csv.reader([text], skipinitialspace=True), [])]


def _as_it_is(option: str, text: str) -> str:
    del option
    return text


def _whole(option: str, text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise InvalidInput(f"{option} {shown(text)} must be a whole number. {NOTHING}") from None


def _flag(option: str, text: str) -> bool:
    if text not in ("true", "false"):
        raise InvalidInput(f"{option} {shown(text)} must be true or false. {NOTHING}")
    return text == "true"


def _texts(option: str, text: str) -> list[str]:
    del option
    return listed(text)


def _names(option: str, text: str) -> dict[str, str]:
    pairs = [part.partition("=") for part in listed(text)]
    if not all(name and mark and column for name, mark, column in pairs):
        raise InvalidInput(f"{option} {shown(text)} must be AXIS=COLUMN,AXIS=COLUMN. {NOTHING}")
    return {name: column for name, _, column in pairs}


def _loose(text: str) -> Any:
    """A value as the file has it, or text where it is none."""
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except (tomllib.TOMLDecodeError, RecursionError, ValueError):
        return text


_READERS: dict[Kind, Callable[[str, str], Any]] = {WHOLE: _whole, FLAG: _flag, TEXTS: _texts, NAMES: _names}
