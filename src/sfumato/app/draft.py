"""The text of a publication file that is not finished: what is known as keys, what is not as comments to fill in."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from sfumato.app.schema import Column, Guess
from sfumato.publication.toml import written_toml

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_TAKEN = frozenset({"x", "y", "z", "t", "place", "entity", "by", "where", "cut", "confidence", "columns", "outside"})
_HEAD = """\
# One publication: what is hidden, what will be asked, at which ε. Begun from the names and types of the columns alone.
# Bounds, labels and times must come from what everybody may know (a map, a code list, a calendar), never from a look
# at these data: what is read off them is published with the release, and no ε pays for it.
# Fill in what is commented, and look: sfumato plan THIS_FILE      (docs/publication.md has all keys)
"""


@dataclass(frozen=True, kw_only=True)
class Draft:
    """What is known of a publication so far."""

    path: str
    columns: Sequence[Column]
    guess: Guess
    release: str
    said: Mapping[str, Any] = field(default_factory=dict)

    def with_said(self, said: Mapping[str, Any]) -> Draft:
        """The same, knowing more."""
        return replace(self, said={**self.said, **said})

    def written(self) -> tuple[str, list[str]]:
        """The text of the file, and the keys that are left to be said."""
        lines = _Lines(self.said)
        self._public(lines)
        if self.guess.place is not None:
            lines.table("[domain.place]")
            lines.key("bounds", "bounds", "[-74.3, 40.5, -73.7, 40.95]  # the lower ends, then the upper ends")
            lines.key("shape", "shape", "[64, 64]  # cells along each axis")
        if self.guess.time is not None:
            lines.table("[domain.t]")
            lines.key("start", "start", '"2026-01-01"')
            lines.key("stop", "stop", '"2026-02-01"  # the first moment after the last step')
            lines.key("every", "every", '"1 day"  # or "1 h", "15 min", …')
        if self.guess.category is not None:
            lines.table(f"[domain.{self._category}]")
            lines.key("labels", "labels", '["bus", "bike", "rest"]  # all that there can be, whether it occurs or not')
            lines.say('# other = "rest"  # the label that takes what is none of them')
        if not self.guess.used - {getattr(self.guess.entity, "name", None)}:
            lines.table("# [domain.place]  # no column was recognised: docs/publication.md has the kinds of factors")
            lines.missing.append("domain")
        self._private(lines)
        return lines.text(), lines.missing

    @property
    def _category(self) -> str:
        name = "" if self.guess.category is None else self.guess.category.name
        return name if _NAME.fullmatch(name) and name not in _TAKEN else "category"

    def _public(self, lines: _Lines) -> None:
        """What whoever reads the release may know."""
        changes = [f'change("{self._category}")'] if self.guess.category is not None else []
        moves = ["move(0.01)"] if self.guess.place is not None else []
        said = [str(self.said["delta"])] if "delta" in self.said else []
        hide = " | ".join([*said, *changes]) if (said or not moves) and (said or changes) else None
        lines.put("hide", hide, _toml(" | ".join([*moves, *changes]) or "anything()") + "  # docs/hiding.md")
        if self.guess.time is not None:
            lines.say("# Nothing hides how many records there are at each t: published exactly, if it is named.")
            lines.optional("public", ["t"] if self.said.get("public") else None, '["t"]')
        parts = [f"{name}=ranges()" for name, one in (("place", self.guess.place), ("t", self.guess.time)) if one]
        parts += [f"{self._category}=histogram()"] if self.guess.category else []
        ask = f"ask({', '.join(parts)})" if len(parts) > 1 else "histogram()" if self.guess.category else "ranges()"
        lines.put("ask", ask, "")
        lines.key("epsilon", "epsilon", "1  # an ε that was decided on; the ledger adds up")
        if self.guess.entity is not None:
            lines.put("max_per_entity", 1, "")

    def _private(self, lines: _Lines) -> None:
        """What stays with whoever publishes."""
        lines.table("[data]  # from here on nothing enters a release")
        lines.put("path", self.path, "")
        across, up = self.guess.place or (None, None)
        found = {"x": across, "y": up, "t": self.guess.time, self._category: self.guess.category}
        named = {axis: one.name for axis, one in found.items() if one is not None and one.name != axis}
        if self.guess.entity is not None:
            lines.put("entity", self.guess.entity.name, "")
        left = [one for one in self.columns if one.name not in self.guess.used]
        if left:
            told = ", ".join(f"{json.dumps(one.name)}{f' ({one.kind})' if one.kind else ''}" for one in left[:40])
            lines.say(f"# not used: {told}{', …' if len(left) > 40 else ''}")
        if named:
            lines.table("[data.columns]")
            for axis, name in named.items():
                lines.put(axis, name, "")
        lines.table("[account]")
        lines.key("ledger", "ledger", '"budget.db"  # made once by: sfumato ledger create budget.db --epsilon 10')
        lines.table("[output]")
        lines.put("file", self.release, "")


def _toml(value: Any) -> str:
    """A value as a file has it."""
    return written_toml({"key": value}).strip().removeprefix("key = ")


class _Lines:
    """The lines of a file, and what is missing in it."""

    def __init__(self, said: Mapping[str, Any]) -> None:
        self.said = said
        self.lines = [_HEAD]
        self.missing: list[str] = []

    def say(self, line: str) -> None:
        """A line as it is."""
        self.lines.append(line)

    def table(self, head: str) -> None:
        """The beginning of a table."""
        self.lines += ["", head]

    def key(self, key: str, name: str, example: str) -> None:
        """A key, as it was said or to be said."""
        self.put(key, self.said.get(name), example)

    def put(self, key: str, value: Any, example: str) -> None:
        """A key with its value, or a comment in its place."""
        if value is None:
            self.missing.append(key)
            self.say(f"# {key} = {example}")
        else:
            self.say(f"{key} = {_toml(value)}")

    def optional(self, key: str, value: Any, example: str) -> None:
        """The same of a key that may be left out."""
        if value is None:
            self.say(f"# {key} = {example}")
        else:
            self.put(key, value, example)

    def text(self) -> str:
        """The whole file."""
        return "\n".join(self.lines) + "\n"
