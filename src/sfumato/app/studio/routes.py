"""The studio's requests, each a table in and a table out. What is refused is refused in the library's words, with the
field that it is about.

Plans are made one at a time, in the order of their pages' wishes: one that its page has outlived is not made at all.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any

import sfumato
from sfumato import pages
from sfumato.app.schema import columns_of, guessed
from sfumato.app.studio import areas, budget, explored, planned
from sfumato.app.studio.explored import Last
from sfumato.app.studio.hearing import listening
from sfumato.app.studio.jobs import Jobs, refusal
from sfumato.app.studio.once import account_of
from sfumato.app.studio.said import publication_of
from sfumato.errors import InvalidInput, SfumatoError
from sfumato.policies import Policy
from sfumato.publication import Publication
from sfumato.publication.publication import load_tables
from sfumato.release import Release

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

_TYPES = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".mjs": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
    ".txt": "text/plain; charset=utf-8",
}
_DATA = (".parquet", ".csv", ".tsv")
_MOST_LISTED = 200
_OUTDATED = {"kind": "Outdated", "message": "a newer wish of the same page came first.", "field": None}


@dataclass
class Studio:
    """What the studio was started for, and all that it knows while it runs."""

    folder: Path
    file: str | None = None
    """A publication file, or data, that it opens with."""
    tiles: str | None = None
    outlines: Path | None = None
    shelf: explored.Shelf = field(default_factory=explored.Shelf)
    jobs: Jobs = field(default_factory=Jobs)

    def __post_init__(self) -> None:
        self._quick = ThreadPoolExecutor(1, thread_name_prefix="plans")
        self._slow = ThreadPoolExecutor(1, thread_name_prefix="words")
        self._policies: Last[Policy] = Last()
        self._wishes: dict[str, int] = {}
        self._wishing = Lock()

    # ------------------------------------------------------------------ what is asked

    def start(self, asked: Mapping[str, Any]) -> dict[str, Any]:
        """What there is to begin with: the publication file, data, releases and ledgers of the folder, by name."""
        del asked
        tables, data, trouble = None, None, None
        if self.file is not None and Path(self.file).suffix.lower() == ".toml":
            try:
                tables = _for_json(load_tables(self.folder / self.file))
            except (SfumatoError, OSError) as error:
                trouble = refusal(error)["message"]
        elif self.file is not None:
            data = self.file
        names = sorted(one.name for one in self.folder.iterdir() if one.is_file() and not one.name.startswith("."))
        listed = {
            "data": [name for name in names if name.lower().endswith(_DATA)],
            "releases": [name for name in names if name.lower().endswith(".sfumato")],
            "ledgers": [name for name in names if name.lower().endswith((".db", ".sqlite"))],
            "maps": [name for name in names if name.lower().endswith((".geojson", ".json"))],
        }
        return {
            "version": sfumato.__version__,
            "folder": self.folder.name or str(self.folder),
            "file": self.file,
            "publication": tables,
            "trouble": trouble,
            "data": data,
            "listed": {kind: found[:_MOST_LISTED] for kind, found in listed.items()},
            "tiles": self.tiles,
            "outlines": None if self.outlines is None else areas.read(self.outlines),
            "jobs": [job.told() for job in self.jobs.all()],
        }

    def columns(self, asked: Mapping[str, Any]) -> dict[str, Any]:
        """The names and types of the columns of a file, and what they are guessed to be. No value is read."""
        found = columns_of(str(self._path(asked, "path", "data.path")))
        guess = guessed(found)
        return {
            "columns": [{"name": one.name, "kind": one.kind} for one in found],
            "guess": {
                "place": None if guess.place is None else [one.name for one in guess.place],
                **{
                    name: None if one is None else one.name
                    for name, one in (("time", guess.time), ("category", guess.category), ("entity", guess.entity))
                },
            },
        }

    def area(self, asked: Mapping[str, Any]) -> dict[str, Any]:
        """The outlines of a public area, from a GeoJSON file that is not the data."""
        return areas.read(self._path(asked, "path", "area"), apart=self._given(asked.get("data")))

    def describe(self, asked: Mapping[str, Any]) -> dict[str, Any]:
        """What is hidden, in words; the file and the lines of Python that say it."""
        named = self.file is not None and self.file.lower().endswith(".toml")
        return planned.described(self._publication(asked), str(self.file) if named else "publication.toml")

    def plan(self, asked: Mapping[str, Any]) -> dict[str, Any]:
        """How accurate it will be, what is not hidden, and what beats what."""
        return planned.planned(self._publication(asked))

    def words(self, asked: Mapping[str, Any]) -> dict[str, Any]:
        """The promise, and what is not hidden."""
        return planned.worded(self._publication(asked))

    def preview(self, asked: Mapping[str, Any]) -> dict[str, Any]:
        """How a release of made-up people would look."""
        return planned.previewed(self._publication(asked))

    def account(self, asked: Mapping[str, Any]) -> dict[str, Any]:
        """The accounts of a ledger."""
        return budget.shown(self._ledger(asked), _text(asked, "dataset"))

    def statement(self, asked: Mapping[str, Any]) -> dict[str, Any]:
        """The statement of an account, as a page of its own."""
        return {"html": budget.stated(self._ledger(asked), _text(asked, "dataset"))}

    def open_account(self, asked: Mapping[str, Any]) -> dict[str, Any]:
        """A new account."""
        place, dataset = self._ledger(asked), _text(asked, "dataset")
        return budget.created(place, dataset, asked.get("epsilon"), asked.get("hide"), asked.get("fixed"))

    def check(self, asked: Mapping[str, Any]) -> dict[str, Any]:
        """The operator's preflight: begun, and found again."""
        return self.jobs.begin("check", self._publication(asked)).told()

    def publish(self, asked: Mapping[str, Any]) -> dict[str, Any]:
        """Publish: begun once for a file, however often it is asked for."""
        publication = self._publication(asked)
        if asked.get("agreed") is not True:
            raise InvalidInput("nobody agreed to this. Nothing was counted, drawn or recorded.")
        account_of(publication)
        return self.jobs.begin("publish", publication).told()

    def job(self, asked: Mapping[str, Any]) -> dict[str, Any]:
        """How far such work is; with `stop`, the wish that it ends before anything is charged."""
        found = self.jobs.find(str(asked.get("kind")), self._publication(asked))
        if found is None:
            return {"running": False, "phase": "none", "result": None, "error": None}
        if asked.get("stop") is True:
            found.stop.set()
        return found.told()

    def release(self, asked: Mapping[str, Any]) -> dict[str, Any]:
        """What a release says of itself."""
        return explored.summary(self.shelf.open(self._path(asked, "path", "release")))

    def release_words(self, asked: Mapping[str, Any]) -> dict[str, Any]:
        """What it promises, and what is not hidden."""
        return explored.worded(self.shelf.open(self._path(asked, "path", "release")))

    def cells(self, asked: Mapping[str, Any]) -> dict[str, Any]:
        """The cells of a release."""
        return explored.cells(self.shelf, self.shelf.open(self._path(asked, "path", "release")), asked)

    def answer(self, asked: Mapping[str, Any]) -> dict[str, Any]:
        """The answer to an area that was drawn."""
        return explored.answered(self.shelf.open(self._path(asked, "path", "release")), asked)

    def changes(self, asked: Mapping[str, Any]) -> dict[str, Any]:
        """The cells of what changed from one release to another."""
        return explored.changes(self.shelf, *self._both(asked), asked)

    def change(self, asked: Mapping[str, Any]) -> dict[str, Any]:
        """What changed in an area that was drawn."""
        return explored.changed(*self._both(asked), asked)

    # ------------------------------------------------------------------ inside

    def _both(self, asked: Mapping[str, Any]) -> tuple[Release, Release]:
        return self.shelf.open(self._path(asked, "path", "release")), self.shelf.open(
            self._path(asked, "old", "the older release")
        )

    def _publication(self, asked: Mapping[str, Any]) -> Publication:
        made = publication_of(asked.get("publication"), self.folder)
        known = self._policies.get(made.policy.fingerprint, lambda: made.policy)
        return replace(made, policy=known)  # which remembers what was searched for in it

    def _given(self, path: Any) -> Path | None:
        return self.folder / path if isinstance(path, str) and path else None

    def _path(self, asked: Mapping[str, Any], key: str, about: str) -> Path:
        given = self._given(asked.get(key))
        if given is None:
            raise InvalidInput(f"{key} is missing: name a file. Nothing was read.")
        if not given.exists() and "*" not in given.name:
            raise InvalidInput(f"there is no file '{given.name}' there ({about}). Nothing was read.")
        return given

    def _ledger(self, asked: Mapping[str, Any]) -> str:
        given = _text(asked, "ledger")
        if given is None:
            raise InvalidInput("studio: [account] ledger is missing: name the ledger. Nothing was read.")
        return given if "://" in given else str(self.folder / given)

    def pool(self, name: str) -> ThreadPoolExecutor:
        """Where wishes of this kind are fulfilled, one after the other; nobody who moves a slider waits for words."""
        return self._quick if name in _QUICK else self._slow

    def wish(self, asked: Mapping[str, Any]) -> Callable[[], bool]:
        """Note what a page wishes, and give what says whether it still does when its turn comes."""
        tab, number = asked.get("tab"), asked.get("number")
        if not isinstance(tab, str) or type(number) is not int or len(tab) > 64:
            return lambda: True
        with self._wishing:
            if len(self._wishes) > 1000:
                self._wishes.clear()
            self._wishes[tab] = max(number, self._wishes.get(tab, 0))
        return lambda: self._wishes.get(tab, 0) <= number

    def answer_of(self, work: Callable[[Mapping[str, Any]], dict[str, Any]], asked: Mapping[str, Any]) -> Any:
        """What is sent back: what was asked for and what was warned of, or the refusal, which is an answer as well."""
        try:
            with listening() as said:
                told = work(asked)
            return {**told, "warnings": [*told.get("warnings", []), *said]}
        except (SfumatoError, OSError) as error:
            return {"error": refusal(error)}

    def close(self) -> None:
        """End, when what is under way has ended."""
        for pool in (self._quick, self._slow):
            pool.shutdown(wait=False, cancel_futures=True)
        self.jobs.close()


_QUICK = ("describe", "plan")
_LATEST = (*_QUICK, "words", "preview", "cells", "changes")
_DONE = (
    "start",
    "columns",
    "area",
    "account",
    "open_account",
    "statement",
    "check",
    "publish",
    "job",
    "release",
    "release_words",
    "answer",
    "change",
)


def make_app(studio: Studio) -> Any:
    """The application, unguarded: `guard.Guard` stands before it."""
    from starlette.applications import Starlette
    from starlette.responses import JSONResponse, Response
    from starlette.routing import Route

    async def page(request: Request) -> Response:
        del request
        return Response(pages.read("studio", "index.html"), media_type=_TYPES[".html"])

    async def static(request: Request) -> Response:
        name = request.path_params["name"]
        try:
            content = pages.read("studio", name)
        except KeyError:
            return Response("There is no such file.", status_code=404, media_type=_TYPES[".txt"])
        return Response(content, media_type=_TYPES.get(Path(name).suffix, "application/octet-stream"))

    async def api(request: Request, name: str) -> Response:
        import asyncio

        try:
            asked = json.loads(await request.body() or b"{}")
        except (ValueError, RecursionError):
            asked = None
        if not isinstance(asked, dict):
            error = {"kind": "InvalidInput", "message": "this is not a table in JSON. Nothing was done.", "field": None}
            return JSONResponse({"error": error}, status_code=400)
        loop = asyncio.get_running_loop()
        work = partial(studio.answer_of, getattr(studio, name), asked)
        if name not in _LATEST:
            return JSONResponse(await loop.run_in_executor(None, work))
        wished = studio.wish({**asked, "tab": f"{asked.get('tab')}/{name}"})

        def in_turn() -> Any:
            return work() if wished() else {"error": _OUTDATED}

        return JSONResponse(await loop.run_in_executor(studio.pool(name), in_turn))

    routes = [Route("/", page), Route("/static/{name}", static)]
    for name in (*_LATEST, *_DONE):
        routes.append(Route(f"/api/{name}", partial(api, name=name), methods=["POST"]))
    return Starlette(routes=routes)


def _text(asked: Mapping[str, Any], key: str) -> str | None:
    given = asked.get(key)
    return given if isinstance(given, str) and given else None


def _for_json(value: Any) -> Any:
    """Tables of a file with dates as text."""
    if isinstance(value, Mapping):
        return {key: _for_json(one) for key, one in value.items()}
    if isinstance(value, list):
        return [_for_json(one) for one in value]
    return value if isinstance(value, (str, int, float, bool)) else str(value)
