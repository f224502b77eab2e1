"""The key of a vault: where it comes from, what is none, and that no message shows one."""

from __future__ import annotations

import base64
import os
from pathlib import Path

import pytest
from vault_states import NAME, first_state, posix, same

from sfumato.errors import InvalidInput, VaultError
from sfumato.vault import State, Vault

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
