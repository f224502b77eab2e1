"""How fast is exact noise? sfumato's discrete Laplace against NumPy's floating-point Laplace and OpenDP's discrete one.

All three run in this process, one after the other in every round, and the best round of each counts; small draws are
repeated within a round. Rates are values per CPU second; the wall time of the same round stands beside it (a second
thread would show as a CPU time above the wall time). NumPy's noise is neither exact nor cryptographic: it is the speed
to compare with, not an alternative. OpenDP takes and returns Python lists, as it does wherever it is used from Python,
and that is part of its time.

    python bench/noise.py [--quick]
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import opendp.prelude as dp
from _report import table, write_json

from sfumato.noise import DiscreteLaplace, SystemSource

SCALES = (1, 10, 1000)
REPEATED = 10**6  # values in one round at least, but for OpenDP
OPENDP_LIMIT = 10**5  # it draws some hundred thousand values a second


def samplers(scale: int, size: int) -> dict[str, Callable[[], object]]:
    """One draw of `size` values by each library; what can be prepared beforehand is."""
    noise, source = DiscreteLaplace(Fraction(1, scale)), SystemSource()
    generator = np.random.default_rng()
    chosen: dict[str, Callable[[], object]] = {
        "sfumato": lambda: noise.sample(size, source),
        "numpy": lambda: generator.laplace(scale=scale, size=size),
    }
    if size <= OPENDP_LIMIT:
        space = dp.vector_domain(dp.atom_domain(T=int)), dp.l1_distance(T=int)
        measurement, zeros = dp.m.make_laplace(*space, scale=float(scale)), [0] * size
        chosen["opendp"] = lambda: measurement(zeros)
    return chosen


def measure(scale: int, size: int, rounds: int) -> list[dict[str, object]]:
    """The best of some rounds for each library, by CPU time, in seconds for one draw."""
    chosen = samplers(scale, size)
    best = dict.fromkeys(chosen, (float("inf"), float("inf")))
    for _ in range(rounds):
        for library, draw in chosen.items():
            repeats = 1 if library == "opendp" else max(1, REPEATED // size)
            wall, cpu = time.perf_counter(), time.process_time()
            for _ in range(repeats):
                draw()
            spent = (time.process_time() - cpu) / repeats, (time.perf_counter() - wall) / repeats
            best[library] = min(best[library], spent)
    reference = best["numpy"][0]
    return [
        {
            "scale": scale,
            "values": size,
            "library": library,
            "cpu_seconds": cpu,
            "wall_seconds": wall,
            "million_per_cpu_second": size / cpu / 1e6,
            "speed_over_numpy": reference / cpu,
        }
        for library, (cpu, wall) in best.items()
    ]


def main() -> None:
    """Measure, print, store."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="fewer rounds, and up to 10^6 values instead of 10^7")
    quick = parser.parse_args().quick
    dp.enable_features("contrib")
    sizes = [10**4, 10**5, 10**6] if quick else [10**4, 10**5, 10**6, 10**7]
    rows = [row for scale in SCALES for size in sizes for row in measure(scale, size, rounds=3 if quick else 7)]
    table(rows)
    print(f"\nwritten to {write_json('noise', {'benchmark': 'noise', 'quick': quick, 'rows': rows})}")


if __name__ == "__main__":
    main()
