"""A guarantee in plain words, for someone who is not a privacy expert. Every figure is rounded to the safe side."""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction
from typing import TYPE_CHECKING

from sfumato.exact import text
from sfumato.policies import Policy, steps_within
from sfumato.policies.within import length
from sfumato.promise.budget import Epsilon

if TYPE_CHECKING:
    from sfumato.promise.guarantee import Guarantee

_SEEDED = (
    "NOT PRIVATE: made with seeded randomness, for tests and papers. Whoever knows or guesses the seed "
    "can take the noise away. Do not publish it."
)


def one_line(guarantee: Guarantee) -> str:
    """The promise on one line."""
    unit = guarantee.protects
    policy = guarantee.policy
    promise = f"ε = {guarantee.epsilon} per {unit}"
    if guarantee.window is not None:
        promise += f", of ε = {guarantee.window_epsilon} for every window of {guarantee.window}"
    promise += f"; policy '{policy.name}': {policy.describe()}"
    return promise if guarantee.private else f"NOT PRIVATE (seeded randomness). Would be: {promise}"


def describe(guarantee: Guarantee) -> str:
    """The promise and its limits, a paragraph each."""
    parts = [
        _promise(guarantee),
        _steps(guarantee),
        *over_time(guarantee),
        f"Unit: {unit_words(guarantee)}",
        _standard(guarantee),
        _limits(guarantee),
    ]
    if not guarantee.private:
        parts = [_SEEDED, "With unpredictable randomness the promise would be:", *parts, _SEEDED]
    return "\n\n".join(parts)


def odds(epsilon: Fraction) -> str:
    """By how much the odds may change at ε, rounded up: 'a factor 2.72'."""
    factor = math.exp(epsilon) if epsilon < 14 else math.inf
    if factor < 1000:
        return f"a factor {math.ceil(factor * 100) / 100:g}"
    if factor < 1_000_000:
        return f"a factor {math.ceil(factor):,}"
    return "a factor of a million or more: practically not hidden"


def _promise(guarantee: Guarantee) -> str:
    policy = guarantee.policy
    differ = "that differ by one such step"
    if policy.covers_persons and guarantee.unit == "person":
        differ = "that differ in anything about one person"
    elif guarantee.unit == "person":
        differ = "in which each counted record of one person differs by at most one such step"
    return (
        f"Neighbours ('{policy.name}'): {policy.describe()}.\n"
        f"Promise (ε = {guarantee.epsilon}): whatever else somebody knows, seeing this release changes the odds they "
        f"give to two datasets {differ} by at most {odds(guarantee.epsilon)}."
    )


def fading(guarantee: Guarantee) -> list[tuple[str, Epsilon]]:
    """(a change, the ε at which it is hidden), longer and longer: in the user's own units where the policy is about
    distance.
    """
    policy = guarantee.policy
    if policy.name == "within":
        return [(name, guarantee.at(steps)) for name, steps in _distances(policy)]
    counts = [steps for steps in (1, 2, 10) if steps <= max(policy.diameter, 1)]
    return [(_count(steps, "step"), guarantee.at(steps)) for steps in counts]


def _steps(guarantee: Guarantee) -> str:
    """How the promise fades with the length of a change."""
    policy = guarantee.policy
    what, width = ("move", 0) if policy.name == "within" else ("change", 2)
    lines = [f"A longer {what} is a path of such steps, and is hidden less the longer it is:"]
    for name, epsilon in fading(guarantee):
        number, _, rest = name.partition(" ")
        lines.append(f"  {number:>{width}} {rest}: ε = {epsilon}, odds change by at most {odds(epsilon)}")
    if math.isinf(policy.diameter):
        lines.append("  Some cells are joined by no path: a change between them is not hidden.")
    else:
        what = "cells" if policy.values is None else "records"
        lines.append(f"  No two {what} are more than {_count(policy.diameter, 'step')} apart.")
    return "\n".join(lines)


def _distances(policy: Policy) -> Iterator[tuple[str, int]]:
    """The lengths δ, 2δ and 10δ that fit into the domain, each with the most steps that a move below it takes."""
    delta, metric = Fraction(policy.arguments["delta"]), policy.arguments["metric"]
    for multiple in (1, 2, 10):
        steps = steps_within(policy, multiple)
        if steps is not None:
            yield f"a move of less than {length(multiple * delta, metric)}", steps


def over_time(guarantee: Guarantee) -> Iterator[str]:
    """The promise of the stream that a release belongs to, and how it fades with the length of a stay (Theorem 2)."""
    window, epsilon, policy = guarantee.window, guarantee.window_epsilon, guarantee.policy
    if window is None or epsilon is None:
        return
    if guarantee.unit == "person":
        change = "A change of one person's counted records"
        each = f"for each of the at most {_count(guarantee.max_per_entity or 1, 'record')} counted at a time"
    else:
        change, each = "A change of at most one record at a time", "each time"
    lines = [
        f"Over time (windows of {window}, ε = {epsilon}): this release is one of a stream, and what is said here "
        f"covers all releases of that stream together, however many there will be. {change} that is confined to "
        f"{window.span()}, and is at most one step of the policy ('{policy.name}') {each}, is hidden at ε = {epsilon}. "
        "What lasts longer is hidden less:"
    ]
    for windows, name in ((1, "one window"), (2, "two windows"), (10, "ten windows")):
        whole = Epsilon(epsilon * windows)
        lines.append(f"  {window.span(windows)} ({name}): ε = {whole}, odds change by at most {odds(whole)}")
    lines.append("  Who stays in the data for good is not hidden as a whole: the sum grows with every window.")
    if policy.diameter > 1:
        lines.append("  A change of k steps of the policy at a time is hidden at k times these figures.")
    yield "\n".join(lines)


def unit_words(guarantee: Guarantee) -> str:
    """Whose change is hidden: a record's, or a person's, and what that means for persons with several records."""
    most = guarantee.max_per_entity
    if guarantee.policy.covers_persons and guarantee.unit == "person":
        cells = "1 cell" if most == 1 else f"{most} cells"
        return (
            f"one person, who is counted in at most {cells}. All records of one person, however many, may "
            "change, come or go at once: that is one step for each of these cells at most."
        )
    if guarantee.unit == "person":
        words = (
            f"one person, of whom at most {_count(most or 1, 'record')} "
            f"{'is' if most == 1 else 'are'} counted. Each of them may take one step, all at once."
        )
        if guarantee.policy.on_records.total_is_public:
            words += " No step lets a record appear or vanish, so how many records a person has is public."
        else:
            words += (
                " A person who has more records than that is covered when each of them moves between "
                "cells, or when all of them come or go; not when some of them go and others take their "
                "place in the count."
            )
        return words
    words = "one record. "
    if most is None:
        return words + (
            "A person with several records is hidden less: k records that change together are hidden at "
            "k × ε. To promise something about persons, bound the records of each with max_per_entity."
        )
    words += (
        f"At most {_count(most, 'record')} of each person {'was' if most == 1 else 'were'} counted, so "
        f"all that was counted of one person is hidden at {most} × ε = {text(guarantee.at(most))}."
    )
    if not guarantee.policy.on_records.total_is_public:
        apart = guarantee.policy.diameter
        if guarantee.replacement > 1:
            step = guarantee.epsilon / guarantee.replacement
            price = (
                f"hidden at {_multiple(step, guarantee.replacement)}. That is the ε of this promise: between counts, a "
                f"step costs ε = {text(step)}, and another record may be as many steps away"
            )
        else:
            price = "not hidden" if math.isinf(apart) else f"hidden at {_multiple(guarantee.epsilon, max(apart, 1))}"
        words += (
            " A record that comes or goes may change which other record of the same person is counted, wherever that "
            f"lies: where a person has more records than are counted, such a change is {price}."
        )
    return words


def _standard(guarantee: Guarantee) -> str:
    title = "In terms of standard differential privacy (Lemma 1)"
    if guarantee.window is None or guarantee.window_epsilon is None:
        return "\n".join([f"{title}:", *(f"  {line}" for line in standard(guarantee, guarantee.epsilon))])
    return "\n".join(
        [
            f"{title}, this release alone:",
            *(f"  {line}" for line in standard(guarantee, guarantee.epsilon)),
            f"  and all releases of a window of {guarantee.window} together:",
            *(f"  {line}" for line in standard(guarantee, guarantee.window_epsilon)),
        ]
    )


def standard(guarantee: Guarantee, epsilon: Fraction) -> Iterator[str]:
    """The same in the terms that everybody knows: replace-one, and add/remove."""
    policy = guarantee.policy
    whose = "one record" if guarantee.unit == "record" else "each counted record of one person"
    if math.isinf(policy.diameter):
        yield "replace-one: no guarantee, since some cells are joined by no path."
    else:
        yield f"replace-one ({whose} moves anywhere): {_multiple(epsilon, policy.diameter)}"
    if math.isinf(policy.eccentricity):
        yield "add/remove: no guarantee, since not every record can appear or vanish along a path."
    else:
        yield f"add/remove ({whose} comes or goes): {_multiple(epsilon, policy.eccentricity)}"


def _limits(guarantee: Guarantee) -> str:
    return "\n".join(["What is not promised:", *(f"  {line}" for line in limits(guarantee))])


def limits(guarantee: Guarantee) -> list[str]:
    """What is not promised, a sentence or two each; what is public first."""
    policy = guarantee.policy
    lines = [*_known_of_values(policy)]
    if policy.total_is_public and policy.values is None:
        lines.append("The total number of records is public: no step lets a record appear or vanish.")
    if policy.name not in ("bounded", "unbounded") and not policy.covers_persons:
        lines.append(
            "Presence is not hidden, a step is: that there is a record, and roughly where, may become known."
            if policy.on_records.total_is_public
            else "Presence is hidden only as far as the steps to 'not there' go (see add/remove)."
        )
    if policy.relation is not None and any(rule.inside_bounds for rule in policy.relation.rules):
        lines.append(
            "Distances are promised inside the bounds. Records beyond them are counted at the nearest end of each "
            "axis, where a short move may have become a long one."
        )
    if policy.moves_by_road:
        lines.append(
            "A move is one along the roads of the map. Whether a place is on a road at all is hidden only where the "
            "roads may be left."
        )
    if policy.public and policy.values is None:
        lines.append(
            f"The exact number of records for every {' and '.join(policy.public)}, jointly, is public: nothing here "
            "changes it."
        )
    if not policy.whole:
        values = policy.values
        known = "How many records are in a part" if values is None else f"The exact {values.what} of a part"
        lines.append(
            f"The policy falls into parts that no step joins. {known} is public, except in parts where records may "
            "appear and vanish."
        )
    lines += [
        "Records that depend on each other (the same person under two names, a family that travels "
        "together) can betray each other: the promise is about one unit's own change.",
        "What the data show about everybody stays visible; that is what they are published for.",
        "Several releases add up: two at ε are together one at 2ε. A ledger keeps the sum and its limit."
        if guarantee.window is None
        else "The promise over time is about this stream alone: other releases about the same people, and other "
        "streams, add up with it.",
        f"The noise is drawn to within {power(guarantee.slack)} of the exact distribution: in the usual notation "
        f"there is a δ of at most (1 + e^ε) × {power(guarantee.slack)}"
        + (". " if guarantee.window is None else ", for each release of a window and each level that it is raised to. ")
        + "It rests on AES-256 looking random.",
    ]
    return lines


def _known_of_values(policy: Policy) -> Iterator[str]:
    """What is known of sums, and of people, whatever the noise."""
    values = policy.values
    if values is None:
        return
    if policy.covers_persons:
        yield (
            "A sum over several cells counts a person in each of them: it is one of person-cells, and no number of "
            "people."
        )
        return
    if policy.total_is_public:
        each = f" for every {' and '.join(policy.public)}, jointly" if policy.public else ""
        yield f"The exact {values.what}{each} is public: no step changes the value of a record."
    if policy.relation is not None and not policy.relation.changes_all and not policy.relation.hides_presence:
        named = policy.relation.names
        stays = [name for name in (*(f.name for f in policy.domain.factors), values.name) if name not in named]
        if stays:
            yield f"No step changes its {' and '.join(stays)}: which a record has is not hidden."
        if values.name in named:
            none = f"A record without a {values.name} is none"
            yield f"{none}: that one has a value at all is not hidden by a change of it."


def _multiple(epsilon: Fraction, steps: float) -> str:
    return f"ε = {text(epsilon * int(steps))} ({_count(steps, 'step')} × {text(epsilon)})"


def _count(number: float, noun: str) -> str:
    return f"{int(number)} {noun}" if number == 1 else f"{int(number)} {noun}s"


def power(probability: Fraction) -> str:
    """A probability rounded up to a power of two."""
    if probability == 0:
        return "0"
    exponent = (probability.denominator // probability.numerator).bit_length() - 1
    return f"2^-{exponent}" if exponent else text(probability)
