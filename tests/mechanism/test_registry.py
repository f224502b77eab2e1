"""Mechanisms by name: a closed list, options that are checked, descriptions that survive a file, and refusals."""

from __future__ import annotations

import json
from fractions import Fraction

import numpy as np
import pytest
from mechanism_oracle import box, built, cases

import sfumato as sf
from sfumato.errors import FileFormatError
from sfumato.mechanism import build, mechanism_from_spec, mechanisms, variants

ONE = Fraction(1)
LINE = sf.threshold(sf.Line(0, 1, cells=8), 1)
GRID = sf.threshold(box((4, 4)), 1)
SOURCES = sf.within(sf.Line(0, 1, cells=8), 0.2, sources=[0.0])
PARTS = sf.graph(sf.Line(0, 1, cells=4), [(0, 1), (2, 3)], publish_component_totals=True)


def test_the_list_is_closed():
    assert sf.mechanisms is mechanisms
    assert {"identity", "prefix", "haar", "hierarchy", "hats", "edges", "edge-haar", "edge-hierarchy"} <= set(
        mechanisms()
    )


def test_a_mechanism_survives_its_description():
    for policy in (policy for policy in cases() if policy.domain.size <= 12):
        for mechanism in built(policy):
            again = mechanism_from_spec(json.loads(json.dumps(mechanism.spec())), policy)
            assert type(again) is type(mechanism)
            assert again.spec() == mechanism.spec()
            assert again.describe() == mechanism.describe()
            assert [b.noise for b in again.model.blocks] == [b.noise for b in mechanism.model.blocks]


def test_prefix_sums_with_a_known_total_are_the_edges_of_the_line():
    counts, noise = np.arange(8), [np.arange(7) - 3]
    prefix, edges = (build(name, LINE, ONE) for name in ("prefix", "edges"))
    assert np.array_equal(prefix.measure(counts, noise), edges.measure(counts, noise))
    assert prefix.model.expected_error(sf.ranges(), LINE.domain) == edges.model.expected_error(sf.ranges(), LINE.domain)


def test_variants_can_all_be_built_or_say_why_not():
    for policy in (LINE, GRID, SOURCES, PARTS):
        names = set()
        for name, options in variants(policy, sf.ranges()):
            try:
                names.add(build(name, policy, ONE, **options).name)
            except sf.SfumatoError as refusal:
                assert str(refusal)
        assert "edges" in names


def test_noise_is_described_by_its_scale():
    assert build("identity", LINE, ONE).describe() == "identity; noise of scale 2"
    assert build("edges", sf.within(sf.Line(0, 1, cells=8), 0.2, sources=[0.0]), ONE).describe() == (
        "edges; noise of scale 1 and 2"
    )
    assert build("edges", sf.bounded(sf.Line(0, 1, cells=1)), ONE).describe() == "edges: no noise needed"


@pytest.mark.parametrize(
    ("name", "policy", "options", "message"),
    [
        ("prefix", GRID, {}, "mechanism='prefix' is for lines; on a grid use mechanism='edges'."),
        ("edge-haar", LINE, {}, "mechanism='edge-haar' is for grids; on a line use mechanism='edges'."),
        ("edge-hierarchy", LINE, {}, "mechanism='edge-hierarchy' is for grids; on a line use mechanism='edges'."),
        ("identity", LINE, {"width": 3}, "mechanism='identity' takes no option width."),
        ("edges", LINE, {"b": 1, "a": 2}, "mechanism='edges' takes no option a, b."),
        ("prefix", SOURCES, {"reverse": 1}, "reverse=1 must be True or False."),
        ("hierarchy", LINE, {"branching": 1}, "branching=1 must be at least 2."),
        ("hierarchy", LINE, {"branching": 2.5}, "branching=2.5 must be a whole number of at least 1."),
        (
            "hierarchy",
            LINE,
            {"root": "yes"},
            "root='yes' must be True or False: whether the coarsest level is one block.",
        ),
        (
            "hierarchy",
            LINE,
            {"blocks": [3, 2, 1]},
            "blocks=(3, 2, 1) must fall from the largest to 1, each a multiple of the next one.",
        ),
        (
            "hierarchy",
            LINE,
            {"blocks": "4, 2"},
            "blocks='4, 2' must be a list of whole numbers, or one such list for each axis.",
        ),
        (
            "hierarchy",
            LINE,
            {"blocks": [2, 1], "weights": [1]},
            "weights=(1,) must be whole numbers from 1 to 65536, one for each of (2, 1).",
        ),
        ("hierarchy", LINE, {"blocks": [2, 1], "weights": [0, 1]}, "weights=0 must be a whole number of at least 1."),
        (
            "identity",
            PARTS,
            {},
            "mechanism='identity' needs a connected policy; under this one use mechanism='edges'.",
        ),
        (
            "identity",
            sf.bounded(sf.Line(0, 1, cells=1)),
            {},
            "mechanism='identity': under this policy no change of a record moves any value; use mechanism='edges'.",
        ),
        (
            "edge-haar",
            sf.graph(box((2, 2)), [(0, 1), (1, 3), (3, 2)]),
            {},
            "mechanism='edge-haar' on grid lines needs a policy made of moves on a grid.",
        ),
    ],
)
def test_what_a_mechanism_cannot_do_is_refused(name, policy, options, message):
    with pytest.raises(sf.InvalidInput) as refusal:
        build(name, policy, ONE, **options)
    assert str(refusal.value) == message


def test_an_unknown_name_is_refused_with_the_list():
    with pytest.raises(sf.InvalidInput) as refusal:
        build("gauss", LINE, ONE)
    assert str(refusal.value) == f"mechanism='gauss' is not one of {', '.join(map(repr, mechanisms()))}."


def test_noise_beyond_fixed_point_is_refused():
    with pytest.raises(sf.InvalidInput) as refusal:
        build("edge-haar", GRID, Fraction(1, 10**15))
    assert str(refusal.value) == (
        "epsilon=1e-15 on 16 cells needs noise beyond what 64-bit fixed point holds under mechanism='edge-haar'. "
        "Use a larger epsilon or fewer cells."
    )


@pytest.mark.parametrize("epsilon", [10**6, 10**400, Fraction(1, 1000)])
def test_any_budget_that_noise_can_serve_is_taken(epsilon):
    for name in ("identity", "edges", "edge-haar", "edge-hierarchy", "haar", "hierarchy"):
        mechanism = build(name, GRID, Fraction(epsilon))
        assert mechanism.privacy_loss <= epsilon


@pytest.mark.parametrize(
    "spec",
    [
        {},
        {"name": "../gauss", "epsilon": "1", "options": {}},
        {"name": ["gauss"], "epsilon": "1", "options": {}},
        {"name": "g" * 65, "epsilon": "1", "options": {}},
        {"name": "strategy", "epsilon": "1", "options": {}},
        {"name": "identity", "epsilon": "one", "options": {}},
        {"name": "identity", "epsilon": "1/0", "options": {}},
        {"name": "identity", "epsilon": "1", "options": {"width": 1}},
        {"name": "identity", "epsilon": "1", "options": [1]},
    ],
)
def test_a_damaged_description_is_refused(spec):
    with pytest.raises(FileFormatError) as refusal:
        mechanism_from_spec(spec, LINE)
    assert str(refusal.value) == "the description of the mechanism is damaged, or from a newer version."
