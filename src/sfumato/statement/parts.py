"""What a statement is made of: sections of paragraphs, facts, lists and tables. All text is made visible here."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from sfumato.errors import InvalidInput
from sfumato.exact import shown
from sfumato.reading import visible

_LONGEST_FACT = 10_000
_MOST_FACTS = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Sheet:
    """A table: a caption, names of columns, rows of text."""

    caption: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """A heading, and below it paragraphs, a list, pairs of a term and what is said of it, and tables; in this order."""

    key: str
    heading: str
    text: tuple[str, ...] = ()
    items: tuple[str, ...] = ()
    facts: tuple[tuple[str, str], ...] = ()
    sheets: tuple[Sheet, ...] = ()


def section(
    key: str,
    heading: str,
    *,
    text: Iterable[str] = (),
    items: Iterable[str] = (),
    facts: Iterable[tuple[str, str]] = (),
    sheets: Iterable[Sheet] = (),
) -> Section:
    """A section of text that may come from a stranger: what would be obeyed by a terminal or a page is shown."""
    return Section(
        key=key,
        heading=plain(heading),
        text=tuple(map(plain, text)),
        items=tuple(map(plain, items)),
        facts=tuple((plain(term), plain(said)) for term, said in facts),
        sheets=tuple(sheets),
    )


def sheet(caption: str, columns: Iterable[str], rows: Iterable[Iterable[str]]) -> Sheet:
    """A table, in the same way."""
    return Sheet(
        caption=plain(caption),
        columns=tuple(map(plain, columns)),
        rows=tuple(tuple(map(plain, row)) for row in rows),
    )


def publishers(facts: Mapping[str, str]) -> tuple[Section, ...]:
    """What the publisher adds, marked as the publisher's words: nothing here comes from a release or a ledger."""
    if not facts:
        return ()
    said = [(f"{name[:1].upper()}{name[1:].replace('_', ' ')}", words) for name, words in facts.items()]
    return (section("publisher", "In the publisher's own words", facts=said),)


def plain(text: str) -> str:
    """On one line, with everything visible."""
    return visible(" ".join(str(text).split()))


def checked_facts(given: object) -> dict[str, str]:
    """What the publisher adds: names and texts, in the order given."""
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        raise InvalidInput(
            f"facts={shown(given)} must be names with texts, such as facts={{'Publisher': 'City of X'}}."
        )
    if len(given) > _MOST_FACTS:
        raise InvalidInput(f"facts has {len(given):,} entries, and at most {_MOST_FACTS} are taken.")
    facts = {}
    for name, said in given.items():
        if not isinstance(name, str) or not isinstance(said, str) or not name.strip() or not said.strip():
            raise InvalidInput(f"facts[{shown(name)}]={shown(said)} must be a name and a text that say something.")
        if len(name) + len(said) > _LONGEST_FACT:
            raise InvalidInput(f"facts[{shown(name)}] is longer than {_LONGEST_FACT:,} characters.")
        facts[plain(name)] = plain(said)
    return facts
