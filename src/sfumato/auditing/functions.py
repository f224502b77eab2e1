"""Auditing somebody else's function: nothing is known of it but what it returns.

It is run on neighbours, what tells them apart is learned from some runs and counted on others, as for any mechanism
(`statistical`): the loss is at least what is found, but for a probability of 1 - confidence. Neighbours come from a
policy, on made-up or given counts, or are given one by one, as whatever the function takes.

The promise rests on runs that do not depend on each other. Sides are drawn by a coin, run by run, so that a function
whose state drifts tells neither side apart by that alone; one that answers from memory is another matter, and one that
seeds its own noise always alike is found: its outputs tell everything.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np

from sfumato._types import Floats, Integers
from sfumato.auditing.databases import Pair, bases
from sfumato.auditing.record_changes import changes
from sfumato.auditing.result import Audit, Witness
from sfumato.auditing.statistical.lower_bound import neighbours, search
from sfumato.auditing.statistical.outputs import Outputs
from sfumato.errors import InvalidInput
from sfumato.exact import shown
from sfumato.policies import Policy

Function = Callable[[Any], Any]

FIRST_LOOKS = 3  # runs on either of the first neighbours, before anything is counted
MOST_PAIRS = 256


@dataclass(frozen=True, eq=False)
class Given:
    """Two neighbours that were given, and where they stood."""

    number: int
    before: Any
    after: Any

    def witness(self, event: str) -> Witness:
        """Which of the neighbours given, and what tells them apart."""
        return Witness(event=f"inputs[{self.number}]; {event}")


@dataclass(eq=False)
class FunctionGame:
    """A function on either of two neighbours, in an order that no side has for itself."""

    function: Function
    shape: tuple[int, ...] | None
    rng: np.random.Generator
    outputs: Outputs = field(default_factory=Outputs)

    @property
    def nominal(self) -> Sequence[int]:
        """The features that are names."""
        return self.outputs.nominal

    def names(self, neighbours: Pair | Given) -> list[str]:
        """The same for all neighbours."""
        del neighbours
        return self.outputs.titles

    def played(self, neighbours: Pair | Given, first: int, second: int) -> tuple[Floats, Floats]:
        """So many runs on either, mixed."""
        sides = np.repeat([True, False], [first, second])
        self.rng.shuffle(sides)
        rows: tuple[list[list[float]], list[list[float]]] = [], []
        for on_first in sides.tolist():
            output = self.run(neighbours.before if on_first else neighbours.after)
            rows[0 if on_first else 1].append(self.outputs.row(output))
        return self.outputs.table(rows[0]), self.outputs.table(rows[1])

    def run(self, data: Any) -> Any:
        """One output; an exception is one, too."""
        try:
            return self.function(data if self.shape is None else np.array(data).reshape(self.shape))
        except Exception as error:  # noqa: BLE001  # whatever it is, whoever watches sees it
            return Raised(type(error).__name__, str(error))


@dataclass(frozen=True)
class Raised:
    """What was raised in the place of an output."""

    kind: str
    message: str


def audit_function(
    function: Function,
    *,
    epsilon: Fraction,
    policy: Policy | None,
    inputs: Any,
    records: int,
    samples: int,
    seconds: float,
    confidence: float,
    seed: int,
) -> Audit:
    """A lower bound on the loss of a function, beside what is promised of it."""
    rng = np.random.default_rng(seed)
    tried = _pairs(policy, inputs, records, rng)
    game = FunctionGame(function, None if policy is None else policy.domain.shape, np.random.default_rng(seed + 1))
    _require_runs(game, tried[0])
    found = search(game, tried, samples=samples, seconds=seconds, confidence=confidence, seed=seed)
    return Audit(
        subject=str(getattr(function, "__qualname__", type(function).__name__)),
        promised=epsilon,
        epsilon=found.epsilon,
        method="statistical",
        confidence=confidence,
        witness=found.pair.witness(found.event),
        looked_at=(f"{found.pairs} pairs of neighbours, one of them with {found.runs:,} fresh runs",),
    )


def _pairs(policy: Policy | None, inputs: Any, records: int, rng: np.random.Generator) -> list[Pair] | list[Given]:
    if policy is None:
        return _given(inputs)
    edges, _ = changes(policy, rng)
    if not len(edges):
        raise InvalidInput("policy lets no record change: there are no neighbours to tell apart. Nothing was run.")
    databases = bases(policy, rng) if inputs is None else [_counts(one, policy) for one in _listed(inputs)]
    return neighbours(edges, databases, records, rng)


def _given(inputs: Any) -> list[Given]:
    pairs = _listed(inputs)
    for pair in pairs:
        if not isinstance(pair, (tuple, list)) or len(pair) != 2:
            raise InvalidInput(
                f"inputs holds {shown(pair)}, and without a policy it must be pairs of neighbours, [(one, other), …]. "
                "Nothing was run. Give pairs, or policy=… and counts."
            )
    return [Given(number, one, other) for number, (one, other) in enumerate(pairs)]


def _listed(inputs: Any) -> list[Any]:
    listed = [] if inputs is None or isinstance(inputs, (str, bytes)) else list(inputs)
    if not listed or len(listed) > MOST_PAIRS:
        raise InvalidInput(
            f"inputs has {len(listed)} entries, and must have 1 to {MOST_PAIRS}: pairs of neighbours, or with a policy "
            "counts to start from. Nothing was run. Small made-up ones show most."
        )
    return listed


def _counts(given: Any, policy: Policy) -> Integers:
    array = np.asarray(given)
    if array.dtype.kind not in "iu" or array.shape != policy.domain.shape or array.min(initial=0) < 0:
        raise InvalidInput(
            f"inputs must be made-up or public whole numbers of at least 0 in the domain's shape "
            f"{policy.domain.shape}. Nothing was run."
        )
    return array.astype(np.int64).ravel()


def _require_runs(game: FunctionGame, pair: Pair | Given) -> None:
    """Refuse a function that does nothing but fail: it was probably called in a way that it does not mean."""
    looks = [game.run(side) for side in (pair.before, pair.after) for _ in range(FIRST_LOOKS)]
    failed = [look for look in looks if isinstance(look, Raised)]
    if len(failed) == len(looks):
        raise InvalidInput(
            f"the function raised {failed[0].kind} on every input: {shown(failed[0].message)}. Nothing was concluded. "
            "It is called with one argument, the counts in the domain's shape, or what inputs holds."
        )
