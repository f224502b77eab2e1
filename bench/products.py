"""What do several questions about a product of factors cost, asked of one release? And how long does a large one take?

Four questions about 32 × 32 places, 24 hours and 4 groups: a map, a map of every hour, ranges of hours of every group,
boxes in place and time of every group. Each error is set beside the best that a plan reaches for that question alone,
under the same relation and ε; the mean of these four ratios is what asking all of them costs. The rivals: noise on
every cell (identity), one hierarchy along every axis (a product, as HDMM's OPT_⊗), a quarter of ε for the best
mechanism of each question (a split, as OPT_+, which is 16 by arithmetic). Every error is exact: nothing is drawn.

Then whether other tables would do better: the best of a thousand random sparse choices among 540 tables, of blocks of
1, 2, 4, 8, 16 and 32 cells either way, 1, 2, 4, 12 and 24 hours, and 1, 2 and 4 groups, each improved until it stays.

Then 256 × 256 places × 24 hours × 4 groups, 6.3 million cells, planned and published in a process of its own: seconds
of processor time, and the most memory that it held.

    python bench/products.py [--quick]      --quick leaves out the large one
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time
from fractions import Fraction

import numpy as np
from _report import table, write_json

import sfumato as sf
from sfumato.linear import Nests
from sfumato.mechanism.cells import level_tuning as tuning

SMALL = Fraction(1, 1000)  # so little privacy loss that discrete noise is as good as continuous
NAMES = ["map", "map of every hour", "ranges of hours × group", "boxes × ranges of hours × group"]


def space(side: int) -> sf.Domain:
    """Places, hours and groups."""
    place = sf.Grid(bounds=(0, 0, 1, 1), shape=(side, side))
    return place * sf.Line(0, 24, cells=24, name="hour") * sf.Categories(["a", "b", "c", "d"], name="group")


def questions() -> list[sf.Workload]:
    """The four."""
    return [
        sf.ask(place=sf.histogram()),
        sf.ask(place=sf.histogram(), hour=sf.histogram()),
        sf.ask(hour=sf.ranges(), group=sf.histogram()),
        sf.ask(place=sf.ranges(), hour=sf.ranges(), group=sf.histogram()),
    ]


FINE = [[1, 2, 4, 8, 16], [1, 2, 4, 8, 16], [1, 2, 4, 12], [1, 2]]
STARTS, AT_ONCE = 1000, 100


def searched(policy: sf.Policy, together: sf.Workload) -> float:
    """The least mean squared error of any tables that a search finds, before weights are rounded to whole numbers."""
    nests = Nests(policy.domain.shape, FINE)
    parts, costs, volumes = tuning._parts(together, policy.domain), tuning.change_costs(policy, nests), nests.volumes()
    asked = np.where(costs.any(axis=0), tuning._asked(nests, parts), 0.0)
    rng, least = np.random.default_rng(0), np.inf
    for _ in range(STARTS // AT_ONCE):
        starts = np.full((AT_ONCE, volumes.size), 1e-3)
        for row in starts:
            row[rng.choice(volumes.size, rng.integers(2, 12), replace=False)] = np.exp(rng.normal())
        starts = starts.reshape(AT_ONCE, *volumes.shape)
        for _, part in parts:
            own = tuple(tuning._own_level(nests, axis, kind) for axis, kind in enumerate(part.kinds))
            starts[(rng.random(AT_ONCE) < 0.8, *own)] = 1.0
        found = tuning._improved(asked, volumes, costs, starts, 60)
        best = np.argsort(tuning.expected_errors(asked, volumes, costs, found))[:5]
        found = tuning._improved(asked, volumes, costs, found[best], 300)
        least = min(least, float(tuning.expected_errors(asked, volumes, costs, found).min()))
    return 2 * least / float(SMALL) ** 2


def relations(domain: sf.Domain) -> dict[str, sf.Policy]:
    """What is hidden."""
    one = sf.change("place") | sf.change("hour") | sf.change("group")
    return {
        "add/remove": sf.unbounded(domain),
        "replace-one": sf.bounded(domain),
        "one factor at a time": sf.policy(domain, hide=one),
    }


def measure(name: str, policy: sf.Policy) -> list[dict[str, object]]:
    """All rivals under one relation."""
    domain, asked = policy.domain, questions()
    alone = [sf.plan(policy, question, SMALL).expected_error for question in asked]
    each = [Fraction(1 / (q.count(domain) * best)) * q for q, best in zip(asked, alone, strict=True)]
    together = each[0] + each[1] + each[2] + each[3]
    start = time.process_time()
    plan = sf.plan(policy, together, SMALL)
    seconds = time.process_time() - start
    found = []
    for rival in ["identity", "hierarchy", "hats", "levels"]:
        made = plan if rival == plan.mechanism.name else sf.plan(policy, together, SMALL, mechanism=rival)
        ratios = [made.mechanism.model.expected_error(q, domain) / best for q, best in zip(asked, alone, strict=True)]
        found.append(_row(name, rival, ratios, seconds if made is plan else None))
    split = [sf.plan(policy, q, SMALL / 4).expected_error / best for q, best in zip(asked, alone, strict=True)]
    ratios = [plan.mechanism.model.expected_error(q, domain) / best for q, best in zip(asked, alone, strict=True)]
    least = searched(policy, together) / plan.expected_error * float(np.mean(ratios))
    rest = found[-1] | dict.fromkeys([*NAMES, "s"]) | {"mechanism": "any tables, searched", "mean": round(least, 2)}
    return [*found[:-1], _row(name, "a quarter of ε each", split, None), found[-1], rest]


def _row(relation: str, rival: str, ratios: list[float], seconds: float | None) -> dict[str, object]:
    each = {name: round(ratio, 2) for name, ratio in zip(NAMES, ratios, strict=True)}
    return {"relation": relation, "mechanism": rival, "mean": round(float(np.mean(ratios)), 2), **each, "s": seconds}


def large() -> dict[str, object]:
    """Plan and publish 6.3 million cells, here."""
    domain = space(256)
    policy = relations(domain)["one factor at a time"]
    asked = questions()
    weighed = asked[0] + asked[1] + 1000 * asked[2] + Fraction(1, 100_000) * asked[3]
    counts = np.random.default_rng(0).poisson(3, domain.shape)
    before = time.process_time()
    plan = sf.plan(policy, weighed, epsilon=1)
    planned = time.process_time()
    release = plan.publish(counts)
    published = time.process_time()
    release.answer((0.1, 0.1, 0.3, 0.4), hour=(7, 9), group=["a", "c"])
    return {
        "cells": domain.size,
        "mechanism": plan.mechanism.describe(),
        "plan s": planned - before,
        "publish s": published - planned,
        "answer s": time.process_time() - published,
        "GB": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1 << 20 if sys.platform != "darwin" else 1 << 30),
    }


def main() -> None:
    """All relations, as a table and as JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--large", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.large:
        print(json.dumps(large()))
        return
    rows = [row for name, policy in relations(space(32)).items() for row in measure(name, policy)]
    table(rows)
    payload: dict[str, object] = {"rows": rows}
    if not options.quick:
        run = [sys.executable, __file__, "--large"]
        found = json.loads(subprocess.run(run, check=True, capture_output=True, text=True).stdout)
        payload["large"] = found
        print()
        table([found])
    print(f"\nwritten to {write_json('products', payload)}")


if __name__ == "__main__":
    main()
