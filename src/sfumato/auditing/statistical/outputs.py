"""What somebody's function returned, of whatever type, as a table of features: one row a run.

An output is taken apart into its leaves: numbers one by one, texts and everything else by name. Of numbers are looked
at what a release shows of its cells (`features`): values, running sums, and what mistakes leave behind: ties, zeros,
parities, and how fine the last binary digit is. Names are written as numbers, in the order in which they were met; how
much each tells is learned from runs. An exception is an output like any other: whoever watches sees it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from itertools import accumulate
from numbers import Real
from typing import Any

import numpy as np

from sfumato._types import Floats
from sfumato.auditing.statistical.features import last_digit

MOST_LEAVES = 16  # that are looked at one by one
MOST_NAMES = 20_000  # that are told apart; later ones are all the same
LARGEST = 1e300  # in the place of an infinite number
_WALKED = 4096  # leaves of one output: of more the first count
_DEEPEST = 8
_NUMBERS = (Real, Decimal)
_MISSING = -1.0

SUMMARY = (
    "the whole output",
    "the type of the output",
    "how many parts it has",
    "the number of different values",
    "the number of zeros",
    "the number of negative values",
    "the number of parts that are no finite numbers",
    "the total",
    "the least value",
)
NOMINAL_SUMMARY = 2  # the first of these are names


@dataclass(eq=False)
class Names:
    """Things that can only be told apart, by numbers: the same thing has the same number."""

    known: dict[Any, int] = field(default_factory=dict)

    def number(self, name: Any) -> float:
        """The number of a thing."""
        found = self.known.get(name)
        if found is None:
            if len(self.known) >= MOST_NAMES:
                return _MISSING
            found = self.known[name] = len(self.known)
        return float(found)


@dataclass(eq=False)
class Outputs:
    """Rows of features. Which columns there are is fixed before any run; what is not there is marked."""

    names: Names = field(default_factory=Names)

    @property
    def nominal(self) -> tuple[int, ...]:
        """The columns that are names."""
        return tuple(range(NOMINAL_SUMMARY + MOST_LEAVES))

    @property
    def titles(self) -> list[str]:
        """What each column is."""
        leaves = range(1, MOST_LEAVES + 1)
        found = [*SUMMARY[:NOMINAL_SUMMARY], *(f"part {i}, as a name" for i in leaves), *SUMMARY[NOMINAL_SUMMARY:]]
        for what in ("part {}", "the sum of the first {} parts", "the parity of part {}", "the last digit of part {}"):
            found += [what.format(i) for i in leaves]
        return found

    def row(self, output: Any) -> list[float]:
        """The features of one output."""
        leaves = []
        for leaf in _leaves(output, 0):
            leaves.append(leaf)
            if len(leaves) == _WALKED:
                break
        numbers = [_number(leaf) for leaf in leaves]
        finite = [number for number in numbers if math.isfinite(number)]
        found = [self.names.number(_name(output)), self.names.number(("type", type(output).__name__))]
        shown = leaves[:MOST_LEAVES]
        found += [_MISSING if isinstance(leaf, _NUMBERS) else self.names.number(_name(leaf)) for leaf in shown]
        found += [_MISSING] * (MOST_LEAVES - len(shown))
        found += [len(leaves), len(set(finite)), finite.count(0.0), sum(one < 0 for one in finite)]
        found += [len(numbers) - len(finite), math.fsum(finite), min(finite, default=0.0)]
        values = [_bounded(number) for number in numbers[:MOST_LEAVES]]
        padding = [_MISSING] * (MOST_LEAVES - len(values))
        found += [*values, *padding, *accumulate(values), *padding]
        found += [*(one % 2 if one == math.floor(one) else _MISSING for one in values), *padding]
        found += [*(last_digit(one) for one in values), *padding]
        return found

    def table(self, rows: list[list[float]]) -> Floats:
        """All rows."""
        return np.array(rows, dtype=np.float64).reshape(-1, len(self.titles))


def _leaves(output: Any, depth: int) -> Iterator[Any]:
    """Its parts in order: numbers and whatever is no container; a mapping by its keys."""
    if isinstance(output, np.ndarray):
        yield from output.ravel()[:_WALKED].tolist()
    elif depth < _DEEPEST and isinstance(output, Mapping):
        for key, value in output.items():
            yield key
            yield from _leaves(value, depth + 1)
    elif depth < _DEEPEST and isinstance(output, (list, tuple)):
        for one in output:
            yield from _leaves(one, depth + 1)
    elif depth < _DEEPEST and isinstance(output, (set, frozenset)):
        yield from sorted(output, key=repr)
    elif hasattr(output, "tolist") and not isinstance(output, (str, bytes)):  # columns and scalars of other libraries
        yield from _leaves(output.tolist(), depth + 1)
    else:
        yield output


def _number(leaf: Any) -> float:
    """A number as a double; NaN for what is none."""
    try:
        return float(leaf) if isinstance(leaf, _NUMBERS) else math.nan
    except OverflowError:
        return math.inf if leaf > 0 else -math.inf


def _name(thing: Any) -> Any:
    """Something that tells one thing from another."""
    if isinstance(thing, (str, bytes, bool, int, float, type(None))):
        return type(thing).__name__, thing if thing == thing else "nan"  # what is not itself is NaN
    if isinstance(thing, np.ndarray):
        return "array", thing.shape, thing.tobytes() if thing.dtype != object else repr(thing)
    return type(thing).__name__, repr(thing)


def _bounded(number: float) -> float:
    if math.isnan(number):
        return _MISSING
    return min(max(number, -LARGEST), LARGEST)
