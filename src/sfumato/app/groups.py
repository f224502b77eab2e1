"""Options that several commands share, declared once: a dataclass a group, and a command that takes groups."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import MISSING, dataclass, fields, is_dataclass
from functools import wraps
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import typer

import sfumato as sf
from sfumato.app import options
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
    """What is planned: the domain, the policy, the workload, ε and the mechanism."""

    bounds: options.Bounds = None
    shape: options.Shape = None
    labels: options.LabelList = None
    other: options.Other = None
    policy: options.PolicyName = "within"
    delta: options.Delta = None
    theta: options.Theta = None
    sources: options.Sources = None
    metric: options.Metric = "euclidean"
    workload: options.Queries = "ranges"
    epsilon: options.Epsilon = "1"
    mechanism: options.Mechanism = None
    max_per_entity: options.PerEntity = None

    def rule(self) -> sf.Policy:
        """The policy on its domain."""
        where = options.domain(self.bounds, self.shape, self.labels, self.other)
        return options.policy(where, self.policy, self.delta, self.theta, self.sources, self.metric)

    def plan(self) -> sf.Plan:
        """The plan that these options make."""
        rule, asked = self.rule(), options.workload(self.workload)
        return sf.plan(rule, asked, self.epsilon, mechanism=self.mechanism, max_per_entity=self.max_per_entity)


@dataclass(frozen=True, kw_only=True)
class WindowQuestion(Question):
    """The same, with ε for a window of steps."""

    epsilon: Annotated[str, typer.Option(help="The privacy budget of every window.")] = "1"


@dataclass(frozen=True, kw_only=True)
class Columns:
    """Which columns are counted, and what becomes of records outside."""

    x: Annotated[str | None, typer.Option(help="Column of the first axis (default: x, or category).")] = None
    y: Annotated[str | None, typer.Option(help="Column of the second axis.")] = None
    z: Annotated[str | None, typer.Option(help="Column of the third axis.")] = None
    entity: Annotated[str | None, typer.Option(help="Column that says whose record it is.")] = None
    outside: options.Outside = "clamp"

    def count(self, data: Any, rule: sf.Policy, max_per_entity: int | None, *, progress: bool = False) -> sf.Counts:
        """The private counts. What they warn of is told by the command itself."""
        return sf.count(
            data,
            rule.domain,
            x=self.x,
            y=self.y,
            z=self.z,
            entity=self.entity,
            max_per_entity=max_per_entity,
            outside=self.outside,  # type: ignore[arg-type]
            policy=rule,
            progress=progress,
        )


@dataclass(frozen=True, kw_only=True)
class Publishing:
    """Who keeps account, who keeps the noise, and whether anybody is asked."""

    ledger_place: Annotated[
        str | None, typer.Option("--ledger", help="Charge the release to this ledger: a file or a URL.")
    ] = None
    dataset: Annotated[str, typer.Option(help="The dataset's account in the ledger.")] = "default"
    label: Annotated[str | None, typer.Option(help="A note for the ledger, in plain text.")] = None
    without_ledger: Annotated[bool, typer.Option(help="Publish without keeping account.")] = False
    vault_folder: options.VaultFolder = None
    key: options.VaultKey = None
    strict: Annotated[
        bool,
        typer.Option(
            "--strict",
            help="Stop before anything is charged when the data look grossly wrong. Whether a release appears then "
            "depends on private data.",
        ),
    ] = False
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask at a terminal: for scripts.")] = False

    def require_choice(self) -> None:
        """A ledger, or the word that none is wanted."""
        if (self.ledger_place is None) != self.without_ledger:
            raise InvalidInput(
                "give --ledger FILE to keep account of what is spent, or say --without-ledger, one of the two."
            )


Data = Annotated[str, typer.Argument(help="Parquet or CSV: a path, a directory or a glob.")]
NewFile = Annotated[Path, typer.Option(help="Where to write the release.")]
