"""`sfumato doctor`: whether this machine can keep the promises that a release makes. Nothing private is looked at."""

from __future__ import annotations

import math
import platform
import shutil
import subprocess
import tempfile
import time
import zoneinfo
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import numpy as np
import typer

import sfumato as sf
from sfumato.app.installed import packages
from sfumato.app.options import Json
from sfumato.app.output import emit, reported, say
from sfumato.errors import SfumatoError
from sfumato.files import replacing
from sfumato.ledger.places import accounts_at, is_file
from sfumato.locks import FileLock
from sfumato.noise import SystemSource

GOOD, ABSENT, WRONG = "good", "absent", "wrong"
_MARKS = {GOOD: "✓", ABSENT: "–", WRONG: "✗"}
ROOM = 64 << 20
"""Bytes that ledgers, vaults and releases should have before a disk is called full."""
_WORDS = 1 << 17  # 2²³ bits: ones are within 6 standard deviations of one half but for two runs in 10⁹
_BUILT = datetime(2026, 1, 1, tzinfo=UTC)  # no clock of a machine that runs this can be before it


@dataclass(frozen=True)
class Finding:
    """What was looked at, how it is, and what can be done where it is not good."""

    what: str
    state: str
    words: str

    def __str__(self) -> str:
        return f"{_MARKS[self.state]} {self.what:<12} {self.words}"


def doctor(
    ledgers: Annotated[
        list[str] | None, typer.Argument(help="Ledgers to reach and to read through: files, or postgresql://… URLs.")
    ] = None,
    folder: Annotated[Path, typer.Option(help="Where ledgers, vaults and releases will lie.")] = Path(),
    as_json: Json = False,
) -> None:
    """Look at this machine: versions, extras, randomness, disk, clock, and ledgers if you name them.

    Exits with 4 where something is wrong. An extra that is absent is not wrong; the line that installs it is shown.

    Example: sfumato doctor budget.db
    """
    with reported(as_json):
        findings = [*versions(), *extras(), java(), randomness(), disk(folder), clock(), *map(ledger, ledgers or ())]
        wrong = [finding for finding in findings if finding.state == WRONG]
        if as_json:
            told = [{"what": one.what, "state": one.state, "words": one.words} for one in findings]
            emit({"good": not wrong, "findings": told})
        else:
            for finding in findings:
                say(str(finding))
            say()
            say(f"{len(wrong)} of {len(findings)} are wrong." if wrong else "Everything that is here works.")
    if wrong:
        raise typer.Exit(4)


def versions() -> Iterator[Finding]:
    """Ours, Python's, and those of the packages that are always needed."""
    where = (
        f"{platform.python_implementation()} {platform.python_version()} on {platform.system()} {platform.machine()}"
    )
    yield Finding("sfumato", GOOD, f"{sf.__version__}, {where}")
    needed = [package for package in packages() if package.extra is None]
    missing = [package.name for package in needed if package.version is None]
    old = [f"{package.name} {package.version} (at least {package.least})" for package in needed if package.old]
    if missing or old:
        what = [f"{how}: {', '.join(those)}" for how, those in (("not there", missing), ("too old", old)) if those]
        yield Finding("packages", WRONG, f"{'; '.join(what)}. Mend it with: pip install --upgrade sfumato")
    elif needed:
        yield Finding("packages", GOOD, ", ".join(f"{package.name} {package.version}" for package in needed))
    else:
        yield Finding("packages", ABSENT, "sfumato runs from a folder and is not installed: nobody says what it needs")


def extras() -> Iterator[Finding]:
    """What is optional, an extra a line."""
    optional = [package for package in packages() if package.extra is not None]
    for extra in dict.fromkeys(package.extra for package in optional):
        those = [package for package in optional if package.extra == extra]
        here = ", ".join(f"{package.name} {package.version}" for package in those)
        if all(package.version is not None and not package.old for package in those):
            yield Finding(f"[{extra}]", GOOD, here)
            continue
        old = [f"{package.name} {package.version} is too old" for package in those if package.old]
        why = ", ".join(old) or "not installed"
        yield Finding(f"[{extra}]", WRONG if old else ABSENT, f"{why}: pip install 'sfumato[{extra}]'")


def java() -> Finding:
    """What Spark runs on."""
    program = shutil.which("java")
    if program is None:
        return Finding("Java", ABSENT, "Spark needs Java 17 or newer, such as Debian's default-jre-headless")
    try:
        ran = subprocess.run([program, "-version"], capture_output=True, text=True, timeout=60, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return Finding("Java", ABSENT, "there is a java that does not answer: Spark will not start")
    told = (ran.stderr or ran.stdout).splitlines()
    return Finding("Java", GOOD if ran.returncode == 0 else ABSENT, told[0] if told else "it says nothing of itself")


def randomness() -> Finding:
    """Whether the operating system gives words, other ones each time, with as many ones as zeros."""
    start = time.perf_counter()
    once, again = (SystemSource().words(_WORDS) for _ in range(2))
    took = time.perf_counter() - start
    bits = 64 * _WORDS
    ones = int(np.bitwise_count(once).sum())
    if np.array_equal(once, again) or abs(ones - bits / 2) > 6 * math.sqrt(bits) / 2:
        return Finding("randomness", WRONG, "the system's words repeat, or lean: nothing may be published here")
    speed = 2 * once.nbytes / max(took, 1e-9) / 1e6
    return Finding("randomness", GOOD, f"from the operating system, {speed:,.0f} MB a second, never twice the same")


def disk(folder: Path) -> Finding:
    """Whether files can be written whole, locked and made durable there, and whether there is room."""
    where = folder.absolute()
    try:
        with tempfile.TemporaryDirectory(dir=where, prefix=".sfumato-doctor-") as name:
            with replacing(Path(name) / "whole") as file:
                file.write(b"whole")
            lock = FileLock(Path(name) / "lock", timeout=1.0)
            lock.release()
            read = (Path(name) / "whole").read_bytes()
        free = shutil.disk_usage(where).free
    except OSError as error:
        return Finding("disk", WRONG, f"{where}: {error.strerror or type(error).__name__}. Name another with --folder")
    if read != b"whole" or free < ROOM:
        return Finding("disk", WRONG, f"{where}: {free / 1e6:,.0f} MB are free, and {ROOM / 1e6:,.0f} should be")
    return Finding("disk", GOOD, f"{where}: files are written whole and locked; {free / 1e9:,.1f} GB are free")


def clock() -> Finding:
    """Whether the time is possible, and whether zones of the world are known."""
    now = datetime.now(UTC)
    if now < _BUILT:
        return Finding("clock", WRONG, f"it says {now:%Y-%m-%d}, which has been: entries of ledgers would be misdated")
    try:
        zoneinfo.ZoneInfo("America/New_York")
    except zoneinfo.ZoneInfoNotFoundError:
        return Finding("clock", WRONG, "there are no time zones on this machine: pip install tzdata")
    here = datetime.now().astimezone()
    return Finding("clock", GOOD, f"{here:%Y-%m-%d %H:%M} {here.tzname()}, {now:%H:%M} UTC; time zones are known")


def ledger(place: str) -> Finding:
    """Whether it can be reached and holds together; the place of a server is not repeated: it may hold a password."""
    name = "a server"
    try:
        if is_file(place):
            name = place
            if not Path(place).is_file():
                how = f"sfumato ledger create {name} --epsilon …"
                return Finding("ledger", WRONG, f"{name} is not there. Make it with: {how}")
        datasets = accounts_at(place)
        if not datasets:
            return Finding("ledger", WRONG, f"{name} has no account")
        account = sf.Ledger(place, dataset=datasets[0])
        account.check()
        left = ", ".join(f"{one.dataset} {one.remaining} of {one.total} left" for one in account.accounts())
    except (SfumatoError, OSError) as error:
        return Finding("ledger", WRONG, f"{name}: {error}")
    return Finding("ledger", GOOD, f"{name} holds together: {left}")
