"""DAWA as a mechanism: on the counts under the standard policies, on the edge values of a tree under the others.

Promise: ε-private under the policy, for one record. Under add/remove a record changes one count by one, under
replace-one two of them, and so it does where both may happen; under a policy that a tree spans with stretch ℓ it
changes ℓ edge values by one, and DAWA runs on those at ε/ℓ (see `sfumato.mechanism.edges.tree`). On grids the cells are
put in the order of the Hilbert curve first: a change of one count stays a change of one count.

The estimates are biased inside the runs that DAWA finds, and how much depends on the data: no standard errors.
On the counts the runs' own totals are unbiased, and the release keeps them: a range is bracketed by the runs that it
holds and those that it touches. On a tree nothing of the kind is known, and there are no intervals.

Where single cells are all that is asked, plans take the steps the other way round: noise first, then runs in what came
out (`noise_first`), which needs no budget for the choice. Releases that were made with runs first are read as such.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from sfumato._types import Floats, Integers
from sfumato.domain.hilbert import hilbert_order
from sfumato.errors import InvalidInput
from sfumato.mechanism.base import MeasuredMechanism, Mechanism
from sfumato.mechanism.cells.along import asked_along, cells_alone
from sfumato.mechanism.cells.strategies import no_options
from sfumato.mechanism.edges.tree import TreeMechanism
from sfumato.mechanism.entry import Entry, Options
from sfumato.mechanism.forms import TwoStage
from sfumato.mechanism.partitions import dawa as rules
from sfumato.mechanism.partitions.bucket_tree import UNITS, read_tree
from sfumato.mechanism.partitions.noise_first import NoiseFirst
from sfumato.mechanism.partitions.partition import Buckets, cost_noise, longest_run, prices
from sfumato.mechanism.runs import Runs
from sfumato.mechanism.totals import with_exact_total
from sfumato.noise import DiscreteLaplace, Source
from sfumato.policies import Policy
from sfumato.workload import Workload


@dataclass(frozen=True, kw_only=True, eq=False)
class DawaOnCells(MeasuredMechanism):
    """DAWA on the counts: add/remove and replace-one. What is measured are the runs, the tree over them, and the noisy
    totals of its nodes.
    """

    @property
    def keeps_measured(self) -> bool:
        """Ranges are bracketed by runs."""
        return True

    @property
    def privacy_loss(self) -> Fraction:
        """All of ε: a share for the runs, the rest for their totals."""
        return self.epsilon

    def require_room(self) -> None:
        """Of both stages."""
        rules.require_room(self.policy.domain.size, self.epsilon, self._neighbours, self.options["queries"])

    @property
    def form(self) -> TwoStage:
        """DAWA on the counts along the curve."""
        return _two_stage(
            self.policy.domain.size,
            rules.budgets(self.epsilon, rules.RATIO, self._neighbours),
            queries=self.options["queries"],
            entries=lambda counts: counts[self._order],
            cells=self._cells,
        )

    @property
    def _neighbours(self) -> str:
        """Where a record may become any other, two counts change, whether it may appear and vanish as well or not."""
        return "replace" if self.policy.moves_exist else "add/remove"

    @cached_property
    def _order(self) -> Integers:
        """Along the line, or along the Hilbert curve of a grid."""
        shape = self.policy.domain.shape
        return np.arange(shape[0]) if len(shape) == 1 else hilbert_order(shape)

    def draw(self, counts: Integers, total: int | None, source: Source) -> Integers:
        """Both stages; all that they tell."""
        del total
        tree, measured = rules.measure(
            counts[self._order],
            epsilon=self.epsilon,
            source=source,
            neighbours=self._neighbours,
            queries=self.options["queries"],
        )
        return tree.integers(measured)

    def estimate(self, measured: Integers, total: int | None) -> Floats:
        """Every run's total shared out equally among its cells; a missing public total among all cells."""
        tree, levels = read_tree(measured, self.policy.domain.size)
        return self._cells(tree.spread(levels), total)

    def _cells(self, line: Floats, total: int | None) -> Floats:
        estimates = np.empty(self.policy.domain.size)
        estimates[self._order] = line
        return (
            estimates
            if total is None
            else with_exact_total(estimates + (total - estimates.sum()) / len(estimates), total)
        )

    def runs(self, measured: Integers | None, total: int | None) -> Runs | None:
        """The runs with their totals and the noise in these."""
        if measured is None:
            return None
        try:
            tree, levels = read_tree(measured, self.policy.domain.size)
        except InvalidInput:
            return None  # a damaged file: as if it had not kept them
        cells = np.stack(np.unravel_index(self._order, self.policy.domain.shape), axis=-1)
        rest = rules.budgets(self.epsilon, rules.RATIO, self._neighbours)[1]
        return Runs.of(tree, levels, cells=cells, epsilon=rest, total=total)


@dataclass(frozen=True, kw_only=True, eq=False)
class DawaOnTree(TreeMechanism):
    """DAWA on the edge values of a tree, made consistent afterwards if asked."""

    @property
    def edge_epsilon(self) -> Fraction:
        """What a change of one edge value by one may cost."""
        return self.epsilon / self.edges.spanner.stretch

    @property
    def privacy_loss(self) -> Fraction:
        """The stretch times the cost of one edge."""
        return self.edges.spanner.stretch * self.edge_epsilon

    def require_room(self) -> None:
        """Of both stages, on the edge values."""
        rules.require_room(len(self.edges.order), self.edge_epsilon, "edge", "entries")

    @property
    def form(self) -> TwoStage:
        """DAWA on the edge values."""
        return _two_stage(
            len(self.edges.order),
            rules.budgets(self.edge_epsilon, rules.RATIO, "edge"),
            queries="entries",
            entries=self.edges.of,
            cells=self._cells,
        )

    def run(self, counts: Integers, total: int | None, source: Source) -> Floats:
        """One edge value changes by one at a time, and a range of counts is a difference of single edge values."""
        values = self.edges.of(counts)
        tree, levels = rules.measure(
            values, epsilon=self.edge_epsilon, source=source, neighbours="edge", queries="entries"
        )
        return self._cells(tree.spread(levels), total)

    def _cells(self, line: Floats, total: int | None) -> Floats:
        return self.edges.cells(self.edges.project(line, total) if self.options.get("consistent") else line, total)


def _two_stage(
    length: int,
    budgets: tuple[Fraction, Fraction],
    *,
    queries: str,
    entries: Callable[[Integers], Integers],
    cells: Callable[[Floats, int | None], Floats],
) -> TwoStage:
    """DAWA on a line of so many entries, in the words of its form."""
    first, second = budgets
    levels = longest_run(length).bit_length() - 1
    return TwoStage(
        length=length,
        entries=entries,
        prices=prices(levels),
        choice=cost_noise(first, levels),
        penalty=rules.penalty(first, second, queries),
        groups=lambda starts: rules.groups(Buckets(starts, length), queries),
        totals=DiscreteLaplace(second),
        units=UNITS,
        cells=cells,
    )


def dawa(policy: Policy, epsilon: Fraction, **options: Any) -> Mechanism:
    """DAWA on the counts, for `queries` on ranges or cells; or on a tree's edges, made `consistent` or not.

    `first` says what comes first where single cells are asked for: the "runs", paid for with a share of ε, or the
    "noise", on the counts under any policy.
    """
    first = options.pop("first", "runs")
    if first not in ("runs", "noise"):
        raise InvalidInput(f"first={first!r} must be 'runs' or 'noise'.")
    if first == "noise":
        return _noise_first(policy, epsilon, **options)
    if policy.moves_exist and not policy.moves.join_all:
        consistent = options.pop("consistent", True)
        no_options("dawa", options)
        if not isinstance(consistent, bool):
            raise InvalidInput(f"consistent={consistent!r} must be True or False.")
        return DawaOnTree(name="dawa", policy=policy, epsilon=epsilon, options={"consistent": consistent})
    queries = options.pop("queries", "ranges")
    no_options("dawa", options)
    if queries not in ("ranges", "cells"):
        raise InvalidInput(f"queries={queries!r} must be 'ranges' or 'cells'.")
    if policy.domain.size == 1 or (policy.absent is not None and not policy.hides_presence):
        raise InvalidInput(
            "mechanism='dawa' needs add/remove, replace-one, or a policy that a tree spans; use 'edges'."
        )
    return DawaOnCells(name="dawa", policy=policy, epsilon=epsilon, options={"queries": queries})


def _noise_first(policy: Policy, epsilon: Fraction, **options: Any) -> Mechanism:
    queries = options.pop("queries", "cells")
    no_options("dawa", options)
    if queries != "cells":
        raise InvalidInput(f"first='noise' is for queries='cells', not queries={queries!r}: ranges need runs first.")
    built = NoiseFirst(name="dawa", policy=policy, epsilon=epsilon, options={"queries": "cells", "first": "noise"})
    _ = built.plain  # refused here, before anything is recorded
    return built


def _for_what_is_asked(policy: Policy, workload: Workload) -> Iterator[Options]:
    on_counts = not policy.moves_exist or policy.moves.join_all
    cells = cells_alone(asked_along(workload, policy.domain))
    if cells:
        yield {"queries": "cells", "first": "noise"}
    if not cells or not on_counts:
        yield {"queries": "ranges"} if on_counts else {}


def _where_cells_are_asked(policy: Policy, workload: Workload) -> Iterator[Options]:
    """Named without options it is for ranges, or on a tree, unless single cells are all that is asked of counts."""
    tried = list(_for_what_is_asked(policy, workload))
    yield from tried if tried[0].get("first") == "noise" and len(tried) == 1 else ()


DAWA = Entry(name="dawa", build=dawa, candidates=_for_what_is_asked, tunings=_where_cells_are_asked, rehearsed=True)
