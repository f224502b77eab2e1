"""The levels of a release: its noise kept in a vault, and lowered later without another look at the data.

Promise: a release and all its levels together are private at the largest ε among them. Every noise η is refined along
one chain (`sfumato.noise.gradual`), and the finer release is the published one plus what the noise adds less:
`measured + disturbance(η₂) - disturbance(η₁)`, in integers. No counts are needed.

The order of events (`sfumato.vault.vault`): the finer level is drawn and staged in the vault, where nobody sees it;
then it is charged and counted by the ledger, in one transaction; then it becomes the state and goes to the outbox;
then it is handed out, from there. Whatever is interrupted goes on where it stood: the same level is never drawn twice
once it was charged, and never charged twice. A token that the ledger keeps with the charge says which noise was paid
for, so that a copy of the vault hands out no other.

The vault is a witness against ledgers, too. The name of the account that paid is sealed with the noise: another one
pays for nothing of it. And a ledger that counts fewer levels than the vault has, or has not come as far as the vault
remembers (`sfumato.publishing.witness`), is an older copy, which forgot what was spent: nothing is published or handed
out before the newest one is back, not even what was made.

The release that is handed in names what is to be refined, and nothing more: its description is compared with the one
that was sealed with the noise. Under an edited one the noise would no longer fit the counts.
"""

from __future__ import annotations

import json
import secrets
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import InvalidInput, VaultError
from sfumato.exact import Number, positive_fraction, text
from sfumato.mechanism import AdditiveMechanism, Mechanism
from sfumato.noise import SystemSource
from sfumato.noise.gradual import Refinable
from sfumato.promise import Epsilon, Guarantee
from sfumato.publishing.account import Account, require_account, warn_without_ledger
from sfumato.publishing.witness import remember, require_newest
from sfumato.release import Release
from sfumato.release.described import honest
from sfumato.release.files import from_bytes
from sfumato.release.writing import to_bytes
from sfumato.vault import Vault
from sfumato.vault.state import State


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


def store(vault: Vault, release: Release, blocks: tuple[Refinable, ...], *, charged: bool, payer: str = "") -> None:
    """Keep the noise of a new release, and who paid for it."""
    vault.create(release.id, _state(release, blocks, 0, charged=charged, payer=payer))


def refine(
    release: Release,
    epsilon: Number,
    *,
    vault: Vault,
    ledger: Account | None = None,
    label: str | None = None,
) -> Release:
    """The same release at a larger ε.

    Its expected error is that of a fresh release of the same mechanism at the new ε, and the ledger is charged the
    difference alone. A level that was made before comes back as it was, and costs nothing. Any level of the release
    will do as a start; a level below the finest one that was never made cannot be had any more.
    """
    asked = Epsilon(positive_fraction(epsilon, "epsilon"))
    _require_refinable(release, vault, ledger)
    if asked <= release.guarantee.epsilon:
        raise InvalidInput(
            f"epsilon={text(asked)} does not refine this release, which has epsilon={text(release.guarantee.epsilon)} "
            "already. Nothing was drawn or recorded. Use a larger one."
        )
    with vault.lock(release.id):
        if ledger is not None:
            require_newest(vault, ledger)
        counted = None if ledger is None else ledger.level(release.id)
        if ledger is not None and counted is None:
            raise InvalidInput(
                f"release '{release.id}' was not charged to {_named(ledger)}. Nothing was drawn or recorded. Give the "
                "ledger that it was charged to."
            )
        payer = "" if ledger is None else ledger.payer
        _finish(vault, release.id, ledger, counted, payer)
        state = vault.read(release.id, at_least=0 if counted is None else counted[0])
        made = {epsilon: level for level, epsilon in vault.levels(release.id)}
        _require_payer(state, ledger, payer)
        if ledger is not None and counted is not None:
            _require_agreement(state, made, ledger, counted)
        kept = _Kept.of(state)
        kept.require(release)
        if asked in made:
            return _handed_out(vault, release.id, made[asked])
        if asked < state.epsilon:
            raise InvalidInput(
                f"epsilon={text(asked)} lies below {text(state.epsilon)}, the finest level of this release, and was "
                f"not made on the way. Nothing was drawn or recorded. Ask for {text(state.epsilon)}, which costs "
                "nothing more, or for a larger one."
            )
        if ledger is None:
            warn_without_ledger()
        staged = vault.staged(release.id)
        if staged is None or (staged[0].epsilon, staged[0].payer) != (asked, payer):
            if ledger is not None:
                ledger.quote_level(release.id, epsilon=asked)
            finer, blocks = _finer(kept, state, asked)
            next_state = _state(finer, blocks, state.level + 1, charged=state.charged, payer=payer)
            vault.stage(release.id, next_state, to_bytes(finer), state.level)
        else:
            next_state = staged[0]
        level = state.level + 1
        if ledger is not None:
            ledger.raise_level(
                release.id,
                level=level,
                epsilon=asked,
                label=label or f"level {level} of {kept.mechanism.name}",
                token=next_state.token,
            )
            remember(vault, ledger)
        return from_bytes(vault.promote(release.id, level, asked), "the vault's outbox")


def _finish(
    vault: Vault,
    release_id: str,
    ledger: Account | None,
    counted: tuple[int, Epsilon] | None,
    payer: str,
) -> None:
    """Settle a level that was charged before an interruption: if it is the noise that was charged, to its payer."""
    staged = vault.staged(release_id)
    if staged is None or ledger is None or counted is None or staged[0].level != counted[0]:
        return
    _require_payer(staged[0], ledger, payer)
    if ledger.stamp(release_id, counted[0]) != staged[0].token:
        raise VaultError(
            f"level {counted[0]} of release '{release_id}' was charged for another copy of this vault, and made there: "
            "handing out what is staged here would be a second noise. Nothing was handed out. Put the newest copy of "
            "the vault back."
        )
    vault.promote(release_id, *counted)


def _require_payer(state: State, ledger: Account | None, payer: str) -> None:
    """Refuse to go on without the one who paid so far, or with another. What nobody is known to have paid may begin."""
    if ledger is None and (state.charged or state.payer):
        raise InvalidInput(
            f"release '{state.release_id}' was charged to a ledger, and so must its levels be. Nothing was drawn or "
            "recorded. Give ledger=…, the one it was published with."
        )
    if state.payer not in ("", payer):
        raise VaultError(
            f"release '{state.release_id}' was not paid for by {_named(ledger)}: the vault has it sealed with the name "
            "of another ledger, account or step. Nothing was drawn or recorded. Give the ledger that the release was "
            "charged to; a ledger that was made anew in its place has another name."
        )


def _require_agreement(state: State, made: dict[Epsilon, int], ledger: Account, counted: tuple[int, Epsilon]) -> None:
    """Refuse a ledger that the vault proves wrong: one that forgot levels, or that charged for other ones."""
    level, epsilon = counted
    if state.level > level:
        raise VaultError(
            f"the vault has release '{state.release_id}' at level {state.level}, but {_named(ledger)} knows of level "
            f"{level} alone: this is an older copy of the ledger, and what was spent since is forgotten in it. Nothing "
            "was drawn or recorded. Put the newest copy of the ledger back."
        )
    token = ledger.stamp(state.release_id, level) if level else None
    if made.get(epsilon) != level or token not in (None, state.token):
        raise VaultError(
            f"the vault and {_named(ledger)} disagree about the levels of release '{state.release_id}'. Nothing was "
            "drawn or recorded. Give the ledger that the release was charged to, and the newest copy of the vault."
        )


def _handed_out(vault: Vault, release_id: str, level: int) -> Release:
    content = vault.get_outbox(release_id, level)
    if content is None:
        raise VaultError(
            f"level {level} of release '{release_id}' was made, but its release is not in the vault's outbox any more. "
            "Nothing was drawn or recorded. Use the copy that was handed out, or ask for a finer level."
        )
    return from_bytes(content, "the vault's outbox")


@dataclass(frozen=True, kw_only=True)
class _Kept:
    """What the vault knows of a release. A file that somebody hands in may have been edited; this has not."""

    guarantee: Guarantee
    mechanism: AdditiveMechanism
    workload: str
    total: int | None

    @classmethod
    def of(cls, state: State) -> _Kept:
        """From the description that was sealed with the noise."""
        about = json.loads(state.about)
        guarantee, mechanism = honest("the vault", about)
        if mechanism.additive is None:
            raise VaultError(f"the state of release '{state.release_id}' in the vault is of no mechanism with noise.")
        return cls(guarantee=guarantee, mechanism=mechanism.additive, workload=about["workload"], total=about["total"])

    def require(self, release: Release) -> None:
        """Refuse a release that says something else about itself."""
        mine, given = self.guarantee, release.guarantee
        same = (
            mine.policy == given.policy
            and (mine.unit, mine.max_per_entity, mine.window) == (given.unit, given.max_per_entity, given.window)
            and mine.replacement == given.replacement
            and (self.mechanism.name, self.mechanism.options) == (release.mechanism.name, release.mechanism.options)
        )
        if not same:
            raise VaultError(
                f"release '{release.id}' is not what the vault knows under this name: it was edited. Nothing was drawn "
                "or recorded. Load the file that was saved when it was published."
            )


def _finer(kept: _Kept, state: State, epsilon: Epsilon) -> tuple[Release, tuple[Refinable, ...]]:
    """The next level, drawn: all rates grow as ε does."""
    grown = epsilon / state.epsilon
    source = SystemSource()
    blocks = tuple(block.refine(block.rate * grown, source) for block in state.blocks)
    finer = replace(kept.mechanism, epsilon=kept.mechanism.epsilon * grown)
    laws = [(law.rate, size) for law, size in finer.noises(kept.total)]
    if laws != [(block.rate, block.size) for block in blocks]:
        raise VaultError(
            f"the state of release '{state.release_id}' in the vault does not fit its own description. Nothing was "
            "handed out. Put the newest intact copy of the vault back."
        )
    measured = state.measured + _added(finer, blocks) - _added(kept.mechanism, state.blocks)
    refined = Release(
        id=state.release_id,
        estimates=finer.shaped(finer.estimate(measured, kept.total)),
        guarantee=replace(kept.guarantee, epsilon=epsilon),
        mechanism=finer,
        workload=kept.workload,
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        measured=measured,
    )
    return refined, blocks


def _added(mechanism: AdditiveMechanism, blocks: tuple[Refinable, ...]) -> NDArray[np.int64]:
    return mechanism.disturbance([block.value for block in blocks])


def _state(release: Release, blocks: tuple[Refinable, ...], level: int, *, charged: bool, payer: str) -> State:
    if release.measured is None:
        raise InvalidInput("a release without its noisy integers cannot be kept in a vault.")
    about = {
        "guarantee": release.guarantee.to_dict(),
        "mechanism": release.mechanism.spec(),
        "workload": release.workload,
        "total": release.exact_total,
    }
    return State(
        release_id=release.id,
        level=level,
        epsilon=release.guarantee.epsilon,
        blocks=blocks,
        measured=np.array(release.measured),
        charged=charged,
        payer=payer,
        token=secrets.token_hex(16),
        about=json.dumps(about, sort_keys=True, allow_nan=False),
    )


def _require_refinable(release: Any, vault: Any, ledger: Any) -> None:
    if not isinstance(release, Release):
        raise InvalidInput(f"release={type(release).__name__} is not a release.")
    _require_vault(vault)
    if ledger is not None:
        require_account(ledger)
    mechanism = release.mechanism
    if not mechanism.refinable:
        raise InvalidInput(
            f"a release by mechanism={mechanism.name!r} cannot be refined: what it publishes depends on the data in "
            "more ways than by added noise. Nothing was drawn or recorded. Publish anew with another mechanism."
        )
    if release.measured is None:
        raise InvalidInput(
            "this release was made without a vault, and its noise is forgotten. Nothing was drawn or recorded. Publish "
            "with vault=… to be able to refine later."
        )


def _named(ledger: Account | None) -> str:
    return "nobody" if ledger is None else ledger.where


def _require_vault(vault: Any) -> None:
    if not isinstance(vault, Vault):
        raise InvalidInput(
            f"vault={type(vault).__name__} is not a vault. Nothing was drawn or recorded. Open one with "
            "sf.Vault(path, key=…)."
        )
