"""The guarantee of a release: data that can say itself in plain words.

The promise: for every two datasets that differ by one step of the named policy, taken by one unit (a
record, or a person), and for every set S of outputs, P[M(x) ∈ S] ≤ e^ε · P[M(x') ∈ S], for a mechanism M
that differs from the one that was run with probability at most `slack` (the exact sampler cuts its binary
expansions at 2⁻¹⁰⁰ for a whole release). A change along a path of k steps is hidden at k·ε.

Where at most so many records of each person were counted, a record that comes or goes may change which other record of
the same person is counted, wherever that lies. A promise about one record then carries the factor `replacement` in its
ε: the most steps that such a change of the counts takes (`sfumato.promise.cost`).

A release of a stream has a second promise, over time: all releases of the stream together hide a change that is
confined to one `window`, and at every time in it is one step of the policy, at `window_epsilon`; and at k times that
when it lasts k windows (`sfumato.ledger.streams`). `epsilon` is then what this one release spent of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from sfumato.errors import FileFormatError, InvalidInput, SfumatoError
from sfumato.exact import fraction, positive_fraction, positive_int, text, written
from sfumato.policies import Policy, policy_from_spec
from sfumato.promise import wording
from sfumato.promise.budget import Epsilon, stored
from sfumato.promise.cost import replacement
from sfumato.promise.unit import Unit, UnitName, unit_of
from sfumato.promise.window import Window
from sfumato.reading import visible
from sfumato.values import People

SAMPLER_SLACK = Fraction(1, 2**100)

_KEYS = frozenset({"policy", "epsilon", "unit", "max_per_entity", "window", "slack", "private"})
_STREAM_KEYS = _KEYS | {"window_epsilon"}
_FACTOR = "replacement"  # written only where there is one: all other guarantees are written as they always were
_SEARCHED = 4096  # cells of a domain whose diameter is computed when a file is read
_EXACT = frozenset({"epsilon", "window_epsilon", "slack"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Guarantee:
    """What a release promises: ε under a policy, for a record or a person. `describe()` says it in words.

    `max_per_entity` is the most records counted of one person; a promise about a person needs it, one
    about a record may know it. `private` is False for releases made with seeded randomness, which promise
    nothing. `window` and `window_epsilon` are the promise of a stream, and None for a release that stands alone.
    `replacement` is the factor in epsilon that pays for a record that takes the place of another one. Releases of
    earlier versions do not carry it, and say so in words.

    >>> guarantee = sf.plan(sf.bounded(sf.Line(0, 1, cells=4)), sf.histogram(), epsilon="0.5").guarantee
    >>> guarantee.epsilon, guarantee.unit
    (0.5, 'record')
    """

    policy: Policy
    epsilon: Fraction
    unit: UnitName = "record"
    max_per_entity: int | None = None
    window: Window | None = None
    window_epsilon: Fraction | None = None
    slack: Fraction = SAMPLER_SLACK
    private: bool = True
    replacement: int = 1

    def __post_init__(self) -> None:
        if not isinstance(self.policy, Policy):
            raise InvalidInput(
                f"policy={type(self.policy).__name__} is not a policy. Build one, such as "
                "sf.policy(grid, hide=sf.move(0.01))."
            )
        checked = unit_of(self.unit, self.max_per_entity)
        slack = fraction(self.slack, "slack")
        if not 0 <= slack < 1:
            raise InvalidInput(f"slack={self.slack!r} must be at least 0 and below 1: it is a probability.")
        if not isinstance(self.private, bool):
            raise InvalidInput(f"private={self.private!r} must be True or False.")
        factor = positive_int(self.replacement, "replacement")
        if factor > 1 and (checked.name != "record" or checked.max_per_entity is None or not self._may_vanish):
            raise InvalidInput(
                f"replacement={factor} is for promises about one record on counts that were bounded for each person, "
                "under a policy that lets records come and go. Leave it out."
            )
        self._require_people(checked)
        object.__setattr__(self, "replacement", factor)
        object.__setattr__(self, "epsilon", Epsilon(positive_fraction(self.epsilon, "epsilon")))
        object.__setattr__(self, "window_epsilon", self._checked_window())
        object.__setattr__(self, "max_per_entity", checked.max_per_entity)
        object.__setattr__(self, "slack", slack)

    def _require_people(self, unit: Unit) -> None:
        """Distinct people: the promise is about a person, in as many cells as one of them is counted in."""
        counted = self.policy.values
        if isinstance(counted, People) and unit != Unit("person", counted.cells):
            raise InvalidInput(
                f"unit={unit.name!r} with max_per_entity={unit.max_per_entity} does not go with {counted.to_text()}: "
                f"what is promised there is about a person in up to {counted.cells} cells. Use unit='person' and "
                f"max_per_entity={counted.cells}."
            )

    def _checked_window(self) -> Epsilon | None:
        """The ε of every window, exact; it belongs to a window, and no release of a stream has spent more."""
        if self.window is None and self.window_epsilon is None:
            return None
        if not isinstance(self.window, Window):
            raise InvalidInput(
                f"window={self.window!r} is not a window. Use one, such as Window.of(7), together with window_epsilon; "
                "or neither, for a release that stands alone."
            )
        if self.window_epsilon is None:
            raise InvalidInput(
                f"window_epsilon is missing: it is what every window of {self.window} spends at most. Pass the epsilon "
                "of the stream."
            )
        whole = Epsilon(positive_fraction(self.window_epsilon, "window_epsilon"))
        if whole < self.epsilon:
            raise InvalidInput(
                f"epsilon={text(self.epsilon)} is more than the {text(whole)} that a whole window may spend "
                "(window_epsilon)."
            )
        return whole

    @property
    def _may_vanish(self) -> bool:
        return not self.policy.on_records.total_is_public

    @property
    def protects(self) -> Unit:
        """The unit and its bound as one value: a record, or a person with at most so many."""
        return unit_of(self.unit, self.max_per_entity)

    @property
    def loss(self) -> Epsilon:
        """What an account adds up for it. Accounts read this alone; another kind of loss (ρ) would come from here."""
        return Epsilon(self.epsilon)

    def counted(self, most: int | None) -> Guarantee:
        """What a plan's promise becomes on counts that hold at most so many records of each person (None: any number).

        With fewer records of a person than planned for, a record that goes may bring another one into the count: ε
        then carries the factor for that (`sfumato.promise.cost.replacement`).
        """
        factor = replacement(self.policy, unit_of(self.unit, most))
        return replace(self, epsilon=self.epsilon * factor, max_per_entity=most, replacement=factor)

    def at(self, steps: int) -> Epsilon:
        """The ε at which a change along a path of so many steps of the policy is hidden.

        >>> policy = sf.threshold(sf.Line(0, 24, cells=24), theta=1)
        >>> sf.plan(policy, sf.histogram(), epsilon=1).guarantee.at(3)
        3
        """
        return Epsilon(self.epsilon * steps)

    def describe(self) -> str:
        """The promise and its limits, in plain words.

        >>> policy = sf.threshold(sf.Line(0, 24, cells=24), theta=1)
        >>> print(sf.plan(policy, sf.histogram(), epsilon=1).guarantee.describe())
        Neighbours ('threshold'): one record moves by at most 1 cell (counted along the axes); ...
        Promise (ε = 1): whatever else somebody knows, ...
        """
        return visible(wording.describe(self))

    def __str__(self) -> str:
        return visible(wording.one_line(self))

    def to_dict(self) -> dict[str, Any]:
        """Plain data for a release file; `from_dict` reads it back. Only a release of a stream has `window_epsilon`."""
        over_time: dict[str, Any] = {"window": None}
        if self.window is not None and self.window_epsilon is not None:
            over_time = {
                "window": self.window.to_dict(),
                "window_epsilon": stored(self.window_epsilon, "window_epsilon"),
            }
        return {
            "policy": self.policy.spec(),
            "epsilon": stored(self.epsilon, "epsilon"),
            "unit": self.unit,
            "max_per_entity": self.max_per_entity,
            **over_time,
            "slack": stored(self.slack, "slack"),
            "private": self.private,
            **({_FACTOR: self.replacement} if self.replacement > 1 else {}),
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Guarantee:
        """The guarantee that `to_dict` wrote. Unknown policies and fields are refused, never looked up or imported."""
        keys = _STREAM_KEYS if isinstance(data, Mapping) and data.get("window") is not None else _KEYS
        if not isinstance(data, Mapping) or set(data) - {_FACTOR} != keys:
            raise _unreadable("it does not have exactly the fields " + ", ".join(sorted(keys)) + ".")
        if not isinstance(data["policy"], dict):
            raise _unreadable("its policy is no description.")
        if not all(isinstance(data[key], str) for key in keys & _EXACT):
            raise _unreadable("every epsilon and slack must be fractions written as text.")
        try:
            for key in keys & _EXACT:
                written(data[key], key)
            window = None if data["window"] is None else Window.from_dict(data["window"])
            made = cls(**{**data, "policy": policy_from_spec(data["policy"]), "window": window})
            # Of a large domain the diameter is a search, and a stranger's file may not ask for one.
            small = made.policy.domain.size <= _SEARCHED
            if _FACTOR in data and made.replacement < (max(made.policy.diameter, 2) if small else 2):
                raise _unreadable("its factor is smaller than the steps that another record may be away.")
            return made
        except SfumatoError as error:
            raise _unreadable(str(error)) from error


def _unreadable(why: str) -> FileFormatError:
    return FileFormatError(f"The guarantee cannot be read: {why} The file is damaged or from a newer sfumato.")
