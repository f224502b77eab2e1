"""Levels with names: groups within groups, numbered one parent after another."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

import sfumato as sf
from sfumato.domain import domain_from_spec
from sfumato.domain.coarser import Level, level_named, nested

TRACTS = ["t0", "t1", "t2", "t3"]
LEVELS = {"state": ["OH", "PA", "OH", "PA"], "county": ["Adams", "Adams", "Knox", "York"]}


def codes(**more):
    return sf.Categories(TRACTS, name="tract", levels=LEVELS, **more)


def test_a_name_under_two_parents_is_two_groups():
    state, county = codes().axes[0].coarser
    assert (state.name, state.names, state.of.tolist()) == ("state", ("OH", "PA"), [0, 1, 0, 1])
    assert county.names == ("OH / Adams", "Knox", "PA / Adams", "York")
    assert county.of.tolist() == [0, 2, 1, 3]


def test_groups_of_one_parent_follow_one_another():
    rng = np.random.default_rng(0)
    levels = [Level(f"l{k}", tuple(rng.choice(list("abcd"), 200))) for k in range(3)]
    found = nested(levels)
    for coarse, fine in pairwise(found):
        parent = np.full(len(fine.names), -1)
        parent[fine.of] = coarse.of
        assert (parent[fine.of] == coarse.of).all()  # one parent each
        assert (np.diff(parent) >= 0).all()


def test_axes_without_levels_have_none():
    assert sf.Line(0, 1, cells=4).axes[0].coarser == sf.Categories(["a"]).axes[0].coarser == ()


def test_descriptions_without_levels_stay_what_they_were():
    assert sf.Categories(["a"]).spec() == {
        "axes": [{"kind": "labels", "name": "category", "labels": ["a"], "other": None}]
    }


def test_levels_are_part_of_a_domain_and_are_read_again():
    again = domain_from_spec(codes().spec())
    assert again == codes() != sf.Categories(TRACTS, name="tract")
    assert again.axes[0].coarser[1].names == codes().axes[0].coarser[1].names
    assert repr(again) == "Categories(['t0', 't1', 't2', 't3'], name='tract', levels=['state', 'county'])"


@pytest.mark.parametrize(
    ("levels", "message"),
    [
        ({"state": ["OH"]}, "Axis 'tract': the level 'state' names 1 cells, and there are 4. Give one name for each."),
        (
            {"tract": TRACTS},
            "Axis 'tract': the level 'tract' is called like the axis. Give each a name of its own.",
        ),
        ({" ": TRACTS}, "Axis 'tract': levels has the name ' '. Give a string that is not empty."),
        (
            ["state"],
            "levels=list must map the name of every level, the coarsest first, to the coarser names of the labels, "
            "such as levels={'county': ['A', 'A', 'B']}.",
        ),
    ],
)
def test_what_are_no_levels_is_refused(levels, message):
    with pytest.raises(sf.InvalidInput) as refusal:
        sf.Categories(TRACTS, name="tract", levels=levels)
    assert str(refusal.value) == message


def test_an_unknown_level_is_refused_with_the_nearest():
    with pytest.raises(sf.InvalidInput) as refusal:
        level_named(codes().axes[0].coarser, "country", "tract")
    assert str(refusal.value) == (
        "'country' is no level of 'tract', whose levels are: 'state', 'county'. Did you mean 'county'? Nothing was "
        "computed."
    )


def test_levels_do_not_fit_a_publication_file_yet_and_say_so():
    with pytest.raises(sf.InvalidInput) as refusal:
        codes().axes[0].entry()
    assert str(refusal.value) == "Axis 'tract' cannot be written to a file of a publication. Nothing was written."


def test_elsewhere_is_a_group_of_its_own_on_every_level():
    maps = pytest.importorskip("maps", reason="needs sfumato[geo]")
    table = maps.frame(maps.voronoi(6), state=list("AABBBA"), county=list("xyxxyx"))
    regions = sf.Regions(table, id="id", levels=["state", "county"])
    state, county = regions.axes[0].coarser
    assert state.names == ("A", "B", "elsewhere") and state.of.tolist() == [0, 0, 1, 1, 1, 0, 2]
    assert county.names[-1] == "elsewhere" and (county.of == county.of[-1]).sum() == 1
    with pytest.raises(sf.InvalidInput) as refusal:
        sf.Regions(table.assign(state=["elsewhere", *"ABBBA"]), id="id", levels=["state"])
    assert str(refusal.value) == (
        "Axis 'place': a level names some regions 'elsewhere', which lies in nothing. Rename it."
    )
