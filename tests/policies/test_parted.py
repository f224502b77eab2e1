"""Policies inside every part: their distances are what all parts together tell, and their prices never below it."""

from __future__ import annotations

import itertools
import math
import random

import numpy as np
import pytest

import sfumato as sf
from sfumato.policies import Policy, price
from sfumato.policies.parted import parted
from sfumato.promise.parts import Part, Partition
from sfumato.relations import Record

LINE = sf.Line(0, 3, cells=3)
STATE = sf.Categories(["NY", "NJ"], name="state")
INSIDE = {
    "move": lambda: sf.within(LINE, 0.5),
    "anything": lambda: sf.bounded(LINE),
    "presence": lambda: sf.unbounded(LINE),
    "move or presence": lambda: sf.policy(LINE, hide=sf.move(0.5) | sf.presence()),
    "standard": lambda: sf.policy(LINE, hide=sf.anything() | sf.presence()),
    "sources": lambda: sf.within(LINE, 0.5, sources="boundary"),
    "points": lambda: sf.within(LINE, 0.5, sources=[2.5]),
}


def public_of(inside: Policy) -> list[str]:
    return ["state"] if inside.total_is_public else []


def in_its_part(inside: Policy, one: int, other: int) -> float:
    """What all parts tell of a change of a record, whose places are part × 3 + cell, or -1 where it is in none."""
    told = 0.0
    for part in range(2):
        here, there = (cell % 3 if cell >= 0 and cell // 3 == part else -1 for cell in (one, other))
        ends = [sf.ABSENT if cell < 0 else cell for cell in (here, there)]
        told += 0 if here == there else inside.distance(*ends)
    return told


@pytest.mark.parametrize("case", [*INSIDE, "public presence"])
def test_the_way_between_two_records_is_what_all_parts_tell(case: str) -> None:
    if case == "public presence":  # where some cells are joined to ⊥ the parts have no exact total
        with pytest.raises(sf.InvalidInput, match="public names 'state', which is not published exactly"):
            parted(STATE, INSIDE["presence"](), public=["state"])
        return
    inside = INSIDE[case]()
    made = parted(STATE, inside, public=public_of(inside))
    for one, other in itertools.combinations(range(-1, 6), 2):
        ends = [sf.ABSENT if cell < 0 else cell for cell in (one, other)]
        assert made.distance(*ends) == in_its_part(inside, one, other)


@pytest.mark.parametrize("seed", range(40))
def test_no_price_of_parts_is_below_what_they_tell(seed: int) -> None:
    """Records have three states, of which two are declared, or all with one for the rest."""
    dice = random.Random(seed)
    inside = INSIDE[dice.choice(list(INSIDE))]()
    rest = dice.choice([None, "NJ"])
    by = sf.Categories(["NY", "NJ"], name="state", other=rest)
    made = parted(by, inside, public=public_of(inside))
    hide = dice.choice(
        [
            sf.move(0.5, of="x"),
            sf.change("x"),
            sf.change("state"),
            sf.change("state") | sf.move(0.5, of="x"),
            sf.change("state") & sf.change("x"),
            sf.presence(),
            sf.anything(),
            sf.presence() | sf.change("x"),
        ]
    )
    everywhere = sf.Categories(["NY", "NJ", "CT"], name="state") * LINE
    names = [] if hide.changes_all else [n for n in ("state", "x") if n not in hide.names]
    hidden = sf.policy(everywhere, hide=hide, public=[] if hide.hides_presence else names)
    place = {cell: cell if cell < 6 else (-1 if rest is None else cell - 3) for cell in range(9)} | {-1: -1}
    truth = max(in_its_part(inside, place[int(u)], place[int(v)]) for u, v in hidden.edges())
    record = Record.of(hide, names if hide.rules and not hide.changes_all else [])
    try:
        charged = price(record, made, [] if rest else ["state"])
    except sf.PolicyMismatch:
        assert not math.isfinite(truth) or record.changes("state")
        return
    assert max(truth, 1) <= charged <= 2 * max(truth, 1)
    part = Part(epsilon=1, inside=price(record, made), absent=inside.eccentricity)
    if not record.changes("state"):
        assert Partition.alike(part, 2, crossed=False, presence=False).price == charged


def test_rule_by_hand() -> None:
    fixed, crossing = Record.of(sf.change("x"), ["state"]), Record.of(sf.change("x") | sf.change("state"))
    bounded, both = parted(STATE, sf.bounded(LINE), public=["state"]), parted(STATE, INSIDE["standard"]())
    assert price(fixed, bounded) == price(fixed, both) == 1
    assert price(crossing, both) == 2  # it vanishes in one part and appears in the other
    with pytest.raises(sf.PolicyMismatch, match="its state becomes any other"):
        price(crossing, bounded)
    assert bounded.public == ("state",)
    assert np.array_equal(bounded.edges(), [[0, 1], [0, 2], [1, 2], [3, 4], [3, 5], [4, 5]])


def test_parts_of_lists_of_cells_and_unnamed_totals_are_refused() -> None:
    with pytest.raises(sf.InvalidInput, match="parts are published under a relation between records"):
        parted(STATE, sf.threshold(LINE, 1), public=["state"])
    with pytest.raises(sf.InvalidInput, match="hide changes nothing of 'state'"):
        parted(STATE, sf.bounded(LINE))
    with pytest.raises(sf.InvalidInput, match="public names 'mode', which is no factor"):
        parted(STATE, sf.bounded(LINE), public="mode")
