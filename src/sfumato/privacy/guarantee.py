"""The guarantee of a release: data that can say itself in plain words.

The promise: for every two datasets that differ by one step of the named policy, taken by one unit (a
record, or a person), and for every set S of outputs, P[M(x) ∈ S] ≤ e^ε · P[M(x') ∈ S], for a mechanism M
that differs from the one that was run with probability at most `slack` (the exact sampler cuts its binary
expansions at 2⁻¹⁰⁰ for a whole release). A change along a path of k steps is hidden at k·ε.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from sfumato.errors import FileFormatError, InvalidInput, SfumatoError
from sfumato.exact import fraction, positive_fraction
from sfumato.policy import Policy, policy_from_spec
from sfumato.privacy import words
from sfumato.privacy.budget import Epsilon, stored
from sfumato.privacy.unit import UnitName, unit_of

SAMPLER_SLACK = Fraction(1, 2**100)

_KEYS = frozenset({"policy", "epsilon", "unit", "max_per_entity", "window", "slack", "private"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Guarantee:
    """What a release promises: ε under a policy, for a record or a person. `describe()` says it in words.

    `max_per_entity` is the most records counted of one person; a promise about a person needs it, one
    about a record may know it. `private` is False for releases made with seeded randomness, which promise
    nothing. `window` is for releases over time and None here.
    """

    policy: Policy
    epsilon: Fraction
    unit: UnitName = "record"
    max_per_entity: int | None = None
    window: None = None
    slack: Fraction = SAMPLER_SLACK
    private: bool = True

    def __post_init__(self) -> None:
        if not isinstance(self.policy, Policy):
            raise InvalidInput(
                f"policy={type(self.policy).__name__} is not a policy. Build one, such as sf.within(grid, delta=0.01)."
            )
        checked = unit_of(self.unit, self.max_per_entity)
        slack = fraction(self.slack, "slack")
        if not 0 <= slack < 1:
            raise InvalidInput(f"slack={self.slack!r} must be at least 0 and below 1: it is a probability.")
        if self.window is not None:
            raise InvalidInput(f"window={self.window!r} must be None: this guarantee is about a single release.")
        if not isinstance(self.private, bool):
            raise InvalidInput(f"private={self.private!r} must be True or False.")
        object.__setattr__(self, "epsilon", Epsilon(positive_fraction(self.epsilon, "epsilon")))
        object.__setattr__(self, "max_per_entity", checked.max_per_entity)
        object.__setattr__(self, "slack", slack)

    def at(self, steps: int) -> Epsilon:
        """The ε at which a change along a path of so many steps of the policy is hidden."""
        return Epsilon(self.epsilon * steps)

    def describe(self) -> str:
        """The promise and its limits, in plain words."""
        return words.describe(self)

    def __str__(self) -> str:
        return words.one_line(self)

    def to_dict(self) -> dict[str, Any]:
        """Plain data for a release file; `from_dict` reads it back."""
        return {
            "policy": self.policy.spec(),
            "epsilon": stored(self.epsilon, "epsilon"),
            "unit": self.unit,
            "max_per_entity": self.max_per_entity,
            "window": None,
            "slack": stored(self.slack, "slack"),
            "private": self.private,
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Guarantee:
        """The guarantee that `to_dict` wrote. Unknown policies and fields are refused, never looked up or imported."""
        if not isinstance(data, Mapping) or set(data) != _KEYS:
            raise _unreadable("it does not have exactly the fields " + ", ".join(sorted(_KEYS)) + ".")
        if not isinstance(data["policy"], dict):
            raise _unreadable("its policy is no description.")
        if not all(isinstance(data[key], str) for key in ("epsilon", "slack")):
            raise _unreadable("epsilon and slack must be fractions written as text.")
        try:
            return cls(**{**data, "policy": policy_from_spec(data["policy"])})
        except SfumatoError as error:
            raise _unreadable(str(error)) from error


def _unreadable(why: str) -> FileFormatError:
    return FileFormatError(f"The guarantee cannot be read: {why} The file is damaged or from a newer sfumato.")
