"""Choosing a mechanism by its expected error: from public figures alone, never from the data."""

from __future__ import annotations

import math
import os
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.domain import Domain
from sfumato.errors import InvalidInput, SfumatoError, TooLarge
from sfumato.exact import Number, plannable, positive_fraction, positive_int, shown
from sfumato.mechanism import (
    REFERENCE_RECORDS,
    Mechanism,
    is_rehearsed,
    mechanisms,
    needs_cells,
    reference_counts,
    reference_population,
    rows_of,
    tunings,
    variants,
)
from sfumato.mechanism import fresh as build
from sfumato.noise import DiscreteLaplace
from sfumato.planning.plan import Alternative, Plan
from sfumato.planning.rehearsal import public_counts, rehearsed_error
from sfumato.planning.valued import bound_of, refuse_unfit, refuse_unproved, worth_of
from sfumato.planning.worth import even_error
from sfumato.policies import Policy, with_values
from sfumato.values import Values
from sfumato.workload import Workload

# Bytes a cell while publishing: counts, noise, the field on its way and the estimates.
BYTES_PER_CELL = 96
# A search over widths ends after so many that are this much worse than the best so far.
RISES, WORSE = 3, 1.3


def plan(
    policy: Policy,
    workload: Workload,
    epsilon: Number,
    *,
    mechanism: str | None = None,
    strategy: Any = None,
    max_per_entity: int | None = None,
    like: Any = None,
    records: int | None = None,
    values: Values | None = None,
    **options: Any,
) -> Plan:
    """The mechanism with the smallest expected squared error on the workload, under the policy at ε.

    With `mechanism` one is forced, and further keywords are its options. With `strategy`, a matrix of whole numbers
    with one column a cell (dense or sparse), that is what is published with noise: its sensitivity under the policy is
    computed exactly, and estimates are by least squares. With `max_per_entity=m` the promise speaks
    of a person, each of whose at most m records may change along an edge of the policy, and the noise grows by m;
    without it, of one record.

    Mechanisms whose error depends on the data are weighed only with `like`: public counts of the same kind, or an
    earlier release, on which they are rehearsed. Never give private counts there, not even old ones. A shifted family
    that is forced without a `width` gets the best one for those counts, or for a reference population. `records`, a
    public guess of how many records there will be, is enough to weigh sorted points, adaptive grids and quadtrees, by
    models of their error, and the size of that population. With either the plan says whether it tells more than an even
    spread.

    With `values`, sums of a value (`sf.amounts`) or distinct people (`sf.people`) take the place of records; errors are
    in the value's own unit, squared. A plan for people speaks of a person, of whom at most so many cells are counted.

    >>> policy = sf.threshold(sf.Line(0, 24, cells=24), theta=1)
    >>> sf.plan(policy, sf.histogram(), epsilon=1).mechanism.name
    'edges'
    """
    policy = policy if values is None else with_values(_known_policy(policy), values)
    promised = policy
    budget, share, count = _checked(policy, workload, epsilon, mechanism, max_per_entity, options)
    refuse_unfit(policy, mechanism, like, records)
    policy = policy.on_cells
    if strategy is not None:
        mechanism, options = _given(strategy, mechanism, policy)
    public = None if like is None else public_counts(like, policy.domain)
    guess = None if records is None else positive_int(records, "records")
    weighed: list[tuple[float, Mechanism]] = []
    others: list[Alternative] = []
    tried = _tried(policy, workload, mechanism, options, others)
    guessed = False
    if mechanism is not None and not options and (settings := tunings(mechanism, policy, workload)):
        tried = [(mechanism, chosen) for chosen in settings]
        if public is None and build(mechanism, policy, share, **settings[0]).biased:
            # A setting has to be chosen, and not by the private data: by a population that nobody lives in.
            domain, guessed = policy.domain, True
            public = reference_counts(domain) if guess is None else reference_population(domain, guess)
    seen: dict[str, list[float]] = {}
    for name, chosen in tried:
        if _past_its_best(seen.get(name, [])):
            continue
        if mechanism is None and public is None and is_rehearsed(name):
            others.append(_unknown(name))
            continue
        try:
            built = build(name, policy, share, **chosen)
            built = built if guess is None or chosen else built.informed(guess)
            refuse_unproved(promised, built)
            error = _expected(built, workload, public, guess)
        except SfumatoError as error_met:
            if mechanism is not None:
                raise
            others.append(Alternative(name, "", None, _first_sentence(error_met).removeprefix(f"mechanism={name!r} ")))
            continue
        if math.isnan(error) and mechanism is None:
            others.append(_unknown(name))
            continue
        weighed.append((error, built))
        if built.biased:
            seen.setdefault(name, []).append(error)
    if not weighed:
        reasons = dict.fromkeys(f"{other.name}: {other.reason}" for other in others)
        raise InvalidInput(f"no mechanism fits this policy and workload: {'; '.join(reasons)}.")
    best_error, best = min(weighed, key=_rank)
    ranked = _best_of_each_name(weighed) + _unusable(others, weighed)
    held = None if guessed or _too_large(policy.domain.size) else public
    return Plan(
        policy=promised,
        workload=workload,
        epsilon=budget,
        mechanism=best,
        expected_error=best_error,
        alternatives=tuple(ranked),
        max_per_entity=count,
        records=guess,
        basis=_basis(best, like is not None, guess or REFERENCE_RECORDS if guessed else None, best_error),
        steady=_steady(policy, workload, share) if guessed else None,
        even_error=None if _too_large(policy.domain.size) else even_error(policy.domain, workload, held, guess),
        even_rehearsed=held is not None,
    ).in_units()


def _steady(policy: Policy, workload: Workload, share: Fraction) -> Alternative | None:
    """The best mechanism whose error does not depend on the data: what stands beside one that was only guessed."""
    weighed = []
    for name, chosen in variants(policy, workload):
        try:
            built = build(name, policy, share, **chosen)
            if not built.biased:
                weighed.append((_expected(built, workload, None, None), built))
        except SfumatoError:
            continue  # does not fit this policy or workload
    return min(_best_of_each_name(weighed), key=lambda found: found.error or 0.0, default=None)


def _tried(
    policy: Policy, workload: Workload, mechanism: str | None, options: dict[str, Any], others: list[Alternative]
) -> list[tuple[str, dict[str, Any]]]:
    """What is weighed: every mechanism, or the named one; of a domain whose cells no memory holds those that need none
    of it, and among the `others` why the rest is left out.
    """
    too_large = _too_large(policy.domain.size)
    if not too_large:
        return [(mechanism, options)] if mechanism is not None else list(variants(policy, workload))
    if mechanism is not None:
        if needs_cells(mechanism):
            raise TooLarge(_refused(policy.domain, too_large))
        return [(mechanism, options)]
    found = list(variants(policy, workload, cells=False))
    if not found:
        raise TooLarge(_refused(policy.domain, too_large))
    others += [
        Alternative(name, "", None, f"too large: {policy.domain.size:,} cells")
        for name in mechanisms()
        if needs_cells(name)
    ]
    return found


def _refused(domain: Domain, too_large: str) -> str:
    several = (
        " Or ask for tables of a few factors each, as sf.marginals(2) does: these are measured without the cells of "
        "their product."
    )
    return f"{too_large}. Use fewer cells.{several if len(domain.factors) > 1 else ''}"


def _too_large(cells: int) -> str:
    """Why so many cells (or numbers in tables) do not fit; empty where they do."""
    needed, there = cells * BYTES_PER_CELL, _memory()
    if needed <= there:
        return ""
    return f"{cells:,} cells need about {needed / 2**30:,.1f} GiB, this machine has {there / 2**30:.1f}"


def _given(strategy: Any, mechanism: str | None, policy: Policy) -> tuple[str, dict[str, Any]]:
    """The mechanism of a user's matrix, and its options."""
    if mechanism is not None:
        raise InvalidInput(
            f"mechanism={shown(mechanism)} and strategy=… exclude each other: a strategy is a mechanism. "
            "Nothing was drawn or recorded. Leave one of them out."
        )
    return "strategy", rows_of(strategy, policy.domain.size)


def _past_its_best(errors: list[float]) -> bool:
    """Whether wider and wider bins have made it worse three times: beyond the best width the bias only grows."""
    return len(errors) > RISES and min(errors[-RISES:]) > WORSE * min(errors[:-RISES])


def epsilon_for(
    policy: Policy,
    workload: Workload,
    error: float,
    *,
    mechanism: str | None = None,
    strategy: Any = None,
    max_per_entity: int | None = None,
    values: Values | None = None,
    **options: Any,
) -> float:
    """The smallest ε, to four digits, at which some plan's expected squared error is at most `error`.

    >>> policy = sf.threshold(sf.Line(0, 24, cells=24), theta=1)
    >>> epsilon = sf.epsilon_for(policy, sf.histogram(), error=100)
    >>> sf.plan(policy, sf.histogram(), epsilon=epsilon).expected_error <= 100
    True
    """
    target = float(positive_fraction(error, "error"))
    policy = policy if values is None else with_values(_known_policy(policy), values)
    _, _, count = _checked(policy, workload, 1, mechanism, max_per_entity, options)
    times, promised, policy = (count or 1) * policy.units, policy, policy.on_cells
    target /= worth_of(promised) ** 2
    if strategy is not None:
        mechanism, options = _given(strategy, mechanism, policy)
    found: list[Fraction] = []
    tried = _tried(policy, workload, mechanism, options, [])
    if mechanism is not None and not options:
        tried = [(mechanism, chosen) for chosen in tunings(mechanism, policy, workload)] or tried
    for name, chosen in tried:
        if mechanism is None and is_rehearsed(name):
            continue
        try:
            built = build(name, policy, Fraction(1), **chosen)
            refuse_unproved(promised, built)
            terms = _unit_terms(built, workload)
        except SfumatoError:
            if mechanism is not None:
                raise
            continue
        found.append(_smallest(terms, target))
    if not found:
        raise InvalidInput("no mechanism fits this policy and workload.")
    return float(_round_up(min(found)) * times)


def smallest_epsilon(built: Mechanism, workload: Workload, target: float) -> Fraction:
    """The smallest ε for one record, to four digits, at which a mechanism's expected error is at most the target."""
    return _round_up(_smallest(_unit_terms(built, workload), target))


def _unit_terms(built: Mechanism, workload: Workload) -> list[tuple[float, Fraction]]:
    """For every noise its term of the error, and its rate at ε = 1."""
    if built.model is None or built.biased:
        raise InvalidInput(f"mechanism={built.name!r}: its error depends on the data, so no ε can be named for it.")
    terms = built.model.error_terms(workload, built.policy.domain)
    return [(term, b.noise.rate / built.epsilon) for term, b in zip(terms, built.model.blocks, strict=True)]


def _expected(built: Mechanism, workload: Workload, public: NDArray[np.int64] | None, records: int | None) -> float:
    """From the law of the noise, rehearsed on public counts, or modelled for a number of records; else NaN."""
    if not built.biased and built.model is not None:  # a family of many grids is not built for nothing
        error = built.model.expected_error(workload, built.policy.domain)
        if math.isinf(error):
            raise InvalidInput(
                f"mechanism={built.name!r} measures tables that do not tell all that is asked. Nothing was computed. "
                "Leave mechanism= out, or name tables that hold it."
            )
        return error
    if public is not None:
        return rehearsed_error(built, public, workload)
    return math.nan if records is None else built.modelled_error(workload, records)


def _unknown(name: str) -> Alternative:
    return Alternative(name, "", None, "its error depends on the data: give like=public counts to weigh it")


def _basis(built: Mechanism, rehearsed: bool, guessed: int | None, error: float) -> str:
    """What an expected error rests on, in words; empty where it is exact or unknown."""
    if not built.biased or math.isnan(error):
        return ""
    if guessed is not None:
        return f"guessed for a reference population of {guessed:,} records; give like=public counts for your own"
    return "rehearsed on the counts given as like" if rehearsed else "by a model, for the number of records given"


def _smallest(terms: list[tuple[float, Fraction]], target: float) -> Fraction:
    """The ε at which the error terms meet the target: it falls as ε grows, so halving finds it."""

    def reached(epsilon: Fraction) -> bool:
        return sum(term * DiscreteLaplace(rate * epsilon).variance for term, rate in terms if term > 0) <= target

    low, high = Fraction(1, 2**20), Fraction(2**20)
    if not reached(high):
        raise InvalidInput(f"error={target:g} is out of reach even at epsilon={float(high):g}.")
    while high / low > Fraction(10001, 10000):
        middle = Fraction((float(low) * float(high)) ** 0.5)
        low, high = (low, middle) if reached(middle) else (middle, high)
    return high


def _round_up(value: Fraction) -> Fraction:
    """Up to four significant digits."""
    exponent = 0
    while value * Fraction(10) ** exponent < 1000:
        exponent += 1
    while value * Fraction(10) ** exponent >= 10000:
        exponent -= 1
    scaled = value * Fraction(10) ** exponent
    return Fraction(-(-scaled.numerator // scaled.denominator)) / Fraction(10) ** exponent


def _checked(
    policy: Policy,
    workload: Workload,
    epsilon: Number,
    mechanism: str | None,
    max_per_entity: int | None,
    options: dict[str, Any],
) -> tuple[Fraction, Fraction, int | None]:
    """(ε, ε for one record, m), after everything that can be refused has been."""
    _known_policy(policy)
    if not isinstance(workload, Workload):
        raise InvalidInput(f"workload={type(workload).__name__} is not a workload. Use sf.ranges(), sf.histogram(), …")
    if options and mechanism is None:
        raise InvalidInput(f"{', '.join(options)}: options belong to a mechanism; name it with mechanism=….")
    budget = plannable(epsilon, "epsilon")
    count = None if max_per_entity is None else positive_int(max_per_entity, "max_per_entity")
    count = bound_of(policy, count)
    workload.check(policy.domain)
    return budget, budget / ((count or 1) * policy.units), count


def _known_policy(policy: Policy) -> Policy:
    if not isinstance(policy, Policy):
        raise InvalidInput(
            f"policy={type(policy).__name__} is not a policy. Build one, such as sf.within(grid, delta=0.01)."
        )
    return policy


def _memory() -> int:
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (ValueError, OSError, AttributeError):
        return 1 << 40  # not told by this system: let the allocator decide


def _best_of_each_name(weighed: list[tuple[float, Mechanism]]) -> list[Alternative]:
    best: dict[str, tuple[float, Mechanism]] = {}
    for error, built in weighed:
        if built.name not in best or _rank((error, built)) < _rank(best[built.name]):
            best[built.name] = (error, built)
    return [
        Alternative(built.name, built.settings, *_known(error)) for error, built in sorted(best.values(), key=_rank)
    ]


def _rank(weighed: tuple[float, Mechanism]) -> float:
    """The error to twelve digits: those that rounding may have left behind decide nothing, and the first one stays."""
    return float(f"{weighed[0]:.11e}")


def _known(error: float) -> tuple[float | None, str]:
    return (None, "its error depends on the data") if math.isnan(error) else (error, "")


def _unusable(others: list[Alternative], weighed: list[tuple[float, Mechanism]]) -> list[Alternative]:
    used = {built.name for _, built in weighed}
    kept: dict[str, Alternative] = {}
    for other in others:
        if other.name not in used:
            kept.setdefault(other.name, other)
    return list(kept.values())


def _first_sentence(error: Exception) -> str:
    return str(error).split(". ")[0].removesuffix(".")
