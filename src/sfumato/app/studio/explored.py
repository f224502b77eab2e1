"""What the page is told of a release. Whatever is computed from a release is as private as the release."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable, Mapping
from pathlib import Path
from threading import Lock
from typing import Any, Generic, TypeVar

import numpy as np

from sfumato.app.studio.shapes import drawn, packed
from sfumato.domain import Domain
from sfumato.domain.on_maps import places
from sfumato.errors import InvalidInput, MissingExtra
from sfumato.figures.changes import Difference
from sfumato.figures.suppression import Suppressed
from sfumato.release import Release
from sfumato.release.answer import Answer
from sfumato.release.files import load

T = TypeVar("T")
_KEPT = 4
_FIGURES = ("value", "stderr", "low", "high")


class Last(Generic[T]):
    """What was made last, and is handed out again while it is asked for again; a few of them."""

    def __init__(self) -> None:
        self._lock, self._made = Lock(), OrderedDict[Hashable, T]()

    def get(self, key: Hashable, make: Callable[[], T]) -> T:
        """The one of this key, made if need be."""
        with self._lock:
            if key in self._made:
                self._made.move_to_end(key)
                return self._made[key]
        made = make()
        with self._lock:
            self._made[key] = made
            while len(self._made) > _KEPT:
                self._made.popitem(last=False)
        return made


class Shelf:
    """Releases that were opened last, and tables of them; read again where a file changed."""

    def __init__(self) -> None:
        self._releases: Last[Release] = Last()
        self._tables: Last[Answer] = Last()
        self._kept: Last[Suppressed] = Last()

    def open(self, path: Path) -> Release:
        """The release in a file."""
        if not path.is_file():
            raise InvalidInput(f"there is no release '{path.name}' there. Nothing was opened. Name a .sfumato file.")
        told = path.stat()
        return self._releases.get((str(path.resolve()), told.st_mtime_ns, told.st_size), lambda: load(path))

    def table(self, release: Release, by: tuple[str, ...], confidence: float, estimate: str) -> Answer:
        """Its answers grouped by some names."""
        key = (release.id, release.guarantee.epsilon, by, confidence, estimate)
        return self._tables.get(key, lambda: release.answer(by=by, confidence=confidence, estimate=estimate))

    def suppressed(self, release: Release, by: tuple[str, ...], confidence: float, below: Any) -> Suppressed:
        """The same without figures below a number, with intervals that hold for those that are shown."""
        if isinstance(below, bool) or not isinstance(below, int | float):
            raise InvalidInput("below is a number of records. Nothing was computed.")
        key = (release.id, release.guarantee.epsilon, by, confidence, below)
        return self._kept.get(key, lambda: release.suppress(by=by, confidence=confidence, below=below))

    def changed(self, new: Release, old: Release, by: tuple[str, ...], confidence: float) -> Answer:
        """How much more there is than there was, grouped by some names."""
        key = (new.id, new.guarantee.epsilon, old.id, old.guarantee.epsilon, by, confidence)
        return self._tables.get(key, lambda: Difference(new, old).answer(by=by, confidence=confidence))


def summary(release: Release) -> dict[str, Any]:
    """What a release says of itself, and the cells to draw."""
    publication = release.publication
    return {
        "id": release.id,
        "created": release.created,
        "private": release.private,
        "epsilon": str(release.guarantee.epsilon),
        "promise": str(release.guarantee),
        "mechanism_in_words": release.mechanism.describe(),
        "ask_in_words": release.workload,
        "total": float(release.total),
        "total_is_public": release.guarantee.policy.total_is_public,
        "toml": None if publication is None else publication.to_toml(),
        "domain": drawn(release.domain),
    }


def worded(release: Release) -> dict[str, Any]:
    """Its promise and what is not hidden, in plain words: on large domains a search."""
    first, *rest = release.guarantee.describe().split("\n\n")
    return {"promise": first, "limits": rest}


def cells(shelf: Shelf, release: Release, asked: Mapping[str, Any]) -> dict[str, Any]:
    """The values and intervals of every cell of the place, or of one axis, at one cell of each factor that is named
    under `at`, and all else summed over.
    """
    domain = release.domain
    at = _positions(asked.get("at"), domain)
    mapped = places(domain)
    shown = mapped[0] if mapped else _first_axis(domain, asked.get("along"), at)
    names = [domain.axes[i].name for i in shown]
    confidence, estimate = _confidence(asked), str(asked.get("estimate", "plain"))
    table, told = shelf.table(release, (*names, *at), confidence, estimate), {}
    where: Any = (*(slice(None) for _ in names), *at.values())
    figures = {name: np.asarray(getattr(table, name))[where] for name in _FIGURES}
    if asked.get("below") is not None:
        kept = shelf.suppressed(release, (*names, *at), confidence, asked["below"])
        told["suppressed"] = kept.summary
        figures |= {name: np.asarray(getattr(kept, name))[where] for name in ("value", "low", "high")}
    if len(shown) == 1 and mapped:  # elsewhere is the last of hexagons and regions, and lies nowhere
        elsewhere = {name: _finite(part[-1]) for name, part in figures.items()}
        figures = {name: part[:-1] for name, part in figures.items()}
    else:
        elsewhere = None
    seen = figures["value"][np.isfinite(figures["value"])]
    return {
        "along": None if mapped else names[0],
        **told,
        "elsewhere": elsewhere,
        "highest": float(seen.max(initial=0.0)),
        "exact": bool(np.all(figures["stderr"] == 0)),
        **{name: packed(part) for name, part in figures.items()},
    }


def changes(shelf: Shelf, new: Release, old: Release, asked: Mapping[str, Any]) -> dict[str, Any]:
    """The change of every cell of the place from one release to another, and its interval."""
    domain, at = new.domain, _positions(asked.get("at"), new.domain)
    mapped = places(domain)
    if not mapped:
        raise InvalidInput("a map of changes needs a place, and these releases have none. Nothing was computed.")
    names = [domain.axes[i].name for i in mapped[0]]
    table = shelf.changed(new, old, (*names, *at), _confidence(asked))
    where: Any = (*(slice(None) for _ in names), *at.values())
    figures = {name: np.asarray(getattr(table, name))[where] for name in _FIGURES}
    if len(names) == 1:
        figures = {name: part[:-1] for name, part in figures.items()}
    return {name: packed(part) for name, part in figures.items()}


def changed(new: Release, old: Release, asked: Mapping[str, Any]) -> dict[str, Any]:
    """The change in an area that was drawn."""
    at = _positions(asked.get("at"), new.domain)
    question = _area(new.domain, asked)
    found = Difference(new, old).answer(question, by=tuple(at) or None, confidence=_confidence(asked))
    cell = tuple(at.values())
    return {name: _finite(float(np.asarray(getattr(found, name))[cell])) for name in _FIGURES}


def answered(release: Release, asked: Mapping[str, Any]) -> dict[str, Any]:
    """The answer to a rectangle or a polygon that was drawn, or to everything."""
    question, at = _area(release.domain, asked), _positions(asked.get("at"), release.domain)
    estimate = str(asked.get("estimate", "plain"))
    found = release.answer(question, by=tuple(at) or None, confidence=_confidence(asked), estimate=estimate)
    cell = tuple(at.values())
    told = {name: float(np.asarray(getattr(found, name))[cell]) for name in _FIGURES}
    return {
        **{name: _finite(value) for name, value in told.items()},
        "cut_share": float(np.broadcast_to(found.cut_share, np.shape(found.value))[cell]),
        "confidence": found.confidence,
        "exact": told["stderr"] == 0 and told["low"] == told["high"],
        "python": _python(asked, tuple(at), release.domain),
    }


def _python(asked: Mapping[str, Any], by: tuple[str, ...], domain: Domain) -> str:
    """The lines that ask the same; with `by` a row for every cell of these axes."""
    lines, given = ["import sfumato as sf"], []
    if asked.get("polygon") is not None:
        lines.append("from shapely.geometry import Polygon")
        given.append(f"Polygon({[tuple(point) for point in asked['polygon']]!r})")
    elif asked.get("rectangle") is not None and _of_cells(domain):
        lines.append("from shapely.geometry import box")
        given.append(f"box{tuple(asked['rectangle'])!r}")
    elif asked.get("rectangle") is not None:
        given.append(repr(tuple(asked["rectangle"])))
    given += [f"by={list(by)!r}"] if by else []
    lines += ["", f"release = sf.load({str(asked.get('path'))!r})", f"print(release.answer({', '.join(given)}))"]
    return "\n".join(lines) + "\n"


def _area(domain: Domain, asked: Mapping[str, Any]) -> Any:
    rectangle, polygon = asked.get("rectangle"), asked.get("polygon")
    if polygon is not None:
        return _polygon(polygon)
    if rectangle is None:
        return None
    ends = [float(end) for end in _numbers(rectangle, 4)]
    if _of_cells(domain):
        x0, y0, x1, y1 = ends
        return _polygon([[x0, y0], [x1, y0], [x1, y1], [x0, y1]])
    return tuple(ends)


def _of_cells(domain: Domain) -> bool:
    """Whether the place is hexagons or regions, which are asked for by polygons."""
    mapped = places(domain)
    return bool(mapped) and len(mapped[0]) == 1


def _polygon(points: Any) -> Any:
    try:
        from shapely.geometry import Polygon
    except ImportError:
        raise MissingExtra("shapely", "geo", "An answer for a polygon") from None
    if not isinstance(points, list) or not 3 <= len(points) <= 10_000:
        raise InvalidInput("a polygon has from 3 to 10,000 corners. Nothing was answered.")
    made = Polygon([tuple(float(x) for x in _numbers(point, 2)) for point in points])
    if not made.is_valid or made.is_empty:
        raise InvalidInput("the outline crosses itself or holds nothing. Nothing was answered. Draw it once more.")
    return made


def _numbers(given: Any, count: int) -> list[Any]:
    good = isinstance(given, list) and len(given) == count
    if not good or not all(isinstance(one, int | float) and not isinstance(one, bool) for one in given):
        raise InvalidInput(f"an area is told by {count} numbers each. Nothing was answered.")
    return list(given)


def _positions(given: Any, domain: Domain) -> dict[str, int]:
    """The cell of every axis that is named."""
    if given is None:
        return {}
    known = {axis.name: axis.cells for axis in domain.axes}
    if not isinstance(given, Mapping) or not all(
        name in known and type(cell) is int and 0 <= cell < known[name] for name, cell in given.items()
    ):
        raise InvalidInput("`at` names a cell of an axis by its number. Nothing was answered.")
    return {str(name): cell for name, cell in given.items()}


def _first_axis(domain: Domain, wanted: Any, at: Mapping[str, int]) -> tuple[int]:
    """Where there is no place: the axis that is asked for, else the first with an order, else the first."""
    free = [i for i, axis in enumerate(domain.axes) if axis.name not in at]
    named = [i for i in free if domain.axes[i].name == wanted]
    ordered = [i for i in free if domain.axes[i].ordered]
    if not free:
        raise InvalidInput("every axis is held at one cell. Nothing was answered. Leave one of them free.")
    return ((named or ordered or free)[0],)


def _confidence(asked: Mapping[str, Any]) -> float:
    given = asked.get("confidence", 0.95)
    if isinstance(given, bool) or not isinstance(given, int | float):
        raise InvalidInput("confidence is a share, such as 0.95. Nothing was answered.")
    return float(given)


def _finite(value: Any) -> float | None:
    return float(value) if np.isfinite(value) else None
