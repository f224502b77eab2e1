"""Questions that evaluators ask, answered for a promise about a relation: honestly, also where the answer is no.

NIST SP 800-226 builds a pyramid: the parameter, the unit and the neighbours, the algorithms, utility, trust, side
channels, the security of what lies below, and how the data were collected. The three risks of Opinion 05/2014 of the
Article 29 Working Party are singling out, linkability and inference.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from sfumato.auditing import Audit
from sfumato.exact import text
from sfumato.ledger import Ledger
from sfumato.policies import Policy
from sfumato.promise import Guarantee, wording
from sfumato.release import Release

_NOT_TOLD = "Not told by the release: for the publisher to say."


def nist(release: Release, ledger: Ledger | None, audits: Sequence[Audit]) -> Iterator[tuple[str, str]]:
    """(question, answer), from the top of the pyramid to its ground."""
    guarantee, mechanism = release.guarantee, release.mechanism
    policy = guarantee.policy
    yield (
        "What is ε?",
        f"{text(guarantee.epsilon)}, but for a probability of {wording.power(guarantee.slack)} (where noise is cut).",
    )
    yield "What is the unit of privacy?", f"{guarantee.protects}."
    yield "Which datasets are neighbours?", neighbours(guarantee)
    yield "Is this standard differential privacy?", _standard(policy)
    yield "How do losses add up?", _adding(guarantee, ledger)
    yield (
        "Is the sensitivity bounded, and who checked it?",
        "It is computed from the strategy as built, over every change that is to be hidden, and computed again when a "
        "file is verified; the bound on each person's records is applied when they are counted.",
    )
    yield "Which algorithm?", f"{mechanism.describe()}."
    yield (
        "How useful are the figures, and are they biased?",
        "Unbiased, with an error that is known without the data: every answer carries its standard error and interval."
        if not mechanism.biased
        else "Its error depends on the data; estimates may be biased, and intervals say where they cannot be given.",
    )
    yield (
        "Were parameters chosen by looking at the data?",
        "Not by the software: it plans without data. Whether bounds, ε or the policy were chosen after a look at them "
        "is for the publisher to say.",
    )
    yield (
        "Whom must people trust?",
        "The publisher, who holds the records and runs the software (the central model), and the machine's randomness. "
        "Readers of the release need not be trusted.",
    )
    yield (
        "Floating point, timing, randomness?",
        "Noise is whole numbers and exact, so that no digit of it depends on the data. How long publishing took is "
        "not part of the promise. Randomness is the operating system's.",
    )
    yield "Was it tested?", _tested(audits)
    yield "How are the records kept, and who can see them?", _NOT_TOLD
    yield "How were they collected?", _NOT_TOLD


def neighbours(guarantee: Guarantee) -> str:
    """Which two datasets the promise speaks of, for a record or for a person."""
    words = guarantee.policy.describe()
    if guarantee.unit == "record":
        return f"Two datasets are neighbours when {words}."
    return (
        f"Two datasets are neighbours when the counted records of one person, at most {guarantee.max_per_entity}, "
        f"change, all at once, each by at most one step: {words}."
    )


def european(guarantee: Guarantee) -> Iterator[tuple[str, str]]:
    """(risk, answer) for singling out, linking and inference."""
    yield "Singling out", " ".join(_singling_out(guarantee))
    yield "Linking", " ".join(_linking(guarantee))
    yield "Inference", " ".join(_inference(guarantee))


def _singling_out(guarantee: Guarantee) -> Iterator[str]:
    policy = guarantee.policy
    factor = wording.odds(guarantee.epsilon)
    yield "The file holds no records, only noisy figures of cells."
    if math.isinf(policy.eccentricity):
        yield (
            "That some record is in the data, and roughly what it is, is not hidden: where a record stands alone, far "
            "from all others, the figures may show that it is there."
        )
        yield f"Which of two places, one step apart, it has is hidden: the odds change by at most {factor}."
        return
    present = guarantee.at(max(int(policy.eccentricity), 1))
    yield (
        f"Whether a record is in the data at all changes the odds by at most {wording.odds(present)} "
        f"(ε = {text(present)})."
    )
    if policy.eccentricity > 1:
        yield f"Within one step they change by at most {factor}."


def _linking(guarantee: Guarantee) -> Iterator[str]:
    most = guarantee.max_per_entity
    yield "There are no identifiers, and no two figures can be said to be about the same person."
    if guarantee.unit == "person":
        yield (
            "That records belong to one person is hidden as far as that person's change is: of nobody are more than "
            f"{most} counted."
        )
    elif most is not None:
        whole = text(guarantee.at(most))
        yield f"All that was counted of one person, at most {most} records, is hidden at ε = {whole}."
    else:
        yield (
            "But no bound was put on a person's records: many records of one person that follow a pattern are hidden "
            "at their number times ε, and may show."
        )
    yield "Several releases about the same people add up; an account keeps the sum, where there is one."


def _inference(guarantee: Guarantee) -> Iterator[str]:
    policy = guarantee.policy
    yield (
        f"About one {guarantee.unit}, what is inferred within one step is bounded: the odds change by at most "
        f"{wording.odds(guarantee.epsilon)}, whatever else is known."
    )
    if policy.unchanged:
        yield f"Nothing is hidden of {' and '.join(policy.unchanged)}: no change touches them."
    if policy.name not in ("bounded", "unbounded"):
        yield "Coarser facts than a step, such as the part of a town, are hidden less the farther apart they are."
    yield (
        "What holds of everybody in a group stays visible and can be inferred of its members: that is what is "
        "published."
    )


def is_standard(policy: Policy) -> bool:
    """Whether neighbours are those of the textbook: a record comes or goes, or becomes any other."""
    if policy.public or policy.unchanged:
        return False
    relation = policy.relation
    return policy.name in ("bounded", "unbounded") or (relation is not None and not relation.rules)


def _standard(policy: Policy) -> str:
    if is_standard(policy):
        return "Yes: neighbours are those of the textbook."
    found = [
        f"{name} at {int(steps)} times ε"
        for name, steps in (("replace-one", policy.diameter), ("add/remove", policy.eccentricity))
        if not math.isinf(steps)
    ]
    implied = (
        f"It implies {' and '.join(found)}." if found else "It implies neither replace-one nor add/remove at any ε."
    )
    return f"No: it hides the changes of a relation, which are fewer than those of the textbook. {implied}"


def _adding(guarantee: Guarantee, ledger: Ledger | None) -> str:
    if guarantee.window is not None:
        return (
            f"All releases of its stream in any window of {guarantee.window} together spend at most ε = "
            f"{guarantee.window_epsilon}; what else is published about the same people adds up with it."
        )
    if ledger is None:
        return "By sums of ε. No ledger was at hand: whether anybody keeps the sum is not said here."
    return f"By sums of ε, kept in an account with a total of {ledger.total} that refuses more; see “The account”."


def _tested(audits: Sequence[Audit]) -> str:
    if not audits:
        return "No audit is attached."
    kept = all(one.passed for one in audits)
    verdict = "every promise was kept" if kept else "A PROMISE IS BROKEN"
    return f"{len(audits)} audit{'' if len(audits) == 1 else 's'} attached: {verdict}."
