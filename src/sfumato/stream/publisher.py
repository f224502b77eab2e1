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
from collections.abc import Callable
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
from sfumato.ledger.steps import Remaining
from sfumato.planning import Plan, plan
from sfumato.policies import Policy
from sfumato.promise import Epsilon
from sfumato.promise.window import Time, Window
from sfumato.publication import Publication
from sfumato.publishing import publish
from sfumato.publishing.step import StreamStep
from sfumato.release import Release
from sfumato.release.outbox import rescued
from sfumato.stream.archive import Archive, Record, alone
from sfumato.stream.arguments import folder_name, home_beside, require_kind, weight_of
from sfumato.stream.choices import AllocationName, Commitment, TopUp, choose
from sfumato.stream.chronicle import Chronicle, Standing
from sfumato.stream.numbering import StepNumbering
from sfumato.stream.outcome import Outcome, published, refused, skipped
from sfumato.stream.raising import Raising
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
        self._chronicle = Chronicle(self._account, self._clock)
        self._raising: Raising | None = None
        if isinstance(self._allocation, TopUp):
            self._raising = Raising(self._chronicle, self._archive, self._allocation)
        self._ledger = ledger.path

    # ---------------------------------------------------------------- publishing

    def publish(
        self,
        time: Time,
        counts: Counts | ArrayLike | None = None,
        weight: float | None = None,
        *,
        points: ArrayLike | None = None,
        late: bool = False,
    ) -> Release | None:
        """Publish the data of a time, later than all before; give counts or raw points as to `plan.publish`.

        `weight` says how much an error at this step matters; 0 skips it. None comes back where the step gets no budget:
        it is then recorded as skipped. A time that was published already gives its release again, without a look at
        the counts and at no cost. With `late` the time may be one that was passed over: it is charged to its own
        windows, gets at most what the fullest of them has left, and is refused where that is nothing (`choices`).

        >>> policy, ledger = sf.bounded(sf.Line(0, 4, cells=4)), sf.Ledger.create("budget.db", epsilon=1)
        >>> stream = sf.Stream(policy, sf.histogram(), epsilon=1, window=4, ledger=ledger, name="visits")
        >>> stream.publish(0, np.array([3, 0, 5, 1])).guarantee.epsilon
        0.25
        """
        given = weight_of(weight)
        with alone(self._home, self.name):
            standing = self._chronicle.standing(time, self._allocation.reach, late=late)
            if standing.known is not None:
                return self._archive.again(standing.known)
            return self._publish(standing, counts, points, self._allocation.weight(standing.number, given))

    def run(
        self,
        time: Time,
        count: Callable[[], Counts | ArrayLike],
        weight: float | None = None,
        *,
        late: bool = False,
    ) -> Outcome:
        """Publish a step in a job that may die at any point and be repeated: asks first, counts only when it must.

        A step that was published is handed out again, and one that gets no budget is skipped or refused, before `count`
        is called. It is called without arguments, once at the most, and nobody else has to wait meanwhile. What it
        raises is raised here, and nothing was charged then. A step that was charged and not stored is lost and stays
        so: the outcome says it, and the job goes on. Whether and when a step is run must not depend on the data.

        >>> policy, ledger = sf.bounded(sf.Line(0, 4, cells=4)), sf.Ledger.create("budget.db", epsilon=1)
        >>> stream = sf.Stream(policy, sf.histogram(), epsilon=1, window=4, ledger=ledger, name="visits")
        >>> for _ in range(2):
        ...     print(stream.run(0, lambda: np.array([3, 0, 5, 1])))
        0: published at ε = 0.25
        0: published before at ε = 0.25; nothing was counted or charged
        """
        if not callable(count):
            raise InvalidInput(
                f"count={type(count).__name__} cannot be called. Nothing was counted, drawn or recorded. Give a "
                "function of no arguments that counts, such as lambda: sf.count(data, domain)."
            )
        given = weight_of(weight)
        try:
            found = self._without_counting(time, given, late=late)
        except BudgetExceeded as refusal:
            return refused(self._chronicle.told(time), refusal)
        if found is not None:
            return found
        counts = count()
        try:
            return self._counted(time, counts, given, late=late)
        except BudgetExceeded as refusal:  # somebody else has spent it meanwhile
            return refused(self._chronicle.told(time), refusal)

    def due(self, until: Time, *, start: Time | None = None) -> tuple[Time, ...]:
        """The steps that are over by a time and were never mentioned, in order: what a job has to `run`, with `late`.

        `start` is when the first step of a new stream begins; it is not looked at in one that has steps.

        >>> policy, ledger = sf.bounded(sf.Line(0, 4, cells=4)), sf.Ledger.create("budget.db", epsilon=1)
        >>> stream = sf.Stream(policy, sf.histogram(), epsilon=1, window=4, ledger=ledger, name="visits")
        >>> stream.due(until=3, start=1)
        (1, 2)
        """
        return self._chronicle.due(until, start)

    def skip(self, time: Time, *, late: bool = False) -> None:
        """Record that nothing is published for a time. A time that is never mentioned counts the same.

        With `late` it may be one that was passed over, which is then not `due` any more.

        >>> policy, ledger = sf.bounded(sf.Line(0, 4, cells=4)), sf.Ledger.create("budget.db", epsilon=1)
        >>> stream = sf.Stream(policy, sf.histogram(), epsilon=1, window=4, ledger=ledger, name="visits")
        >>> stream.skip(0)
        """
        with alone(self._home, self.name):
            standing = self._chronicle.standing(time, 0, late=late)
            known = standing.known
            if known is not None and known.release_id is not None:
                raise InvalidInput(
                    f"time={standing.time} of stream '{self.name}' was published and cannot be skipped any more. "
                    "Nothing was recorded. Skip a later one."
                )
            if known is None:
                self._skipped(standing)

    def top_up(self, *, ended: bool = False) -> tuple[Release, ...]:
        """Raise the releases whose windows have closed, and give the finer ones; `publish` does so by itself.

        Each is a finer level of the same release, charged to the time of its data. With `ended` no further step will
        come, and what is left in the last windows is spent, too.
        """
        if self._raising is None:
            raise InvalidInput(
                f"stream '{self.name}' does not raise past steps. Nothing was drawn or recorded. Open it with "
                "allocation='top-up' and a vault."
            )
        with alone(self._home, self.name):
            finer, refusal = self._raising.raised(ended=ended)
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
            step = self._account.at(self._chronicle.told(time))
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

    def _without_counting(self, time: Time, given: float | None, *, late: bool) -> Outcome | None:
        """What comes of a step that needs no counts; None where they are needed, and all is ready for them."""
        with alone(self._home, self.name):
            standing = self._chronicle.standing(time, self._allocation.reach, late=late)
            if standing.known is not None:
                return self._archive.outcome(standing.known)
            if self._committed(standing, self._allocation.weight(standing.number, given)) is None:
                self._skipped(standing)
                return skipped(standing.time)
            return None

    def _counted(self, time: Time, counts: Any, given: float | None, *, late: bool) -> Outcome:
        """What comes of a step once it was counted: somebody else may have been first meanwhile."""
        with alone(self._home, self.name):
            standing = self._chronicle.standing(time, self._allocation.reach, late=late)
            if standing.known is not None:
                return self._archive.outcome(standing.known)
            try:
                release = self._publish(standing, counts, None, self._allocation.weight(standing.number, given))
            except InvalidInput:
                known = self._account.at(standing.time)  # another machine's, and the ledger took it first
                if known is None:
                    raise
                return self._archive.outcome(known)
            return skipped(standing.time) if release is None else published(standing.time, release)

    def _publish(self, standing: Standing, counts: Any, points: Any, weight: float) -> Release | None:
        chosen = self._committed(standing, weight)
        if chosen is None:
            self._skipped(standing)
            return None
        time = standing.time
        # What a step may spend is the ε of its guarantee, with the factor for records that take another's place.
        bound = counts.max_per_entity if isinstance(counts, Counts) else None
        factor = 1 if bound is None else self._plan.guarantee.counted(bound).replacement
        paid = StreamStep(self._account, time, weight=weight, floor=chosen.floor, late=standing.later is not None)
        with undisturbed():
            release = publish(
                self._planned(chosen.epsilon / factor), counts, points=points, ledger=paid, vault=self._vault
            )
            try:
                self._archive.store.put(time, 0, release)
            except (SfumatoError, OSError) as error:
                what = f"The step of {time} of stream '{self.name}' could not be stored"
                raise rescued(release, what, error, ledger=self._ledger) from error
        self._follow_up(time)
        return release

    def _committed(self, standing: Standing, weight: float) -> Commitment | None:
        """The budget of a step, once there is a place for its release; None where it is skipped."""
        if standing.later is None:
            chosen = self._allocation.commit(standing.past, weight)
        else:
            chosen = self._allocation.late(standing.past, standing.later, weight)
        if weight > 0 and chosen.epsilon == 0 and standing.later is not None:
            raise BudgetExceeded(
                f"time={standing.time} of stream '{self.name}' is late, and the windows of {self.window} that hold it "
                "have nothing left for it beside the steps around it. Nothing was drawn or recorded. What a past "
                "window has spent never comes free: leave the step out, or close it with skip(time, late=True)."
            )
        if weight == 0 or chosen.epsilon == 0:
            return None
        self._archive.store.require_free(standing.time, math.prod(self._plan.policy.domain.shape))
        return chosen

    def _skipped(self, standing: Standing) -> None:
        """Record that a step is skipped, and what follows from that."""
        self._account.skip(standing.time, late=standing.later is not None)
        self._follow_up(standing.time)

    def _follow_up(self, time: Time) -> None:
        if self._raising is not None:
            self._raising.follow_up(time)

    def _planned(self, epsilon: Fraction) -> Plan:
        """The plan of every step, scaled to the budget of this one."""
        mechanism = replace(self._plan.mechanism, epsilon=self._plan.share_of(epsilon))
        return replace(self._plan, epsilon=epsilon, mechanism=mechanism, expected_error=math.nan, alternatives=())

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
