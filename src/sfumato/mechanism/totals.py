"""Totals that nothing hides, kept exactly in estimates.

Where no record can appear or vanish the number of records is public; where some factors never change it is so for every
value of them, jointly. Putting an exact public total into estimates is post-processing of private numbers and of a
public one.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato._types import Floats, Integers
from sfumato.policies import Policy


def component_table(policy: Policy, flat: NDArray[Any]) -> NDArray[Any]:
    """Cells as a table of one row for every public component."""
    apart = policy.public_axes
    return np.moveaxis(flat.reshape(policy.domain.shape), apart, range(len(apart))).reshape(components(policy), -1)


def components(policy: Policy) -> int:
    """How many components have a public total."""
    return int(np.prod([policy.domain.shape[i] for i in policy.public_axes], dtype=np.int64))


def component_sums(policy: Policy, flat: Integers) -> Integers:
    """The totals of all components, in integers."""
    return np.asarray(component_table(policy, flat).sum(axis=1))


def with_exact_totals(policy: Policy, estimates: Floats, totals: Integers) -> Floats:
    """Estimates that sum to every public total exactly."""
    exact = with_rows_exact(component_table(policy, estimates), totals)
    apart = policy.public_axes
    rest = [n for i, n in enumerate(policy.domain.shape) if i not in apart]
    whole = exact.reshape([policy.domain.shape[i] for i in apart] + rest)
    return np.moveaxis(whole, range(len(apart)), apart).ravel()


def with_exact_total(estimates: Floats, total: int) -> Floats:
    """Estimates that sum to the public total exactly, in floating point and in any order of addition."""
    return with_rows_exact(estimates[None], np.array([total], dtype=np.int64))[0]


def with_rows_exact(table: Floats, totals: Integers) -> Floats:
    """Rows that sum to their totals exactly.

    They are rounded to a binary fraction so fine that no sum of them needs more than 53 bits, and the few units that
    are then missing are handed out one by one. This is post-processing of private numbers and of public ones.
    """
    size = np.maximum(np.maximum(np.abs(table).sum(axis=1), np.abs(totals)), 1.0)
    unit = 2.0 ** (np.ceil(np.log2(size)) - 51)
    steps = np.rint(table / unit[:, None])
    missing = np.rint(totals / unit).astype(np.int64) - steps.astype(np.int64).sum(axis=1)
    each, rest = np.divmod(missing, table.shape[1])
    steps += each[:, None]
    steps += np.arange(table.shape[1]) < rest[:, None]
    fine = unit < 2.0**-1  # beyond counts of 10¹⁵ floating point has no room for an exact sum
    return np.asarray(np.where(fine[:, None], steps * unit[:, None], table), dtype=np.float64)
