"""What the page is told of a ledger: its accounts, their history and their streams. Labels and sums, and no data."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from sfumato.errors import InvalidInput
from sfumato.ledger import Ledger
from sfumato.ledger.places import accounts_at, is_file
from sfumato.relations import relation_from_text

NOTHING = "Nothing was counted, drawn or recorded."


def shown(place: str, dataset: str | None) -> dict[str, Any]:
    """One account of a ledger, and the names of all."""
    if is_file(place) and not Path(place).exists():
        raise InvalidInput(f"studio: [account] ledger: there is no ledger {Path(place).name} yet. {NOTHING}")
    names = accounts_at(place)
    if not names:
        raise InvalidInput(f"studio: [account] ledger: {Path(place).name} has no account yet. {NOTHING}")
    account = Ledger(place, dataset=dataset or ("default" if "default" in names else names[0]))
    streams = [account.stream(name) for name in account.streams()]
    relation, unit = account.relation, account.unit
    return {
        "dataset": account.dataset,
        "accounts": list(names),
        "total": str(account.total),
        "spent": str(account.spent),
        "left": str(account.remaining),
        "hides": None if relation is None else relation.describe(),
        "relation": None if relation is None else relation.to_text(),
        "fixed": list(account.fixed),
        "unit": None if unit is None else str(unit),
        "history": [
            {
                "time": entry.time.isoformat(),
                "kind": entry.kind,
                "label": entry.label,
                "release": entry.release_id,
                "epsilon": str(entry.epsilon),
                "rate": str(entry.rate),
                "cost": str(entry.cost),
            }
            for entry in account.history()
        ],
        "streams": [
            {
                "name": stream.name,
                "epsilon": str(stream.epsilon),
                "window": str(stream.window),
                "hides": stream.policy.describe(),
                "unit": stream.unit,
                "steps": [{"at": str(step.time), "epsilon": str(step.epsilon), "label": step.label} for step in steps],
            }
            for stream, steps in ((stream, stream.entries()) for stream in streams)
        ],
    }


def stated(place: str, dataset: str | None) -> str:
    """The statement of an account for auditors, as HTML."""
    return Ledger(place, dataset=dataset or "default").statement().to_html()


def created(place: str, dataset: str | None, epsilon: Any, hide: Any, fixed: Any) -> dict[str, Any]:
    """A new account with a total."""
    relation = None if not hide else relation_from_text(str(hide))
    names = [str(name) for name in fixed] if isinstance(fixed, list) else None
    Ledger.create(place, str(epsilon), dataset=dataset or "default", hide=relation, fixed=names or None)
    return shown(place, dataset or "default")
