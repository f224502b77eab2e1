"""A stream: releases over time, ε for every window of consecutive steps, for as long as it goes on.

Promise: a change of one unit's data that is confined to one window, along an edge of the policy at every step, is
hidden at ε by all releases of the stream together, however many there are (Fang and Chang 2014, Theorem 2).

Every step goes the same way. Its budget is chosen from public figures alone (`choices`), the mechanism is the same for
all steps and scaled to that budget, the charge is recorded in the ledger, then noise is drawn, then the release is
stored, and only then handed out. A crash leaves one of three things behind: nothing, and the step can be published; a
stored release, which is handed out again at no cost; or a charge without a release, whose budget is lost.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any
from warnings import warn

from sfumato.allocation.distributions import Distribution
from sfumato.counting import Counts
from sfumato.errors import BudgetExceeded, InvalidInput, SfumatoError
from sfumato.exact import Number, plannable
from sfumato.interruptions import undisturbed
from sfumato.ledger import Ledger
from sfumato.ledger.steps import Remaining, Step
from sfumato.planning import Plan, plan
from sfumato.policies import Policy
from sfumato.promise import Epsilon
from sfumato.promise.window import Time, Window, ticks_of, time_at
from sfumato.publication import Publication
from sfumato.publishing import publish
from sfumato.publishing.step import StreamStep
from sfumato.release import Release
from sfumato.release.outbox import rescued
from sfumato.stream.archive import Archive, Record, alone
from sfumato.stream.arguments import folder_name, home_beside, require_kind, weight_of
from sfumato.stream.choices import AllocationName, TopUp, choose
from sfumato.stream.numbering import StepNumbering
from sfumato.stream.past import Past, Places, past_of
from sfumato.stream.stores import FolderStore, ReleaseStore, VaultStore
from sfumato.vault import Vault
from sfumato.workload import Workload

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from numpy.typing import ArrayLike

    from sfumato.counting import Counts


class Stream:
    """Counts published step by step: `Stream(policy, workload, epsilon=1.0, window=7, ledger=ledger, name="visits")`.

    `window` is a number of steps, which are then whole numbers, or a timedelta with `step`, also a timedelta: the times
    of the steps are then datetimes, that far apart. The ledger holds all there is to know, so that a new object with
    the same arguments goes on where the last one stopped, in this process or another.

    `allocation` divides the budget: "even" (the same for every step), "sample" (one step in each window gets all),
    "offline" (the optimum for `weights` known in advance), "online" (the best on average over a `distribution` of
    weights to come), "top-up" (less at first, raised when it is known what the windows were needed for; needs a
    `vault`). Weights, and whether to skip a step, must come from public figures or earlier releases, never from counts.

    Releases are kept in the folder `outbox`; without one in the vault, sealed; without both in a folder beside the
    ledger. `mechanism` and further keywords go to `sf.plan`. The releases carry the public part of a `publication`.

    >>> policy, ledger = sf.bounded(sf.Line(0, 4, cells=4)), sf.Ledger.create("budget.db", epsilon=1)
    >>> stream = sf.Stream(policy, sf.histogram(), epsilon=1, window=4, ledger=ledger, name="visits")
    >>> stream.publish(0, np.array([3, 0, 5, 1])).guarantee.epsilon
    0.25
    """

    def __init__(
        self,
        policy: Policy,
        workload: Workload,
        *,
        epsilon: Number,
        window: int | timedelta | Window,
        ledger: Ledger,
        name: str,
        step: timedelta | None = None,
        allocation: AllocationName = "even",
        distribution: Distribution | None = None,
        weights: Any = None,
        vault: Vault | None = None,
        max_per_entity: int | None = None,
        outbox: str | Path | None = None,
        mechanism: str | None = None,
        publication: Publication | None = None,
        **options: Any,
    ) -> None:
        require_kind(ledger, Ledger, "ledger", "a ledger", "sf.Ledger(path)")
        if vault is not None:
            require_kind(vault, Vault, "vault", "a vault", "sf.Vault(path, key=…)")
        self._clock = StepNumbering.of(window, step)
        budget = plannable(epsilon, "epsilon")
        self._allocation = choose(allocation, self._clock.steps, budget, weights, distribution)
        share = budget / self._clock.steps
        made = plan(policy, workload, share, mechanism=mechanism, max_per_entity=max_per_entity, **options)
        self._plan = replace(made, publication=publication)
        self._vault = vault
        self._require_refinable(allocation)
        beside = home_beside(ledger, vault, outbox)
        self._account = ledger.stream(
            name, epsilon=budget, window=self._clock.window, policy=made.policy, max_per_entity=made.max_per_entity
        )
        self.name = self._account.name
        self._home = beside / folder_name(ledger.dataset) / folder_name(self.name)
        store: ReleaseStore = FolderStore(self._home if outbox is None else Path(outbox))
        if outbox is None and vault is not None:
            store = VaultStore(vault)
        self._archive = Archive(self._account, store, vault)
        self._first: Time | None = None
        self._ledger = ledger.path
        self._said = False

    # ---------------------------------------------------------------- publishing

    def publish(
        self,
        time: Time,
        counts: Counts | ArrayLike | None = None,
        weight: float | None = None,
        *,
        points: ArrayLike | None = None,
    ) -> Release | None:
        """Publish the data of a time, later than all before; give counts or raw points as to `plan.publish`.

        `weight` says how much an error at this step matters; 0 skips it. None comes back where the step gets no budget:
        it is then recorded as skipped. A time that was published already gives its release again, without a look at
        the counts and at no cost.

        >>> policy, ledger = sf.bounded(sf.Line(0, 4, cells=4)), sf.Ledger.create("budget.db", epsilon=1)
        >>> stream = sf.Stream(policy, sf.histogram(), epsilon=1, window=4, ledger=ledger, name="visits")
        >>> stream.publish(0, np.array([3, 0, 5, 1])).total
        9
        """
        given = weight_of(weight)
        with alone(self._home, self.name):
            time = self._told(time)
            number = self._clock.number(time, self._begin())
            entries = self._entries(number, self._allocation.reach)
            known = next((entry for entry in entries if entry.time == time), None)
            if known is not None:
                return self._archive.again(known)
            if entries and self._number(entries[-1]) > number:
                self._account.remaining(time)  # refuses a time that is past, in the ledger's own words
            past, _ = self._past(entries, number, self._allocation.reach)
            release = self._publish(time, counts, points, self._allocation.weight(number, given), past)
            self._follow_up(time)
            return release

    def skip(self, time: Time) -> None:
        """Record that nothing is published for a time. A time that is never mentioned counts the same.

        >>> policy, ledger = sf.bounded(sf.Line(0, 4, cells=4)), sf.Ledger.create("budget.db", epsilon=1)
        >>> stream = sf.Stream(policy, sf.histogram(), epsilon=1, window=4, ledger=ledger, name="visits")
        >>> stream.skip(0)
        """
        with alone(self._home, self.name):
            time = self._told(time)
            known = self._account.at(time)
            if known is not None and known.release_id is not None:
                raise InvalidInput(
                    f"time={time} of stream '{self.name}' was published and cannot be skipped any more. Nothing was "
                    "recorded. Skip a later one."
                )
            if known is None:
                self._account.skip(time)
                self._follow_up(time)

    def top_up(self, *, ended: bool = False) -> tuple[Release, ...]:
        """Raise the releases whose windows have closed, and give the finer ones; `publish` does so by itself.

        Each is a finer level of the same release, charged to the time of its data. With `ended` no further step will
        come, and what is left in the last windows is spent, too.
        """
        if not isinstance(self._allocation, TopUp):
            raise InvalidInput(
                f"stream '{self.name}' does not raise past steps. Nothing was drawn or recorded. Open it with "
                "allocation='top-up' and a vault."
            )
        with alone(self._home, self.name):
            finer, refusal = self._raise(self._allocation, ended=ended)
            if refusal is not None and not finer:
                raise refusal
            if refusal is not None:
                warn(f"Not every step of stream '{self.name}' could be raised: {refusal}", stacklevel=2)
            return finer

    # ---------------------------------------------------------------- reading

    def history(self) -> tuple[Record, ...]:
        """Every step so far, in order of time."""
        return self._archive.records()

    def release(self, time: Time) -> Release | None:
        """The release of a time at its finest level; None where nothing was published for it."""
        with alone(self._home, self.name):
            step = self._account.at(self._told(time))
            return None if step is None else self._archive.again(step)

    def remaining(self, time: Time | None = None) -> Remaining:
        """What is left in the window that ends at a time (by default after the last step), and when more comes free."""
        return self._account.remaining(time)

    def plot(
        self,
        path: str | Path | None = None,
        where: Any = None,
        *,
        title: str | None = None,
        confidence: float = 0.95,
    ) -> Figure:
        """Draw the series of one range with its intervals, and the budget in the window; with a path, write it there.

        `where` is a range or a label, as for `release.answer`; by default it is the whole domain, or the first label.
        """
        from sfumato.stream.picture import plot

        with alone(self._home, self.name):
            stored = [(step.time, self._archive.stored(step)) for step in self._account.entries()]
        series = [(time, release) for time, release in stored if release is not None]
        return plot(self._account, series, path, where=where, title=title, confidence=confidence)

    @property
    def epsilon(self) -> Epsilon:
        """What every window holds at most."""
        return self._account.epsilon

    @property
    def window(self) -> Window:
        """How long a change may last and be hidden at ε."""
        return self._account.window

    def __repr__(self) -> str:
        return f"Stream({self.name!r}, epsilon={self.epsilon}, window={str(self.window)!r})"

    # ---------------------------------------------------------------- inside

    def _publish(self, time: Time, counts: Any, points: Any, weight: float, past: Past) -> Release | None:
        chosen = self._allocation.commit(past, weight)
        if weight == 0 or chosen.epsilon == 0:
            self._account.skip(time)
            return None
        self._archive.store.require_free(time, math.prod(self._plan.policy.domain.shape))
        # What a step may spend is the ε of its guarantee, with the factor for records that take another's place.
        bound = counts.max_per_entity if isinstance(counts, Counts) else None
        factor = 1 if bound is None else self._plan.guarantee.counted(bound).replacement
        with undisturbed():
            release = publish(
                self._planned(chosen.epsilon / factor),
                counts,
                points=points,
                ledger=StreamStep(self._account, time, weight=weight, floor=chosen.floor),
                vault=self._vault,
            )
            try:
                self._archive.store.put(time, 0, release)
            except (SfumatoError, OSError) as error:
                what = f"The step of {time} of stream '{self.name}' could not be stored"
                raise rescued(release, what, error, ledger=self._ledger) from error
        return release

    def _follow_up(self, time: Time) -> None:
        """Raise past steps after one that is done: whatever comes of it, that step stands."""
        if not isinstance(self._allocation, TopUp):
            return
        _, refusal = self._raise(self._allocation, ended=False)
        if refusal is not None and not isinstance(refusal, (BudgetExceeded, InvalidInput)):
            # Those two say that another machine was first; the next step will see what it left.
            warn(
                f"The step of {time} of stream '{self.name}' is done; a past one could not be raised: {refusal}",
                stacklevel=3,
            )

    def _raise(self, allocation: TopUp, *, ended: bool) -> tuple[tuple[Release, ...], SfumatoError | None]:
        """(what became finer, the first refusal): one step that cannot be raised does not stop the others."""
        last = self._account.last()
        if last is None:
            return (), None
        number = self._number(last) + 1
        reach = number if ended else allocation.reach
        past, steps = self._past(self._entries(number, reach), number, reach)
        self._say_unknown(steps)
        finer: list[Release | None] = []
        refusals: list[SfumatoError] = []
        for step in steps:
            with _collecting(refusals):
                if step is not None:
                    self._archive.catch_up(step)
        for place, epsilon in allocation.raises(past, ended=ended):
            step = steps[place]
            with _collecting(refusals):
                finer.append(None if step is None else self._archive.refine(step, epsilon))
        return tuple(release for release in finer if release is not None), next(iter(refusals), None)

    def _say_unknown(self, steps: Places) -> None:
        """Say once which steps cannot be raised because the ledger keeps no weight of them."""
        unknown = [step for step in steps if step is not None and step.release_id is not None and step.weight is None]
        if unknown and not self._said:
            self._said = True
            warn(
                f"The ledger has no weight for {len(unknown)} of the last steps of stream '{self.name}', the first of "
                f"them at {unknown[0].time}: they were not charged by this publisher, and are not raised.",
                stacklevel=4,
            )

    def _entries(self, number: int, reach: int) -> tuple[Step, ...]:
        """What the ledger has of the `reach` steps before a step, and from there on."""
        first = self._begin()
        return () if first is None else self._account.entries(self._clock.time(max(number - reach, 0), first))

    def _number(self, entry: Step) -> int:
        """The number of a step in the ledger; every one was made at these steps, or by a stranger."""
        try:
            return self._clock.number(entry.time, self._begin())
        except InvalidInput:
            raise InvalidInput(
                f"stream '{self.name}' has a step at {entry.time}, which lies between the steps of this publisher: "
                "another one publishes it with a step of another length. Nothing was drawn or recorded. Use the same "
                "step everywhere, or another name."
            ) from None

    def _past(self, entries: Sequence[Step], number: int, reach: int) -> tuple[Past, Places]:
        numbers = [self._number(entry) for entry in entries]
        return past_of(entries, numbers, max(number - reach, 0), number, self._clock.steps)

    def _planned(self, epsilon: Fraction) -> Plan:
        """The plan of every step, scaled to the budget of this one."""
        mechanism = replace(self._plan.mechanism, epsilon=self._plan.share_of(epsilon))
        return replace(self._plan, epsilon=epsilon, mechanism=mechanism, expected_error=math.nan, alternatives=())

    def _told(self, time: Any) -> Time:
        """A time as the ledger tells it: instants in UTC."""
        told = time_at(*ticks_of(time, self.window))
        self._clock.number(told, self._begin())
        return told

    def _begin(self) -> Time | None:
        """The time of the first step; None before it."""
        if self._first is None:
            first = self._account.first()
            self._first = None if first is None else first.time
        return self._first

    def _require_refinable(self, allocation: str) -> None:
        mechanism = self._plan.mechanism
        if self._vault is None and allocation == "top-up":
            raise InvalidInput(
                "allocation='top-up' needs a vault, where the noise is kept until a release is raised. Nothing was "
                "drawn or recorded. Give vault=sf.Vault(path, key=…), or use allocation='online'."
            )
        if self._vault is not None and not mechanism.refinable:
            raise InvalidInput(
                f"mechanism={mechanism.name!r} cannot be refined later, so a vault has nothing to keep. Nothing was "
                "drawn or recorded. Leave the vault out, or use another mechanism."
            )


@contextmanager
def _collecting(refusals: list[SfumatoError]) -> Iterator[None]:
    try:
        yield
    except SfumatoError as refusal:
        refusals.append(refusal)
