"""A stream as a picture: the answer to one range over time with its intervals, and below it the budget in the window.

Drawing is post-processing of releases and of public budgets, and costs no privacy. matplotlib is imported when
something is drawn, and only its figures: nothing global is touched.
"""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np

from sfumato.domain import Interval
from sfumato.errors import InvalidInput
from sfumato.files import replacing
from sfumato.ledger.steps import Step
from sfumato.ledger.streams import StreamAccount
from sfumato.promise.window import Time
from sfumato.reading import visible
from sfumato.release import Release
from sfumato.release.canvas import ACCENT, INK, LITERAL, SOFT, blank, file_kind, quiet
from sfumato.release.sheets import UNKNOWN, counted_by

_BUDGET = "#c8873a"
# Beyond so many steps a curve with a band is easier to read than points with whiskers.
_MOST_POINTS = 80


def plot(
    account: StreamAccount,
    series: Sequence[tuple[Time, Release]],
    path: str | Path | None = None,
    *,
    where: Any = None,
    title: str | None = None,
    confidence: float = 0.95,
) -> Any:
    """Draw the releases of a stream and return the matplotlib Figure; with a path, also write it.

    `where` is a range or a label, as for `release.answer`; by default it is the whole domain, or the first label.
    """
    kind = file_kind(path)
    if not series:
        raise InvalidInput(
            f"stream '{account.name}' has no release to draw. Nothing was written. Publish a step first, or give the "
            "outbox that its releases are in."
        )
    asked = _whole(series[0][1]) if where is None else where
    figure = blank((10.4, 5.6), "constrained", "Drawing a stream")
    above, below = figure.subplots(2, 1, sharex=True, height_ratios=(2.4, 1))
    _draw_series(above, series, asked, confidence)
    _draw_budget(below, account)
    promise = (
        f"ε = {account.epsilon} for every window of {account.window}; policy '{account.policy.name}': "
        f"{account.policy.describe()}"
    )
    figure.supxlabel("\n".join(textwrap.wrap(promise, 175)), x=0.015, ha="left", size=7.5, color=SOFT, **LITERAL)
    if title:
        above.set_title(visible(title), loc="left", size=12, weight="bold", color=INK, pad=10, **LITERAL)
    if path is not None:
        with replacing(path) as file:
            figure.savefig(file, format=kind, dpi=160)
    return figure


def _whole(release: Release) -> Any:
    """The range that holds all cells, or the first label."""
    axes = release.domain.axes
    if not all(isinstance(axis, Interval) for axis in axes):
        return axes[0].labels[0]  # type: ignore[attr-defined]
    return tuple(axis.low for axis in release.domain.intervals) + tuple(axis.high for axis in release.domain.intervals)


def _draw_series(ax: Any, series: Sequence[tuple[Time, Release]], where: Any, confidence: float) -> None:
    times = [time for time, _ in series]
    answers = [release.answer(where, confidence=confidence) for _, release in series]
    value, low, high = (np.array([float(getattr(one, name)) for one in answers]) for name in ("value", "low", "high"))
    exact = bool((high == low).all())  # totals that the policy makes public have no interval
    known = not np.isnan(low).any() and not exact
    interval, name = f"{100 * confidence:g} % interval", "exact: the policy makes it public" if exact else "estimate"
    if len(series) > _MOST_POINTS:
        if known:
            ax.fill_between(times, low, high, color=ACCENT, alpha=0.25, linewidth=0, label=interval)
        ax.plot(times, value, color=ACCENT, linewidth=0.9, label=name)
    else:
        if known:
            ax.vlines(times, low, high, color=ACCENT, alpha=0.45, linewidth=2.2, label=interval)
        ax.plot(times, value, "o", color=ACCENT, markersize=3.2, label=name)
    if not known and not exact:
        ax.plot([], [], linestyle="none", label=UNKNOWN)
    ax.axhline(0, color=SOFT, linewidth=0.6, zorder=1)
    counted = counted_by(series[0][1])
    ax.set_ylabel(
        visible(counted if isinstance(where, tuple) else f"{counted} in {where}"), size=9, color=INK, **LITERAL
    )
    _finish(ax)


def _draw_budget(ax: Any, account: StreamAccount) -> None:
    steps = account.entries()
    times = [step.time for step in steps]
    ax.vlines(times, 0, [float(step.epsilon) for step in steps], color=_BUDGET, linewidth=1.2, label="ε of a step")
    ax.plot(times, _in_window(steps, account), color=INK, linewidth=0.9, drawstyle="steps-post", label="in its window")
    ax.axhline(float(account.epsilon), color=SOFT, linewidth=0.8, linestyle="--", label="promise")
    ax.set_ylim(0, float(account.epsilon) * 1.05)
    ax.set_ylabel("ε", size=9, color=INK)
    _finish(ax)


def _in_window(steps: Sequence[Step], account: StreamAccount) -> list[float]:
    """What is spent in the window that ends with each step."""
    size: Any = account.window.size if account.window.kind == "steps" else timedelta(microseconds=account.window.size)
    held, begin, sums = 0.0, 0, []
    for step in steps:
        held += float(step.epsilon)
        while steps[begin].time <= step.time - size:
            held -= float(steps[begin].epsilon)
            begin += 1
        sums.append(held)
    return sums


def _finish(ax: Any) -> None:
    quiet(ax)
    ax.legend(loc="lower right", bbox_to_anchor=(1, 1), ncols=3, fontsize=8, frameon=False, labelcolor=INK)
