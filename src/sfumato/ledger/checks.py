"""What every charge is asked before anything is recorded, and what it is told when it does not fit."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import cast

from sfumato.errors import BudgetExceeded, InvalidInput
from sfumato.exact import Number, finite_float, positive_fraction, text
from sfumato.ledger.account import Account
from sfumato.policies import Policy
from sfumato.promise.budget import Epsilon, at_most
from sfumato.promise.guarantee import SAMPLER_SLACK, Guarantee
from sfumato.promise.unit import Unit, unit_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Promised:
    """What is asked of an account: a loss, and between which datasets it is meant."""

    loss: Epsilon
    policy: Policy
    unit: Unit
    private: bool = True


def promised(
    guarantee: Guarantee | Number,
    policy: Policy | None = None,
    unit: str | None = None,
    max_per_entity: int | None = None,
    private: bool = True,
) -> Promised:
    """What a guarantee comes to; or its parts one by one, as they were given before."""
    if isinstance(guarantee, Guarantee):
        if (policy, unit, max_per_entity, private) != (None, None, None, True):
            raise InvalidInput(
                "a guarantee says its policy, unit and max_per_entity itself, and whether it is private. Nothing was "
                "drawn or recorded. Leave them out."
            )
        if guarantee.slack > SAMPLER_SLACK:
            raise InvalidInput(
                f"slack={text(guarantee.slack)} does not fit a ledger, which adds up ε alone: the slack would be "
                "forgotten. Nothing was drawn or recorded. Use a method whose promise is ε."
            )
        return Promised(
            loss=guarantee.loss, policy=guarantee.policy, unit=guarantee.protects, private=guarantee.private
        )
    loss = Epsilon(positive_fraction(guarantee, "epsilon"))
    unit_given = unit_of("record" if unit is None else unit, max_per_entity)
    return Promised(loss=loss, policy=checked_policy(policy), unit=unit_given, private=private)


def require_next_level(level: object, stands: int, here: str) -> None:
    """Refuse a level that does not follow the one that `here` is at."""
    if isinstance(level, bool) or level != stands + 1:
        raise InvalidInput(
            f"level={level!r} is not the next level of {here}. Nothing was drawn or recorded. Only level {stands + 1} "
            "can follow: what was made from an older state would be a second noise."
        )


def require_finer(epsilon: Epsilon, has: Epsilon, here: str) -> None:
    """Refuse an ε that is not above the one that `here` has."""
    if epsilon <= has:
        raise InvalidInput(
            f"epsilon={text(epsilon)} does not raise {here}. Nothing was drawn or recorded. Use more than "
            f"{text(has)}; for a coarser level, use the release that was made at it."
        )


def require_policy(policy: object) -> None:
    """Refuse what is not a policy."""
    if not isinstance(policy, Policy):
        raise InvalidInput(
            f"policy={type(policy).__name__} is not a policy. Nothing was drawn or recorded. Build one, such as "
            "sf.within(grid, delta=0.01)."
        )


def checked_policy(policy: Policy | None) -> Policy:
    """The policy, or the refusal of what is none."""
    require_policy(policy)
    return cast(Policy, policy)


def names_of(given: object, name: str) -> tuple[str, ...]:
    """The attributes by which records were left out, or the refusal of what are no names."""
    if isinstance(given, str) or not isinstance(given, Collection):
        raise InvalidInput(
            f"{name}={given!r} must be a list of attributes, such as {name}=['mode']. Nothing was drawn or recorded."
        )
    return tuple(sorted({plain_text(one, name) for one in given}))


def seen_through(policy: Policy, filtered: Sequence[str]) -> str:
    """What the history says that a release hides, and by which attributes records were left out of it."""
    said = policy.describe()
    return f"{said}; of records chosen by {', '.join(map(repr, filtered))}" if filtered else said


def require_private(private: object) -> None:
    """Refuse a release whose noise somebody could draw again."""
    if private is not True:
        raise InvalidInput(
            "A release made with seeded randomness is not private and cannot be charged to a "
            "ledger. Nothing was drawn or recorded. Publish it without a ledger, or use the default "
            "randomness."
        )


def plain_text(value: object, name: str) -> str:
    """A text that says something, and that every database can keep: no NUL, no half of a pair of surrogates."""
    if not isinstance(value, str) or not value.strip():
        raise InvalidInput(f"{name}={value!r} must be a non-empty string. Nothing was drawn or recorded.")
    if "\0" in value or any("\ud800" <= letter <= "\udfff" for letter in value):
        raise InvalidInput(
            f"{name}={value!r} must be text without NUL characters and lone surrogates. Nothing was drawn or recorded."
        )
    return value


def figure(value: float | None, name: str) -> float | None:
    """A public figure of a step, at least 0; None where nobody says."""
    if value is None:
        return None
    try:
        if (given := finite_float(value, name)) >= 0:
            return given
    except InvalidInput:
        pass
    raise InvalidInput(f"{name}={value!r} must be a finite number of at least 0. Nothing was drawn or recorded.")


def exceeded(asked: Fraction, rate: int, account: Account, where: str) -> BudgetExceeded:
    """What an account says that has too little left."""
    cost = f"epsilon={text(asked)}"
    if rate != 1:
        cost += (
            f" costs {text(asked * rate)} here ({rate} × {text(asked)}: one step of the account's "
            f"policy and unit takes up to {rate} steps of the release's), which"
        )
    fits = account.remaining / rate
    advice = f"Use at most {at_most(fits)}, or r" if fits else "R"
    return BudgetExceeded(
        f"{cost} exceeds the {at_most(account.remaining)} left of {text(account.total)} in {where}. Nothing was drawn "
        f"or recorded. {advice}aise the total with raise_cap, which weakens the promise."
    )
