"""A release as one file: Parquet that any tool opens, with the description in its metadata.

The table has one row a cell, in C order, and one column, `count`. The metadata entry `sfumato` is canonical JSON with
the guarantee, the mechanism and where the release came from: all that is needed to answer with errors, and nothing
else. No secret, no number of input rows, no digest of input. A release that keeps its noisy integers has them in a
second column, `measured`, the shorter of the two filled up with nulls. docs/file-format.md is the specification.

A file is not trusted. Policies and mechanisms are built from closed lists by their own constructors, nothing is
imported or unpickled, every field is checked, and a digest over description and counts finds damage. The digest is no
signature: who can write the file can write a digest. What cannot be had by writing is a promise better than the
noise: a file whose mechanism spends more than its guarantee says is refused.

What reading costs follows from the size of the file and the number of cells whose estimates are in it. The footer and
the pages' headers are looked at first (`sfumato.release.footer`), the description says how many cells there are, and
only where the two agree the table is read and the policy is built.
"""

from __future__ import annotations

import hashlib
import io
import json
import math
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato._version import __version__
from sfumato.domain import domain_from_spec
from sfumato.errors import FileFormatError, InvalidInput
from sfumato.exact import text, written
from sfumato.files import replacing
from sfumato.mechanism import Mechanism, mechanism_from_spec
from sfumato.promise import Guarantee
from sfumato.reading import plain_data
from sfumato.release.footer import read_footer
from sfumato.release.release import Release

# Format 2 has noisy integers; a release without them is still written as format 1.
FORMAT_VERSION = 2

_KEY = b"sfumato"
_FIELDS = frozenset({"format", "id", "guarantee", "mechanism", "workload", "created", "software", "digest"})
_DIMENSIONS = 2  # of noisy integers: whole parts, and the noise's own fractions
# Any file may hold so many rows: what packs well is not for that a forgery, and as many cells are possible. Beyond it
# noise leaves its bytes behind, and a file has at least one byte for every so many rows.
MOST_ROWS = 1 << 24
ROWS_A_BYTE = 64
# What constructors raise when they are given nonsense of the right outward form.
_NONSENSE = (ArithmeticError, AttributeError, LookupError, MemoryError, RecursionError, TypeError, ValueError)


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
    return description


def _write(release: Release, file: Any, *, plain: bool = False) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    counts, measured = release.counts.ravel(), release.measured
    description = _described(release)
    description["digest"] = _digest(description, counts, measured)
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
        writer.add_key_value_metadata({_KEY: _canonical(description)})


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
    if description["digest"] != _digest({k: v for k, v in description.items() if k != "digest"}, counts, measured):
        raise _unreadable(path, "its contents do not match their digest: it is damaged, or was edited.")
    guarantee, mechanism = honest(path, description)
    try:
        return Release(
            id=description["id"],
            counts=counts.reshape(guarantee.policy.domain.shape),
            guarantee=guarantee,
            mechanism=mechanism,
            workload=description["workload"],
            created=description["created"],
            measured=measured,
        )
    except _NONSENSE as error:
        raise _unreadable(path, "its table does not fit its description.") from error


def described_release(
    release_id: str, description: dict[str, Any], measured: NDArray[np.int64], total: int | None
) -> Release:
    """A release from its noisy integers and a description that is not trusted: estimated anew."""
    kept = {"guarantee", "mechanism", "workload", "created"}
    if not isinstance(description, dict) or set(description) != kept:
        raise FileFormatError("the description of the release is damaged.")
    if not all(isinstance(description[name], str) for name in ("workload", "created")):
        raise FileFormatError("the description of the release is damaged.")
    guarantee, mechanism = honest("patch", description)
    if mechanism.additive is None:
        raise FileFormatError("the description of the release is damaged: its mechanism has no noise to lower.")
    try:
        counts = mechanism.additive.estimate(measured, total).reshape(guarantee.policy.domain.shape)
    except _NONSENSE as error:
        raise FileFormatError("the description of the release is damaged: its mechanism does not fit.") from error
    return Release(
        id=release_id,
        counts=counts,
        guarantee=guarantee,
        mechanism=mechanism,
        workload=description["workload"],
        created=description["created"],
        measured=measured,
    )


def honest(path: str | Path, description: dict[str, Any]) -> tuple[Guarantee, Mechanism]:
    """Guarantee and mechanism, refused where the noise does not keep the promise.

    A mechanism spends its epsilon at the most, and where that keeps the promise nothing more need be computed.
    """
    guarantee, mechanism = _rebuilt(path, description)
    changes = (guarantee.max_per_entity or 1) if guarantee.unit == "person" else guarantee.replacement
    if mechanism.epsilon * changes > guarantee.epsilon:
        spent = mechanism.epsilon * changes
        raise _unreadable(
            path, f"it claims epsilon={guarantee.epsilon}, but its mechanism spends {text(spent)}: it was edited."
        )
    return guarantee, mechanism


def _padded(values: NDArray[Any], rows: int) -> Any:
    """A column with nulls at its end."""
    import pyarrow as pa

    column = pa.array(values)
    return column if len(values) == rows else pa.concat_arrays([column, pa.nulls(rows - len(values), column.type)])


def _opened(path: Path, content: bytes) -> tuple[dict[str, Any], NDArray[np.float64], NDArray[np.int64] | None]:
    """The description, checked field by field, the counts, and the noisy integers where there are some."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        footer = read_footer(content)
        if footer.rows > max(MOST_ROWS, ROWS_A_BYTE * len(content)):
            raise _unreadable(path, f"it claims {footer.rows:,} rows, more than {len(content):,} bytes can hold.")
        if len(footer.columns) > 2:
            raise _unreadable(path, "its table must have one column, count, or two, count and measured.")
        file = pq.ParquetFile(pa.BufferReader(content))
        found = (file.metadata.metadata or {}).get(_KEY)
        if found is None:
            raise _unreadable(path, "it is a Parquet file without an entry 'sfumato', not a release.")
        description = _description(path, found)
        schema, shape = file.schema_arrow, description.get("measured")
        if shape is None:
            if schema.names != ["count"] or schema.field("count").type != pa.float64():
                raise _unreadable(path, "its table must have one column, count, of 64-bit floating point numbers.")
        elif schema.names != ["count", "measured"] or schema.types != [pa.float64(), pa.int64()]:
            raise _unreadable(path, "its table must have the columns count (floating point) and measured (integers).")
        cells = _cells(path, description)
        rows = cells if shape is None else max(cells, math.prod(shape))
        if footer.rows != rows:
            raise _unreadable(path, f"its table has {footer.rows:,} rows for {rows:,} cells.")
        table = file.read(use_threads=False)
        column, measured = table.column("count").combine_chunks(), None
        if shape is not None:
            column = _unpadded(path, column, cells)
            measured = _unpadded(path, table.column("measured").combine_chunks(), math.prod(shape))
    except (pa.ArrowException, OSError, *_NONSENSE) as error:
        if isinstance(error, FileFormatError):  # ours already, from the checks above
            raise
        raise _unreadable(path, "it is not a Parquet file, or cut off or damaged.") from error
    if column.null_count:
        raise _unreadable(path, "some counts are missing.")
    counts = np.array(column.to_numpy(zero_copy_only=False), dtype=np.float64)  # a copy, which the release then owns
    if not np.isfinite(counts).all():
        raise _unreadable(path, "some counts are not finite numbers.")
    if measured is None:
        return description, counts, None
    if measured.null_count:
        raise _unreadable(path, "some of its noisy integers are missing.")
    integers = np.array(measured.to_numpy(zero_copy_only=False), dtype=np.int64).reshape(description["measured"])
    return description, counts, integers


def _unpadded(path: Path, column: Any, size: int) -> Any:
    """The first values of a column, all others being null."""
    if len(column) < size or column.slice(size).null_count != len(column) - size:
        raise _unreadable(path, "its columns are not as long as its description says.")
    return column.slice(0, size)


def _description(path: Path, found: bytes) -> dict[str, Any]:
    try:
        description = plain_data(found)
    except ValueError as error:
        raise _unreadable(path, "its description is not JSON.") from error
    version = description.get("format") if isinstance(description, dict) else None
    if type(version) is not int or version < 1:
        raise _unreadable(path, "its description does not name a format.")
    if version > FORMAT_VERSION:
        raise _unreadable(
            path,
            f"it is of format {version}, and sfumato {__version__} reads formats up to {FORMAT_VERSION}. "
            "Install a newer sfumato.",
        )
    fields = _FIELDS if version == 1 else _FIELDS | {"measured"}
    if set(description) != fields:
        raise _unreadable(path, f"its description must have exactly the fields {', '.join(sorted(fields))}.")
    shape = description.get("measured", [1])
    if not isinstance(shape, list) or not 1 <= len(shape) <= _DIMENSIONS or not all(map(_is_size, shape)):
        raise _unreadable(path, "its field measured must be one or two sizes.")
    for name in ("id", "workload", "created", "software", "digest"):
        if not isinstance(description[name], str):
            raise _unreadable(path, f"its field {name} must be text.")
    try:
        if description["created"]:
            datetime.fromisoformat(description["created"])
    except ValueError as error:
        raise _unreadable(path, "its field created must be a date and time.") from error
    return dict(description)


def _cells(path: str | Path, description: dict[str, Any]) -> int:
    """How many cells the domain has, before anything of that size is made."""
    try:
        return domain_from_spec(description["guarantee"]["policy"]["domain"]).size
    except _NONSENSE as error:
        raise _unreadable(path, "its guarantee or mechanism is incomplete.") from error


def _rebuilt(path: str | Path, description: dict[str, Any]) -> tuple[Guarantee, Mechanism]:
    """Guarantee and mechanism from their descriptions; exact numbers first."""
    try:
        promise, built = description["guarantee"], description["mechanism"]
        exact = {"epsilon": promise["epsilon"], "slack": promise["slack"], "the mechanism's epsilon": built["epsilon"]}
        exact |= {"delta": promise["policy"]["delta"]} if "delta" in promise["policy"] else {}
    except _NONSENSE as error:
        raise _unreadable(path, "its guarantee or mechanism is incomplete.") from error
    try:
        for name, number in exact.items():
            written(number, name)
    except InvalidInput as error:
        raise _unreadable(path, "its exact numbers must be written p or p/q.") from error
    if set(built) != {"name", "epsilon", "options"}:
        raise _unreadable(path, "its mechanism must have exactly the fields name, epsilon and options.")
    try:
        guarantee = Guarantee.from_dict(promise)
        return guarantee, mechanism_from_spec(built, guarantee.policy)
    except _NONSENSE as error:
        why = str(error) if isinstance(error, FileFormatError) else "its guarantee or mechanism cannot be built."
        raise _unreadable(path, why) from error


def _is_size(value: Any) -> bool:
    return type(value) is int and 0 <= value < 1 << 40


def _digest(description: dict[str, Any], counts: NDArray[np.float64], measured: NDArray[np.int64] | None = None) -> str:
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


def _unreadable(path: str | Path, why: str) -> FileFormatError:
    return FileFormatError(f"{str(path)!r} cannot be read as a release: {why}")
