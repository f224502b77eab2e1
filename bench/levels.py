"""Levels: what states, counties, tracts and blocks will have, and what 2.4 million blocks take.

    python bench/levels.py [small]

A lattice of 50 × 60 × 20 × 40 blocks, tracts, counties and states (`small`: 10 × 12 × 6 × 8) under moves to the cells
beside (rook), to these and those across corners (queen), and under add/remove; ε = 1. For every level the mean squared
error of noise on the policy's edges, of a tree with one rate a level, and of one by the classes of borders. Then one
plan that weighs everything for `sf.levels()`, and a release: CPU seconds of one process, and its largest memory so far.
"""

from __future__ import annotations

import resource
import sys
import time
from fractions import Fraction

import numpy as np
from _report import table, write_json

import sfumato as sf
from sfumato.mechanism import build, variants
from sfumato.workload import CELLS, Groups

LARGE = ((5, 10), (6, 10), (4, 5), (5, 8))
SMALL = ((2, 5), (3, 4), (2, 3), (2, 4))
NAMES = ("state", "county", "tract")


def lattice(sizes):
    """(domain, edges beside, edges across corners): blocks in the order of their codes, on a lattice of places."""
    x = y = np.zeros(1, dtype=np.int64)
    for a, b in sizes:
        i, j = np.divmod(np.arange(a * b), b)
        x, y = (x[:, None] * a + i).ravel(), (y[:, None] * b + j).ravel()
    n, levels = len(x), {}
    cell, within = np.arange(n), n
    for name, (a, b) in zip(NAMES, sizes, strict=False):
        within //= a * b
        called = [f"{name} {group}" for group in range(n // within)]
        levels[name] = [called[group] for group in (cell // within).tolist()]
    grid = np.empty((x.max() + 1, y.max() + 1), dtype=np.int64)
    grid[x, y] = cell
    beside = [(grid[1:], grid[:-1]), (grid[:, 1:], grid[:, :-1])]
    across = [(grid[1:, 1:], grid[:-1, :-1]), (grid[1:, :-1], grid[:-1, 1:])]
    rook, corners = (
        np.concatenate([np.stack([u.ravel(), v.ravel()], axis=-1) for u, v in pairs]) for pairs in (beside, across)
    )
    return sf.Categories(range(n), name="block", levels=levels), rook, corners


def errors(mechanism, domain):
    """The mean squared error of the groups of every level and of the cells."""
    levels = [Groups(level.name, level.of) for level in domain.axes[0].coarser]
    return [round(mechanism.model.error_of([kind]), 1) for kind in (*levels, CELLS)]


def by_class(policy, workload):
    for name, options in variants(policy, workload):
        if name == "tree" and "classes" in options["along"][0]:
            return build(name, policy, Fraction(1), **options)
    return None


def timed(work):
    begin = time.process_time()
    found = work()
    return (
        found,
        round(time.process_time() - begin, 1),
        round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20, 2),
    )


def main(size: str = "large") -> None:
    domain, rook, corners = lattice(SMALL if size == "small" else LARGE)
    counts = np.random.default_rng(0).poisson(3, domain.size)
    makers = {
        "add/remove": lambda: sf.unbounded(domain),
        "rook": lambda: sf.graph(domain, rook),
        "queen": lambda: sf.graph(domain, np.concatenate([rook, corners])),
    }
    rows, work = [], []
    for name, make in makers.items():
        policy, made, _ = timed(make)
        tried = {"edges": sf.plan(policy, sf.levels(), epsilon=1, mechanism="edges").mechanism}
        tried["tree, one rate"] = sf.plan(policy, sf.levels(), epsilon=1, mechanism="tree").mechanism
        tried["tree, by class"] = by_class(policy, sf.levels())
        for told, mechanism in tried.items():
            if mechanism is not None:
                found = errors(mechanism, domain)
                rows.append({"policy": name, "mechanism": told, **dict(zip((*NAMES, "block"), found, strict=True))})
        plan, planned, memory = timed(lambda policy=policy: sf.plan(policy, sf.levels(), epsilon=1))
        release, published, memory = timed(lambda plan=plan: plan.publish(counts))
        _, answered, memory = timed(lambda release=release: release.answer(by="tract"))
        work.append(
            {
                "policy": name,
                "cells": domain.size,
                "edges": policy.moves.count(domain.shape),
                "takes": plan.mechanism.name,
                "policy, s": made,
                "plan, s": planned,
                "publish, s": published,
                "by tract, s": answered,
                "largest, GB": memory,
            }
        )
    table(rows)
    print()
    table(work)
    write_json("levels", {"errors": rows, "work": work})


if __name__ == "__main__":
    main(*sys.argv[1:])
