"""`sfumato`: init, plan, check, publish, refine, query, plot, stream, audit, ledger, vault, demo."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

import sfumato as sf
from sfumato.app import audit, check, init, ledger, options, preflight, stream, vault
from sfumato.app import demo as demonstration
from sfumato.app.groups import Columns, Data, First, NewFile, Publishing, Question, Source, takes_groups
from sfumato.app.keys import NOTHING, Keyed
from sfumato.app.out import ledger_file, prepared
from sfumato.app.output import emit, reported, say
from sfumato.errors import InvalidInput
from sfumato.interruptions import undisturbed
from sfumato.release.outbox import deliver

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,  # a traceback with local variables could show private data
    help="Publish where and when things happened with differential privacy tuned to distance.",
    epilog="Exit codes: 2 wrong argument, 3 budget spent, 4 file or ledger unreadable, 5 too large, 6 extra missing, "
    "7 audit failed, 8 the data look grossly wrong (check, stream --check, publish --strict) or nobody agreed.",
)
app.add_typer(ledger.app, name="ledger")
app.add_typer(vault.app, name="vault")
app.command()(init.init)
app.command(cls=Keyed)(stream.stream)
app.command(cls=Keyed)(audit.audit)
app.command(cls=Keyed)(check.check)


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
    elsewhere gross errors are a warning. Look beforehand, at no cost, with: sfumato check, and the same options.

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
        chosen, account, secrets = asked.plan(), asked.ledger(), asked.vault()
        budget = None if account is None else ledger_file(asked.place(str(asked.account.ledger)))
        apart = {"the ledger": budget, "the vault's key": meant.place("output", "key"), "the publication": meant.file}
        with prepared(place, cells=chosen.policy.domain.size, apart=apart, data=asked.place(records)) as file:
            counts = asked.count(progress=not as_json)
            if not as_json or (preflight.at_terminal() and not publishing.yes):
                preflight.tell(counts.report)
            preflight.decide(counts.report, strict=publishing.strict, yes=publishing.yes)
            with undisturbed():
                release = chosen.publish(counts, ledger=account, vault=secrets, label=asked.account.label)
                deliver(release, file, ledger=budget)
                if not as_json:
                    say(f"Published {place}: {release!r}")
        if as_json:
            emit(
                _described(release)
                | {"file": str(place), "ledger_left": None if account is None else str(account.remaining)}
            )
            return
        say(f"Promise: {release.guarantee}")
        if account is not None:
            say(str(account))


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
        if as_json:
            emit(
                _described(finer)
                | {"file": str(out), "ledger_left": None if account is None else str(account.remaining)}
            )
            return
        say(f"Refined {out}: {finer!r}")
        say(f"Promise, for all levels together: {finer.guarantee}")
        if account is not None:
            say(str(account))


@app.command()
def query(
    release: Annotated[Path, typer.Argument(help="A release file.")],
    ranges: Annotated[
        list[str] | None,
        typer.Option("--range", help="LO,HI on a line, X0,Y0,X1,Y1 on a grid, or a label. Repeat for more."),
    ] = None,
    file: Annotated[Path | None, typer.Option("--ranges", help="A text file with one range a line.")] = None,
    confidence: Annotated[float, typer.Option(help="How often the interval shall hold.")] = 0.95,
    cut: options.Cut = "bracket",
    as_json: options.Json = False,
) -> None:
    """Answer ranges from a release, with standard errors and intervals. Needs no data and no secret.

    A range that cuts cells gets an interval that holds the records on whichever side of the cut they lie.

    Example: sfumato query visits.sfumato --range=-74.0,40.70,-73.95,40.75
    """
    with reported(as_json):
        loaded = sf.load(release)
        wanted = list(ranges or [])
        if file is not None:
            wanted += [line.strip() for line in file.read_text().splitlines() if line.strip()]
        if not wanted:
            raise InvalidInput("ask something: --range LO,HI (or X0,Y0,X1,Y1), or --ranges FILE.")
        asked: Any = wanted
        if loaded.domain.is_spatial:
            rows = [options.numbers(one, "--range") for one in wanted]
            if len({len(row) for row in rows} | {2 * loaded.domain.ndim}) > 1:
                raise InvalidInput(
                    f"every range on this release needs {2 * loaded.domain.ndim} numbers: {loaded.domain!r}."
                )
            asked = np.array(rows)
        answer = loaded.answer(asked, confidence=confidence, cut=cut)
        columns = [np.atleast_1d(getattr(answer, name)) for name in ("value", "stderr", "low", "high", "cut_share")]
        if as_json:
            names = ("value", "stderr", "low", "high", "cut_share")
            known = [[None if np.isnan(v) else float(v) for v in row] for row in zip(*columns, strict=True)]
            answers: list[dict[str, Any]] = [
                {"range": one, **dict(zip(names, row, strict=True))} for one, row in zip(wanted, known, strict=True)
            ]
            if cut == "snap" and loaded.domain.is_spatial:
                answers = [
                    row | {"answered": list(one)} for row, one in zip(answers, answer.range.tolist(), strict=True)
                ]
            emit({"confidence": confidence, "promise": str(loaded.guarantee), "cut": cut, "answers": answers})
            return
        if cut == "snap" and loaded.domain.is_spatial:
            wanted = [f"{','.join(f'{end:.10g}' for end in one)}" for one in answer.range.tolist()]
            say("Every range was moved to the nearest whole cells; the first column says where it then lies.")
        width = max(len(one) for one in wanted)
        interval = f"{confidence:.0%} interval{' of the noise alone' if cut == 'proportion' else ''}"
        say(f"{'range':<{width}}  {'estimate':>14}  {'± std. error':>14}  {'in cut cells':>12}  {interval}")
        for one, value, stderr, low, high, share in zip(wanted, *columns, strict=True):
            say(f"{one:<{width}}  {value:>14,.1f}  {stderr:>14,.2f}  {share:>12.0%}  {_interval(low, high)}")
        say(f"\n{loaded.guarantee}")


@app.command()
def plot(
    release: Annotated[Path, typer.Argument(help="A release file.")],
    out: Annotated[Path, typer.Option(help="The picture: .png, .svg or .pdf.")],
    title: Annotated[str | None, typer.Option(help="A title for the picture.")] = None,
    as_json: options.Json = False,
) -> None:
    """Draw a release: a map or a curve with its uncertainty.

    Example: sfumato plot visits.sfumato --out visits.png
    """
    with reported(as_json):
        loaded = sf.load(release)
        loaded.plot(out, title=title)
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


def _interval(low: float, high: float) -> str:
    return "none: the error depends on the data" if np.isnan(low) else f"[{low:,.1f}, {high:,.1f}]"


def _described(release: sf.Release) -> dict[str, Any]:
    return {
        "id": release.id,
        "mechanism": release.mechanism.spec(),
        "guarantee": release.guarantee.to_dict(),
        "promise": str(release.guarantee),
        "total": release.total,
        "cells": list(release.domain.shape),
    }
