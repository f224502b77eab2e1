"""`sfumato ledger`: create an account, look at it, raise its total, copy and check the file."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Annotated, Any

import typer

import sfumato as sf
from sfumato.app.options import Json
from sfumato.app.output import emit, reported, say, tell_operator
from sfumato.errors import InvalidInput
from sfumato.ledger.places import accounts_at, is_file

app = typer.Typer(
    no_args_is_help=True, rich_markup_mode=None, help="What has been spent on a dataset, and what is left."
)

Place = Annotated[str, typer.Argument(help="The ledger: a file, or postgresql://user@host/database.")]
Dataset = Annotated[str, typer.Option(help="The account: one for each dataset.")]


Total = Annotated[str, typer.Option(help="The total that may ever be spent on this dataset.")]


Hide = Annotated[
    str | None,
    typer.Option(
        help='What may change of one record and stays hidden, such as \'move("500 m") | change("mode")\'. Maps at '
        "any resolution, tables and medians then add up. Without it the account takes that of its first release."
    ),
]
Fixed = Annotated[
    list[str] | None,
    typer.Option(help="An attribute that is no function of what changes, by your declaration; give it again for more."),
]


@app.command()
def create(
    place: Place,
    epsilon: Total,
    dataset: Dataset = "default",
    hide: Hide = None,
    fixed: Fixed = None,
    as_json: Json = False,
) -> None:
    """Make an account with a total budget, in a new ledger or in one that is there. One that exists is refused.

    Example: sfumato ledger create budget.db --epsilon 10
    """
    with reported(as_json):
        relation = None if hide is None else sf.relation_from_text(hide)
        account = sf.Ledger.create(place, epsilon, dataset=dataset, hide=relation, fixed=fixed or None)
        _show(account, as_json)


@app.command("open")
def open_account(place: Place, epsilon: Total, dataset: Dataset = "default", as_json: Json = False) -> None:
    """The earlier name of `create`; an account with the same total is shown.

    Example: sfumato ledger open budget.db --epsilon 10
    """
    with reported(as_json):
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always", sf.LedgerCreated)
            account = sf.Ledger(place, epsilon, dataset=dataset)
        created = any(issubclass(one.category, sf.LedgerCreated) for one in said)
        what = "created a new account" if created else "opened an account that was there"
        tell_operator(f"'sfumato ledger open' is the earlier name of 'sfumato ledger create'. It {what}.")
        _show(account, as_json)


@app.command()
def backup(
    place: Annotated[str, typer.Argument(help="The ledger's file.")],
    copy: Annotated[Path, typer.Argument(help="Where to write the copy; never an existing file.")],
    as_json: Json = False,
) -> None:
    """Copy a ledger, consistently, also while it is in use. A copy that is put back forgets what came after it.

    Example: sfumato ledger backup budget.db budget-2026-03-01.db
    """
    with reported(as_json):
        written = sf.Ledger(place, dataset=_any_account(place)).backup(copy)
        if as_json:
            emit({"file": str(written)})
        else:
            say(f"Copied {place} to {written}, and read the copy through.")


@app.command()
def check(place: Place, as_json: Json = False) -> None:
    """Read a ledger through, from its first entry on, and say whether it holds together.

    Example: sfumato ledger check budget.db
    """
    with reported(as_json):
        account = sf.Ledger(place, dataset=_any_account(place))
        account.check()
        names = [one.dataset for one in account.accounts()]
        if as_json:
            emit({"sound": True, "accounts": names})
        else:
            say(f"{place} holds together: {len(names)} account{'' if len(names) == 1 else 's'}.")


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
        raise InvalidInput(f"there is no ledger {place}. Make one with: sfumato ledger create {place} --epsilon 10")


def _any_account(place: str) -> str:
    """The name of an account, for what concerns them all."""
    _require_there(place)
    accounts = accounts_at(place)
    if not accounts:
        raise InvalidInput(f"{place} has no account yet. Make one with: sfumato ledger create {place} --epsilon 10")
    return accounts[0]


def _policy(account: sf.Ledger) -> dict[str, Any]:
    """What the account hides, for programs; all null before its first release."""
    policy, relation, unit = account.policy, account.relation, account.unit
    return {
        "relation": None if relation is None else relation.to_text(),
        "relation_in_words": None if relation is None else relation.describe(),
        "fixed": list(account.fixed),
        "policy": None if policy is None else policy.spec(),
        "policy_in_words": None if policy is None else policy.describe(),
        "fingerprint": None if policy is None else policy.fingerprint,
        "unit": None if unit is None else unit.name,
        "max_per_entity": None if unit is None else unit.max_per_entity,
    }


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
            {
                "name": stream.name,
                "epsilon": str(stream.epsilon),
                "window": str(stream.window),
                "policy": stream.policy.spec(),
                "policy_in_words": stream.policy.describe(),
                "unit": stream.unit,
                "max_per_entity": stream.max_per_entity,
                "steps": len(stream),
            }
            for stream in streams
        ]
        emit(
            {
                "dataset": account.dataset,
                "accounts": [one.dataset for one in account.accounts()],
                **_policy(account),
                "total": total,
                "spent": spent,
                "left": left,
                "history": entries,
                "streams": series,
            }
        )
        return
    say(str(account))
    policy, unit = account.policy, account.unit
    if policy is not None:
        say(f"Account's policy: {policy.describe()}; unit: {unit}")
    elif unit is not None:
        say(f"Unit: {unit}")
    for entry in history:
        cost = (
            f"ε {entry.epsilon} × {entry.rate} = {entry.cost}" if entry.kind == "release" else f"total {entry.epsilon}"
        )
        say(f"  {entry.time:%Y-%m-%d %H:%M}  {entry.kind:<8} {cost:<24} {entry.label}")
    for stream in streams:
        every = f"ε {stream.epsilon} for every window of {stream.window}"
        say(f"  stream '{stream.name}': {every}, {len(stream)} steps so far")
