"""For the reference: examples in docstrings are code, wherever in the docstring they stand."""

from __future__ import annotations

from typing import Any

from griffe import Docstring, Extension, Object


class Doctests(Extension):
    """Puts fences around the lines that begin with `>>>` and what they print."""

    def on_object(self, *, obj: Object, **told: Any) -> None:
        """Called for everything that is documented."""
        del told
        if obj.docstring is not None:
            obj.docstring = Docstring(fenced(obj.docstring.value), parent=obj)


def fenced(text: str) -> str:
    """A docstring whose examples stand between fences: a blank line ends one."""
    lines: list[str] = []
    inside = False
    for line in text.splitlines():
        if not inside and line.lstrip().startswith(">>>"):
            lines.append("```pycon")
            inside = True
        elif inside and not line.strip():
            lines.append("```")
            inside = False
        lines.append(line)
    return "\n".join([*lines, "```"] if inside else lines)
