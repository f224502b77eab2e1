"""The law of DAWA's runs: by hand, and by runs."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest

from sfumato.auditing.exact.partition_law import PartitionLaw
from sfumato.auditing.statistical.audit_source import AuditSource
from sfumato.mechanism.partitions import partition

ONE = Fraction(1)


def cuts(size, epsilon, penalty):
    """The law of a line of so many entries, by the prices and the noise of DAWA."""
    levels = partition.longest_run(size).bit_length() - 1
    return PartitionLaw(size, partition.prices(levels), partition.cost_noise(epsilon, levels), penalty)


def test_a_pair_of_cells_is_kept_together_with_the_probability_of_a_sum():
    """Two cells, a gap of 1: 16 + penalty - G ≤ 2·penalty - G' - G'', summed over noise below 120: e⁻²⁴ is cut off."""
    law = cuts(8, Fraction(16, 5), 20)  # rate 1/5
    assert {noise.rate for noise in law.noise} == {Fraction(1, 5)}
    weights = -math.expm1(-0.2) * np.exp(-0.2 * np.arange(120))
    kept = sum(
        weights[a] * weights[b] * weights[max(a + b - 4, 0) :].sum() for a, b in itertools.product(range(120), repeat=2)
    )
    law = law.law(np.array([3, 4]))
    assert law[(0,)] == pytest.approx(kept, abs=1e-8)
    assert law[(0, 1)] == pytest.approx(1 - kept, abs=1e-8)


@pytest.mark.slow
@pytest.mark.parametrize("x", [(3, 4, 0, 0), (0, 9, 9, 1), (5, 5, 5, 5), (0, 2, 4)], ids=str)
def test_the_law_is_that_of_runs(x):
    """6,000 runs: five partitions, each within 6 σ of its probability, which fails by chance once in 10⁸ times. Blocks
    have four entries; three are the last block of 19, with a run that is cut short.
    """
    line, source, runs = cuts(16 + len(x) % 4, ONE, 40), AuditSource(5), 6_000
    first = line.blocks[-1][0]
    entries = np.array([7] * first + list(x))
    law = line.law(np.array(x))
    assert sum(law.values()) == pytest.approx(1, abs=1e-9)
    seen = Counter()
    for _ in range(runs):
        starts = partition.partition(entries, epsilon=ONE, penalty=40, source=source).starts
        seen[tuple((starts[starts >= first] - first).tolist())] += 1
    assert set(seen) <= set(law)
    for starts, p in law.items():
        assert abs(seen[starts] / runs - p) < 6 * math.sqrt(p * (1 - p) / runs) + 1e-3
