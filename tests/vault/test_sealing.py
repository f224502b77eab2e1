"""Nobody without the key learns a bit of what is in the vault, and nobody changes one unnoticed."""

from __future__ import annotations

import base64
import pickle
import stat
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from vault_states import NAME, NEWEST, PARTS, advance, first_state, next_state, posix, same

from sfumato.errors import VaultError
from sfumato.noise import Refinable
from sfumato.vault import State, Vault
from sfumato.vault.sealing import VERSION, Kind, Seal

HEADER = 38  # bytes

# ------------------------------------------------------------------ secrets


def test_no_value_and_no_key_is_shown_or_written_in_the_clear(vault: Vault, tmp_path: Path) -> None:
    half = np.full(20, 123456789)
    block = Refinable(plus=half, minus=half, rate=Fraction(1, 10**9), private=True)
    state = State(**PARTS | {"blocks": (block,), "measured": half, "token": "deadbeef"})
    vault.create("a", state)
    key = (tmp_path / "vault.key").read_text().strip()
    sealed = (vault.path / "a.state").read_bytes()
    shown = [repr(vault), str(vault), repr(state), repr(vault.check()), repr(vault._shelf._sealer)]
    shown += [str(pickle.dumps(vault))]
    for text in shown:
        assert key not in text
        assert "123456789" not in text
        assert repr(base64.b64decode(key))[2:-1] not in text
    assert half.tobytes()[:8] not in sealed
    assert b"deadbeef" not in sealed
    assert repr(state) == "State('a', level=0, epsilon=1, 1 blocks, measured of shape (20,))"


def test_two_writings_of_one_state_have_nothing_in_common(tmp_path: Path) -> None:
    state, sealed = first_state(), []
    for name in ("one", "two"):
        Vault(tmp_path / name, key=tmp_path / "vault.key").create(NAME, state)
        sealed.append((tmp_path / name / f"{NAME}.state").read_bytes())
    first, second = (np.frombuffer(data[HEADER:], dtype=np.uint8) for data in sealed)
    assert sealed[0][26:HEADER] != sealed[1][26:HEADER]
    assert (first == second).mean() < 0.05


@posix
def test_files_are_readable_by_their_owner_alone(vault: Vault, kept: State, tmp_path: Path) -> None:
    vault.put_outbox(NAME, 0, b"release")
    assert stat.S_IMODE(vault.path.stat().st_mode) == 0o700
    files = [tmp_path / "vault.key", *vault.path.iterdir()]
    assert {stat.S_IMODE(path.stat().st_mode) for path in files} == {0o600}
    assert {path.name for path in vault.path.iterdir()} == {f"{NAME}.state", f"{NAME}.0.outbox", f"{NAME}.lock"}


# ------------------------------------------------------------------ tampering


def test_a_change_of_any_byte_is_noticed(vault: Vault) -> None:
    vault.create(NAME, first_state(size=2))
    path = vault.path / f"{NAME}.state"
    whole = path.read_bytes()
    foreign = f"'{path}' is not a file of a vault, or it was cut short. {NEWEST}"
    newer = (
        f"'{path}' was written by a newer sfumato (vault version {{}}; this one reads up to {VERSION}), or was "
        "damaged. Nothing was drawn or recorded. Upgrade sfumato."
    )
    another = (
        f"'{path}' was sealed under another key than the one given. Nothing was drawn or recorded. Give the key that "
        "the vault was made with."
    )
    changed = f"'{path}' was changed or damaged after it was written, or belongs to another release. {NEWEST}"
    for place in range(len(whole)):
        for bit in (0x01, 0x80):
            data = bytearray(whole)
            data[place] ^= bit
            path.write_bytes(data)
            with pytest.raises(VaultError) as refusal:
                vault.read(NAME)
            if place < 8:
                message = foreign
            elif place == 8:
                message = newer.format(data[8]) if data[8] > VERSION else changed
            else:
                message = another if 18 <= place < 26 else changed
            assert str(refusal.value) == message, place
    path.write_bytes(whole)
    vault.read(NAME)


def test_a_file_cut_or_lengthened_anywhere_is_noticed(vault: Vault) -> None:
    vault.create(NAME, first_state(size=2))
    path = vault.path / f"{NAME}.state"
    whole = path.read_bytes()
    for data in [*(whole[:length] for length in range(len(whole))), whole + b"\0"]:
        path.write_bytes(data)
        with pytest.raises(VaultError, match=r"cut short|changed or damaged"):
            vault.read(NAME)


def test_a_file_in_the_place_of_another_is_noticed(vault: Vault, kept: State) -> None:
    vault.create("other", first_state("other"))
    (vault.path / "other.state").replace(vault.path / f"{NAME}.state")
    with pytest.raises(VaultError) as refusal:
        vault.read(NAME)
    assert str(refusal.value) == (
        f"'{vault.path / f'{NAME}.state'}' was changed or damaged after it was written, or belongs to another release. "
        f"{NEWEST}"
    )


def test_a_state_does_not_pass_for_a_staged_one(vault: Vault, kept: State) -> None:
    path = vault.path / f"{NAME}.staged"
    path.write_bytes((vault.path / f"{NAME}.state").read_bytes())
    with pytest.raises(VaultError) as refusal:
        vault.staged(NAME)
    assert str(refusal.value) == f"'{path}' holds something else than its name says. {NEWEST}"


def test_the_release_of_another_level_is_not_handed_out(vault: Vault, kept: State) -> None:
    vault.put_outbox(NAME, 1, b"release")
    (vault.path / f"{NAME}.1.outbox").replace(vault.path / f"{NAME}.2.outbox")
    with pytest.raises(VaultError) as refusal:
        vault.get_outbox(NAME, 2)
    assert str(refusal.value) == (
        f"The vault '{vault.path}' has the release of level 1 of '{NAME}' in the place of level 2: a file was renamed. "
        "Nothing was drawn or recorded. Put the newest intact copy back."
    )


def test_an_older_state_is_refused(vault: Vault, kept: State) -> None:
    path = vault.path / f"{NAME}.state"
    older = path.read_bytes()
    advance(vault, next_state(kept, Fraction(2)))
    path.write_bytes(older)  # authentic, and out of date: the ledger knows
    with pytest.raises(VaultError) as refusal:
        vault.read(NAME, at_least=1)
    assert str(refusal.value) == (
        f"The vault '{vault.path}' has release '{NAME}' at level 0, but the ledger remembers level 1: this is an older "
        "copy, and refining it again would undo its noise. Nothing was drawn or recorded. Put the newest copy of the "
        "vault back."
    )


def test_a_staged_level_that_was_charged_otherwise_is_refused(vault: Vault, kept: State) -> None:
    vault.stage(NAME, next_state(kept, Fraction(2)), b"release", 0)
    with pytest.raises(VaultError) as refusal:
        vault.promote(NAME, 1, "1.5")
    assert str(refusal.value) == (
        f"The vault '{vault.path}' has level 1 of release '{NAME}' staged at epsilon=2, but it was charged at 1.5. "
        "Nothing was written. Put the newest copy of the vault back."
    )
    assert same(vault.read(NAME), kept)


def test_content_from_another_version_is_refused_without_quoting_it(vault: Vault, kept: State) -> None:
    text = b'{"secret":42}'
    vault._shelf.write(Seal(Kind.STATE, NAME, 0), [len(text).to_bytes(8, "little") + text])
    with pytest.raises(VaultError) as refusal:
        vault.read(NAME)
    assert str(refusal.value) == (
        f"The state of release '{NAME}' in the vault '{vault.path}' is intact but cannot be read: it is from another "
        "version of sfumato. Nothing was drawn or recorded. Use the version that wrote it."
    )
    assert refusal.value.__cause__ is None
