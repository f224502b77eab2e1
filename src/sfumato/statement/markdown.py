"""A statement as Markdown. Text is escaped: no word of a stranger becomes markup, a link or HTML."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from sfumato.statement.parts import Section, Sheet

_MARKS = re.compile(r"([\\`*_{}\[\]<>#|~!$&])")
_AT_THE_START = re.compile(r"^(\s*)([-+=]|\d+[.)])")
_ADDRESS = re.compile(r"(?i)(?:https?|ftp):(?=//)|www\.|(?:mailto|xmpp):(?=\S)")  # what becomes a link unasked


def markdown(title: str, sections: Iterable[Section]) -> str:
    """The whole page."""
    lines = [f"# {_escaped(title)}", ""]
    for section in sections:
        lines += [f"## {_escaped(section.heading)}", "", *_body(section)]
    return "\n".join(lines).rstrip("\n") + "\n"


def _body(section: Section) -> Iterator[str]:
    for paragraph in section.text:
        yield from (_line(paragraph), "")
    if section.items:
        yield from (f"- {_line(item)}" for item in section.items)
        yield ""
    if section.facts:
        yield from (f"- **{_escaped(term)}**: {_escaped(said)}" for term, said in section.facts)
        yield ""
    for sheet in section.sheets:
        yield from _table(sheet)


def _table(sheet: Sheet) -> Iterator[str]:
    yield from (_line(sheet.caption), "")
    yield f"| {' | '.join(map(_escaped, sheet.columns))} |"
    yield f"|{' --- |' * len(sheet.columns)}"
    yield from (f"| {' | '.join(map(_escaped, row))} |" for row in sheet.rows)
    yield ""


def _line(text: str) -> str:
    """At the start of a line more characters are markup than inside of it."""
    return _AT_THE_START.sub(r"\1\\\2", _escaped(text)) if not text[:1].isdigit() else _numbered(_escaped(text))


def _numbered(text: str) -> str:
    return re.sub(r"^(\d+)([.)])", r"\1\\\2", text)


def _escaped(text: str) -> str:
    safe = _MARKS.sub(r"\\\1", text)
    return _ADDRESS.sub(lambda found: f"{found[0][:-1]}\\{found[0][-1]}", safe)
