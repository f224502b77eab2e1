"""A policy for sums of a value, or for distinct people: the relation seen on records, and its steps on cells.

**Sums.** What a release of sums sees of a record is its cell and the summed value, in whole steps; or nothing, where it
is not there. The relation is a policy on that view (`on_records`): cells × values, with all that it says of the value.
Sums are published by the mechanisms of counts, which keep a promise for one unit: a 1 that moves from a cell to a
neighbouring one, or appears or vanishes. Those units are steps of a graph on the cells (`on_cells`):

- a record of value v that moves along an edge of the relation takes |v| steps along that edge;
- one that appears or vanishes takes |v| steps to ⊥;
- one whose value goes from v to v′ and that stays takes |v - v′| steps to ⊥;
- one that moves while its value changes takes max(|v|, |v′|) steps where both have one sign: as many units as the two
  have in common move, the rest come or go; else |v - v′| steps to ⊥. It may also stay.

Where some change touches the value, every cell is joined to ⊥. Where values lie around zero, a move joins cells to ⊥
alone, and a record that moves takes |v| + |v′| steps, at most 2M (`STAR` says from where on). What a file keeps rests
on these rules, which therefore stay. Let K be the most steps that one change takes (`units`): with M = max(|lo|, |hi|)
and D the most steps by which a rule lets the value change, it is M for moves and presence, D for a change of the value
alone, max(M, D) for both at once, and max(M, hi - lo) for anything; by ⊥ alone 2M for moves, for both at once and for
anything. A mechanism that is
ε/K-private for one step is ε-private for one change, whatever it does: the chain of whole-numbered sums from one data
set to its neighbour has K links at most. `tests/policies/test_valued.py` compares with brute force.

**What is exact.** Where no change touches the value and no record may vanish, the graph on cells has no ⊥: the sum is
then published exactly, and has to be named, `public=["fare"]`. Everywhere else ⊥ joins all cells, and nothing is.

**Distinct people.** One record that changes, comes or goes moves at most one of its person's cells, to anywhere: which
cells of a person are chosen may change across the whole map. So distinct people are published under presence and
replacement of cells, whatever the relation. Nothing is exact.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from sfumato.domain import Domain, Line
from sfumato.errors import InvalidInput
from sfumato.linear import Operator
from sfumato.naming import nearest
from sfumato.policies.absent import ABSENT
from sfumato.policies.policy import Policy
from sfumato.policies.relation_policy import policy as of_records
from sfumato.policies.relation_policy import seen_finer, with_default
from sfumato.policies.rule_moves import moves_of
from sfumato.relations import ANYTHING, PRESENCE, Relation, Term, anything, presence
from sfumato.values import Amounts, People, Values

STAR = Fraction(5, 4)
"""Up to this many times the width of the bounds twice the largest value may be, for ways by ⊥ alone: single cells then
need less noise, by up to a half, and sums of many of them a fourth more at most."""


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Valued(Policy):
    """A policy for what is summed or counted in the place of records. Distances are those between records; `moves` and
    `absent` are those of units on the cells.
    """

    counted: Values
    records: Policy
    cells: Policy
    most: int

    def __repr__(self) -> str:
        public = f", public={list(self.unchanged)!r}" if self.unchanged else ""
        return f"policy({self.domain!r}, hide='{self.relation}'{public}, values={self.counted.to_text()})"

    @property
    def values(self) -> Values:
        """What is summed or counted."""
        return self.counted

    @property
    def on_records(self) -> Policy:
        """Which changes of a record's cell and value are hidden."""
        return self.records

    @property
    def on_cells(self) -> Policy:
        """How one unit moves."""
        return self.cells

    @property
    def units(self) -> int:
        """K: how many steps of a unit one change of a record takes at most."""
        return self.most

    @property
    def _parts(self) -> bool:
        return self.arguments.get("publish_component_totals") is True

    def around(self, values: Amounts) -> Policy:
        """The same for sums of the same value from another point on."""
        if self.relation is None:
            return super().around(values)
        return valued(self.domain, self.relation, self.unchanged, self._parts, values)

    def of_numbers(self) -> Policy:
        """The same for numbers of the records whose value is summed: changes of the value are none."""
        names = [factor.name for factor in self.domain.factors]
        seen = None if self.relation is None else self.relation.about(names)
        if seen is None:
            raise InvalidInput(
                "hide changes nothing but the value: the numbers of records are public, and need no noise. Nothing was "
                "drawn or recorded. Publish the sums with sf.plan(…), and divide by the numbers; or hide more."
            )
        public = [name for name in self.unchanged if name in names]
        return of_records(self.domain, hide=seen, public=public, publish_component_totals=self._parts)

    @property
    def covers_persons(self) -> bool:
        """Distinct people: yes, since every cell may be replaced by any other, and appear and vanish."""
        return isinstance(self.counted, People)

    @property
    def allows_dropping(self) -> bool:
        """Whether a record may leave the domain by a change that is hidden."""
        return self.records.allows_dropping

    def sensitivity(self, strategy: Operator | Any) -> int | float:
        """How far one change of a record moves strategy·x in L1 at most, in steps: K times that of one unit."""
        return self.units * self.cells.sensitivity(strategy)

    def distance(self, u: Any, v: Any) -> float:
        """The length of the shortest path between two cells, for a record that keeps its value."""
        values = self.records.domain.size // self.domain.size
        ends = [self._vertex(end, name) for end, name in ((u, "u"), (v, "v"))]
        return self.records.distance(*(ABSENT if end == -1 else end * values for end in ends))

    @property
    def diameter(self) -> float:
        """The largest distance between two records, cells and values together."""
        return self.records.diameter

    @property
    def eccentricity(self) -> float:
        """The largest distance from a record to ⊥."""
        return self.records.eccentricity


def of_people(domain: Domain, relation: Relation, counted: People, public: Iterable[str]) -> Valued:
    """Distinct people: presence and replacement of cells, whatever the relation."""
    listed = tuple(public)
    if listed:
        raise InvalidInput(
            f"public names {listed[0]!r}, and nothing is exact of distinct people: which cells a person is counted in "
            "may change across the whole map. Nothing was built. Leave public out."
        )
    of_records(domain, hide=_unkept(relation) | presence())  # refuses what it names and is not there
    both = presence() | anything()
    cells = of_records(domain, hide=both)
    return Valued(
        domain=domain,
        moves=cells.moves,
        joined=cells.joined,
        name="values",
        arguments=_arguments(both, (), False, counted),
        words=(
            "one record changes, comes or goes in any way, and with it at most one of the cells that its person is "
            f"counted in changes, appears or vanishes, wherever that lies; published are {counted.describe()}"
        ),
        relation=both,
        counted=counted,
        records=cells,
        cells=cells,
        most=1,
    )


def _arguments(relation: Relation, public: Iterable[str], parts: bool, values: Values) -> dict[str, Any]:
    return {
        "hide": relation.spec(),
        "public": list(public),
        "publish_component_totals": parts,
        "values": values.spec(),
    }


def of_amounts(domain: Domain, relation: Relation, counted: Amounts, public: Iterable[str], parts: bool) -> Valued:
    """Sums of a value. `relation` has every rule about a factor of the domain, or about the value."""
    name, listed = counted.name, tuple(sorted(public))
    on_value = [rule for rule in relation.rules if rule.of == name]
    _refuse_places_of_value(on_value, name)
    inner = relation.about([factor.name for factor in domain.factors])
    changes = bool(on_value) or relation.changes_all
    star = changes and counted.least < 0 < counted.most and 2 * counted.largest <= STAR * counted.steps
    if changes:
        cells = of_records(domain, hide=presence() if inner is None or star else _unkept(inner) | presence())
    elif inner is None:  # it names neither the value nor a factor: the refusal says so
        raise _unknown(relation, domain, name)
    else:
        kept = [one for one in listed if one != name]
        cells = of_records(domain, hide=inner, public=kept, publish_component_totals=parts)
        if name not in listed and (cells.total_is_public or (not cells.hides_presence and cells.components[1].any())):
            raise InvalidInput(
                f"hide changes nothing of {name!r}: the exact sum of it would be published, since nothing hides it. "
                f"Nothing was built. Name it, as in sf.policy(…, public={[*listed, name]!r}, values=…), or hide it "
                f"too, as in sf.policy(…, hide=… | sf.change({name!r}), values=…)."
            )
    records = of_records(domain * _two(name), hide=relation, public=listed, publish_component_totals=parts)
    if any(rule.limit is not None for rule in on_value):  # how many steps of the lattice a change takes matters
        records = seen_finer(records, domain * counted.line)
    return Valued(
        domain=domain,
        moves=cells.moves,
        joined=cells.joined,
        name="values",
        arguments=_arguments(relation, listed, parts, counted),
        words=_words(relation, counted, cells),
        relation=relation,
        public=cells.public,
        counted=counted,
        records=records,
        cells=cells,
        most=max(most_units(term, counted, star=star) for term in relation.terms),
    )


def most_units(term: Term, counted: Amounts, *, star: bool = False) -> int:
    """K: how many steps of one unit a change by a term takes at most; with `star`, by ⊥ alone. The argument is above.

    >>> from sfumato.relations import Relation
    >>> fares = sf.amounts("fare", clip=(-50, 100), step=1)
    >>> [most_units(hide.terms[0], fares) for hide in (sf.move(1), sf.presence(), sf.change("fare"), sf.anything())]
    [100, 100, 150, 150]
    """
    if term.kind == PRESENCE:
        return counted.largest
    if term.kind == ANYTHING:
        return 2 * counted.largest if star else max(counted.largest, counted.steps)
    on_value = [rule for rule in term.rules if rule.of == counted.name]
    by = max((int(moves_of(rule, counted.line).sizes((counted.steps + 1,)).max()) for rule in on_value), default=0)
    if len(on_value) == len(term.rules):
        return by
    return 2 * counted.largest if star else max(counted.largest, by)


def policy(
    domain: Domain,
    *,
    hide: Relation,
    public: Iterable[str] = (),
    publish_component_totals: bool = False,
    values: Values | None = None,
) -> Policy:
    """The policy that a relation is on the cells of a domain.

    What no change of the relation touches would be published exactly: the number of records for every value of it,
    jointly. Such factors must be named in `public`, and stand first in the guarantee. A factor that falls into parts
    which no move joins (islands) publishes the totals of its parts: `publish_component_totals=True` asks for that.

    With `values`, sums of a value or distinct people take the place of records. The relation may then name the value as
    it names a factor; where nothing changes it the exact sum would be published, and it has to be named in `public`.

    >>> table = sf.Categories(["north", "south"], name="region") * sf.Categories(["ill", "well"], name="case")
    >>> sf.policy(table, hide=sf.change("case"), public=["region"]).edges().tolist()
    [[0, 1], [2, 3]]
    >>> fares = sf.amounts("fare", clip=(0, 100), step=1)
    >>> line = sf.Line(0, 4, cells=4, name="place")
    >>> sf.policy(line, hide=sf.move(1) | sf.change("fare"), values=fares).total_is_public
    False
    """
    if values is None:
        return of_records(domain, hide=hide, public=public, publish_component_totals=publish_component_totals)
    checked_values(values)
    if not isinstance(domain, Domain) or not isinstance(hide, Relation) or isinstance(public, str):
        return of_records(domain, hide=hide, public=public)  # which refuses it
    names = [factor.name for factor in domain.factors]
    if isinstance(values, Amounts) and values.name in (*names, *domain.names):
        raise InvalidInput(
            f"values sums {values.name!r}, and the domain has an axis of that name: one record would have two values "
            "of it. Nothing was built. Give the axis another name, and say with columns={…} which column feeds it."
        )
    return valued(domain, with_default(hide, names), public, bool(publish_component_totals), values)


def valued(domain: Domain, relation: Relation, public: Iterable[str], parts: bool, values: Values) -> Valued:
    """The same with a relation whose rules have names."""
    if isinstance(values, People):
        return of_people(domain, relation, values, public)
    return of_amounts(domain, relation, values, public, parts)


def with_values(given: Policy, values: Values | None) -> Policy:
    """A policy for what is summed or counted; itself where that is records, or what it was made for."""
    if values is None or given.values == values:
        return given
    checked_values(values)
    if given.values is not None:
        raise InvalidInput(
            f"values={values.to_text()} and the policy was made for {given.values.to_text()}. Nothing was drawn or "
            "recorded. Leave values out here, or make another policy."
        )
    if given.relation is None:
        raise InvalidInput(
            f"policy={given.name!r} speaks of cells, and values need a relation between records: nobody knows what "
            "becomes of a value when its record changes its cell. Nothing was drawn or recorded. Use "
            "sf.policy(domain, hide=…, values=…)."
        )
    parts = given.arguments.get("publish_component_totals") is True
    public = given.unchanged if isinstance(values, Amounts) else ()
    return policy(given.domain, hide=given.relation, public=public, publish_component_totals=parts, values=values)


def checked_values(values: object) -> None:
    """Refuse what are no values."""
    if not isinstance(values, (Amounts, People)):
        raise InvalidInput(
            f"values={type(values).__name__} are no values. Nothing was drawn or recorded. Give "
            "sf.amounts('fare', clip=(0, 100), step=0.01) or sf.people('user', cells=3), or leave them out to count "
            "records."
        )


def _two(name: str) -> Domain:
    """A factor of two values: whatever is asked of one that changes to any other, or stays, is told by two."""
    return Line(0, 2, cells=2, name=name)


def _unkept(relation: Relation) -> Relation:
    """With moves that may leave a group of a level: more edges, and the way there through ⊥ is one anyhow."""
    return Relation(tuple(term.with_rules(rule.unkept() for rule in term.rules) for term in relation.terms))


def _unknown(relation: Relation, domain: Domain, name: str) -> InvalidInput:
    """A relation that names nothing that is there."""
    known = [*(factor.name for factor in domain.factors), name]
    wrong = next((one for one in relation.names if one not in known), "")
    return InvalidInput(
        f"hide names {wrong!r}, which is neither a factor of this domain nor the value: they are "
        f"{', '.join(map(repr, known))}.{nearest(wrong, known)} Nothing was built."
    )


def _refuse_places_of_value(rules: list[Any], name: str) -> None:
    for rule in rules:
        if rule.places is not None or rule.kept is not None:
            raise InvalidInput(
                f"hide lets {name!r} change with sources or keep, which are for places. Nothing was built. Leave them "
                f"out, as in sf.move(5, of={name!r})."
            )


def _words(relation: Relation, counted: Amounts, cells: Policy) -> str:
    """What is hidden, what is summed, and what of it is exact."""
    said = f"{relation.describe()}; published are {counted.describe()}"
    if cells.public:
        return f"the exact {counted.what} for every {' and '.join(cells.public)} is public, jointly; {said}"
    return f"{said}; the exact {counted.what} is public" if cells.total_is_public else said
