"""What a plan makes of sums and of people: the mechanisms that fit them, the bound on a person, the unit of errors."""

from __future__ import annotations

from typing import Any

from sfumato.errors import InvalidInput
from sfumato.mechanism import Mechanism
from sfumato.policies import Policy
from sfumato.values import Amounts, People


def bound_of(policy: Policy, given: int | None) -> int | None:
    """What the plan promises something about: for people a person, with as many cells as are counted at most."""
    if not isinstance(policy.values, People):
        return given
    if given not in (None, policy.values.cells):
        raise InvalidInput(
            f"max_per_entity={given} and {policy.values.to_text()} are two bounds on one person. Nothing was drawn or "
            "recorded. Leave max_per_entity out: people are bounded by the cells that they are counted in."
        )
    return policy.values.cells


def worth_of(policy: Policy) -> float:
    """What one step of the lattice is worth; one, where records or people are counted."""
    return 1.0 if policy.values is None else float(policy.values.unit)


def refuse_unfit(policy: Policy, mechanism: str | None, like: Any, records: int | None) -> None:
    """Refuse what is known of counts, and says nothing of sums."""
    del mechanism
    if not isinstance(policy.values, Amounts):
        return
    for name, given in (("like", like), ("records", records)):
        if given is not None:
            raise InvalidInput(
                f"{name} speaks of numbers of records, and the plan is for {policy.values.describe()}. Nothing was "
                f"drawn or recorded. Leave {name} out: all that is weighed for sums has an error that is known."
            )


def refuse_unproved(policy: Policy, built: Mechanism) -> None:
    """Sums may be negative and are no numbers of records: for them are mechanisms that add noise to linear figures."""
    if isinstance(policy.values, Amounts) and built.linear is None:
        raise InvalidInput(
            f"mechanism={built.name!r} is proved for numbers of records, not for sums. Nothing was drawn or recorded. "
            "Use one that adds noise to linear figures, or leave mechanism out."
        )
