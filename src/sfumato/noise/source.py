"""Where random words come from.

Promise: no two calls of `SystemSource.words` share a stream, whatever happens between them. Each call takes a new
256-bit key and a new starting block from the operating system, expands them with AES-256 in counter mode, and forgets
them. A stream that is used twice gives the difference of two counts exactly, and there are many roads to one: a fork, a
pickle, a copy, a thread, the snapshot of a virtual machine. An object that holds no state between calls closes them
all. A new key costs ten microseconds, so the samplers ask for words by the hundred thousand bytes.

What remains: a snapshot taken *inside* a call, and an operating system whose own generator is not reseeded when a
snapshot resumes (Linux reseeds it where the hypervisor says so). And uniform words are a computational assumption about
AES: telling the words of one key from uniform ones succeeds with advantage at most 2⁻⁸⁹ for an ideal cipher, because a
key serves 2²⁰ blocks at most.
"""

from __future__ import annotations

import hashlib
import os
from typing import Protocol, runtime_checkable

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, CipherContext, algorithms, modes
from numpy.typing import NDArray

from sfumato.errors import InvalidInput
from sfumato.exact import is_whole

KEY_BYTES = 1 << 24  # a key makes 2²⁰ blocks of 16 bytes: 2⁴⁰/2¹²⁹ is the advantage against an ideal cipher
_ZEROS = memoryview(bytes(1 << 18))  # counter mode adds its stream to the input: zeros leave the stream itself


@runtime_checkable
class Source(Protocol):
    """A supply of uniform random words. `private` says whether a release may rest on it."""

    @property
    def private(self) -> bool:
        """Whether nobody can repeat the words."""

    def words(self, count: int) -> NDArray[np.uint64]:
        """`count` fresh words, independent of all earlier ones, in an array that belongs to the caller."""


class SystemSource:
    """Cryptographic randomness, keyed anew by the operating system for every call. Stateless: fork, copy, share it."""

    __slots__ = ()

    private = True

    def words(self, count: int) -> NDArray[np.uint64]:
        """`count` fresh words under keys that serve this call only."""
        words = np.empty(_count(count), dtype=np.uint64)
        stream = words.view(np.uint8).data
        for start in range(0, len(stream), KEY_BYTES):
            _write(_cipher(os.urandom(32), os.urandom(16)), stream[start : start + KEY_BYTES])
        return words

    def __repr__(self) -> str:
        return "SystemSource()"


class SeededSource:
    """The same words for the same seed, on every machine. For tests and papers: the seed removes the noise.

    One stream that goes on from call to call: `words(3)` and then `words(5)` are the eight of `words(8)`. Not for
    sharing between threads.

    >>> plan = sf.plan(sf.bounded(sf.Line(0, 4, cells=4)), sf.histogram(), epsilon=1)
    >>> once, again = (plan.publish(np.array([3, 0, 5, 1]), source=sf.SeededSource(7)) for _ in range(2))
    >>> bool((once.counts == again.counts).all()), once.private
    (True, False)
    """

    private = False

    def __init__(self, seed: int) -> None:
        if not is_whole(seed):
            raise InvalidInput(f"seed={seed!r} must be a whole number. Nothing was drawn or recorded.")
        self.seed: int = int(seed)
        self._stream: CipherContext = _cipher(hashlib.sha256(b"sfumato seeded %d" % self.seed).digest(), bytes(16))

    def words(self, count: int) -> NDArray[np.uint64]:
        """The next `count` words of the seed's stream."""
        words = np.empty(_count(count), dtype="<u8")
        _write(self._stream, words.view(np.uint8).data)
        return words.astype(np.uint64, copy=False)

    def __repr__(self) -> str:
        return f"SeededSource({self.seed})"


def require(source: object) -> Source:
    """The source, or a refusal of anything else, such as a NumPy generator: its noise would not be private."""
    if not isinstance(source, Source):
        raise InvalidInput(
            f"source={type(source).__name__} is not a source of random words. Nothing was drawn or recorded. "
            "Use SystemSource(), or SeededSource(seed) in tests."
        )
    return source


def _cipher(key: bytes, start: bytes) -> CipherContext:
    return Cipher(algorithms.AES(key), modes.CTR(start)).encryptor()


def _write(cipher: CipherContext, out: memoryview) -> None:
    """Fill `out` with the next bytes of the cipher's stream, without a copy."""
    for start in range(0, len(out), len(_ZEROS)):
        piece = out[start : start + len(_ZEROS)]
        cipher.update_into(_ZEROS[: len(piece)], piece)


def _count(count: int) -> int:
    if not is_whole(count) or count < 0:
        raise InvalidInput(f"count={count!r} must be a whole number of at least 0. Nothing was drawn.")
    return int(count)
