"""A fork waits for what is done with files, and for nothing that waits for the fork."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import sfumato as sf

ENVIRONMENT = {**os.environ, "PYTHONPATH": str(Path(sf.__file__).parent.parent)}

# A thread that is inside a gate takes it again (as a backup does), or another one, while a fork waits for it.
FORK_MEANWHILE = """
import os, sys, threading, time
from pathlib import Path
from sfumato.ledger import gates

first, second = Path(sys.argv[1]) / "first", Path(sys.argv[1]) / "second"
first.touch(), second.touch()
order = [first, second] if sys.argv[3] == "forwards" else [second, first]
for path in order:
    with gates.file_gate(path):
        pass
inside = threading.Event()

def work():
    with gates.file_gate(first):
        inside.set()
        time.sleep(0.3)
        with gates.file_gate(first if sys.argv[2] == "again" else second):
            pass

thread = threading.Thread(target=work)
thread.start()
inside.wait()
child = os.fork()
if child == 0:
    with gates.file_gate(first), gates.file_gate(second):
        os._exit(0)
print(os.waitpid(child, 0)[1], flush=True)
thread.join()
"""


@pytest.mark.slow  # processes of their own
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.parametrize("then", ["again", "another"])
@pytest.mark.parametrize("order", ["forwards", "backwards"])
def test_a_fork_and_a_thread_that_is_inside_a_gate_do_not_wait_for_each_other(
    tmp_path: Path, then: str, order: str
) -> None:
    command = [sys.executable, "-c", FORK_MEANWHILE, str(tmp_path), then, order]
    done = subprocess.run(command, env=ENVIRONMENT, capture_output=True, text=True, timeout=900, check=False)
    assert (done.stdout, done.returncode) == ("0\n", 0), done.stderr


BACKUPS_AND_FORKS = """
import os, sys, threading
import sfumato as sf

ledger = sf.Ledger.create(sys.argv[1] + "/budget.db", epsilon=10)
over = threading.Event()

def copy():
    for number in range(40):
        ledger.backup(f"{sys.argv[1]}/copy-{number}.db")
    over.set()

threading.Thread(target=copy).start()
while not over.is_set():
    child = os.fork()
    if child == 0:
        ledger.spent
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
"""


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_ledger_is_backed_up_while_the_program_forks(tmp_path: Path) -> None:
    command = [sys.executable, "-c", BACKUPS_AND_FORKS, str(tmp_path)]
    done = subprocess.run(command, env=ENVIRONMENT, capture_output=True, text=True, timeout=900, check=False)
    assert done.returncode == 0, done.stderr
