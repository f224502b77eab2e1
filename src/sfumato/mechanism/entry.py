"""What the registry knows of a mechanism: its name, how it is built, and what a plan tries of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Set
from dataclasses import dataclass
from typing import Any

from sfumato.mechanism.base import Mechanism
from sfumato.policies import Policy
from sfumato.workload import Workload

Options = dict[str, Any]
Builder = Callable[..., Mechanism]
Settings = Callable[[Policy, Workload], Iterable[Options]]


def as_it_is(policy: Policy, workload: Workload) -> Iterator[Options]:
    """One candidate, without options."""
    del policy, workload
    yield {}


def nothing_to_choose(policy: Policy, workload: Workload) -> Iterator[Options]:
    """Named without options it chooses for itself, or has none."""
    del policy, workload
    yield from ()


def nothing_needed(policy: Policy) -> tuple[Set[str], ...]:
    """Its description in a file may be without options."""
    del policy
    return ()


@dataclass(frozen=True, kw_only=True)
class Entry:
    """One mechanism of the registry, declared in the mechanism's own file.

    `build(policy, epsilon, **options)` makes it, or refuses. `candidates(policy, workload)` are the options with which
    a plan weighs it against the others. `tunings` are those among which a plan chooses where it was named without
    options; none: its own. `needed(policy)` are sets of options of which a file holds one, since to find them again
    would take longer than reading does; none: nothing is tuned. Where `scaled`, whole `weights` with a common divisor
    say the same as without it. What works `by_tables` needs no memory for the cells of a product. What is `rehearsed`
    has no error but on public counts: without them a plan does not build it (which may take long) to find that out.
    """

    name: str
    build: Builder
    candidates: Settings = as_it_is
    tunings: Settings = nothing_to_choose
    needed: Callable[[Policy], tuple[Set[str], ...]] = nothing_needed
    scaled: bool = False
    by_tables: bool = False
    rehearsed: bool = False

    def complete(self, policy: Policy, options: Options) -> bool:
        """Whether nothing is left to be tuned."""
        needed = self.needed(policy)
        return not needed or any(names <= set(options) for names in needed)
