"""Bounds in another order: refused where they end before they begin, doubted where they are allowed all the same."""

from __future__ import annotations

import warnings

import pytest

import sfumato as sf
from sfumato.domain import domain_from_spec
from sfumato.domain.order import other_box

NEW_YORK = (-74.3, 40.5, -73.7, 40.95)
TURNED = (-74.3, -73.7, 40.5, 40.95)


def refused(bounds: tuple[float, ...]) -> str:
    with pytest.raises(sf.InvalidInput) as refusal:
        sf.Grid(bounds=bounds, shape=(4,) * (len(bounds) // 2))
    return str(refusal.value)


@pytest.mark.parametrize(
    ("bounds", "meant"),
    [
        ((-180, 180, -90, 90), "(-180, -90, 180, 90)"),
        ((5, 9, 45, 47, 0, 3), "(5, 45, 0, 9, 47, 3)"),  # height below 9
        ((0, 1, 0, 1, 0, 1, 0, 1), "(0, 0, 0, 0, 1, 1, 1, 1)"),
    ],
)
def test_minimum_and_maximum_of_each_axis_are_refused_with_what_was_meant(bounds, meant):
    text = refused(bounds)
    assert f"bounds={bounds!r} end before they begin on some axis; they are (lo…, hi…)" in text
    assert f"Nothing was built. Did you mean bounds={meant}? The given order looks like (" in text
    assert ("(xmin, xmax, ymin, ymax)" in text) == (len(bounds) == 4)


def test_upper_ends_first_are_refused_with_what_was_meant():
    assert refused((-73.7, 40.95, -74.3, 40.5)).endswith(
        "Did you mean bounds=(-74.3, 40.5, -73.7, 40.95)? The given order looks like upper ends before lower ones."
    )
    assert refused((0, 0, 0, 1)).endswith("then 2 upper ends. Nothing was built.")  # no order mends this
    assert "bounds=nan is not a finite number" in refused((0, float("nan"), 1, 1))


@pytest.mark.parametrize("bounds", [TURNED, (583_000, 609_000, 4_484_000, 4_534_000), (0, 1, 100, 101, 9000, 9001)])
def test_bounds_that_are_allowed_and_far_too_large_are_doubted(bounds):
    with pytest.warns(sf.DeclarationWarning) as told:
        grid = sf.Grid(bounds=bounds, shape=(4,) * (len(bounds) // 2))
    (warning,) = told
    assert warning.filename == __file__
    assert "They look like (xmin, xmax, ymin, ymax): did you mean bounds=(" in str(warning.message)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert domain_from_spec(grid.spec()) == grid  # a file says what it says
        assert type(domain_from_spec(grid.spec())) is sf.Grid


@pytest.mark.parametrize("bounds", [NEW_YORK, (0, 0, 1, 1), (0, 1, 10, 20), (-180, -90, 180, 90), (1, 2, 3, 4, 5, 6)])
def test_ordinary_bounds_are_not_doubted(bounds):
    sf.Grid(bounds=bounds, shape=(4,) * (len(bounds) // 2))  # a warning would fail the test


@pytest.mark.filterwarnings("ignore::sfumato.DeclarationWarning")
def test_the_box_of_the_other_reading_is_known_where_it_is_a_small_part():
    assert other_box(sf.Grid(bounds=TURNED, shape=(256, 256))) == (slice(0, 2), slice(254, 256))
    assert other_box(sf.Grid(bounds=(-125, -66, 24, 50), shape=(100, 100))) == (slice(0, 40), slice(77, 100))
    assert other_box(sf.Grid(bounds=NEW_YORK, shape=(256, 256))) is None
    assert other_box(sf.Grid(bounds=TURNED, shape=(2, 2))) is None  # half of the map
    assert other_box(sf.Line(0, 1, cells=8)) is None
    assert other_box(sf.Categories(["a", "b"])) is None
