"""Domains are frozen values: built with care, equal when their axes are, and told apart by a fingerprint."""

from __future__ import annotations

import copy
import json
import pickle
from fractions import Fraction

import numpy as np
import pytest

from sfumato.domain import Categories, Cycle, Domain, Grid, Interval, Labels, Line, Times, domain_from_spec
from sfumato.errors import InvalidInput

EVERY_KIND = [
    Line(0, 24, cells=48, name="hour"),
    Grid(bounds=(-74.3, 40.5, -73.7, 40.95), shape=(256, 128)),
    Grid(bounds=(0, 0, 0, 0, 1, 1, 1, 1), shape=(2, 3, 4, 5)),
    Grid(bounds=(0, 0, 1, 1), shape=(2, 2), names=("lon", "lat")),
    Categories(["bus", "tram", "rest"], other="rest"),
    Categories([True, False], name="member"),
    Categories(range(20)),
    Domain((Interval("x", 0, 1, 4), Labels("age", ("young", "old")))),
    Line(edges=[0, 5, 10, 20, 50, 200], name="fare"),
    Grid(edges=([0, 1, 5], [0, 0.1, 0.7]), name="origin"),
    Times("2026-01-01", "2027-01-01", every="1 h"),
    Times("2026-01-01", "2027-01-01", every="1 day", name="day", tz="America/New_York"),
    Cycle("weekday"),
    Cycle("hour of week", name="hour", tz="Australia/Lord_Howe"),
    Grid(edges=([0, 1, 5], [0, 0.1, 0.7])) * Times("2026-01-01", "2026-01-08", every="1 day") * Cycle("month"),
]


@pytest.mark.parametrize("domain", EVERY_KIND, ids=repr)
def test_description_survives_json_pickle_and_copy(domain: Domain) -> None:
    again = domain_from_spec(json.loads(json.dumps(domain.spec())))
    assert type(again) is type(domain)
    for other in (again, pickle.loads(pickle.dumps(domain)), copy.deepcopy(domain)):
        assert other == domain
        assert hash(other) == hash(domain)
        assert other.fingerprint == domain.fingerprint
        assert repr(other) == repr(domain)


def test_equality_is_that_of_the_axes() -> None:
    assert Domain((Interval("x", 0, 1, 4),)) == Line(0, 1, cells=4)
    assert Line(-0.0, 1, cells=4).fingerprint == Line(0, 1, cells=4).fingerprint
    assert Line(0, 1, cells=4) != Line(0, 1, cells=5)
    assert Line(0, 1, cells=4) != "Line"
    assert len({domain.fingerprint for domain in EVERY_KIND}) == len(EVERY_KIND)


def test_fingerprint_does_not_change_between_versions() -> None:
    fingerprint = Grid(bounds=(0, 0, 1, 1), shape=(2, 2)).fingerprint
    assert fingerprint == "371a514498b05cf4658713158b6ae3e43da8a39200c1f91e49f4e80498fd70ac"


def test_a_domain_knows_its_shape() -> None:
    grid = Grid(bounds=(0, 1, 2, 4), shape=(4, 6))
    assert (grid.shape, grid.size, grid.ndim, grid.names) == ((4, 6), 24, 2, ("x", "y"))
    assert grid.bounds == (0.0, 1.0, 2.0, 4.0)
    assert grid.is_spatial
    assert not EVERY_KIND[7].is_spatial
    assert EVERY_KIND[7].bounds == (0.0, 1.0)
    assert EVERY_KIND[2].names == ("x", "y", "z", "axis3")


def test_width_is_exact() -> None:
    assert Interval("x", 0.1, 0.4, 3).width == (Fraction(0.4) - Fraction(0.1)) / 3


def test_edges_cannot_be_changed() -> None:
    with pytest.raises(ValueError, match="read-only"):
        Interval("x", 0, 1, 4).edges[0] = 5.0


@pytest.mark.parametrize(
    ("domain", "text"),
    [
        (EVERY_KIND[0], "Line(0, 24, cells=48, name='hour')"),
        (Line(0.1, 0.30000000000000004, cells=2), "Line(0.1, 0.30000000000000004, cells=2)"),
        (EVERY_KIND[1], "Grid(bounds=(-74.3, 40.5, -73.7, 40.95), shape=(256, 128))"),
        (EVERY_KIND[3], "Grid(bounds=(0, 0, 1, 1), shape=(2, 2), names=('lon', 'lat'))"),
        (EVERY_KIND[4], "Categories(['bus', 'tram', 'rest'], other='rest')"),
        (EVERY_KIND[5], "Categories([True, False], name='member')"),
        (EVERY_KIND[6], "Categories([0, 1, 2, …, 19] (20 labels))"),
        (EVERY_KIND[7], "Line(0, 1, cells=4) * Categories(['young', 'old'], name='age')"),
    ],
)
def test_printing_is_short(domain: Domain, text: str) -> None:
    assert repr(domain) == text


@pytest.mark.parametrize(
    ("labels", "values", "cells"),
    [
        (("a", "b"), ["b", "a", "b"], [1, 0, 1]),
        (("a", "b"), np.array(["b", "a"], dtype=object), [1, 0]),
        ((3, 1), np.array([1, 3], dtype=np.uint8), [1, 0]),
        ((False, True), [True, False], [1, 0]),
        (("a", "b"), [], []),
    ],
)
def test_labels_are_located_by_place(labels: tuple[str, ...], values: object, cells: list[int]) -> None:
    assert Labels("k", labels).locate(values).tolist() == cells  # type: ignore[arg-type]


def test_unknown_labels_are_counted_under_other() -> None:
    assert Categories(["a", "rest"], other="rest").locate(["a", "?", "rest"]).tolist() == [0, 1, 1]


def test_one_and_true_are_not_the_same_label() -> None:
    labels = Labels("k", (0, 1, 9), other=9)
    assert labels.locate(np.array([1, True, 0, False], dtype=object)).tolist() == [1, 2, 0, 2]


def test_unknown_labels_are_refused_without_being_shown() -> None:
    with pytest.raises(InvalidInput) as refusal:
        Categories(["a", "b"]).locate(["a", "secret"])
    assert str(refusal.value) == (
        "Axis 'category': some values are not among its labels. Nothing was counted. Declare the missing labels, or "
        "give the axis a label for the rest with other=…."
    )


def test_values_of_another_kind_than_the_labels_are_refused() -> None:
    with pytest.raises(InvalidInput) as refusal:
        Categories(["a", "b"]).locate([1, 2])
    assert str(refusal.value) == (
        "Axis 'category': values of type int64 cannot be compared with its labels, which are of type str. "
        "Nothing was counted."
    )


def build(call: str) -> Domain:
    result = eval(call, {"Line": Line, "Grid": Grid, "Categories": Categories, "Domain": Domain, "Labels": Labels})
    assert isinstance(result, Domain)
    return result


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ("Line(1, 1, cells=4)", "Axis 'x': low=1.0 is not below high=1.0. Give the lower bound first."),
        ("Line(0, float('inf'), cells=4)", "high=inf is not a finite number."),
        ("Line('0', 1, cells=4)", "low='0' is not a finite number."),
        ("Line(0, 1, cells=0)", "cells=0 must be a whole number of at least 1."),
        ("Line(0, 1, cells=4, name=' ')", "name=' ' is not the name of an axis. Give a string that is not empty."),
        (
            "Line(-1.7e308, 1.7e308, cells=4)",
            "Axis 'x': the distance from low=-1.7e+308 to high=1.7e+308 is not a finite double. "
            "Use bounds closer to each other.",
        ),
        (
            "Line(1e15, 1e15 + 1024, cells=9)",
            "Axis 'x': cells=9 between low=1000000000000000.0 and high=1000000000001024.0 are too narrow for double "
            "precision to tell them apart. Use fewer cells, or a nearer origin.",
        ),
        (
            "Line(0, 1e-310, cells=2)",
            "Axis 'x': cells=2 between low=0.0 and high=1e-310 are too narrow for double precision to tell them apart. "
            "Use fewer cells, or a nearer origin.",
        ),
        ("Grid((0, 1), (4,))", "shape=(4,) has 1 sides, and a grid has at least two. Use sf.Line for one."),
        ("Grid((0, 1, 2), (4, 4))", "bounds=(0, 1, 2) has 3 numbers; a grid of 2 sides has 4: (lo…, hi…)."),
        ("Grid(5, (4, 4))", "bounds=5 is not a sequence."),
        ("Grid((0, 0, 1, 1), (4, 4), names=('x',))", "names=('x',) has 1 names for 2 axes. Give one for each."),
        (
            "Grid((0, 0, 1, 1), (4, 4), names=('x', 'x'))",
            "axes are named 'x', 'x'. Give each axis a name of its own.",
        ),
        (
            "Grid((0, 0, 1, 1), (2**40, 2**40))",
            "axes of 1099511627776 × 1099511627776 cells have more cells together than a 64-bit number can count. "
            "Use fewer cells.",
        ),
        ("Domain(())", "axes must be one or more axes, such as sf.Interval or sf.Labels."),
        ("Domain(5)", "axes must be one or more axes, such as sf.Interval or sf.Labels."),
        ("Categories('abc')", "Axis 'category': labels='abc' is not a list of labels."),
        (
            "Categories([])",
            "Axis 'category': labels must be one or more values, all str, all int or all bool; "
            "received 0 of type none.",
        ),
        (
            "Categories(['a', 1])",
            "Axis 'category': labels must be one or more values, all str, all int or all bool; "
            "received 2 of type int, str.",
        ),
        ("Categories(['a', 'b', 'a'])", "Axis 'category': the label 'a' occurs twice. Give each label once."),
        ("Categories(['a'], other='b')", "Axis 'category': other='b' is not one of the labels. Add it to them."),
        ("Categories([1], other=True)", "Axis 'category': other=True is not one of the labels. Add it to them."),
    ],
)
def test_domains_that_cannot_be_are_refused(call: str, message: str) -> None:
    with pytest.raises(InvalidInput) as refusal:
        build(call)
    assert str(refusal.value) == message


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ({}, "The description of the domain is incomplete or not of this format."),
        ({"axes": [{"kind": "interval"}]}, "The description of the domain is incomplete or not of this format."),
        (
            {"axes": [{"kind": "triangles"}]},
            "The description of the domain has an axis of kind 'triangles'; known are interval, labels, bins, times, "
            "cycle, ground, regions, hexagons, roads.",
        ),
    ],
)
def test_descriptions_of_another_format_are_refused(spec: dict[str, object], message: str) -> None:
    with pytest.raises(InvalidInput) as refusal:
        domain_from_spec(spec)
    assert str(refusal.value) == message


def test_ranges_on_labels_are_refused() -> None:
    with pytest.raises(InvalidInput) as refusal:
        Categories(["a"]).fractional([0.0, 1.0])
    assert str(refusal.value) == "ranges need a domain whose axes are all intervals; this one has labels."
