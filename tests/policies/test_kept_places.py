"""Moves that stay within a level: what they join, what they publish, what is said first, and who refuses it."""

from __future__ import annotations

import numpy as np
import pytest

import sfumato as sf

geopandas = pytest.importorskip("geopandas", reason="needs sfumato[geo]")
shapely = pytest.importorskip("shapely", reason="needs sfumato[geo]")

HIDE = sf.move("500 m", keep="state")
FIRST = "moves from one state to another are not hidden at all; the exact number of records for every state is public"


def squares(states="WWWWEEEE", name="place"):
    """Two rows of four squares, a hundredth of a degree wide; what lies in a state is a run of columns."""
    boxes = [shapely.box(x / 100, y / 100, (x + 1) / 100, (y + 1) / 100) for x in range(4) for y in range(2)]
    table = {"id": [f"r{i}" for i in range(8)], "state": list(states)}
    frame = geopandas.GeoDataFrame(table, geometry=boxes, crs="EPSG:4326")
    return sf.Regions(frame, id="id", levels=["state"], name=name)


def groups(domain):
    return domain.axes[0].coarser[0].of


def test_only_moves_within_a_group_are_joined():
    regions = squares()
    plain, kept = sf.policy(regions, hide=sf.move("500 m")), sf.policy(regions, hide=HIDE)
    of = groups(regions)
    edges = plain.edges()
    assert np.array_equal(kept.edges(), edges[of[edges[:, 0]] == of[edges[:, 1]]])
    assert 0 < len(kept.edges()) < len(edges)


def test_in_a_product_the_other_factor_moves_as_it_did():
    space = squares() * sf.Categories(["bus", "bike"], name="mode")
    kept = sf.policy(space, hide=HIDE | sf.change("mode"))
    plain = sf.policy(space, hide=sf.move("500 m") | sf.change("mode"))
    of = np.repeat(groups(space), 2)
    edges = plain.edges()
    assert np.array_equal(kept.edges(), edges[of[edges[:, 0]] == of[edges[:, 1]]])
    assert kept.distance(0, 15) == np.inf > plain.distance(0, 15)


def test_what_is_not_hidden_is_said_first():
    policy = sf.policy(squares(), hide=HIDE)
    assert policy.describe().startswith(FIRST)
    release = sf.plan(policy, sf.histogram(), epsilon=1).publish(np.arange(9))
    assert FIRST in str(release.guarantee)


def test_totals_of_groups_are_exact_and_cells_are_not():
    release = sf.plan(sf.policy(squares(), hide=HIDE), sf.histogram(), epsilon=1).publish(np.arange(9) * 10)
    table = release.answer(by="state")
    assert table.value.tolist() == [60.0, 220.0, 80.0]
    assert table.stderr.tolist() == [0.0, 0.0, 0.0]
    assert (release.cells().stderr[:8] > 0).all()


def test_a_group_in_parts_would_publish_more_and_is_refused():
    """The state W is two columns with another state between them."""
    apart = squares("WWEEWWEE")
    with pytest.raises(sf.InvalidInput) as refusal:
        sf.policy(apart, hide=HIDE)
    assert str(refusal.value) == (
        "hide leaves a factor in parts that no move joins: the exact number of records in each part would be "
        "published. Nothing was built. Hide more, or ask for it with publish_component_totals=True."
    )
    assert sf.policy(apart, hide=HIDE, publish_component_totals=True).total_is_public


def test_parts_of_another_place_are_not_published_with_it():
    space = squares() * squares("WWEEWWEE", name="goal")
    hide = HIDE | sf.move("500 m", of="goal", keep="state")
    with pytest.raises(sf.InvalidInput, match="in parts that no move joins"):
        sf.policy(space, hide=hide)


def test_where_records_come_and_leave_nothing_is_kept():
    space = squares() * sf.Grid(bounds=(0, 0, 1, 1), shape=(2, 2), name="goal", crs="EPSG:4326")
    with pytest.raises(sf.InvalidInput) as refusal:
        sf.policy(space, hide=HIDE | sf.move("500 m", of="goal"))
    assert str(refusal.value) == (
        "hide keeps 'state', and another place is one that records come into and leave, so that nothing is kept. "
        "Nothing was built. Leave keep out."
    )


def test_a_release_is_read_again(tmp_path):
    policy = sf.policy(squares(), hide=HIDE)
    release = sf.plan(policy, sf.histogram(), epsilon=1).publish(np.arange(9))
    again = sf.load(release.save(tmp_path / "kept.sfumato"))
    assert again.guarantee.policy == policy
    assert again.answer(by="state").stderr.tolist() == [0.0, 0.0, 0.0]


def test_the_relation_is_written_as_text_and_as_data():
    assert HIDE.to_text() == 'move("500 m", keep="state")'
    assert sf.relation_from_text(HIDE.to_text()) == HIDE != sf.move("500 m")
    assert HIDE.spec()["terms"][0]["rules"][0]["keep"] == "state"
    assert "keep" not in sf.move("500 m").spec()["terms"][0]["rules"][0]


def test_an_account_of_plain_moves_refuses_it(tmp_path):
    regions = squares()
    plan = sf.plan(sf.policy(regions, hide=HIDE), sf.histogram(), epsilon=1)
    plain = sf.move("500 m")
    for name, given in {"hide": plain, "policy": sf.policy(regions, hide=plain)}.items():
        ledger = sf.Ledger.create(tmp_path / f"{name}.db", epsilon=10, **{name: given})
        with pytest.raises(sf.PolicyMismatch):
            plan.publish(np.arange(9), ledger=ledger)
        assert ledger.spent == 0


def test_an_account_of_its_own_takes_it_and_plain_moves_as_well(tmp_path):
    regions = squares()
    ledger = sf.Ledger.create(tmp_path / "kept.db", epsilon=10)
    for hide in (HIDE, sf.move("500 m")):
        sf.plan(sf.policy(regions, hide=hide), sf.histogram(), epsilon=1).publish(np.arange(9), ledger=ledger)
    assert ledger.spent == 2


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (
            lambda: sf.policy(squares(), hide=HIDE | sf.presence()),
            "hide keeps 'state' in one of its changes and leads out of it by another: one record changes in one of "
            "these ways: it appears or vanishes; its place moves by less than 500 m (on the ellipsoid) within one "
            "state. Nothing was built. Leave keep out, or the other change.",
        ),
        (
            lambda: sf.policy(squares(), hide=HIDE | sf.move("100 m")),
            "hide keeps 'state' in one of its changes and leads out of it by another: one record changes in one of "
            "these ways: its place moves by less than 100 m (on the ellipsoid); its place moves by less than 500 m "
            "(on the ellipsoid) within one state. Nothing was built. Leave keep out, or the other change.",
        ),
        (
            lambda: sf.policy(squares(), hide=sf.move("500 m", keep="county")),
            "'county' is no level of 'place', whose levels are: 'state'. Nothing was computed.",
        ),
        (
            lambda: sf.policy(sf.Grid(bounds=(0, 0, 1, 1), shape=(2, 2)), hide=sf.move(0.1, keep="state")),
            "'state' is no level of 'place', whose levels are: none. Nothing was computed.",
        ),
        (
            lambda: sf.move(0.1, keep="state", sources=[(0, 0)]),
            "keep='state' and sources exclude each other: where records may vanish nothing is kept.",
        ),
    ],
)
def test_what_keeps_nothing_is_refused(build, message):
    with pytest.raises(sf.InvalidInput) as refusal:
        build()
    assert str(refusal.value) == message


def test_an_account_of_records_knows_no_levels(tmp_path):
    with pytest.raises(sf.InvalidInput) as refusal:
        sf.Ledger.create(tmp_path / "kept.db", epsilon=1, hide=HIDE)
    assert str(refusal.value) == (
        "hide keeps 'state', and what lies in which state is known to domains alone. Nothing was created. Make the "
        "account with policy=… of one domain."
    )
