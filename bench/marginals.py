"""Tables of products that no memory holds: errors beside ResidualPlanner's published ones, seconds and megabytes.

    python bench/marginals.py [records]

Xiao, He, Zhang, Kifer (NeurIPS 2023): root mean squared errors of all k-way tables with the sizes of Adult, CPS and
Loans, for Gaussian noise at privacy cost 1 (the sum over all that is measured of what a record moves, squared, over the
variance: ρ = 1/2 in zero-concentrated differential privacy, for a record that appears or vanishes). That accounting
adds up squares, and pure ε adds up sizes: the two are not to be compared as they stand. What can be compared:

    published    the paper's figure
    formula      the same from the paper's closed form, to be sure that the same is meant
    tables, L2   whole tables as they are measured here, weighed for the paper's own cost: what the residuals gain
    ε = 1        what a plan has at pure ε = 1, which implies ρ = 1/2: add/remove, replace-one, one attribute at a time

Then the ten attributes of ten values: planned, counted, published and answered.
"""

from __future__ import annotations

import math
import resource
import sys
import time
from itertools import combinations

import numpy as np
import pyarrow as pa
import scipy
from _report import table, write_json
from scipy.optimize import minimize

import sfumato as sf
from sfumato.linear.lattice import parts_of

SCHEMAS = {
    "Adult": [85, 9, 100, 16, 7, 15, 6, 5, 2, 100, 100, 99, 42, 2],
    "CPS": [50, 100, 7, 4, 2],
    "Loans": [101, 101, 101, 101, 3, 8, 36, 6, 51, 4, 5, 15],
}
PUBLISHED = {
    "Adult": {"1": 3.047, "2": 6.359, "3": 10.515, "up to 3": 10.665},
    "CPS": {"1": 1.744, "2": 2.035, "3": 2.048, "up to 3": 2.276},
    "Loans": {"1": 2.875, "2": 5.634, "3": 8.702, "up to 3": 8.876},
}
WAYS = {"1": [1], "2": [2], "3": [3], "up to 3": [0, 1, 2, 3]}

Axes = tuple[int, ...]


def product(sizes: list[int]) -> sf.Domain:
    space = sf.Categories([str(k) for k in range(sizes[0])], name="a0")
    for i, n in enumerate(sizes[1:], 1):
        space = space * sf.Categories([str(k) for k in range(n)], name=f"a{i}")
    return space


def asked(ways: list[int]) -> sf.Workload:
    terms = [sf.ask() if k == 0 else sf.marginals(k) for k in ways]
    found = terms[0]
    for term in terms[1:]:
        found = found + term
    return found


def tables_of(sizes: list[int], ways: list[int]) -> list[Axes]:
    return [axes for k in ways for axes in combinations(range(len(sizes)), k)]


def demand(sizes: list[int], tables: list[Axes]) -> dict[Axes, float]:
    """For every residual the variance of one of its measurements, summed over all cells of the tables."""
    found: dict[Axes, float] = {}
    for axes in tables:
        cells = math.prod(sizes[i] for i in axes)
        for part in parts_of(axes):
            within = math.prod((sizes[i] - 1) / sizes[i] for i in part)
            apart = math.prod(sizes[i] ** 2 for i in axes if i not in part)
            found[part] = found.get(part, 0.0) + within * cells / apart
    return found


def by_formula(sizes: list[int], tables: list[Axes]) -> float:
    """The least root mean squared error at cost 1, by Cauchy's inequality over the residuals."""
    roots = (
        math.sqrt(g * math.prod((sizes[i] - 1) / sizes[i] for i in part)) for part, g in demand(sizes, tables).items()
    )
    return sum(roots) / math.sqrt(sum(math.prod(sizes[i] for i in axes) for axes in tables))


def by_tables(sizes: list[int], tables: list[Axes]) -> float:
    """The same where whole tables are measured, with squared weights that sum to 1: convex in these."""
    wanted = demand(sizes, tables)
    parts = list(wanted)
    place = {part: i for i, part in enumerate(parts)}
    entries = [
        (place[part], j, math.prod(sizes[i] for i in part) / math.prod(sizes[i] for i in axes))
        for j, axes in enumerate(parts)
        for part in parts_of(axes)
    ]
    rows, columns, shares = zip(*entries, strict=True)
    precision = scipy.sparse.csr_matrix((shares, (rows, columns)), shape=(len(parts), len(parts)))
    g = np.array([wanted[part] for part in parts])

    def cost(logs: np.ndarray) -> tuple[float, np.ndarray]:
        squares = np.exp(logs)
        told, whole = precision @ squares, squares.sum()
        error = (g / told).sum()
        slope = squares / whole - squares * (precision.T @ (g / told**2)) / error
        return float(np.log(error) + np.log(whole)), slope

    best = minimize(cost, np.zeros(len(parts)), jac=True, method="L-BFGS-B", options={"maxiter": 3000, "maxfun": 4000})
    return math.sqrt(math.exp(best.fun) / sum(math.prod(sizes[i] for i in axes) for axes in tables))


def compared() -> list[dict[str, object]]:
    rows = []
    for name, sizes in SCHEMAS.items():
        space = product(sizes)
        alone = sf.change("a0")
        for i in range(1, len(sizes)):
            alone = alone | sf.change(f"a{i}")
        for ways, published in PUBLISHED[name].items():
            tables = tables_of(sizes, WAYS[ways])
            row: dict[str, object] = {"schema": name, "ways": ways, "published": published}
            row |= {"formula": by_formula(sizes, tables), "tables, L2": by_tables(sizes, tables)}
            begin = time.process_time()
            for relation, hide in (("add/remove", sf.presence()), ("replace", sf.anything()), ("one at a time", alone)):
                plan = sf.plan(sf.policy(space, hide=hide), asked(WAYS[ways]), epsilon=1, mechanism="marginals")
                row[f"ε = 1, {relation}"] = math.sqrt(plan.expected_error)
                if relation == "add/remove":
                    row["plan, s"] = round(time.process_time() - begin, 2)
                    row["tables"] = len(plan.mechanism.by_tables.lattice.sets)
            rows.append(row)
    return rows


def published_without_the_product(records: int) -> list[dict[str, object]]:
    """Ten attributes of ten values: 10¹⁰ cells, 45 tables."""
    space, ask = product([10] * 10), sf.marginals(2)
    values = np.array([str(k) for k in range(10)])
    data = pa.table({f"a{i}": values[np.random.default_rng(i).integers(0, 10, records)] for i in range(10)})
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    times = [time.perf_counter()]
    plan = sf.plan(sf.bounded(space), ask, epsilon=1)
    times.append(time.perf_counter())
    counts = sf.count(data, space, tables=plan.tables)
    times.append(time.perf_counter())
    release = plan.publish(counts)
    times.append(time.perf_counter())
    for a, b in combinations(range(10), 2):
        release.marginal(f"a{a}", f"a{b}")
    times.append(time.perf_counter())
    steps = ["plan", f"count {records:,} records", "publish", "45 tables with intervals"]
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) >> 10
    return [
        {"step": step, "seconds": round(after - begin, 2), "MB grown": grown if step == steps[-1] else None}
        for step, begin, after in zip(steps, times, times[1:], strict=False)
    ]


def main(records: int = 1_000_000) -> None:
    steps = published_without_the_product(records)
    table(steps)
    print()
    rows = compared()
    table(rows)
    print(write_json("marginals", {"errors": rows, "ten by ten": steps}))


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
