"""Small files that ask for much by their domains and relations: regions, times, uneven bins, many rules; and files of
publications.

    python domain_bombs.py FOLDER

says what came of every one, as `bombs.py` does.
"""

from __future__ import annotations

import base64
import sys
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from bombs import MILLION, Description, axis, described, main, policy, with_cells

import sfumato as sf
from sfumato.domain.crossings import RULE
from sfumato.domain.outlines import Outlines, starts_of


def relation(*axes: Description, terms: list[Description], factors: list[Description] | None = None) -> Description:
    """A policy by a relation; the axes are factors by themselves unless factors say otherwise."""
    domain: Description = {"axes": list(axes)} | ({"factors": factors} if factors else {})
    rule = {"name": "relation", "domain": domain, "hide": {"terms": terms}, "public": []}
    return rule | {"publish_component_totals": False}


def moved(name: str, delta: str, unit: str, metric: str) -> Description:
    """A term of one move."""
    return {"rules": [{"kind": "move", "of": name, "delta": delta, "unit": unit, "metric": metric}]}


def areas(points: Any, rings: list[int], regions: int) -> Description:
    """An axis of regions with these outlines, packed as well as can be."""
    at, many, ones = np.ascontiguousarray(points, "<f8"), np.array(rings, "<i8"), np.ones(regions, "<i8")

    def packed(numbers: Any) -> str:
        return base64.b64encode(zlib.compress(numbers.tobytes(), 9)).decode()

    return {
        "kind": "regions", "name": "place", "ids": [f"r{i}" for i in range(regions)], "crs": "EPSG:4326",
        "degrees": True, "rule": RULE, "digest": Outlines(at, *map(starts_of, (many, ones, ones))).digest,
        "levels": [], "made": {},
        "outlines": {"points": packed(at), "rings": packed(many), "parts": packed(ones), "regions": packed(ones)},
    }  # fmt: skip


def outlines_of_zeros() -> bytes:
    """Thirty million corners at one place: half a gigabyte in half a megabyte."""
    return with_cells(described(policy("unbounded", areas(np.zeros((30_000_000, 2)), [30_000_000], 1))), 2)


def regions_beyond(corner: float) -> Callable[[], bytes]:
    """A region whose latitudes reach far: bands of one degree would be without end."""
    points = np.array([[0, -corner], [1, 0], [0, 1], [0, -corner]])
    return lambda: with_cells(
        described(relation(areas(points, [4], 1), terms=[moved("place", "500", "m", "geodesic")])), 2
    )


def regions_in_one_place() -> bytes:
    """Twelve thousand regions, all of them near all others."""
    count = 12_000
    square = np.array([[0, 0], [1, 0], [1, 1], [0, 1], [0, 0]])
    points = np.concatenate([square + np.array([i / count / 1000, 0]) for i in range(count)])
    rule = relation(areas(points, [5] * count, count), terms=[moved("place", "500", "m", "geodesic")])
    return with_cells(described(rule), count + 1)


def long_outlines() -> bytes:
    """Two regions of a hundred thousand corners each, of which none repeats."""
    turn = np.linspace(0, 2 * np.pi, 100_000)
    ring = np.stack([50 * np.cos(turn), 50 * np.sin(turn)], axis=-1)
    ring[-1] = ring[0]
    both = areas(np.concatenate([ring, ring * 0.9]), [len(ring)] * 2, 2)
    return with_cells(described(relation(both, terms=[moved("place", "10000000", "m", "geodesic")])), 3)


def hexagons_of_zeros() -> bytes:
    """A hundred million times the number zero as steps from one hexagon to the next."""
    steps = base64.b64encode(zlib.compress(bytes(800_000_000), 9)).decode()
    listed = {"kind": "hexagons", "name": "place", "resolution": 9, "rule": "h3-4", "digest": "", "levels": []}
    return with_cells(described(policy("unbounded", {**listed, "cells": steps, "made": {}})), 4)


def many_moves(
    axes: list[Description], cells: int, name: str, deltas: list[str], unit: str, metric: str
) -> Callable[[], bytes]:
    """One factor, and a rule for every delta, each of which would have moves of its own."""
    factors = [{"name": name, "axes": list(range(len(axes)))}]
    rule = relation(*axes, terms=[moved(name, delta, unit, metric) for delta in deltas], factors=factors)
    return lambda: with_cells(described(rule), cells)


def times(steps: list[list[int]]) -> Description:
    return {"kind": "times", "name": "t", "start": 0, "steps": steps, "tz": None}


def uneven(cells: int, name: str = "x", *, half: bool = False) -> Callable[[], bytes]:
    """Bins of many widths, whose values move half of the way, or appear and vanish."""
    edges = np.cumsum(np.arange(cells + 1) % 7 + 1).tolist()
    cut = {"kind": "bins", "name": name, "edges": edges}
    rule = relation(cut, terms=[moved(name, str(edges[-1] // 2), "own", "euclidean")])
    return lambda: with_cells(described(rule if half else policy("unbounded", cut)), cells)


def zones() -> bytes:
    """A zone of its own for every axis, whose changes of clocks are looked for."""
    names = [f"Etc/GMT{i:+}" for i in range(-14, 13) if i]
    names += ["Europe/Berlin", "America/New_York", "Africa/Cairo", "Asia/Gaza", "Africa/Casablanca", "Europe/London"]
    axes = [{**times([[1, 1]]), "name": f"t{i}", "tz": tz} for i, tz in enumerate(names)]
    return with_cells(described(policy("unbounded", *axes)), 1)


def asked(text: str) -> Callable[[], bytes]:
    """A release that says what it was asked."""
    said = {"ask": text, "epsilon": "1", "max_per_entity": None, "mechanism": None}
    return lambda: with_cells(described(policy("unbounded", axis(4))) | {"format": 3, "publication": said}, 4)


def hats(mechanism: str, theta: int, widest: int) -> Callable[[], bytes]:
    """As many hats as there may be, on a grid of a million cells."""
    rule = policy("threshold", axis(1024), axis(1024, "y"), theta=theta)
    options = {"widths": list(range(widest, widest - 63, -1)), "weights": [1] * 64}
    return lambda: with_cells(described(rule, mechanism, **options), MILLION)


RELEASES: dict[str, Callable[[], bytes]] = {
    "outlines of zeros": outlines_of_zeros,
    "hexagons of zeros": hexagons_of_zeros,
    "regions beyond the earth": regions_beyond(1e300),
    "regions beyond the poles": regions_beyond(1e6),
    "regions in one place": regions_in_one_place,
    "long outlines": long_outlines,
    "13 dimensions 64 times": many_moves(
        [axis(2, f"a{i}") for i in range(13)], 2**13, "place", [f"3.{i:03}" for i in range(64)], "own", "manhattan"
    ),
    "a million seconds 64 times": many_moves(
        [times([[10**6, MILLION]])], MILLION, "t", [f"{i}" for i in range(1, 65)], "s", "euclidean"
    ),
    "65,536 lengths of steps": many_moves(
        [times([[1 + i % 2, 1] for i in range(1 << 16)])], 1 << 16, "t", ["40000"], "s", "euclidean"
    ),
    "uneven bins": uneven(1 << 17),
    "uneven bins, far moves": uneven(1 << 17, half=True),
    "uneven bins of a long name": uneven(1 << 17, "n" * 300_000),
    "zones": zones,
    "questions in a row": asked(" + ".join(["ranges()"] * 50_000)),
    "ranges in a row": asked(f"ranges([{', '.join(['[0, 1]'] * 100_000)}])"),
    "64 edge-hats": hats("edge-hats", 1, 64),
    "64 hats with moves": hats("hats", 500, 164),
}


def publication(hide: str, domain: str, ask: str = "histogram()", epsilon: str = "1") -> Callable[[], bytes]:
    return lambda: f"hide = '''{hide}'''\nask = '{ask}'\nepsilon = {epsilon}\n\n{domain}\n".encode()


SQUARE = "[domain.place]\nbounds = [0, 0, 1, 1]\nshape = [8, 8]\n"
MICROSECONDS = "[domain.t]\nstart = 0001-01-01\nstop = 9999-12-31\nevery = '1 us'\n"
BOX = f"[domain.place]\nbounds = {[0] * 13 + [2] * 13}\nshape = {[2] * 13}\n"
MOVES = "|".join(f'move(3.{i:03}, metric="manhattan")' for i in range(64))
PUBLICATIONS: dict[str, Callable[[], bytes]] = {
    "an endless number": publication("move(0.1)", SQUARE, epsilon="'1e30000000'"),
    "an endless integer": publication("move(0.1)", SQUARE, epsilon="9" * 900_000),
    "an endless move": publication("move(1e30000000)", SQUARE),
    "endless cells": publication("move(0.1)", SQUARE.replace("8, 8", "9" * 4000 + ", 8")),
    "cells beyond count": publication("move(0.1)", SQUARE.replace("8, 8", "4000000, 400000")),
    "microseconds of all years": publication('move("1 s")', MICROSECONDS),
    "endless steps": publication('move("9 h")', "[domain.t]\nstart = 0\nsteps = [[1, 100000000000]]\n"),
    "64 terms again and again": publication(MOVES + '|move(3.000, metric="manhattan")' * 30_000, SQUARE),
    "all at once": publication("&".join(f'change("a{i}")' for i in range(50_000)), SQUARE),
    "13 dimensions 64 times": publication(MOVES, BOX),
    "a name in every message": publication(
        "anything()", f'[domain."{"n" * 300_000}"]\nedges = {list(range(90_000))}\n'
    ),
    "sources in a row": publication(
        f"move(0.1, sources=[{', '.join(['[0.1, 0.2]'] * 60_000)}])", SQUARE.replace("8, 8", "1000, 1000")
    ),
    "brackets": lambda: b"a = " + b"[" * 400_000,
    "parts of keys": lambda: b"a" + b".a" * 400_000 + b" = 1",
    "a text without an end": lambda: b'a = "' + b"x" * 1_000_000,
}


def described_publication(path: Path, name: str) -> object:
    """What is read of a file of a publication."""
    del name
    return sf.load_publication(path)


if __name__ == "__main__":
    main(sys.argv[1], RELEASES)
    main(sys.argv[1], PUBLICATIONS, described_publication, sf.SfumatoError)
    print("done")
