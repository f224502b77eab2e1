"""The exact audit of a linear mechanism that is given as it is written on paper: strategy, scales, law of noise.

It reports `A·x + η`, or `A·x + M·η` with a mixing matrix M, with independent noise η of scales b. For every change of a
record A·x moves by d.

- **Laplace noise on real numbers.** The loss is Σ|d_i|/b_i: the density of η has the log-ratio |t|/b at a shift by t,
  and reaches it for all rows at once. In floating point more is lost, which no formula shows: run it.
- **Discrete Laplace noise** (two-sided geometric, P[k] ~ e^(-|k|/b)) lives on whole numbers: the same where d is whole,
  infinite where it is not, since the fraction shows. With M the loss is that of the cheapest change of the noise with
  M·c = d (`shifts`), infinite where there is none, as for x + 2·η, which shows the parity of x.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from sfumato._types import Floats, Integers
from sfumato.auditing.exact.shifts import Solver
from sfumato.auditing.record_changes import changes
from sfumato.auditing.result import Audit, Loss, Witness
from sfumato.errors import InvalidInput, TooLarge
from sfumato.exact import fraction, shown
from sfumato.policies import Policy

LAWS = ("laplace", "discrete-laplace")
LARGEST_TABLE = 40_000_000  # entries of the changes of all rows
_NEAR = 1e-9  # of sums in floating point, many times what rounding makes; what is nearer is computed exactly


@dataclass(frozen=True, eq=False)
class Paper:
    """A linear mechanism as it was given: checked, its numbers exact."""

    strategy: Floats
    scales: tuple[Fraction, ...]
    discrete: bool
    mixing: Integers | None

    @property
    def subject(self) -> str:
        """Its name in results."""
        rows, columns = self.strategy.shape
        law = "discrete Laplace" if self.discrete else "Laplace"
        return f"a strategy of {rows} × {columns} with {law} noise" + ("" if self.mixing is None else ", mixed")


def audit_strategy(
    strategy: Any, *, scales: Any, noise: Any, mixing: Any, policy: Policy, epsilon: Fraction, records: int, seed: int
) -> Audit:
    """The loss over every change of a record that the policy's words allow, beside what is promised."""
    paper = _checked(strategy, scales, noise, mixing, policy)
    edges, existing = changes(policy, np.random.default_rng(seed))
    if len(edges) * len(paper.strategy) > LARGEST_TABLE:
        raise TooLarge(
            f"{len(edges):,} changes of {len(paper.strategy):,} rows are more than an audit compares. Nothing was "
            "computed. Audit the same strategy on fewer cells."
        )
    padded = np.hstack([paper.strategy, np.zeros((len(paper.strategy), 1))])  # ⊥, -1, is the last column
    moved = (padded[:, edges[:, 0]] - padded[:, edges[:, 1]]).T
    which, loss, event, tight = _worst(paper, padded, edges, moved)
    edge = (int(edges[which, 0]), int(edges[which, 1])) if len(edges) else None
    return Audit(
        subject=paper.subject,
        promised=epsilon,
        epsilon=loss * records if len(edges) else Fraction(0),
        method="exact" if tight else "argument",
        witness=None if edge is None else Witness(edge=edge, event=event),
        complete=len(edges) >= existing or math.isinf(loss),
        looked_at=(f"{len(edges):,} of {existing:,} changes of a record",),
    )


def _worst(paper: Paper, padded: Floats, edges: Integers, moved: Floats) -> tuple[int, Loss, str, bool]:
    """(the change, its loss, what tells, whether it is the loss itself) of the worst of all."""
    if not len(moved):
        return 0, Fraction(0), "no change to hide", True
    if paper.discrete and (broken := np.flatnonzero((moved != np.rint(moved)).any(axis=1))).size:
        return int(broken[0]), math.inf, "a row moves by a fraction, and noise is whole: the fraction shows", True
    if paper.mixing is not None:
        return _worst_mixed(paper, moved)
    silent = np.array([scale == 0 for scale in paper.scales])
    if (bare := np.flatnonzero((moved[:, silent] != 0).any(axis=1))).size:
        return int(bare[0]), math.inf, "a row without noise moves", True
    rates = np.array([0.0 if scale == 0 else float(1 / scale) for scale in paper.scales])
    rough = np.abs(moved) @ rates
    near = np.flatnonzero(rough >= rough.max() * (1 - _NEAR))
    if (padded == np.rint(padded)).all():  # differences of whole numbers are exact: equal ones are looked at once
        near = np.array(sorted({moved[i].tobytes(): i for i in near[::-1].tolist()}.values()))
    worst, loss = int(near[0]), Fraction(-1)
    for place in near.tolist():
        one, other = padded[:, edges[place, 0]], padded[:, edges[place, 1]]
        parts = np.flatnonzero(one != other).tolist()
        exact = sum((abs(_entry(one[j]) - _entry(other[j])) / paper.scales[j] for j in parts), Fraction(0))
        if exact > loss:
            worst, loss = place, exact
    count = np.count_nonzero(moved[worst])
    return worst, loss, f"{count} of {len(paper.scales)} rows move, by {np.abs(moved[worst]).sum():g} in all", True


def _worst_mixed(paper: Paper, moved: Floats) -> tuple[int, Loss, str, bool]:
    if any(scale == 0 for scale in paper.scales):
        raise InvalidInput("scales must be above zero where noise is mixed. Nothing was computed.")
    solver = Solver(np.asarray(paper.mixing), tuple(1 / scale for scale in paper.scales))
    worst: tuple[int, Loss] = (0, Fraction(-1))
    tight, change = True, None
    for place in {moved[i].tobytes(): i for i in range(len(moved))[::-1]}.values():
        found = solver.cheapest(np.rint(moved[place]).astype(np.int64))
        tight &= found.tight
        if found.cost > worst[1]:
            worst, change = (place, found.cost), found.change
    words = "no noise can lead from one to the other: every output is possible for one of them at most"
    if change is not None and not math.isinf(worst[1]):
        words = f"the noise has to change by {int(np.abs(change).sum())} in all"
    return *worst, words, tight or math.isinf(worst[1])


def _entry(value: Any) -> Fraction:
    """A number as it was typed: 0.1 is a tenth."""
    return Fraction(repr(float(value)))


def _checked(strategy: Any, scales: Any, noise: Any, mixing: Any, policy: Policy) -> Paper:
    if noise not in LAWS:
        extra = "Gaussian noise keeps no finite ε. " if str(noise).lower() in ("gaussian", "normal") else ""
        raise InvalidInput(
            f"noise={shown(noise)} is not one of {', '.join(map(repr, LAWS))}. {extra}Nothing was computed."
        )
    matrix = _matrix(strategy, "strategy")
    if matrix.shape[1] != policy.domain.size:
        raise InvalidInput(
            f"strategy has {matrix.shape[1]:,} columns, and the policy's domain {policy.domain.size:,} cells: it needs "
            "one column a cell, in C order. Nothing was computed."
        )
    mixed = None if mixing is None else _matrix(mixing, "mixing")
    if mixed is not None and (
        noise != "discrete-laplace" or (mixed != np.rint(mixed)).any() or len(mixed) != len(matrix)
    ):
        raise InvalidInput(
            "mixing must be a matrix of whole numbers with as many rows as the strategy, for discrete-laplace noise. "
            "Nothing was computed."
        )
    return Paper(
        strategy=matrix,
        scales=_scales(scales, len(matrix) if mixed is None else mixed.shape[1]),
        discrete=noise == "discrete-laplace",
        mixing=None if mixed is None else mixed.astype(np.int64),
    )


def _matrix(given: Any, name: str) -> Floats:
    dense = given.toarray() if hasattr(given, "toarray") else given
    try:
        matrix = np.asarray(dense, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InvalidInput(f"{name} is no matrix of numbers. Nothing was computed.") from error
    if matrix.ndim != 2 or not matrix.size or not np.isfinite(matrix).all():
        raise InvalidInput(
            f"{name} must be a matrix of finite numbers, not of shape {matrix.shape}. Nothing was computed."
        )
    return matrix


def _scales(given: Any, size: int) -> tuple[Fraction, ...]:
    listed = [given] * size if np.ndim(given) == 0 else list(given)
    if len(listed) != size:
        raise InvalidInput(
            f"scales has {len(listed):,} entries for {size:,} values of noise. Nothing was computed. Give one number "
            "for all, or one for each."
        )
    exact = tuple(fraction(one, "scales") for one in listed)
    if any(scale < 0 for scale in exact):
        raise InvalidInput("scales must be at least zero. Nothing was computed.")
    return exact
