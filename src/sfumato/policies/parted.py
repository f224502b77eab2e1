"""A policy inside every part of the data: what is hidden when disjoint parts are published each by itself.

A record lies in one of several declared parts. Every part is published under one and the same policy on its cells, by
noise of its own, and what is published tells of a change of a record

- inside a part, as many steps as that part's policy takes;
- from one part to another, the way from there to ⊥ in the one and from ⊥ to here in the other: it vanishes and appears.

These are the distances of one graph on all parts together: the edges of the policy inside every part, and none between
two. It is a policy of the same relation on the product of parts and cells, in which nothing changes the part. That the
numbers of records in the parts are then public, where the policy hides no presence, has to be named as everywhere.

*Why.* All parts but those that the record leaves or enters see the same records, and their noise is independent. ∎
"""

from __future__ import annotations

import operator
from collections.abc import Iterable
from functools import reduce

from sfumato.domain import Domain
from sfumato.errors import InvalidInput
from sfumato.policies.policy import Policy
from sfumato.policies.relation_policy import policy as policy_of
from sfumato.relations import ANYTHING, Relation, change


def parted(by: Domain, inside: Policy, *, public: Iterable[str] = ()) -> Policy:
    """The policy of a release in which every cell of `by` is a part, published under `inside`."""
    if inside.relation is None:
        raise InvalidInput(
            f"parts are published under a relation between records, and this policy is one of cells "
            f"({inside.describe()}). Nothing was drawn or recorded. Plan with sf.policy(domain, hide=…), sf.within, "
            "sf.bounded or sf.unbounded."
        )
    made = policy_of(
        by * inside.domain,
        hide=_within_a_part(inside.relation, inside.domain),
        public=[*([public] if isinstance(public, str) else public), *inside.unchanged],
        publish_component_totals=bool(inside.arguments.get("publish_component_totals", False)),
    )
    _require_inside(made, inside)
    return made


def _within_a_part(relation: Relation, domain: Domain) -> Relation:
    """The relation with "any other record" said of the cells alone: the part of a record stays."""
    everything = reduce(operator.and_, (change(factor.name) for factor in domain.factors))
    terms = (everything.terms if term.kind == ANYTHING else (term,) for term in relation.terms)
    return Relation(tuple(term for found in terms for term in found))


def _require_inside(made: Policy, inside: Policy) -> None:
    """Refuse parts that would hide appearing where the policy inside them does not."""
    if made.absent is None:
        return
    if inside.absent is None or bool((made.absent & ~inside.absent).any()):
        raise InvalidInput(
            "the sources of this policy are not the same cells in every part. Nothing was drawn or recorded. Name them "
            "as points or lines, sf.move(δ, sources=[…]), or hide presence everywhere, … | sf.presence()."
        )
