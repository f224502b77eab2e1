"""`sfumato`: the command line, a module for each command that is more than a few lines."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Annotated, Any

import typer

import sfumato as sf
from sfumato.app import (
    audit,
    check,
    doctor,
    export,
    figures,
    init,
    ledger,
    options,
    preflight,
    query,
    signing,
    statement,
    stream,
    vault,
)
from sfumato.app import demo as demonstration
from sfumato.app.asked import groups_of, where_of
from sfumato.app.groups import Columns, Data, First, NewFile, Publishing, Question, Source, takes_groups
from sfumato.app.keys import NOTHING, Filed, Keyed
from sfumato.app.out import already, ledger_file, prepared
from sfumato.app.output import emit, reported, say
from sfumato.app.studio.command import studio
from sfumato.errors import InvalidInput
from sfumato.interruptions import undisturbed
from sfumato.release.outbox import deliver

app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,  # a traceback with local variables could show private data
    help="Publish where and when things happened with differential privacy tuned to distance.",
    epilog="Exit codes: 2 wrong argument, 3 budget spent, 4 file or ledger unreadable, 5 too large, 6 extra missing, "
    "7 audit or verification failed, 8 the data look grossly wrong (check, stream --check, publish --strict) or nobody "
    "agreed.",
)
app.add_typer(ledger.app, name="ledger")
app.add_typer(vault.app, name="vault")
app.add_typer(signing.app, name="key")
app.command()(init.init)
app.command()(query.query)
app.command()(figures.rate)
app.command()(figures.compare)
app.command()(figures.suppress)
app.command()(export.export)
app.command()(doctor.doctor)
app.command(cls=Filed)(stream.stream)
app.command(cls=Keyed)(audit.audit)
app.command(cls=Keyed)(check.check)
app.command()(studio)
app.command()(statement.statement)
app.command()(signing.sign)
app.command()(signing.verify)


def main() -> None:
    """The entry point."""
    app()


def _version(wanted: bool) -> None:
    if wanted:
        say(f"sfumato {sf.__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    del version


@app.command(cls=Keyed)
@takes_groups
def plan(question: Question, publication: First = None, as_json: options.Json = False) -> None:
    """Choose a mechanism and say what it promises and how accurate it will be. Sees no data and costs nothing.

    Example: sfumato plan --bounds=-74.3,40.5,-73.7,40.95 --shape 256x256 --delta 0.01 --epsilon 1      (or, from a
    publication file: sfumato plan visits.toml)
    """
    with reported(as_json):
        chosen = question.meant(publication).publication.plan()
        if as_json:
            emit(chosen.to_dict())
        else:
            say(str(chosen))
            say()
            say(chosen.guarantee.describe())


@app.command(cls=Keyed)
@takes_groups
def publish(
    publication: Source,
    question: Question,
    columns: Columns,
    publishing: Publishing,
    data: Data = None,
    out: NewFile = None,
    as_json: options.Json = False,
) -> None:
    """Count private records and publish them: check, record in the ledger, draw, write.

    At a terminal the shares of bad rows are shown and somebody is asked before anything is charged (not with --yes);
    elsewhere gross errors are a warning. Look beforehand, at no cost, with: sfumato check, and the same options. With
    --once a job can be repeated: where --out has its release already, nothing is counted or charged.

    Example: sfumato publish visits.toml      (or, where a file would say little: sfumato publish visits.parquet --x lon
    --y lat --bounds=-74.3,40.5,-73.7,40.95 --shape 256x256 --delta 0.01 --epsilon 1 --ledger budget.db
    --out visits.sfumato; make the ledger once with: sfumato ledger create budget.db --epsilon 10)
    """
    with reported(as_json):
        meant = question.meant(publication, data, given=publishing.given(out), columns=columns)
        publishing.require_choice(meant)
        asked = meant.publication
        records, file_of_release = meant.need("data", "path", "the data"), meant.need("output", "file", "--out")
        if asked.stream.step is not None:
            raise InvalidInput(f"{meant.file} speaks of a stream: sfumato stream publishes it. {NOTHING}")
        place = Path(asked.place(file_of_release))
        there = already(asked, place) if asked.output.once else None
        if there is not None:
            if not as_json:
                say(f"{place} is there already: nothing was counted or charged.")
            _tell(there, place, asked.ledger(), "Promise", as_json=as_json)
            return
        chosen, account, secrets = asked.plan(), asked.ledger(), asked.vault()
        budget = None if account is None else ledger_file(asked.place(str(asked.account.ledger)))
        apart = {"the ledger": budget, "the vault's key": meant.place("output", "key"), "the publication": meant.file}
        with prepared(place, cells=math.prod(chosen.mechanism.shape), apart=apart, data=asked.place(records)) as file:
            counts = asked.count(progress=not as_json, tables=chosen.tables)
            if not as_json or (preflight.at_terminal() and not publishing.yes):
                preflight.tell(counts.report)
            preflight.decide(counts.report, strict=publishing.strict, yes=publishing.yes)
            with undisturbed():
                release = chosen.publish(counts, ledger=account, vault=secrets, label=asked.account.label)
                deliver(release, file, ledger=budget)
                if not as_json:
                    say(f"Published {place}: {release!r}")
        _tell(release, place, account, "Promise", as_json=as_json)


@app.command()
def refine(
    release: Annotated[Path, typer.Argument(help="A release file that was published with --vault.")],
    epsilon: Annotated[str, typer.Option(help="The new budget of the release, above the old one.")],
    vault_folder: Annotated[Path, typer.Option("--vault", help="The vault it was published with.")],
    out: Annotated[Path, typer.Option(help="Where to write the finer release.")],
    key: options.VaultKey = None,
    ledger_place: Annotated[str | None, typer.Option("--ledger", help="The ledger it was charged to.")] = None,
    dataset: Annotated[str, typer.Option(help="The dataset's account in the ledger.")] = "default",
    label: Annotated[str | None, typer.Option(help="A note for the ledger, in plain text.")] = None,
    as_json: options.Json = False,
) -> None:
    """Publish a release again at a larger ε, for the difference alone. Needs its vault, and no data.

    Example: sfumato refine visits.sfumato --epsilon 2 --vault secrets --key vault.key --ledger budget.db
    --out visits-2.sfumato
    """
    with reported(as_json):
        if not vault_folder.is_dir():
            raise InvalidInput(f"there is no vault {vault_folder}. Nothing was drawn or recorded.")
        account = None if ledger_place is None else sf.Ledger(ledger_place, dataset=dataset)
        coarse = sf.load(release)
        apart = {"the ledger": ledger_file(ledger_place), "the vault's key": key}
        with prepared(out, cells=math.prod(coarse.domain.shape), apart=apart) as file, undisturbed():
            finer = coarse.refine(epsilon, vault=sf.Vault(vault_folder, key), ledger=account, label=label)
            deliver(finer, file, ledger=ledger_file(ledger_place))
        if not as_json:
            say(f"Refined {out}: {finer!r}")
        _tell(finer, out, account, "Promise, for all levels together", as_json=as_json)


@app.command()
def plot(
    release: Annotated[Path, typer.Argument(help="A release file.")],
    out: Annotated[Path, typer.Option(help="The picture: .png, .svg or .pdf.")],
    title: Annotated[str | None, typer.Option(help="A title for the picture.")] = None,
    where: query.Where = None,
    by: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="What is drawn, and what tells panels apart. Repeat.")
    ] = None,
    outlines: Annotated[
        Path | None, typer.Option(help="Borders or coasts to draw on a map: a file of GeoJSON or GeoParquet.")
    ] = None,
    uncertainty: Annotated[
        bool | None,
        typer.Option("--uncertainty/--no-uncertainty", help="A map of the standard errors beside a single map."),
    ] = None,
    as_json: options.Json = False,
) -> None:
    """Draw a release: a map or a curve with its uncertainty; of a product a map a value, or curves over time.

    Example: sfumato plot visits.sfumato --out visits.png --by place --by mode --where t=2026-01-01/2026-01-08
    """
    with reported(as_json):
        loaded = sf.load(release)
        asked, groups = where_of(loaded.domain, where or []), groups_of(loaded.domain, by or [])
        loaded.plot(
            out, title=title, by=groups or None, where=asked or None, outlines=outlines, uncertainty=uncertainty
        )
        if as_json:
            emit({"file": str(out)})
        else:
            say(f"Drew {out}")


@app.command()
def demo(
    out: Annotated[Path, typer.Option(help="The folder for everything that the demonstration writes.")] = Path("demo"),
    people: Annotated[int, typer.Option(help="How many people live in the synthetic city.")] = 60_000,
    as_json: options.Json = False,
) -> None:
    """Make a synthetic city, plan, publish, answer and draw it, and say what was done.

    Example: sfumato demo --out demo
    """
    with reported(as_json):
        demonstration.run(out, people, as_json=as_json)


def _tell(release: sf.Release, place: Path, account: sf.Ledger | None, promise: str, *, as_json: bool) -> None:
    """What a release promises, and what its account still holds."""
    if as_json:
        left = None if account is None else str(account.remaining)
        emit(_described(release) | {"file": str(place), "ledger_left": left})
        return
    say(f"{promise}: {release.guarantee}")
    if account is not None:
        say(str(account))


def _described(release: sf.Release) -> dict[str, Any]:
    return {
        "id": release.id,
        "mechanism": release.mechanism.spec(),
        "guarantee": release.guarantee.to_dict(),
        "promise": str(release.guarantee),
        "total": release.total,
        "cells": list(release.domain.shape),
    }
