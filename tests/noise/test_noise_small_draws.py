"""Small draws compare words of eight bytes instead of bytes: the same coins, the same numbers, from the same words."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from sfumato.noise import DiscreteLaplace, SeededSource, planes


@given(st.data(), st.integers(1, 4), st.integers(1, 25), st.integers(1, 6))
@settings(max_examples=150, deadline=None)
def test_words_are_compared_as_integers_are(data, bits, digits, size):
    """Up to four words, the last one full or not; digits from a small alphabet, so that ties are common."""
    few = st.sampled_from([0, 1, 127, 128, 255])
    table = data.draw(arrays(np.uint8, (bits, digits), elements=few))
    uniform = data.draw(arrays(np.uint8, (digits, bits, size), elements=few))
    uniform[: digits - 1, :, 0] = table.T[: digits - 1]  # decided by the last digit, or by none
    expected = [[uniform[:, bit, lane].tobytes() < table[bit].tobytes() for lane in range(size)] for bit in range(bits)]
    assert planes._by_words(table, uniform).tolist() == expected


@pytest.mark.parametrize("rate", ["5/4", "1/10", "1/1000", "1/1000000000"])
def test_the_number_of_coins_does_not_change_what_is_drawn(monkeypatch, rate):
    law = DiscreteLaplace(Fraction(rate))
    sizes = [1, 2, 7, 8, 9, 30, 64, 100, 513]
    fast = [law.sample(size, SeededSource(size)) for size in sizes]
    monkeypatch.setattr(planes, "FEW", -1)
    for size, drawn in zip(sizes, fast, strict=True):
        assert np.array_equal(law.sample(size, SeededSource(size)), drawn)
