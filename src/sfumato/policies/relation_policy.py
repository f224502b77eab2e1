"""A relation seen through a domain: which moves it makes on every factor, and what it leaves public.

A factor that a rule names changes by the moves that the rule makes on the factor's own cells. What no term changes is
published exactly: the number of records in every component without ⊥, that is the joint table of those factors (and of
the parts that a factor falls into by itself). Nobody gets that unasked: it is refused unless it is named.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial, reduce
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from sfumato.domain import Domain
from sfumato.errors import InvalidInput, TooLarge
from sfumato.naming import nearest
from sfumato.policies.builders import bounded, unbounded
from sfumato.policies.moves import Complete, Moves, NoMoves
from sfumato.policies.near_places import KeptPlaces
from sfumato.policies.policy import Policy
from sfumato.policies.product_moves import Leg, Origin, ProductMoves
from sfumato.policies.rule_moves import moves_of, numbers_of, short_form, source_mask, way_out
from sfumato.relations import BOUNDARY, CHANGES, Relation, Rule, map_digest

Masks = NDArray[np.bool_]

MOST_NUMBERS = 1 << 26
"""Numbers that tell the moves of all rules apart: two of the largest grids, or a year in seconds."""


def policy(
    domain: Domain, *, hide: Relation, public: Iterable[str] = (), publish_component_totals: bool = False
) -> Policy:
    """The policy that a relation is on the cells of a domain.

    What no change of the relation touches would be published exactly: the number of records for every value of it,
    jointly. Such factors must be named in `public`, and stand first in the guarantee. A factor that falls into parts
    which no move joins (islands) publishes the totals of its parts: `publish_component_totals=True` asks for that.

    >>> table = sf.Categories(["north", "south"], name="region") * sf.Categories(["ill", "well"], name="case")
    >>> sf.policy(table, hide=sf.change("case"), public=["region"]).edges().tolist()
    [[0, 1], [2, 3]]
    """
    if not isinstance(domain, Domain):
        raise InvalidInput(f"domain={type(domain).__name__} is not a domain. Build one, such as sf.Grid(…).")
    if not isinstance(hide, Relation):
        raise InvalidInput(
            f"hide={type(hide).__name__} is not a relation. Say what may change, such as sf.move(0.01), "
            "sf.change('mode'), sf.anything() or sf.presence(), joined with | and &."
        )
    seen = placed(hide, domain)
    named = _named(domain, public)
    short = _short(seen, domain)
    if short is not None:
        if named:
            raise _not_public(named[0], seen)
        return short
    return _built(domain, seen, named, bool(publish_component_totals))


def placed(relation: Relation, domain: Domain) -> Relation:
    """With every rule about a factor of the domain."""
    names = [factor.name for factor in domain.factors]
    relation = with_default(relation, names)
    for name in relation.names:
        if name in names:
            continue
        if name in domain.names:
            whole = domain.factor(name).name
            raise InvalidInput(
                f"hide names {name!r}, an axis of {whole!r}, which moves as a whole. Say of={whole!r}, or build the "
                "domain with that axis as a factor of its own."
            )
        raise InvalidInput(
            f"hide names {name!r}, which is no factor of this domain: they are {', '.join(map(repr, names))}."
            f"{nearest(name, names)} Nothing was built."
        )
    digests = {name: map_digest(domain.part(name)) for name in relation.names}
    return relation.on_maps({name: digest for name, digest in digests.items() if digest is not None})


def with_default(relation: Relation, names: list[str]) -> Relation:
    """With every rule about a named factor: without a name it is the one called 'place', or the only one."""
    if all(rule.of is not None for rule in relation.rules):
        return relation
    default = "place" if "place" in names else names[0] if len(names) == 1 else None
    if default is None:
        raise InvalidInput(
            f"hide has a move of no named factor, and the domain has several, none of them called 'place': "
            f"{', '.join(map(repr, names))}. Say which one moves, as in sf.move(…, of={names[0]!r})."
        )
    return relation.named(default)


def _named(domain: Domain, public: Iterable[str]) -> tuple[str, ...]:
    if isinstance(public, str) or not isinstance(public, Iterable):
        raise InvalidInput(f"public={public!r} must be a list of factors, such as public=['region'].")
    listed = tuple(public)
    names = [factor.name for factor in domain.factors]
    for name in listed:
        if name not in names:
            raise InvalidInput(
                f"public names {name!r}, which is no factor of this domain: they are {', '.join(map(repr, names))}."
                f"{nearest(str(name), names)} Nothing was built."
            )
    return tuple(name for name in names if name in listed)


def seen_finer(like: Policy, domain: Domain) -> Policy:
    """What the relation of a policy is on a domain with the same factors, some of them in more cells: what was asked of
    the coarser one is not asked again.
    """
    relation = placed(like.relation, domain) if like.relation is not None else None
    if relation is None or not relation.rules:
        raise InvalidInput("only a policy by rules is seen on finer cells.")
    legs = _legs(relation, domain)
    return replace(like, domain=domain, **_drawn(relation, domain, legs))


def _short(relation: Relation, domain: Domain) -> Policy | None:
    """The policies that have names of their own, with the fingerprints that they always had."""
    kinds = {term.kind for term in relation.terms}
    if kinds == {"anything"}:
        return bounded(domain)
    if kinds == {"presence"}:
        return unbounded(domain)
    if len(relation.rules) != 1 or len(relation.terms) != 1 or len(domain.factors) != 1:
        return None
    return short_form(relation.rules[0], domain)


def _built(domain: Domain, relation: Relation, public: tuple[str, ...], parts: bool) -> Policy:
    legs = _legs(relation, domain)
    kept = _kept(relation, domain)
    if kept and not parts:  # what lies in every group is said; a group in parts that no move joins says more
        others = [legs[id(rule)] for rule in relation.rules if rule not in kept]
        parts = all(cast(KeptPlaces, legs[id(rule)].moves).groups_are_whole for rule in kept)
        parts = parts and not any(leg.moves.in_parts(leg.shape(domain.shape)) for leg in others)
    drawn = _drawn(relation, domain, legs)
    joined = drawn["joined"]
    left = _left(relation, domain)
    exact = () if relation.hides_presence else tuple(name for name in left if domain.part(name).size > 1)
    made = Policy(
        domain=domain,
        **drawn,
        name="relation",
        arguments={"hide": relation.spec(), "public": list(public), "publish_component_totals": parts},
        words=_words(relation, domain, public, joined is None, tuple(dict.fromkeys(str(rule.kept) for rule in kept))),
        relation=relation,
        public=public,
    )
    if public and _may_leave(relation, domain) and not made.components[1].any():
        _refuse_changed(public, relation)
        return replace(made, public=(), words=f"{_words(relation, domain, (), False, ())}; {_left_alone(public)}")
    _refuse_unnamed(made, relation, exact, public, parts)
    return made


def _legs(relation: Relation, domain: Domain) -> dict[int, Leg]:
    """The moves of every rule on its factor."""
    legs: dict[int, Leg] = {}
    _refuse_many(domain, relation)
    for rule in relation.rules:
        positions = domain.factor(str(rule.of)).positions
        legs[id(rule)] = Leg(positions, moves_of(rule, domain.part(str(rule.of))))
    return legs


def _drawn(relation: Relation, domain: Domain, legs: dict[int, Leg]) -> dict[str, Any]:
    """The edges between cells, and which cells are joined to ⊥."""
    terms = tuple(tuple(legs[id(rule)] for rule in term.rules) for term in relation.terms if term.kind == CHANGES)
    origins = _origins(relation, domain)
    moves = _moves(relation, domain, terms, origins, _left(relation, domain))
    return {"moves": moves, "joined": _joined(relation, domain, origins)}


def _left(relation: Relation, domain: Domain) -> tuple[str, ...]:
    """The factors that no change touches."""
    changed = set(relation.names)
    return () if relation.changes_all else tuple(f.name for f in domain.factors if f.name not in changed)


def _may_leave(relation: Relation, domain: Domain) -> bool:
    """Whether moves out of the bounds, where elsewhere stands beside the cells, are the one way to vanish."""
    apart = any(domain.part(str(rule.of)).apart for rule in relation.rules)
    return apart and not relation.hides_presence and all(rule.places is None for rule in relation.rules)


def _kept(relation: Relation, domain: Domain) -> list[Rule]:
    """The rules that stay within the groups of a level, or a refusal where others lead out of them all the same."""
    kept = [rule for rule in relation.rules if rule.kept is not None]
    if kept and domain.apart:
        raise InvalidInput(
            f"hide keeps {kept[0].kept!r}, and another place is one that records come into and leave, so that nothing "
            "is kept. Nothing was built. Leave keep out."
        )
    for rule in kept:
        alone = sum(other.of == rule.of for other in relation.rules) == 1
        if relation.hides_presence or relation.changes_all or not alone:
            raise InvalidInput(
                f"hide keeps {rule.kept!r} in one of its changes and leads out of it by another: "
                f"{relation.describe()}. Nothing was built. Leave keep out, or the other change."
            )
    return kept


def _refuse_many(domain: Domain, relation: Relation) -> None:
    """Refuse what would take much time and memory before it takes any: a file may ask for it in a line."""
    told = 0
    for rule in relation.rules:
        told += numbers_of(rule, domain.part(str(rule.of)))
        if told > MOST_NUMBERS:
            raise TooLarge(
                f"the moves of this relation are of too many kinds to be told apart (at most {MOST_NUMBERS:,} numbers, "
                "over all its rules). Nothing was built. Use smaller distances, fewer cells, or sf.anything()."
            )


def _moves(
    relation: Relation,
    domain: Domain,
    terms: tuple[tuple[Leg, ...], ...],
    origins: tuple[Origin, ...],
    left: tuple[str, ...],
) -> Moves:
    if relation.changes_all:
        return Complete()
    if not terms:
        return NoMoves()
    if len(domain.factors) == len(terms) == len(terms[0]) == 1 and (domain.apart or not origins):
        alone = terms[0][0].moves.alone()
        if alone is not None:
            return alone
        if domain.apart:
            return terms[0][0].moves
    unchanged = tuple(i for name in left for i in domain.factor(name).positions)
    return ProductMoves(terms=terms, origins=origins, unchanged=unchanged)


def _origins(relation: Relation, domain: Domain) -> tuple[Origin, ...]:
    if relation.hides_presence:
        return ()
    out = tuple(
        Origin(domain.factor(str(rule.of)).positions, way_out(rule, domain.part(str(rule.of))), True)
        for rule in relation.rules
        if domain.part(str(rule.of)).apart
    )
    return out + tuple(
        Origin(
            domain.factor(str(rule.of)).positions,
            source_mask(rule, domain.part(str(rule.of))),
            rule.places == BOUNDARY,
        )
        for rule in relation.rules
        if rule.places is not None
    )


def _joined(relation: Relation, domain: Domain, origins: tuple[Origin, ...]) -> Masks | Callable[[], Masks] | None:
    """The cells that are joined to ⊥."""
    if relation.hides_presence or (relation.changes_all and domain.apart):
        return np.broadcast_to(np.True_, domain.shape)
    return partial(_near_some, domain, origins) if origins else None


def _near_some(domain: Domain, origins: tuple[Origin, ...]) -> Masks:
    def spread(origin: Origin) -> Masks:
        shape = [n if i in origin.positions else 1 for i, n in enumerate(domain.shape)]
        return np.broadcast_to(origin.mask().reshape(shape), domain.shape)

    return reduce(np.logical_or, map(spread, origins))


def _words(
    relation: Relation, domain: Domain, public: tuple[str, ...], total_known: bool, kept: tuple[str, ...]
) -> str:
    said = relation.describe()
    first = "".join(f"moves from one {level} to another are not hidden at all; " for level in kept)
    roads = [domain.factor(name).positions[0] for name in relation.names]
    for words in dict.fromkeys(domain.axes[i].off_roads for i in roads if domain.axes[i].off_roads):
        said += f"; {words}"
    public = (*public, *kept)
    if public:
        return f"{first}the exact number of records for every {_listed(public)} is public, jointly; {said}"
    if domain.apart:
        said += "; whoever is beyond the bounds is left out, and may come in or leave by the same changes"
    return f"{said}; the number of records is public" if total_known else said


def _left_alone(names: tuple[str, ...]) -> str:
    """Of what no change touches, where records come in and leave: nothing is exact, and no value is hidden."""
    return (
        f"no change touches {_listed(names)}: which {'values' if len(names) > 1 else 'value'} a record has is not "
        "hidden, and the number of records inside for each is hidden only as far as they come in or leave"
    )


def _listed(names: tuple[str, ...]) -> str:
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


def _refuse_changed(public: tuple[str, ...], relation: Relation) -> None:
    """Refuse names of what some change touches."""
    for name in public:
        if relation.changes_all or relation.hides_presence or name in relation.names:
            raise _not_public(name, relation)


def _refuse_unnamed(
    policy: Policy, relation: Relation, exact: tuple[str, ...], public: tuple[str, ...], parts: bool
) -> None:
    """Refuse exact totals that nobody asked for, and names of what is not public."""
    _refuse_changed(public, relation)
    if relation.hides_presence:  # nothing is public, and domains of any size need not be looked through for it
        return
    if not policy.total_is_public and not policy.components[1].any():
        if public:
            raise _not_public(public[0], relation)
        return
    missing = [name for name in exact if name not in public]
    if missing:
        raise InvalidInput(
            f"hide changes nothing of {', '.join(map(repr, missing))}: the exact number of records for every value "
            "(jointly) would be published, since nothing hides it. Nothing was built. Name what may be known, "
            f"public={[*public, *missing]!r}, or hide it too, as in … | sf.change({missing[0]!r})."
        )
    if not parts and policy.moves.in_parts(policy.domain.shape):
        raise InvalidInput(
            "hide leaves a factor in parts that no move joins: the exact number of records in each part would be "
            "published. Nothing was built. Hide more, or ask for it with publish_component_totals=True."
        )


def _not_public(name: str, relation: Relation) -> InvalidInput:
    return InvalidInput(
        f"public names {name!r}, which is not published exactly: {relation.describe()}. Nothing was built. Leave it "
        "out of public, or hide less."
    )
