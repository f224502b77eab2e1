"""A studio in a process of its own."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from contextlib import contextmanager

PATIENCE = 120_000
"""Milliseconds after which something is taken to never happen: a limit for failures, nothing waits that long."""

# The command; and the same, publishing when a file called `go` is there.
_COMMAND = "from sfumato.app.cli import main; main()"
_WAITING = f"""
import time
from pathlib import Path
from sfumato.app.studio import jobs
usual = jobs.publish
def patient(*given, **more):
    while not Path("go").exists():
        time.sleep(0.02)
    return usual(*given, **more)
jobs.publish = patient
{_COMMAND}
"""


class Running:
    """A studio that runs, where it is, and its link."""

    def __init__(self, folder, *arguments, waits=False):
        environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
        environment.pop("SFUMATO_DEBUG", None)
        command = [sys.executable, "-c", _WAITING if waits else _COMMAND, "studio", *arguments, "--no-browser"]
        self.errors = folder / ".studio-errors"
        with self.errors.open("a") as errors:
            self.process = subprocess.Popen(
                command, cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=errors, text=True
            )
        line = self.process.stdout.readline()
        found = re.search(r"http://127\.0\.0\.1:(\d+)/\?token=[\w-]+", line)
        assert found, line + self.errors.read_text()
        self.link, self.port = found[0], int(found[1])
        self.origin = f"http://127.0.0.1:{self.port}"

    def kill(self):
        """As a power cut does."""
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()

    def end(self):
        """As Ctrl-C does; what is under way ends first."""
        self.process.terminate()
        self.process.wait(timeout=PATIENCE / 1000)
        self.process.stdout.close()


@contextmanager
def running(folder, *arguments, waits=False):
    """A studio for the length of a block; one that `waits` publishes when there is a file called `go`."""
    studio = Running(folder, *arguments, waits=waits)
    try:
        yield studio
    finally:
        if studio.process.poll() is None:
            studio.end()
