"""What changed between two levels of a release: small when ε grew little, since few noises change in a small step.

A patch holds the places where the noisy integers differ, the differences, and the description of the finer release. It
is as public as the two releases. Applied to the coarser one it gives the finer one, and it fits no other release.

As bytes: the length of a JSON description (8 bytes, little-endian), the description, and the places (as steps from one
to the next) and differences as little-endian 64-bit integers, compressed by zlib.
"""

from __future__ import annotations

import hashlib
import json
import math
import zlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import FileFormatError, InvalidInput
from sfumato.files import replacing

if TYPE_CHECKING:
    from pathlib import Path

    from sfumato.release.release import Release

_FIELDS = {"id", "before", "after", "description", "changes"}


@dataclass(frozen=True, kw_only=True, eq=False)
class Patch:
    """From one level of a release to a finer one."""

    id: str
    before: str
    after: str
    description: dict[str, Any]
    places: NDArray[np.int64]
    differences: NDArray[np.int64]

    def __repr__(self) -> str:
        epsilon = self.description["guarantee"]["epsilon"]
        return f"Patch({self.id!r}, to epsilon={epsilon}, {len(self.places):,} changes)"

    def to_bytes(self) -> bytes:
        """The patch as bytes, for a file or the network."""
        about = {
            "id": self.id,
            "before": self.before,
            "after": self.after,
            "description": self.description,
            "changes": len(self.places),
        }
        text = json.dumps(about, sort_keys=True, separators=(",", ":"), allow_nan=False).encode("ascii")
        steps = np.diff(self.places, prepend=0).astype("<i8").tobytes()
        body = zlib.compress(steps + self.differences.astype("<i8").tobytes(), 6)
        return len(text).to_bytes(8, "little") + text + body

    def save(self, path: str | Path) -> None:
        """Write the patch to a file, whole or not at all."""
        with replacing(path) as file:
            file.write(self.to_bytes())

    @classmethod
    def from_bytes(cls, content: bytes) -> Patch:
        """The patch that `to_bytes` wrote. Nothing in it is trusted."""
        try:
            end = 8 + int.from_bytes(content[:8], "little")
            about = json.loads(content[8:end].decode("ascii"))
            if not isinstance(about, dict) or set(about) != _FIELDS or not isinstance(about["changes"], int):
                raise ValueError("fields")
            size = 8 * about["changes"]
            inflate = zlib.decompressobj()
            body = inflate.decompress(content[end:], max_length=2 * size + 1)
            if len(body) != 2 * size or not inflate.eof:
                raise ValueError("length")
            places = np.cumsum(np.frombuffer(body[:size], dtype="<i8")).astype(np.int64)
            differences = np.frombuffer(body[size:], dtype="<i8").astype(np.int64)
            del about["changes"]
            return cls(**about, places=places, differences=differences)
        except (ValueError, TypeError, KeyError, OverflowError, MemoryError, RecursionError, zlib.error) as error:
            raise FileFormatError("the patch is damaged, cut off, or no patch at all.") from error


def patch_between(before: Release, after: Release) -> Patch:
    """What leads from one release to a finer level of the same."""
    old, new = _kept(before, "previous"), _kept(after, "this release")
    if before.id != after.id or old.shape != new.shape:
        raise InvalidInput("previous is not a level of the same release: a patch leads from one level to a finer one.")
    if before.guarantee.epsilon >= after.guarantee.epsilon:
        raise InvalidInput(
            f"previous has epsilon={before.guarantee.epsilon}, this release {after.guarantee.epsilon}: a patch leads "
            "from a coarser level to a finer one."
        )
    change = (new - old).ravel()
    places = np.flatnonzero(change).astype(np.int64)
    return Patch(
        id=after.id,
        before=_name(before),
        after=_name(after),
        description=_description(after),
        places=places,
        differences=change[places],
    )


def patched(before: Release, patch: Patch) -> Release:
    """The finer release."""
    from sfumato.release.files import described_release  # a cycle otherwise: files read releases

    old = _kept(before, "this release")
    if not isinstance(patch, Patch):
        raise InvalidInput(f"patch={type(patch).__name__} is not a patch. Make one with release.patch_from(previous).")
    if (before.id, _name(before)) != (patch.id, patch.before):
        raise InvalidInput("this patch belongs to another release, or to another level of it. Nothing was changed.")
    inside = len(patch.places) == 0 or (patch.places[0] >= 0 and patch.places[-1] < old.size)
    if not inside or (np.diff(patch.places) <= 0).any():
        raise FileFormatError("the patch is damaged: it names places that are not there.")
    measured = old.ravel().copy()
    measured[patch.places] += patch.differences
    total = int(before.total) if before.guarantee.policy.total_is_public else None
    after = described_release(patch.id, patch.description, measured.reshape(old.shape), total)
    if _name(after) != patch.after:
        raise FileFormatError("the patch is damaged: it does not lead to the release that it names.")
    return after


def _kept(release: Release, name: str) -> NDArray[np.int64]:
    if release.measured is None or not release.mechanism.refinable:
        raise InvalidInput(f"{name} has no noisy integers to compare: only releases made with a vault have levels.")
    return release.measured


def _description(release: Release) -> dict[str, Any]:
    return {
        "guarantee": release.guarantee.to_dict(),
        "mechanism": release.mechanism.spec(),
        "workload": release.workload,
        "created": release.created,
    }


def _name(release: Release) -> str:
    """A digest of what was measured and what it means; not of the estimates, whose last digit may differ elsewhere."""
    text = json.dumps({"id": release.id, **_description(release)}, sort_keys=True, separators=(",", ":"))
    digest = hashlib.sha256(text.encode("ascii") + b"\0")
    if release.measured is not None and math.prod(release.measured.shape):
        digest.update(np.ascontiguousarray(release.measured, dtype="<i8").data)
    return digest.hexdigest()
