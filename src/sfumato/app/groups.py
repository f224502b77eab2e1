"""Options that several commands share, declared once: a dataclass a group, and a command that takes groups."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass, fields, is_dataclass
from functools import wraps
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import typer

from sfumato.app import options
from sfumato.app.keys import Key
from sfumato.app.meant import Meant, Simple, mean
from sfumato.errors import InvalidInput

Command = Callable[..., None]


def takes_groups(command: Command) -> Command:
    """The command with every parameter that is a group spelled out as the group's options, for typer to read."""
    hints = get_type_hints(command, include_extras=True)
    groups: dict[str, Any] = {name: kind for name, kind in hints.items() if is_dataclass(kind)}
    parameters: list[inspect.Parameter] = []
    for parameter in inspect.signature(command).parameters.values():
        if parameter.name in groups:
            parameters += _options(groups[parameter.name])
        else:
            annotation, kind = hints[parameter.name], inspect.Parameter.KEYWORD_ONLY
            parameters.append(parameter.replace(annotation=annotation, kind=kind))

    @wraps(command)
    def called(**given: Any) -> None:
        made = {
            name: kind(**{field.name: given.pop(field.name) for field in fields(kind)}) for name, kind in groups.items()
        }
        command(**given, **made)

    del called.__wrapped__  # or the groups would be found again
    called.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    called.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return called


def _options(group: Any) -> list[inspect.Parameter]:
    hints = get_type_hints(group, include_extras=True)
    return [
        inspect.Parameter(
            field.name,
            inspect.Parameter.KEYWORD_ONLY,
            default=inspect.Parameter.empty if field.default is MISSING else field.default,
            annotation=hints[field.name],
        )
        for field in fields(group)
    ]


@dataclass(frozen=True, kw_only=True)
class Question:
    """What is planned, in the simple case; and any key of a file."""

    bounds: options.Bounds = None
    shape: options.Shape = None
    labels: options.LabelList = None
    policy: options.PolicyName = None
    delta: options.Delta = None
    workload: options.Queries = None
    epsilon: options.Epsilon = None
    max_per_entity: options.PerEntity = None
    keys: options.Keys = None

    def meant(
        self,
        first: str | None,
        data: str | None = None,
        *,
        given: Mapping[Key, Any] | None = None,
        columns: Columns | None = None,
    ) -> Meant:
        """The publication that these options make, or change."""
        own: dict[Key, Any] = {("epsilon",): self.epsilon, ("max_per_entity",): self.max_per_entity}
        named: dict[Key, Any] = {} if columns is None else {("data", "entity"): columns.entity}
        return mean(
            first,
            data,
            simple=Simple(
                bounds=self.bounds,
                shape=self.shape,
                labels=self.labels,
                policy=self.policy,
                delta=self.delta,
                ask=self.workload,
            ),
            keys=self.keys,
            given={**own, **named, **(given or {})},
            letters=(None, None) if columns is None else (columns.x, columns.y),
        )


@dataclass(frozen=True, kw_only=True)
class Columns:
    """Which columns are counted."""

    x: Annotated[str | None, typer.Option(help="Column of the first axis (default: x, or category).")] = None
    y: Annotated[str | None, typer.Option(help="Column of the second axis; of others: --columns AXIS=COLUMN.")] = None
    entity: Annotated[str | None, typer.Option(help="Column that says whose record it is.")] = None


@dataclass(frozen=True, kw_only=True)
class Publishing:
    """Who keeps account, who keeps the noise, and whether anybody is asked."""

    ledger_place: Annotated[
        str | None, typer.Option("--ledger", help="Charge the release to this ledger: a file or a URL.")
    ] = None
    without_ledger: Annotated[bool, typer.Option(help="Publish without keeping account.")] = False
    vault_folder: options.VaultFolder = None
    strict: Annotated[
        bool,
        typer.Option(
            "--strict",
            help="Stop before anything is charged when the data look grossly wrong. Whether a release appears then "
            "depends on private data.",
        ),
    ] = False
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask at a terminal: for scripts.")] = False

    def given(self, out: Path | None) -> dict[Key, Any]:
        """What these options say of the file's keys."""
        return {
            ("account", "ledger"): self.ledger_place,
            ("account", "without_ledger"): self.without_ledger or None,
            ("output", "vault"): None if self.vault_folder is None else str(self.vault_folder),
            ("output", "file"): None if out is None else str(out),
        }

    def require_choice(self, meant: Meant) -> None:
        """A ledger, or the word that none is wanted."""
        account = meant.publication.account
        if (account.ledger is None) != account.without_ledger:
            raise InvalidInput(
                "give --ledger FILE to keep account of what is spent, or say --without-ledger, one of the two"
                + ("." if meant.file is None else f"; or ledger or without_ledger under [account] of {meant.file}.")
            )


First = Annotated[
    str | None,
    typer.Argument(
        metavar="PUBLICATION",
        help="A publication file (.toml), which options override; or leave it out.",
        show_default=False,
    ),
]
Source = Annotated[
    str | None,
    typer.Argument(
        metavar="PUBLICATION_OR_DATA",
        help="A publication file (.toml), which options override; or the data, Parquet or CSV: a path, a directory or "
        "a glob.",
        show_default=False,
    ),
]
Data = Annotated[
    str | None,
    typer.Argument(
        metavar="DATA", help="After a publication file: the data, if not those it names.", show_default=False
    ),
]
NewFile = Annotated[Path | None, typer.Option(help="Where to write the release.")]
