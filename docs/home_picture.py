"""The picture of a home among houses: `python docs/home_picture.py`."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from matplotlib import colormaps
from matplotlib.colors import BoundaryNorm, ListedColormap
from matplotlib.figure import Figure
from matplotlib.patches import Circle

import sfumato as sf

HERE = Path(__file__).parent / "img"
INK, GREY, RED = "#22223b", "#8d99ae", "#c8553d"
SIDE, CELL, DELTA, EPSILON = 4.0, 0.1, 0.5, 1.0  # kilometres; a home in the middle of a town


def houses() -> np.ndarray:
    """A made-up town: streets in blocks of 150 m, houses along them, a park and a river without any."""
    rng = np.random.default_rng(3)
    streets = np.arange(0.05, SIDE, 0.15)
    along = rng.uniform(0, SIDE, (len(streets), 60))
    places = [np.stack([row, np.full(60, y)], axis=1) for row, y in zip(along, streets, strict=True)]
    places += [np.stack([np.full(60, y), row], axis=1) for row, y in zip(along[::-1], streets, strict=True)]
    found = np.concatenate(places) + rng.normal(0, 0.012, (2 * 60 * len(streets), 2))
    x, y = found.T
    park = (x - 2.9) ** 2 + (y - 3.1) ** 2 < 0.3
    river = np.abs(y - 0.6 - 0.15 * np.sin(2 * x)) < 0.09
    inside = (found > 0).all(axis=1) & (found < SIDE).all(axis=1)
    return found[inside & ~park & ~river]


def picture() -> None:
    """Before, and after at worst, by the steps of the policy between cells."""
    town = sf.Grid(bounds=(0, 0, SIDE, SIDE), shape=(round(SIDE / CELL),) * 2)
    policy = sf.within(town, delta=DELTA)
    places, home = houses(), np.array([2.0, 2.0])
    cell = town.unravel(town.locate(home[None])[0])
    there = town.locate(places)
    by_cell = {one: policy.distance(cell, town.unravel(one)) for one in np.unique(there).tolist()}
    steps = np.array([by_cell[one] for one in there.tolist()], dtype=float)

    figure = Figure(figsize=(9.6, 4.5), dpi=110, layout="constrained")
    axes = figure.subplots(1, 2)
    most = 6
    colours = ListedColormap(colormaps["cividis_r"](np.linspace(0.08, 1, most)))
    shown = None
    for axis, after in zip(axes, (False, True), strict=True):
        told = {"c": np.clip(steps, 1, most), "cmap": colours, "norm": BoundaryNorm(np.arange(most + 1) + 0.5, most)}
        shown = axis.scatter(*places.T, s=7, lw=0, **(told if after else {"color": GREY}))
        axis.add_patch(Circle(tuple(home), DELTA, fill=False, color=INK, lw=1.2, ls="--"))
        axis.plot(*home, marker="x", color=RED, ms=11, mew=2.6)
        axis.set(xlim=(0, SIDE), ylim=(0, SIDE), xticks=[], yticks=[], aspect="equal")
        axis.set_title("after, at worst: a factor for every step" if after else "before: all are as likely", color=INK)
        for side in axis.spines.values():
            side.set_color(GREY)
    axes[0].plot([0.2, 1.2], [0.2, 0.2], color=INK, lw=2.5)
    axes[0].text(0.7, 0.25, "1 km", ha="center", va="bottom", color=INK, bbox={"fc": "white", "ec": "none", "pad": 1})
    bar = figure.colorbar(shown, ax=axes, fraction=0.05, pad=0.02, ticks=range(1, most + 1))
    factors = [f"{step}: {np.exp(EPSILON * step):,.1f}" for step in range(1, most + 1)]
    bar.ax.set_yticklabels([*factors[:-1], f"{factors[-1]} or more"], color=INK)
    bar.set_label("steps from the home, and by how much odds may change", color=INK)
    figure.savefig(HERE / "home.png", pil_kwargs={"optimize": True})


if __name__ == "__main__":
    picture()
