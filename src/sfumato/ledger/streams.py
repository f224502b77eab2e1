"""The account of a stream: what was spent at which time, kept so that no window ever holds more than ε.

The promise (Theorem 2 of P000, for any policy): take two histories that differ in one unit alone, only within one
window, and at every time in it along an edge of the policy. All releases of the stream, however many there will be,
tell them apart by at most ε; and by k·ε when the change lasts k windows. It holds because the loss at a time is that
time's budget, a time without change loses nothing, and the budgets of every window add up to at most ε.

- Budget belongs to the time of the *data*. A raise of a past release is charged to its own time, whenever it is made.
- A step later than all before has to fit into the one window that ends with it: those that end later hold no more of
  what came before. A raise of a past step, and a late charge to a time that was passed over, have to fit into every
  window that holds the step. So the budgets of every window add up to at most ε after every charge, in whatever order
  they are made: the order of the calls is no part of the promise, and the time of the data is.
- Check and record are one transaction, on disk before a call returns, and the caller draws only then: a crash at any
  point over-charges at worst, and any number of processes together never overspend.
- A call reads the window and nothing else, so it takes as long after a million steps as after ten.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from fractions import Fraction

from sfumato.exact import Number, positive_fraction
from sfumato.ledger import checks, identity, levels, stream_refusals, stream_rows, stretches
from sfumato.ledger.database import Connection, Database
from sfumato.ledger.schema import damaged
from sfumato.ledger.steps import Remaining, Spent, Step, StepReceipt, frees, room, tightest
from sfumato.ledger.stream_rows import Found, Terms
from sfumato.policies import Policy
from sfumato.promise.budget import Epsilon
from sfumato.promise.cost import cost_rate
from sfumato.promise.guarantee import Guarantee
from sfumato.promise.unit import Unit, UnitName
from sfumato.promise.window import MOST_TICKS, Clock, Time, Window, ticks_of, time_at, time_said


class StreamAccount:
    """The budget of one stream, from `ledger.stream(name, epsilon=1.0, window=7, policy=policy)`."""

    def __init__(
        self,
        store: Database,
        dataset: str,
        name: str,
        *,
        epsilon: Number | None,
        window: int | timedelta | Window | None,
        policy: Policy | None,
        unit: Unit | None,
    ) -> None:
        self.name, self._dataset, self._store = name, dataset, store
        promised = None if epsilon is None else Epsilon(positive_fraction(epsilon, "epsilon"))
        span = None if window is None else Window.of(window)
        if policy is not None:
            checks.require_policy(policy)
        with store.write() as connection:
            found = stream_rows.find(connection, dataset, name)
            if found is None:
                if promised is None or span is None or policy is None:
                    where = f"account '{dataset}' of '{store.place}'"
                    raise stream_refusals.needs(name, where, {"epsilon": promised, "window": span, "policy": policy})
                self._terms = Terms(
                    epsilon=promised, window=span, fingerprint=policy.fingerprint, unit=unit or Unit("record")
                )
                stream_rows.insert(connection, dataset, name, self._terms, policy)
            else:
                self._terms = found.terms
                refusal = stream_refusals.disagreement(name, found.terms, promised, span, policy, unit)
                if refusal is not None:
                    raise refusal
                policy = policy or stream_rows.policy_of(connection, found.row, name)
                stretches.adopt(connection, found.row, name, found.terms.window)
        with store.read() as connection:  # all of its steps, and no writer waits meanwhile
            stretches.require_sound(connection, self._found(connection).row, name, self._terms.window)
        self._policy = policy

    # ---------------------------------------------------------------- the promise

    @property
    def epsilon(self) -> Epsilon:
        """What every window holds at most."""
        return self._terms.epsilon

    @property
    def window(self) -> Window:
        """How long a change may last and be hidden at ε."""
        return self._terms.window

    @property
    def policy(self) -> Policy:
        """Along which edges a record may change at each time."""
        return self._policy

    @property
    def unit(self) -> UnitName:
        """Whose change is hidden: that of a record, or of a person."""
        return self._terms.unit.name

    @property
    def max_per_entity(self) -> int | None:
        """How many records of a person are counted at each time, at most; None where the unit is the record."""
        return self._terms.unit.max_per_entity

    def payer(self, time: Time) -> str:
        """What a vault seals as the one who paid for a step: the ledger, the account, the stream and the time."""
        tick, clock = ticks_of(time, self.window)
        return identity.payer(self._store, self._dataset, self.name, f"{clock} {tick}")

    @property
    def reached(self) -> tuple[str, Fraction | None]:
        """What a vault remembers of the stream: its name, and how far it has come. An older copy has come less far.

        That is its last tick and, as a part of one, how much was recorded: a late charge leaves the last tick as it is.
        """
        name = identity.payer(self._store, self._dataset, self.name)
        with self._store.read() as connection:
            row = self._found(connection).row
            last, recorded = stream_rows.last_tick(connection, row), stretches.recorded(connection, row, self.name)
        return name, None if last is None else last + Fraction(recorded, recorded + 1)

    # ---------------------------------------------------------------- spending

    def charge(
        self,
        time: Time,
        guarantee: Guarantee | Number,
        *,
        label: str,
        release_id: str,
        policy: Policy | None = None,
        unit: str | None = None,
        max_per_entity: int | None = None,
        private: bool = True,
        weight: float | None = None,
        floor: float | None = None,
        late: bool = False,
    ) -> StepReceipt:
        """Check that a release of the data of `time` fits and record it; on disk when this returns. Draw only then.

        `time` is later than every step before; with `late` it may be one that was never mentioned, and every window
        that holds it must have room. The guarantee says what the release is; an ε in its place promises what
        the stream does, but for what `policy`, `unit` and `max_per_entity` say. A release that would hide less of the
        stream's changes than its ε says is refused. `label` and `release_id` are kept in plain text, and so are
        `weight` and `floor` (`steps.Step`): they must not carry private values.

        Raises BudgetExceeded, InvalidInput, PolicyMismatch or LedgerError; nothing is recorded then, except that a
        failing disk may keep a charge it reported as failed.
        """
        if not isinstance(guarantee, Guarantee):
            if unit is None and max_per_entity is None:
                max_per_entity = self.max_per_entity
            policy, unit = policy or self.policy, unit or self.unit
        asked = checks.promised(guarantee, policy, unit, max_per_entity, private)
        label, release_id = checks.plain_text(label, "label"), checks.plain_text(release_id, "release_id")
        checks.require_private(asked.private)
        self._require_fitting(asked)
        return self._record(time, asked.loss, label, release_id, weight=weight, floor=floor, late=late)

    def skip(self, time: Time, *, late: bool = False) -> StepReceipt:
        """Record that nothing is released of the data of `time`. A time that is never mentioned counts the same, but
        can be charged later; with `late` such a one is closed.
        """
        return self._record(time, Epsilon(0), "skipped", None, late=late)

    def raise_step(
        self, time: Time, epsilon: Number, *, level: int, label: str, token: str | None = None
    ) -> StepReceipt:
        """Charge what a finer level of the release of a past step costs beyond the levels before it, and count it.

        `epsilon` is the release's own at the new level, and every window that holds the step must have room for the
        difference. `level` must be the next one: a level made from an older state would be a second noise. `token`
        names the noise that is paid for. Raises as `charge` does, and nothing is recorded then.
        """
        asked, label = Epsilon(positive_fraction(epsilon, "epsilon")), checks.plain_text(label, "label")
        with self._store.write() as connection:
            found = self._found(connection)
            tick, clock = self._tick(found, time)
            step = self._released(connection, found, tick, clock)
            here = stream_refusals.standing(self.name, time_said(tick, clock), step)
            checks.require_next_level(level, step.level, here)
            more, left = self._weighed(connection, found, step, tick, clock, asked)
            raised = replace(step, epsilon=asked, label=label, level=step.level + 1)
            stream_rows.insert_step(connection, found, self.name, tick, raised)
            levels.stamp(connection, step.release_id or "", raised.level, token)
        return StepReceipt(stream=self.name, step=raised, epsilon=more, remaining=Epsilon(left - more))

    def stamp(self, time: Time, level: int) -> str | None:
        """The token of the noise that was charged for a level of a step, or None."""
        step = self.at(time)
        if step is None or step.release_id is None:
            return None
        with self._store.read() as connection:
            return levels.stamped(connection, step.release_id, level)

    def quote_step(self, time: Time, *, epsilon: Number) -> Epsilon:
        """What `raise_step` would take for the next level, or its refusal. Records nothing and reserves nothing."""
        asked = Epsilon(positive_fraction(epsilon, "epsilon"))
        with self._store.read() as connection:
            found = self._found(connection)
            tick, clock = self._tick(found, time)
            step = self._released(connection, found, tick, clock)
            more, _ = self._weighed(connection, found, step, tick, clock, asked)
        return more

    # ---------------------------------------------------------------- reading

    def remaining(self, time: Time | None = None) -> Remaining:
        """What could be charged at `time` now, and when more comes free if nothing is spent until then.

        Without a time: right after the last step. Another process may spend it before you do: only `charge` decides.
        """
        with self._store.read() as connection:
            found = self._found(connection)
            last = stream_rows.last_tick(connection, found.row)
            if time is not None:
                tick, clock = self._tick(found, time)
                self._require_later(last, tick, clock, time)
            elif last is not None:
                tick, clock = last + 1, self._clock(found)
            else:
                return Remaining(epsilon=self.epsilon, next_time=None, next_epsilon=None)
            spent, left = self._window_at(connection, found, tick)
        for free, then in frees(spent, self.window, left):
            try:
                return Remaining(epsilon=left, next_time=time_at(free, clock), next_epsilon=then)
            except OverflowError:  # later than the last day of the calendar
                break
        return Remaining(epsilon=left, next_time=None, next_epsilon=None)

    def entries(self, start: Time | None = None, stop: Time | None = None) -> tuple[Step, ...]:
        """The steps from `start` up to and without `stop`, in order of time, each at its latest level."""
        with self._store.read() as connection:
            found = self._found(connection)
            first = -MOST_TICKS if start is None else self._tick(found, start)[0]
            last = MOST_TICKS if stop is None else self._tick(found, stop)[0] - 1
            return self._steps(connection, found, first, last)

    def at(self, time: Time, *, settled: bool = False) -> Step | None:
        """The step of that time, skipped or not; None when there is none. `settled` waits for charges under way."""
        with self._store.write() if settled else self._store.read() as connection:
            found = self._found(connection)
            tick, _ = self._tick(found, time)
            return next(iter(self._steps(connection, found, tick, tick)), None)

    def first(self) -> Step | None:
        """The earliest step, skipped or not; None before it."""
        return self._end(stream_rows.first_tick)

    def last(self) -> Step | None:
        """The latest step, skipped or not; None before the first."""
        return self._end(stream_rows.last_tick)

    def level(self, time: Time) -> tuple[int, Epsilon] | None:
        """(level, ε) at which the release of a step stands, (0, ε) when it was never raised; None without a release."""
        step = self.at(time)
        return None if step is None or step.release_id is None else (step.level, step.epsilon)

    def __len__(self) -> int:
        with self._store.read() as connection:
            return stream_rows.count(connection, self._found(connection).row)

    def __bool__(self) -> bool:
        return True  # an account without steps is still an account

    def __repr__(self) -> str:
        return f"StreamAccount({self.name!r}, epsilon={self.epsilon}, window={str(self.window)!r})"

    # ---------------------------------------------------------------- inside

    def _record(
        self,
        time: Time,
        asked: Epsilon,
        label: str,
        release_id: str | None,
        *,
        weight: float | None = None,
        floor: float | None = None,
        late: bool = False,
    ) -> StepReceipt:
        weight, floor = checks.figure(weight, "weight"), checks.figure(floor, "floor")
        with self._store.write() as connection:
            found = self._found(connection)
            tick, clock = self._tick(found, time)
            last = stream_rows.last_tick(connection, found.row)
            if late and last is not None and tick <= last:
                left = self._room_around(connection, found, tick, clock, asked)
            else:
                self._require_later(last, tick, clock, time)
                spent, left = self._window_at(connection, found, tick)
                if asked > left:
                    raise stream_refusals.exceeded(self.name, self._terms, asked, spent, left, clock)
            if found.clock is None:
                stream_rows.set_clock(connection, found.row, clock)
            step = Step(
                time=time_at(tick, clock),
                epsilon=asked,
                label=label,
                release_id=release_id,
                level=0,
                weight=weight,
                floor=floor,
            )
            stream_rows.insert_step(connection, found, self.name, tick, step)
        return StepReceipt(stream=self.name, step=step, epsilon=asked, remaining=Epsilon(left - asked))

    def _found(self, connection: Connection) -> Found:
        found = stream_rows.find(connection, self._dataset, self.name)
        if found is None or found.terms != self._terms:
            raise stream_refusals.replaced(self.name, self._store.place)
        return found

    def _tick(self, found: Found, time: Time) -> tuple[int, Clock]:
        tick, clock = ticks_of(time, self.window)
        if found.clock not in (None, clock):
            raise stream_refusals.mixed_clocks(self.name, time, self._clock(found))
        return tick, clock

    def _clock(self, found: Found) -> Clock:
        if found.clock is None:  # steps and no clock: only an edited file has that
            raise damaged(f"stream '{self.name}' does not say how it tells the time")
        return found.clock

    def _require_later(self, last: int | None, tick: int, clock: Clock, time: Time) -> None:
        if last is not None and tick <= last:
            raise stream_refusals.past(self.name, time, last, clock)

    def _require_fitting(self, asked: checks.Promised) -> None:
        rate = cost_rate(self.policy, self._terms.unit, asked.policy, asked.unit)
        if rate != 1:
            raise stream_refusals.other_terms(self.name, self._terms, rate)

    def _window_at(self, connection: Connection, found: Found, tick: int) -> tuple[Spent, Epsilon]:
        """(what was spent, what is left) in the window that ends at a tick."""
        spent = stream_rows.spent_between(connection, found, self.name, self.window.first(tick), tick)
        left = room(spent, self.epsilon)
        self._require_sound(left)
        return spent, left

    def _room_around(self, connection: Connection, found: Found, tick: int, clock: Clock, asked: Epsilon) -> Epsilon:
        """What the fullest window that holds a time has left, where nobody mentioned it yet; or a refusal."""
        if self._steps(connection, found, tick, tick):
            raise stream_refusals.mentioned(self.name, time_said(tick, clock))
        end, left = self._fullest(connection, found, tick)
        if asked > left:
            where = time_said(tick, clock), time_said(end, clock)
            raise stream_refusals.late_exceeded(self.name, self._terms, asked, left, *where)
        return left

    def _fullest(self, connection: Connection, found: Found, tick: int) -> tuple[int, Epsilon]:
        """(last tick, what is left) of the fullest window that holds a tick."""
        around = self.window.first(tick), tick + self.window.size - 1
        spent = stream_rows.spent_between(connection, found, self.name, *around)
        end, left = tightest(spent, tick, self.window, self.epsilon)
        self._require_sound(left)
        return end, left

    def _require_sound(self, left: Epsilon) -> None:
        if left < 0:
            raise damaged(f"stream '{self.name}': more is spent in a window than it holds")

    def _steps(self, connection: Connection, found: Found, first: int, last: int) -> tuple[Step, ...]:
        if found.clock is None and stream_rows.last_tick(connection, found.row) is None:
            return ()
        return tuple(stream_rows.steps_between(connection, found.row, self._clock(found), first, last))

    def _end(self, find: Callable[[Connection, int], int | None]) -> Step | None:
        with self._store.read() as connection:
            found = self._found(connection)
            tick = find(connection, found.row)
            return None if tick is None else self._steps(connection, found, tick, tick)[0]

    def _released(self, connection: Connection, found: Found, tick: int, clock: Clock) -> Step:
        """The step that has a release to raise."""
        step = next(iter(self._steps(connection, found, tick, tick)), None)
        if step is None or step.release_id is None:
            raise stream_refusals.no_release(self.name, time_at(tick, clock), skipped=step is not None)
        return step

    def _weighed(
        self, connection: Connection, found: Found, step: Step, tick: int, clock: Clock, asked: Epsilon
    ) -> tuple[Epsilon, Epsilon]:
        """(what a raise costs, what the fullest window that holds the step has left), or a refusal."""
        checks.require_finer(asked, step.epsilon, stream_refusals.standing(self.name, time_said(tick, clock), step))
        end, left = self._fullest(connection, found, tick)
        more = Epsilon(asked - step.epsilon)
        if more > left:
            raise stream_refusals.raise_exceeded(
                self.name, self._terms, time_said(tick, clock), step, asked, left, time_said(end, clock)
            )
        return more, left
