"""What is added up: its lattice, its words, its files, and what is refused."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

import sfumato as sf
from sfumato.values import values_from_spec

VALUES = [
    sf.amounts("fare", clip=(0, 100), step=0.01),
    sf.amounts("balance", clip=(-50, 100), step="1/3"),
    sf.amounts('a "quoted" name', clip=(0, 1e6), step=1000),
    sf.people("user", cells=3),
]


def test_a_value_is_cut_and_rounded_to_the_nearest_multiple_and_half_goes_up():
    fares = sf.amounts("fare", clip=(-1, 2), step=0.5)
    values = np.array([-np.inf, -7, -1, -0.76, -0.75, -0.25, -0.26, 0, 0.24, 0.25, 1.9, 2, 300, np.inf])
    steps = fares.axis.locate(values) + fares.least
    assert steps.tolist() == [-2, -2, -2, -2, -1, 0, -1, 0, 0, 1, 4, 4, 4, 4]


def test_the_lattice_says_how_far_a_record_reaches():
    fares = sf.amounts("fare", clip=(-50, 100), step=0.5)
    assert (fares.least, fares.most, fares.largest, fares.steps, fares.signed) == (-100, 200, 200, 300, True)
    assert fares.step == Fraction(1, 2)
    assert sf.amounts("fare", clip=(-100, -50), step=1).largest == 100
    assert not sf.amounts("fare", clip=(0, 100), step=1).signed


@pytest.mark.parametrize("values", VALUES, ids=str)
def test_values_are_written_and_read_again(values):
    assert sf.values_from_text(values.to_text()) == values
    assert values_from_spec(values.spec()) == values


def test_values_are_the_same_however_their_numbers_are_written():
    same = [sf.amounts("fare", clip=clip, step=step) for clip, step in (((0, 10), 0.1), (("0", "10.0"), "1/10"))]
    assert same[0] == same[1]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"clip": (10, 10), "step": 1}, r"clip=\(10, 10\) does not rise.*Give clip=\(low, high\)"),
        ({"clip": (10, 0), "step": 1}, "does not rise"),
        ({"clip": (0, float("nan")), "step": 1}, "clip=nan is not a finite number"),
        ({"clip": (0, float("inf")), "step": 1}, "clip=inf is not a finite number"),
        ({"clip": 5, "step": 1}, "clip=5 must be two numbers"),
        ({"clip": (0, 10), "step": 0}, "step=0 must be greater than zero"),
        ({"clip": (0, 10), "step": 3}, "step=3 does not divide the bound 10 of clip.*Use 9 or 12"),
        ({"clip": (0.5, 10), "step": 1}, "step=1 does not divide the bound 0.5 of clip.*Use 0 or 1"),
        ({"clip": (0, 1e9), "step": 0.01}, "into 100,000,000,000 steps, and at most 4,194,304.*Use a coarser step"),
        ({"clip": ("1e400", "2e400"), "step": "1e399"}, "beyond the largest double"),
    ],
)
def test_bounds_and_steps_that_make_no_lattice_are_refused(given, message):
    with pytest.raises(sf.SfumatoError, match=message) as refusal:
        sf.amounts("fare", **given)
    assert "Nothing was counted, drawn or recorded." in str(refusal.value) or "finite number" in str(refusal.value)


@pytest.mark.parametrize("cells", [0, -1, 1.5, True, "3"])
def test_people_are_in_a_whole_number_of_cells(cells):
    with pytest.raises(sf.InvalidInput, match=r"cells=.* must be a whole number of at least 1"):
        sf.people("user", cells=cells)


@pytest.mark.parametrize("name", ["", " ", 3, None])
def test_a_column_has_a_name(name):
    for make in (lambda: sf.amounts(name, clip=(0, 1), step=1), lambda: sf.people(name, cells=1)):
        with pytest.raises(sf.InvalidInput, match="is not the name"):
            make()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('amounts("fare", clip=[0, 10])', "needs its step"),
        ('sums("fare", clip=[0, 10], step=1)', "is none of amounts, people"),
        ('amounts("fare", clip=[10, 0], step=1)', "does not rise"),
        ("7", "stands where values are expected"),
    ],
)
def test_text_that_says_no_values_is_refused(text, message):
    with pytest.raises(sf.InvalidInput, match=message):
        sf.values_from_text(text)


@pytest.mark.parametrize(
    "spec",
    [
        None,
        {},
        {"kind": "sums"},
        {"kind": "people", "column": "user"},
        {"kind": "people", "column": 1, "cells": 2},
        {"kind": "amounts", "column": "fare", "clip": ["0"], "step": "1"},
        {"kind": "amounts", "column": "fare", "clip": ["0", "1e9"], "step": "1"},
        {"kind": "amounts", "column": "fare", "clip": ["0", "3"], "step": "2"},
        {"kind": "amounts", "column": "fare", "clip": ["0", "3"], "step": "1", "more": 1},
    ],
)
def test_descriptions_from_strangers_are_refused(spec):
    with pytest.raises(sf.InvalidInput):
        values_from_spec(spec)
