"""Any sequence of steps, skips, gaps, raises and reopenings: the file agrees with a model that sums every window."""

from __future__ import annotations

import shutil
import tempfile
from datetime import datetime, timedelta
from fractions import Fraction
from pathlib import Path

import postgres_server
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from sfumato.domain import Line
from sfumato.errors import BudgetExceeded, InvalidInput
from sfumato.ledger import Ledger
from sfumato.policies import threshold

POLICY = threshold(Line(0, 1, cells=4), theta=1)
START = datetime(2026, 3, 1)
amounts = st.fractions(min_value=Fraction(1, 30), max_value=1, max_denominator=30)
gaps = st.integers(1, 6)


class StreamMachine(RuleBasedStateMachine):
    """`spent` holds what every time has spent; a window is any `size` consecutive times, the first ones included.

    Of clock time the same in hours: a window of `size` hours, half-open, is `size` consecutive hours.
    """

    @initialize(epsilon=amounts, size=st.integers(1, 6), clock=st.booleans())
    def open_new(self, epsilon: Fraction, size: int, clock: bool) -> None:
        self.place, self.epsilon, self.size, self.clock = self.new_place(), epsilon, size, clock
        window = timedelta(hours=size) if clock else size
        self.streams = [Ledger.create(self.place, epsilon=1).stream("s", epsilon=epsilon, window=window, policy=POLICY)]
        self.now = 0
        self.spent: dict[int, Fraction] = {}
        self.levels: dict[int, int] = {}
        self.skipped: set[int] = set()
        self.steps = 0

    def time(self, number: int) -> int | datetime:
        return START + timedelta(hours=number) if self.clock else number

    def fits(self, number: int, more: Fraction) -> bool:
        """Whether every run of `size` consecutive times that holds this one would still hold at most ε."""
        spent = self.spent | {number: self.spent.get(number, Fraction(0)) + more}
        return all(
            sum(spent.get(n, Fraction(0)) for n in range(end - self.size + 1, end + 1)) <= self.epsilon
            for end in range(number, number + self.size)
        )

    @rule()
    def open_again(self) -> None:
        self.streams = [Ledger(self.place).stream("s", epsilon=self.epsilon), self.streams[0]]

    @rule(gap=gaps, epsilon=amounts, which=st.integers(0, 1))
    def charge(self, gap: int, epsilon: Fraction, which: int) -> None:
        stream, number = self.streams[which % len(self.streams)], self.now + gap
        if self.fits(number, epsilon):
            receipt = stream.charge(self.time(number), epsilon, label="visits", release_id=f"r{number}")
            assert receipt.step.time == self.time(number)
            self.spent[number], self.levels[number], self.now = epsilon, 0, number
            self.steps += 1
        else:
            with pytest.raises(BudgetExceeded):
                stream.charge(self.time(number), epsilon, label="visits", release_id="r")

    @rule(gap=gaps)
    def charge_all_that_is_left(self, gap: int) -> None:
        left = self.streams[0].remaining(self.time(self.now + gap)).epsilon
        if left:
            self.charge(gap, Fraction(left), 0)
            assert self.spent[self.now] == left
            assert not self.fits(self.now, Fraction(1, 10**9))

    @rule(gap=gaps)
    def skip(self, gap: int) -> None:
        self.now += gap
        self.streams[0].skip(self.time(self.now))
        self.skipped.add(self.now)
        self.steps += 1

    @rule(back=st.integers(0, 8), epsilon=amounts)
    def charge_the_past(self, back: int, epsilon: Fraction) -> None:
        if self.steps:
            with pytest.raises(InvalidInput):
                self.streams[0].charge(self.time(self.now - back), epsilon, label="visits", release_id="r")

    @rule(back=st.integers(0, 12), epsilon=amounts, which=st.integers(0, 1), skipped=st.booleans())
    def charge_late(self, back: int, epsilon: Fraction, which: int, skipped: bool) -> None:
        """A time that was passed over, also before the first one; what was mentioned stays."""
        if not self.steps:
            return
        stream, number = self.streams[which % len(self.streams)], self.now - back
        time = self.time(number)
        if number in self.spent or number in self.skipped:
            with pytest.raises(InvalidInput, match=r"was published or skipped already"):
                stream.charge(time, epsilon, label="visits", release_id="r", late=True)
        elif skipped:
            stream.skip(time, late=True)
            self.skipped.add(number)
            self.steps += 1
        elif self.fits(number, epsilon):
            receipt = stream.charge(time, epsilon, label="visits", release_id=f"r{number}", late=True)
            assert receipt.step.time == time
            left = receipt.remaining
            assert not left or self.fits(number, epsilon + left)
            assert not self.fits(number, epsilon + left + Fraction(1, 10**9))
            self.spent[number], self.levels[number] = epsilon, 0
            self.steps += 1
        else:
            with pytest.raises(BudgetExceeded, match=r"which is late, exceeds the"):
                stream.charge(time, epsilon, label="visits", release_id="r", late=True)

    @rule(data=st.data(), more=amounts, which=st.integers(0, 1))
    def raise_step(self, data: st.DataObject, more: Fraction, which: int) -> None:
        if not self.spent:
            return
        stream = self.streams[which % len(self.streams)]
        number = data.draw(st.sampled_from(sorted(self.spent)))
        epsilon, level = self.spent[number] + more, self.levels[number] + 1
        if self.fits(number, more):
            assert stream.raise_step(self.time(number), epsilon, level=level, label="finer").epsilon == more
            self.spent[number], self.levels[number] = epsilon, level
        else:
            with pytest.raises(BudgetExceeded):
                stream.raise_step(self.time(number), epsilon, level=level, label="finer")

    @invariant()
    def every_window_of_the_file_holds_at_most_epsilon(self) -> None:
        stream = self.streams[-1]
        steps = stream.entries()
        assert len(steps) == len(stream) == self.steps
        found = {step.time: (step.epsilon, step.level) for step in steps if step.release_id is not None}
        assert found == {self.time(n): (spent, self.levels[n]) for n, spent in self.spent.items()}
        for end in range(min(self.spent, default=0), self.now + self.size + 1):
            held = sum(self.spent.get(n, Fraction(0)) for n in range(end - self.size + 1, end + 1))
            assert held <= self.epsilon

    @invariant()
    def what_comes_free_is_what_the_windows_say(self) -> None:
        remaining = self.streams[-1].remaining(self.time(self.now + 1))
        lefts = [
            self.epsilon - sum(self.spent.get(n, Fraction(0)) for n in range(end - self.size + 1, end + 1))
            for end in range(self.now + 1, self.now + self.size + 2)
        ]
        assert remaining.epsilon == lefts[0]
        more = [(self.now + 1 + i, left) for i, left in enumerate(lefts) if left > lefts[0]]
        when, then = more[0] if more else (None, None)
        assert remaining.next_epsilon == then
        assert remaining.next_time == (None if when is None else self.time(when))

    def new_place(self) -> str:
        self.directory = Path(tempfile.mkdtemp(prefix="sfumato-"))
        return str(self.directory / "budget.db")

    def teardown(self) -> None:
        shutil.rmtree(self.directory, ignore_errors=True)


class StreamMachineOnAServer(StreamMachine):
    def new_place(self) -> str:
        server = postgres_server.shared()
        return server.url(server.fresh())

    def teardown(self) -> None:
        pass  # the server goes with all its databases


TestStreamMachine = pytest.mark.slow(StreamMachine.TestCase)
TestStreamMachine.settings = settings(
    max_examples=25, stateful_step_count=20, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
TestStreamMachineOnAServer = pytest.mark.slow(StreamMachineOnAServer.TestCase)
TestStreamMachineOnAServer.settings = settings(TestStreamMachine.settings, max_examples=6)
