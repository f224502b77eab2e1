"""A release as one file: Parquet that any tool opens, with the description in its metadata.

The table has one row a cell, in C order, and one column, `count`. The metadata entry `sfumato` is canonical JSON with
the guarantee, the mechanism and where the release came from: all that is needed to answer with errors, and nothing
else. No secret, no number of input rows, no digest of input. A release that keeps its noisy integers has them in a
second column, `measured`, the shorter of the two filled up with nulls. docs/file-format.md is the specification.
"""

from __future__ import annotations

import hashlib
import io
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sfumato._version import __version__
from sfumato.files import replacing

if TYPE_CHECKING:
    from sfumato.release.release import Release

# Format 2 has noisy integers; a release without them is still written as format 1. Format 3 names its publication, and
# format 4 has tables in the place of cells. Format 5 is of sums, in whole steps of a value, or of distinct people: its
# policy says of what, and whoever took its figures for records would misread them.
FORMAT_VERSION = 5

KEY = b"sfumato"


def save(release: Release, path: str | Path) -> Path:
    """Write a release to one file, whole or not at all; an older file of that name is replaced in one step."""
    with replacing(path) as file:
        _write(release, file)
    return Path(path)


def as_bytes(release: Release) -> bytes:
    """What `save` writes."""
    content = io.BytesIO()
    _write(release, content)
    return content.getvalue()


def to_bytes(release: Release) -> bytes:
    """What `save` writes, but without compression: its size follows from public figures and says nothing more."""
    content = io.BytesIO()
    _write(release, content, plain=True)
    return content.getvalue()


def _described(release: Release) -> dict[str, Any]:
    measured = release.measured
    description: dict[str, Any] = {
        "format": 1 if measured is None else 2,
        "id": release.id,
        "guarantee": release.guarantee.to_dict(),
        "mechanism": release.mechanism.spec(),
        "workload": release.workload,
        "created": release.created,
        "software": f"sfumato {__version__}",
    }
    if measured is not None:
        description["measured"] = list(measured.shape)
    if release.origin is not None:
        description |= {"format": 3, "publication": release.origin.spec()}
    by_tables = release.mechanism.by_tables
    if by_tables is not None:
        description |= {"format": 4, "tables": [list(axes) for axes in by_tables.tables.sets]}
    if release.values is not None:
        description["format"] = 5
    return description


def _write(release: Release, file: Any, *, plain: bool = False) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    counts, measured = release.estimates.ravel(), release.measured
    description = _described(release)
    description["digest"] = digest_of(description, counts, measured)
    # The bytes of similar numbers compress well side by side: half the time and less space than one after the other.
    encoding = {"count": "BYTE_STREAM_SPLIT"}
    columns = {"count": counts}
    if measured is not None:
        rows = max(counts.size, measured.size)
        columns = {"count": _padded(counts, rows), "measured": _padded(measured.ravel(), rows)}
        encoding["measured"] = "DELTA_BINARY_PACKED"
    table = pa.table(columns)
    options: dict[str, Any] = {"compression": "zstd", "compression_level": 1, "column_encoding": encoding}
    if plain:
        options = {
            "compression": "none",
            "column_encoding": dict.fromkeys(encoding, "PLAIN"),
            "write_statistics": False,
        }
    with pq.ParquetWriter(file, table.schema, use_dictionary=False, store_schema=False, **options) as writer:
        writer.write_table(table)
        writer.add_key_value_metadata({KEY: _canonical(description)})


def _padded(values: NDArray[Any], rows: int) -> Any:
    """A column with nulls at its end."""
    import pyarrow as pa

    column = pa.array(values)
    return column if len(values) == rows else pa.concat_arrays([column, pa.nulls(rows - len(values), column.type)])


def digest_of(
    description: dict[str, Any], counts: NDArray[np.float64], measured: NDArray[np.int64] | None = None
) -> str:
    """SHA-256 over the canonical description (without digest), a zero byte, the counts as little-endian doubles, and
    the noisy integers where there are some.
    """
    digest = hashlib.sha256(_canonical(description) + b"\0")
    digest.update(np.ascontiguousarray(counts, dtype="<f8").data)
    if measured is not None:
        digest.update(np.ascontiguousarray(measured, dtype="<i8").data)
    return digest.hexdigest()


def _canonical(description: dict[str, Any]) -> bytes:
    return json.dumps(description, sort_keys=True, separators=(",", ":"), allow_nan=False).encode("ascii")
