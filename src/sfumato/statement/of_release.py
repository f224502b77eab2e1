"""The statement of one release: what stands in its file, in words, and what its account says where one is at hand."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from fractions import Fraction
from typing import Any

from sfumato._version import __version__
from sfumato.auditing import Audit
from sfumato.errors import InvalidInput
from sfumato.exact import text
from sfumato.ledger import Ledger
from sfumato.policies import Policy
from sfumato.promise import Guarantee, wording
from sfumato.release import Release
from sfumato.statement.accounts import account_figures, account_sections
from sfumato.statement.answers import european, is_standard, neighbours, nist
from sfumato.statement.parts import Section, checked_facts, plain, publishers, section, sheet
from sfumato.statement.statement import Statement

_LONGEST = 400  # characters of what describes a factor: of maps the names alone would fill pages
_SEEDED = (
    "NOT PRIVATE: this release was made with seeded randomness, for tests and papers. Whoever knows or guesses the "
    "seed can take the noise away. Nothing below is promised."
)


def statement_of_release(
    release: Release,
    *,
    ledger: Ledger | None = None,
    audit: Audit | Sequence[Audit] | None = None,
    facts: Mapping[str, str] | None = None,
    title: str | None = None,
) -> Statement:
    """What a release says of itself, and its account of it, for an auditor to read. See `release.statement`."""
    added, audits = checked_facts(facts), _audits(audit)
    if ledger is not None and not isinstance(ledger, Ledger):
        raise InvalidInput(f"ledger={type(ledger).__name__} is not a ledger. Open one with sf.Ledger(path).")
    guarantee = release.guarantee
    sections = [
        _not_hidden(guarantee),
        _published(release),
        *publishers(added),
        _promise(guarantee),
        _unit(guarantee),
        section("standard", "In standard terms", items=_standard(guarantee)),
        _mechanism(release),
        _audit(audits),
        *_account(release, ledger),
        section("nist", "The questions of NIST SP 800-226", facts=nist(release, ledger, audits)),
        section(
            "europe",
            "Singling out, linking, inference",
            text=(
                "The three risks of Opinion 05/2014 of the European data protection authorities, answered for this.",
            ),
            facts=european(guarantee),
        ),
        _beyond(),
    ]
    return Statement(
        title=plain(title) if title is not None else _title(release, added),
        kind="release",
        sections=tuple(sections),
        figures=_figures(release, ledger, audits),
        facts=added,
    )


def _title(release: Release, facts: Mapping[str, str]) -> str:
    named = facts.get("name")
    return f"Privacy statement: {named}" if named else f"Privacy statement of release {plain(release.id)[:12]}"


def _not_hidden(guarantee: Guarantee) -> Section:
    """What is not hidden, first."""
    items = [] if guarantee.private else [_SEEDED]
    fading, policy = wording.fading(guarantee), guarantee.policy
    if policy.unchanged:
        items.append(_unchanged(policy))
    items += wording.limits(guarantee)
    if len(fading) > 1:
        name, epsilon = fading[-1]
        items.append(
            f"A longer change is hidden less: {name} at ε = {epsilon}, where the odds may change by "
            f"{wording.odds(epsilon)}."
        )
    if guarantee.unit == "record":
        items.append(wording.unit_words(guarantee).removeprefix("one record. "))
    return section("not-hidden", "Not hidden", items=items)


def _unchanged(policy: Policy) -> str:
    named = " and ".join(policy.unchanged)
    return f"Nothing is hidden of the {named} of a record: no change that is hidden touches it."


def _published(release: Release) -> Section:
    tables = release.mechanism.by_tables
    counted = "numbers of records" if release.values is None else release.values.describe()
    what = f"estimated {counted}, in {release.domain.size:,} cells"
    if tables is not None:
        what = f"estimated {counted}, in {len(tables.tables.sets)} tables, {release.estimates.size:,} figures"
    told = [("Release", release.id), ("What", what), ("When", when(release.created))]
    told += [(f"Along {name}", words) for name, words in _factors(release)]
    told.append(("Made to answer", release.workload))
    if release.origin is not None:
        told.append(("Questions as they were written", release.origin.ask))
    return section("published", "What was published", facts=told)


def when(created: str) -> str:
    """A time from a release, to the second, in UTC."""
    if not created:
        return "not said"
    return f"{datetime.fromisoformat(created):%Y-%m-%d %H:%M:%S} UTC"


def _factors(release: Release) -> Iterator[tuple[str, str]]:
    """(name, what its cells are) for every factor: the kind of data, and no figure of it."""
    for factor in release.domain.factors:
        part = release.domain.part(factor.name)
        words = repr(part)
        cells = " × ".join(map(str, part.shape))
        yield factor.name, f"{cells} cells, {words if len(words) <= _LONGEST else f'{words[:_LONGEST]}…'}"


def _promise(guarantee: Guarantee) -> Section:
    policy = guarantee.policy
    said = [neighbours(guarantee)]
    said.append(
        f"Whatever else somebody knows, this release changes the odds that an observer gives to two neighbouring "
        f"datasets by at most {wording.odds(guarantee.epsilon)} (ε = {text(guarantee.epsilon)})."
    )
    rows = [(name, text(epsilon), wording.odds(epsilon)) for name, epsilon in wording.fading(guarantee)]
    facts = [] if policy.relation is None else [("The relation as it is written", policy.relation.to_text())]
    facts.append(("Policy", f"'{policy.name}', fingerprint {policy.fingerprint[:16]}"))
    if guarantee.window is not None:
        facts.append(("Every window of time", f"{guarantee.window}, ε = {guarantee.window_epsilon} for all in it"))
    return section(
        "promise",
        "What is promised",
        text=said,
        facts=facts,
        sheets=[sheet("Longer changes are hidden less", ("Change", "ε", "Odds change by at most"), rows)],
    )


def _unit(guarantee: Guarantee) -> Section:
    bound = guarantee.max_per_entity
    counted = "cells a person is counted in" if guarantee.policy.covers_persons else "records counted of a person"
    facts = [
        ("Unit of privacy", str(guarantee.protects)),
        (f"Most {counted}", "no bound" if bound is None else str(bound)),
    ]
    if guarantee.replacement > 1:
        facts.append(("Factor for records that take another's place", str(guarantee.replacement)))
    return section(
        "unit",
        "Whose change is hidden",
        text=[_sentence(wording.unit_words(guarantee)), *_over_time(guarantee)],
        facts=facts,
    )


def _sentence(words: str) -> str:
    return words[:1].upper() + words[1:]


def _over_time(guarantee: Guarantee) -> Iterator[str]:
    for paragraph in wording.over_time(guarantee):
        yield from (line.strip() for line in paragraph.split("\n"))


def _standard(guarantee: Guarantee) -> Iterator[str]:
    for line in wording.standard(guarantee, guarantee.epsilon):
        yield _sentence(line)
    if guarantee.window_epsilon is not None:
        for line in wording.standard(guarantee, guarantee.window_epsilon):
            yield f"All releases of a window of {guarantee.window} together, {line}"


def _mechanism(release: Release) -> Section:
    mechanism = release.mechanism
    units, step = release.guarantee.policy.units, text(mechanism.epsilon)
    spends = f"ε = {step} a step"
    if units > 1:
        spends = f"ε = {text(mechanism.epsilon * units)} a step: {units:,} units of the sums, each at ε = {step}"
    facts = [("Mechanism", mechanism.describe()), ("Spends at most", spends)]
    if mechanism.linear is not None:
        laws = sorted({law.rate for law, _ in mechanism.linear.noises(None)})
        scales = " and ".join(text(1 / rate) for rate in laws) or "none: nothing has to be hidden"
        facts.append(("Noise", f"discrete Laplace, whole numbers, of scale {scales}"))
    else:
        facts.append(("Noise", "whole numbers, added in stages that this mechanism chooses from noisy figures"))
    facts += [
        (
            "Exactness",
            "Noise is drawn in whole numbers and added to whole numbers; nothing is rounded that is private.",
        ),
        (
            "Randomness",
            "of the operating system, stretched by AES-256"
            if release.private
            else "SEEDED: the noise can be drawn again by whoever knows the seed",
        ),
        ("After the noise", "everything else is computed from noisy numbers alone"),
        ("Software", f"sfumato {__version__} wrote this statement"),
    ]
    return section("mechanism", "How it was made", facts=facts)


def _audits(given: Any) -> tuple[Audit, ...]:
    listed = () if given is None else (given,) if isinstance(given, Audit) else tuple(given)
    for one in listed:
        if not isinstance(one, Audit):
            raise InvalidInput(f"audit={type(one).__name__} is no audit. Give what sf.audit(…) returned, or a list.")
    return listed


def _audit(audits: Sequence[Audit]) -> Section:
    if not audits:
        return section(
            "audit", "Audits", text=["No audit is attached. Whoever has the file can run one: sf.audit, sf.verify."]
        )
    rows = [
        (
            one.subject,
            text(one.promised),
            text(one.epsilon) if not isinstance(one.epsilon, float) else f"{one.epsilon:.4g}",
            one.method,
            "kept" if one.passed else "BROKEN",
        )
        for one in audits
    ]
    caption = "The privacy loss found on made-up neighbouring data, beside the promise"
    columns = ("What was audited", "Promised ε", "Found ε", "Method", "Promise")
    return section(
        "audit",
        "Audits",
        sheets=[sheet(caption, columns, rows)],
        text=[
            "On small, made-up data, as the table names it: an audit is of a plan or a mechanism, and not of this file."
        ],
        items=[line for one in audits for line in one.describe().split("\n")[1:3]],
    )


def _account(release: Release, ledger: Ledger | None) -> Iterator[Section]:
    if ledger is None:
        yield section(
            "account",
            "The account",
            text=[
                "No ledger was at hand when this was written: what else was published about the same people is not "
                "said."
            ],
        )
        return
    yield from account_sections(ledger, release_id=release.id)


def _beyond() -> Section:
    return section(
        "beyond",
        "What this page cannot show",
        items=[
            "That the figures came from the data that are named, counted as declared.",
            "That nothing else was published about the same people, by this publisher or another.",
            "How the data were collected, who can see them, and how they are kept.",
            "What the figures mean for groups of people: what holds of everybody in a place stays visible.",
        ],
    )


def _figures(release: Release, ledger: Ledger | None, audits: Sequence[Audit]) -> dict[str, Any]:
    guarantee = release.guarantee
    return {
        "release": release.id,
        "created": release.created,
        "epsilon": str(Fraction(guarantee.epsilon)),
        "guarantee": guarantee.to_dict() | {"policy": _named(guarantee)},
        "mechanism": release.mechanism.spec(),
        "standard": is_standard(guarantee.policy),
        "units": _known_units(release),
        "cells": list(release.domain.shape),
        "software": f"sfumato {__version__}",
        "audits": [one.to_dict() for one in audits],
        "account": None if ledger is None else account_figures(ledger),
    }


def _known_units(release: Release) -> int | float | None:
    """The number of records, where it is public and what is counted."""
    known = release.guarantee.policy.total_is_public and release.guarantee.unit == "record"
    return release.total if known and release.values is None else None


def _named(guarantee: Guarantee) -> dict[str, Any]:
    """The policy without its domain, which may hold maps of megabytes."""
    policy = guarantee.policy
    relation = policy.relation
    return {
        "name": policy.name,
        "words": policy.describe(),
        "relation": None if relation is None else relation.to_text(),
        "fingerprint": policy.fingerprint,
        "public": list(policy.public),
        "total_is_public": policy.total_is_public,
    }
