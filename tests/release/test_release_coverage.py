"""Every mechanism that gives intervals, on one to three axes: an interval holds the truth as often as it says.

No sampling: on small domains the law of an answer is computed from the estimator itself, noise by noise.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache
from pathlib import Path

import numpy as np
import pytest
from coverage_oracle import Floats, Law, boxes, moved_by_noise

import sfumato as sf
from sfumato.mechanism.base import LinearMechanism
from sfumato.release import intervals
from sfumato.release.intervals import cell_margins, query_margins, range_margins

DOMAINS = {
    "line": sf.Line(0, 1, cells=24),
    "grid": sf.Grid(bounds=(0, 0, 1, 1), shape=(6, 5)),
    "cube": sf.Grid(bounds=(0, 0, 0, 1, 1, 1), shape=(4, 3, 3)),
    "labels": sf.Categories(["bus", "tram", "bike", "foot"]),
    "levels": sf.Categories(list("abcde"), levels={"half": list("LLRRR")}),
    "mixed": sf.Domain((sf.Interval("hour", 0, 24, 6), sf.Labels("kind", ("a", "b", "c")))),
    "graph": sf.Line(0, 1, cells=6),
}
POLICIES: dict[str, Callable[[sf.Domain], sf.Policy]] = {
    "bounded": sf.bounded,  # the total is public here, under neighbours and near, and private under the others
    "unbounded": sf.unbounded,
    "neighbours": lambda domain: sf.threshold(domain, 1),
    "near": lambda domain: sf.threshold(domain, 2),
    "sources": lambda domain: sf.within(domain, delta=0.3, sources=[[0.1] * domain.ndim]),
    "ring": lambda domain: sf.graph(domain, edges=[(i, (i + 1) % 6) for i in range(6)]),
    "door": lambda domain: sf.graph(
        domain, edges=[(0, 1), (1, 2), (2, 0), (3, 4), (4, 5), (1, sf.ABSENT), (4, sf.ABSENT)]
    ),
}
WITHOUT = (
    "shifted",
    "shifted-edges",
    "sorted",
    "consistent",
    "dawa",
    "adaptive-grid",
    "quadtree",
)  # their error depends on the data


PLACES = [  # which policies there are on which domain
    (domain, policy)
    for domain, d in DOMAINS.items()
    for policy in POLICIES
    if (policy in ("ring", "door")) == (domain == "graph")
    and (policy not in ("neighbours", "near", "sources") or d.is_spatial)
]


@lru_cache(maxsize=4)
def built(domain: str, policy: str, epsilon: float) -> dict[str, LinearMechanism]:
    """Everything that can be built, by name."""
    given = POLICIES[policy](DOMAINS[domain])
    workload, found = sf.ranges() if given.domain.is_spatial else sf.histogram(), {}
    for name in sf.mechanisms():
        try:
            mechanism = sf.plan(given, workload, epsilon, mechanism=name).mechanism
        except sf.SfumatoError:
            continue
        if not mechanism.biased:
            found[name] = mechanism
    return found


def asked(shape: tuple[int, ...], seed: str) -> tuple[Floats, Floats]:
    """Boxes from one cell to the whole: single cells, sides of all lengths, all but one row, and cut cells."""
    rng, d = np.random.default_rng(zlib.crc32(seed.encode())), len(shape)
    whole, none = np.array(shape, dtype=float), np.zeros(d)
    first = np.eye(d)[np.argmax(shape)]
    parts = [(none, none + 1), (whole - 1, whole), (none, whole), (first, whole), (none, whole - first / 4)]
    parts.append((none + 0.3, whole - 0.25))
    for _ in range(4):
        ends = [np.sort(rng.choice(n + 1, 2, replace=False)) for n in shape]
        parts.append((np.array([a for a, _ in ends], float), np.array([b for _, b in ends], float)))
    return np.array([a for a, _ in parts]), np.array([b for _, b in parts])


def check(laws: list[Law], stderr: Floats, margin: Floats, confidence: float, *, tight: bool) -> None:
    """The standard error is the dense one; the interval holds; what is exactly known has none."""
    dense = np.array([law.deviation for law in laws])
    assert stderr == pytest.approx(dense, rel=1e-4, abs=1e-4 * dense.max())
    for law, width in zip(laws, margin, strict=True):
        if law.deviation < 1e-6 * dense.max():
            assert width <= 1e-4 * dense.max()
            continue
        assert law.holds(width) >= confidence - 1e-9
        # Not too wide either: with a fifth less, and two steps, it would not hold. Where there is but a bound for a
        # kurtosis, the middle and the tails of a law are known less well.
        less = 0.8 if confidence == 0.95 else 0.6
        assert not tight or law.holds(less * width - 2 * law.largest) < confidence


def all_answers(
    domain: str, policy: str, name: str, epsilon: float, confidences: tuple[float, ...], *, rough: bool = False
) -> None:
    """Ranges, queries and cells; with `rough` also as where a domain is too large to be written out. There a lattice is
    met by half a step, and sparse noise by the tails of the continuous one: an interval may be wider.
    """
    mechanism = built(domain, policy, epsilon)[name]
    shape, model = DOMAINS[domain].shape, mechanism.model
    terms = moved_by_noise(mechanism)
    low, high = asked(shape, f"{domain} {policy} {name}")
    q = boxes(shape, low, high)
    felt = [Law([(row @ columns, law) for columns, law in terms]) for row in q]
    cell = [0, math.prod(shape) // 2]
    alone = [Law([(columns[c], law) for columns, law in terms]) for c in cell]
    for tight in (True, False) if rough else (True,):
        with pytest.MonkeyPatch.context() as patched:
            if not tight:
                patched.setattr(intervals, "FEW_CELLS", 0)
            for confidence in confidences:
                check(felt, *range_margins(model, low, high, confidence), confidence, tight=tight)
                check(felt, *query_margins(model, q, confidence), confidence, tight=tight)
                check(alone, *(of.ravel()[cell] for of in cell_margins(model, confidence)), confidence, tight=tight)


@pytest.mark.parametrize(("domain", "policy"), PLACES)
def test_intervals_hold_as_often_as_they_say(domain: str, policy: str) -> None:
    for name in built(domain, policy, 1):
        all_answers(domain, policy, name, 1, (0.95,))


@pytest.mark.slow  # a law is summed up for every answer of every mechanism, and met in six ways
@pytest.mark.parametrize("epsilon", [0.05, 1, 8])
@pytest.mark.parametrize(("domain", "policy"), PLACES)
def test_intervals_hold_at_any_confidence_and_epsilon(domain: str, policy: str, epsilon: float) -> None:
    for name in built(domain, policy, 1):
        all_answers(domain, policy, name, epsilon, (0.5, 0.95, 0.999), rough=epsilon >= 1)


def test_every_mechanism_is_here() -> None:
    places = (("line", "near"), ("grid", "near"), ("graph", "ring"), ("levels", "bounded"))
    names = {name for place in places for name in built(*place, 1)}
    assert names == set(sf.mechanisms()) - set(WITHOUT) - {"marginals"}  # whose answers have a test of their own


@pytest.mark.parametrize("name", WITHOUT)
def test_where_the_error_depends_on_the_data_no_interval_is_given(name: str) -> None:
    """Not a narrow one either: NaN, in answers, queries and cells."""
    line = sf.Line(0, 1, cells=12)
    given = {"points": np.linspace(0, 0.99, 40)} if name == "sorted" else {"counts": np.arange(12)}
    release = sf.plan(sf.threshold(line, 2), sf.ranges(), 1, mechanism=name).publish(**given)
    release = replace(release, measured=None) if name in ("adaptive-grid", "quadtree") else release  # parts
    everything = release.answer((0, 1))
    assert (everything.value, everything.low, everything.high) == (release.total,) * 3  # the total is public
    smooth = name.startswith("shifted")  # these know the sums over their bins, which bracket a range
    for answer in (release.answer([(0, 0.5), (0.25, 1)]), release.query(np.eye(12)), release.cells()):
        if not (smooth and answer.range is not None):
            assert np.isnan(answer.low).all() and np.isnan(answer.high).all()
        assert np.isnan(answer.stderr).all() == (not smooth)


# ---------------------------------------------------------------------------------------------- large domains

LARGE = [
    ((256, 256), "hats"),
    ((256, 256), "hierarchy"),
    ((256, 256), "haar"),
    ((256, 256), "edge-hierarchy"),
    ((256, 256), "edge-hats"),
    ((256, 256), "diagonal-hats"),
    ((256, 256), "hat-products"),
    ((64, 64, 64), "hierarchy"),
    ((64, 64, 64), "hats"),
    ((16, 16, 16, 16), "hierarchy"),
    ((16, 16, 16, 16), "identity"),
    ((16, 16, 16, 16), "levels"),
]


@pytest.mark.slow
@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize(("shape", "name"), LARGE)
def test_on_large_domains_errors_lie_in_their_intervals(shape: tuple[int, ...], name: str, known: bool) -> None:
    """Boxes of one cell to a quarter of a side, 1,000 and more of each size, with one seeded stream.

    A false alarm is 4.9 standard errors of a binomial proportion, less than one in a million: the boxes of a size do
    not overlap and share little noise. Deviations are held to a tenth.
    """
    domain = sf.Domain(tuple(sf.Interval(f"x{i}", 0, 1, n) for i, n in enumerate(shape)))
    policy = (sf.bounded if known else sf.unbounded)(domain)
    if name.startswith(("edge", "diagonal")):
        policy = sf.threshold(domain, 1) if known else sf.within(domain, delta=0.1, sources=[[0.5] * len(shape)])
    plan, source = sf.plan(policy, sf.ranges(), 1, mechanism=name), sf.SeededSource(5)
    stride = (
        64 if name == "haar" else max(4, min(shape) // 16)
    )  # beyond 64 cells Haar's boxes share much of their noise
    corners = np.stack(np.meshgrid(*[np.arange(1, n - 1, stride) for n in shape], indexing="ij"), axis=-1)
    low = corners.reshape(-1, len(shape)).astype(float)
    releases = [plan.publish(np.zeros(shape, int), source=source) for _ in range(-(-1000 // len(low)))]
    for side in sorted({1, 2, stride // 2, stride - 2}):
        deviation, margin = range_margins(plan.mechanism.model, low, low + side, 0.95)
        found = np.array([release._view.table.fractional_sums(low, low + side) for release in releases])
        held, count = (np.abs(found) <= margin + 1e-6).mean(), found.size
        assert held >= 0.95 - 4.9 * math.sqrt(0.05 * 0.95 / count)
        assert held <= 0.99
        assert math.sqrt(((found / deviation) ** 2).mean()) == pytest.approx(
            1, abs=0.1 + 4.9 * math.sqrt(5 / (4 * count))
        )


# ---------------------------------------------------------------------------------------------- later levels


def test_refined_patched_and_loaded_releases_have_the_intervals_of_their_own_level(tmp_path: Path) -> None:
    """Hats under a public total: every level answers as a fresh plan at its ε would, and no interval has no width."""
    grid = sf.Grid(bounds=(0, 0, 1, 1), shape=(64, 64))
    policy, vault = sf.bounded(grid), sf.Vault(tmp_path / "secrets", key=tmp_path / "vault.key")
    first = sf.plan(policy, sf.ranges(), 1, mechanism="hats").publish(np.ones((64, 64), int), vault=vault)
    second = first.refine(3, vault=vault)
    boxes = [
        (i / 64, j / 64, (i + side) / 64, (j + side) / 64) for side in (1, 4, 30) for i in (0, 30) for j in (7, 31)
    ]
    for release, epsilon in ((first, 1), (second, 3), (first.apply(second.patch_from(first)), 3)):
        again = sf.load(release.save(tmp_path / f"{epsilon}.sfumato"))
        fresh = sf.plan(policy, sf.ranges(), epsilon, mechanism="hats", **first.mechanism.options)
        low, high = (ends.reshape(-1, 2) for ends in grid.fractional(boxes))
        stderr, margin = range_margins(fresh.mechanism.model, low, high, 0.95)
        for answered in (release.answer(boxes, cut="proportion"), again.answer(boxes, cut="proportion")):
            assert answered.stderr == pytest.approx(stderr)
            assert (answered.high - answered.low) / 2 == pytest.approx(margin)
            assert (answered.high - answered.low > 1).all()
