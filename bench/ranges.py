"""How well are all ranges answered under plain differential privacy? Against HDMM and the others, times ε².

The mean squared error of a range, over all of them, at ε = 1 with continuous noise, under add/remove (and ours under
replace-one too). Every error is exact: nothing is drawn. The figures of the peers were measured beforehand, by running
their published code on a machine of two cores: HDMM optimises for minutes at 4096 cells (p = 64 in 199 s, its default
p = 256 in 605 s), ours follow from the length in closed form. Seconds are those of `sf.plan` with nothing remembered:
to weigh every mechanism, of which ours is one.

    python bench/ranges.py [--quick]        --quick leaves out a million cells
"""

from __future__ import annotations

import argparse
import time
from fractions import Fraction

from _report import table, write_json

import sfumato as sf

SMALL = Fraction(1, 1000)  # so little privacy loss that discrete noise is as good as continuous

# cells: what the peers' code reaches
PEERS: dict[int, dict[str, float]] = {
    256: {"HDMM": 65.4},
    1024: {"HDMM": 124.7},
    4096: {"Privelet": 686, "GreedyH": 495, "HB": 262, "HDMM": 205.9},
}


def error(policy: sf.Policy, mechanism: str) -> float:
    """The expected squared error of a range, times ε²."""
    return sf.plan(policy, sf.ranges(), SMALL, mechanism=mechanism).expected_error * float(SMALL) ** 2


def measure(shape: tuple[int, ...]) -> dict[str, object]:
    """One domain, beside the peers."""
    d = len(shape)
    domain = sf.Line(0, 1, cells=shape[0]) if d == 1 else sf.Grid(bounds=(0,) * d + (1,) * d, shape=shape)
    plain = sf.unbounded(domain)
    start = time.perf_counter()
    plan = sf.plan(plain, sf.ranges(), SMALL)
    seconds = time.perf_counter() - start
    peers = PEERS.get(domain.size, {}) if d == 1 else {}
    return {
        "cells": "×".join(map(str, shape)),
        **{name: peers.get(name) for name in ("Privelet", "GreedyH", "HB", "HDMM")},
        "hierarchy": error(plain, "hierarchy"),
        "hats": error(plain, "hats"),
        "replace-one: hierarchy": error(sf.bounded(domain), "hierarchy"),
        "replace-one: hats": error(sf.bounded(domain), "hats"),
        "the plan takes": plan.mechanism.name,
        "seconds": seconds,
    }


def main() -> None:
    """All sizes, as a table and as JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true")
    options = parser.parse_args()
    sf.plan(sf.unbounded(sf.Line(0, 1, cells=16)), sf.ranges(), 1)  # what is imported late is imported now
    shapes: list[tuple[int, ...]] = [(64,), (256,), (1024,), (4096,), (65_536,)]
    shapes += [] if options.quick else [(1_000_000,)]
    shapes += [(64, 64), (256, 256), (1024, 1024)]
    rows = [measure(shape) for shape in shapes]
    table(rows)
    print(f"\nwritten to {write_json('ranges', {'rows': rows})}")


if __name__ == "__main__":
    main()
