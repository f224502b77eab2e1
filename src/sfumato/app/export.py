"""`sfumato export`: a release as a file for other tools, or as a page for people."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

import sfumato as sf
from sfumato.app import options
from sfumato.app.asked import groups_of, where_of
from sfumato.app.output import emit, reported, say
from sfumato.app.query import Where
from sfumato.errors import InvalidInput
from sfumato.exact import shown
from sfumato.naming import nearest
from sfumato.release.export import write_csv, write_parquet
from sfumato.release.frames import said

TEXT = ("csv", "geojson", "html")
KINDS = ("csv", "parquet", "geojson", "geoparquet", "html")
STDOUT = "-"
NOTHING = "Nothing was written."
_FOR = {
    "--level": ("geojson", "geoparquet"),
    "--density": ("geojson", "geoparquet"),
    "--title": ("html",),
    "--outlines": ("html",),
}


def export(
    release: Annotated[Path, typer.Argument(help="A release file.")],
    to: Annotated[str, typer.Option("--to", metavar="KIND", help="csv, parquet, geojson, geoparquet or html.")],
    out: Annotated[str, typer.Option(help="The file to write; - for standard output, of csv, geojson and html.")],
    where: Where = None,
    by: Annotated[list[str] | None, typer.Option(metavar="NAME", help="A row for each of its cells. Repeat.")] = None,
    level: Annotated[str | None, typer.Option(help="A level of the place, such as county: for maps.")] = None,
    density: Annotated[bool, typer.Option("--density", help="Records on a square kilometre too: for maps.")] = False,
    title: Annotated[str | None, typer.Option(help="The title of the page: for html.")] = None,
    outlines: Annotated[Path | None, typer.Option(help="GeoJSON of borders to draw on its map: for html.")] = None,
    confidence: Annotated[float, typer.Option(help="How often an interval shall hold.")] = 0.95,
    force: Annotated[bool, typer.Option("--force", help="Replace the file where it is there.")] = False,
    as_json: options.Json = False,
) -> None:
    """Write a release for other tools: every cell with its value, standard error and interval. Costs no privacy.

    csv and parquet are tables, geojson and geoparquet maps, html is one page for a browser that asks no server for
    anything. A file that is there stays, unless --force is given, and files are written whole or not at all.

    Example: sfumato export visits.sfumato --to html --out visits.html --title "Visits in March"
    """
    with reported(as_json):
        told = {"--level": level, "--density": density or None, "--title": title, "--outlines": outlines}
        _check(to, out, told, force=force, as_json=as_json)
        loaded = sf.load(release)
        asked, groups = where_of(loaded.domain, where or []) or None, groups_of(loaded.domain, by or []) or None
        about: dict[str, Any] = {"by": groups, "where": asked, "confidence": confidence}
        write: Callable[[Path], Any] = {
            "csv": lambda path: write_csv(_table(loaded, **about), path),
            "parquet": lambda path: write_parquet(_table(loaded, **about), path),
            "geojson": lambda path: loaded.to_geojson(path, level=level, density=density, **about),
            "geoparquet": lambda path: loaded.to_geoparquet(path, level=level, density=density, **about),
            "html": lambda path: loaded.to_html(path, title=title, outlines=outlines, **about),
        }[to]
        if out == STDOUT:
            _print(write)
            return
        write(Path(out))
        if as_json:
            emit({"file": out, "kind": to, "bytes": Path(out).stat().st_size, "promise": str(loaded.guarantee)})
        else:
            say(f"Wrote {out}")


def _check(to: str, out: str, told: dict[str, Any], *, force: bool, as_json: bool) -> None:
    """Refuse, before anything is read, what cannot be written or would replace something."""
    if to not in KINDS:
        raise InvalidInput(f"--to {shown(to)} must be one of {', '.join(KINDS)}.{nearest(to, KINDS)} {NOTHING}")
    for option, kinds in _FOR.items():
        if told[option] is not None and to not in kinds:
            raise InvalidInput(f"{option} is for --to {' and '.join(kinds)}. {NOTHING} Leave it out.")
    if out == STDOUT:
        if to not in TEXT:
            raise InvalidInput(f"--to {to} is no text and cannot go to standard output. {NOTHING} Give --out a file.")
        if as_json:
            raise InvalidInput(f"--json and --out - both speak on standard output. {NOTHING} Give --out a file.")
        return
    place = Path(out)
    if place.is_dir() or not place.absolute().parent.is_dir():
        raise InvalidInput(f"--out {out} cannot be written there. {NOTHING} Name a file in a folder that is there.")
    if place.exists() and not force:
        raise InvalidInput(f"--out {out} is there already. {NOTHING} Choose another file, or replace it with --force.")


def _table(release: sf.Release, *, by: Any, where: Any, confidence: float) -> Any:
    """Every cell as a row, or every group of what is asked."""
    if by is None and where is None:
        return release.to_frame(confidence=confidence)
    answer: Any = release.answer(by=by or release.domain.names, where=where, confidence=confidence)
    return said(answer.to_frame(), release)


def _print(write: Callable[[Path], Any]) -> None:
    """What would be in the file, on standard output."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "export"
        write(file)
        sys.stdout.buffer.write(file.read_bytes())
        sys.stdout.flush()
