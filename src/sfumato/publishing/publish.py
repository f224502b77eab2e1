"""From private counts to a release."""

from __future__ import annotations

import secrets
from collections.abc import Collection
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.counting import Counts, count_points
from sfumato.errors import InvalidInput, PolicyMismatch, SfumatoError
from sfumato.interruptions import undisturbed
from sfumato.mechanism import MOST_RECORDS
from sfumato.noise import Source, SystemSource
from sfumato.noise.gradual import Refinable
from sfumato.noise.source import require
from sfumato.planning import Plan
from sfumato.publishing.account import Account, require_account, warn_without_ledger
from sfumato.publishing.levels import require_vault, store
from sfumato.publishing.witness import remember, require_newest
from sfumato.release import Release
from sfumato.release.outbox import rescued
from sfumato.vault import Vault

LARGEST_TOTAL = MOST_RECORDS


def publish(
    plan: Plan,
    counts: Any = None,
    *,
    points: Any = None,
    filtered: Collection[str] = (),
    ledger: Account | None = None,
    vault: Vault | None = None,
    label: str | None = None,
    source: Source | None = None,
) -> Release:
    """Publish counts (or raw points) by a plan.

    `counts` come from `sf.count`, or are an integer array in the domain's shape. A plan that speaks of a person takes
    only counts whose contributions were bounded. A plan about one record, on counts that were bounded all the same,
    pays for the record that may be counted in the place of one that goes: the guarantee's ε, which the ledger is
    charged, is then as many times the plan's as `guarantee.replacement` says. With a ledger the release is charged
    first; `label` is kept there in plain text, and `filtered` names the attributes by which records were left out
    before they were counted: a change of those may take a record out of the release, which is priced. Without a ledger
    a `sf.NoLedgerWarning` says, once, that nobody adds up what is spent. A step of a stream's account takes the place
    of a ledger in `sfumato.stream`. With a vault the noise is kept there, encrypted, before the release is handed out,
    and the release can be refined later. `source` is for tests and papers: a seeded one makes a release that says it is
    not private, and neither ledger nor vault takes it.
    """
    values, bound = _private_counts(plan, counts, points)
    randomness = SystemSource() if source is None else require(source)
    private = randomness.private and (not isinstance(counts, Counts) or counts.private)
    guarantee = replace(plan.guarantee.counted(bound), private=private)
    release_id = secrets.token_hex(16)
    total = int(values.sum()) if plan.policy.total_is_public else None
    mechanism = plan.mechanism if total is None else plan.mechanism.for_total(total)
    if vault is not None:
        require_vault(vault, mechanism, private)
    payer = ""
    if ledger is None and private:
        warn_without_ledger()
    with undisturbed() as interrupted:  # what was charged is either in hand or kept
        if ledger is not None:
            require_account(ledger)
            guarantee = ledger.promised(guarantee)
            if vault is not None:
                require_newest(vault, ledger)
                payer = ledger.payer
            ledger.charge(
                guarantee,
                label=label or f"{plan.mechanism.name} on {' × '.join(map(str, plan.policy.domain.shape))} cells",
                release_id=release_id,
                **left_out(filtered, dropped_of(counts)),
            )
        measured: NDArray[np.int64] | None = None
        blocks: tuple[Refinable, ...] = ()
        additive = mechanism.additive
        if vault is not None and additive is not None:
            blocks = tuple(Refinable.draw(law.rate, size, randomness) for law, size in additive.noises(total))
            measured = additive.measure(values, [block.value for block in blocks])
            estimates = additive.estimate(measured, total)
        elif mechanism.keeps_measured:
            measured, estimates = mechanism.observe(values, total, randomness)
        else:
            estimates = mechanism.run(values, total, randomness)
        release = Release(
            id=release_id,
            counts=estimates.reshape(plan.policy.domain.shape),
            guarantee=guarantee,
            mechanism=mechanism,
            workload=plan.workload.describe(),
            created=datetime.now(UTC).isoformat(timespec="seconds"),
            measured=measured,
        )
        if plan.publication is not None:
            release = replace(release, origin=plan.publication.origin)
        if vault is not None:
            try:
                store(vault, release, blocks, charged=ledger is not None, payer=payer)
                if ledger is not None:
                    remember(vault, ledger)
            except (SfumatoError, OSError) as error:
                if ledger is None:  # nothing was spent
                    raise
                what = "The vault could not keep what it was given"
                raise rescued(release, what, error, ledger=ledger.path) from error
        if ledger is not None and interrupted():  # whoever asked for it is not there to take it
            raise rescued(release, "It was interrupted", KeyboardInterrupt(), ledger=ledger.path)
        return release


def left_out(filtered: Collection[str], dropped: Collection[str]) -> dict[str, Any]:
    """What an account is told of records that are not in a release; nothing, where all of them are."""
    return {name: names for name, names in (("filtered", filtered), ("dropped", dropped)) if names}


def dropped_of(counts: Any) -> list[str]:
    """The factors beyond whose bounds records were left out of counts."""
    return [factor.name for factor in counts.domain.factors] if isinstance(counts, Counts) and counts.dropped else []


def _private_counts(plan: Plan, counts: Any, points: Any) -> tuple[NDArray[np.int64], int | None]:
    """(flat counts, the bound on one person's records), or a refusal that shows nothing of them."""
    if (counts is None) == (points is None):
        raise InvalidInput("give either counts or points=…, one of the two. Nothing was drawn or recorded.")
    domain = plan.policy.domain
    if points is not None:
        counts = count_points(points, domain)
        counts.report.warn("Nothing is drawn or recorded yet; the release goes on.")
    bound = None
    if isinstance(counts, Counts):
        if counts.domain != domain:
            raise PolicyMismatch(
                f"counts were made on {counts.domain!r}, the plan is for {domain!r}. Nothing was drawn or recorded. "
                "Count on the plan's domain."
            )
        if counts.dropped and not plan.policy.allows_dropping:
            raise PolicyMismatch(
                "counts were made with outside='drop', but the plan's policy does not hide that a record leaves the "
                "box. Nothing was drawn or recorded. Count with outside='clamp'."
            )
        bound, array = counts.max_per_entity, counts.values
    else:
        try:
            array = np.asarray(counts)
        except ValueError as error:
            raise InvalidInput("counts are not an array of numbers. Nothing was drawn or recorded.") from error
        if array.dtype.kind not in "iu":
            raise InvalidInput(
                f"counts of type {array.dtype} are not whole numbers. Nothing was drawn or recorded. "
                "Pass an integer array, such as counts.astype(int)."
            )
        if array.shape != domain.shape:
            raise InvalidInput(
                f"counts of shape {array.shape} do not fit the domain's shape {domain.shape}. "
                "Nothing was drawn or recorded."
            )
    if array.min(initial=0) < 0 or array.sum(dtype=np.float64) > LARGEST_TOTAL:
        raise InvalidInput(
            "counts must be at least 0 and at most 2⁵³ together: these are not counts. Nothing was drawn or recorded."
        )
    if plan.max_per_entity is not None and (bound is None or bound > plan.max_per_entity):
        raise InvalidInput(
            f"the plan promises something about a person with at most {plan.max_per_entity} records, but these "
            f"counts were {'not bounded' if bound is None else f'bounded by {bound}'}. Nothing was drawn or recorded. "
            f"Count with sf.count(…, entity=…, max_per_entity={plan.max_per_entity})."
        )
    return array.astype(np.int64, copy=False).ravel(), bound
