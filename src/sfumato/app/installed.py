"""Which packages are there, of those that the library itself says it needs or can use."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import metadata

# A requirement as built packages state it: a name, perhaps with extras, bounds, and the extra that brings it.
_STATED = re.compile(r"^([A-Za-z0-9._-]+)(?:\[[^\]]*\])?\s*([^;]*)(?:;.*?extra\s*==\s*['\"]([\w-]+)['\"])?")
_LEAST = re.compile(r">=\s*([0-9][0-9.]*)")
FOR_BUILDERS = frozenset({"all", "test", "lint", "docs", "peers", "bench"})


@dataclass(frozen=True)
class Package:
    """A package, the extra that brings it (None: always needed), the least version, and the one that is there."""

    name: str
    extra: str | None
    least: str
    version: str | None

    @property
    def old(self) -> bool:
        """Whether what is there is older than what is asked for."""
        return self.version is not None and bool(self.least) and _numbers(self.version) < _numbers(self.least)


def packages() -> tuple[Package, ...]:
    """Of everything that users may have; empty where sfumato runs from a folder and is not installed."""
    try:
        stated = metadata.requires("sfumato") or []
    except metadata.PackageNotFoundError:
        return ()
    return tuple(_read(stated))


def _read(stated: list[str]) -> Iterator[Package]:
    for line in stated:
        found = _STATED.match(line)
        if found is None or found[1] == "sfumato" or found[3] in FOR_BUILDERS:
            continue
        least = _LEAST.search(found[2])
        yield Package(found[1], found[3], least[1] if least else "", _version(found[1]))


def _version(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def _numbers(version: str) -> tuple[int, ...]:
    """The leading numbers of a version, as far as they are numbers: 1.2.0rc1 is 1.2.0 here."""
    leading = re.match(r"[\d.]*", version)
    return tuple(int(part) for part in (leading[0] if leading else "").split(".") if part)
