"""What verifying found: check by check, in words and as data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from sfumato.reading import visible

Outcome = Literal["holds", "fails", "open"]

_SIGNS = {"holds": "holds", "fails": "FAILS", "open": "open "}


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One thing that was looked at: it holds, it fails, or it is open: it could not be checked, and why."""

    name: str
    outcome: Outcome
    words: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Verification:
    """What could be checked of a file and what could not. Truth value and `passed` say whether nothing failed.

    `beyond` is what nobody can learn from files and ledgers: for whoever relies on the release to ask for.

    >>> plan = sf.plan(sf.threshold(sf.Line(0, 4, cells=4), theta=1), sf.histogram(), epsilon=1)
    >>> found = sf.verify(plan.publish(np.array([3, 0, 5, 1])).save("visits.sfumato"))
    >>> found["noise"].outcome, [check.name for check in found.checks]
    ('holds', ['file', 'noise', 'figures', 'ledger', 'signature'])
    """

    path: str
    checks: tuple[Check, ...]
    beyond: tuple[str, ...] = ()

    @property
    def passed(self) -> bool:
        """Whether no check failed. What is open is not known to be wrong."""
        return all(check.outcome != "fails" for check in self.checks)

    @property
    def complete(self) -> bool:
        """Whether every check could be made, and holds."""
        return all(check.outcome == "holds" for check in self.checks)

    def __bool__(self) -> bool:
        return self.passed

    def __getitem__(self, name: str) -> Check:
        for check in self.checks:
            if check.name == name:
                return check
        raise KeyError(name)

    def describe(self) -> str:
        """All of it in plain words."""
        failed = [check.name for check in self.checks if check.outcome == "fails"]
        unknown = [check.name for check in self.checks if check.outcome == "open"]
        verdict = f"FAILS: {', '.join(failed)}" if failed else "nothing that could be checked is wrong"
        if unknown and not failed:
            verdict += f" (not checked: {', '.join(unknown)})"
        lines = [f"{self.path}: {verdict}."]
        lines += [f"  {_SIGNS[check.outcome]}  {check.name:<10} {check.words}" for check in self.checks]
        if self.beyond:
            lines += ["What no file can show:", *(f"  {said}" for said in self.beyond)]
        return visible("\n".join(lines))

    def to_dict(self) -> dict[str, Any]:
        """Plain data, for programs."""
        return {
            "path": self.path,
            "passed": self.passed,
            "complete": self.complete,
            "checks": [{"name": one.name, "outcome": one.outcome, "words": one.words} for one in self.checks],
            "beyond": list(self.beyond),
        }

    def __str__(self) -> str:
        return self.describe()
