"""Rules: how one factor of a record may change. A rule knows the name of its factor, and no cells."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

from sfumato.calls import plain_number, quoted
from sfumato.domain.axis import METRES, OWN, SECONDS, axis_name
from sfumato.errors import InvalidInput
from sfumato.exact import shown
from sfumato.relations.lengths import Length
from sfumato.relations.places import plain_places

ROAD = "road"
METRICS = ("euclidean", "manhattan", "chebyshev", "great-circle", "geodesic", ROAD)
ON_EARTH = ("great-circle", "geodesic", ROAD)
QUEEN, ROOK = CONTIGUITIES = ("queen", "rook")
_DIGEST = re.compile("[0-9a-f]{64}")
BOUNDARY = "boundary"
_DECIMAL = re.compile(r"[0-9]+(?:\.[0-9]+)?")


@dataclass(frozen=True, kw_only=True)
class Rule(ABC):
    """How one factor may change; `of` is its name, None while it is left to the domain."""

    kind: ClassVar[str]
    of: str | None

    def __post_init__(self) -> None:
        if self.of is not None:
            axis_name(self.of)

    def named(self, of: str) -> Self:
        """The same rule, about a factor of this name."""
        return replace(self, of=of)

    def along(self, axis: str) -> Rule:
        """What it comes to along one axis of its factor, taken alone."""
        return self.named(axis)

    @property
    def places(self) -> Any:
        """Where a record may also appear or vanish by it; None: nowhere."""
        return None

    @property
    def kept(self) -> str | None:
        """The level of the factor across whose borders it does not lead; None: there is none."""
        return None

    def unkept(self) -> Rule:
        """The same rule without a level whose borders it does not cross."""
        return self

    @property
    def limit(self) -> Length | None:
        """What its moves are shorter than; None: no length says."""
        return None

    @property
    def anywhere(self) -> bool:
        """Whether it leads from every value to every other."""
        return False

    @property
    def on_map(self) -> bool:
        """Whether it speaks of the cells of one map, which has to be known before anybody can say what it hides."""
        return False

    @property
    def map(self) -> str | None:
        """The digest of that map; None while it is left to the domain."""
        return None

    def about_map(self, digest: str) -> Rule:
        """The same rule about this map."""
        del digest
        return self

    @property
    def inside_bounds(self) -> bool:
        """Whether its distances hold for places inside the bounds alone."""
        return False

    @abstractmethod
    def words(self) -> str:
        """What changes, as the end of a sentence: 'its place moves by less than 500 m'."""

    @abstractmethod
    def to_text(self) -> str:
        """The rule as one writes it: 'move("500 m", of="home")'."""

    @abstractmethod
    def spec(self) -> dict[str, Any]:
        """The rule as plain data."""


@dataclass(frozen=True, kw_only=True)
class Move(Rule):
    """A factor with distances moves by less than δ; near `sources` a record may also appear or vanish. With `keep`, the
    name of a level of the factor, it stays within its group of that level: other moves are not hidden at all.
    """

    kind = "move"
    delta: Length
    metric: str
    sources: Any = None
    keep: str | None = None
    along_map: str | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.metric not in METRICS:
            raise InvalidInput(f"metric={self.metric!r} is not one of {', '.join(map(repr, METRICS))}.")
        if (self.metric in ON_EARTH) != (self.delta.unit == METRES):
            raise InvalidInput(
                f"delta={str(self.delta)!r} and metric={self.metric!r} do not fit: "
                + (
                    f"{self.metric} is in metres. Give delta='500 m', or another metric."
                    if self.metric in ON_EARTH
                    else "metres need metric='great-circle' (on a sphere) or 'geodesic' (WGS84)."
                )
            )
        if self.sources is not None and self.delta.unit == SECONDS:
            raise InvalidInput("sources are places, and this move is one in time. Leave them out.")
        object.__setattr__(self, "sources", plain_places(self.sources))
        if self.keep is not None:
            axis_name(self.keep)
            if self.sources is not None:
                raise InvalidInput(
                    f"keep={self.keep!r} and sources exclude each other: where records may vanish nothing is kept."
                )
        if self.along_map is not None:
            checked_digest(self.along_map)
            if self.metric != ROAD:
                raise InvalidInput(f"along=… is for moves by road, and metric={self.metric!r}. Leave one of them out.")

    def along(self, axis: str) -> Move:
        """No metric in axis units is shorter than its longest axis; nothing is known of sources along one alone."""
        metric = self.metric if self.delta.unit == METRES else "euclidean"
        return replace(self, of=axis, metric=metric, sources=None)

    @property
    def places(self) -> Any:
        """Its sources."""
        return self.sources

    @property
    def kept(self) -> str | None:
        """As it was given."""
        return self.keep

    def unkept(self) -> Move:
        """Across any border."""
        return replace(self, keep=None)

    @property
    def limit(self) -> Length:
        """δ."""
        return self.delta

    @property
    def on_map(self) -> bool:
        """By road: along the roads of one map."""
        return self.metric == ROAD

    @property
    def map(self) -> str | None:
        """Of its roads."""
        return self.along_map

    def about_map(self, digest: str) -> Move:
        """Along these roads."""
        return replace(self, along_map=digest)

    @property
    def inside_bounds(self) -> bool:
        """On a sphere: where places outside are moved to the nearest end of each axis, a short way may become long."""
        return self.metric == "great-circle"

    def words(self) -> str:
        """What changes, with the metric where it is not the usual one."""
        name = self.of or "place"
        how = {
            "euclidean": "",
            "geodesic": " (on the ellipsoid)",
            "great-circle": " (great-circle)",
            ROAD: " along the roads",
        }
        said = f"its {name} moves by less than {self.delta}{how.get(self.metric, f' ({self.metric})')}"
        if self.keep is not None:
            return f"{said} within one {self.keep}"
        if self.sources is None:
            return said
        where = "the boundary" if self.sources == BOUNDARY else "a source"
        return f"{said}, or it appears or vanishes within {self.delta} of {where}"

    def to_text(self) -> str:
        """What differs from the usual alone."""
        delta = self.delta.written()
        given = [delta if _DECIMAL.fullmatch(delta) else quoted(delta)]
        given += [] if self.of is None else [f"of={quoted(self.of)}"]
        if self.along_map is not None:
            given.append(f"along={quoted(self.along_map)}")
        elif self.metric != usual_metric(self.delta, None):
            given.append(f"metric={quoted(self.metric)}")
        if self.sources is not None:
            given.append(f"sources={quoted(BOUNDARY) if self.sources == BOUNDARY else _written(self.sources)}")
        given += [] if self.keep is None else [f"keep={quoted(self.keep)}"]
        return f"move({', '.join(given)})"

    def spec(self) -> dict[str, Any]:
        """Exact: δ as p/q."""
        found: dict[str, Any] = {
            "kind": "move",
            "of": self.of,
            "delta": str(self.delta.amount),
            "unit": self.delta.unit,
            "metric": self.metric,
        }
        if self.sources is not None:
            found["sources"] = _listed(self.sources)
        if self.keep is not None:
            found["keep"] = self.keep
        if self.along_map is not None:
            found["map"] = self.along_map
        return found


@dataclass(frozen=True, kw_only=True)
class Change(Rule):
    """A factor becomes any other of its values."""

    kind = "change"

    @property
    def anywhere(self) -> bool:
        """To any other value."""
        return True

    def words(self) -> str:
        """What changes."""
        return f"its {self.of} becomes any other"

    def to_text(self) -> str:
        """The name alone."""
        return f"change({quoted(str(self.of))})"

    def spec(self) -> dict[str, Any]:
        """The name alone."""
        return {"kind": "change", "of": self.of}


@dataclass(frozen=True, kw_only=True)
class Adjacent(Rule):
    """A place becomes a neighbouring cell of one map: "queen" with a border or a corner in common, "rook" a border."""

    kind = "adjacent"
    contiguity: str = QUEEN
    of_map: str | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.contiguity not in CONTIGUITIES:
            raise InvalidInput(
                f"contiguity={shown(self.contiguity)} must be 'queen' (a border or a corner in common) or 'rook' (a "
                "border)."
            )
        if self.of_map is not None:
            checked_digest(self.of_map)

    @property
    def on_map(self) -> bool:
        """Of whose cells it speaks."""
        return True

    @property
    def map(self) -> str | None:
        """As it was given."""
        return self.of_map

    def about_map(self, digest: str) -> Adjacent:
        """Of these cells."""
        return replace(self, of_map=digest)

    def words(self) -> str:
        """What changes, and what makes neighbours."""
        shared = "a border or a corner" if self.contiguity == QUEEN else "a border"
        return f"its {self.of or 'place'} becomes a neighbouring one ({shared} in common)"

    def to_text(self) -> str:
        """What differs from the usual alone."""
        given = [] if self.of is None else [quoted(self.of)]
        given += [] if self.contiguity == QUEEN else [f"contiguity={quoted(self.contiguity)}"]
        given += [] if self.of_map is None else [f"map={quoted(self.of_map)}"]
        return f"adjacent({', '.join(given)})"

    def spec(self) -> dict[str, Any]:
        """The name, what makes neighbours, and the map where it is known."""
        known = {} if self.of_map is None else {"map": self.of_map}
        return {"kind": "adjacent", "of": self.of, "contiguity": self.contiguity, **known}


def checked_digest(value: Any) -> str:
    """The digest of a map, or a refusal."""
    if not isinstance(value, str) or not _DIGEST.fullmatch(value):
        raise InvalidInput(
            f"{shown(value)} is no map: give a domain of places, such as sf.Regions(…), or the digest of one (64 "
            "hexadecimal digits)."
        )
    return value


def _listed(value: Any) -> Any:
    return [_listed(part) for part in value] if isinstance(value, tuple) else value


def _written(value: Any) -> str:
    if isinstance(value, tuple):
        return f"[{', '.join(map(_written, value))}]"
    return plain_number(value)


def usual_metric(delta: Length, metric: str | None) -> str:
    """Metres are measured on the ellipsoid, everything else in a straight line, unless another metric is named."""
    if metric is not None:
        return metric
    return "geodesic" if delta.unit == METRES else "euclidean"


def in_metres(delta: Length, metric: str | None) -> Length:
    """On the globe a plain number is in metres."""
    return Length(delta.amount, METRES) if metric in ON_EARTH and delta.unit == OWN else delta
