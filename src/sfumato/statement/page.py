"""A statement as a page of HTML that stands alone: no script, no picture, nothing fetched from anywhere.

A policy in the page forbids scripts and everything that is fetched, so that text which slipped through would still be
text. All text is escaped all the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from html import escape
from importlib.resources import files

from sfumato.statement.parts import Section, Sheet

_CONTENT_POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"


def page(title: str, sections: Iterable[Section], *, whole: bool = True) -> str:
    """The page, or what stands inside of it for a notebook."""
    style = files("sfumato.statement").joinpath("statement.css").read_text(encoding="utf-8")
    listed = list(sections)
    body = [f"<header><h1>{escape(title)}</h1></header>", *_contents(listed)]
    body += [line for section in listed for line in _section(section)]
    article = "\n".join(['<article class="sfumato-statement" lang="en">', *body, "</article>"])
    if not whole:
        return f"<style>{style}</style>\n{article}\n"
    head = [
        '<meta charset="utf-8">',
        f'<meta http-equiv="Content-Security-Policy" content="{_CONTENT_POLICY}">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        '<meta name="color-scheme" content="light dark">',
        '<meta name="referrer" content="no-referrer">',
        f"<title>{escape(title)}</title>",
        f"<style>{style}</style>",
    ]
    lines = ["<!DOCTYPE html>", '<html lang="en">', "<head>", *head, "</head>", "<body>", "<main>", article, "</main>"]
    return "\n".join([*lines, "</body>", "</html>", ""])


def _contents(sections: list[Section]) -> Iterator[str]:
    yield '<nav aria-label="Contents"><ul>'
    for section in sections:
        yield f'<li><a href="#{escape(section.key)}">{escape(section.heading)}</a></li>'
    yield "</ul></nav>"


def _section(section: Section) -> Iterator[str]:
    key = escape(section.key)
    yield f'<section id="{key}" aria-labelledby="{key}-heading">'
    yield f'<h2 id="{key}-heading">{escape(section.heading)}</h2>'
    yield from (f"<p>{escape(paragraph)}</p>" for paragraph in section.text)
    if section.items:
        yield "<ul>"
        yield from (f"<li>{escape(item)}</li>" for item in section.items)
        yield "</ul>"
    if section.facts:
        yield "<dl>"
        yield from (f"<div><dt>{escape(term)}</dt><dd>{escape(said)}</dd></div>" for term, said in section.facts)
        yield "</dl>"
    for sheet in section.sheets:
        yield from _table(sheet)
    yield "</section>"


def _table(sheet: Sheet) -> Iterator[str]:
    yield '<div class="sheet" tabindex="0" role="region" aria-label="Table"><table>'
    yield f"<caption>{escape(sheet.caption)}</caption>"
    names = "".join(f'<th scope="col">{escape(name)}</th>' for name in sheet.columns)
    yield f"<thead><tr>{names}</tr></thead>"
    yield "<tbody>"
    for first, *rest in sheet.rows:
        cells = "".join(f"<td>{escape(one)}</td>" for one in rest)
        yield f'<tr><th scope="row">{escape(first)}</th>{cells}</tr>'
    yield "</tbody></table></div>"
