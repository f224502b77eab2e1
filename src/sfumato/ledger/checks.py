"""What every charge is asked before anything is recorded."""

from __future__ import annotations

from sfumato.errors import InvalidInput
from sfumato.policies import Policy


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
