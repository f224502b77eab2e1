"""The vault: where the state of refinable releases is kept, sealed, apart from the releases themselves.

The promise: what lies in the vault is unreadable and unchangeable without its key, whole after a crash at any point,
and refined by one process at a time. A release is published again at a finer level by drawing on its state; the same
state refined *twice* with different noise would let the noise be averaged away. So a finer level is made in this order,
under `lock`, and a crash between any two steps is made good by running them again:

1. `read` the state, at the level that the ledger remembers (`at_least`): an older one, from a backup, is refused.
2. Draw the finer state, build the release from it, and `stage` the two together. Nothing has left the vault.
3. `ledger.raise_level`: charged and counted in one transaction. Where it refuses, nobody has seen what is staged, and
   another level may be staged in its place.
4. `promote`: the staged state becomes the state, the release goes to the outbox.
5. Hand the release out, from the outbox. Whoever asks for the same level again gets the same bytes.

After a crash `staged` tells where to go on: at 3 when the ledger has not counted that level, at 4 when it has.

What it cannot do: keep a secret from whoever can read the key, and forget what a backup remembers.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from pathlib import Path

from sfumato.errors import InvalidInput, VaultError
from sfumato.exact import Number, positive_fraction
from sfumato.promise.budget import Epsilon
from sfumato.vault import keys
from sfumato.vault.sealed_folder import SealedFolder, release_name
from sfumato.vault.sealing import Kind, Seal, Sealer
from sfumato.vault.state import Level, State, decode, encode


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """What `Vault.check` found about one release: the levels it has, those in the outbox, and what is wrong."""

    release_id: str
    levels: tuple[Level, ...]
    outbox: tuple[int, ...]
    problem: str | None

    @property
    def intact(self) -> bool:
        """Whether every file of the release could be opened."""
        return self.problem is None


class Vault:
    """A directory of sealed states: `Vault("secrets", key="vault.key")`.

    A missing directory is made, for its owner alone, and so is a missing key file as long as the vault is empty.
    Without `key` the key is read from the environment variable SFUMATO_VAULT_KEY, in base64. The key must not lie in
    the vault: a copy of the one would be a copy of both. A pickled vault carries the path of its key, never the key.

    >>> vault = sf.Vault("secrets", key="vault.key")  # a missing key file is created
    >>> vault.check()
    ()
    """

    def __init__(
        self, path: str | os.PathLike[str], key: str | os.PathLike[str] | None = None, *, timeout: float = 30.0
    ) -> None:
        self.path = _absolute(path, "path")
        self._key_path = None if key is None else _absolute(key, "key")
        if self._key_path is not None and self._key_path.resolve().is_relative_to(self.path.resolve()):
            raise InvalidInput(
                f"key='{self._key_path}' lies in the vault '{self.path}': whoever copies the vault would have its key. "
                "Nothing was created. Keep the key in another directory."
            )
        self._shelf = SealedFolder(self.path, timeout)
        kept = self._shelf.releases()
        secret = keys.of_environment() if self._key_path is None else keys.of_file(self._key_path, may_create=not kept)
        self._shelf.open_with(Sealer(secret))

    # ---------------------------------------------------------------- states

    def create(self, release_id: str, state: State) -> None:
        """Keep the state of a release as first published (level 0)."""
        name = release_name(release_id)
        _require_private(state)
        if (state.release_id, state.level) != (name, 0):
            raise InvalidInput(
                f"state is that of release '{state.release_id}' at level {state.level}, not of '{name}' at level 0. "
                "Nothing was written."
            )
        seal = Seal(Kind.STATE, name, 0)
        with self.lock(name):
            if self._shelf.holds(seal):
                raise VaultError(
                    f"The vault '{self.path}' has a state of release '{name}' already. Nothing was written. "
                    "Refine the release, or publish under another id."
                )
            self._shelf.write(seal, encode(state, ((0, Epsilon(state.epsilon)),)))

    def read(self, release_id: str, *, at_least: int = 0) -> State:
        """The state of a release. `at_least` is the level that the ledger remembers: an older state is refused."""
        name = release_name(release_id)
        state, _ = self._current(name)
        if state.level < at_least:
            raise VaultError(
                f"The vault '{self.path}' has release '{name}' at level {state.level}, but the ledger remembers level "
                f"{at_least}: this is an older copy, and refining it again would undo its noise. Nothing was drawn or "
                "recorded. Put the newest copy of the vault back."
            )
        return state

    def levels(self, release_id: str) -> list[Level]:
        """(level, ε) of every level made so far, the first release included."""
        return list(self._current(release_name(release_id))[1])

    # ---------------------------------------------------------------- the next level

    def stage(self, release_id: str, state: State, payload: bytes, expected_level: int) -> None:
        """Keep the next level of a state and the release made from it, together, until it is charged."""
        name = release_name(release_id)
        with self.lock(name):
            levels = self._require_next(name, state, expected_level)
            self._shelf.write(Seal(Kind.STAGED, name, state.level), encode(state, levels, payload))

    def staged(self, release_id: str) -> tuple[State, bytes] | None:
        """The level that is staged and its release, or None. What was settled already does not count."""
        name = release_name(release_id)
        with self.lock(name):
            found = self._ahead(name)
        return None if found is None else (found[0], found[2])

    def promote(self, release_id: str, level: int, epsilon: Number) -> bytes:
        """Make the staged level the current one, after the ledger has counted it at this ε.

        Gives the release of that level; also when it was settled before.
        """
        name = release_name(release_id)
        counted = Epsilon(positive_fraction(epsilon, "epsilon"))
        with self.lock(name):
            staged = self._ahead(name)
            if staged is not None and staged[0].level == level:
                state, levels, payload = staged
                if state.epsilon != counted:
                    raise VaultError(
                        f"The vault '{self.path}' has level {level} of release '{name}' staged at "
                        f"epsilon={state.epsilon}, but it was charged at {counted}. Nothing was written. Put the "
                        "newest copy of the vault back."
                    )
                self.put_outbox(name, level, payload)
                self._shelf.write(Seal(Kind.STATE, name, level), encode(state, levels))
                self._shelf.remove(Seal(Kind.STAGED, name, level))
            settled = self.get_outbox(name, level)
        if settled is None:
            raise VaultError(
                f"The vault '{self.path}' has nothing staged for level {level} of release '{name}'. Nothing was "
                "written. Stage the level first; if it was charged already, put the newest copy of the vault back."
            )
        return settled

    # ---------------------------------------------------------------- finished releases

    def put_outbox(self, release_id: str, level: int, payload: bytes) -> None:
        """Keep a finished release. Another one for the same level is refused: it would be a second noise."""
        seal = _outbox(release_id, level)
        with self.lock(seal.release_id):
            kept = self.get_outbox(release_id, level)
            if kept is None:
                self._shelf.write(seal, [payload])
            elif kept != payload:
                raise VaultError(
                    f"The vault '{self.path}' has another release for level {level} of '{release_id}'. Nothing was "
                    "written. Hand that one out."
                )

    def get_outbox(self, release_id: str, level: int) -> bytes | None:
        """The finished release of a level, or None."""
        found = self._shelf.read(_outbox(release_id, level))
        if found is not None and found[0] != level:
            raise VaultError(
                f"The vault '{self.path}' has the release of level {found[0]} of '{release_id}' in the place of level "
                f"{level}: a file was renamed. Nothing was drawn or recorded. Put the newest intact copy back."
            )
        return None if found is None else found[1]

    # ---------------------------------------------------------------- a witness against older ledgers

    def remembers(self, payer: str) -> Fraction | None:
        """How far an account or a stream had come when it was last used with this vault, or None."""
        found = self._shelf.read(_ledger(payer))
        return None if found is None else Fraction(found[1].decode())

    def remember(self, payer: str, reached: Fraction) -> None:
        """Keep how far an account or a stream has come. What is remembered only grows."""
        seal = _ledger(payer)
        with self.lock(seal.release_id):
            known = self.remembers(payer)
            if known is None or known < reached:
                self._shelf.write(seal, [f"{reached.numerator}/{reached.denominator}".encode()])

    # ---------------------------------------------------------------- alone, and intact

    @contextmanager
    def lock(self, release_id: str) -> Iterator[None]:
        """One process and thread at a time for a release. Taken again by its holder; let go when the holder dies."""
        with self._shelf.lock(release_name(release_id)):
            yield

    def check(self) -> tuple[Finding, ...]:
        """Open every file and say of every release which levels it has and whether all is intact.

        >>> vault = sf.Vault("secrets", key="vault.key")
        >>> plan = sf.plan(sf.bounded(sf.Line(0, 4, cells=4)), sf.histogram(), epsilon=1)
        >>> release = plan.publish(np.array([3, 0, 5, 1]), vault=vault)
        >>> [finding.problem for finding in vault.check()]
        [None]
        """
        return tuple(self._finding(name, outbox) for name, outbox in self._shelf.releases().items())

    def __repr__(self) -> str:
        return f"Vault({str(self.path)!r})"

    def __reduce__(self) -> tuple[partial[Vault], tuple[Path, Path | None]]:
        return (partial(Vault, timeout=self._shelf.timeout), (self.path, self._key_path))

    # ---------------------------------------------------------------- inside

    def _current(self, name: str) -> tuple[State, tuple[Level, ...]]:
        found = self._opened(name, Kind.STATE)
        if found is None:
            raise VaultError(
                f"The vault '{self.path}' has no state of release '{name}': it was published without this vault, or "
                "the state was lost. Nothing was drawn or recorded. Without its state a release cannot be refined."
            )
        return found[0], found[1]

    def _ahead(self, name: str) -> tuple[State, tuple[Level, ...], bytes] | None:
        """What is staged, if it is the level after the current one, as it was when it was staged; the lock is held."""
        staged = self._opened(name, Kind.STAGED)
        if staged is None:
            return None
        kept = self._shelf.read(Seal(Kind.STATE, name, 0))
        return staged if kept is not None and staged[0].level == kept[0] + 1 else None

    def _require_next(self, name: str, state: State, expected_level: int) -> tuple[Level, ...]:
        """The levels with the next one added, or a refusal of anything that does not continue the chain."""
        _require_private(state)
        current, levels = self._current(name)
        if current.level != expected_level:
            raise VaultError(
                f"The vault '{self.path}' has release '{name}' at level {current.level}, not at level "
                f"{expected_level}: it was refined meanwhile. Nothing was written. Read the state again."
            )
        if not state.refines(current):
            raise InvalidInput(
                f"state is not the next level of release '{name}' in the vault, which is at level {current.level} with "
                f"epsilon={current.epsilon}. Nothing was written. Refine what `read` gives."
            )
        return (*levels, (state.level, Epsilon(state.epsilon)))

    def _opened(self, name: str, kind: Kind) -> tuple[State, tuple[Level, ...], bytes] | None:
        """A state file, opened and found to agree with itself."""
        found = self._shelf.read(Seal(kind, name, 0))
        if found is None:
            return None
        try:
            state, levels, payload = decode(found[1])
            if (state.release_id, state.level) != (name, found[0]) or levels[-1] != (state.level, state.epsilon):
                raise ValueError("the content is not that of its header")
        except (ValueError, LookupError, TypeError, ArithmeticError):
            # Without the cause: it may quote what is inside.
            raise VaultError(
                f"The state of release '{name}' in the vault '{self.path}' is intact but cannot be read: it is from "
                "another version of sfumato. Nothing was drawn or recorded. Use the version that wrote it."
            ) from None
        return state, levels, payload

    def _finding(self, name: str, outbox: list[int]) -> Finding:
        levels: list[Level] = []
        problem = None
        try:
            levels = self.levels(name)
            self._opened(name, Kind.STAGED)
            for level in outbox:
                self.get_outbox(name, level)
        except VaultError as error:
            problem = str(error)
        return Finding(release_id=name, levels=tuple(levels), outbox=tuple(outbox), problem=problem)


def _absolute(path: str | os.PathLike[str], name: str) -> Path:
    given = os.fspath(path)
    if not isinstance(given, str) or not given:
        raise InvalidInput(f"{name}={given!r} is not a path. Nothing was created.")
    return Path(given).absolute()


def _outbox(release_id: object, level: object) -> Seal:
    if type(level) is not int or not 0 <= level < 1 << 63:
        raise InvalidInput(f"level={level!r} must be a whole number of at least 0. Nothing was drawn or recorded.")
    return Seal(Kind.OUTBOX, release_name(release_id), level)


def _ledger(payer: str) -> Seal:
    return Seal(Kind.LEDGER, hashlib.sha256(payer.encode()).hexdigest(), 0)


def _require_private(state: State) -> None:
    if not isinstance(state, State):
        raise InvalidInput(f"state={type(state).__name__} is not the state of a release. Nothing was written.")
    if not state.private:
        raise InvalidInput(
            "A release made with seeded randomness is not private and has no place in a vault. Nothing was drawn or "
            "recorded. Publish it without a vault, or use the default randomness."
        )
