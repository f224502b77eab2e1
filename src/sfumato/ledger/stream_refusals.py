"""The refusals of a stream's account: the value received, what is allowed, the next step, and that nothing happened."""

from __future__ import annotations

from fractions import Fraction

from sfumato.errors import BudgetExceeded, InvalidInput, LedgerError, PolicyMismatch
from sfumato.exact import text
from sfumato.ledger.steps import Spent, Step, frees
from sfumato.ledger.stream_rows import Terms
from sfumato.policies import Policy
from sfumato.promise.budget import Epsilon, at_most
from sfumato.promise.unit import Unit
from sfumato.promise.window import Clock, Window, time_said

_CLOCKS = {"wall": "without a time zone", "utc": "with a time zone", "steps": "in steps"}


def needs(name: str, where: str, given: dict[str, object]) -> InvalidInput:
    """A new stream lacks a part of its promise."""
    missing = [parameter for parameter, value in given.items() if value is None]
    *others, last = missing
    listed = f"{', '.join(others)} and {last} are" if others else f"{last} is"
    return InvalidInput(
        f"{listed} missing: there is no stream '{name}' in {where} yet, and a new one needs its promise. Nothing was "
        "created. Open it as in ledger.stream('visits', epsilon=1.0, window=7, policy=policy)."
    )


def disagreement(
    name: str, terms: Terms, epsilon: Epsilon | None, window: Window | None, policy: Policy | None, unit: Unit | None
) -> InvalidInput | None:
    """What was given differs from what the stream has promised already; None when all of it agrees."""
    stays = "Nothing was changed. A promise once made stays: leave {} out to go on with it."
    if epsilon is not None and epsilon != terms.epsilon:
        return InvalidInput(
            f"epsilon={text(epsilon)} differs from the {text(terms.epsilon)} that every window of stream '{name}' "
            f"holds. {stays.format('epsilon')}"
        )
    if window is not None and window != terms.window:
        return InvalidInput(
            f"window: stream '{name}' has windows of {terms.window}, not of {window}. {stays.format('window')}"
        )
    if policy is not None and policy.fingerprint != terms.fingerprint:
        return PolicyMismatch(
            f"policy: stream '{name}' was opened under another policy than the one given ({policy.describe()}). "
            f"{stays.format('policy')}"
        )
    if unit is not None and unit != terms.unit:
        return InvalidInput(
            f"unit: stream '{name}' has the unit {terms.unit}, not {unit}. {stays.format('unit and max_per_entity')}"
        )
    return None


def replaced(name: str, path: str) -> LedgerError:
    """The file was replaced while the stream was open."""
    return LedgerError(
        f"'{path}' has no stream '{name}' with the terms it was opened with any more: the file was replaced. Nothing "
        "was drawn or recorded. Restore the ledger."
    )


def mixed_clocks(name: str, time: object, clock: Clock) -> InvalidInput:
    """A time with a zone in a stream of wall time, or the other way round."""
    return InvalidInput(
        f"time={time!r} cannot be compared with the times of stream '{name}', which are {_CLOCKS[clock]}. Nothing was "
        f"drawn or recorded. Give all times of a stream {_CLOCKS[clock]}."
    )


def past(name: str, time: object, last: int, clock: Clock) -> InvalidInput:
    """A new release for a time that is not later than the last step."""
    said = time_said(last, clock)
    return InvalidInput(
        f"time={time!r} is not later than {said}, the last one of stream '{name}'. Nothing was drawn or recorded. "
        f"Every step is released once and in order: use a time after {said}, or raise a past release with raise_step; "
        "one that was never mentioned may be charged with late=True, where its windows have room."
    )


def mentioned(name: str, said: str) -> InvalidInput:
    """A late charge to a time that was published or skipped already."""
    return InvalidInput(
        f"{said} of stream '{name}' was published or skipped already, and late=True is for one that was never "
        "mentioned. Nothing was drawn or recorded. Raise a past release with raise_step."
    )


def late_exceeded(name: str, terms: Terms, asked: Epsilon, left: Epsilon, said: str, end: str) -> BudgetExceeded:
    """A late step that does not fit into every window that holds it."""
    advice = f"Use at most {at_most(left)}" if left else "Leave the step out"
    return BudgetExceeded(
        f"epsilon={text(asked)} for {said} of stream '{name}', which is late, exceeds the {at_most(left)} left in the "
        f"window of {terms.window} that ends at {end}. Nothing was drawn or recorded. {advice}: what a past window has "
        "spent never comes free."
    )


def other_terms(name: str, terms: Terms, rate: int) -> InvalidInput:
    """A release that hides less of what the stream promises to hide than its own ε says."""
    return InvalidInput(
        f"policy, unit: a release under these costs {rate} times its epsilon in stream '{name}', whose unit is "
        f"{terms.unit}: one of its changes takes up to {rate} steps of the release's. Nothing was drawn or recorded. "
        "Release under the policy and unit of the stream."
    )


def exceeded(name: str, terms: Terms, asked: Epsilon, spent: Spent, left: Epsilon, clock: Clock) -> BudgetExceeded:
    """A step that does not fit into the window that ends with it, and when it would."""
    choices = [f"use at most {at_most(left)}"] if left else []
    if asked > terms.epsilon:
        choices += [] if left else [f"use at most {at_most(terms.epsilon)} when the window is empty again"]
    else:
        when = next(tick for tick, then in frees(spent, terms.window, left) if then >= asked)
        try:
            choices.append(f"wait until {time_said(when, clock)}")
        except OverflowError:  # later than the last day of the calendar
            choices += [] if left else ["end the stream here: no more comes free"]
    advice = ", or ".join(choices)
    return BudgetExceeded(
        f"epsilon={text(asked)} exceeds the {at_most(left)} left in the window of {terms.window} of stream '{name}'. "
        f"Nothing was drawn or recorded. {advice[:1].upper()}{advice[1:]}."
    )


def no_release(name: str, time: object, *, skipped: bool) -> InvalidInput:
    """There is nothing to raise at a time."""
    why = "that step was skipped" if skipped else "there is no such step"
    return InvalidInput(
        f"time={time!r} has no release in stream '{name}' that could be raised: {why}. Nothing was drawn or recorded. "
        "A past step is not released afterwards; raise one that was."
    )


def raise_exceeded(
    name: str, terms: Terms, said: str, step: Step, asked: Epsilon, left: Fraction, end: str
) -> BudgetExceeded:
    """A raise that does not fit into every window that holds the step. Waiting does not help: the window is past."""
    advice = f"Use at most {at_most(step.epsilon + left)}" if left else "Leave the release as it is"
    return BudgetExceeded(
        f"epsilon={text(asked)} is too much: raising {said} of stream '{name}' from {text(step.epsilon)} costs "
        f"{text(asked - step.epsilon)}, which exceeds the {at_most(left)} left in the window of {terms.window} that "
        f"ends at {end}. Nothing was drawn or recorded. {advice}: what a past window has spent never comes free."
    )


def standing(name: str, said: str, step: Step) -> str:
    """A step and where it stands."""
    return f"{said} of stream '{name}', which is at level {step.level} with epsilon={text(step.epsilon)}"
