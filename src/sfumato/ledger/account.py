"""The nouns of a ledger: an account, an entry of its history, the receipt of a charge. All frozen, none private."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from sfumato.promise.budget import Epsilon
from sfumato.promise.unit import Unit

EntryKind = Literal["open", "release", "raise"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """The budget of one dataset, and what it promises: under one policy, or one relation between records, and for one
    unit (None: taken from the first release).
    """

    dataset: str
    total: Epsilon
    spent: Epsilon
    policy_spec: str | None
    fingerprint: str | None
    unit: Unit | None
    opened: datetime
    record_spec: str | None = None
    record_digest: str | None = None

    @classmethod
    def new(cls, dataset: str, total: Epsilon, opened: datetime) -> Account:
        """An account with nothing spent and its terms open."""
        return cls(
            dataset=dataset,
            total=total,
            spent=Epsilon(0),
            policy_spec=None,
            fingerprint=None,
            unit=None,
            opened=opened,
        )

    @property
    def remaining(self) -> Epsilon:
        """What may still be spent."""
        return Epsilon(self.total - self.spent)

    @property
    def terms(self) -> tuple[str | None, str | None, Unit | None]:
        """What it promises, to compare with; all None in an account whose first release will say."""
        return self.fingerprint, self.record_digest, self.unit


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One line of an account's history.

    `kind` is "open" (epsilon is the first total), "release" (epsilon is the release's own, cost = epsilon
    × rate) or "raise" (epsilon is the new total). `policy` is in words.
    """

    time: datetime
    kind: EntryKind
    label: str
    release_id: str | None
    policy: str | None
    unit: Unit | None
    epsilon: Epsilon
    rate: int
    cost: Epsilon

    @classmethod
    def of_total(cls, kind: Literal["open", "raise"], total: Epsilon, time: datetime) -> Entry:
        """The line that says that the account now has this total."""
        return cls(
            time=time,
            kind=kind,
            label="account opened" if kind == "open" else "total raised",
            release_id=None,
            policy=None,
            unit=None,
            epsilon=total,
            rate=1,
            cost=Epsilon(0),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Receipt:
    """Proof that a charge is on disk: noise may be drawn now."""

    dataset: str
    entry: Entry
    remaining: Epsilon
