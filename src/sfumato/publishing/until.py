"""Accuracy first: start with much privacy, and relax it until the promised error is met."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from sfumato.errors import InvalidInput
from sfumato.exact import Number, positive_fraction, text
from sfumato.planning import smallest_epsilon
from sfumato.publishing.account import Account
from sfumato.publishing.levels import refine
from sfumato.release import Release
from sfumato.vault import Vault
from sfumato.workload import Workload, histogram, ranges


def refine_until(
    release: Release,
    *,
    error: float,
    max_epsilon: Number,
    vault: Vault,
    workload: Workload | None = None,
    ledger: Account | None = None,
    label: str | None = None,
) -> Release:
    """The release at the smallest ε at which its expected squared error on a workload is at most `error`.

    The workload is all ranges, or all cells where the domain has no order. What is compared is the *expected* error,
    which follows from the noise alone, never the error against the true counts: so nothing about the data decides when
    to stop. What is promised beforehand is `max_epsilon`. A release that is good enough already comes back as it is; an
    error that needs more than `max_epsilon` is refused, and nothing is drawn.

    The paper walks up in small steps. No step needs to be looked at here, so the walk is one step, at the same cost.

    >>> plan = sf.plan(sf.threshold(sf.Line(0, 4, cells=4), theta=1), sf.histogram(), epsilon=0.1)
    >>> vault, ledger = sf.Vault("secrets", key="vault.key"), sf.Ledger.create("budget.db", epsilon=3)
    >>> release = plan.publish(np.array([3, 0, 5, 1]), vault=vault, ledger=ledger)
    >>> finer = sf.refine_until(release, error=20, max_epsilon=2, vault=vault, ledger=ledger)
    >>> 0.1 < finer.guarantee.epsilon < 2
    True
    """
    most = positive_fraction(max_epsilon, "max_epsilon")
    target = float(positive_fraction(error, "error"))
    if not isinstance(release, Release):
        raise InvalidInput(f"release={type(release).__name__} is not a release.")
    asked = _workload(release, workload)
    target /= 1.0 if release.values is None else float(release.values.unit) ** 2
    mechanism, now = release.mechanism, release.guarantee.epsilon
    if mechanism.model is None or mechanism.biased:
        raise InvalidInput(
            f"the error of mechanism={mechanism.name!r} depends on the data, so no ε can be named for it. Nothing was "
            "drawn or recorded. Use release.refine(epsilon=…)."
        )
    if mechanism.model.expected_error(asked, release.domain) <= target:
        return release
    needed = smallest_epsilon(mechanism, asked, target) * (now / mechanism.epsilon)
    if needed > most:
        raise InvalidInput(
            f"error={float(error):g} needs epsilon={text(Fraction(needed))}, which exceeds max_epsilon={text(most)}. "
            "Nothing was drawn or recorded. Allow a larger error, or more."
        )
    return refine(release, needed, vault=vault, ledger=ledger, label=label)


def _workload(release: Release, workload: Any) -> Workload:
    if workload is None:
        return ranges() if release.domain.is_ordered else histogram()
    if not isinstance(workload, Workload):
        raise InvalidInput(f"workload={type(workload).__name__} is not a workload. Use sf.ranges(), sf.histogram(), …")
    workload.check(release.domain)
    return workload
