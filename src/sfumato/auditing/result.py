"""What an audit says: a loss beside a promise, and the neighbours that show it."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, field
from fractions import Fraction
from typing import Any

from sfumato.errors import AuditFailed
from sfumato.exact import text

Loss = Fraction | float
"""A privacy loss: a fraction where it is exact, a float where it was measured, and infinite where outputs tell all."""

_MEANING = {
    "exact": "the loss itself, in whole numbers and fractions",
    "argument": "an upper bound, checked on what is built",
    "statistical": "a lower bound from runs: it can find a mistake, and proves nothing right",
}


@dataclass(frozen=True, kw_only=True)
class Witness:
    """Two neighbouring databases, made up for the audit, and what tells them apart most."""

    edge: tuple[int, int] | None = None
    """The cells between which a record changes; -1 is ⊥. None where neighbours are no databases of cells."""
    databases: tuple[tuple[int, ...], tuple[int, ...]] | None = None
    event: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        return asdict(self)


@dataclass(frozen=True, kw_only=True)
class Audit:
    """The largest loss that was proved (method "exact", "argument") or found ("statistical"), beside the promise.

    Truth value and `passed` say whether the loss is within the promise; `require()` raises where it is not.

    >>> plan = sf.plan(sf.threshold(sf.Line(0, 4, cells=4), theta=1), sf.histogram(), epsilon=1)
    >>> sf.audit(plan).passed
    True
    """

    subject: str
    promised: Fraction
    epsilon: Loss
    method: str
    witness: Witness | None = None
    confidence: float | None = None
    looked_at: tuple[str, ...] = field(default=())
    complete: bool = True
    """Whether every change of a record was looked at, and not a sample of them."""

    @property
    def passed(self) -> bool:
        """Whether nothing above the promise was proved or found."""
        return self.epsilon <= self.promised

    def __bool__(self) -> bool:
        return self.passed

    def require(self) -> Audit:
        """The audit itself if it passed; otherwise `AuditFailed`, with the witness."""
        if not self.passed:
            raise AuditFailed(self.describe())
        return self

    def describe(self) -> str:
        """The result in plain words."""
        verdict = "keeps" if self.passed else "BREAKS"
        found = {"exact": "its loss is", "argument": "its loss is at most", "statistical": "its loss is at least"}
        lines = [
            f"{self.subject} {verdict} its promise of ε = {text(self.promised)}: {found[self.method]} "
            f"{_number(self.epsilon)}{'' if self.complete else ', over the changes looked at'}.",
            f"Method     {self.method}: {_MEANING[self.method]}"
            + ("." if self.confidence is None else f"; wrong with probability {1 - self.confidence:.1g} at most."),
        ]
        if self.looked_at:
            lines.append(f"Looked at  {'; '.join(self.looked_at)}.")
        if self.witness is not None:
            lines.append(f"Witness    {self._seen(self.witness)}")
        return "\n".join(lines)

    def _seen(self, witness: Witness) -> str:
        where = ""
        if witness.edge is not None:
            ends = ["⊥" if end < 0 else f"cell {end}" for end in witness.edge]
            where = f"a record between {ends[0]} and {ends[1]}; "
        data = (
            "" if witness.databases is None else f"; {_shown(witness.databases[0])} and {_shown(witness.databases[1])}"
        )
        return f"{where}{witness.event}{data}"

    def to_dict(self) -> dict[str, Any]:
        """Plain data, for programs; an infinite loss is the text "inf"."""
        return {
            "subject": self.subject,
            "promised": str(self.promised),
            "epsilon": str(self.epsilon) if isinstance(self.epsilon, Fraction) else repr(float(self.epsilon)),
            "method": self.method,
            "passed": self.passed,
            "complete": self.complete,
            "confidence": self.confidence,
            "looked_at": list(self.looked_at),
            "witness": None if self.witness is None else self.witness.to_dict(),
        }

    def __str__(self) -> str:
        return self.describe()


def _number(loss: Loss) -> str:
    if isinstance(loss, Fraction):
        return text(loss)
    return "infinite" if math.isinf(loss) else f"{loss:.4g}"


def _shown(counts: tuple[int, ...]) -> str:
    head = ", ".join(map(str, counts[:12]))
    return f"[{head}{', …' if len(counts) > 12 else ''}]"
