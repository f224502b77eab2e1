"""The vault: what is kept comes back exactly, nothing else does, and nobody without the key learns or changes a bit."""

from __future__ import annotations

import base64
import os
import pickle
import signal
import stat
import subprocess
import sys
import threading
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from vault_worker import NAME, SIZE, first_state, next_state, refine, start

from sfumato.errors import InvalidInput, VaultError
from sfumato.noise import Refinable, SeededSource, SystemSource
from sfumato.noise.expansion import SMALLEST_RATE
from sfumato.privacy import Ledger, State, Vault
from sfumato.privacy.state import decode, encode

WORKER = Path(__file__).with_name("vault_worker.py")
HEADER = 38  # bytes
posix = pytest.mark.skipif(os.name != "posix", reason="POSIX permissions, processes and limits")
PARTS = {
    "release_id": "a",
    "level": 0,
    "epsilon": Fraction(1),
    "blocks": (),
    "measured": np.ones(2, np.int64),
    "charged": False,
}
NEWEST = (
    "Nothing was drawn or recorded. Put the newest intact copy back; the ledger refuses an older one, since refining "
    "it twice would undo its noise."
)


@pytest.fixture
def vault(tmp_path: Path) -> Vault:
    return Vault(tmp_path / "secrets", key=tmp_path / "vault.key")


@pytest.fixture
def kept(vault: Vault) -> State:
    """A state that is in the vault."""
    state = first_state()
    vault.create(NAME, state)
    return state


def same(first: State, second: State) -> bool:
    return (
        (first.release_id, first.level, first.epsilon, first.token, first.about, first.charged)
        == (second.release_id, second.level, second.epsilon, second.token, second.about, second.charged)
        and np.array_equal(first.measured, second.measured)
        and [block.rate for block in first.blocks] == [block.rate for block in second.blocks]
        and all(
            np.array_equal(a.plus, b.plus) and np.array_equal(a.minus, b.minus)
            for a, b in zip(first.blocks, second.blocks, strict=True)
        )
    )


def _run(action: str, directory: Path, *numbers: int) -> subprocess.Popen[str]:
    command = [sys.executable, str(WORKER), action, str(directory), *map(str, numbers)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def _output(process: subprocess.Popen[str]) -> str:
    out, errors = process.communicate(timeout=300)
    assert process.returncode == 0, errors
    return out


# ------------------------------------------------------------------ what is kept comes back


def test_a_state_comes_back_as_it_was(vault: Vault, kept: State, tmp_path: Path) -> None:
    again = Vault(tmp_path / "secrets", key=tmp_path / "vault.key").read(NAME)
    assert same(again, kept)
    assert again.private
    assert vault.levels(NAME) == [(0, 1)]


@pytest.mark.parametrize("rate", [Fraction(40), Fraction(1), Fraction(1, 1000), Fraction(1, 10**12), SMALLEST_RATE])
@pytest.mark.parametrize("shape", [(), (0,), (3, 5), (2000,)])
def test_noise_of_every_scale_and_shape_comes_back(vault: Vault, rate: Fraction, shape: tuple[int, ...]) -> None:
    block = Refinable.draw(rate, shape, SystemSource())
    state = State(**PARTS | {"epsilon": Fraction(1, 3), "blocks": (block,), "measured": block.value})
    vault.create("a", state)
    assert same(vault.read("a"), state)


@given(st.lists(st.tuples(st.integers(0, 2**61 - 1), st.integers(-(2**63), 2**63 - 1)), max_size=20))
@settings(deadline=None)
def test_any_integers_are_written_exactly(values: list[tuple[int, int]]) -> None:
    """Also those that the rate does not foresee."""
    halves = np.array([half for half, _ in values], dtype=np.int64)
    measured = np.array([number for _, number in values], dtype=np.int64)
    block = Refinable(plus=halves, minus=halves[::-1], rate=Fraction(5), private=True)
    state = State(**PARTS | {"level": 3, "epsilon": Fraction(2, 7), "blocks": (block, block), "measured": measured})
    again, levels, payload = decode(b"".join(encode(state, ((3, state.epsilon),), b"release")))  # type: ignore[arg-type]
    assert same(again, state)
    assert (levels, payload) == (((3, Fraction(2, 7)),), b"release")


def test_the_size_of_a_file_says_nothing_about_the_values() -> None:
    lengths = set()
    for value in (0, 1, 100):
        half = np.full(50, value)
        block = Refinable(plus=half, minus=half, rate=Fraction(1), private=True)
        state = State(**PARTS | {"blocks": (block,), "measured": half * 10**9})
        lengths.add(len(b"".join(encode(state, ()))))
    assert len(lengths) == 1


def test_levels_follow_each_other(vault: Vault, kept: State) -> None:
    second = next_state(kept, Fraction(3, 2))
    vault.update(NAME, second, expected_level=0)
    third = next_state(vault.read(NAME), Fraction(4))
    vault.update(NAME, third, expected_level=1)
    assert same(vault.read(NAME, at_least=2), third)
    assert vault.levels(NAME) == [(0, 1), (1, Fraction(3, 2)), (2, 4)]


def test_what_is_staged_changes_nothing_until_it_is_settled(vault: Vault, kept: State) -> None:
    assert vault.staged(NAME) is None
    vault.stage(NAME, next_state(kept, Fraction(9)), b"too much", expected_level=0)
    finer = next_state(kept, Fraction(2))
    vault.stage(NAME, finer, b"release", expected_level=0)  # in the place of the one that was not charged
    assert same(vault.read(NAME), kept)
    assert vault.get_outbox(NAME, 1) is None
    staged = vault.staged(NAME)
    assert staged is not None
    assert same(staged[0], finer)
    assert staged[1] == b"release"
    assert vault.settle(NAME, 1, 2) == b"release"
    assert same(vault.read(NAME), finer)
    assert vault.staged(NAME) is None
    assert vault.settle(NAME, 1, 2) == b"release"  # again, the same
    assert vault.levels(NAME) == [(0, 1), (1, 2)]


def test_the_outbox_hands_out_the_same_release(vault: Vault, kept: State) -> None:
    assert vault.get_outbox(NAME, 1) is None
    vault.put_outbox(NAME, 1, b"release")
    vault.put_outbox(NAME, 1, b"release")
    assert vault.get_outbox(NAME, 1) == b"release"
    with pytest.raises(VaultError) as refusal:
        vault.put_outbox(NAME, 1, b"another")
    assert str(refusal.value) == (
        f"The vault '{vault.path}' has another release for level 1 of '{NAME}'. Nothing was written. Hand that one out."
    )
    assert vault.get_outbox(NAME, 1) == b"release"


def test_check_reports_every_release(vault: Vault, kept: State) -> None:
    vault.create("other", first_state("other"))
    vault.stage(NAME, next_state(kept, Fraction(2)), b"release", 0)
    vault.settle(NAME, 1, 2)
    first, second = vault.check()
    assert (first.release_id, first.levels, first.outbox, first.intact) == ("other", ((0, 1),), (), True)
    assert (second.release_id, second.levels, second.outbox, second.intact) == (NAME, ((0, 1), (1, 2)), (1,), True)
    outbox = vault.path / f"{NAME}.1.outbox"
    outbox.write_bytes(outbox.read_bytes()[:-1])
    first, second = vault.check()
    assert first.intact
    assert second.problem == (
        f"'{outbox}' was changed or damaged after it was written, or belongs to another release. {NEWEST}"
    )


def test_check_notices_a_lost_state(vault: Vault, kept: State) -> None:
    vault.put_outbox(NAME, 0, b"release")
    (vault.path / f"{NAME}.state").unlink()
    (found,) = vault.check()
    assert found.problem == (
        f"The vault '{vault.path}' has no state of release '{NAME}': it was published without this vault, or the state "
        "was lost. Nothing was drawn or recorded. Without its state a release cannot be refined."
    )


def test_a_relative_path_keeps_its_meaning(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    vault = Vault("secrets", key="vault.key")
    monkeypatch.chdir("/")
    vault.create(NAME, first_state())
    assert (tmp_path / "secrets" / f"{NAME}.state").exists()


# ------------------------------------------------------------------ secrets


def test_no_value_and_no_key_is_shown_or_written_in_the_clear(vault: Vault, tmp_path: Path) -> None:
    half = np.full(20, 123456789)
    block = Refinable(plus=half, minus=half, rate=Fraction(1, 10**9), private=True)
    state = State(**PARTS | {"blocks": (block,), "measured": half})
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


def test_a_pickled_vault_is_the_same_vault(vault: Vault, kept: State, tmp_path: Path) -> None:
    hasty = Vault(vault.path, key=tmp_path / "vault.key", timeout=0.25)
    again = pickle.loads(pickle.dumps(hasty))
    assert same(again.read(NAME), kept)
    assert again._shelf.timeout == 0.25


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
        f"'{path}' was written by a newer sfumato (vault version {{}}; this one reads up to 1), or was damaged. "
        "Nothing was drawn or recorded. Upgrade sfumato."
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
                message = newer.format(data[8]) if data[8] > 1 else changed
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
    vault.update(NAME, next_state(kept, Fraction(2)), 0)
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
        vault.settle(NAME, 1, "1.5")
    assert str(refusal.value) == (
        f"The vault '{vault.path}' has level 1 of release '{NAME}' staged at epsilon=2, but it was charged at 1.5. "
        "Nothing was written. Put the newest copy of the vault back."
    )
    assert same(vault.read(NAME), kept)


def test_content_from_another_version_is_refused_without_quoting_it(vault: Vault, kept: State) -> None:
    from sfumato.privacy.sealing import Kind, Seal

    text = b'{"secret":42}'
    vault._shelf.write(Seal(Kind.STATE, NAME, 0), [len(text).to_bytes(8, "little") + text])
    with pytest.raises(VaultError) as refusal:
        vault.read(NAME)
    assert str(refusal.value) == (
        f"The state of release '{NAME}' in the vault '{vault.path}' is intact but cannot be read: it is from another "
        "version of sfumato. Nothing was drawn or recorded. Use the version that wrote it."
    )
    assert refusal.value.__cause__ is None


# ------------------------------------------------------------------ keys

HOW = "python -c 'import base64, os; print(base64.b64encode(os.urandom(32)).decode())'"


def test_another_key_is_refused(vault: Vault, kept: State, tmp_path: Path) -> None:
    Vault(tmp_path / "elsewhere", key=tmp_path / "other.key")
    with pytest.raises(VaultError) as refusal:
        Vault(tmp_path / "secrets", key=tmp_path / "other.key").read(NAME)
    assert str(refusal.value) == (
        f"'{vault.path / f'{NAME}.state'}' was sealed under another key than the one given. Nothing was drawn or "
        "recorded. Give the key that the vault was made with."
    )


def test_a_lost_key_is_not_replaced_by_a_new_one(vault: Vault, kept: State, tmp_path: Path) -> None:
    key = tmp_path / "vault.key"
    key.unlink()
    with pytest.raises(VaultError) as refusal:
        Vault(tmp_path / "secrets", key=key)
    assert str(refusal.value) == (
        f"The key file '{key}' does not exist, and the vault is not empty: a new key could not open it. Nothing was "
        "created. Put the key back, or give the path where it is."
    )
    assert not key.exists()


def test_the_key_may_come_from_the_environment(
    vault: Vault, kept: State, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SFUMATO_VAULT_KEY", (tmp_path / "vault.key").read_text())
    assert same(Vault(tmp_path / "secrets").read(NAME), kept)


def test_without_any_key_nothing_is_created(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SFUMATO_VAULT_KEY", raising=False)
    with pytest.raises(VaultError) as refusal:
        Vault(tmp_path / "secrets")
    assert str(refusal.value) == (
        "The vault has no key: neither key=… nor the environment variable SFUMATO_VAULT_KEY is given. Nothing was "
        "created. Pass key='vault.key', or set SFUMATO_VAULT_KEY to 32 bytes in base64. Make one with: " + HOW + "."
    )
    assert not list(tmp_path.iterdir())


GARBAGE = ["", "hunter2", "ünsinn", base64.b64encode(b"x" * 31).decode(), base64.b64encode(b"x" * 33).decode()]


@pytest.mark.parametrize("written", GARBAGE)
def test_a_key_that_is_none_is_refused_and_not_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, written: str
) -> None:
    key = tmp_path / "vault.key"
    key.write_text(written, encoding="utf-8")
    key.chmod(0o600)
    monkeypatch.setenv("SFUMATO_VAULT_KEY", written)
    for given_key, where in ((key, f"The key file '{key}'"), (None, "The environment variable SFUMATO_VAULT_KEY")):
        with pytest.raises(VaultError) as refusal:
            Vault(tmp_path / "secrets", key=given_key)
        assert str(refusal.value) == (
            f"{where} does not hold a key: it must be 32 bytes in base64. Nothing was drawn or recorded. Give the key "
            f"of this vault; for a new vault, make one with: {HOW}."
        )
    assert not (tmp_path / "secrets").exists()


@posix
@pytest.mark.parametrize("mode", [0o640, 0o604, 0o660, 0o610])
def test_a_key_that_others_can_use_is_refused(vault: Vault, tmp_path: Path, mode: int) -> None:
    key = tmp_path / "vault.key"
    key.chmod(mode)
    with pytest.raises(VaultError) as refusal:
        Vault(tmp_path / "secrets", key=key)
    assert str(refusal.value) == (
        f"The key file '{key}' is open to other users (permissions {mode:o}). Nothing was drawn or recorded. Make it "
        f"yours alone: chmod 600 '{key}'. If somebody may have read it, the states in the vault are no longer secret."
    )


def test_a_key_in_the_vault_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput) as refusal:
        Vault(tmp_path / "secrets", key=tmp_path / "secrets" / "vault.key")
    assert str(refusal.value) == (
        f"key='{tmp_path / 'secrets' / 'vault.key'}' lies in the vault '{tmp_path / 'secrets'}': whoever copies the "
        "vault would have its key. Nothing was created. Keep the key in another directory."
    )
    assert not (tmp_path / "secrets").exists()


def test_a_directory_is_no_key(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    with pytest.raises(VaultError) as refusal:
        Vault(tmp_path / "secrets", key=tmp_path / "folder")
    assert str(refusal.value) == (
        f"The key file '{tmp_path / 'folder'}' could not be used: Is a directory. Nothing was drawn or recorded. Give "
        "the path of a key in a directory that you can read and write."
    )


def test_two_that_make_the_key_at_once_share_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    link = os.link

    def overtaken(source: Path, target: Path) -> None:
        monkeypatch.setattr(os, "link", link)
        Vault(tmp_path / "secrets", key=tmp_path / "vault.key").create(NAME, first_state())
        link(source, target)

    monkeypatch.setattr(os, "link", overtaken)
    Vault(tmp_path / "secrets", key=tmp_path / "vault.key").read(NAME)
    assert {path.name for path in tmp_path.iterdir()} == {"secrets", "vault.key"}


# ------------------------------------------------------------------ refusals


def test_a_release_without_a_state_cannot_be_refined(vault: Vault, kept: State) -> None:
    message = (
        f"The vault '{vault.path}' has no state of release 'lost': it was published without this vault, or the state "
        "was lost. Nothing was drawn or recorded. Without its state a release cannot be refined."
    )
    for use in (vault.read, vault.levels, lambda name: vault.update(name, next_state(kept, Fraction(2)), 0)):
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
    vault.update(NAME, theirs, 0)
    for write in (lambda: vault.update(NAME, mine, 0), lambda: vault.stage(NAME, mine, b"", 0)):
        with pytest.raises(VaultError) as refusal:
            write()
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
            vault.update(NAME, State(**(parts | change)), 0)
        assert str(refusal.value) == (
            f"state is not the next level of release '{NAME}' in the vault, which is at level 0 with epsilon=1. "
            "Nothing was written. Refine what `read` gives."
        )
    assert same(vault.read(NAME), kept)


def test_nothing_to_settle_is_said(vault: Vault, kept: State) -> None:
    vault.stage(NAME, next_state(kept, Fraction(2)), b"release", 0)
    with pytest.raises(VaultError) as refusal:
        vault.settle(NAME, 2, 3)
    assert str(refusal.value) == (
        f"The vault '{vault.path}' has nothing staged for level 2 of release '{NAME}'. Nothing was written. Stage the "
        "level first; if it was charged already, put the newest copy of the vault back."
    )


def test_seeded_noise_is_refused(vault: Vault, kept: State) -> None:
    block = Refinable.draw(1, 3, SeededSource(1))
    state = State(**PARTS | {"blocks": (block,), "measured": block.value})
    for use in (
        lambda: vault.create("a", state),
        lambda: vault.update(NAME, state, 0),
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


USELESS = (
    "The vault '{}' could not be used: {}. Nothing was handed out, and what was kept is as it was. Give a directory on "
    "a local disk with free space that you can read and write."
)


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


# ------------------------------------------------------------------ alone


def _busy(vault: Vault) -> str:
    return (
        f"Another process is using release '{NAME}' of the vault '{vault.path}'. Nothing was drawn or recorded. Try "
        "again when it has finished."
    )


def test_the_holder_of_a_lock_may_take_it_again_and_others_may_not(vault: Vault, kept: State, tmp_path: Path) -> None:
    hasty = Vault(vault.path, key=tmp_path / "vault.key", timeout=0.05)
    refusals: list[str] = []

    def other_thread() -> None:
        try:
            hasty.put_outbox(NAME, 3, b"release")
        except VaultError as error:
            refusals.append(str(error))

    with hasty.lock(NAME):
        hasty.put_outbox(NAME, 1, b"release")
        thread = threading.Thread(target=other_thread)
        thread.start()
        thread.join()
        with vault.lock("other-release"):
            pass
    assert refusals == [_busy(vault)]
    hasty.put_outbox(NAME, 3, b"release")


def test_an_error_lets_go_of_the_lock_and_is_passed_on_as_it_is(vault: Vault) -> None:
    with pytest.raises(FileNotFoundError), vault.lock(NAME):
        raise FileNotFoundError("mine")
    with Vault(vault.path, key=vault._key_path, timeout=0).lock(NAME):
        pass


@posix
def test_another_process_waits_and_a_killed_one_lets_go(tmp_path: Path) -> None:
    start(tmp_path)
    holder = _run("hold", tmp_path)
    assert holder.stdout is not None
    assert holder.stdout.readline() == "held\n"
    hasty = Vault(tmp_path / "secrets", key=tmp_path / "vault.key", timeout=0.05)
    with pytest.raises(VaultError) as refusal:
        hasty.put_outbox(NAME, 1, b"release")
    assert str(refusal.value) == _busy(hasty)
    assert hasty.read(NAME).level == 0  # reading needs no lock
    holder.send_signal(signal.SIGKILL)
    holder.communicate()
    hasty.put_outbox(NAME, 1, b"release")


@posix
def test_a_fork_does_not_hold_its_parents_lock(tmp_path: Path) -> None:
    start(tmp_path)
    code = (
        "import os, threading; from sfumato.privacy import Vault; from sfumato.errors import VaultError\n"
        f"vault = Vault({str(tmp_path / 'secrets')!r}, key={str(tmp_path / 'vault.key')!r}, timeout=0.05)\n"
        "def attempt():\n"
        "    try:\n"
        f"        vault.put_outbox({NAME!r}, 1, b'x')\n"
        "    except VaultError:\n"
        "        print('refused', flush=True)\n"
        f"with vault.lock({NAME!r}):\n"
        "    child = os.fork()\n"
        "    if child == 0:\n"
        "        attempt()\n"
        "    else:\n"
        "        os.waitpid(child, 0)\n"
        "        thread = threading.Thread(target=attempt)\n"
        "        thread.start()\n"
        "        thread.join()\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "refused\nrefused\n"


@posix
@pytest.mark.slow
def test_processes_that_refine_at_once_make_one_chain(tmp_path: Path) -> None:
    start(tmp_path)
    for worker in [_run("refine_often", tmp_path, 6) for _ in range(2)]:
        _output(worker)
    vault = Vault(tmp_path / "secrets", key=tmp_path / "vault.key")
    assert vault.levels(NAME) == [(level, 1 + level) for level in range(13)]
    assert Ledger(tmp_path / "budget.db").spent == 13


# ------------------------------------------------------------------ crashes


@posix
@pytest.mark.slow
def test_killed_at_any_step_a_level_is_charged_once_and_handed_out_once(tmp_path: Path) -> None:
    """A child is killed before each file it opens, renames, removes or locks; the level is then asked for again."""
    start(tmp_path)
    lines = [line.split() for line in _output(_run("die_at_each_step", tmp_path)).splitlines()]
    assert len(lines) > 20  # it did walk through the steps
    assert lines[-1][0] != "-"
    assert all(first in ("-", second) for first, second in lines)
    vault = Vault(tmp_path / "secrets", key=tmp_path / "vault.key")
    (found,) = vault.check()
    assert found.intact
    assert found.levels == tuple((level, 1 + level) for level in range(len(lines) + 1))
    assert Ledger(tmp_path / "budget.db").spent == 1 + len(lines)
    assert bytes.fromhex(lines[-1][1]) == vault.read(NAME).measured.tobytes()
    assert not [path.name for path in vault.path.iterdir() if path.name.endswith((".part", ".staged"))]


@posix
@pytest.mark.parametrize("limit", [0, 20, 200, 900])
def test_a_full_disk_leaves_the_old_state(tmp_path: Path, limit: int) -> None:
    start(tmp_path)
    vault = Vault(tmp_path / "secrets", key=tmp_path / "vault.key")
    before = vault.read(NAME)
    assert (vault.path / f"{NAME}.state").stat().st_size > 900
    assert _output(_run("fill_disk", tmp_path, limit)) == USELESS.format(vault.path, "File too large") + "\n"
    assert same(vault.read(NAME), before)
    assert {path.name for path in vault.path.iterdir()} == {f"{NAME}.state", f"{NAME}.lock"}
    vault.update(NAME, next_state(before, Fraction(2)), 0)


def test_what_a_killed_writer_left_is_removed(vault: Vault, kept: State) -> None:
    draft = vault.path / f".{NAME}.state.0123456789ab.part"
    draft.write_bytes(b"half")
    vault.update(NAME, next_state(kept, Fraction(2)), 0)
    assert not draft.exists()


def test_an_interrupted_write_leaves_the_old_state(vault: Vault, kept: State, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "fsync", lambda handle: (_ for _ in ()).throw(KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        vault.update(NAME, next_state(kept, Fraction(2)), 0)
    monkeypatch.undo()
    assert same(vault.read(NAME), kept)
    assert {path.name for path in vault.path.iterdir()} == {f"{NAME}.state", f"{NAME}.lock"}


def test_a_rollback_of_the_vault_is_stopped_by_the_ledger(tmp_path: Path) -> None:
    """The older state is authentic. Refining it again would be a second noise; the ledger's counter says no."""
    start(tmp_path)
    path = tmp_path / "secrets" / f"{NAME}.state"
    older = path.read_bytes()
    first = refine(tmp_path, 1)
    path.write_bytes(older)
    (tmp_path / "secrets" / f"{NAME}.1.outbox").unlink()
    with pytest.raises(VaultError, match="has nothing staged for level 1"):
        refine(tmp_path, 1)
    with pytest.raises(VaultError, match="this is an older copy"):
        refine(tmp_path, 2)
    assert Ledger(tmp_path / "budget.db").spent == 2
    assert len(first) == 8 * 2 * SIZE
