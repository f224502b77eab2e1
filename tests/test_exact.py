"""Exact numbers: what is typed may have an exponent, within bounds; what is read from a file has none."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import sfumato as sf
from sfumato.exact import MOST_BITS, finite_float, fraction, positive_fraction, positive_int, shown, written

TOO_LONG = f"epsilon has more than {MOST_BITS} bits. Use a rounder number, of a few digits."


@pytest.mark.parametrize(
    ("given", "exact"),
    [
        (0.1, Fraction(1, 10)),
        ("1e-3", Fraction(1, 1000)),
        (" 1/3 ", Fraction(1, 3)),
        ("1_000", Fraction(1000)),
        (1e-300, Fraction(1, 10**300)),
        (Decimal("2.50"), Fraction(5, 2)),
        (np.float64(0.3), Fraction(3, 10)),
        (np.int32(7), Fraction(7)),
        ("0e5", Fraction(0)),
    ],
)
def test_what_is_typed_is_taken_as_it_is_written(given: Any, exact: Fraction) -> None:
    assert fraction(given, "epsilon") == exact


@pytest.mark.parametrize(
    "given",
    [
        "1e30000000", "1E-30000000", "-1e+30_000_000", f"1e{'9' * 50}", f"1e{'0' * 50}9999999", "0e99999999",
        "9" * 10**7, Decimal("1e30000000"), Decimal("1e-30000000"), 10**5000, -(10**5000), Fraction(1, 10**5000),
    ],
    ids=map(str, range(12)),
)  # fmt: skip
def test_numbers_too_long_to_be_computed_are_refused_at_once(given: Any) -> None:
    with pytest.raises(sf.InvalidInput) as refusal:
        fraction(given, "epsilon")
    assert str(refusal.value) == TOO_LONG


@pytest.mark.parametrize(
    "given",
    ["nan", "inf", "1/0", "", "1e", "١", "1e\uff19\uff19\uff19\uff19\uff19\uff19\uff19\uff19", float("inf"), None],
)
def test_what_is_no_number_is_refused(given: Any) -> None:
    with pytest.raises(sf.InvalidInput, match="is not a finite number"):
        fraction(given, "epsilon")


@pytest.mark.parametrize(
    ("text", "exact"),
    [("3", Fraction(3)), ("7/10", Fraction(7, 10)), ("0.25", Fraction(1, 4)), ("-1/2", Fraction(-1, 2))],
)
def test_numbers_in_files(text: str, exact: Fraction) -> None:
    assert written(text, "epsilon") == exact


@pytest.mark.parametrize(
    "text",
    [
        "1e5",
        "1e30000000",
        "1/0",
        " 1",
        "1\n",
        "+1",
        "1.",
        ".5",
        "1.5/2",
        "1_0",
        "٣",
        "9" * 4001,
        "nan",
        1,
        0.5,
        None,
        b"1",
    ],
)
def test_other_spellings_in_files_are_refused(text: Any) -> None:
    with pytest.raises(sf.InvalidInput) as refusal:
        written(text, "epsilon")
    assert len(str(refusal.value)) < 300


def test_a_long_number_in_a_file_is_refused_like_one_that_is_typed() -> None:
    with pytest.raises(sf.InvalidInput, match=f"more than {MOST_BITS} bits"):
        written("9" * 4000, "epsilon")


def test_refusals_quote_no_more_than_a_line() -> None:
    assert shown("a" * 10**6) == f"'{'a' * 59}… (1,000,002 characters)"
    assert shown(-(10**5000)) == "(a number of thousands of digits)"
    assert shown("\x1b[31m") == repr("\x1b[31m")
    for refuse in (positive_int, finite_float, positive_fraction):
        with pytest.raises(sf.InvalidInput) as refusal:
            refuse(-(10**5000) if refuse is not finite_float else 10**5000, "cells")
        assert len(str(refusal.value)) < 200
