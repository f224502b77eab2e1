"""Changes made anew from a policy's words: every one of them is an edge of the policy."""

from __future__ import annotations

import numpy as np
import pytest

import sfumato as sf
from sfumato.auditing.record_changes import changes, defined

LINE = sf.Line(0, 1, cells=4)


@pytest.mark.parametrize(
    "policy",
    [
        sf.within(sf.Grid(bounds=(0, 0, 1, 1), shape=(5, 3)), 0.3),
        sf.within(sf.Grid(bounds=(0, 0, 1, 1), shape=(5, 3)), 0.3, metric="manhattan"),
        sf.within(sf.Grid(bounds=(0, 0, 1, 1), shape=(5, 3)), 0.05, metric="chebyshev", sources="boundary"),
        sf.within(sf.Line(0, 1, cells=20), 0.1, sources=[(0.31,), (0.7,)]),
        sf.within(sf.Grid(bounds=(-74.3, 40.5, -73.7, 40.95), shape=(6, 5)), 9000, metric="great-circle"),
        sf.threshold(sf.Grid(bounds=(0, 0, 1, 1), shape=(5, 3)), 3),
        sf.bounded(LINE),
        sf.unbounded(LINE),
        sf.graph(LINE, [(0, 1), (1, 2), (2, 3), (3, sf.ABSENT)]),
    ],
    ids=repr,
)
def test_every_policy_contains_what_its_words_say(policy):
    """No made-up point finds an edge that is missing, and most of the edges that are there are found."""
    edges = {tuple(sorted(edge)) for edge in policy.edges().tolist()}
    made = defined(policy, np.random.default_rng(1))
    assert made <= edges
    assert len(made) > 0.5 * len(edges)
    listed, total = changes(policy, np.random.default_rng(1))
    assert len(listed) == total == len(edges)
    assert (listed[:, 0] >= 0).all()
