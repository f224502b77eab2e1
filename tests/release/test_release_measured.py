"""Releases that keep their noisy integers: format 2 of the file."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sfumato as sf


def release_with(measured: np.ndarray) -> sf.Release:
    plan = sf.plan(sf.threshold(sf.Line(0, 1, cells=6), 1), sf.ranges(), 1, mechanism="edges")
    return replace(plan.publish(np.arange(6)), measured=measured)


@pytest.mark.parametrize("shape", [(3,), (6,), (11,), (2, 6), (0,)], ids=str)
def test_noisy_integers_come_back_in_their_shape(shape: tuple[int, ...], tmp_path: Path) -> None:
    """Shorter than the counts, as long, longer, in two rows, none."""
    measured = np.arange(np.prod(shape), dtype=np.int64).reshape(shape) - 5
    release = release_with(measured)
    again = sf.load(release.save(tmp_path / "a"))
    assert again.measured is not None
    assert again.measured.shape == shape
    assert np.array_equal(again.measured, measured)
    assert np.array_equal(again.counts, release.counts)
    assert pq.read_table(tmp_path / "a").column_names == ["count", "measured"]


def test_noisy_integers_cannot_be_changed(tmp_path: Path) -> None:
    release = release_with(np.arange(3))
    assert release.measured is not None
    with pytest.raises(ValueError, match="read-only"):
        release.measured[0] = 1


def test_a_release_without_them_is_written_as_before(tmp_path: Path) -> None:
    release = replace(release_with(np.arange(3)), measured=None)
    assert pq.read_table(release.save(tmp_path / "a")).column_names == ["count"]
    assert sf.load(tmp_path / "a").measured is None


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> tuple[sf.Release, bytes, Path]:
    folder = tmp_path_factory.mktemp("bytes")
    release = release_with(np.arange(17) * 1000)
    return release, release.save(folder / "a").read_bytes(), folder


@settings(max_examples=150, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 10**6), st.integers(0, 255)), min_size=1, max_size=4))
def test_changed_bytes_give_the_same_release_or_a_file_format_error(
    original: tuple[sf.Release, bytes, Path], changes: list[tuple[int, int]]
) -> None:
    release, written, folder = original
    content = bytearray(written)
    for place, value in changes:
        content[place % len(content)] = value
    (folder / "b").write_bytes(content)
    try:
        again = sf.load(folder / "b")
    except sf.FileFormatError:
        return
    assert np.array_equal(again.measured, release.measured)  # type: ignore[arg-type]
    assert np.array_equal(again.counts, release.counts)
