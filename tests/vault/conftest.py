"""What tests of the vault share: a vault, and a state that is in it."""

from __future__ import annotations

from pathlib import Path

import pytest
from vault_states import NAME, first_state

from sfumato.vault import State, Vault


@pytest.fixture
def vault(tmp_path: Path) -> Vault:
    return Vault(tmp_path / "secrets", key=tmp_path / "vault.key")


@pytest.fixture
def kept(vault: Vault) -> State:
    """A state that is in the vault."""
    state = first_state()
    vault.create(NAME, state)
    return state
