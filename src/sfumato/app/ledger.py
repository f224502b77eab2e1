"""`sfumato ledger`: open an account, look at it, raise its total."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

import sfumato as sf
from sfumato.app.options import Json
from sfumato.app.output import emit, reported, say
from sfumato.errors import InvalidInput
from sfumato.ledger.places import is_file

app = typer.Typer(
    no_args_is_help=True, rich_markup_mode=None, help="What has been spent on a dataset, and what is left."
)

Place = Annotated[str, typer.Argument(help="The ledger: a file, or postgresql://user@host/database.")]
Dataset = Annotated[str, typer.Option(help="The account: one for each dataset.")]


@app.command("open")
def open_account(
    place: Place,
    epsilon: Annotated[str, typer.Option(help="The total that may ever be spent on this dataset.")],
    dataset: Dataset = "default",
    as_json: Json = False,
) -> None:
    """Open an account with a total budget.

    Example: sfumato ledger open budget.db --epsilon 10
    """
    with reported(as_json):
        _show(sf.Ledger(place, epsilon, dataset=dataset), as_json)


@app.command()
def show(place: Place, dataset: Dataset = "default", as_json: Json = False) -> None:
    """Show an account: what was spent, on what, and what is left.

    Example: sfumato ledger show budget.db
    """
    with reported(as_json):
        _require_there(place)
        _show(sf.Ledger(place, dataset=dataset), as_json)


@app.command("raise")
def raise_cap(
    place: Place,
    epsilon: Annotated[str, typer.Option(help="The new total, above the old one. It weakens the promise made so far.")],
    dataset: Dataset = "default",
    as_json: Json = False,
) -> None:
    """Raise the total of an account. It is recorded in its history.

    Example: sfumato ledger raise budget.db --epsilon 12
    """
    with reported(as_json):
        _require_there(place)
        account = sf.Ledger(place, dataset=dataset)
        account.raise_cap(epsilon)
        _show(account, as_json)


def _require_there(place: str) -> None:
    """Say in the command line's own words that there is no such file; a server is asked when it is opened."""
    if is_file(place) and not Path(place).exists():
        raise InvalidInput(f"there is no ledger {place}. Open one with: sfumato ledger open {place} --epsilon 10")


def _show(account: sf.Ledger, as_json: bool) -> None:
    history = account.history()
    streams = [account.stream(name) for name in account.streams()]
    if as_json:
        entries: list[dict[str, Any]] = [
            {
                "time": entry.time.isoformat(),
                "kind": entry.kind,
                "label": entry.label,
                "release": entry.release_id,
                "policy": entry.policy,
                "epsilon": str(entry.epsilon),
                "rate": entry.rate,
                "cost": str(entry.cost),
            }
            for entry in history
        ]
        total, spent, left = str(account.total), str(account.spent), str(account.remaining)
        series = [
            {"name": stream.name, "epsilon": str(stream.epsilon), "window": str(stream.window), "steps": len(stream)}
            for stream in streams
        ]
        emit(
            {
                "dataset": account.dataset,
                "total": total,
                "spent": spent,
                "left": left,
                "history": entries,
                "streams": series,
            }
        )
        return
    say(str(account))
    if account.policy is not None:
        say(f"Account's policy: {account.policy.describe()}; unit: {account.unit}")
    for entry in history:
        cost = (
            f"ε {entry.epsilon} × {entry.rate} = {entry.cost}" if entry.kind == "release" else f"total {entry.epsilon}"
        )
        say(f"  {entry.time:%Y-%m-%d %H:%M}  {entry.kind:<8} {cost:<24} {entry.label}")
    for stream in streams:
        every = f"ε {stream.epsilon} for every window of {stream.window}"
        say(f"  stream '{stream.name}': {every}, {len(stream)} steps so far")
