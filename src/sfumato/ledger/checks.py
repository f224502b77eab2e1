"""What every charge is asked before anything is recorded, and what it is told when it does not fit."""

from __future__ import annotations

from fractions import Fraction

from sfumato.errors import BudgetExceeded, InvalidInput
from sfumato.exact import finite_float, text
from sfumato.ledger.account import Account
from sfumato.policies import Policy
from sfumato.promise.budget import at_most


def require_policy(policy: object) -> None:
    """Refuse what is not a policy."""
    if not isinstance(policy, Policy):
        raise InvalidInput(
            f"policy={type(policy).__name__} is not a policy. Nothing was drawn or recorded. Build one, such as "
            "sf.within(grid, delta=0.01)."
        )


def require_private(private: object) -> None:
    """Refuse a release whose noise somebody could draw again."""
    if private is not True:
        raise InvalidInput(
            "A release made with seeded randomness is not private and cannot be charged to a "
            "ledger. Nothing was drawn or recorded. Publish it without a ledger, or use the default "
            "randomness."
        )


def words(value: object, name: str) -> str:
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
