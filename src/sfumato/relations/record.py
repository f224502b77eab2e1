"""What an account knows of a record: which of its attributes change, by which rules, and which are declared fixed.

The cells of a release are a view of the record: every factor is an attribute. One that the relation names changes by
its rules. An axis of a place (`x` of `place`, `origin_x` of `origin`) belongs to the place: where that moves by less
than δ in axis units, each axis changes by less than δ, since none of the metrics is shorter than its longest axis. One
that is declared fixed is no function of what changes, and stays. Of any other attribute nothing is known: it may be a
level of the place, and jump with every step across a border. It is refused, unless the relation speaks of whole records
alone (`anything`, `presence`), where it does not matter what an attribute follows from.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from sfumato.domain.axis import axis_name
from sfumato.domain.factor import PLACE
from sfumato.errors import InvalidInput
from sfumato.naming import nearest
from sfumato.relations.relation import Relation, Term, relation_from_spec
from sfumato.relations.rules import BOUNDARY, Rule

_AXIS = r"(?:x|y|z|axis[1-9][0-9]*)"
MOST_FIXED = 1_024  # names: more is nobody's declaration, and a file may not ask for it


@dataclass(frozen=True)
class Record:
    """A relation between records, with every rule about a named attribute, and the attributes declared fixed.

    >>> from sfumato.relations import Record
    >>> print(Record.of(sf.move(0.005), fixed=["mode"]))
    one record changes in this way: its place moves by less than 0.005; declared fixed: 'mode'
    """

    relation: Relation
    fixed: tuple[str, ...] = ()

    @classmethod
    def of(cls, relation: Relation, fixed: Iterable[str] = ()) -> Record:
        """Checked: a move of no named attribute is one of the place."""
        if not isinstance(relation, Relation):
            raise InvalidInput(
                f"hide={type(relation).__name__} is not a relation. Nothing was created. Say what may change, such as "
                "sf.move(0.01), sf.change('mode'), sf.anything() or sf.presence(), joined with | and &."
            )
        if isinstance(fixed, str) or not isinstance(fixed, Iterable):
            raise InvalidInput(f"fixed={fixed!r} must be a list of attributes, such as fixed=['mode'].")
        made = cls(relation.named(PLACE), tuple(sorted({axis_name(name) for name in fixed})))
        made._refuse_contradictions()
        return made

    def _refuse_contradictions(self) -> None:
        names = self.relation.names
        for name in names:
            for place in names:
                if belongs(name, place):
                    raise InvalidInput(
                        f"hide names {place!r} and its axis {name!r}, which change together. Nothing was created. "
                        f"Name {place!r} alone, or build domains without it."
                    )
        for name in self.fixed:
            changed = [other for other in names if name == other or belongs(name, other) or belongs(other, name)]
            if changed:
                raise InvalidInput(
                    f"fixed names {name!r}, and hide changes {changed[0]!r}. Nothing was created. What changes is not "
                    "fixed: leave it out of one of the two."
                )
        if self.fixed and self.whole_records:
            raise InvalidInput(
                f"fixed names {self.fixed[0]!r}, and hide says only that whole records are replaced, appear or vanish: "
                "nothing has to be fixed. Nothing was created. Leave fixed out."
            )
        if any(rule.on_map and rule.map is None for rule in self.relation.rules):
            raise InvalidInput(
                "hide speaks of neighbouring places or of ways along roads, and does not say on which map. Nothing was "
                "created. Name it, as in sf.adjacent(regions) or sf.move('500 m', along=roads)."
            )
        kept = [rule.kept for rule in self.relation.rules if rule.kept is not None]
        if kept:
            raise InvalidInput(
                f"hide keeps {kept[0]!r}, and what lies in which {kept[0]} is known to domains alone. Nothing was "
                "created. Make the account with policy=… of one domain."
            )
        if any(rule.places == BOUNDARY for rule in self.relation.rules):
            raise InvalidInput(
                "hide names sources='boundary', and records have no boundary: that is one of a domain. Nothing was "
                "created. Give the outline as lines of points, sources=[[(x0, y0), (x1, y0), …]]."
            )

    @property
    def whole_records(self) -> bool:
        """Whether no attribute changes by itself: records are replaced by any other, or appear and vanish."""
        return self.relation.changes_all or not self.relation.rules

    @property
    def may_vanish(self) -> bool:
        """Whether a record may appear or vanish at all."""
        return self.relation.hides_presence or any(rule.places is not None for rule in self.relation.rules)

    def changes(self, name: str) -> bool:
        """Whether some change touches an attribute of this name."""
        return self.relation.changes_all or any(self.rules(term, name) for term in self.relation.terms)

    def rules(self, term: Term, name: str) -> tuple[Rule, ...]:
        """By which rules of a term an attribute changes, each about this name; an axis of a place by those of it."""
        return tuple(
            rule if rule.of == name else rule.along(name)
            for rule in term.rules
            if rule.of == name or belongs(name, str(rule.of))
        )

    def require_known(self, names: Iterable[str]) -> None:
        """Refuse an attribute of which the account does not know how it changes."""
        if self.whole_records:
            return
        for name in names:
            if self.changes(name) or self._stays(name):
                continue
            known = [*self.relation.names, *self.fixed]
            raise InvalidInput(
                f"{name!r} is an attribute that this account neither changes nor holds fixed: it hides that "
                f"{self}.{nearest(name, known)} Nothing was drawn or recorded. If {name!r} is no function of what "
                f"changes, declare it when the account is made, fixed=[{name!r}]; if it follows from the place (a "
                f"state, a district) or may change, hide it, as in … | sf.change({name!r}); or leave it out of the "
                "release."
            )

    def _stays(self, name: str) -> bool:
        return any(name == other or belongs(name, other) for other in self.fixed)

    def __str__(self) -> str:
        said = self.relation.describe()
        return f"{said}; declared fixed: {', '.join(map(repr, self.fixed))}" if self.fixed else said

    def spec(self) -> dict[str, Any]:
        """Plain data that JSON can hold; `record_from_spec` reads it back."""
        return {"hide": self.relation.spec(), "fixed": list(self.fixed)}


def record_from_spec(spec: object) -> Record:
    """What `Record.spec()` described."""
    if not isinstance(spec, dict) or set(spec) != {"hide", "fixed"} or not isinstance(spec["fixed"], list):
        raise InvalidInput("The description of what an account hides is damaged, or from a newer version.")
    if len(spec["fixed"]) > MOST_FIXED or not all(isinstance(name, str) for name in spec["fixed"]):
        raise InvalidInput("The description of what an account hides is damaged, or from a newer version.")
    return Record.of(relation_from_spec(spec["hide"]), spec["fixed"])


def belongs(axis: str, place: str) -> bool:
    """Whether a name is that of an axis of a place: x, y, … of `place`, origin_x, origin_y, … of `origin`."""
    before = "" if place == PLACE else re.escape(f"{place}_")
    return axis != place and re.fullmatch(before + _AXIS, axis) is not None
