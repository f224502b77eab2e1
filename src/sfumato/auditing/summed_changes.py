"""How many steps of one unit a change of a record takes where a value is summed, made anew from the relation's words.

The edges of single units are audited like any others. That a change of a record is no longer a way along them than is
paid for is a claim of its own, and is tried here: values are made up, at the bounds, beyond them, on the borders
between two steps and anywhere, changed by as much as the words allow, and rounded as a user's values would be.
"""

from __future__ import annotations

import numpy as np

from sfumato._types import Floats, Integers
from sfumato.policies import Policy
from sfumato.relations import ANYTHING, PRESENCE, Term
from sfumato.values import Amounts

VALUES_MADE_UP = 200


def units_needed(policy: Policy, rng: np.random.Generator) -> int:
    """The most steps that a change took, of those tried; one, where no value is summed."""
    values, relation = policy.values, policy.relation
    if not isinstance(values, Amounts) or relation is None:
        return 1
    made = _values(values, rng)
    return max(1, *(_most(policy, values, term, made) for term in relation.terms))


def _most(policy: Policy, values: Amounts, term: Term, made: Floats) -> int:
    steps = values.axis.locate(made) + values.least
    if term.kind == PRESENCE:
        return int(np.abs(steps).max())
    rules = [rule for rule in term.rules if rule.of == values.name]
    moves = term.kind == ANYTHING or len(rules) < len(term.rules)
    allowed = made[:, None] == made
    if term.kind == ANYTHING or any(rule.anywhere for rule in rules):
        allowed[:] = True
    for rule in rules:
        if rule.limit is not None:
            allowed |= np.abs(made[:, None] - made) < float(rule.limit.amount)
    before, after = steps[:, None], steps
    costs = np.abs(before - after)
    if moves:
        costs = np.maximum(costs, _moved(before, after, alone=not policy.on_cells.moves_exist))
    return int(costs[allowed].max(initial=0))


def _moved(before: Integers, after: Integers, *, alone: bool) -> Integers:
    """What is common to both goes along an edge, where there is one; all else comes and goes."""
    apart = np.abs(before) + np.abs(after)
    same = (np.sign(before) == np.sign(after)) & (not alone)
    return np.where(same, np.maximum(np.abs(before), np.abs(after)), apart)


def _values(values: Amounts, rng: np.random.Generator) -> Floats:
    low, high, step = (float(number) for number in (*values.clip, values.step))
    some = rng.uniform(low - step, high + step, VALUES_MADE_UP)
    borders = (np.floor(some[: VALUES_MADE_UP // 2] / step) + 0.5) * step
    ends = np.array([low, high, low - 10 * step, high + 10 * step, low + step / 2, high - step / 2, 0.0])
    near = np.concatenate([np.nextafter(borders, -np.inf), borders])
    return np.concatenate([ends, ends + step / 4, some, near])
