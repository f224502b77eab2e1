"""The state of a refinable release: what the next level is made from, and what must never leave the vault.

Written without pickle: a JSON description with its length before it, then the arrays, one after the other, as
little-endian integers. The values of G⁺ and G⁻ take as many bytes each as their *rate* calls for, and measured ones
eight, so the size of the file follows from public figures and says nothing about the values.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import InvalidInput
from sfumato.exact import positive_fraction, written
from sfumato.noise.expansion import bits
from sfumato.noise.gradual import Refinable
from sfumato.promise.budget import Epsilon, stored
from sfumato.reading import plain_data

Level = tuple[int, Epsilon]


@dataclass(frozen=True, eq=False, kw_only=True)
class State:
    """A release at one level: its noise, block by block, and the integers that were published with it.

    `level` counts from 0, the release as first published.
    `charged` says that the release was charged to a ledger, which must then count its levels; `token` is drawn at
    random for every level, and the ledger keeps it with the charge, so that a copy of the vault cannot pass another
    noise off for the one that was charged. `payer` is the account that was charged, of a ledger that drew its own name
    (empty where none was, and in states that are older than the names): no other one pays. `about` is the description
    of the release, so that nobody's copy of it need be trusted. Printing shows no value.
    """

    release_id: str
    level: int
    epsilon: Fraction
    blocks: tuple[Refinable, ...]
    measured: NDArray[np.int64]
    charged: bool
    token: str = ""
    about: str = ""
    payer: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", Epsilon(positive_fraction(self.epsilon, "epsilon")))
        object.__setattr__(self, "blocks", tuple(self.blocks))
        if type(self.level) is not int or not 0 <= self.level < 1 << 63:
            raise InvalidInput(f"level={self.level!r} must be a whole number of at least 0.")
        if not all(isinstance(block, Refinable) for block in self.blocks):
            raise InvalidInput("blocks must be Refinable noise, one for each block of the mechanism.")
        measured = self.measured
        if not isinstance(measured, np.ndarray) or measured.dtype != np.int64:
            kind = measured.dtype if isinstance(measured, np.ndarray) else type(measured).__name__
            raise InvalidInput(f"measured of type {kind} must be an array of int64.")
        if not isinstance(self.charged, bool):
            raise InvalidInput(f"charged={self.charged!r} must be True or False.")
        for name in ("release_id", "token", "about", "payer"):
            if not isinstance(getattr(self, name), str):
                raise InvalidInput(f"{name} of type {type(getattr(self, name)).__name__} must be a string.")
        measured = np.ascontiguousarray(measured).reshape(measured.shape).view()
        measured.flags.writeable = False
        object.__setattr__(self, "measured", measured)

    @property
    def private(self) -> bool:
        """Whether all of the noise came from cryptographic randomness."""
        return all(block.private for block in self.blocks)

    def refines(self, older: State) -> bool:
        """Whether this can be the next level of the older state: one chain, every half at most what it was."""
        return (
            (self.release_id, self.charged) == (older.release_id, older.charged)
            and older.payer in ("", self.payer)
            and self.level == older.level + 1
            and self.epsilon > older.epsilon
            and self.measured.shape == older.measured.shape
            and len(self.blocks) == len(older.blocks)
            and all(map(_finer, self.blocks, older.blocks))
        )

    def __repr__(self) -> str:
        return (
            f"State({self.release_id!r}, level={self.level}, epsilon={self.epsilon}, "
            f"{len(self.blocks)} blocks, measured of shape {self.measured.shape})"
        )


def encode(state: State, levels: tuple[Level, ...], payload: bytes = b"") -> Iterator[bytes]:
    """The bytes of a state, of all levels made so far, and of a finished release beside it."""
    widths = [_width(block) for block in state.blocks]
    about = {
        "release_id": state.release_id,
        "level": state.level,
        "epsilon": stored(state.epsilon, "epsilon"),
        "token": state.token,
        "about": state.about,
        "charged": state.charged,
        "payer": state.payer,
        "levels": [[number, stored(epsilon, "epsilon")] for number, epsilon in levels],
        "blocks": [
            {"rate": stored(block.rate, "rate"), "shape": list(block.shape), "bytes": width}
            for block, width in zip(state.blocks, widths, strict=True)
        ],
        "measured": list(state.measured.shape),
        "payload": len(payload),
    }
    text = json.dumps(about, sort_keys=True, separators=(",", ":"), allow_nan=False).encode()
    yield len(text).to_bytes(8, "little") + text
    for block, width in zip(state.blocks, widths, strict=True):
        yield _packed(block.plus, width)
        yield _packed(block.minus, width)
    yield _packed(state.measured, 8)
    yield payload


def decode(content: bytes) -> tuple[State, tuple[Level, ...], bytes]:
    """What `encode` wrote. Raises ValueError, LookupError or TypeError when it is anything else."""
    view = memoryview(content)
    start = 8 + int.from_bytes(view[:8], "little")
    about: dict[str, Any] = plain_data(bytes(view[8:start]))

    def take(shape: list[int], width: int) -> NDArray[np.int64]:
        nonlocal start
        if width not in (1, 2, 4, 8) or not all(type(side) is int and 0 <= side <= len(view) for side in shape):
            raise ValueError("the sizes of the arrays are no sizes")
        end = start + math.prod(shape) * width
        if end > len(view):
            raise ValueError("the arrays are longer than the content")
        values = _unpacked(view[start:end], width).reshape(shape)
        start = end
        return values

    blocks = []
    for block in about["blocks"]:
        plus, minus = (take(block["shape"], block["bytes"]) for _ in range(2))
        blocks.append(Refinable(plus=plus, minus=minus, rate=written(block["rate"], "rate"), private=True))
    state = State(
        release_id=about["release_id"],
        level=about["level"],
        epsilon=written(about["epsilon"], "epsilon"),
        blocks=tuple(blocks),
        measured=take(about["measured"], 8),
        token=about["token"],
        about=about["about"],
        charged=about["charged"],
        payer=about.get("payer", ""),  # version 1 has none
    )
    payload = bytes(view[start:])
    if len(payload) != about["payload"]:
        raise ValueError("the content has another length than it says")
    return state, tuple((number, Epsilon(written(epsilon, "epsilon"))) for number, epsilon in about["levels"]), payload


def _finer(block: Refinable, older: Refinable) -> bool:
    return (
        block.shape == older.shape
        and block.rate >= older.rate
        and bool((block.plus <= older.plus).all() and (block.minus <= older.minus).all())
    )


def _width(block: Refinable) -> int:
    """Bytes for a value, 1, 2, 4 or 8: what the rate calls for. More only for a value beyond it (probability 2⁻¹⁴³)."""
    largest = max(int(half.max(initial=0)) for half in (block.plus, block.minus))
    needed = max(bits(block.rate), largest.bit_length())
    return next(width for width in (1, 2, 4, 8) if needed <= 8 * width)


def _packed(values: NDArray[np.int64], width: int) -> bytes:
    return values.astype(f"<u{width}", casting="unsafe", copy=False).tobytes()  # what is negative takes all eight bytes


def _unpacked(octets: memoryview, width: int) -> NDArray[np.int64]:
    return np.frombuffer(octets, dtype=f"<u{width}").astype(np.int64)
