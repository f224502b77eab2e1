"""The vault: what is kept comes back exactly, level after level, and `check` says what is there."""

from __future__ import annotations

import pickle
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from vault_states import NAME, NEWEST, PARTS, advance, first_state, next_state, same

from sfumato.errors import VaultError
from sfumato.noise import Refinable, SystemSource
from sfumato.noise.expansion import SMALLEST_RATE
from sfumato.vault import State, Vault
from sfumato.vault.state import decode, encode


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
    advance(vault, second)
    third = next_state(vault.read(NAME), Fraction(4))
    advance(vault, third)
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
    assert vault.promote(NAME, 1, 2) == b"release"
    assert same(vault.read(NAME), finer)
    assert vault.staged(NAME) is None
    assert vault.promote(NAME, 1, 2) == b"release"  # again, the same
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
    vault.promote(NAME, 1, 2)
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


def test_a_pickled_vault_is_the_same_vault(vault: Vault, kept: State, tmp_path: Path) -> None:
    hasty = Vault(vault.path, key=tmp_path / "vault.key", timeout=0.25)
    again = pickle.loads(pickle.dumps(hasty))
    assert same(again.read(NAME), kept)
    assert again._shelf.timeout == 0.25
