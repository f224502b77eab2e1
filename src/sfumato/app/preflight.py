"""The operator's preflight: what is wrong with the data, told before anything is charged.

What is told is exact and private: it goes to whoever runs the command and enters no release. Whether an *unattended*
release happens never depends on it, unless --strict asks for that; at a terminal a person decides.
"""

from __future__ import annotations

import sys
from fractions import Fraction
from typing import Any

import typer

from sfumato.app.output import Stopped, tell_operator
from sfumato.counting.report import GROSS, CountReport, percent

_FIGURES = {
    "rows": "rows read",
    "without_coordinates": "without coordinates",
    "unreadable": "with coordinates that cannot be read",
    "without_entity": "without an entity",
    "without_time": "without a time",
    "unreadable_time": "with a time that cannot be read",
    "in_no_step": "in no step",
    "outside": "outside the bounds",
    "cut": "cut by the bound a person",
}


def figures(report: CountReport) -> str:
    """What is known of the records, in one line."""
    known = {words: getattr(report, name) for name, words in _FIGURES.items()}
    return ", ".join(f"{value:,} {words}" for words, value in known.items() if value is not None)


def troubles(report: CountReport, limit: Fraction = GROSS) -> tuple[str, ...]:
    """A sentence for every gross error."""
    if report.rows == 0:
        return ("There are no rows.",)
    return report.gross(limit)


def tell(report: CountReport) -> None:
    """Exact figures about the private data: for whoever runs this, on standard error, and nowhere else."""
    known = figures(report)
    if known:
        tell_operator(f"For your eyes only (private, not published): {known}.")


def warn(report: CountReport, *, limit: Fraction = GROSS) -> None:
    """Tell the gross errors and go on."""
    for sentence in troubles(report, limit):
        tell_operator(f"Warning: {sentence}")


def decide(report: CountReport, *, strict: bool, yes: bool) -> None:
    """Go on, or stop before anything is charged: by --strict, or by whoever sits at the terminal."""
    found = troubles(report)
    if strict and found:
        raise Stopped(f"{' '.join(found)} --strict stops here. Nothing was drawn or recorded.")
    warn(report)
    if yes or not at_terminal():
        return
    try:
        agreed = typer.confirm("Publish?", default=False, err=True)
    except typer.Abort:
        agreed = False
    if not agreed:
        raise Stopped("not published. Nothing was drawn or recorded.")


def at_terminal() -> bool:
    """Whether somebody can be asked."""
    return sys.stdin.isatty() and sys.stderr.isatty()


def as_data(report: CountReport, limit: Fraction) -> dict[str, Any]:
    """The whole of it for programs."""
    found = troubles(report, limit)
    known = {name: getattr(report, name) for name in _FIGURES if getattr(report, name) is not None}
    shares = {name: float(share) for name, share in report.shares.items()}
    return {"private": True, **known, "shares": shares, "limit": float(limit), "gross": list(found), "ok": not found}


def lines(report: CountReport, limit: Fraction) -> list[str]:
    """The whole of it for people."""
    found = [f"{figures(report).capitalize()}."]
    found += [f"  {name:<20} {percent(share)}" for name, share in report.shares.items()]
    found += [f"Gross: {sentence}" for sentence in troubles(report, limit)]
    return found if len(found) > 1 and found[-1].startswith("Gross") else [*found, "Nothing gross was found."]
