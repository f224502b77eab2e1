"""Reading a release from its file (`sfumato.release.writing` says what is in one).

A file is not trusted. Policies and mechanisms are built from closed lists by their own constructors, nothing is
imported or unpickled, every field is checked, and a digest over description and counts finds damage. The digest is no
signature: who can write the file can write a digest. What cannot be had by writing is a promise better than the
noise: a file whose mechanism spends more than its guarantee says is refused.

What reading costs follows from the size of the file and the number of cells whose estimates are in it. The footer and
the pages' headers are looked at first (`sfumato.release.footer`), the description says how many cells there are, and
only where the two agree the table is read and the policy is built.
"""

from __future__ import annotations

import math
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato._version import __version__
from sfumato.domain import domain_from_spec
from sfumato.errors import FileFormatError
from sfumato.reading import plain_data
from sfumato.release.described import NONSENSE, honest, unreadable
from sfumato.release.described_tables import are_tables, numbers_in_tables, require_tables
from sfumato.release.footer import read_footer
from sfumato.release.origin import origin_from_spec
from sfumato.release.release import Release
from sfumato.release.writing import FORMAT_VERSION, KEY, digest_of

_FIELDS = frozenset({"format", "id", "guarantee", "mechanism", "workload", "created", "software", "digest"})
_DIMENSIONS = 2  # of noisy integers: whole parts, and the noise's own fractions
# Any file may hold so many rows: what packs well is not for that a forgery, and as many cells are possible. Beyond it
# noise leaves its bytes behind, and a file has at least one byte for every so many rows.
MOST_ROWS = 1 << 24
ROWS_A_BYTE = 64


def load(path: str | Path) -> Release:
    """The release that `release.save` wrote: equal in every field, with the same answers and intervals.

    >>> plan = sf.plan(sf.threshold(sf.Line(0, 4, cells=4), theta=1), sf.histogram(), epsilon=1)
    >>> path = plan.publish(np.array([3, 0, 5, 1])).save("visits.sfumato")
    >>> sf.load(path)
    Release(4 cells, edges, epsilon=1)
    """
    return from_bytes(Path(path).read_bytes(), path)  # a file that is not there is the system's own error


def from_bytes(content: bytes, path: str | Path) -> Release:
    """The release in the bytes of a file; `path` is for messages."""
    description, counts, measured = _opened(Path(path), content)
    if description["digest"] != digest_of({k: v for k, v in description.items() if k != "digest"}, counts, measured):
        raise unreadable(path, "its contents do not match their digest: it is damaged, or was edited.")
    guarantee, mechanism = honest(path, description)
    if (description["format"] == 5) != (guarantee.policy.values is not None):
        raise unreadable(path, "its format is not that of what it counts: it was edited.")
    require_tables(path, description, mechanism)
    try:
        named = "publication" in description
        origin = origin_from_spec(description["publication"], guarantee.policy.domain) if named else None
    except NONSENSE as error:
        raise unreadable(path, "what it says of its publication cannot be read.") from error
    try:
        return Release(
            id=description["id"],
            estimates=mechanism.shaped(counts),
            guarantee=guarantee,
            mechanism=mechanism,
            workload=description["workload"],
            created=description["created"],
            measured=measured,
            origin=origin,
        )
    except NONSENSE as error:
        raise unreadable(path, "its table does not fit its description.") from error


def _opened(path: Path, content: bytes) -> tuple[dict[str, Any], NDArray[np.float64], NDArray[np.int64] | None]:
    """The description, checked field by field, the counts, and the noisy integers where there are some."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        footer = read_footer(content)
        if footer.rows > max(MOST_ROWS, ROWS_A_BYTE * len(content)):
            raise unreadable(path, f"it claims {footer.rows:,} rows, more than {len(content):,} bytes can hold.")
        if len(footer.columns) > 2:
            raise unreadable(path, "its table must have one column, count, or two, count and measured.")
        file = pq.ParquetFile(pa.BufferReader(content))
        found = (file.metadata.metadata or {}).get(KEY)
        if found is None:
            raise unreadable(path, "it is a Parquet file without an entry 'sfumato', not a release.")
        description = _description(path, found)
        schema, shape = file.schema_arrow, description.get("measured")
        if shape is None:
            if schema.names != ["count"] or schema.field("count").type != pa.float64():
                raise unreadable(path, "its table must have one column, count, of 64-bit floating point numbers.")
        elif schema.names != ["count", "measured"] or schema.types != [pa.float64(), pa.int64()]:
            raise unreadable(path, "its table must have the columns count (floating point) and measured (integers).")
        cells = _cells(path, description)
        rows = cells if shape is None else max(cells, math.prod(shape))
        if footer.rows != rows:
            raise unreadable(path, f"its table has {footer.rows:,} rows for {rows:,} cells.")
        table = file.read(use_threads=False)
        column, measured = table.column("count").combine_chunks(), None
        if shape is not None:
            column = _unpadded(path, column, cells)
            measured = _unpadded(path, table.column("measured").combine_chunks(), math.prod(shape))
    except (pa.ArrowException, OSError, *NONSENSE) as error:
        if isinstance(error, FileFormatError):  # ours already, from the checks above
            raise
        raise unreadable(path, "it is not a Parquet file, or cut off or damaged.") from error
    if column.null_count:
        raise unreadable(path, "some counts are missing.")
    counts = np.array(column.to_numpy(zero_copy_only=False), dtype=np.float64)  # a copy, which the release then owns
    if not np.isfinite(counts).all():
        raise unreadable(path, "some counts are not finite numbers.")
    if measured is None:
        return description, counts, None
    if measured.null_count:
        raise unreadable(path, "some of its noisy integers are missing.")
    integers = np.array(measured.to_numpy(zero_copy_only=False), dtype=np.int64).reshape(description["measured"])
    return description, counts, integers


def _unpadded(path: Path, column: Any, size: int) -> Any:
    """The first values of a column, all others being null."""
    if len(column) < size or column.slice(size).null_count != len(column) - size:
        raise unreadable(path, "its columns are not as long as its description says.")
    return column.slice(0, size)


def _description(path: Path, found: bytes) -> dict[str, Any]:
    try:
        description = plain_data(found)
    except ValueError as error:
        raise unreadable(path, "its description is not JSON.") from error
    version = description.get("format") if isinstance(description, dict) else None
    if type(version) is not int or version < 1:
        raise unreadable(path, "its description does not name a format.")
    if version > FORMAT_VERSION:
        raise unreadable(
            path,
            f"it is of format {version}, and sfumato {__version__} reads formats up to {FORMAT_VERSION}. "
            "Install a newer sfumato.",
        )
    fields = _FIELDS if version == 1 else _FIELDS | {"measured"}
    if version == 3:
        fields = _FIELDS | {"publication"} | (fields & set(description))
    elif version == 4:
        fields = _FIELDS | {"tables"} | ({"publication", "measured"} & set(description))
    elif version == 5:
        fields = _FIELDS | ({"publication", "measured", "tables"} & set(description))
    if set(description) != fields:
        raise unreadable(path, f"its description must have exactly the fields {', '.join(sorted(fields))}.")
    shape = description.get("measured", [1])
    if not isinstance(shape, list) or not 1 <= len(shape) <= _DIMENSIONS or not all(map(_is_size, shape)):
        raise unreadable(path, "its field measured must be one or two sizes.")
    if not are_tables(description.get("tables", [])):
        raise unreadable(path, "its field tables must be lists of the positions of axes.")
    for name in ("id", "workload", "created", "software", "digest"):
        if not isinstance(description[name], str):
            raise unreadable(path, f"its field {name} must be text.")
    try:
        if description["created"]:
            datetime.fromisoformat(description["created"])
    except ValueError as error:
        raise unreadable(path, "its field created must be a date and time.") from error
    return dict(description)


def _cells(path: str | Path, description: dict[str, Any]) -> int:
    """How many cells the domain has, or the tables of it, before anything of that size is made."""
    try:
        domain = domain_from_spec(description["guarantee"]["policy"]["domain"])
        if "tables" not in description:
            return domain.size
        return numbers_in_tables(path, description, domain)
    except FileFormatError:  # ours already
        raise
    except NONSENSE as error:
        raise unreadable(path, "its guarantee or mechanism is incomplete.") from error


def _is_size(value: Any) -> bool:
    return type(value) is int and 0 <= value < 1 << 40
