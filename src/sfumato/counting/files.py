"""From what a user names to a list of files, each of them once.

A path that exists is that file or folder, whatever characters its name has. What does not exist may be a pattern
(``*``, ``?``, ``[…]``, and ``**`` for folders at any depth) or an address (``https://``, ``s3://``, …). Folders are
searched to any depth. As every engine does, the search leaves out what begins with a dot or an underscore: the
half-written files of a job that runs or was killed lie there. A link that leads to a file or folder already found is
not followed, or a record would be counted twice.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING

from sfumato.counting.hushing import hushed
from sfumato.errors import InvalidInput

if TYPE_CHECKING:
    from sfumato.counting.inputs import Database

_KINDS = {".parquet": "parquet", ".pq": "parquet", ".csv": "csv", ".tsv": "csv"}
_COMPRESSED = (".gz", ".zst")
_MAGIC = re.compile(r"[*?\[]")


def find_files(paths: list[str | Path], database: Database) -> tuple[str, list[str]]:
    """The kind, Parquet or CSV, and the files in a fixed order, as DuckDB takes them literally."""
    found: list[str] = []
    for path in paths:
        found += _found(str(path), database)
    kinds = {_kind(name) for name in found}
    if len(kinds) > 1:
        raise InvalidInput(
            f"data={_told(paths)} mixes Parquet and CSV. Nothing was counted. Name the files of one kind with a "
            "pattern such as 'folder/*.parquet'."
        )
    _refuse_twice([name for name in found if not _is_address(name)])
    (kind,) = kinds
    return kind, [name if _is_address(name) else escaped(name) for name in found]


def escaped(name: str) -> str:
    """A name in which no character is a pattern's any more."""
    return _MAGIC.sub(lambda match: f"[{match[0]}]", name)


def _told(paths: list[str | Path]) -> str:
    return repr(str(paths[0])) if len(paths) == 1 else repr([str(path) for path in paths])


def _is_address(name: str) -> bool:
    return "://" in name


def _found(name: str, database: Database) -> list[str]:
    if _is_address(name):
        return _addresses(name, database)
    try:
        here = Path(name)
        exists, folder = here.exists(), here.is_dir()
    except (OSError, ValueError):  # a name too long for the system, or with a zero in it
        exists = folder = False
    if folder:
        files = list(_inside(here))
        if not files:
            raise InvalidInput(
                f"data={name!r} is a folder without files to count: none ends in {', '.join(_KINDS)} (also with "
                f"{', '.join(_COMPRESSED)}), and names that begin with '.' or '_' are left out. Nothing was counted. "
                "Check the path."
            )
        return files
    if exists:
        _kind(name)
        return [name]
    if not _MAGIC.search(name):
        raise InvalidInput(f"data={name!r} does not exist. Nothing was counted. Check the path.")
    files = _matching(name)
    if not files:
        raise InvalidInput(
            f"data={name!r} matches no file; names that begin with '.' or '_' are left out unless the pattern spells "
            "them out. Nothing was counted. Check the pattern, and the folder that it starts from."
        )
    return files


def _addresses(name: str, database: Database) -> list[str]:
    """An address as it is; a pattern of addresses as what it matches there."""
    if name.startswith(("http://", "https://")) or not _MAGIC.search(name):
        _kind(name)
        return [name]
    rows = hushed(
        f"data={name!r} could not be listed",
        lambda: database.connection.execute("SELECT file FROM glob(?) ORDER BY file", [name]).fetchall(),
        "Check the address, and that this machine may read it.",
    )
    fixed = len(name[: _MAGIC.search(name).start()].split("/")) - 1  # type: ignore[union-attr]  # searched above
    files = [str(file) for (file,) in rows if not any(map(_hidden, str(file).split("/")[fixed:]))]
    if not files:
        raise InvalidInput(f"data={name!r} matches no file. Nothing was counted. Check the address and the pattern.")
    return files


def _hidden(part: str) -> bool:
    return part.startswith((".", "_"))


def _inside(folder: Path) -> Iterator[str]:
    """The files of a folder with known endings, each once, in the order of their paths."""
    seen: set[tuple[int, int]] = set()
    listed = [Path(parent, name) for parent in _folders(folder) for name in _names(parent)]
    for file in sorted(listed, key=_links_last):
        if not _hidden(file.name) and _ending(file.name) is not None and file.is_file() and _first(file, seen):
            yield str(file)


def _folders(folder: Path) -> Iterator[Path]:
    """A folder and those in it, to any depth and each once: a link may lead back to where it lies."""
    seen: set[tuple[int, int]] = set()
    waiting = [folder]
    while waiting:
        here = waiting.pop(0)
        if here.is_dir() and _first(here, seen):
            yield here
            inside = [here / name for name in _names(here) if not _hidden(name)]
            waiting += sorted(inside, key=_links_last)


def _names(folder: Path) -> list[str]:
    try:
        return sorted(os.listdir(folder))  # noqa: PTH208  # names, not paths
    except OSError as error:
        raise InvalidInput(
            f"The folder {str(folder)!r} could not be listed ({error.strerror}). Nothing was counted. Check that it "
            "may be read."
        ) from None


def _links_last(path: Path) -> tuple[bool, tuple[str, ...]]:
    return path.is_symlink(), path.parts


def _matching(pattern: str) -> list[str]:
    """What a pattern matches: files, and the files of folders."""
    parts = Path(pattern).parts
    seen: set[tuple[int, int]] = set()
    files: list[str] = []
    start = Path(parts[0]) if Path(pattern).is_absolute() else Path()
    for path in sorted(set(_expanded(start, parts[1:] if Path(pattern).is_absolute() else parts)), key=_links_last):
        for file in map(Path, _inside(path)) if path.is_dir() else [path]:
            if (parts[-1] in ("*", "**") and _ending(file.name) is None) or not file.is_file():
                continue
            _kind(str(file))
            if _first(file, seen):
                files.append(str(file))
    return files


def _expanded(folder: Path, parts: tuple[str, ...]) -> Iterator[Path]:
    """The paths in a folder that match the parts of a pattern one by one."""
    if not parts:
        yield folder
        return
    part, rest = parts[0], parts[1:]
    if part == "**":
        for inside in _folders(folder) if rest else [folder]:
            yield from _expanded(inside, rest)
    elif not _MAGIC.search(part):
        if os.path.lexists(folder / part):
            yield from _expanded(folder / part, rest)
    elif folder.is_dir():
        for name in _names(folder):
            if fnmatchcase(name, part) and (not _hidden(name) or name[0] == part[0]):
                yield from _expanded(folder / name, rest)


def _identity(path: Path) -> tuple[int, int]:
    status = path.stat()
    return status.st_dev, status.st_ino


def _first(path: Path, seen: set[tuple[int, int]]) -> bool:
    """Whether a file or folder is met for the first time under any of its names."""
    try:
        identity = _identity(path)
    except OSError:  # a link to nowhere, or to itself
        return False
    if identity in seen:
        return False
    seen.add(identity)
    return True


def _refuse_twice(names: list[str]) -> None:
    seen: set[tuple[int, int]] = set()
    for name in names:
        if not _first(Path(name), seen):
            raise InvalidInput(
                f"data names the file {name!r} twice, or under two names: each of its records would be counted twice. "
                "Nothing was counted. Name it once."
            )


def _ending(name: str) -> str | None:
    suffixes = [suffix.lower() for suffix in Path(name).suffixes]
    while suffixes and suffixes[-1] in _COMPRESSED:
        suffixes.pop()
    return _KINDS.get(suffixes[-1]) if suffixes else None


def _kind(name: str) -> str:
    kind = _ending(name.split("?")[0] if _is_address(name) else name)
    if kind is None:
        raise InvalidInput(
            f"data={name!r} has none of the known endings {', '.join(_KINDS)} (also with {', '.join(_COMPRESSED)}). "
            "Nothing was counted. Rename the file, or open it with DuckDB or Polars and give the relation or frame."
        )
    return kind
