"""What the vault refuses: states out of line, names and numbers that are none, directories it cannot use."""

from __future__ import annotations

import os
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from vault_states import NAME, PARTS, USELESS, advance, first_state, next_state, posix, same

from sfumato.errors import InvalidInput, VaultError
from sfumato.noise import Refinable, SeededSource
from sfumato.vault import State, Vault


def test_a_release_without_a_state_cannot_be_refined(vault: Vault, kept: State) -> None:
    message = (
        f"The vault '{vault.path}' has no state of release 'lost': it was published without this vault, or the state "
        "was lost. Nothing was drawn or recorded. Without its state a release cannot be refined."
    )
    for use in (vault.read, vault.levels, lambda name: vault.stage(name, next_state(kept, Fraction(2)), b"", 0)):
        with pytest.raises(VaultError) as refusal:
            use("lost")
        assert str(refusal.value) == message


def test_a_second_state_of_one_release_is_refused(vault: Vault, kept: State) -> None:
    with pytest.raises(VaultError) as refusal:
        vault.create(NAME, first_state())
    assert str(refusal.value) == (
        f"The vault '{vault.path}' has a state of release '{NAME}' already. Nothing was written. Refine the release, "
        "or publish under another id."
    )
    assert same(vault.read(NAME), kept)


def test_a_first_state_must_be_that_of_its_release(vault: Vault) -> None:
    for state, which in (
        (first_state("b"), "'b' at level 0"),
        (next_state(first_state("a"), Fraction(2)), "'a' at level 1"),
    ):
        with pytest.raises(InvalidInput) as refusal:
            vault.create("a", state)
        assert str(refusal.value) == f"state is that of release {which}, not of 'a' at level 0. Nothing was written."
    assert vault.check() == ()


def test_a_state_refined_meanwhile_is_not_overwritten(vault: Vault, kept: State) -> None:
    mine, theirs = next_state(kept, Fraction(2)), next_state(kept, Fraction(3))
    advance(vault, theirs)
    with pytest.raises(VaultError) as refusal:
        vault.stage(NAME, mine, b"", 0)
    assert str(refusal.value) == (
        f"The vault '{vault.path}' has release '{NAME}' at level 1, not at level 0: it was refined meanwhile. "
        "Nothing was written. Read the state again."
    )
    assert same(vault.read(NAME), theirs)


def test_only_the_next_level_of_the_same_chain_is_taken(vault: Vault, kept: State) -> None:
    finer = next_state(kept, Fraction(2))
    blocks = finer.blocks
    parts = {name: getattr(finer, name) for name in PARTS}
    for change in (
        {"release_id": "other"},
        {"level": 2},
        {"charged": False},
        {"epsilon": 1},
        {"blocks": blocks[:1]},
        {"blocks": blocks[::-1]},
        {"measured": finer.measured[1:]},
        {"blocks": next_state(first_state(), Fraction(2)).blocks},  # fresh noise: not the noise of this release
    ):
        with pytest.raises(InvalidInput) as refusal:
            vault.stage(NAME, State(**(parts | change)), b"", 0)
        assert str(refusal.value) == (
            f"state is not the next level of release '{NAME}' in the vault, which is at level 0 with epsilon=1. "
            "Nothing was written. Refine what `read` gives."
        )
    assert vault.staged(NAME) is None
    assert same(vault.read(NAME), kept)


def test_nothing_to_settle_is_said(vault: Vault, kept: State) -> None:
    vault.stage(NAME, next_state(kept, Fraction(2)), b"release", 0)
    with pytest.raises(VaultError) as refusal:
        vault.promote(NAME, 2, 3)
    assert str(refusal.value) == (
        f"The vault '{vault.path}' has nothing staged for level 2 of release '{NAME}'. Nothing was written. Stage the "
        "level first; if it was charged already, put the newest copy of the vault back."
    )


def test_seeded_noise_is_refused(vault: Vault, kept: State) -> None:
    block = Refinable.draw(1, 3, SeededSource(1))
    state = State(**PARTS | {"blocks": (block,), "measured": block.value})
    for use in (
        lambda: vault.create("a", state),
        lambda: vault.stage(NAME, state, b"", 0),
    ):
        with pytest.raises(InvalidInput) as refusal:
            use()
        assert str(refusal.value) == (
            "A release made with seeded randomness is not private and has no place in a vault. Nothing was drawn or "
            "recorded. Publish it without a vault, or use the default randomness."
        )


@pytest.mark.parametrize("name", ["", ".", "../up", "a/b", "a.state", "-a", "a" * 129, "ä", 7, "a\n"])
def test_an_id_that_cannot_name_a_file_is_refused(vault: Vault, name: object) -> None:
    for use in (vault.read, vault.levels, vault.staged, lambda name: vault.get_outbox(name, 0)):
        with pytest.raises(InvalidInput) as refusal:
            use(name)  # type: ignore[arg-type]
        assert str(refusal.value) == (
            f"release_id={name!r} cannot name a file of the vault: use at most 128 letters, digits, '-' and '_', the "
            "first a letter or digit. Nothing was drawn or recorded."
        )


@pytest.mark.parametrize("level", [-1, True, "1", 1.0, 1 << 63])
def test_a_level_that_is_no_number_is_refused(vault: Vault, level: object) -> None:
    for use in (lambda: vault.put_outbox(NAME, level, b""), lambda: vault.get_outbox(NAME, level)):  # type: ignore[arg-type]
        with pytest.raises(InvalidInput) as refusal:
            use()
        assert str(refusal.value) == (
            f"level={level!r} must be a whole number of at least 0. Nothing was drawn or recorded."
        )


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"level": -1}, "level=-1 must be a whole number of at least 0."),
        ({"level": True}, "level=True must be a whole number of at least 0."),
        ({"epsilon": 0}, "epsilon=0 must be greater than zero. Nothing was drawn or recorded."),
        ({"blocks": (1,)}, "blocks must be Refinable noise, one for each block of the mechanism."),
        ({"measured": [1]}, "measured of type list must be an array of int64."),
        ({"measured": np.ones(2)}, "measured of type float64 must be an array of int64."),
        ({"charged": 1}, "charged=1 must be True or False."),
        ({"token": b""}, "token of type bytes must be a string."),
    ],
)
def test_what_is_no_state_is_refused(change: dict[str, object], message: str) -> None:
    with pytest.raises(InvalidInput) as refusal:
        State(**PARTS | change)  # type: ignore[arg-type]
    assert str(refusal.value) == message


def test_something_else_than_a_state_is_refused(vault: Vault) -> None:
    with pytest.raises(InvalidInput) as refusal:
        vault.create("a", {"level": 0})  # type: ignore[arg-type]
    assert str(refusal.value) == "state=dict is not the state of a release. Nothing was written."


def test_an_empty_path_is_refused(tmp_path: Path) -> None:
    for arguments, name in ((("", "key"), "path"), ((tmp_path, ""), "key")):
        with pytest.raises(InvalidInput) as refusal:
            Vault(*arguments)
        assert str(refusal.value) == f"{name}='' is not a path. Nothing was created."


def test_a_file_is_no_vault(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(VaultError) as refusal:
        Vault(tmp_path / "file", key=tmp_path / "vault.key")
    assert str(refusal.value) == USELESS.format(tmp_path / "file", "Not a directory")
    assert not (tmp_path / "vault.key").exists()


def test_a_vault_in_a_missing_directory_is_refused(vault: Vault, tmp_path: Path) -> None:
    with pytest.raises(VaultError) as refusal:
        Vault(tmp_path / "none" / "secrets", key=tmp_path / "vault.key")
    assert str(refusal.value) == USELESS.format(tmp_path / "none" / "secrets", "No such file or directory")


@posix
def test_a_vault_that_others_can_change_is_refused(vault: Vault, tmp_path: Path) -> None:
    vault.path.chmod(0o770)
    with pytest.raises(VaultError) as refusal:
        Vault(vault.path, key=tmp_path / "vault.key")
    assert str(refusal.value) == (
        f"The vault '{vault.path}' can be changed by other users (permissions 770). Nothing was drawn or recorded. "
        f"Make it yours alone: chmod 700 '{vault.path}'."
    )


@posix
@pytest.mark.skipif(hasattr(os, "geteuid") and os.geteuid() == 0, reason="nothing is forbidden to root")
def test_a_vault_that_cannot_be_written_is_refused(vault: Vault, kept: State) -> None:
    vault.path.chmod(0o500)
    with pytest.raises(VaultError) as refusal:
        vault.create("other", first_state("other"))
    vault.path.chmod(0o700)
    assert str(refusal.value) == USELESS.format(vault.path, "Permission denied")
