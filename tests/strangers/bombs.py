"""Small files that ask for much: each is read in a process of its own, with little time and memory.

    python bombs.py FOLDER

says what came of every one. The cells of a bomb hold zeros, which pack to almost nothing.
"""

from __future__ import annotations

import json
import os
import random
import resource
import sys
import time
import zlib
from collections.abc import Callable, Mapping
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from forgeries import forged_release

import sfumato as sf
from sfumato.release.patch import Patch

Description = dict[str, Any]
MILLION = 1 << 20


def axis(cells: int, name: str = "x", low: float = 0, high: float | None = None) -> Description:
    return {"kind": "interval", "name": name, "low": low, "high": cells if high is None else high, "cells": cells}


def policy(name: str, *axes: Description, **arguments: Any) -> Description:
    return {"name": name, "domain": {"axes": list(axes)}, **arguments}


def described(rule: Description, mechanism: str = "identity", **options: Any) -> Description:
    return {
        "format": 1,
        "id": "0" * 32,
        "guarantee": {
            "policy": rule, "epsilon": "1", "unit": "record", "max_per_entity": None, "window": None, "slack": "0",
            "private": True,
        },
        "mechanism": {"name": mechanism, "epsilon": "1", "options": options},
        "workload": "",
        "created": "",
        "software": "",
        "digest": "",
    }  # fmt: skip


def with_cells(description: Description, cells: int) -> bytes:
    """A file of so many zeros, in runs."""
    return forged_release(description, pa.table({"count": np.zeros(cells)}), random.Random(1))


def endless_window() -> bytes:
    description = described(policy("unbounded", axis(4)))
    description["guarantee"] |= {"window": {"kind": "steps", "size": 3}, "window_epsilon": "1e30000000"}
    return with_cells(description, 4)


def endless(key: str) -> Callable[[], bytes]:
    def made() -> bytes:
        description = described(policy("within", axis(4), delta="1", metric="euclidean"), "edges")
        part = description["guarantee"] if key != "delta" else description["guarantee"]["policy"]
        (description["mechanism"] if key == "mechanism" else part)["epsilon" if key == "mechanism" else key] = (
            "1e30000000"
        )
        return with_cells(description, 4)

    return made


def endless_share() -> bytes:
    return with_cells(described(policy("unbounded", axis(4)), "sorted", share="1e-30000000"), 4)


def sources(mechanism: str, lines: bool) -> Callable[[], bytes]:
    def made() -> bytes:
        dice = random.Random(3)
        places: Any = [[round(dice.random(), 3), round(dice.random(), 3)] for _ in range(900)]
        if lines:
            places = [places]
        rule = policy(
            "within", axis(1024, "x", 0, 1), axis(1024, "y", 0, 1), delta="1/3", metric="euclidean", sources=places
        )
        return with_cells(described(rule, mechanism), MILLION)

    return made


def all_sources_at_once() -> bytes:
    places = [[x / 300 + 1e-9, 0.5] for x in range(300)]
    rule = policy(
        "within", axis(600, "x", 0, 1), axis(500, "y", 0, 1), delta="1/300", metric="euclidean", sources=places
    )
    return with_cells(described(rule, "consistent"), 300_000)


def listed_graph(mechanism: str, **options: Any) -> Callable[[], bytes]:
    def made() -> bytes:
        dice = random.Random(5)
        cells = 50_000
        edges = [[dice.randrange(i), i] for i in range(1, cells)]
        edges += [sorted(dice.sample(range(cells), 2)) for _ in range(150_000)]
        return with_cells(
            described(policy("graph", axis(cells), edges=edges, publish_component_totals=False), mechanism, **options),
            cells,
        )

    return made


def star(mechanism: str, **options: Any) -> Callable[[], bytes]:
    def made() -> bytes:
        cells = 100_000
        edges = [[0, i] for i in range(1, cells)]
        rule = policy("graph", axis(cells), edges=edges, publish_component_totals=False)
        return with_cells(described(rule, mechanism, **options), cells)

    return made


def many_dimensions(rule: str, dimensions: int, cells: int, **arguments: Any) -> Callable[[], bytes]:
    def made() -> bytes:
        axes = [axis(cells, f"a{i}") for i in range(dimensions)]
        return with_cells(described(policy(rule, *axes, **arguments), "edges"), cells**dimensions)

    return made


def long_line(mechanism: str, rule: Description | None = None, **options: Any) -> Callable[[], bytes]:
    return lambda: with_cells(
        described(rule or policy("threshold", axis(MILLION), theta=MILLION), mechanism, **options), MILLION
    )


def sets(count: int) -> Callable[[], bytes]:
    return lambda: with_cells(
        described(policy("bounded", axis(1024)), "greedy", boxes=[[i % 1000, i % 1000 + 1] for i in range(count)]), 1024
    )


def rows(count: int) -> Callable[[], bytes]:
    def made() -> bytes:
        """Runs of one value in a dictionary: a few bytes for a group of a million rows."""
        description = described(policy("unbounded", axis(count)))
        written = pa.BufferOutputStream()
        part = pa.table({"count": np.zeros(MILLION)})
        with pq.ParquetWriter(written, part.schema, compression="none") as writer:
            for _ in range(count // MILLION):
                writer.write_table(part)
            writer.add_key_value_metadata({b"sfumato": json.dumps(description).encode()})
        return written.getvalue().to_pybytes()

    return made


def swollen_page() -> bytes:
    """A page whose header says that it unpacks to 2 GB, in a file of four rows."""
    content = bytearray(with_cells(described(policy("unbounded", axis(4))), 4))
    # The first page begins after the magic: type (field 1), then the unpacked size (field 2) as a zigzag varint.
    assert content[4] == 0x15
    assert content[6] == 0x15
    end = 7
    while content[end] & 0x80:
        end += 1
    size, octets = 2 * 2_000_000_000, bytearray()
    while size > 127:
        octets.append(size & 127 | 128)
        size >>= 7
    content[7 : end + 1] = octets + bytes([size])
    return bytes(content)


def zeros_packed() -> bytes:
    """512 MB of zeros in one page that says so, for four rows."""
    description = described(policy("unbounded", axis(4)))
    written = pa.BufferOutputStream()
    table = pa.table({"count": pa.array(["\0" * (1 << 29)])})
    with pq.ParquetWriter(
        written, table.schema, compression="zstd", use_dictionary=False, write_statistics=False
    ) as writer:
        writer.write_table(table)
        writer.add_key_value_metadata({b"sfumato": json.dumps(description).encode()})
    return written.getvalue().to_pybytes()


def nested_columns() -> bytes:
    """A hundred thousand columns, each in the one before, by a footer of 300 kB."""
    element = bytes([0x48, 1, 97, 0x15, 2, 0])  # name "a", one child
    count = 100_000
    head = bytearray()
    while count > 127:
        head.append(count & 127 | 128)
        count >>= 7
    footer = bytes([0x15, 2, 0x19, 0xFC]) + bytes([*head, count]) + element * 100_000 + bytes([0x16, 0, 0x19, 0x0C, 0])
    return b"PAR1" + footer + len(footer).to_bytes(4, "little") + b"PAR1"


def deep_description() -> bytes:
    deep: Any = "[" * 200_000 + "]" * 200_000
    written = pa.BufferOutputStream()
    table = pa.table({"count": np.zeros(4)})
    with pq.ParquetWriter(written, table.schema) as writer:
        writer.write_table(table)
        writer.add_key_value_metadata({b"sfumato": deep.encode()})
    return written.getvalue().to_pybytes()


def equal_labels() -> bytes:
    labels = [f"{i}" for i in range(200_000)] + ["199999"]
    rule = policy("unbounded", {"kind": "labels", "name": "x", "labels": labels, "other": None})
    return with_cells(described(rule), len(labels))


def patch_of_zeros() -> bytes:
    about = {
        "id": "a", "before": "b", "after": "c", "changes": 200_000_000,
        "description": {"guarantee": {"epsilon": "1"}, "mechanism": {}, "workload": "", "created": ""},
    }  # fmt: skip
    text = json.dumps(about).encode()
    return len(text).to_bytes(8, "little") + text + zeros_squeezed(b"\1" + bytes(7), 3051)


def zeros_squeezed(first: bytes, millions: int) -> bytes:
    """Some bytes and so many megabytes of zeros, as zlib packs them: a megabyte is packed once and said again."""
    squeezed = zlib.compressobj(9, zlib.DEFLATED, -zlib.MAX_WBITS)
    begin = squeezed.compress(first) + squeezed.flush(zlib.Z_FULL_FLUSH)  # what follows does not look back
    piece = squeezed.compress(bytes(MILLION)) + squeezed.flush(zlib.Z_FULL_FLUSH)
    high, low = divmod(zlib.adler32(first), 1 << 16)
    high = (high + low * millions * MILLION) % 65521  # the checksum of zeros
    return b"\x78\xda" + begin + piece * millions + squeezed.flush() + (high << 16 | low).to_bytes(4, "big")


def oversized_windows() -> bytes:
    description = described(policy("unbounded", axis(4)))
    description["guarantee"] |= {"window": {"kind": "time", "size": 10**400}, "window_epsilon": "1"}
    return with_cells(description, 4)


def tables(
    claimed: list[list[int]], rule: Description, rows: int = 4, measured: list[list[int]] | None = None
) -> Callable[[], bytes]:
    """Tables in the place of the cells of a product of any size; those claimed are measured, or others."""

    def made() -> bytes:
        chosen = measured or claimed
        description = described(rule, "marginals", tables=chosen, weights=[1] * len(chosen))
        return with_cells(description | {"format": 4, "tables": claimed}, rows)

    return made


def sides(count: int, cells: int) -> list[Description]:
    return [
        {"kind": "labels", "name": f"a{i}", "labels": [str(k) for k in range(cells)], "other": None}
        for i in range(count)
    ]


RELEASES: dict[str, Callable[[], bytes]] = {
    "endless window": endless_window,
    "endless epsilon": endless("epsilon"),
    "endless slack": endless("slack"),
    "endless delta": endless("delta"),
    "endless mechanism": endless("mechanism"),
    "endless share": endless_share,
    "endless window size": oversized_windows,
    "sources under edges": sources("edges", lines=False),
    "sources under haar": sources("haar", lines=False),
    "sources under sorted": sources("sorted", lines=False),
    "lines under edges": sources("edges", lines=True),
    "sources under a tree": all_sources_at_once,
    "graph under identity": listed_graph("identity"),
    "graph under hierarchy": listed_graph("hierarchy", blocks=[64, 8, 1], weights=[1, 1, 1]),
    "graph under spanner": listed_graph("spanner"),
    "graph under consistent": listed_graph("consistent"),
    "graph under sorted": listed_graph("sorted"),
    "star under spanner": star("spanner"),
    "star under hierarchy": star("hierarchy", branching=2, root=True),
    "13 dimensions": many_dimensions("within", 13, 2, delta="3", metric="manhattan"),
    "14 dimensions": many_dimensions("threshold", 14, 2, theta=14),
    "20 dimensions": many_dimensions("threshold", 20, 2, theta=20),
    "6 dimensions": many_dimensions("threshold", 6, 8, theta=42),
    "long line, blocks": long_line("blocks", blocks=[1024, 32, 1], weights=[1, 1, 1]),
    "long line, blocks untold": long_line("blocks"),
    "long line, hierarchy untold": long_line("hierarchy"),
    "long line, hats": long_line("hats", widths=list(range(1100, 100, -1)), weights=[1] * 1001),
    "long line, hats bounded": long_line(
        "hats", policy("bounded", axis(MILLION)), widths=list(range(1100, 100, -1)), weights=[1] * 1001
    ),
    "long line, 64 hats": long_line(
        "hats", policy("bounded", axis(MILLION)), widths=list(range(164, 100, -1)), weights=[1] * 65
    ),
    "long line, hats untold": long_line("hats"),
    "long line, spanner": long_line("spanner", side=3, share=50),
    "long line, spanner untold": long_line("spanner"),
    "long line, shifted": long_line("shifted", policy("threshold", axis(MILLION), theta=1), width=MILLION),
    "long line, shifted wide": long_line("shifted-edges", width=MILLION),
    "long line, sorted": long_line("sorted"),
    "long line, dawa": long_line("dawa"),
    "long line, prefix": long_line("prefix"),
    "long line, branching": long_line("hierarchy", branching=2, root=True),
    "100,000 sets": sets(100_000),
    "untold sets": sets(0),
    "rows in runs": rows(1 << 27),
    "cells without rows": lambda: with_cells(described(policy("unbounded", axis(1 << 40))), 4),
    "product of sides": lambda: with_cells(
        described(policy("unbounded", *[axis(1 << 40, f"a{i}") for i in range(9)])), 4
    ),
    "a thousand axes": lambda: with_cells(described(policy("unbounded", *[axis(1, f"a{i}") for i in range(1000)])), 1),
    "tables of all axes": tables([list(range(15))], policy("unbounded", *sides(15, 16))),
    "tables beside a long axis": tables([[1]], policy("bounded", axis(1 << 40), *sides(1, 4))),
    "tables of many parts": tables([list(range(20))], policy("bounded", *sides(25, 2)), rows=1 << 20),
    "tables in tables": tables(
        [list(axes) for axes in combinations(range(30), 3)],
        policy("bounded", *sides(30, 2)),
        rows=8 * 4060,
        measured=[list(axes) for k in (1, 2, 3) for axes in combinations(range(30), k)],
    ),
    "tables under a wide graph": tables(
        [[0]], policy("graph", *sides(30, 4), edges=[[0, 1], [1, -1]], publish_component_totals=False)
    ),
    "tables under wide moves": tables([[1]], policy("threshold", axis(1 << 24), axis(4, "y"), axis(4, "z"), theta=9)),
    "swollen page": swollen_page,
    "zeros packed": zeros_packed,
    "nested columns": nested_columns,
    "deep description": deep_description,
    "equal labels": equal_labels,
}


# Honest files need 3 s on a machine in use and 430 MB; what asks for too much asks for minutes, or for gigabytes.
SECONDS, MEGABYTES = 60, 600


def opened(path: Path, name: str) -> object:
    """What is read of a file that is a release, or a patch by its name."""
    return Patch.from_bytes(path.read_bytes()) if name == "patch" else sf.load(path)


def read(path: Path, name: str, reader: Callable[[Path, str], object], refusals: type[Exception]) -> None:
    """In a process of its own: says what came of it, or is stopped by the system."""
    content = path.read_bytes()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    mapped = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (mapped + (4 * MEGABYTES << 20), resource.RLIM_INFINITY))
    resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, resource.RLIM_INFINITY))
    started = time.process_time()
    try:
        found = repr(reader(path, name))
    except refusals as error:
        memory = isinstance(error.__cause__, MemoryError) and not isinstance(error.__cause__, sf.TooLarge)
        found = "memory ran out" if memory else f"refused: {str(error).split('release: ')[-1]}"
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) >> 10
    wrong = grown > MEGABYTES or found == "memory ran out"
    spent = time.process_time() - started
    print(f"{'wrong' if wrong else 'fine'} {name}: {len(content):,} bytes, {spent:.2f} s, {grown} MB, {found:.120}")


def main(
    folder: str,
    files: Mapping[str, Callable[[], bytes]],
    reader: Callable[[Path, str], object] = opened,
    refusals: type[Exception] = sf.FileFormatError,
) -> None:
    for name, made in files.items():
        path = Path(folder) / "bomb"
        path.write_bytes(made())
        sys.stdout.flush()
        child = os.fork()  # everything is imported, and nothing of the one before is left
        if child == 0:
            try:
                read(path, name, reader, refusals)
                sys.stdout.flush()
            except BaseException as error:  # noqa: BLE001  # no refusal of ours
                print(f"wrong {name}: {type(error).__name__}: {str(error)[:120]}", flush=True)
            finally:
                os._exit(0)
        _, status = os.waitpid(child, 0)
        if status:
            print(f"wrong {name}: stopped by the system ({status})")


if __name__ == "__main__":
    main(sys.argv[1], RELEASES | {"patch": patch_of_zeros})
    print("done")
