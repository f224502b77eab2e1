"""From private counts to a release."""

from __future__ import annotations

import secrets
from collections.abc import Collection
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import InvalidInput, SfumatoError
from sfumato.exact import text
from sfumato.interruptions import undisturbed
from sfumato.mechanism import Mechanism
from sfumato.noise import Source, SystemSource
from sfumato.noise.gradual import Refinable
from sfumato.noise.source import require
from sfumato.planning import Plan
from sfumato.promise import Guarantee
from sfumato.publishing.account import Account, require_account, warn_without_ledger
from sfumato.publishing.levels import require_vault, store
from sfumato.publishing.private import are_private, dropped_of, left_out, private_counts
from sfumato.publishing.witness import remember, require_newest
from sfumato.release import Release
from sfumato.release.described import spent_by
from sfumato.release.outbox import rescued
from sfumato.vault import Vault

# The noisy integers, where a release keeps them, and the estimates.
Observed: TypeAlias = tuple[NDArray[np.int64] | None, NDArray[np.float64]]


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
    release_id: str | None = None,
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
    not private, and neither ledger nor vault takes it. `release_id` is the name of the release where whoever publishes
    wrote it down beforehand, to know after a crash whether it was charged; it is drawn here otherwise.
    """
    values, bound = private_counts(plan.policy, plan.max_per_entity, counts, points, plan.mechanism)
    randomness = SystemSource() if source is None else require(source)
    private = randomness.private and are_private(counts)
    guarantee = replace(plan.guarantee.counted(bound), private=private)
    release_id = release_id or secrets.token_hex(16)
    total = int(plan.mechanism.records(values)) if plan.policy.total_is_public else None
    mechanism = plan.mechanism if total is None else plan.mechanism.for_total(total)
    require_kept(mechanism, guarantee)
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
        blocks: tuple[Refinable, ...] = ()
        additive = mechanism.additive
        if vault is not None and additive is not None:
            blocks = tuple(Refinable.draw(law.rate, size, randomness) for law, size in additive.noises(total))
            measured = additive.measure(values, [block.value for block in blocks])
            seen: Observed = measured, additive.estimate(measured, total)
        else:
            seen = observed(mechanism, values, total, randomness)
        release = released(plan, mechanism, guarantee, seen, release_id)
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


def require_kept(mechanism: Mechanism, guarantee: Guarantee) -> None:
    """Refuse a mechanism that would spend more than is promised, whoever put the plan together."""
    spent = spent_by(mechanism, guarantee)
    if spent > guarantee.epsilon:
        raise InvalidInput(
            f"the plan promises epsilon={text(guarantee.epsilon)}, and its mechanism spends {text(spent)}. Nothing was "
            "drawn or recorded. Make the plan with sf.plan(…)."
        )


def observed(mechanism: Mechanism, values: NDArray[np.int64], total: int | None, source: Source) -> Observed:
    """One run: the noisy integers, where a release keeps them, and the estimates."""
    if mechanism.keeps_measured:
        return mechanism.observe(values, total, source)
    return None, mechanism.run(values, total, source)


def released(
    plan: Plan, mechanism: Mechanism, guarantee: Guarantee, seen: Observed, release_id: str | None = None
) -> Release:
    """The release of what one run told. Without an id it gets one of its own."""
    measured, estimates = seen
    return Release(
        id=release_id or secrets.token_hex(16),
        estimates=mechanism.shaped(estimates),
        guarantee=guarantee,
        mechanism=mechanism,
        workload=plan.workload.describe(),
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        measured=measured,
    )
