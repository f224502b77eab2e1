"""Outlines from files: what they unpack to follows from their size, and they lie on the earth."""

from __future__ import annotations

import base64
import zlib
from typing import Any

import numpy as np
import pytest

from sfumato.domain.areas import Areas, areas_from_spec
from sfumato.domain.crossings import RULE
from sfumato.domain.outlines import MOST_TIMES, Outlines, outlines_from_spec, starts_of
from sfumato.errors import InvalidInput

TRIANGLE = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [0.0, 0.0]])


def outlines(points: Any, rings: list[int]) -> Outlines:
    ones = [1] * len(rings)
    return Outlines(np.asarray(points, np.float64), *map(starts_of, (rings, ones, ones)))


def packed(numbers: Any) -> str:
    return base64.b64encode(zlib.compress(numbers.tobytes(), 9)).decode()


def axis(points: Any, *, degrees: bool = True) -> dict[str, Any]:
    found = outlines(points, [len(points)])
    return Areas("place", ("a",), "EPSG:4326", degrees, found.digest, (), RULE, found).spec()


def test_outlines_come_back_as_they_were() -> None:
    many = outlines(np.concatenate([TRIANGLE + i for i in range(500)]), [4] * 500)
    again = outlines_from_spec(many.spec())
    assert again.digest == many.digest
    assert again.owners.tolist() == list(range(500))


def test_points_that_pack_to_nothing_are_refused() -> None:
    one = outlines(TRIANGLE, [4]).spec()
    corners = np.zeros((1 << 18, 2))
    assert corners.nbytes > MOST_TIMES * len(packed(corners))
    with pytest.raises(InvalidInput, match="damaged"):
        outlines_from_spec(one | {"points": packed(corners), "rings": packed(np.array([len(corners)]))})


@pytest.mark.parametrize("name", ["rings", "parts", "regions"])
def test_more_counts_than_there_can_be_are_refused(name: str) -> None:
    one = outlines(TRIANGLE, [4]).spec()
    with pytest.raises(InvalidInput, match="damaged"):
        outlines_from_spec(one | {name: packed(np.ones(1 << 20, np.int64))})


@pytest.mark.parametrize("corner", [(0.0, 90.5), (0.0, -1e300), (361.0, 0.0), (-1e9, 0.0)])
def test_outlines_beyond_the_earth_are_refused(corner: tuple[float, float]) -> None:
    points = np.array([[0.0, 0.0], [1.0, 0.0], corner, [0.0, 0.0]])
    with pytest.raises(InvalidInput, match="beyond the earth"):
        areas_from_spec(axis(points))
    assert areas_from_spec(axis(TRIANGLE)).cells == 2
