"""Marginals: tables of some factors are measured and no cell of the product, which may be too large to hold.

Promise: ε-private under the policy, for one record. Of every table S in a list, w_S times each of its cells is
published with noise, w_S a whole number. A change of a record along an edge moves these integers by an integer vector:
a record that appears is one more in each table; one that changes leaves a cell and comes into another in every table
that has an axis along which it changes, and in no other. So the vector's L1 norm is at most Δ, the largest of a few
sums of weights (`weights.sensitivity`, exact where moves lead along axes together as the policy says they may), and
noise of rate ε/Δ on every integer costs ε at most. Tables are a vertex strategy; the weights are chosen by what is
asked, without data. All else is post-processing: least squares over all tables at once, in closed form, so that every
table agrees with every other (`sfumato.linear.lattice`).

Where the policy has no ⊥ the total is public, and where attributes are public their joint table is: as far as the
tables have it, it is published exactly and enters the estimates as a constraint.

Xiao, He, Zhang, Kifer: ResidualPlanner (NeurIPS 2023), for Gaussian noise; McKenna et al.: HDMM (VLDB 2018), marginals.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence, Set
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from sfumato._types import Floats, Integers
from sfumato.errors import InvalidInput, TooLarge
from sfumato.exact import is_whole
from sfumato.linear.lattice import Lattice, parts_of
from sfumato.linear.table_noise import TableNoise
from sfumato.linear.tables import Axes, Tables, real
from sfumato.mechanism.base import LARGEST_PRODUCT, LinearMechanism, Mechanism, require_integers, require_whole
from sfumato.mechanism.entry import Entry, Options
from sfumato.mechanism.forms import Additive
from sfumato.mechanism.model import Block, NoiseModel
from sfumato.mechanism.tables.weights import asked_tables, known_axes, sensitivity, tuned
from sfumato.mechanism.totals import with_exact_total, with_rows_exact
from sfumato.noise import DiscreteLaplace, Source
from sfumato.noise.expansion import bits
from sfumato.policies import Policy
from sfumato.workload import Workload

NAME = "marginals"
# Numbers in all tables together beyond which they are refused (2 GB), and tables that are named one by one.
LARGEST_TABLES = 1 << 28
# Cells of a product under a policy of which a look at all of them says what it hides.
LARGEST_SEARCHED = 1 << 22
_NAMED = 4


@dataclass(frozen=True, kw_only=True, eq=False)
class MarginalsMechanism(LinearMechanism):
    """Weighed tables. What it is given in the place of counts are `tables`, one after the other; so are its estimates.

    `exact` are the tables of public attributes alone, which are published as they are.
    """

    lattice: Lattice
    exact: tuple[Axes, ...] = ()

    def __post_init__(self) -> None:
        require_whole(self.policy, self.name)
        if not self.lattice.sets or not self.sensitivity:
            raise InvalidInput(
                f"mechanism={self.name!r}: under this policy no change of a record moves any table that is asked for; "
                "use mechanism='edges'. Nothing was drawn or recorded."
            )

    @property
    def by_tables(self) -> MarginalsMechanism:
        """It sees tables, and no cells."""
        return self

    @cached_property
    def tables(self) -> Tables:
        """The tables that it sees, and that it estimates: each holds some that are measured."""
        return Tables.holding(self.policy.domain.shape, [*self.lattice.sets, *self.exact])

    def seen(self, counts: Integers) -> Integers:
        """The tables of all cells, where these can be held."""
        return self.tables.of_cells(counts)

    @property
    def shape(self) -> tuple[int, ...]:
        """Tables, one after the other."""
        return (self.tables.length,)

    def records(self, counts: Any) -> Any:
        """The sum of any table."""
        return self.tables.split(counts)[0].sum()

    @cached_property
    def sensitivity(self) -> int:
        """Of all tables together, from their weights."""
        return sensitivity(self.policy, self.lattice.sets, self.lattice.weights)

    @property
    def privacy_loss(self) -> Fraction:
        """Sensitivity times rate."""
        return self.sensitivity * self._noise.rate

    @cached_property
    def _noise(self) -> DiscreteLaplace:
        return DiscreteLaplace(self.epsilon / self.sensitivity)

    @cached_property
    def model(self) -> NoiseModel:
        """The law of the noise in all answers at once, as far as the tables tell them."""
        return self.model_of(tuple(range(self.policy.domain.ndim)))

    def model_of(self, axes: Axes) -> NoiseModel:
        """The law of the noise in the table of some axes; what is known exactly has none."""
        shape = tuple(self.policy.domain.shape[i] for i in axes)
        return NoiseModel(shape, (Block(TableNoise(self.lattice, axes), self._noise),))

    @property
    def form(self) -> Additive:
        """Values plus noise, as seen from cells."""
        return Additive(mechanism=_FromCells(self), linear=True)

    @property
    def settings(self) -> str:
        """Which tables, in names where they are few, with their weights where these differ; and what they cost."""
        sets, weights = self.lattice.sets, self.lattice.weights
        if len(sets) > _NAMED:
            return f"{len(sets)} tables, sensitivity {self.sensitivity}"
        names = [" × ".join(self.policy.domain.names[i] for i in axes) or "the total" for axes in sets]
        once = len(set(weights)) == 1
        shown = ", ".join(name if once else f"{name} ({w})" for name, w in zip(names, weights, strict=True))
        return f"{'tables' if len(sets) > 1 else 'table'} {shown}, sensitivity {self.sensitivity}"

    def require_room(self) -> None:
        """Tables that can be held; a cell of one is at most its weight times all records."""
        if max(self.tables.length, self._measured) > LARGEST_TABLES:
            raise TooLarge(
                f"mechanism={self.name!r}: the tables have {self.tables.length:,} cells together, and at most "
                f"{LARGEST_TABLES:,} are held. Nothing was drawn or recorded. Ask for tables of fewer factors."
            )
        noise = 1 << bits(self._noise.rate)
        advice = f"Use a larger epsilon, or weights of at most {LARGEST_PRODUCT}."
        require_integers(self.name, max(self.lattice.weights), noise, advice)

    @property
    def _measured(self) -> int:
        return sum(map(self.lattice.size, self.lattice.sets))

    def noises(self, total: int | None) -> list[tuple[DiscreteLaplace, int]]:
        """One value for every cell of every table."""
        del total
        return [(self._noise, self._measured)]

    def values(self, counts: Integers) -> Integers:
        """Every measured table, times its weight; then those that are public."""
        measured = zip(self.lattice.sets, self.lattice.weights, strict=True)
        weighed = [weight * self.tables.table(counts, axes).ravel() for axes, weight in measured]
        return np.concatenate([*weighed, *(self.tables.table(counts, axes).ravel() for axes in self.exact)])

    def disturbance(self, noise: Sequence[Integers]) -> Integers:
        """η itself, and nothing on what is public."""
        (eta,) = noise
        return np.concatenate([eta, np.zeros(sum(map(self.lattice.size, self.exact)), dtype=np.int64)])

    def estimate(self, measured: Integers, total: int | None) -> Floats:
        """Every table by least squares over all, with what is public put in exactly."""
        exact, start = Tables(self.policy.domain.shape, self.exact), self._measured
        known: dict[Axes, Floats] = {} if total is None else {(): np.asarray(float(total))}
        for axes in self.exact:
            for part in parts_of(axes):
                known[part] = np.asarray(exact.table(measured[start:], part), dtype=np.float64)
        residuals = self.lattice.residuals(self.lattice.split(measured[:start]), known)
        found = []
        for axes in self.tables.sets:
            estimated = self.lattice.table(residuals, axes)
            if total is not None:
                estimated = self._settled(estimated, axes, exact, measured[start:], total)
            found.append(estimated.ravel())
        return np.concatenate(found)

    def _settled(self, table: Floats, axes: Axes, exact: Tables, public: Integers, total: int) -> Floats:
        """A table whose sums are the public ones, to the last digit."""
        apart = tuple(i for i in axes if i in (self.lattice.known or ()))
        if not apart:
            return with_exact_total(table.ravel(), total).reshape(table.shape)
        order = [axes.index(i) for i in apart] + [at for at, i in enumerate(axes) if i not in apart]
        turned = np.moveaxis(table, order, range(len(order)))
        rows = with_rows_exact(turned.reshape(self.lattice.size(apart), -1), exact.table(public, apart).ravel())
        return np.moveaxis(rows.reshape(turned.shape), range(len(order)), order)


@dataclass(frozen=True, eq=False)
class _FromCells:
    """The same as a function of the counts of all cells, for the auditor."""

    of: MarginalsMechanism

    def noises(self, total: int | None) -> list[tuple[DiscreteLaplace, int]]:
        return self.of.noises(total)

    def values(self, counts: Integers) -> Integers:
        return self.of.values(self.of.seen(counts))

    def disturbance(self, noise: Sequence[Integers]) -> Integers:
        return self.of.disturbance(noise)

    def for_total(self, total: int) -> _FromCells:
        del total
        return self

    def draw(self, counts: Integers, total: int | None, source: Source) -> Integers:
        return self.of.draw(self.of.seen(counts), total, source)

    def estimate(self, measured: Integers, total: int | None) -> Floats:
        return self.of.estimate(measured, total)


def marginals(policy: Policy, epsilon: Fraction, **options: Any) -> Mechanism:
    """The mechanism of `tables`, each a list of axes, and their `weights`; of the axes of every table that is public
    and asked for, in `exact`.
    """
    _refuse_searched(policy)
    unknown = set(options) - {"tables", "weights", "exact"}
    if unknown:
        raise InvalidInput(
            f"mechanism={NAME!r} has no option {sorted(unknown)[0]!r}; it takes tables, weights and exact."
        )
    tables, weights = _axes(policy, options.get("tables"), "tables"), options.get("weights")
    exact = _axes(policy, options.get("exact", []), "exact")
    if not isinstance(weights, (list, tuple)) or len(weights) != len(tables) or not all(map(_fits, weights)):
        raise InvalidInput(
            f"mechanism={NAME!r} needs weights: for every one of its tables a whole number from 1 to {LARGEST_PRODUCT}."
        )
    known = known_axes(policy)
    if any(known is None or not axes or not known.issuperset(axes) for axes in exact):
        raise InvalidInput(f"mechanism={NAME!r}: exact names a table that is not public under this policy.")
    if known is not None and any(known.issuperset(axes) for axes in tables):
        raise InvalidInput(f"mechanism={NAME!r}: tables names one that is public under this policy; name it in exact.")
    needed = {tuple(sorted(known.intersection(axes))) for axes in tables} if known else set()
    public = Tables(policy.domain.shape, exact)
    if not all(public.holds(axes) for axes in needed if axes):
        raise InvalidInput(f"mechanism={NAME!r}: exact must have the public part of every table.")
    lattice = Lattice(policy.domain.shape, tables, tuple(int(w) for w in weights), known)
    return MarginalsMechanism(
        name=NAME, policy=policy, epsilon=epsilon, options=dict(options), lattice=lattice, exact=exact
    )


def _is_searched(policy: Policy) -> bool:
    told = policy.moves.follow_rule or policy.public or (policy.joined is not None and not callable(policy.joined))
    searched = policy.moves.listed or callable(policy.joined) or not told
    return searched and policy.domain.size > LARGEST_SEARCHED


def _refuse_searched(policy: Policy) -> None:
    """Refuse many cells where it takes a look at all of them to say what is hidden."""
    if _is_searched(policy):
        raise TooLarge(
            f"mechanism={NAME!r}: a policy with sources, with listed edges or in parts is searched cell by cell, and "
            f"this domain has {policy.domain.size:,} cells; at most {LARGEST_SEARCHED:,} are. Nothing was drawn or "
            "recorded. Use sf.policy(domain, hide=…) without sources."
        )


def _fits(weight: Any) -> bool:
    return is_whole(weight) and 0 < weight <= LARGEST_PRODUCT


def _axes(policy: Policy, given: Any, name: str) -> tuple[Axes, ...]:
    """Tables as they are written down: lists of rising axes of more than one cell, none of them twice."""
    shape = policy.domain.shape
    lists = isinstance(given, (list, tuple)) and all(isinstance(axes, (list, tuple)) for axes in given)
    found = tuple(tuple(axes) for axes in given) if lists else ()
    whole = all(is_whole(i) and 0 <= i < len(shape) for axes in found for i in axes)
    if not lists or not whole or len(set(found)) < len(found) or any(real(shape, axes) != axes for axes in found):
        raise InvalidInput(
            f"mechanism={NAME!r} needs {name}: lists of the positions of axes with more than one cell, rising, and no "
            "list twice. A plan chooses them: sf.plan(policy, sf.marginals(2), epsilon=…)."
        )
    return found


def options_of(sets: dict[Axes, int], exact: Iterable[Axes]) -> Options:
    """The options that build a mechanism."""
    found: Options = {"tables": [list(axes) for axes in sets], "weights": list(sets.values())}
    public = [list(axes) for axes in exact]
    return {**found, "exact": public} if public else found


def candidates(policy: Policy, workload: Workload) -> Iterator[Options]:
    """The best weights for what is asked, where that is tables, and not the table of all axes."""
    asked = asked_tables(workload, policy)
    shape = policy.domain.shape
    if _is_searched(policy):
        return
    everything = real(shape, range(len(shape)))
    if asked is None or asked.holds(everything) or not policy.whole:
        return
    weights = tuned(workload, policy)
    if weights is None:
        return
    known = known_axes(policy) or frozenset()
    wanted = {tuple(sorted(known.intersection(axes))) for axes in (*asked.sets, *weights)} - {()}
    yield options_of(weights, Tables.holding(shape, wanted).sets if wanted else ())


def _needed(policy: Policy) -> tuple[Set[str], ...]:
    del policy
    return ({"tables", "weights"},)


MARGINALS = Entry(name=NAME, build=marginals, candidates=candidates, tunings=candidates, needed=_needed, by_tables=True)
