"""Changes made anew from a policy's words: every one of them is an edge of the policy."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import sfumato as sf
from sfumato.auditing.record_changes import changes, defined

LINE = sf.Line(0, 1, cells=4)
PLACE = sf.Line(0, 1, cells=4, name="place")
MODE = sf.Categories(["bus", "bike", "car"], name="mode")
DAYS = sf.Times("2026-03-06", "2026-03-10", every="1 day", tz="America/New_York", name="t")


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
        (sf.move(0.3) & sf.change("mode")).on(PLACE * MODE),
        sf.policy(PLACE * MODE, hide=sf.move(0.3), public=["mode"]),
        (sf.move(0.3) | sf.change("mode") | sf.presence()).on(PLACE * MODE),
        (sf.presence() | sf.anything()).on(PLACE * MODE),
        (sf.move("30 min", of="t") | sf.change("mode")).on(DAYS * MODE),
        (sf.move("3 h", of="t") & sf.change("mode")).on(sf.Cycle("weekday", name="t", tz="America/New_York") * MODE),
        (sf.move(0.3, sources=[(0.1,), (0.9,)]) | sf.change("mode")).on(PLACE * MODE),
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


def test_what_may_happen_at_once_and_is_forgotten_is_found():
    """A policy that says `&` and joins what `|` would: the missing pairs come first."""
    said, built = ((sf.move(0.3) & sf.change("mode")), (sf.move(0.3) | sf.change("mode")).on(PLACE * MODE))
    forgetful = replace(said.on(PLACE * MODE), moves=built.moves)
    listed, total = changes(forgetful, np.random.default_rng(1))
    assert total > len(built.edges())
    (here, there) = np.unravel_index(listed[0], (4, 3))
    assert (here[0] != here[1]) & (there[0] != there[1])
