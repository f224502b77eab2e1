"""A δ in another unit than was meant: said in words, before any data and without changing the policy."""

from __future__ import annotations

import warnings

import pytest

import sfumato as sf
from sfumato.policies import policy_from_spec

NEW_YORK = sf.Grid(bounds=(-74.3, 40.5, -73.7, 40.95), shape=(16, 16))
GLOBE = sf.Grid(bounds=(-180, -90, 180, 90), shape=(36, 18))
SAY = "If the bounds are degrees and delta is in metres, say metric='great-circle'."


@pytest.mark.parametrize("metric", ["euclidean", "manhattan", "chebyshev"])
@pytest.mark.parametrize("delta", [2, 500, "500.0", 10_000])
def test_metres_on_degrees_are_refused_with_the_metric_that_was_meant(delta, metric):
    with pytest.raises(sf.InvalidInput) as refusal:
        sf.within(NEW_YORK, delta, metric=metric)
    assert "every move is hidden, which is sf.bounded(domain). Use that, or a smaller delta. " in str(refusal.value)
    assert str(refusal.value).endswith(SAY)


def test_the_hint_is_left_out_where_it_cannot_be_meant():
    planes = (sf.Grid(bounds=(583_000, 4_484_000, 609_000, 4_534_000), shape=(4, 4)), sf.Line(0, 1, cells=4))
    for domain in (*planes, sf.Grid(bounds=(0, 0, 0, 1, 1, 1), shape=(2, 2, 2))):
        with pytest.raises(sf.InvalidInput) as refusal:
            sf.within(domain, 10**6)
        assert "great-circle" not in str(refusal.value)
    with pytest.raises(sf.InvalidInput) as refusal:
        sf.within(NEW_YORK, 10**8, metric="great-circle")
    assert SAY not in str(refusal.value)


@pytest.mark.parametrize(
    ("domain", "delta", "more", "words"),
    [
        (NEW_YORK, 0.005, {"metric": "great-circle"}, "delta=0.005 with metric='great-circle' is in metres: 5 mm"),
        (NEW_YORK, "0.25", {"metric": "great-circle", "sources": "boundary"}, "is in metres: 25 cm"),
        (GLOBE, 100, {}, "delta=100 is in the units of the axes, more than a quarter of the longer side"),
        (sf.Grid(bounds=(5, 45, 15, 55), shape=(4, 4)), 5, {"metric": "manhattan"}, SAY),
    ],
)
def test_an_allowed_distance_in_another_unit_is_doubted_and_kept(domain, delta, more, words):
    with pytest.warns(sf.DeclarationWarning) as told:
        policy = sf.within(domain, delta, **more)
    (warning,) = told
    assert words in str(warning.message) and warning.filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert policy_from_spec(policy.spec()) == policy  # a file says what it says


@pytest.mark.parametrize(
    ("domain", "delta", "more"),
    [
        (NEW_YORK, 0.01, {}),
        (NEW_YORK, 0.4, {}),
        (NEW_YORK, 1, {"metric": "great-circle"}),
        (GLOBE, 5, {}),
        (sf.Grid(bounds=(0, 0, 100, 50), shape=(4, 4)), 60, {}),  # a plan drawn from its corner
        (sf.Line(-10, 10, cells=4), 9, {}),
    ],
)
def test_ordinary_distances_are_not_doubted(domain, delta, more):
    sf.within(domain, delta, **more)  # a warning would fail the test
