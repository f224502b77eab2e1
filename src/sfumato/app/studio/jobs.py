"""Work that reads private data and takes its time: the preflight, and publishing. In threads of their own, which end
what they began before the studio does; a page that was reloaded, or another tab, finds them by the file of the release.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event, Lock
from typing import Any

from sfumato.app import preflight
from sfumato.app.out import ledger_file, prepared
from sfumato.app.studio.guard import on_terminal, unexpected
from sfumato.app.studio.hearing import listening
from sfumato.app.studio.once import Claim, account_of, quoted
from sfumato.app.studio.said import located
from sfumato.counting import Counts
from sfumato.counting.report import GROSS
from sfumato.errors import InvalidInput, SfumatoError, Undelivered
from sfumato.publication import Publication
from sfumato.publishing import publish
from sfumato.release.outbox import deliver

NOTHING = "Nothing was counted, drawn or recorded."
_LOOKS = {
    "rows": "there are rows",
    "outside": "within the bounds",
    "without coordinates": "coordinates are there",
    "unreadable": "coordinates can be read",
    "without entity": "the person is there",
    "without time": "times are there",
    "unreadable time": "times can be read",
}


class Stopped(SfumatoError):
    """Whoever publishes took it back, before anything was charged."""


@dataclass
class Job:
    """One piece of work: its phase, in a word, and in the end what came of it."""

    kind: str
    name: str
    phase: str = "waiting"
    result: dict[str, Any] | None = None
    error: dict[str, Any] | None = None
    stop: Event = field(default_factory=Event)
    stoppable: bool = True

    @property
    def running(self) -> bool:
        """Whether it goes on."""
        return self.result is None and self.error is None

    def told(self) -> dict[str, Any]:
        """What the page is told."""
        return {
            "kind": self.kind,
            "file": self.name,
            "phase": self.phase,
            "running": self.running,
            "stoppable": self.stoppable and self.running,
            "result": self.result,
            "error": self.error,
        }


class Jobs:
    """All of them, one a file and kind, and the private counts of the last preflight, until they are published."""

    def __init__(self) -> None:
        self._pool = ThreadPoolExecutor(2, thread_name_prefix="studio")
        self._lock = Lock()
        self._jobs: dict[tuple[str, str], Job] = {}
        self._counted: tuple[str, Counts] | None = None

    def begin(self, kind: str, publication: Publication) -> Job:
        """The job of this kind for the publication's file: the one under way, or a new one."""
        place = place_of(publication)
        account_of(publication)
        key = kind, os.path.realpath(place)
        with self._lock:
            job = self._jobs.get(key)
            if job is None or not job.running:
                job = self._jobs[key] = Job(kind, place.name)
                work = self._check if kind == "check" else self._publish
                self._pool.submit(self._run, job, lambda: work(job, publication, place))
        return job

    def find(self, kind: str, publication: Publication) -> Job | None:
        """The job of this kind for the publication's file, if there is one."""
        with self._lock:
            return self._jobs.get((kind, os.path.realpath(place_of(publication))))

    def all(self) -> list[Job]:
        """Whatever there is."""
        with self._lock:
            return list(self._jobs.values())

    def close(self) -> None:
        """Wait for what is under way: what was charged is written."""
        self._pool.shutdown(wait=True)

    # ------------------------------------------------------------------ inside

    def _run(self, job: Job, work: Callable[[], dict[str, Any]]) -> None:
        try:
            with listening() as said:
                result = work()
            result["warnings"] = list(said)
            job.phase, job.result = "done", result
        except (SfumatoError, OSError) as error:
            job.error = refusal(error)
        except Exception as error:  # noqa: BLE001 - its message may quote a record
            on_terminal(error)
            job.error = {"kind": type(error).__name__, "message": unexpected(error), "field": None}

    def _check(self, job: Job, publication: Publication, place: Path) -> dict[str, Any]:
        del place
        plan, account = publication.plan(), account_of(publication)
        counts = self._counts(job, publication)
        preflight.tell(counts.report)
        troubled = [name for name, share in counts.report.shares.items() if share > GROSS]
        known = [] if counts.report.rows is None else ["rows"]
        troubled += ["rows"] if counts.report.rows == 0 else []
        told: dict[str, Any] = {
            "looks": [
                {"what": _LOOKS.get(name, name), "ok": name not in troubled}
                for name in (*known, *counts.report.shares)
                if name in _LOOKS or name in troubled
            ]
        }
        if account is not None:
            told["account"] = quoted(account, plan.guarantee.counted(counts.max_per_entity), publication)
        return told

    def _publish(self, job: Job, publication: Publication, place: Path) -> dict[str, Any]:
        account = account_of(publication)
        if publication.stream.step is not None:
            raise InvalidInput(f"this publication speaks of a stream: sfumato stream publishes it. {NOTHING}")
        plan, vault = publication.plan(), publication.vault()
        budget = None if account is None else ledger_file(publication.place(str(publication.account.ledger)))
        apart = {"the ledger": budget, "the vault's key": _path(publication, publication.output.key)}
        data = publication.records()
        with Claim(place, publication) as claim:
            release = claim.delivered(account)
            if release is not None:
                return _done(release, place, account, again=True)
            with prepared(place, cells=math.prod(plan.mechanism.shape), apart=apart, data=data) as file:
                counts = self._counts(job, publication)
                with self._lock:
                    self._counted = None
                if job.stop.is_set():
                    raise Stopped("stopped before anything was charged. Nothing was drawn or recorded.")
                job.stoppable, job.phase = False, "charging and drawing"
                release = publish(
                    plan,
                    counts,
                    ledger=account,
                    vault=vault,
                    label=publication.account.label,
                    release_id=claim.intended(),
                )
                job.phase = "writing"
                deliver(release, file, ledger=budget)
            claim.done()
        return _done(release, place, account, again=False)

    def _counts(self, job: Job, publication: Publication) -> Counts:
        """The private counts: those of the preflight, where it was of the same publication."""
        digest = publication.to_toml()
        with self._lock:
            held = self._counted
        if held is not None and held[0] == digest:
            return held[1]
        job.phase = "counting"
        counts = publication.count(tables=publication.plan().tables)
        with self._lock:
            self._counted = digest, counts
        return counts


def place_of(publication: Publication) -> Path:
    """Where the release goes; refused where nobody says."""
    if publication.output.file is None:
        raise InvalidInput(f"studio: [output] file is missing: name the file of the release. {NOTHING}")
    if publication.data.path is None:
        raise InvalidInput(f"studio: [data] path is missing: name the data. {NOTHING}")
    place = Path(publication.place(publication.output.file))
    if not place.parent.is_dir():
        raise InvalidInput(f"studio: [output] file: there is no folder '{place.parent.name}' for it. {NOTHING}")
    return place


def refusal(error: SfumatoError | OSError) -> dict[str, Any]:
    """An error of ours for the page: its message, and the field that it is about."""
    message, about = located(str(error))
    kept = str(error.kept) if isinstance(error, Undelivered) and error.kept is not None else None
    return {"kind": type(error).__name__, "message": message, "field": about} | ({"kept": kept} if kept else {})


def _path(publication: Publication, path: str | None) -> str | None:
    return None if path is None else publication.place(path)


def _done(release: Any, place: Path, account: Any, *, again: bool) -> dict[str, Any]:
    left = None if account is None else str(account.remaining)
    told = {"file": place.name, "path": str(place), "id": release.id, "again": again, "left": left}
    return told | {"epsilon": str(release.guarantee.epsilon), "promise": str(release.guarantee)}
