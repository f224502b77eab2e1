"""One HTML file: the promise in words, the figures as data, and the script and style that show them.

**What is promised of the file.** It asks for nothing: a content security policy allows the one script and the one style
that ship with this version, by their digests, and no request at all. Every word that comes from a release, a domain or
a caller is text in it and never markup. The same release gives the same bytes.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterable, Mapping
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sfumato._version import __version__
from sfumato.errors import InvalidInput
from sfumato.exact import shown
from sfumato.files import replacing
from sfumato.pages import read
from sfumato.promise import wording
from sfumato.reading import visible
from sfumato.release.intervals import check_confidence
from sfumato.release.sheets import counted_by
from sfumato.report.views import views_of

if TYPE_CHECKING:
    from sfumato.promise import Guarantee
    from sfumato.release.release import Release

FORMAT = 1
"""Of the data in a page; its script reads this one alone."""
_LOUD = (
    "Not private: made with seeded randomness, for tests and papers. Whoever knows or guesses the seed can take the "
    "noise away. Do not publish it."
)


def to_html(
    release: Release,
    path: str | Path,
    *,
    title: str | None = None,
    by: str | Iterable[str] | None = None,
    where: Mapping[str, Any] | None = None,
    outlines: Any = None,
    confidence: float = 0.95,
) -> Path:
    """Write the page whole."""
    text = html_of(release, title=title, by=by, where=where, outlines=outlines, confidence=confidence)
    with replacing(path) as file:
        file.write(text.encode("utf-8"))
    return Path(path)


def html_of(
    release: Release,
    *,
    title: str | None = None,
    by: str | Iterable[str] | None = None,
    where: Mapping[str, Any] | None = None,
    outlines: Any = None,
    confidence: float = 0.95,
) -> str:
    """The page as text."""
    if title is not None and not (isinstance(title, str) and title.strip()):
        raise InvalidInput(f"title={shown(title)} must be a text. Nothing was written. Leave it out for a plain one.")
    name = visible(title or "A private release")
    confidence = check_confidence(confidence)
    held = {
        "format": FORMAT,
        "title": name,
        "release": visible(release.id),
        "confidence": confidence,
        "private": release.private,
        "counted": visible(counted_by(release)),
        "views": views_of(release, by, where, outlines, confidence),
    }
    script, style = read("report", "report.js").decode("utf-8"), read("report", "report.css").decode("utf-8")
    policy = (
        f"default-src 'none'; script-src {_digest(script)}; style-src {_digest(style)}; base-uri 'none'; "
        "form-action 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
    )
    said = [
        "<!doctype html>",
        '<html lang="en">',
        "<head>",
        '<meta charset="utf-8">',
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        '<meta name="referrer" content="no-referrer">',
        f'<meta name="generator" content="sfumato {__version__}">',
        f"<title>{escape(name)}</title>",
        f"<style>{style}</style>",
        "</head>",
        "<body>",
        f"<header><h1>{escape(name)}</h1>",
        f"<p>Estimates with {100 * confidence:g} % intervals, made with noise on purpose.</p>",
        *([] if release.private else [f'<p class="loud"><strong>{escape(_LOUD)}</strong></p>']),
        "</header>",
        "<main>",
        *_promise(release.guarantee),
        '<div id="report"><noscript><p>The map, the table and the download need JavaScript, which is switched off '
        "here. The figures are in this file, and no server is asked for anything.</p></noscript></div>",
        "</main>",
        f"<footer><p>Release {escape(visible(release.id))}, written by sfumato {__version__}. This file asks no server "
        "for anything. Whatever is computed from it is as private as it is.</p></footer>",
        f'<script type="application/json" id="data">{_data(held)}</script>',
        f"<script>{script}</script>",
        "</body>",
        "</html>",
        "",
    ]
    return "\n".join(said)


def _promise(guarantee: Guarantee) -> list[str]:
    """What is not hidden, first; what is promised; and the whole of it to open."""
    unseen = [visible(line) for line in wording.limits(guarantee)]
    whole = guarantee.describe()
    return [
        '<section aria-labelledby="hidden">',
        '<h2 id="hidden">What is not hidden</h2>',
        "<ul>",
        *(f"<li>{escape(line.strip())}</li>" for line in unseen),
        "</ul>",
        "<h2>What is promised</h2>",
        f"<p>{escape(str(guarantee))}.</p>",
        "<details><summary>The whole promise and its limits</summary>",
        *(f"<p>{'<br>'.join(escape(line) for line in part.splitlines())}</p>" for part in whole.split("\n\n")),
        "</details>",
        "</section>",
    ]


def _data(held: dict[str, Any]) -> str:
    """JSON that ends no script: within strings < and what some parsers take for an end of line are escaped."""
    text = json.dumps(held, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _digest(text: str) -> str:
    """What a content security policy calls an inline text."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode('utf-8')).digest()).decode('ascii')}'"
