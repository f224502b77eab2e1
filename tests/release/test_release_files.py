"""Release files: what is written is what is read, and nothing else is read."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from released import GRID, LINE, PLANS, known, sample, with_mechanism

import sfumato as sf
from sfumato.mechanism import variants
from sfumato.release.writing import FORMAT_VERSION


def same(a: sf.Release, b: sf.Release) -> bool:
    """Equal in every field, and in every answer."""
    answers = [(r.cells(), r.query(np.arange(r.domain.size))) for r in (a, b)]
    return (
        (a.id, a.guarantee, a.workload, a.created) == (b.id, b.guarantee, b.workload, b.created)
        and a.mechanism.spec() == b.mechanism.spec()
        and type(a.mechanism) is type(b.mechanism)
        and np.array_equal(a.counts, b.counts)
        and a.domain == b.domain
        and type(a.domain) is type(b.domain)
        and all(
            np.array_equal(getattr(x, field), getattr(y, field), equal_nan=True)
            for x, y in zip(*answers, strict=True)
            for field in ("value", "stderr", "low", "high")
        )
    )


def written(path: Path) -> tuple[dict[str, Any], np.ndarray]:
    """Description and counts, with plain pyarrow as docs/file-format.md shows."""
    file = pq.ParquetFile(path)
    return json.loads(file.metadata.metadata[b"sfumato"]), file.read().column("count").to_numpy()


def forge(path: Path, description: Any, counts: Any, *, digest: bool = True, column: str = "count") -> Path:
    """A file with any contents, and a digest that fits them."""
    if digest and isinstance(description, dict):
        rest = {k: v for k, v in description.items() if k != "digest"}
        canonical = json.dumps(rest, sort_keys=True, separators=(",", ":")).encode()
        numbers = np.ascontiguousarray(counts, dtype="<f8").tobytes()
        description = {**rest, "digest": hashlib.sha256(canonical + b"\0" + numbers).hexdigest()}
    table = pa.table({column: counts})
    with pq.ParquetWriter(path, table.schema) as writer:
        writer.write_table(table)
        writer.add_key_value_metadata({b"sfumato": json.dumps(description).encode()})
    return path


# ---------------------------------------------------------------------------------------------- there and back


@pytest.mark.parametrize("name", PLANS)
@pytest.mark.parametrize("epsilon", ["1/3", 2.5])
def test_a_loaded_release_equals_the_saved_one(name: str, epsilon: Any, tmp_path: Path) -> None:
    release = sample(name, epsilon=epsilon)
    path = release.save(tmp_path / "a.sfumato")
    assert path == tmp_path / "a.sfumato"
    loaded = sf.load(path)
    assert same(release, loaded)
    assert not loaded.private
    assert not loaded.counts.flags.writeable


@pytest.mark.parametrize("policy", [sf.bounded(GRID), sf.unbounded(LINE), sf.threshold(GRID, 2), sf.threshold(LINE, 3)])
def test_every_mechanism_a_plan_tries_can_be_saved(policy: sf.Policy, tmp_path: Path) -> None:
    names = set()
    for name, options in variants(policy, sf.ranges()):
        try:
            release = with_mechanism(policy, np.arange(policy.domain.size) / 7, name, options)
        except sf.SfumatoError:
            continue  # not for this policy
        names.add(name)
        assert same(release, sf.load(release.save(tmp_path / "a.sfumato")))
    assert len(names) >= 5


def test_private_releases_and_promises_about_persons_come_back(tmp_path: Path) -> None:
    plan = sf.plan(sf.within(GRID, delta=0.3), sf.ranges(), epsilon=1, max_per_entity=3)
    import pandas as pd

    table = pd.DataFrame({"lon": [0.5, 0.1], "lat": [40.6, 40.7], "who": ["a", "b"]})
    counts = sf.count(table, GRID, x="lon", y="lat", entity="who", max_per_entity=3)
    release = plan.publish(counts)
    loaded = sf.load(release.save(tmp_path / "p.sfumato"))
    assert same(release, loaded)
    assert loaded.private
    assert (loaded.guarantee.unit, loaded.guarantee.max_per_entity) == ("person", 3)


def test_counts_keep_every_bit(tmp_path: Path) -> None:
    odd = [0.1, -0.0, 5e-324, -1.7e308, 2.0**53 + 2, 1 / 3, -7, 0]
    loaded = sf.load(known(LINE, odd).save(tmp_path / "odd.sfumato"))
    assert loaded.counts.tobytes() == np.array(odd).tobytes()


def test_the_file_is_ordinary_parquet_for_every_tool(tmp_path: Path) -> None:
    import duckdb
    import pandas as pd
    import polars as pl

    release = sample("within edge-haar")
    path = release.save(tmp_path / "a.sfumato")
    expected = release.counts.ravel()
    assert np.array_equal(pd.read_parquet(path)["count"], expected)
    assert np.array_equal(pl.read_parquet(path)["count"], expected)
    assert np.array_equal(duckdb.read_parquet(str(path)).fetchnumpy()["count"], expected)


def test_the_description_holds_these_fields_and_no_others(tmp_path: Path) -> None:
    """No number of rows that came in, no digest of input, no seed, no path, no name of the machine."""
    release = sample("within points")
    description, _ = written(release.save(tmp_path / "a.sfumato"))
    rest = {k: v for k, v in description.items() if k not in ("id", "created", "digest")}
    assert set(description) == {*rest, "id", "created", "digest"}
    assert rest == {
        "format": 1,
        "guarantee": {
            "policy": {
                "name": "within",
                "domain": {"axes": [{"kind": "interval", "name": "x", "low": 0.0, "high": 8.0, "cells": 8}]},
                "delta": "3/2",
                "metric": "euclidean",
                "sources": [[2.5]],
            },
            "epsilon": "7/10",
            "unit": "record",
            "max_per_entity": None,
            "window": None,
            "slack": f"1/{2**100}",
            "private": False,
        },
        "mechanism": {"name": "identity", "epsilon": "7/10", "options": {}},
        "workload": "single cells",
        "software": f"sfumato {sf.__version__}",
    }
    file = pq.ParquetFile(tmp_path / "a.sfumato")
    assert set(file.metadata.metadata) == {b"sfumato"}
    assert file.schema_arrow.names == ["count"]


def test_saving_the_same_release_twice_gives_the_same_bytes(tmp_path: Path) -> None:
    release = sample("graph edges")
    assert release.save(tmp_path / "a").read_bytes() == release.save(tmp_path / "b").read_bytes()


# ---------------------------------------------------------------------------------------------- damage


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> tuple[sf.Release, bytes, Path]:
    release = sample("within edges")
    path = release.save(tmp_path_factory.mktemp("files") / "original.sfumato")
    return release, path.read_bytes(), path.with_name("changed.sfumato")


@given(data=st.data())
@settings(max_examples=400, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_changed_bytes_give_the_same_release_or_a_file_format_error(
    original: tuple[sf.Release, bytes, Path], data: st.DataObject
) -> None:
    release, content, path = original
    changed = bytearray(content)
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(content) - 1))
        changed[at] = data.draw(st.integers(0, 255))
    path.write_bytes(changed)
    try:
        loaded = sf.load(path)
    except sf.FileFormatError:
        return
    assert same(release, loaded)


def test_every_truncation_is_a_file_format_error(original: tuple[sf.Release, bytes, Path]) -> None:
    _, content, path = original
    for length in [*range(0, len(content), 7), len(content) - 1]:
        path.write_bytes(content[:length])
        with pytest.raises(sf.FileFormatError):
            sf.load(path)


def nodes(value: Any, at: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Every place in a JSON value."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [at, *(place for key, part in inner for place in nodes(part, (*at, key)))]


JUNK = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats(allow_nan=False, allow_infinity=False)
    | st.sampled_from(["", "1/0", "1e999999999", "9" * 4001, "identity", "haar", "within", "boundary", "-1"]),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=3), inner, max_size=2),
    max_leaves=4,
)  # fmt: skip


@pytest.mark.slow
@given(data=st.data(), name=st.sampled_from(list(PLANS)))
@settings(max_examples=400, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_forged_descriptions_give_an_honest_release_or_a_file_format_error(
    original: tuple[sf.Release, bytes, Path], data: st.DataObject, name: str
) -> None:
    """Any part of the description replaced by anything, with a digest that fits."""
    path = original[2]
    description, counts = written(sample(name).save(path))
    place = data.draw(st.sampled_from([n for n in nodes(description) if n]))
    target = description
    for key in place[:-1]:
        target = target[key]
    target[place[-1]] = data.draw(JUNK)
    forge(path, description, counts)
    try:
        loaded = sf.load(path)
    except sf.FileFormatError:
        return
    bound = loaded.guarantee.max_per_entity or 1 if loaded.guarantee.unit == "person" else 1
    assert loaded.mechanism.privacy_loss * bound <= loaded.guarantee.epsilon
    assert loaded.counts.shape == loaded.domain.shape
    loaded.cells()


# ---------------------------------------------------------------------------------------------- refusals


def edited(path: Path, change: Callable[[dict[str, Any]], Any]) -> Path:
    description, counts = written(sample("within edges").save(path))
    return forge(path, change(description) or description, counts)


def smaller_epsilon(d: dict[str, Any]) -> None:
    d["guarantee"]["epsilon"] = "1/2"


def person_of_three(d: dict[str, Any]) -> None:
    d["guarantee"].update(unit="person", max_per_entity=3)


def more_cells(d: dict[str, Any]) -> None:
    d["guarantee"]["policy"]["domain"]["axes"][0]["cells"] = 7


EDITS: dict[str, tuple[Callable[[dict[str, Any]], Any], str]] = {
    "a better promise": (smaller_epsilon, "it claims epsilon=0.5, but its mechanism spends 0.7: it was edited."),
    "a promise about a person": (
        person_of_three, "it claims epsilon=0.7, but its mechanism spends 2.1: it was edited."
    ),
    "a newer format": (
        lambda d: d.update(format=FORMAT_VERSION + 1),
        f"it is of format 6, and sfumato {sf.__version__} reads formats up to 5. Install a newer sfumato.",
    ),
    "no format": (lambda d: d.pop("format") and None, "its description does not name a format."),
    "a list": (lambda d: [1], "its description does not name a format."),
    "one field more": (
        lambda d: d.update(rows=5),
        "its description must have exactly the fields created, digest, format, guarantee, id, mechanism, software, "
        "workload.",
    ),
    "a number for text": (lambda d: d.update(id=5), "its field id must be text."),
    "no date": (lambda d: d.update(created="yesterday"), "its field created must be a date and time."),
    "another shape": (more_cells, "its table has 30 rows for 35 cells."),
    "an endless number": (
        lambda d: d["mechanism"].update(epsilon="1e999999999"), "its exact numbers must be written p or p/q."
    ),
    "no guarantee": (lambda d: d.update(guarantee=None), "its guarantee or mechanism is incomplete."),
    "an unknown mechanism": (
        lambda d: d["mechanism"].update(name="os.system"),
        "the description of the mechanism is damaged, or from a newer version.",
    ),
    "an unknown option": (
        lambda d: d["mechanism"].update(options={"width": 3}),
        "the description of the mechanism is damaged, or from a newer version.",
    ),
    "a mechanism with more to say": (
        lambda d: d["mechanism"].update(seed=3),
        "its mechanism must have exactly the fields name, epsilon and options.",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", EDITS)
def test_edited_descriptions_are_refused(case: str, tmp_path: Path) -> None:
    change, why = EDITS[case]
    path = edited(tmp_path / "a.sfumato", change)
    with pytest.raises(sf.FileFormatError) as refusal:
        sf.load(path)
    assert str(refusal.value) == f"{str(path)!r} cannot be read as a release: {why}"


def refusal_of(path: Path) -> str:
    with pytest.raises(sf.FileFormatError) as refusal:
        sf.load(path)
    return str(refusal.value).removeprefix(f"{str(path)!r} cannot be read as a release: ")


def test_an_edit_without_a_new_digest_is_damage(tmp_path: Path) -> None:
    description, counts = written(sample("within edges").save(tmp_path / "a"))
    description["workload"] = "all ranges"
    forge(tmp_path / "a", description, counts, digest=False)
    assert refusal_of(tmp_path / "a") == "its contents do not match their digest: it is damaged, or was edited."


def test_foreign_files_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"count": [1.0, 2.0]}), path)
    assert refusal_of(path) == "it is a Parquet file without an entry 'sfumato', not a release."
    for content in (b"", b"PAR1", b"not a release\n" * 9, b"PAR1" + bytes(50) + b"PAR1"):
        path.write_bytes(content)
        assert refusal_of(path) == "it is not a Parquet file, or cut off or damaged."


def test_tables_of_another_form_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "a"
    description, counts = written(sample("within edges").save(path))
    wrong = "its table must have one column, count, of 64-bit floating point numbers."
    assert refusal_of(forge(path, description, counts, column="rows")) == wrong
    assert refusal_of(forge(path, description, counts.astype(np.float32))) == wrong
    missing = pa.array([None, *counts[1:]], type=pa.float64())
    assert refusal_of(forge(path, description, missing, digest=False)) == "some counts are missing."
    endless = np.where(np.arange(30) == 3, np.inf, counts)
    assert refusal_of(forge(path, description, endless)) == "some counts are not finite numbers."


def test_a_description_that_is_no_json_is_refused(tmp_path: Path) -> None:
    table = pa.table({"count": [1.0]})
    for junk in (b"{", b"\xff\xfe", b'{"format": NaN}', b"[" * 100_000):
        with pq.ParquetWriter(tmp_path / "a", table.schema) as writer:
            writer.write_table(table)
            writer.add_key_value_metadata({b"sfumato": junk})
        assert refusal_of(tmp_path / "a") in (
            "its description is not JSON.",
            "it is not a Parquet file, or cut off or damaged.",  # metadata that is not text
        )


def test_a_file_that_is_not_there_is_the_systems_own_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        sf.load(tmp_path / "nothing.sfumato")
    with pytest.raises(FileNotFoundError):
        sample("within edges").save(tmp_path / "no" / "directory.sfumato")


# ---------------------------------------------------------------------------------------------- whole or not at all

FULL_DISK = """
import resource, signal, sys
import numpy as np
import sfumato as sf
line = sf.Line(0, 1, cells=1 << 16)
release = sf.plan(sf.bounded(line), sf.histogram(), 1, mechanism="identity").publish(np.zeros(1 << 16, int))
release.save(sys.argv[2])  # everything is imported once before the disk is full
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))
for write in (release.save, release.to_parquet, release.to_csv):
    try:
        write(sys.argv[1])
    except OSError as error:
        print(type(error).__name__)
"""


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="needs a limit on file sizes")
def test_a_full_disk_leaves_the_old_file_and_no_other(tmp_path: Path) -> None:
    old = sample("within edges").save(tmp_path / "a.sfumato")
    content = old.read_bytes()
    (tmp_path / "elsewhere").mkdir()
    run = subprocess.run(
        [sys.executable, "-c", FULL_DISK, str(old), str(tmp_path / "elsewhere" / "b")],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert run.stdout.split() == ["OSError"] * 3
    assert old.read_bytes() == content
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a.sfumato", "elsewhere"]


def test_a_failed_write_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_disk(handle: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", no_disk)
    with pytest.raises(OSError, match="No space left"):
        sample("within edges").save(tmp_path / "a.sfumato")
    assert list(tmp_path.iterdir()) == []


def test_a_new_file_has_the_permissions_of_any_new_file(tmp_path: Path) -> None:
    (tmp_path / "plain").write_bytes(b"")
    path = sample("within edges").save(tmp_path / "a.sfumato")
    assert path.stat().st_mode == (tmp_path / "plain").stat().st_mode


def test_the_example_in_the_documentation_reads_a_release(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = (Path(__file__).parents[2] / "docs" / "file-format.md").read_text("utf-8")
    example = page.split("```python\n")[-1].split("```")[0]
    release = sample("unbounded mixed")
    release.save(tmp_path / "visits.sfumato")
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {"print": lambda *shown: None}
    exec(example, names)
    assert np.array_equal(names["counts"], release.counts)
    assert set(names["about"]) == {
        line.split("`")[1] for line in page.split("## Signatures")[0].splitlines() if line.startswith("| `")
    }  # every field has a row in the table
