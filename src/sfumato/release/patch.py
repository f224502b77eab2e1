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
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import FileFormatError, InvalidInput
from sfumato.files import replacing
from sfumato.reading import plain_data
from sfumato.release.described import described_fields

if TYPE_CHECKING:
    from pathlib import Path

    from sfumato.release.release import Release

_FIELDS = {"id", "before", "after", "description", "changes"}
_DESCRIBED = {"guarantee", "mechanism", "workload", "created"}
# A change of independent noise has some three bits to say: its 16 bytes never pack into less than a 64th of that.
_PACKED = 64
_LARGEST_STEP = 1 << 40


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
            if end > len(content):
                raise ValueError("length")
            about = plain_data(content[8:end])
            if not isinstance(about, dict) or set(about) != _FIELDS:
                raise ValueError("fields")
            changes, described = about.pop("changes"), about["description"]
            if type(changes) is not int or not 0 <= 16 * changes <= _PACKED * len(content) + 1024:
                raise ValueError("changes")
            if not all(isinstance(about[name], str) for name in ("id", "before", "after")):
                raise ValueError("names")
            if set(described) != _DESCRIBED or not isinstance(described["guarantee"]["epsilon"], str):
                raise ValueError("description")
            places, differences = _unpacked(content[end:], changes)
            return cls(**about, places=places, differences=differences)
        except (ArithmeticError, LookupError, MemoryError, RecursionError, TypeError, ValueError, zlib.error) as error:
            raise FileFormatError("the patch is damaged, cut off, or no patch at all.") from error


def _unpacked(packed: bytes, changes: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """(places, differences): rising places from zero on, and no difference of nothing."""
    inflate = zlib.decompressobj()
    body = inflate.decompress(packed, max_length=16 * changes + 1)
    if len(body) != 16 * changes or not inflate.eof:
        raise ValueError("length")
    steps = np.frombuffer(body, dtype="<i8", count=changes)
    differences = np.frombuffer(body, dtype="<i8", offset=8 * changes).astype(np.int64)
    if (steps[1:] < 1).any() or (steps[:1] < 0).any() or (steps > _LARGEST_STEP).any() or not differences.all():
        raise ValueError("steps")
    places = np.cumsum(steps, dtype=np.int64)
    if (places < 0).any():
        raise ValueError("places beyond what is counted")
    return places, differences


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
    old = _kept(before, "this release")
    if not isinstance(patch, Patch):
        raise InvalidInput(f"patch={type(patch).__name__} is not a patch. Make one with release.patch_from(previous).")
    if (before.id, _name(before)) != (patch.id, patch.before):
        raise InvalidInput("this patch belongs to another release, or to another level of it. Nothing was changed.")
    if _lasting(patch.description) != _lasting(_description(before)):
        raise FileFormatError("the patch is damaged: it speaks of another policy or mechanism than its release.")
    inside = len(patch.places) == 0 or (patch.places[0] >= 0 and patch.places[-1] < old.size)
    if not inside or (np.diff(patch.places) <= 0).any():
        raise FileFormatError("the patch is damaged: it names places that are not there.")
    measured = old.ravel().copy()
    measured[patch.places] += patch.differences
    total = before.exact_total
    after = replace(before, **described_fields(patch.description, measured.reshape(old.shape), total))
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


def _lasting(description: dict[str, Any]) -> str | None:
    """What no refinement changes, as text; None where the description is none."""
    try:
        built = description["mechanism"]
        return json.dumps([description["guarantee"]["policy"], built["name"], built["options"]], sort_keys=True)
    except (LookupError, TypeError, ValueError, RecursionError):
        return None


def _name(release: Release) -> str:
    """A digest of what was measured and what it means; not of the estimates, whose last digit may differ elsewhere."""
    text = json.dumps({"id": release.id, **_description(release)}, sort_keys=True, separators=(",", ":"))
    digest = hashlib.sha256(text.encode("ascii") + b"\0")
    if release.measured is not None and math.prod(release.measured.shape):
        digest.update(np.ascontiguousarray(release.measured, dtype="<i8").data)
    return digest.hexdigest()
