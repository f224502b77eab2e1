"""Epsilon: exact inside, decimal outside."""

from __future__ import annotations

import copy
import pickle
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.errors import InvalidInput
from sfumato.promise.budget import Epsilon, at_most, stored


def test_epsilon_compares_with_the_decimal_that_a_float_prints() -> None:
    three_tenths = Epsilon(3, 10)
    assert three_tenths == 0.3
    assert three_tenths != 0.31
    assert three_tenths <= 0.3
    assert three_tenths >= 0.3
    assert not three_tenths < 0.3
    assert not three_tenths > 0.3
    assert Fraction(3, 10) > 0.3  # what plain fractions say, and why this type exists


def test_epsilon_compares_with_infinities_and_fractions() -> None:
    assert Epsilon(1) < float("inf")
    assert Epsilon(1) > float("-inf")
    assert Epsilon(1) != float("nan")
    assert Epsilon(1, 3) == Fraction(1, 3)
    assert hash(Epsilon(1, 3)) == hash(Fraction(1, 3))
    assert Epsilon(2) == 2


def test_epsilon_prints_as_people_write_it() -> None:
    assert str(Epsilon(3, 10)) == "0.3"
    assert repr(Epsilon(1, 3)) == "1/3"
    assert f"{Epsilon(1, 3):.2f}" == "0.33"
    assert f"{Epsilon(1, 2)}" == "0.5"


def test_epsilon_survives_pickle_and_copy() -> None:
    value = Epsilon(1, 3)
    for twin in (pickle.loads(pickle.dumps(value)), copy.copy(value), copy.deepcopy(value)):
        assert twin == value
        assert type(twin) is Epsilon


@given(st.fractions(min_value=0))
def test_the_advice_in_a_message_is_never_more_than_what_is_left(value: Fraction) -> None:
    advised = Fraction(at_most(value))
    assert advised <= value
    assert advised >= value * Fraction(99_999, 100_000)


@given(st.fractions())
def test_stored_text_is_exact(value: Fraction) -> None:
    assert Fraction(stored(value, "epsilon")) == value


def test_a_fraction_too_long_to_store_is_refused() -> None:
    with pytest.raises(InvalidInput) as caught:
        stored(Fraction(1, 2**9000), "epsilon")
    assert str(caught.value) == (
        "epsilon would need a fraction of more than 8192 bits, which the ledger does not store. Nothing "
        "was drawn or recorded. Use a rounder epsilon, such as a decimal with a few digits."
    )
