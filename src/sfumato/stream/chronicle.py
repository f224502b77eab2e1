"""Where a stream stands: its steps in the ledger, told by their numbers, and what was around one of them.

All of it is public, and read anew for every step: another process may publish to the stream, too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sfumato.errors import InvalidInput
from sfumato.ledger.steps import Step
from sfumato.ledger.streams import StreamAccount
from sfumato.promise.window import Time, ticks_of, time_at
from sfumato.stream.numbering import StepNumbering
from sfumato.stream.past import Later, Past, Places, later_of, past_of


@dataclass(frozen=True, kw_only=True)
class Standing:
    """What is known of a step that is asked for: its number, what became of it, and what was around it."""

    time: Time
    number: int
    known: Step | None
    past: Past
    later: Later | None
    """What came after a step that was passed over; None for one that is later than all others."""


class Chronicle:
    """The account of a stream with the numbers of its steps, the first one being 0."""

    def __init__(self, account: StreamAccount, clock: StepNumbering) -> None:
        self.account, self.clock = account, clock
        self._first: Time | None = None

    def told(self, time: Any) -> Time:
        """A time as the ledger tells it: instants in UTC. It is a step of the stream."""
        told = time_at(*ticks_of(time, self.account.window))
        self.clock.number(told, self.begin())
        return told

    def begin(self) -> Time | None:
        """The time of the first step; None before it."""
        if self._first is None:
            first = self.account.first()
            self._first = None if first is None else first.time
        return self._first

    def entries(self, number: int, reach: int) -> tuple[Step, ...]:
        """What the ledger has of the `reach` steps before a step, and from there on."""
        first = self.begin()
        return () if first is None else self.account.entries(self.clock.time(max(number - reach, 0), first))

    def number(self, entry: Step) -> int:
        """The number of a step in the ledger; every one was made at these steps, or by a stranger."""
        try:
            return self.clock.number(entry.time, self.begin())
        except InvalidInput:
            raise InvalidInput(
                f"stream '{self.account.name}' has a step at {entry.time}, which lies between the steps of this "
                "publisher: another one publishes it with a step of another length. Nothing was drawn or recorded. "
                "Use the same step everywhere, or another name."
            ) from None

    def past(self, entries: Sequence[Step], number: int, reach: int) -> tuple[Past, Places]:
        """What is past for a step, given the entries from `reach` steps before it up to it."""
        numbers = [self.number(entry) for entry in entries]
        return past_of(entries, numbers, max(number - reach, 0), number, self.clock.steps)

    def standing(self, time: Any, reach: int, *, late: bool) -> Standing:
        """What is known of a step; refused where it was passed over, but for `late`, and before the first one."""
        time = self.told(time)
        number = self.clock.number(time, self.begin())
        if number < 0:
            raise InvalidInput(
                f"time={time} lies before {self.begin()}, the first step of stream '{self.account.name}', from which "
                "its steps are counted. Nothing was drawn or recorded. Use a later one."
            )
        entries = self.entries(number, reach)
        numbers = [self.number(entry) for entry in entries]
        known = next((entry for entry in entries if entry.time == time), None)
        passed = known is None and bool(numbers) and numbers[-1] > number
        if passed and not late:
            raise InvalidInput(
                f"time={time} is not later than {entries[-1].time}, the last step of stream '{self.account.name}', and "
                "was passed over. Nothing was drawn or recorded. Use a later one; or give late=True, which publishes "
                "it where every window that holds it has room."
            )
        before = [entry for entry, its in zip(entries, numbers, strict=True) if its < number]
        after = [entry for entry, its in zip(entries, numbers, strict=True) if its > number]
        past, _ = self.past(before, number, reach)
        later = later_of(after, numbers[len(numbers) - len(after) :], number, self.clock.steps) if passed else None
        return Standing(time=time, number=number, known=known, past=past, later=later)

    def due(self, until: Any, start: Any) -> tuple[Time, ...]:
        """The steps that are over by a time and were never mentioned, in order; of a new stream from `start` on."""
        first = self.begin()
        if first is None and start is None:
            raise InvalidInput(
                f"start is missing: stream '{self.account.name}' has no step yet, and when its first one begins is not "
                "read off the data. Nothing was drawn or recorded. Give start, a time that everybody may know."
            )
        began = time_at(*ticks_of(start, self.account.window)) if first is None else first
        end = self.clock.over(until, began)
        known = {self.number(entry) for entry in self.account.entries()} if first is not None else set()
        return tuple(self.clock.time(number, began) for number in range(end) if number not in known)
