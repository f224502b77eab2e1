"""What a release costs an account that hides a relation between records, on whatever domain the release is.

The account promises: two datasets in which one record differs by one change of its relation are told apart by at most
its total ε. A release sees of a record its cell, or ⊥ where it is left out (by a filter, a step of a stream, or because
it is not there). It is ε-private for one step of its own policy between cells, and so costs ε times the most steps that
one change takes *as the release sees it*: at least once its ε, which is charged for a change that it does not see too.

Term by term of the account's relation:

- a record appears or vanishes: the way from any cell to ⊥;
- a record becomes any other: the longest way between two cells;
- attributes change by their rules, or stay. Attributes that the domain does not have are not seen, and drop out. For
  every factor i let d_i be the most moves that the release's rule for it needs for one change by the account's rule.
  The change then takes Σ k_t moves of the release's terms t, the least numbers with Σ_{t ∋ i} k_t ≥ d_i for every
  factor; or it goes by ⊥. Where an attribute that changes decides whether the record is left out, the way from any
  cell to ⊥ as well; and where a record may vanish near a source, that from the cells that are near one. Where elsewhere
  stands beside the cells (grids with a CRS) it may leave them: one step where the release's own rule leads as far.

d_i is the least of several figures, none of which is too low:

- 1 where the release's rule joins every two cells, or is the account's rule by name: whatever the cells, it joins what
  that rule changes. That a coarse graph joins more than it must is nothing to the account;
- ⌈δ/δ′⌉ for a move by less than δ against one by less than δ′ of the same metric: the straight way, cut into that many
  pieces. It may lie outside of the bounds, where clamping contracts it; great circles may not, and have no formula;
- what a search on the factor's cells finds, for all moves between cells that hold such points;
- the longest way of all between two cells of the factor: also where the account's rule has no meaning on these cells.

Where none is finite the release is refused.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Collection, Sequence
from typing import cast

import numpy as np

from sfumato.domain.factor import Factor
from sfumato.errors import InvalidInput, PolicyMismatch, TooLarge
from sfumato.policies.covering import least_cover
from sfumato.policies.distance import to_absent
from sfumato.policies.longest import between_ends, longest_way
from sfumato.policies.moves import Complete, Moves
from sfumato.policies.policy import Policy
from sfumato.policies.product_moves import MOST_CHOICES, Leg, ProductMoves
from sfumato.policies.rule_moves import moves_of, source_mask
from sfumato.relations import ANYTHING, CHANGES, METRES, PRESENCE, QUEEN, Adjacent, Move, Record, Rule, Term

# A leg of the release with the rule that it was made by, where a relation says which.
Known = tuple[Leg, Rule | None]


def price(record: Record, release: Policy, left_out: Collection[str] = ()) -> int:
    """How many times its ε a release costs an account that hides these changes of a record.

    `left_out` names the attributes that decide whether a record is in the release at all: those of a filter, of a
    part, of a step of a stream. Raises InvalidInput where the release uses an attribute of which the account knows
    nothing, PolicyMismatch where it hides some change of the account at no price.
    """
    names = [factor.name for factor in release.domain.factors]
    record.require_known([*names, *left_out])
    largest = 1.0
    for term in record.relation.terms:
        steps = _term(record, term, release, left_out)
        if math.isinf(steps):
            raise PolicyMismatch(
                f"the account hides that of one record {term.words()}; a release that hides only that "
                f"{release.describe()} says more about some of these changes than any price covers. Nothing was drawn "
                "or recorded. Publish under a policy that hides it, or use another account."
            )
        largest = max(largest, steps)
    return int(largest)


def _term(record: Record, term: Term, release: Policy, left_out: Collection[str]) -> float:
    """The most steps that one change of a term takes."""
    if term.kind == PRESENCE:
        return release.eccentricity
    if term.kind == ANYTHING:
        return max(release.diameter, release.eccentricity if left_out or release.domain.apart else 0)
    steps = max([_moved(record, term, release), *(_way_out(rule, release) for rule in term.rules)])
    if any(record.rules(term, name) for name in left_out):
        steps = max(steps, release.eccentricity)
    return max([steps, *(_near_source(rule, release) for rule in term.rules if rule.places is not None)])


def _moved(record: Record, term: Term, release: Policy) -> float:
    """The most steps that the changes of attributes take, between cells or by ⊥."""
    domain = release.domain
    changed = [(factor, record.rules(term, factor.name)) for factor in domain.factors]
    changed = [(f, rules) for f, rules in changed if rules and domain.part(f.name).size > 1]
    if not changed:
        return 0.0
    if release.moves.join_all:
        return 1.0
    terms = _terms_of(release)
    if terms is None:
        direct = between_ends(ProductMoves(terms=(tuple(_leg(rules, f, release) for f, rules in changed),)), release)
    else:
        needs = [_ways(rules, factor, terms, release) for factor, rules in changed]
        choices = itertools.islice(itertools.product(*needs), MOST_CHOICES)
        direct = min(
            (least_cover([([number], steps) for number, steps in choice], len(terms)) for choice in choices),
            default=math.inf,
        )
        alike = [([number for number, _ in ways], ways[0][1]) for ways in needs if ways]
        if len(alike) == len(needs) and all(len({steps for _, steps in ways}) == 1 for ways in needs):
            direct = least_cover(alike, len(terms))
    return direct if direct <= 2 else min(direct, 2 * release.eccentricity)


def _terms_of(release: Policy) -> Sequence[Sequence[Known]] | None:
    """The release's terms, factor by factor; None where all axes move as one, though they are several factors."""
    moves, relation = release.moves, release.relation
    if not moves.exist:
        return []
    if isinstance(moves, ProductMoves):
        legs = moves.terms
    elif len(release.domain.factors) == 1:
        legs = ((Leg(release.domain.factors[0].positions, moves),),)
    else:
        return None
    rules = [] if relation is None else [term.rules for term in relation.terms if term.kind == CHANGES]
    if [len(term) for term in legs] != [len(term) for term in rules]:
        return [[(leg, None) for leg in term] for term in legs]
    return [list(zip(term, own, strict=True)) for term, own in zip(legs, rules, strict=True)]


def _ways(
    rules: tuple[Rule, ...], factor: Factor, terms: Sequence[Sequence[Known]], release: Policy
) -> list[tuple[int, float]]:
    """(the number of a term, how many of its moves one change of the factor takes) for every term that moves it."""
    return [
        (number, sum(_steps(rule, factor, leg, by, release) for rule in rules))
        for number, term in enumerate(terms)
        for leg, by in term
        if leg.positions == factor.positions
    ]


def _steps(rule: Rule, factor: Factor, leg: Leg, by: Rule | None, release: Policy) -> float:
    """How many moves of a leg one change of a factor by a rule of the account takes."""
    if leg.moves.join_all:
        return 1.0
    formula = math.inf if by is None else _by_name(rule, by, len(factor.positions))
    if formula == 1:
        return 1.0
    shape = leg.shape(release.domain.shape)
    return min(formula, longest_way(_seen(rule, factor, release), leg.moves, shape))


def _by_name(rule: Rule, by: Rule, axes: int) -> float:
    """⌈δ/δ′⌉ for two moves of one kind; infinite where no formula says."""
    if rule.kind != by.kind:
        return math.inf
    if rule.map != by.map:  # neighbours there are none here, and a way by road is another
        return math.inf
    if rule.kind == Adjacent.kind:
        near, wide = cast(Adjacent, rule).contiguity, cast(Adjacent, by).contiguity
        return 1.0 if near == wide or wide == QUEEN else math.inf
    if rule.kind != Move.kind:
        return 1.0
    asked, given = cast(Move, rule), cast(Move, by)
    if given.keep is not None:  # what is one group there may be several here
        return math.inf
    if asked.delta.unit != given.delta.unit:
        return math.inf
    if asked.metric != given.metric and (axes > 1 or asked.delta.unit == METRES):  # along one axis of numbers all agree
        return math.inf
    if asked.delta.amount <= given.delta.amount:
        return 1.0
    if asked.delta.unit == METRES:
        return math.inf
    return float(-(-asked.delta.amount // given.delta.amount))


def _seen(rule: Rule, factor: Factor, release: Policy) -> Moves:
    """The account's rule on the cells of a factor; all pairs of cells where it has no meaning on these."""
    try:
        return moves_of(rule, release.domain.part(factor.name))
    except (InvalidInput, TooLarge):
        return Complete()


def _leg(rules: tuple[Rule, ...], factor: Factor, release: Policy) -> Leg:
    return Leg(factor.positions, _seen(rules[0], factor, release) if len(rules) == 1 else Complete())


def _way_out(rule: Rule, release: Policy) -> float:
    """The most steps to ⊥ from a cell that a change by the rule leads out of, beside which elsewhere stands."""
    factor = next((f for f in release.domain.factors if f.name == rule.of), None)
    if factor is None or not release.domain.part(factor.name).apart:
        return 0.0
    rules = [] if release.relation is None else [own for own in release.relation.rules if own.of == rule.of]
    if any(_by_name(rule, own, len(factor.positions)) == 1 for own in rules) and not release.total_is_public:
        return 1.0
    return release.eccentricity


def _near_source(rule: Rule, release: Policy) -> float:
    """The most steps to ⊥ from a cell that is near a source of the account."""
    if release.relation is not None and rule in release.relation.rules and not release.total_is_public:
        return 1.0
    farthest = release.eccentricity
    if release.absent is None or farthest == 1:
        return farthest
    domain = release.domain
    factor = next((f for f in domain.factors if f.name == rule.of), None)
    if factor is None:
        return farthest
    try:
        mask = source_mask(rule, domain.part(factor.name))()
    except (InvalidInput, TooLarge):  # a source outside of this domain: records near it are counted anywhere at its end
        return farthest
    shape = [n if i in factor.positions else 1 for i, n in enumerate(domain.shape)]
    cells = np.flatnonzero(np.broadcast_to(mask.reshape(shape), domain.shape))
    return float(to_absent(release, cells).max(initial=0))
