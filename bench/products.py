"""What do several questions about a product of factors cost, asked of one release? And how long does a large one take?

Four questions about 32 × 32 places, 24 hours and 4 groups: a map, a map of every hour, ranges of hours of every group,
boxes in place and time of every group. Each error is set beside the best that a plan reaches for that question alone,
under the same relation and ε; the mean of these four ratios is what asking all of them costs. The rivals: noise on
every cell (identity), one hierarchy along every axis (a product, as HDMM's OPT_⊗), a quarter of ε for the best
mechanism of each question (a split, as OPT_+, which is 16 by arithmetic). Every error is exact: nothing is drawn.

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
    return [*found[:-1], _row(name, "a quarter of ε each", split, None), found[-1]]


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
