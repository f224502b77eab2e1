"""Coins drawn a byte at a time: exactly U < p, on both paths, down to the last digit."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from sfumato.errors import InvalidInput
from sfumato.noise import DiscreteLaplace, SeededSource, SystemSource, planes
from sfumato.noise.expansion import expansion


class Script:
    """A stream that plays back given uniform digits, shape (digits, bits, size), to either path."""

    def __init__(self, uniform, table):
        self.uniform, self.table, self.call = uniform, table, 0

    def whole(self, count):
        assert count == self.uniform.size
        return self.uniform.reshape(-1).copy()

    def take(self, count):
        """Digit after digit, for the coins that all earlier digits left undecided."""
        undecided = (self.uniform[: self.call] == self.table.T[: self.call, :, None]).all(axis=0)
        digits = self.uniform[self.call][undecided]
        assert digits.size == count
        self.call += 1
        return digits.copy()


def both_paths(table, uniform):
    size = uniform.shape[2]
    lazy = planes._lazy(table, size, Script(uniform, table))
    script = Script(uniform, table)
    script.take = script.whole
    return lazy, planes._steady(table, size, script)


def test_every_two_byte_uniform_is_compared_exactly():
    """By hand: of the 65,536 values of U exactly those below p = 0x1234/65536 give a one."""
    table = np.array([[0x12, 0x34]], dtype=np.uint8)
    values = np.arange(1 << 16)
    uniform = np.stack([values >> 8, values & 255]).astype(np.uint8)[:, None, :]
    for coins in both_paths(table, uniform):
        assert np.array_equal(coins[0], values < 0x1234)


@given(st.data(), st.integers(1, 5), st.integers(1, 4), st.integers(1, 20))
@settings(max_examples=150, deadline=None)
def test_both_paths_agree_with_comparison_of_integers(data, bits, digits, size):
    """Digits from a small alphabet, so that ties are common."""
    few = st.sampled_from([0, 1, 255])
    table = data.draw(arrays(np.uint8, (bits, digits), elements=few))
    uniform = data.draw(arrays(np.uint8, (digits, bits, size), elements=few))
    expected = [[uniform[:, bit, lane].tobytes() < table[bit].tobytes() for lane in range(size)] for bit in range(bits)]
    for coins in both_paths(table, uniform):
        assert coins.tolist() == expected


@pytest.mark.parametrize("offset", [-1, 0, 1])
def test_the_last_digit_of_the_table_still_decides(offset):
    table = expansion(Fraction(1, 10))[:3]
    last = table[:, -1].astype(int) + offset
    assert ((last >= 0) & (last < 256)).all()
    uniform = np.repeat(table.T[:, :, None], 4, axis=2)
    uniform[-1] = last[:, None]
    for coins in both_paths(table, uniform):
        assert (coins == (offset < 0)).all()


@pytest.mark.parametrize("bits", [0, 1, 7, 8, 9, 16, 17, 61])
def test_planes_become_integers(bits):
    coins = np.random.default_rng(bits).random((bits, 100)) < 0.5
    expected = [sum(int(coin) << bit for bit, coin in enumerate(lane)) for lane in coins.T]
    numbers = planes._numbers(coins)
    assert numbers.dtype == np.int64
    assert numbers.tolist() == expected


class Counting:
    private = False

    def __init__(self):
        self.asked = []

    def words(self, count):
        self.asked.append(count)
        return SystemSource().words(count)


@pytest.mark.parametrize("size", [1, 50, planes.STEADY])
@pytest.mark.parametrize("rate", [Fraction(1), Fraction(1, 1000)], ids=str)
def test_small_draws_use_an_amount_of_randomness_that_does_not_depend_on_the_values(size, rate):
    uses = set()
    for _ in range(30):
        source = Counting()
        DiscreteLaplace(rate).sample(size, source)
        uses.add(tuple(source.asked))
    assert len(uses) == 1


def test_no_byte_is_handed_out_twice():
    """The stream is cut from what the source gives, in order; what it skips is never used."""
    taken = planes.ByteSupply(SeededSource(1))
    pieces = [taken.take(count) for count in (10, 1000, 3, 0, 5000)]
    joined = b"".join(piece.tobytes() for piece in pieces)
    windows = {joined[start : start + 8] for start in range(len(joined) - 7)}
    assert len(windows) == len(joined) - 7  # eight equal bytes in a row by chance: 2⁻³⁹; with this seed: none


@pytest.mark.parametrize(
    ("words", "got"),
    [
        (lambda count: np.zeros(count - 1, dtype=np.uint64), "uint64 words of shape (44,)"),
        (lambda count: np.zeros(count, dtype=np.uint32), "uint32 words of shape (45,)"),
    ],
)
def test_a_source_that_gives_too_little_is_refused(words, got):
    class Poor:
        private = False

    poor = Poor()
    poor.words = words
    with pytest.raises(InvalidInput) as refusal:
        planes.ByteSupply(poor).take(104)
    assert str(refusal.value) == (
        f"source=Poor returned {got}, not uint64 of shape (45,). Nothing was recorded. Use SystemSource()."
    )
