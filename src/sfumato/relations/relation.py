"""Relations: which changes to one person's record must stay hidden, said of records before there are any cells.

A relation is a union of terms. A term is one kind of change: presence (the record appears or vanishes), anything (all
of it may become anything else), or rules for some factors, each of which changes by its rule *or stays*, all at once.
What no rule names stays. Seen through a domain a relation is a policy: a graph over the cells.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from sfumato.domain.axis import METRES, OWN, SECONDS
from sfumato.errors import InvalidInput
from sfumato.exact import Number, shown, written
from sfumato.relations.lengths import Length
from sfumato.relations.maps import map_of
from sfumato.relations.rules import (
    METRICS,
    QUEEN,
    ROAD,
    Adjacent,
    Change,
    Move,
    Rule,
    checked_digest,
    in_metres,
    usual_metric,
)

if TYPE_CHECKING:
    from sfumato.domain import Domain
    from sfumato.policies import Policy

PRESENCE = "presence"
ANYTHING = "anything"
CHANGES = "changes"
MOST_TERMS = 64  # and rules of a term: more is nobody's relation, and a file may not ask for it


@dataclass(frozen=True)
class Term:
    """One kind of change: presence, anything, or rules for factors that change at once, at most one a factor."""

    kind: str
    rules: tuple[Rule, ...] = ()

    @property
    def names(self) -> frozenset[str | None]:
        """The factors that may change by its rules."""
        return frozenset(rule.of for rule in self.rules)

    def words(self) -> str:
        """The change in words."""
        if self.kind == PRESENCE:
            return "it appears or vanishes"
        if self.kind == ANYTHING:
            return "it is replaced by any other record"
        said = " and ".join(rule.words() for rule in self.rules)
        return f"{said} (at once, or one of them alone)" if len(self.rules) > 1 else said

    def to_text(self) -> str:
        """The term as one writes it."""
        return " & ".join(rule.to_text() for rule in self.rules) if self.kind == CHANGES else f"{self.kind}()"

    def spec(self) -> dict[str, Any]:
        """The term as plain data."""
        return {"rules": [rule.spec() for rule in self.rules]} if self.kind == CHANGES else {"kind": self.kind}

    def with_rules(self, rules: Iterable[Rule]) -> Term:
        """The same kind of change by other rules, in the order of their factors."""
        return Term(self.kind, tuple(sorted(rules, key=lambda rule: (rule.of or "", rule.kind))))


@dataclass(frozen=True)
class Relation:
    """Which changes to one person's record must stay hidden: one of its terms at a time. Joined with | and &.

    >>> hide = sf.move(0.005) | sf.change("mode")
    >>> print(hide)
    one record changes in one of these ways: its place moves by less than 0.005; its mode becomes any other
    """

    terms: tuple[Term, ...]

    def __post_init__(self) -> None:
        unique = {json.dumps(term.spec(), sort_keys=True): term for term in self.terms}
        object.__setattr__(self, "terms", tuple(unique[key] for key in sorted(unique)))

    def __or__(self, other: object) -> Relation:
        """Either of them: one record changes by one of the two."""
        return Relation(self.terms + other.terms) if isinstance(other, Relation) else NotImplemented

    def __and__(self, other: object) -> Relation:
        """Both at once, each by its rule or staying."""
        if not isinstance(other, Relation):
            return NotImplemented
        return Relation(tuple(_together(a, b) for a in self.terms for b in other.terms))

    @property
    def hides_presence(self) -> bool:
        """Whether a record may appear or vanish anywhere."""
        return any(term.kind == PRESENCE for term in self.terms)

    @property
    def changes_all(self) -> bool:
        """Whether a record may become any other one."""
        return any(term.kind == ANYTHING for term in self.terms)

    @property
    def rules(self) -> tuple[Rule, ...]:
        """All rules of all terms."""
        return tuple(rule for term in self.terms for rule in term.rules)

    @property
    def names(self) -> tuple[str, ...]:
        """The factors that its rules name."""
        return tuple(sorted({rule.of for rule in self.rules if rule.of is not None}))

    def named(self, default: str) -> Relation:
        """The same with every rule that names no factor about this one."""
        return Relation(
            tuple(
                term.with_rules(rule if rule.of is not None else rule.named(default) for rule in term.rules)
                for term in self.terms
            )
        )

    def on_maps(self, digests: Mapping[str, str]) -> Relation:
        """The same with every rule that speaks of a map, and leaves open which, about that of its factor."""

        def about(rule: Rule) -> Rule:
            open_one = rule.on_map and rule.map is None and rule.of in digests
            return rule.about_map(digests[str(rule.of)]) if open_one else rule

        return Relation(tuple(term.with_rules(map(about, term.rules)) for term in self.terms))

    def about(self, names: Collection[str]) -> Relation | None:
        """What it says of records that show these factors alone: changes of others are none. None: nothing is left."""
        kept = []
        for term in self.terms:
            rules = [rule for rule in term.rules if rule.of in names]
            if term.kind != CHANGES or rules:
                kept.append(term.with_rules(rules))
        return Relation(tuple(kept)) if kept else None

    def on(self, domain: Domain) -> Policy:
        """The policy that this relation is on the cells of a domain.

        >>> sf.anything().on(sf.Line(0, 24, cells=24)) == sf.bounded(sf.Line(0, 24, cells=24))
        True
        """
        from sfumato.policies.relation_policy import policy  # the door from records to cells

        return policy(domain, hide=self)

    def describe(self) -> str:
        """The relation in plain words.

        >>> sf.presence().describe()
        'one record changes in this way: it appears or vanishes'
        """
        ways = "in this way" if len(self.terms) == 1 else "in one of these ways"
        return f"one record changes {ways}: " + "; ".join(term.words() for term in self.terms)

    def __str__(self) -> str:
        return self.describe()

    def to_text(self) -> str:
        """The relation in one line as one writes it, for files and command lines; `sf.relation_from_text` reads it.

        >>> (sf.presence() | sf.move("0.5 km") & sf.move("1 h", of="t")).to_text()
        'presence() | (move("500 m") & move("1 h", of="t"))'
        """
        alone = len(self.terms) == 1
        return " | ".join(
            term.to_text() if alone or len(term.rules) < 2 else f"({term.to_text()})" for term in self.terms
        )

    def spec(self) -> dict[str, Any]:
        """The relation as plain data that JSON can hold; `relation_from_spec` reads it back."""
        return {"terms": [term.spec() for term in self.terms]}

    @cached_property
    def fingerprint(self) -> str:
        """A digest of the description: equal for equal relations, on every machine."""
        canonical = json.dumps(self.spec(), sort_keys=True, separators=(",", ":"), allow_nan=False)
        return hashlib.sha256(canonical.encode()).hexdigest()


def move(
    delta: Number | timedelta | np.timedelta64,
    *,
    of: str | None = None,
    metric: str | None = None,
    sources: Any = None,
    keep: str | None = None,
    along: Domain | str | None = None,
) -> Relation:
    """A factor moves by less than δ: a place by "500 m" or "0.5 km", a time by "30 min" or "1 h", anything with
    distances by a number in its axes' own units.

    Without `of` it is the factor named `place`, or the only one of the domain. `metric` is "euclidean" (the usual one),
    "manhattan" or "chebyshev" in axis units; in metres "geodesic" on the WGS84 ellipsoid (the usual one),
    "great-circle" on a sphere, for places inside the bounds, or "road" on a domain of roads: along those that `along`
    names (`sf.move("500 m", along=roads)`; left out, those of the domain that it is seen through). Near `sources`
    (points, lines, geometries, or "boundary") a record may also appear or vanish.

    With `keep`, a level of the place such as "state", moves stay within one state. That is another and weaker promise,
    for totals that are kept by law: a move from one state to another is *not hidden at all*, and the exact number of
    records in every state is published.

    >>> (sf.move(0.5) & sf.move("30 min", of="t")).names
    ('t',)
    """
    roads = None
    if along is not None:
        metric, (name, roads) = ROAD if metric is None else metric, map_of(along, "along", roads=True)
        of = name if of is None else of
    length = in_metres(Length.of(delta), metric)
    rule = Move(of=of, delta=length, metric=usual_metric(length, metric), sources=sources, keep=keep, along_map=roads)
    return Relation((Term(CHANGES, (rule,)),))


def adjacent(
    regions: Domain | str | None = None,
    *,
    contiguity: str = QUEEN,
    map: Domain | str | None = None,
) -> Relation:
    """A place becomes a neighbouring one: of these regions, hexagons or segments of roads.

    With `contiguity="queen"` neighbours have a border or a corner in common, with "rook" a border. Elsewhere is the
    neighbour of whatever has a border with nothing beyond it. Who is beside whom is a fact about one map: the relation
    names it, and on any other one it means nothing. Instead of a domain the name of a place will do where the map is
    that of the domain which the relation is seen through, as in `sf.policy(place * hours, hide=sf.adjacent("place"))`.

    >>> import geopandas, shapely
    >>> boxes = [shapely.box(x, y, x + 1, y + 1) for x in (0, 1) for y in (0, 1)]
    >>> four = geopandas.GeoDataFrame({"id": ["sw", "nw", "se", "ne"]}, geometry=boxes, crs="EPSG:4326")
    >>> regions = sf.Regions(four, id="id")
    >>> sf.policy(regions, hide=sf.adjacent(regions, contiguity="rook")).edges().tolist()
    [[0, 1], [0, 2], [0, 4], [1, 3], [1, 4], [2, 3], [2, 4], [3, 4]]
    """
    digest, of = None, regions if isinstance(regions, str) else None
    if map is not None:
        name, digest = map_of(map, "map")
        of = name if of is None else of
    if regions is not None and not isinstance(regions, str):
        of, digest = map_of(regions, "regions")
    return Relation((Term(CHANGES, (Adjacent(of=of, contiguity=contiguity, of_map=digest),)),))


def change(name: str) -> Relation:
    """A factor becomes any other of its values: a diagnosis, a mode, a whole place.

    >>> sf.change("mode").on(sf.Categories(["bus", "bike"], name="mode")).edges().tolist()
    [[0, 1]]
    """
    if not isinstance(name, str):
        raise InvalidInput(f"name={shown(name)} is not the name of a factor. Give one, such as sf.change('mode').")
    return Relation((Term(CHANGES, (Change(of=name),)),))


def anything() -> Relation:
    """Replace-one: a record becomes any other one, in all that it says.

    >>> sf.anything().describe()
    'one record changes in this way: it is replaced by any other record'
    """
    return Relation((Term(ANYTHING),))


def presence() -> Relation:
    """Add/remove: a record is there or not. `sf.presence() | sf.anything()` is the standard neighbourhood.

    >>> sf.presence().on(sf.Line(0, 24, cells=24)) == sf.unbounded(sf.Line(0, 24, cells=24))
    True
    """
    return Relation((Term(PRESENCE),))


def relation_from_spec(spec: object) -> Relation:
    """The relation that `Relation.spec()` described. The kinds are a closed list; anything else is refused."""
    try:
        terms = spec["terms"]  # type: ignore[index]
        if not isinstance(terms, list) or not 0 < len(terms) <= MOST_TERMS:
            raise TypeError("terms")
        return Relation(tuple(map(_term, terms)))
    except (LookupError, TypeError, ValueError) as error:
        raise InvalidInput("The description of the relation is damaged, or from a newer version.") from error


def _term(spec: Mapping[str, Any]) -> Term:
    if "rules" not in spec:
        if spec["kind"] not in (PRESENCE, ANYTHING):
            raise ValueError("kind")
        return Term(spec["kind"])
    rules = spec["rules"]
    if not isinstance(rules, list) or not 0 < len(rules) <= MOST_TERMS:
        raise TypeError("rules")
    made = Term(CHANGES).with_rules(map(_rule, rules))
    if len(made.names) < len(made.rules):
        raise ValueError("rules")
    return made


def _rule(spec: Mapping[str, Any]) -> Rule:
    if spec["kind"] == "change":
        return Change(of=_name(spec["of"]))
    of = None if spec["of"] is None else _name(spec["of"])
    digest = None if spec.get("map") is None else checked_digest(spec["map"])
    if spec["kind"] == "adjacent":
        return Adjacent(of=of, contiguity=spec["contiguity"], of_map=digest)
    if spec["kind"] != "move" or spec["unit"] not in (METRES, SECONDS, OWN) or spec["metric"] not in METRICS:
        raise ValueError("kind")
    delta = Length(written(spec["delta"], "delta"), spec["unit"])
    if delta.amount <= 0:
        raise ValueError("delta")
    keep = None if spec.get("keep") is None else _name(spec["keep"])
    return Move(of=of, delta=delta, metric=spec["metric"], sources=spec.get("sources"), keep=keep, along_map=digest)


def _name(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError("of")
    return value


def _together(first: Term, second: Term) -> Term:
    """Both changes at once."""
    kinds = {first.kind, second.kind}
    if kinds == {ANYTHING} or kinds == {ANYTHING, CHANGES}:
        return Term(ANYTHING)
    if PRESENCE in kinds:
        raise InvalidInput(
            "presence at once with another change means nothing: a record that appears has no place to move from. Join "
            "them with |, one of them at a time."
        )
    twice = first.names & second.names
    if twice:
        name = next(iter(twice)) or "place"
        raise InvalidInput(
            f"{name!r} would change by two rules at once. Name two factors, or join the two with |, one at a time."
        )
    if any(rule.places is not None for rule in first.rules + second.rules):
        raise InvalidInput(
            "a move with sources at once with another change: say the sources in a term of its own, as in "
            "(a & b) | sf.move(δ, sources=…)."
        )
    return Term(CHANGES).with_rules(first.rules + second.rules)
