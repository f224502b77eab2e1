"""One ledger, one name: links, mounts, moves and exchanges are refused, and its locks are on the inode itself."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from fractions import Fraction
from pathlib import Path

import pytest
from ledger_worker import POLICY, charge_once

from sfumato.errors import LedgerError
from sfumato.ledger import Ledger, inode
from sfumato.ledger.store import Store

linux = pytest.mark.skipif(sys.platform != "linux", reason="locks of open file descriptions, and mounts, of Linux")
ONE = Fraction(1, 100)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    charge_once(Ledger.create(tmp_path / "budget.db", epsilon=1))
    return tmp_path / "budget.db"


def _refusal(ledger: Ledger) -> str:
    with pytest.raises(LedgerError) as caught:
        charge_once(ledger)
    return str(caught.value)


# ------------------------------------------------------------------ hard links


@pytest.mark.parametrize("name", ["budget.db", "second.db"])
def test_a_ledger_with_two_names_is_refused_under_either(path: Path, tmp_path: Path, name: str) -> None:
    ledger = Ledger(path)
    os.link(path, tmp_path / "second.db")
    other = "second.db" if name == "budget.db" else "budget.db"
    expected = (
        f"The ledger '{tmp_path / name}' has 2 names (hard links). Nothing was drawn or recorded. Under another name "
        f"it would have another journal, and spent budget could be forgotten. Beside it is '{other}'. Remove the other "
        "names; for a copy, use: sfumato ledger backup."
    )
    with pytest.raises(LedgerError) as caught:
        Ledger(tmp_path / name)
    assert str(caught.value) == expected
    if name == "budget.db":
        assert _refusal(ledger) == expected  # one that was open before
    (tmp_path / "second.db").unlink()
    assert ledger.spent == ONE


def test_a_link_made_during_a_charge_is_noticed_before_noise_is_drawn(path: Path, tmp_path: Path) -> None:
    store = Store(path, timeout=1)
    with pytest.raises(LedgerError, match=r"has 2 names \(hard links\)"), store.write():
        os.link(path, tmp_path / "second.db")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs links")
@pytest.mark.slow
def test_two_names_at_once_never_overspend_even_where_links_are_overlooked(path: Path, tmp_path: Path) -> None:
    """The locks are on the inode: with the refusal taken away, two names still add up to one total."""
    os.link(path, tmp_path / "second.db")
    script = (
        "import sys; sys.path.insert(0, sys.argv[2]); from ledger_worker import spend_all\n"
        "from sfumato.ledger import inode; inode._require_one_name = lambda *_: None; spend_all(sys.argv[1])"
    )
    here = str(Path(__file__).parent)
    workers = [
        subprocess.Popen([sys.executable, "-c", script, str(tmp_path / name), here], stdout=subprocess.PIPE, text=True)
        for name in ("budget.db", "second.db")
    ]
    assert sum(int(worker.communicate(timeout=900)[0]) for worker in workers) == 99
    (tmp_path / "second.db").unlink()
    assert Ledger(path).spent == 1


def test_a_killed_creation_leaves_no_second_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No hard link is made on the way, so none can be left."""

    def forbidden(*_: object) -> None:
        raise AssertionError("a link")

    monkeypatch.setattr(os, "link", forbidden)
    path = tmp_path / "budget.db"
    Ledger.create(path, epsilon=1)
    assert path.stat().st_nlink == 1


# ------------------------------------------------------------------ symbolic links


def test_a_symbolic_link_is_the_ledger_that_it_leads_to(path: Path, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "link.db").symlink_to(path)
    ledger = Ledger(tmp_path / "elsewhere" / "link.db")
    charge_once(ledger)
    assert Ledger(path).spent == 2 * ONE
    assert [p.name for p in (tmp_path / "elsewhere").iterdir()] == ["link.db"]


def test_a_link_that_leads_nowhere_is_followed_and_not_replaced(tmp_path: Path) -> None:
    (tmp_path / "link.db").symlink_to(tmp_path / "budget.db")
    charge_once(Ledger.create(tmp_path / "link.db", epsilon=1))
    assert (tmp_path / "link.db").is_symlink()
    assert Ledger(tmp_path / "budget.db").spent == ONE


# ------------------------------------------------------------------ moved and exchanged


@pytest.mark.parametrize("how", ["renamed", "removed", "exchanged"])
def test_a_ledger_that_is_moved_during_a_charge_acknowledges_nothing(path: Path, tmp_path: Path, how: str) -> None:
    Ledger.create(tmp_path / "another.db", epsilon=1)
    store = Store(path, timeout=1)
    with pytest.raises(LedgerError) as caught, store.write():
        if how == "removed":
            path.unlink()
        else:
            path.rename(tmp_path / "moved.db")
        if how == "exchanged":
            (tmp_path / "another.db").rename(path)
    assert str(caught.value) == (
        f"The ledger '{path}' was moved, deleted or replaced while it was in use. Nothing was drawn; what was charged "
        "may or may not be in it. Put the ledger back, and try again."
    )


def test_a_ledger_that_was_removed_is_not_begun_anew(path: Path) -> None:
    ledger = Ledger(path)
    path.unlink()
    assert _refusal(ledger) == (
        f"There is no ledger '{path}' (any more). Nothing was drawn or recorded. Put it back, or give the path of a "
        "ledger."
    )
    assert not path.exists()


def test_what_is_no_file_is_no_ledger(tmp_path: Path) -> None:
    if not hasattr(os, "mkfifo"):
        pytest.skip("needs named pipes")
    os.mkfifo(tmp_path / "budget.db")
    with pytest.raises(LedgerError, match="it is not a file"):
        Ledger(tmp_path / "budget.db")


# ------------------------------------------------------------------ mounts

_MOUNTED = """
import sys
from sfumato.errors import LedgerError
from sfumato.ledger import Ledger
try:
    print(Ledger(sys.argv[1]).spent)
except LedgerError as error:
    print(error)
"""


@pytest.mark.slow  # processes of their own
@linux
def test_a_file_that_is_mounted_by_itself_is_refused_and_a_mounted_folder_is_not(path: Path, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    (tmp_path / "file").mkdir()
    (tmp_path / "file" / "budget.db").touch()
    tools = shutil.which("unshare"), shutil.which("mount")
    if None in tools or subprocess.run(["unshare", "-m", "true"], capture_output=True, check=False).returncode:
        pytest.skip("may not mount")
    script = (
        f"mount --bind '{tmp_path}' '{tmp_path}/other' && mount --bind '{path}' '{tmp_path}/file/budget.db' && "
        f"'{sys.executable}' -c \"$1\" '{tmp_path}/other/budget.db' && "
        f"'{sys.executable}' -c \"$1\" '{tmp_path}/file/budget.db'"
    )
    done = subprocess.run(["unshare", "-m", "sh", "-c", script, "sh", _MOUNTED], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    folder, file = done.stdout.strip().split("\n")
    assert folder == "0.01"
    assert file == (
        f"The ledger '{tmp_path}/file/budget.db' is mounted by itself, as a file. Nothing was drawn or recorded. Under "
        "its other name it would have another journal, and spent budget could be forgotten: mount its folder instead."
    )


@linux
def test_where_descriptors_do_not_tell_the_mount_the_list_of_mounts_does(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(inode, "_mount_id", lambda _: None)
    assert not inode.is_mount(path)
    assert "/" in inode._mount_points()
    monkeypatch.setattr(inode, "_mount_points", lambda: {str(path)})
    assert inode.is_mount(path)
    assert inode._unescaped(rb"/a\040b\134c") == rb"/a b\c"


# ------------------------------------------------------------------ locks

_CHARGE = """
import sys
sys.path.insert(0, sys.argv[2])
from ledger_worker import POLICY
from sfumato.errors import LedgerError
from sfumato.ledger import Ledger
try:
    Ledger(sys.argv[1], timeout=0.2).charge("0.01", POLICY, label="other", release_id="other")
    print("charged")
except LedgerError as error:
    print(error)
"""


@linux
def test_a_copy_made_in_the_same_process_lets_nobody_in(path: Path, tmp_path: Path) -> None:
    """Closing any descriptor of a file drops a process's POSIX locks, and with them SQLite's."""
    with Store(path, timeout=1).write():
        shutil.copy(path, tmp_path / "copy.db")
        script = [sys.executable, "-c", _CHARGE, str(path), str(Path(__file__).parent)]
        said = subprocess.run(script, capture_output=True, text=True, check=True).stdout.strip()
    assert said == (
        f"The ledger '{path}' could not be used: it was held for more than 0.2 s. Nothing was drawn or recorded. "
        "Another process holds the ledger. Try again when it has finished."
    )


@linux
def test_no_descriptor_is_closed_while_another_of_the_same_file_is_in_use(path: Path) -> None:
    with inode.held(path, alone=False, timeout=1) as outer:
        with inode.held(path, alone=False, timeout=1) as inner:
            assert outer.inode == inner.inode
        assert inner.handle is not None
        os.fstat(inner.handle)  # still open
    assert inode._OPEN == {}
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(inner.handle)


def test_opening_many_ledgers_leaves_no_descriptor_open(tmp_path: Path) -> None:
    for number in range(5):
        ledger = Ledger.create(tmp_path / f"{number}.db", epsilon=1)
        ledger.charge("0.5", POLICY, label="visits", release_id="r")
    assert inode._OPEN == {}
