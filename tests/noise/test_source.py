"""Random words: never twice the same stream from the system, always the same from a seed."""

from __future__ import annotations

import copy
import hashlib
import multiprocessing
import os
import pickle
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction

import numpy as np
import pytest
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

from sfumato.errors import InvalidInput
from sfumato.noise import DiscreteLaplace, SeededSource, Source, SystemSource
from sfumato.noise import source as module


def test_both_kinds_are_sources_and_say_whether_they_are_private():
    assert isinstance(SystemSource(), Source)
    assert isinstance(SeededSource(1), Source)
    assert SystemSource().private is True
    assert SeededSource(1).private is False


@pytest.mark.parametrize("source", [SystemSource(), SeededSource(3)], ids=repr)
@pytest.mark.parametrize("count", [0, 1, 3, 40_000])
def test_words_have_the_length_asked_for(source, count):
    words = source.words(count)
    assert words.shape == (count,)
    assert words.dtype == np.uint64


def test_words_of_the_system_differ_from_call_to_call_and_belong_to_the_caller():
    source = SystemSource()
    first = source.words(1000)
    kept = first.copy()
    assert np.unique(np.concatenate([first, source.words(1000)])).size == 2000  # a repeat: chance 2⁻⁴³
    assert np.array_equal(first, kept)


def test_a_key_serves_a_bounded_number_of_bytes(monkeypatch):
    drawn = []
    urandom = os.urandom
    monkeypatch.setattr(module, "KEY_BYTES", 64)
    monkeypatch.setattr(module.os, "urandom", lambda count: drawn.append(count) or urandom(count))
    words = SystemSource().words(20)  # 160 bytes: three keys
    assert drawn == [32, 16] * 3
    assert np.unique(words).size == 20


def test_the_whole_buffer_is_written_across_keys_and_pieces(monkeypatch):
    monkeypatch.setattr(module, "KEY_BYTES", 100 * 8)
    monkeypatch.setattr(module, "_ZEROS", memoryview(bytes(33)))
    monkeypatch.setattr(module.np, "empty", np.zeros)  # what is not written shows as zeros
    assert np.unique(SystemSource().words(1001)).size == 1001
    whole = SeededSource(5).words(1001)
    monkeypatch.undo()
    assert np.array_equal(whole, SeededSource(5).words(1001))


def test_words_are_aes_256_in_counter_mode():
    """Against the raw definition: block i of a seed's stream is the cipher applied to the counter i."""
    key = hashlib.sha256(b"sfumato seeded 42").digest()
    block = Cipher(algorithms.AES(key), modes.ECB()).encryptor()
    stream = b"".join(block.update(counter.to_bytes(16, "big")) for counter in range(50))
    assert SeededSource(42).words(100).astype("<u8").tobytes() == stream


def test_bits_of_the_words_are_balanced():
    """2²⁰ words; each of 64 bit frequencies within 6 standard deviations: false alarm below 2·10⁻⁷ in all."""
    words = SystemSource().words(1 << 20)
    ones = np.unpackbits(words.view(np.uint8).reshape(-1, 8), axis=1).sum(axis=0, dtype=np.int64)
    assert np.abs(ones - (1 << 19)).max() < 6 * np.sqrt(1 << 18)


@pytest.mark.parametrize("duplicate", [copy.copy, copy.deepcopy, lambda s: pickle.loads(pickle.dumps(s))])
def test_a_copied_or_pickled_system_source_shares_no_stream(duplicate):
    source = SystemSource()
    twin = duplicate(source)
    assert twin.private
    assert np.intersect1d(source.words(1000), twin.words(1000)).size == 0


def _child(pipe, source):
    pipe.send(source.words(1000))
    pipe.close()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this platform cannot fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_process_shares_no_stream():
    source = SystemSource()
    source.words(10)
    context = multiprocessing.get_context("fork")
    streams = []
    for _ in range(2):
        here, there = context.Pipe(duplex=False)
        process = context.Process(target=_child, args=(there, source))
        process.start()
        there.close()  # a child that dies is an error then, and not a wait for ever
        streams.append(here.recv())
        process.join()
    streams.append(source.words(1000))
    assert np.unique(np.concatenate(streams)).size == 3000


def test_threads_share_no_stream():
    source = SystemSource()
    with ThreadPoolExecutor(4) as pool:
        streams = list(pool.map(source.words, [2000] * 16))
    assert np.unique(np.concatenate(streams)).size == 32_000  # a repeat: chance 2⁻³⁵


def test_a_source_restored_from_a_snapshot_shares_no_stream():
    """Nothing is held between calls, so there is nothing that a snapshot could bring back."""
    assert not hasattr(SystemSource(), "__dict__")
    assert SystemSource.__slots__ == ()


def test_a_seed_repeats_its_stream_whatever_the_pieces():
    whole = SeededSource(7).words(100)
    source = SeededSource(7)
    assert np.array_equal(whole, np.concatenate([source.words(count) for count in (1, 2, 30, 0, 67)]))
    assert not np.array_equal(whole, SeededSource(8).words(100))
    assert not np.array_equal(whole, SeededSource(-7).words(100))


def test_a_seed_gives_the_same_noise_for_ever():
    """Papers quote seeds: a change here is a change of every figure made with one."""
    assert SeededSource(7).words(2).tolist() == [18407269321609765994, 6579678849563564819]
    assert DiscreteLaplace(1).sample(8, SeededSource(7)).tolist() == [2, 1, 0, 1, 2, 2, 0, 0]
    large = DiscreteLaplace(Fraction(1, 100)).sample(60_000, SeededSource(7))
    assert large[-8:].tolist() == [-27, -65, 81, -139, -434, 75, 64, -65]


def test_representations_hold_no_words():
    assert repr(SystemSource()) == "SystemSource()"
    assert repr(SeededSource(9)) == "SeededSource(9)"


@pytest.mark.parametrize("seed", [1.5, "1", None, True])
def test_a_seed_that_is_not_a_whole_number_is_refused(seed):
    with pytest.raises(InvalidInput) as refusal:
        SeededSource(seed)
    assert str(refusal.value) == f"seed={seed!r} must be a whole number. Nothing was drawn or recorded."


@pytest.mark.parametrize("source", [SystemSource(), SeededSource(3)], ids=repr)
@pytest.mark.parametrize("count", [-1, 2.0, True, None])
def test_a_count_that_is_not_a_natural_number_is_refused(source, count):
    with pytest.raises(InvalidInput) as refusal:
        source.words(count)
    assert str(refusal.value) == f"count={count!r} must be a whole number of at least 0. Nothing was drawn."
