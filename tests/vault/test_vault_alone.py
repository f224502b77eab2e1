"""One process and thread at a time uses a release of the vault."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from vault_states import NAME, posix
from vault_worker import output, run, start

from sfumato.errors import VaultError
from sfumato.ledger import Ledger
from sfumato.vault import State, Vault


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
    holder = run("hold", tmp_path)
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
        "import os, threading; from sfumato.vault import Vault; from sfumato.errors import VaultError\n"
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
    for worker in [run("refine_often", tmp_path, 6) for _ in range(2)]:
        output(worker)
    vault = Vault(tmp_path / "secrets", key=tmp_path / "vault.key")
    assert vault.levels(NAME) == [(level, 1 + level) for level in range(13)]
    assert Ledger(tmp_path / "budget.db").spent == 13
