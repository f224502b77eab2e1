"""States for the vault's tests, how they are compared, and the words of the refusals that several files meet."""

from __future__ import annotations

import os
from fractions import Fraction

import numpy as np
import pytest

from sfumato.noise import Refinable, SystemSource
from sfumato.vault import State, Vault

posix = pytest.mark.skipif(os.name != "posix", reason="POSIX permissions, processes and limits")
NAME = "visits-1"
SIZE = 40
PARTS = {
    "release_id": "a",
    "level": 0,
    "epsilon": Fraction(1),
    "blocks": (),
    "measured": np.ones(2, np.int64),
    "charged": False,
}
NEWEST = (
    "Nothing was drawn or recorded. Put the newest intact copy back; the ledger refuses an older one, since refining "
    "it twice would undo its noise."
)
USELESS = (
    "The vault '{}' could not be used: {}. Nothing was handed out, and what was kept is as it was. Give a directory on "
    "a local disk with free space that you can read and write."
)


def first_state(name: str = NAME, size: int = SIZE) -> State:
    """A release of `size` zeros at ε = 1, in two blocks."""
    blocks = tuple(Refinable.draw(Fraction(1, scale), size, SystemSource()) for scale in (2, 1000))
    measured = np.concatenate([block.value for block in blocks])
    return State(
        release_id=name,
        level=0,
        epsilon=Fraction(1),
        blocks=blocks,
        measured=measured,
        charged=True,
    )


def next_state(state: State, epsilon: Fraction) -> State:
    """The state refined: the integers published move by what the noise moves."""
    factor = epsilon / state.epsilon
    blocks = tuple(block.refine(block.rate * factor, SystemSource()) for block in state.blocks)
    moved = np.concatenate([new.value - old.value for new, old in zip(blocks, state.blocks, strict=True)])
    return State(
        release_id=state.release_id,
        level=state.level + 1,
        epsilon=epsilon,
        blocks=blocks,
        measured=state.measured + moved,
        charged=state.charged,
    )


def advance(vault: Vault, state: State) -> None:
    """Make a state the current one as a refinement does, where the charge between the two steps is not at issue."""
    vault.stage(state.release_id, state, state.measured.tobytes(), expected_level=state.level - 1)
    vault.promote(state.release_id, state.level, state.epsilon)


def same(first: State, second: State) -> bool:
    """Whether two states agree in everything, noise included."""
    return (
        (first.release_id, first.level, first.epsilon, first.token, first.about, first.charged)
        == (second.release_id, second.level, second.epsilon, second.token, second.about, second.charged)
        and np.array_equal(first.measured, second.measured)
        and [block.rate for block in first.blocks] == [block.rate for block in second.blocks]
        and all(
            np.array_equal(a.plus, b.plus) and np.array_equal(a.minus, b.minus)
            for a, b in zip(first.blocks, second.blocks, strict=True)
        )
    )
