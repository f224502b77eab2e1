"""Figures 1 and 2 of Koufogiannis, Han, Pappas (2015), in integers, and what gradual release saves.

- Figure 1: the law of the finer noise given the coarser one (ε = 1 and 2, sensitivity 1 over 20 steps of a lattice, so that
  it can be seen): an atom where nothing changed, and exponential pieces beside it; drawn against the paper's equation 2.
- Figure 2: paths of the noise as ε grows from 0.05 to 20: it changes seldom, and ends at zero.
- Composition: a release at ε₁ and a finer one. Gradual release gives the finer one the accuracy of ε₂; two independent
  releases with the same promise give it ε₂ - ε₁, or both averaged with the best weights.
- A map at four levels of one release, with the sizes of the patches that lead from one to the next.
- Speed: refining against drawing afresh.

    python bench/papers/gradual.py [--quick] [--picture docs/img/gradual.png] [--map docs/img/gradual-map.png]
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from fractions import Fraction
from itertools import pairwise
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))
from _report import OUT, table, write_json

import sfumato as sf
from sfumato.app.city import BOUNDS, make_city
from sfumato.noise import DiscreteLaplace, SystemSource
from sfumato.noise.gradual import Refinable

SOURCE = SystemSource()
LATTICE = 20  # steps of the lattice to one unit of sensitivity


def conditional(samples: int) -> dict:
    """The finer noise where the coarser one is one unit: measured, and the paper's atom for it."""
    coarse = Refinable.draw(Fraction(1, LATTICE), samples, SOURCE)
    fine = coarse.refine(Fraction(2, LATTICE), SOURCE)
    there = coarse.value == LATTICE
    values = fine.value[there]
    at = np.arange(-3 * LATTICE, 4 * LATTICE + 1)
    counts = np.array([(values == v).mean() for v in at]) * LATTICE
    # Equation 2: the density of y given x, for ε₁ = 1 and ε₂ = 2, and the atom (ε₁/ε₂)·e^{-(ε₂-ε₁)|x|}.
    e1, e2, x, y = 1.0, 2.0, 1.0, at / LATTICE
    density = (e2**2 - e1**2) / (2 * e1) * np.exp(-e1 * np.abs(x - y) - e2 * np.abs(y)) * (e1 / e2)
    density /= np.exp(-e1 * abs(x))
    # On a lattice the place of the atom also holds one step of the density.
    atom = float((values == LATTICE).mean()) - float(density[at == LATTICE][0]) / LATTICE
    return {
        "count": int(there.sum()),
        "atom": atom,
        "atom of the paper": e1 / e2 * float(np.exp(-(e2 - e1) * abs(x))),
        "at": (at / LATTICE).tolist(),
        "measured": counts.tolist(),
        "paper": density.tolist(),
    }


def paths(count: int) -> dict:
    """The noise of some values over many levels, and how often a value changes in a step of one per cent."""
    levels = [Fraction(round(1000 * 0.05 * 1.03**i), 1000) for i in range(200)]
    noise = Refinable.draw(levels[0] / LATTICE, count, SOURCE)
    found = [noise.value / LATTICE]
    changes = 0
    for before, after in pairwise(levels):
        if after == before:
            found.append(found[-1])
            continue
        noise = noise.refine(after / LATTICE, SOURCE)
        found.append(noise.value / LATTICE)
        changes += int((found[-1] != found[-2]).sum())
    return {
        "epsilon": [float(level) for level in levels],
        "paths": np.array(found).T.tolist(),
        "changes a path": changes / count,
    }


def composition() -> list[dict]:
    """The variance of the best answer after the second release, for the same promise ε₂ over both."""
    rows = []
    for first, second in ((0.1, 1.0), (0.5, 1.0), (0.9, 1.0), (1.0, 2.0)):
        gradual = DiscreteLaplace(Fraction(str(second))).variance
        one = DiscreteLaplace(Fraction(str(first))).variance
        rest = DiscreteLaplace(Fraction(str(second)) - Fraction(str(first))).variance
        both = 1 / (1 / one + 1 / rest)
        rows.append(
            {
                "first": first,
                "then": second,
                "gradual": gradual,
                "second alone": rest,
                "both averaged": both,
                "loss of composition": both / gradual,
            }
        )
    return rows


def speed(size: int) -> list[dict]:
    """CPU seconds for drawing afresh and for refining, best of three."""
    rows = []
    for rate in (Fraction(1), Fraction(1, 10), Fraction(1, 1000)):
        for factor in (Fraction(101, 100), Fraction(2), Fraction(10)):
            base = Refinable.draw(rate, size, SOURCE)
            fresh = min(_cpu(Refinable.draw, rate * factor, size, SOURCE) for _ in range(3))
            finer = min(_cpu(base.refine, rate * factor, SOURCE) for _ in range(3))
            rows.append(
                {"rate": str(rate), "times": float(factor), "fresh": fresh, "refined": finer, "ratio": finer / fresh}
            )
    return rows


def _cpu(work, *given) -> float:
    start = time.process_time()
    work(*given)
    return time.process_time() - start


def levels_of_a_map() -> tuple[list[dict], list[sf.Release]]:
    """One map at ε = 0.1, 0.3, 1 and 3, each refined from the one before."""
    city = make_city(60_000, 1.5, seed=7)
    grid = sf.Grid(bounds=BOUNDS, shape=(96, 96))
    points = np.stack([city.lon, city.lat], axis=-1)
    plan = sf.plan(sf.within(grid, delta=0.007), sf.ranges(), "0.1")
    with tempfile.TemporaryDirectory() as folder:
        vault = sf.Vault(Path(folder) / "secrets", key=Path(folder) / "vault.key")
        ledger = sf.Ledger.create(Path(folder) / "budget.db", epsilon=3)
        releases = [plan.publish(points=points, vault=vault, ledger=ledger)]
        rows = []
        for epsilon in ("0.1", "0.3", "1", "3"):
            if epsilon != "0.1":
                releases.append(releases[-1].refine(epsilon, vault=vault, ledger=ledger))
            release = releases[-1]
            patch = release.patch_from(releases[-2]) if len(releases) > 1 else None
            rows.append(
                {
                    "epsilon": epsilon,
                    "mechanism": release.mechanism.name,
                    "error a range": release.mechanism.model.expected_error(sf.ranges(), grid),
                    "ledger spent": str(ledger.spent),
                    "changed": None if patch is None else len(patch.places),
                    "patch, bytes": None if patch is None else len(patch.to_bytes()),
                }
            )
    return rows, releases


def main() -> None:
    """Tables, JSON and pictures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--picture", type=Path, default=OUT / "gradual.png")
    parser.add_argument("--map", type=Path, default=OUT / "gradual-map.png")
    options = parser.parse_args()
    OUT.mkdir(exist_ok=True)
    law = conditional(10**6 if options.quick else 10**7)
    print(f"Figure 1: atom {law['atom']:.4f}, of the paper {law['atom of the paper']:.4f} ({law['count']:,} values)")
    walk = paths(2_000)
    print(f"Figure 2: a path changes {walk['changes a path']:.1f} times in 199 steps of 3 %")
    print("\nvariance after the second release, for the same promise over both")
    composed = composition()
    table(composed)
    print("\none map, four levels")
    rows, releases = levels_of_a_map()
    table(rows)
    print("\nCPU seconds")
    timed = speed(10**6 if options.quick else 10**7)
    table(timed)
    walk["paths"] = walk["paths"][:12]
    path = write_json("gradual", {"law": law, "paths": walk, "composition": composed, "map": rows, "speed": timed})
    print(f"written to {path}")
    draw(law, walk, options.picture)
    draw_maps(releases, options.map)


def draw(law: dict, walk: dict, path: Path) -> None:
    """Figures 1 and 2."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, (left, right) = plt.subplots(1, 2, figsize=(11, 3.6))
    at = np.array(law["at"])
    atom = at == 1.0
    left.bar(at[~atom], np.array(law["measured"])[~atom], width=1 / LATTICE, color="#b9c6da", label="integers, drawn")
    left.plot(at, law["paper"], color="#2b4c7e", lw=1.2, label="the paper's density")
    left.annotate(
        f"atom {law['atom']:.3f}\n(paper {law['atom of the paper']:.3f})",
        (1, 0.5),
        fontsize=8,
        ha="center",
        color="#c1121f",
    )
    left.vlines(1.0, 0, 0.47, color="#c1121f", lw=2)
    left.set(xlabel="noise at ε = 2, given 1 at ε = 1", ylabel="density", xlim=(-2, 3))
    left.legend(fontsize=8, frameon=False)
    for one in walk["paths"][:8]:
        right.step(walk["epsilon"], one, where="post", lw=1)
    right.set(xscale="log", xlabel="ε", ylabel="noise")
    figure.tight_layout()
    figure.savefig(path, dpi=100)
    print(f"drawn to {path}")


def draw_maps(releases: list[sf.Release], path: Path) -> None:
    """The four levels side by side."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, len(releases), figsize=(14, 3.4))
    top = float(np.quantile(releases[-1].counts, 0.998))
    for ax, release in zip(axes, releases, strict=True):
        ax.imshow(release.counts.T, origin="lower", vmin=0, vmax=top, cmap="magma_r", aspect="auto")
        ax.set_title(f"ε = {release.guarantee.epsilon}", fontsize=11)
        ax.set_axis_off()
    figure.tight_layout()
    figure.savefig(path, dpi=90)
    print(f"drawn to {path}")


if __name__ == "__main__":
    main()
