"""A person is a number: the same wherever the records lie, another one for everybody else, and told by nobody."""

from __future__ import annotations

import datetime
import decimal
import hmac
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from hypothesis import given
from hypothesis import strategies as st

from sfumato.counting.keyed import Keyed
from sfumato.counting.persons import person_numbers

KEY = bytes(range(32))


def by_hand(text: bytes, key: bytes) -> int:
    """CBC-MAC as the module says it, one text at a time."""
    cipher = Cipher(algorithms.AES(key), modes.ECB()).encryptor()
    if len(text) < 16:
        return int.from_bytes(cipher.update(text.ljust(15, b"\0") + bytes([len(text)]))[:8], "little")
    state = cipher.update(len(text).to_bytes(15, "little") + b"\xff")
    for start in range(0, len(text), 16):
        piece = text[start : start + 16].ljust(16, b"\0")
        state = cipher.update(bytes(a ^ b for a, b in zip(state, piece, strict=True)))
    return int.from_bytes(state[:8], "little")


@given(st.lists(st.one_of(st.binary(max_size=80), st.integers(0, 50).map(bytes), st.none())), st.integers(0, 5))
def test_names_have_the_digest_of_the_definition(names: list[bytes | None], skipped: int) -> None:
    for kind in (pa.binary(), pa.large_binary()):
        column = pa.array(names, kind)[skipped:]
        numbers, known = person_numbers(column, KEY)
        there = [True] * len(column) if known is None else known.tolist()
        assert there == [name is not None for name in names[skipped:]]
        found = [number for number, one in zip(numbers.tolist(), there, strict=True) if one]
        assert found == [by_hand(name, KEY) for name in names[skipped:] if name is not None]


def test_no_name_is_read_as_another_ones_beginning() -> None:
    names = [b"", b"\0", b"\0" * 15, b"\0" * 16, b"\0" * 17, b"\0" * 32, b"\0" * 14 + b"\x0f", b"a" * 31 + b"\x1f"]
    names += [b"a", b"a\0", b"a" * 15, b"a" * 16, (16).to_bytes(15, "little") + b"\xff"]
    numbers, _ = person_numbers(pa.array(names), KEY)
    assert len(set(numbers.tolist())) == len(names)


@pytest.mark.parametrize(
    ("values", "kinds"),
    [
        ([0, 1, 100, None], [pa.int8(), pa.uint8(), pa.int16(), pa.uint32(), pa.int64(), pa.uint64()]),
        ([-1, 7, None], [pa.int8(), pa.int32(), pa.int64()]),
        (
            ["anna", "bert", None, ""],
            [pa.string(), pa.large_string(), pa.binary(), pa.dictionary(pa.int8(), pa.string())],
        ),
        ([1.5, -0.25, None], [pa.float32(), pa.float64()]),
    ],
)
def test_one_person_has_one_number_however_wide_the_column(values: list[Any], kinds: list[pa.DataType]) -> None:
    told = []
    for kind in kinds:
        plain = [v.encode() if isinstance(v, str) and pa.types.is_binary(kind) else v for v in values]
        column = pa.array(plain, kind.value_type if pa.types.is_dictionary(kind) else kind)
        column = column.dictionary_encode() if pa.types.is_dictionary(kind) else column
        for each in (column, pa.chunked_array([column[:1], column[1:]])):
            numbers, known = person_numbers(each, KEY)
            assert known is not None
            assert known.tolist() == [value is not None for value in values]
            told.append(numbers[known].tolist())
    assert all(one == told[0] for one in told)
    assert len(set(told[0])) == len(told[0])


def test_zeros_are_one_person_and_nan_is_nobody() -> None:
    numbers, known = person_numbers(pa.array([0.0, -0.0, float("nan"), None, float("inf")]), KEY)
    assert known is not None
    assert known.tolist() == [True, True, False, False, True]
    assert numbers[0] == numbers[1] != numbers[4]


@pytest.mark.parametrize(
    "values",
    [
        [True, False],
        [datetime.date(1969, 12, 31), datetime.date(2026, 1, 1)],
        [datetime.datetime(2026, 1, 1, 0, 0, 0, 1), datetime.datetime(2026, 1, 1)],
        [decimal.Decimal("1.10"), decimal.Decimal("1.11")],
        np.array([2**63, 2**64 - 1], np.uint64),
    ],
    ids=str,
)
def test_other_values_are_told_apart(values: list[Any]) -> None:
    numbers, known = person_numbers(pa.array(values), KEY)
    assert known is None
    assert len(set(numbers.tolist())) == len(values)


def test_a_column_of_nothing_is_nobodys() -> None:
    _, known = person_numbers(pa.nulls(3), KEY)
    assert known is not None
    assert not known.any()
    assert len(person_numbers(pa.array([], pa.string()), KEY)[0]) == 0


def test_names_are_spread_under_a_key_of_their_own() -> None:
    """Which names meet cannot be known beforehand: the digest changes with the key, which is not that of the choice."""
    choice = Keyed(KEY, 1)
    assert choice.naming_key == hmac.digest(KEY, b"persons", "sha256") != KEY
    names = pa.array(["anna", "bert"])
    one, other = person_numbers(names, choice.naming_key)[0], person_numbers(names, KEY)[0]
    assert not set(one.tolist()) & set(other.tolist())
    many, _ = person_numbers(pa.array([f"person {i}" for i in range(100_000)]), KEY)
    # Each of 64 bits is one for half of them: 50,000, standard deviation 158; six of these once in 5 · 10⁸, 64 times.
    ones = np.array([np.count_nonzero(many >> np.uint64(bit) & np.uint64(1)) for bit in range(64)])
    assert (abs(ones - 50_000) < 7 * 158).all()
