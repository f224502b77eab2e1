"""The picture of `adaptive.py`: maps and curves from what it measured."""

from __future__ import annotations

from pathlib import Path

import numpy as np


def picture(path: Path, results: dict, maps: dict[str, np.ndarray]) -> None:
    """Maps of the same points at the same ε, the error by group size and by range, and the gain under δ."""
    from matplotlib.colors import LogNorm
    from matplotlib.figure import Figure

    figure = Figure(figsize=(15, 8.4), dpi=130, layout="constrained")
    axes = figure.subplots(2, 3)
    if maps:
        for ax, (title, counts) in zip(axes[0], maps.items(), strict=True):
            shown = np.maximum(counts.T, 0.02)
            ax.imshow(shown, origin="lower", norm=LogNorm(0.02, 50), cmap="magma", aspect="auto")
            ax.set_title(title, fontsize=9)
            ax.set_xticks([])
            ax.set_yticks([])
    _curves(axes[1], results)
    figure.savefig(path)


def _curves(axes, results: dict) -> None:
    for row in results["groups"]:
        if row["policy"] == "replace-one" and row["n"] > 20_000 and row["ε"] == 0.1:
            group = [point["group"] for point in row["curve"]]
            (drawn,) = axes[0].plot(group, [point["measured"][3] for point in row["curve"]], "o-", label=row["data"])
            model = [point["model"][3] for point in row["curve"]]
            axes[0].plot(group, model, "--", color=drawn.get_color(), linewidth=1)
            axes[0].axvline(row["group"], color=drawn.get_color(), linewidth=0.6)
    axes[0].set_title("error of ranges of 0.1 by group size (dashed: the model; line: its choice)", fontsize=9)
    axes[0].set_xlabel("group size")
    rows = results["ranges"]
    chosen = [row for row in rows if row["n"] == 1000 and row["data"] == rows[0]["data"] and row["ε"] == 0.1]
    for name in ("sorted", "equi-width, best", "Privelet", "hierarchy"):
        axes[1].plot([row["range"] for row in chosen], [row[name] for row in chosen], "o-", label=name)
    axes[1].set_title(f"{chosen[0]['data']}, n = 1,000, ε = {chosen[0]['ε']:g}, replace-one", fontsize=9)
    axes[1].set_xlabel("range, as a share of the line")
    for name in dict.fromkeys(row["data"] for row in results["delta"]):
        mine = [row for row in results["delta"] if row["data"] == name]
        axes[2].plot([row["δ"] for row in mine], [row["gain in squared error"] for row in mine], "o-", label=name)
    axes[2].plot([row["δ"] for row in mine], [row["1/δ"] for row in mine], "k--", label="1/δ")
    axes[2].plot([row["δ"] for row in mine], [row["1/δ²"] for row in mine], "k:", label="1/δ²")
    axes[2].set_title("gain in squared error under δ, ranges of 0.1, best groups", fontsize=9)
    axes[2].set_xlabel("δ")
    for ax in axes:
        ax.set_xscale("log")
        ax.set_yscale("log")
        ax.legend(fontsize=7, frameon=False)
