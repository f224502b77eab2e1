"""The levels of a release: its noise kept in a vault, and lowered later without another look at the data.

Promise: a release and all its levels together are private at the largest ε among them. Every noise η is refined along
one chain (`sfumato.noise.gradual`), and the finer release is the published one plus what the noise adds less:
`measured + disturbance(η₂) - disturbance(η₁)`, in integers. No counts are needed.

The order of events (`sfumato.privacy.vault`): the finer level is drawn and staged in the vault, where nobody sees it;
then it is charged and counted by the ledger, in one transaction; then it becomes the state and goes to the outbox;
then it is handed out, from there. Whatever is interrupted goes on where it stood: the same level is never drawn twice
once it was charged, and never charged twice.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import InvalidInput, VaultError
from sfumato.exact import Number, positive_fraction, text
from sfumato.mechanism import AdditiveMechanism, Mechanism
from sfumato.noise import SystemSource
from sfumato.noise.gradual import Refinable
from sfumato.privacy import Epsilon, Ledger, Vault
from sfumato.privacy.state import State
from sfumato.publish.step import StreamStep
from sfumato.release import Release
from sfumato.release.files import digest, from_bytes, to_bytes


def require_vault(vault: Any, mechanism: Mechanism, private: bool) -> None:
    """Refuse what a vault cannot keep, before anything is charged."""
    _require_vault(vault)
    if not mechanism.refinable:
        raise InvalidInput(
            f"mechanism={mechanism.name!r} cannot be refined later: what it publishes depends on the data in more ways "
            "than by added noise. Nothing was drawn or recorded. Publish without a vault, or with another mechanism."
        )
    if not private:
        raise InvalidInput(
            "A release made with seeded randomness is not private and has no place in a vault. Nothing was drawn or "
            "recorded. Publish it without a vault, or use the default randomness."
        )


def store(vault: Vault, release: Release, blocks: tuple[Refinable, ...], *, charged: bool) -> None:
    """Keep the noise of a new release."""
    vault.create(release.id, _state(release, blocks, 0, charged=charged))


def refine(
    release: Release,
    epsilon: Number,
    *,
    vault: Vault,
    ledger: Ledger | StreamStep | None = None,
    label: str | None = None,
) -> Release:
    """The same release at a larger ε.

    Its expected error is that of a fresh release of the same mechanism at the new ε, and the ledger is charged the
    difference alone. A level that was made before comes back as it was, and costs nothing. Any level of the release
    will do as a start; a level below the finest one that was never made cannot be had any more.
    """
    asked = Epsilon(positive_fraction(epsilon, "epsilon"))
    mechanism = _refinable(release, vault, ledger)
    if asked <= release.guarantee.epsilon:
        raise InvalidInput(
            f"epsilon={text(asked)} does not refine this release, which has epsilon={text(release.guarantee.epsilon)} "
            "already. Nothing was drawn or recorded. Use a larger one."
        )
    with vault.lock(release.id):
        counted = None if ledger is None else ledger.level(release.id)
        if ledger is not None and counted is None:
            raise InvalidInput(
                f"release '{release.id}' was not charged to {_where(ledger)}. Nothing was drawn or recorded. Give the "
                "ledger that it was charged to."
            )
        _finish(vault, release.id, counted)
        state = vault.read(release.id, at_least=0 if counted is None else counted[0])
        made = {epsilon: level for level, epsilon in vault.levels(release.id)}
        if asked in made:
            return _handed_out(vault, release.id, made[asked])
        if state.charged and ledger is None:
            raise InvalidInput(
                f"release '{release.id}' was charged to a ledger, and so must its levels be. Nothing was drawn or "
                "recorded. Give ledger=…, the one it was published with."
            )
        if asked < state.epsilon:
            raise InvalidInput(
                f"epsilon={text(asked)} lies below {text(state.epsilon)}, the finest level of this release, and was "
                f"not made on the way. Nothing was drawn or recorded. Ask for {text(state.epsilon)}, which costs "
                "nothing more, or for a larger one."
            )
        staged = vault.staged(release.id)
        if staged is None or staged[0].epsilon != asked:
            if ledger is not None:
                ledger.quote_level(release.id, epsilon=asked)
            finer, blocks = _finer(release, mechanism, state, asked)
            vault.stage(
                release.id,
                _state(finer, blocks, state.level + 1, charged=state.charged),
                to_bytes(finer),
                state.level,
            )
        level = state.level + 1
        if ledger is not None:
            ledger.raise_level(
                release.id, level=level, epsilon=asked, label=label or f"level {level} of {mechanism.name}"
            )
        return from_bytes(vault.settle(release.id, level, asked), "the vault's outbox")


def _finish(vault: Vault, release_id: str, counted: tuple[int, Epsilon] | None) -> None:
    """Settle a level that was charged before an interruption."""
    staged = vault.staged(release_id)
    if staged is not None and counted is not None and staged[0].level == counted[0]:
        vault.settle(release_id, *counted)


def _handed_out(vault: Vault, release_id: str, level: int) -> Release:
    content = vault.get_outbox(release_id, level)
    if content is None:
        raise VaultError(
            f"level {level} of release '{release_id}' was made, but its release is not in the vault's outbox any more. "
            "Nothing was drawn or recorded. Use the copy that was handed out, or ask for a finer level."
        )
    return from_bytes(content, "the vault's outbox")


def _finer(
    release: Release, mechanism: AdditiveMechanism, state: State, epsilon: Epsilon
) -> tuple[Release, tuple[Refinable, ...]]:
    """The next level, drawn: all rates grow as ε does."""
    grown = epsilon / state.epsilon
    source = SystemSource()
    blocks = tuple(block.refine(block.rate * grown, source) for block in state.blocks)
    finer = replace(mechanism, epsilon=mechanism.epsilon * epsilon / release.guarantee.epsilon)
    total = int(release.total) if release.guarantee.policy.total_is_public else None
    laws = [(law.rate, size) for law, size in finer.noises(total)]
    if laws != [(block.rate, block.size) for block in blocks]:
        raise VaultError(
            f"the state of release '{release.id}' in the vault does not fit this release. Nothing was handed out. Load "
            "the release again from the file that was saved when it was published."
        )
    measured = state.measured + _added(finer, blocks) - _added(mechanism, state.blocks)
    estimates = finer.estimate(measured, total)
    refined = Release(
        id=release.id,
        counts=estimates.reshape(release.domain.shape),
        guarantee=replace(release.guarantee, epsilon=epsilon),
        mechanism=finer,
        workload=release.workload,
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        measured=measured,
    )
    return refined, blocks


def _added(mechanism: AdditiveMechanism, blocks: tuple[Refinable, ...]) -> NDArray[np.int64]:
    return mechanism.disturbance([block.value for block in blocks])


def _state(release: Release, blocks: tuple[Refinable, ...], level: int, *, charged: bool) -> State:
    if release.measured is None:
        raise InvalidInput("a release without its noisy integers cannot be kept in a vault.")
    return State(
        release_id=release.id,
        level=level,
        epsilon=release.guarantee.epsilon,
        blocks=blocks,
        measured=np.array(release.measured),
        digest=digest(release),
        charged=charged,
    )


def _refinable(release: Any, vault: Any, ledger: Any) -> AdditiveMechanism:
    if not isinstance(release, Release):
        raise InvalidInput(f"release={type(release).__name__} is not a release.")
    _require_vault(vault)
    if ledger is not None and not isinstance(ledger, (Ledger, StreamStep)):
        raise InvalidInput(f"ledger={type(ledger).__name__} is not a ledger. Open one with sf.Ledger(path, epsilon=…).")
    mechanism = release.mechanism
    if not isinstance(mechanism, AdditiveMechanism):
        raise InvalidInput(
            f"a release by mechanism={mechanism.name!r} cannot be refined: what it publishes depends on the data in "
            "more ways than by added noise. Nothing was drawn or recorded. Publish anew with another mechanism."
        )
    if release.measured is None:
        raise InvalidInput(
            "this release was made without a vault, and its noise is forgotten. Nothing was drawn or recorded. Publish "
            "with vault=… to be able to refine later."
        )
    return mechanism


def _where(ledger: Ledger | StreamStep) -> str:
    return f"account '{ledger.dataset}' of '{ledger.path}'" if isinstance(ledger, Ledger) else str(ledger)


def _require_vault(vault: Any) -> None:
    if not isinstance(vault, Vault):
        raise InvalidInput(
            f"vault={type(vault).__name__} is not a vault. Nothing was drawn or recorded. Open one with "
            "sf.Vault(path, key=…)."
        )
