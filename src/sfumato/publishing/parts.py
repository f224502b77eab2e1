"""A release for every part of the data: one count, one plan, one charge.

The parts are declared, a list of labels that nobody read off the data, and a part in which nobody is gets a release as
well. All parts are counted at once, on parts × cells, so that the records of a person are chosen before they are split,
and no more than `max_per_entity` of them count in all parts together. Every part is published by itself, at the plan's
ε. What they cost together is what one change of a record costs wherever it is felt (`sfumato.policies.parted`): the
largest, not the sum, where nothing that the account hides leads from one part to another.
"""

from __future__ import annotations

import itertools
import secrets
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, cast

from sfumato.domain import Axis, Domain, Labels
from sfumato.errors import InvalidInput, TooLarge
from sfumato.interruptions import undisturbed
from sfumato.noise import Source, SystemSource
from sfumato.noise.source import require
from sfumato.planning import Plan
from sfumato.policies.parted import parted
from sfumato.promise import Guarantee
from sfumato.publishing.account import Account, require_account, warn_without_ledger
from sfumato.publishing.private import are_private, dropped_of, elsewhere, left_out, private_counts
from sfumato.publishing.publish import observed, released
from sfumato.release import Release
from sfumato.release.outbox import rescued_parts

MOST_PARTS = 10_000


@dataclass(frozen=True, eq=False, repr=False)
class PartReleases(Mapping[Any, Release]):
    """One release for every declared part, by its label, in the declared order; a tuple of labels for several axes.

    `guarantee` is what all of them together promise, and what a ledger was charged; each release has its own, about the
    records of its part.
    """

    by: Domain
    guarantee: Guarantee
    releases: tuple[Release, ...]

    def _labels(self) -> list[Any]:
        names = [_labels(axis) for axis in self.by.axes]
        return names[0] if len(names) == 1 else list(itertools.product(*names))

    def __getitem__(self, label: Any) -> Release:
        labels = self._labels()
        if label not in labels:
            raise KeyError(label)
        return self.releases[labels.index(label)]

    def __iter__(self) -> Iterator[Any]:
        return iter(self._labels())

    def __len__(self) -> int:
        return len(self.releases)

    def __repr__(self) -> str:
        private = "" if self.guarantee.private else ", NOT PRIVATE"
        return f"PartReleases({len(self)} releases by {_names(self.by)}{private})"


def publish_parts(
    plan: Plan,
    counts: Any,
    *,
    by: Domain,
    public: Iterable[str] = (),
    filtered: Collection[str] = (),
    ledger: Account | None = None,
    label: str | None = None,
    source: Source | None = None,
) -> PartReleases:
    """Publish every part of counts by a plan for one of them; the arguments are those of `Plan.publish_parts`."""
    if plan.policy.values is not None:
        raise InvalidInput(
            f"the plan is for {plan.policy.values.describe()}, and parts are published of records alone. Nothing was "
            "drawn or recorded. Publish one release on by * domain."
        )
    policy = parted(_declared(by), plan.policy, public=public)
    if isinstance(counts, Mapping):
        raise InvalidInput(
            "counts of every part by itself would count a person in each of them. Nothing was drawn or recorded. Count "
            "all parts at once, sf.count(data, by * domain, …)."
        )
    values, bound = private_counts(policy, plan.max_per_entity, counts)
    randomness = SystemSource() if source is None else require(source)
    private = randomness.private and are_private(counts)
    together = replace(replace(plan.guarantee, policy=policy).counted(bound), private=private)
    guarantee = replace(plan.guarantee.counted(bound), private=private)
    pieces = values.reshape(by.size, -1)
    totals = [int(piece.sum()) if plan.policy.total_is_public else None for piece in pieces]
    made = [plan.mechanism if total is None else plan.mechanism.for_total(total) for total in totals]
    if ledger is None and private:
        warn_without_ledger()
    with undisturbed() as interrupted:  # what was charged is either in hand or kept
        if ledger is not None:
            require_account(ledger)
            together, guarantee = ledger.promised(together), ledger.promised(guarantee)
            what = label or f"{plan.mechanism.name} on {' × '.join(map(str, plan.policy.domain.shape))} cells"
            ledger.charge(
                together,
                label=f"{what}, for each of {by.size} parts by {_names(by)}",
                release_id=secrets.token_hex(16),
                **left_out(filtered, [*dropped_of(counts), *elsewhere(by)]),
            )
        releases = []
        for mechanism, piece, total in zip(made, pieces, totals, strict=True):
            releases.append(
                released(plan, mechanism, guarantee, observed(mechanism, mechanism.seen(piece), total, randomness))
            )
        if ledger is not None and interrupted():  # whoever asked for them is not there to take them
            raise rescued_parts(releases, "It was interrupted", KeyboardInterrupt(), ledger=ledger.path)
    return PartReleases(by=by, guarantee=together, releases=tuple(releases))


def _declared(by: Any) -> Domain:
    if not isinstance(by, Domain):
        raise InvalidInput(
            f"by={type(by).__name__} is not a list of parts. Nothing was drawn or recorded. Declare them, such as "
            "by=sf.Categories(['NY', 'NJ'], name='state'), and count on by * domain."
        )
    if by.size > MOST_PARTS:
        raise TooLarge(
            f"by has {by.size:,} parts, and at most {MOST_PARTS:,} get a release of their own. Nothing was drawn or "
            "recorded. Use fewer, or publish counts on by * domain as one release."
        )
    return by


def _labels(axis: Axis) -> list[Any]:
    """A label as it was declared; what people call a cell elsewhere."""
    return list(cast(Labels, axis).labels) if axis.reads == "labels" else axis.cell_names()


def _names(by: Domain) -> str:
    return ", ".join(map(repr, by.names))
