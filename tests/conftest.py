"""What all tests share: none of them depends on how busy the machine is.

Hypothesis gives an example 200 ms by default, and its inputs a second; both are wall time, and a test that passes alone
would fail beside others. What is set here holds for every property that does not say otherwise itself.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, is_hypothesis_test, settings

MEMORY, ROOM = Path("/dev/shm"), 4 << 30

# A ledger waits for the disk at every step. These tests are about processes that are killed, and none about a power
# cut: their files lie on a disk in memory where there is one with room, unless TMPDIR says where.
if "TMPDIR" not in os.environ and os.access(MEMORY, os.W_OK) and shutil.disk_usage(MEMORY).free > ROOM:
    os.environ["TMPDIR"], tempfile.tempdir = str(MEMORY), None

# Beside other processes on all cores, threads that wait for each other only burn time.
if "PYTEST_XDIST_WORKER" in os.environ:
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

settings.register_profile(
    "unhurried",
    settings.default,
    deadline=None,
    derandomize=not os.environ.get("SFUMATO_EXPLORE"),  # the same examples in every run, as on servers; else new ones
    suppress_health_check=[*settings.default.suppress_health_check, HealthCheck.too_slow],
)
settings.load_profile("unhurried")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The tests of counting feed it the worst of data: what it warns of is asserted where it is meant. And a box that
    Hypothesis makes up may look like bounds in another order, in one run and not in the next.

    Elsewhere a warning about the data or about what was declared fails a test, so that it cannot come needlessly.

    What needs Spark comes first of all: it lies together at the head of one process's share, and what another one takes
    over is the tail, so that one process starts the cluster. Then what is slow: at the end, when one process has
    nothing left to take over, all that runs is short.
    """
    items.sort(key=lambda item: (item.get_closest_marker("spark") is None, item.get_closest_marker("slow") is None))
    for item in items:
        if item.path.parent.name == "counting":
            item.add_marker(pytest.mark.filterwarnings("ignore::sfumato.DataWarning"), append=False)
        if is_hypothesis_test(getattr(item, "obj", None)):
            item.add_marker(pytest.mark.filterwarnings("ignore::sfumato.DeclarationWarning"), append=False)


@pytest.hookimpl(optionalhook=True)  # without xdist all runs in one process
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Whichever process has finished its share takes over half of what another still has to do."""
    if config.getoption("dist") != "load":
        return None
    from xdist.scheduler import WorkStealingScheduling

    return WorkStealingScheduling(config, log)


BROWSER = ["--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-sync", "--disable-background-networking"]
BROWSER += [
    "--disable-component-update",
    "--use-angle=swiftshader",
    "--enable-unsafe-swiftshader",
]  # maps draw by WebGL


@pytest.fixture(scope="session")
def chromium() -> Iterator[Any]:
    """Chromium as it is installed, one for all tests of a session: Playwright is started once in a process."""
    playwright = pytest.importorskip("playwright.sync_api", reason="needs the package playwright")
    names = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
    program = os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, names)), None)
    if program is None:
        pytest.skip("needs Chromium, which is not installed here")
    with playwright.sync_playwright() as started:
        browser = started.chromium.launch(executable_path=program, args=BROWSER)
        yield browser
        browser.close()
