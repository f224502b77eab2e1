"""The releases of a stream that exist: found again by their steps, and refined.

A release is stored before it is handed out. A crash in between leaves a charge without a release, and its budget is
lost: a second noise for one charge would undo both. Finer levels pass through the vault (`sfumato.publishing.levels`),
which remembers them, so none of those is ever lost.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

from sfumato.errors import InvalidInput, LedgerError
from sfumato.ledger.steps import Step
from sfumato.ledger.streams import StreamAccount
from sfumato.locks import FileLock
from sfumato.promise import Epsilon
from sfumato.promise.window import Time
from sfumato.publishing import refine
from sfumato.publishing.step import StreamStep
from sfumato.release import Release
from sfumato.stream.outcome import Outcome, skipped
from sfumato.stream.stores import ReleaseStore
from sfumato.vault import Vault

_PATIENCE = 30.0  # seconds to wait for another publisher of the same stream


@dataclass(frozen=True, kw_only=True)
class Record:
    """What became of a step: its weight, the ε it has spent, and the file of its release where there is one.

    A step that was skipped has ε = 0 and no `release_id`; `level` counts how often its release was refined. The weight
    is None where the ledger has none: somebody charged the step without this class.
    """

    time: Time
    weight: float | None
    epsilon: Epsilon
    level: int
    release_id: str | None
    path: Path | None


@dataclass(frozen=True)
class Archive:
    """The steps in the ledger beside the releases in the store, and the vault that can make them finer."""

    account: StreamAccount
    store: ReleaseStore
    vault: Vault | None

    def records(self) -> tuple[Record, ...]:
        """Every step so far, in order of time."""
        return tuple(
            Record(
                time=step.time,
                weight=0.0 if step.release_id is None else step.weight,
                epsilon=step.epsilon,
                level=step.level,
                release_id=step.release_id,
                path=None if step.release_id is None else self.store.path(step),
            )
            for step in self.account.entries()
        )

    def again(self, step: Step) -> Release | None:
        """The release of a step, None where it was skipped, or a refusal where it was lost."""
        release = self.stored(step)
        if release is None and step.release_id is not None:
            raise InvalidInput(
                f"time={step.time} of stream '{self.account.name}' was charged {step.epsilon}, but its release is not "
                "stored: the program stopped in between, or the outbox is another one. Nothing was drawn or recorded. "
                "A second noise for one charge would undo both, so its budget is lost; go on with the next step."
            )
        return release

    def outcome(self, step: Step) -> Outcome:
        """What came of a step that the ledger has; one whose release is not stored is lost, and nothing is raised."""
        if step.release_id is None:
            return skipped(step.time)
        release = self.stored(step)
        if release is None:
            told = (
                f"lost: it was charged ε = {step.epsilon}, and its release is not stored. The program stopped in "
                "between, another one has not stored it yet, or the outbox is another one. Nothing was counted, and "
                "no second noise is drawn for one charge: go on with the next step"
            )
            return Outcome(time=step.time, status="lost", release=None, epsilon=step.epsilon, reason=told)
        told = f"published before at ε = {step.epsilon}; nothing was counted or charged"
        return Outcome(time=step.time, status="stored", release=release, epsilon=step.epsilon, reason=told)

    def stored(self, step: Step) -> Release | None:
        """The release of a step at its finest level, None where there is none."""
        if step.release_id is None:
            return None
        found = self.store.get(step, step.level)
        first = self.store.get(step, 0) if found is None and step.level else None
        if found is not None or first is None:
            return found
        # The level was charged, and the program stopped on its way from the vault to the store.
        return self._finer(first, step, step.epsilon, step.level)

    def catch_up(self, step: Step) -> None:
        """Bring a finer level to the store that was charged, and stopped on its way."""
        if step.level and not self.store.holds(step):
            self.stored(step)

    def refine(self, step: Step, epsilon: Fraction) -> Release | None:
        """The next level of a step's release; None where it was lost, and there is nothing to refine."""
        release = self.stored(step)
        return None if release is None else self._finer(release, step, epsilon, step.level + 1)

    def _finer(self, release: Release, step: Step, epsilon: Fraction, level: int) -> Release:
        if self.vault is None:
            raise InvalidInput(
                f"time={step.time} of stream '{self.account.name}' was raised with a vault. Nothing was drawn or "
                "recorded. Open the stream with its vault."
            )
        paid = StreamStep(self.account, step.time)
        finer = refine(release, epsilon, vault=self.vault, ledger=paid)
        self.store.put(step.time, level, finer)
        return finer


@contextmanager
def alone(home: Path, name: str) -> Iterator[None]:
    """One publisher at a time: between the charge and the store a step looks as if its release were lost."""
    try:
        home.mkdir(parents=True, exist_ok=True)
        lock = FileLock(home / ".lock", _PATIENCE)
    except TimeoutError:
        raise LedgerError(
            f"Another process is publishing to stream '{name}'. Nothing was drawn or recorded. Try again when "
            "it has finished."
        ) from None
    except OSError as error:
        raise LedgerError(
            f"'{home}' cannot be used: {error.strerror or error}. Nothing was drawn or recorded. The "
            "directory of the ledger must be writable."
        ) from error
    try:
        yield
    finally:
        lock.release()
