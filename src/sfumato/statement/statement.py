"""The noun: what a statement says, as data, and the forms it can be written in."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from sfumato.errors import InvalidInput
from sfumato.files import replacing
from sfumato.statement.markdown import markdown
from sfumato.statement.page import page
from sfumato.statement.parts import Section, Sheet

__all__ = ["Section", "Sheet", "Statement"]

VERSION = 1
_KINDS = ".html, .md, .json, or .yaml for a registry's record"


@dataclass(frozen=True, kw_only=True, repr=False)
class Statement:
    """One page that says what was published and promised, what is not hidden first: from `release.statement()` or
    `ledger.statement()`.

    `sections` are words for people, `figures` the same for programs, with exact numbers as text; `facts` is what the
    publisher added. It is a value: the same release and ledger give the same bytes, so that a signature over them means
    something.

    >>> plan = sf.plan(sf.threshold(sf.Line(0, 4, cells=4), theta=1), sf.histogram(), epsilon=1)
    >>> statement = plan.publish(np.array([3, 0, 5, 1])).statement(facts={"Publisher": "City of Examples"})
    >>> statement["not-hidden"].heading, statement.figures["epsilon"]
    ('Not hidden', '1')
    >>> statement.save("visits.html").read_text(encoding="utf-8")[:15]
    '<!DOCTYPE html>'
    """

    title: str
    kind: str
    sections: tuple[Section, ...]
    figures: Mapping[str, Any]
    facts: Mapping[str, str] = field(default_factory=dict)

    def __getitem__(self, key: str) -> Section:
        for section in self.sections:
            if section.key == key:
                return section
        raise KeyError(key)

    def to_html(self) -> str:
        """A page of its own: no script, no picture, nothing fetched; light and dark, and made to be printed."""
        return page(self.title, self.sections)

    def to_markdown(self) -> str:
        """The same as Markdown."""
        return markdown(self.title, self.sections)

    def to_json(self) -> str:
        """The same as JSON, with all figures: {"statement": 1, "kind", "title", "figures", "facts", "sections"}."""
        said = {
            "statement": VERSION,
            "kind": self.kind,
            "title": self.title,
            "figures": dict(self.figures),
            "facts": dict(self.facts),
            "sections": [asdict(section) for section in self.sections],
        }
        return json.dumps(said, indent=2, ensure_ascii=True, sort_keys=True, allow_nan=False) + "\n"

    def to_registry(self) -> str:
        """A record for the OpenDP Deployments Registry, in YAML, as tier 3; for statements of a release.

        The registry asks for what no release knows: give it as facts, `facts={"name": …, "curator": …, "curator_type":
        "Government", "intended_use": …, "region": …}`, and "sector", "authors" (separated by semicolons) where there
        are some. The record is a draft for its authors to read and complete. The variant is "Custom", with the privacy
        relation stated, wherever the promise is not that of records or persons that come, go and change at will.
        """
        from sfumato.statement.registry import registry_record  # for the few who register

        return registry_record(self)

    def save(self, path: str | Path) -> Path:
        """Write the page (.html), Markdown (.md), JSON (.json) or the record for a registry (.yaml), whole or not at
        all.
        """
        place = Path(path)
        forms = {
            ".html": self.to_html,
            ".htm": self.to_html,
            ".md": self.to_markdown,
            ".json": self.to_json,
            ".yaml": self.to_registry,
            ".yml": self.to_registry,
        }
        form = forms.get(place.suffix.lower())
        if form is None:
            raise InvalidInput(f"path={str(path)!r} does not end in {_KINDS}. Nothing was written.")
        content = form().encode("utf-8")
        with replacing(place) as file:
            file.write(content)
        return place

    def _repr_html_(self) -> str:
        return page(self.title, self.sections, whole=False)

    def __str__(self) -> str:
        return self.to_markdown()

    def __repr__(self) -> str:
        return f"Statement({self.title!r}, {len(self.sections)} sections)"
