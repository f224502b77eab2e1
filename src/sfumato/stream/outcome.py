"""What came of a step that a job asked for: a release, or why there is none."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from sfumato.errors import BudgetExceeded
from sfumato.promise import Epsilon
from sfumato.promise.window import Time
from sfumato.release import Release

Status = Literal["published", "stored", "skipped", "refused", "lost"]


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What `Stream.run` gives back. Nothing of it but the release depends on private values, and that as it promises.

    `status` is "published" (counted, charged, drawn and stored now), "stored" (it was there: nothing was counted or
    charged), "skipped" (the step gets no budget, or was skipped before), "refused" (the windows have no room for it:
    nothing was counted or charged, or the counts came too late) or "lost" (charged, and its release is not in this
    outbox: never a second noise for one charge). `epsilon` is what the step has spent in all, `reason` says it in
    words. A job goes on with the next step whichever it is.

    >>> policy, ledger = sf.bounded(sf.Line(0, 4, cells=4)), sf.Ledger.create("budget.db", epsilon=1)
    >>> stream = sf.Stream(policy, sf.histogram(), epsilon=1, window=4, ledger=ledger, name="visits")
    >>> print(stream.run(0, lambda: np.array([3, 0, 5, 1])))
    0: published at ε = 0.25
    """

    time: Time
    status: Status
    release: Release | None
    epsilon: Epsilon
    reason: str

    def __str__(self) -> str:
        return f"{self.time}: {self.reason}"


def published(time: Time, release: Release) -> Outcome:
    """A step that was counted, charged, drawn and stored just now."""
    epsilon = Epsilon(release.guarantee.epsilon)
    told = f"published at ε = {epsilon}"
    return Outcome(time=time, status="published", release=release, epsilon=epsilon, reason=told)


def refused(time: Time, refusal: BudgetExceeded) -> Outcome:
    """A step for which the budget has no room."""
    return Outcome(time=time, status="refused", release=None, epsilon=Epsilon(0), reason=str(refusal))


def skipped(time: Time) -> Outcome:
    """A step that gets nothing."""
    told = "skipped; nothing was counted or charged"
    return Outcome(time=time, status="skipped", release=None, epsilon=Epsilon(0), reason=told)
