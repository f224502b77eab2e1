"""The canonical choice: the same for the same key whatever the order, and over keys every set equally likely."""

from __future__ import annotations

import itertools
from collections import Counter, defaultdict
from typing import Any

import numpy as np
import pytest
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import stats

from sfumato.counting import keyed
from sfumato.counting.keyed import Keyed, Records, least, priorities
from sfumato.counting.packing import grouped
from sfumato.noise import SeededSource, SystemSource

FALSE_ALARM = 1e-7
KEY = bytes(range(32))


def block(key: bytes, a: int, b: int) -> int:
    """The priority by the book: one block at a time, in whole numbers of Python."""
    cipher = Cipher(algorithms.AES(key), modes.ECB()).encryptor()
    return int.from_bytes(cipher.update(a.to_bytes(8, "little") + b.to_bytes(8, "little"))[:8], "little")


def by_hand(key: bytes, limit: int, persons: Any, *columns: Any) -> Counter[tuple[int, ...]]:
    """What is kept, by the definition."""
    records = defaultdict(list)
    for person, *record in zip(persons.tolist(), *(column.tolist() for column in columns), strict=True):
        records[person].append(tuple(record))
    kept: Counter[tuple[int, ...]] = Counter()
    for person, theirs in records.items():
        ranked = sorted(range(len(theirs)), key=lambda t: (block(key, person, t), t))
        kept.update(sorted(theirs)[t] for t in ranked[:limit])
    return kept


def kept_of(choice: Keyed, persons: Any, *columns: Any) -> Counter[tuple[int, ...]]:
    kept = choice.keep(persons, *columns)
    found = [kept.cells, *([] if kept.values is None else [kept.values])]
    return Counter(zip(*(column.tolist() for column in found), strict=True))


def test_priorities_are_those_of_the_cipher_block_by_block() -> None:
    rng = np.random.default_rng(0)
    a, b = rng.integers(0, 2**64, (2, 70_000), dtype=np.uint64)
    drawn = priorities(KEY, a, b)
    for i in [0, 1, 32767, 32768, 65535, 65536, 69_999]:  # on both sides of where a piece ends
        assert int(drawn[i]) == block(KEY, int(a[i]), int(b[i]))
    assert len(priorities(KEY, a[:0], b[:0])) == 0
    assert (priorities(KEY, b, a) != drawn).all()


RECORDS = st.lists(
    st.tuples(
        st.sampled_from([0, 1, 2, 7, 2**63, 2**64 - 1]),
        st.one_of(st.integers(-1, 3), st.integers(-(2**40), 2**40)),
        st.one_of(st.integers(-2, 2), st.integers(-(2**62), 2**62)),
    ),
    max_size=40,
)


@given(RECORDS, st.integers(1, 5), st.binary(min_size=32, max_size=32), st.randoms())
def test_the_choice_is_that_of_the_definition_in_any_order(records: Any, limit: int, key: bytes, random: Any) -> None:
    choice, told = Keyed(key, limit), []
    for _ in range(2):
        persons = np.array([p for p, _, _ in records], np.uint64)
        cells, values = (np.array([record[i] for record in records], np.int64) for i in (1, 2))
        kept = choice.keep(persons, cells, values)
        assert kept_of(choice, persons, cells) == by_hand(key, limit, persons, cells)
        assert kept_of(choice, persons, cells, values) == by_hand(key, limit, persons, cells, values)
        sizes = Counter(persons.tolist()).values()
        assert (kept.cut, kept.persons_cut) == (sum(max(n - limit, 0) for n in sizes), sum(n > limit for n in sizes))
        told.append(kept_of(choice, persons, cells, values))
        random.shuffle(records)
    assert told[0] == told[1]


def test_persons_apart_are_chosen_as_persons_together() -> None:
    """Cut into parts in any way that keeps a person in one, the parts give what the whole gives."""
    rng = np.random.default_rng(1)
    persons, cells = rng.integers(0, 500, 9000).astype(np.uint64), rng.integers(0, 40, 9000).astype(np.int32)
    choice = Keyed(KEY, 3)
    parts = [choice.keep(persons[here], cells[here]) for part in range(7) for here in [persons % 7 == part]]
    whole = choice.keep(persons, cells)
    assert (np.sort(np.concatenate([part.cells for part in parts])) == np.sort(whole.cells)).all()
    assert sum(part.cut for part in parts) == whole.cut == 9000 - len(whole.cells)


def test_another_key_chooses_otherwise_and_one_key_always_the_same() -> None:
    persons, cells = np.zeros(1000, np.uint64), np.arange(1000)
    one, same, other = (set(Keyed.drawn(100, SeededSource(s)).keep(persons, cells).cells.tolist()) for s in (1, 1, 2))
    assert one == same != other
    fresh = [Keyed.drawn(100, SystemSource()) for _ in range(2)]
    assert fresh[0].key != fresh[1].key
    assert str(fresh[0].key) not in repr(fresh[0])
    assert repr(fresh[0]) == "Keyed(limit=100)"


def pairs_kept(repeated: bool) -> NDArray[np.int64]:
    """How often each pair among 6 records was kept: by 90,000 persons under keys of 30 counts."""
    picks = np.zeros((6, 6), np.int64)
    persons = np.repeat(np.arange(3000, dtype=np.uint64), 6)
    cells = np.tile(np.array([5, 2, 2, 2, 8, 1]) if repeated else np.arange(6), 3000)
    for _ in range(30):
        kept = Keyed.drawn(2, SystemSource()).keep(persons, persons.astype(np.int64) * 10 + cells).cells
        pair = (np.sort(kept) % 10).reshape(-1, 2)
        np.add.at(picks, tuple((pair if not repeated else np.searchsorted([1, 2, 5, 8], pair)).T), 1)
    return picks


def test_every_set_of_records_is_equally_likely() -> None:
    # 90,000 choices among 15 pairs, 6,000 each: a pair that is 10 % too likely moves the statistic by 60.
    picks = pairs_kept(repeated=False)[np.triu_indices(6, 1)]
    assert picks.sum() == 90_000
    statistic, p_value = stats.chisquare(picks)
    assert p_value > FALSE_ALARM, statistic
    biased = picks * 1.0
    biased[:5] *= 1.1  # the pairs with the first record
    assert stats.chisquare(biased * (90_000 / biased.sum())).pvalue < FALSE_ALARM  # and a bias would be noticed


def test_equal_records_are_as_likely_as_they_are_many() -> None:
    # Of 15 pairs 3 are two of the three equal records, 3 have one of them with each other record, 1 is any two others.
    picks = pairs_kept(repeated=True)
    expected = np.zeros((6, 6))
    for i, j in itertools.combinations_with_replacement(range(4), 2):
        expected[i, j] = {(1, 1): 3}.get((i, j), 0 if i == j else 3 if 1 in (i, j) else 1)
    possible = expected > 0
    assert picks[~possible].sum() == 0
    assert stats.chisquare(picks[possible], expected[possible] * 6000).pvalue > FALSE_ALARM


def test_one_person_with_very_many_records_keeps_each_with_equal_chance() -> None:
    # 4,000 keys, 50 records and 5 kept: 20,000 picks, 400 each.
    picks = np.zeros(50, np.int64)
    for _ in range(4000):
        picks[Keyed.drawn(5, SystemSource()).keep(np.full(50, 11, np.uint64), np.arange(50)).cells] += 1
    # Picks of one choice exclude each other, which makes the statistic smaller by the factor 45/49: correct for it.
    assert stats.chi2.sf(float(((picks - 400) ** 2 / 400).sum() * 49 / 45), 49) > FALSE_ALARM


def test_persons_choose_apart_from_each_other() -> None:
    # 90,000 pairs of persons with two records each: which of them is kept, by one and by the other, 22,500 each way.
    persons = np.repeat(np.arange(180_000, dtype=np.uint64), 2)
    kept = Keyed.drawn(1, SystemSource()).keep(persons, np.arange(360_000)).cells
    coins = (np.sort(kept) % 2).reshape(-1, 2)
    assert stats.chisquare(np.bincount(coins @ [2, 1], minlength=4)).pvalue > FALSE_ALARM


@pytest.mark.parametrize("limit", [1, 2, 3])
def test_numbers_that_agree_in_their_first_bits_are_told_apart(limit: int) -> None:
    """The group takes the place of the last bits; those decide where the others agree, and then the position."""
    lengths = np.array([5, 4, 6])
    drawn = np.array([7, 4, 6, 5, 4, 9, 9, 9, 9, 2**64 - 1, 3, 2, 1, 0, 3], np.uint64)
    expected = []
    for start, length in zip(np.cumsum(lengths) - lengths, lengths, strict=True):
        here = sorted(range(start, start + length), key=lambda i: (int(drawn[i]), i))
        expected += sorted(here[:limit])
    assert least(drawn, lengths, limit).tolist() == expected


@given(st.lists(st.one_of(st.integers(0, 2**64 - 1), st.integers(0, 40), st.integers(2**63, 2**63 + 40)), min_size=1))
def test_grouping_is_a_stable_sort(values: list[int]) -> None:
    array = np.array(values, dtype=np.uint64)
    order, ordered = grouped(array)
    assert (order == np.argsort(array, kind="stable")).all()
    assert (ordered == array[order]).all()


@given(RECORDS.filter(bool), st.integers(1, 5), st.integers(1, 12))
def test_stretches_batches_and_rows_for_several_records_change_nothing(records: Any, limit: int, stretch: int) -> None:
    """What is cut for the sake of memory: persons longer than a stretch, batches, equal records in one row."""
    persons = np.array([p for p, _, _ in records], np.uint64)
    cells, values = (np.array([record[i] for record in records], np.int64) for i in (1, 2))
    every = Records(persons, cells, values)
    half = len(every) // 2
    small = Records(persons % 3, cells % 4, values % 3)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(keyed, "_STRETCH", stretch)
        for batches, upto in (
            ([every], len(every)),
            ([every[:half], every[half:]], len(every)),
            ([every.merged()], len(every)),
            ([every[:half].merged(), every[half:].merged()], len(every)),
            ([every[:half].merged()], half),
        ):
            found: Counter[tuple[int, ...]] = Counter()
            for part in Keyed(KEY, limit).kept(batches):
                found.update(zip(part.cells.tolist(), part.values.tolist(), strict=True))  # type: ignore[union-attr]
            assert found == by_hand(KEY, limit, persons[:upto], cells[:upto], values[:upto])
        for batch in (small, small.merged()):
            cuts = [(part.cut, part.persons_cut) for part in Keyed(KEY, limit).kept([batch])]
            sizes = Counter(small.persons.tolist()).values()
            assert tuple(map(sum, zip(*cuts, strict=True))) == (
                sum(max(n - limit, 0) for n in sizes),
                sum(n > limit for n in sizes),
            )


def test_a_person_with_a_billion_equal_records_costs_no_memory() -> None:
    """Memory follows from the rows that stand for them; ten million here, so that the test is quick."""
    row = Records(np.array([7, 7], np.uint64), np.array([1, 2], np.int32), times=np.array([9_999_000, 1000], np.int64))
    (kept,) = Keyed(KEY, 1000).kept([row])
    assert (len(kept.cells), kept.cut, kept.persons_cut) == (1000, 9_999_000, 1)
    # A thousandth of a thousandth: 0.1 expected, more than 9 in fewer than one of 10⁷ runs; the key is fixed anyway.
    assert np.count_nonzero(kept.cells == 2) <= 9
