"""Raising past steps when it is known what their windows were needed for: each a finer level of the same release."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from warnings import warn

from sfumato.errors import BudgetExceeded, InvalidInput, SfumatoError
from sfumato.promise.window import Time
from sfumato.release import Release
from sfumato.stream.archive import Archive
from sfumato.stream.choices import TopUp
from sfumato.stream.chronicle import Chronicle
from sfumato.stream.past import Places


@dataclass
class Raising:
    """What raises the steps of a stream, and has said once which it cannot."""

    chronicle: Chronicle
    archive: Archive
    allocation: TopUp
    said: bool = False

    def follow_up(self, time: Time) -> None:
        """Raise past steps after one that is done: whatever comes of it, that step stands."""
        _, refusal = self.raised(ended=False)
        if refusal is not None and not isinstance(refusal, (BudgetExceeded, InvalidInput)):
            # Those two say that another machine was first; the next step will see what it left.
            name = self.chronicle.account.name
            warn(
                f"The step of {time} of stream '{name}' is done; a past one could not be raised: {refusal}",
                stacklevel=4,
            )

    def raised(self, *, ended: bool) -> tuple[tuple[Release, ...], SfumatoError | None]:
        """(what became finer, the first refusal): one step that cannot be raised does not stop the others."""
        last = self.chronicle.account.last()
        if last is None:
            return (), None
        number = self.chronicle.number(last) + 1
        reach = number if ended else self.allocation.reach
        past, steps = self.chronicle.past(self.chronicle.entries(number, reach), number, reach)
        self._say_unknown(steps)
        finer: list[Release | None] = []
        refusals: list[SfumatoError] = []
        for step in steps:
            with _collecting(refusals):
                if step is not None:
                    self.archive.catch_up(step)
        for place, epsilon in self.allocation.raises(past, ended=ended):
            step = steps[place]
            with _collecting(refusals):
                finer.append(None if step is None else self.archive.refine(step, epsilon))
        return tuple(release for release in finer if release is not None), next(iter(refusals), None)

    def _say_unknown(self, steps: Places) -> None:
        """Say once which steps cannot be raised because the ledger keeps no weight of them."""
        unknown = [step for step in steps if step is not None and step.release_id is not None and step.weight is None]
        if unknown and not self.said:
            self.said = True
            warn(
                f"The ledger has no weight for {len(unknown)} of the last steps of stream "
                f"'{self.chronicle.account.name}', the first of them at {unknown[0].time}: they were not charged by "
                "this publisher, and are not raised.",
                stacklevel=4,
            )


@contextmanager
def _collecting(refusals: list[SfumatoError]) -> Iterator[None]:
    try:
        yield
    except SfumatoError as refusal:
        refusals.append(refusal)
