"""`sfumato stream`: publish a table of time-stamped records step by step, and go on where the last run stopped."""

from __future__ import annotations

import sys
from contextlib import closing
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Annotated

import typer

import sfumato as sf
from sfumato.allocation import Bernoulli, Distribution, Empirical, Markov, Periodic
from sfumato.app import options, preflight
from sfumato.app.groups import Columns, WindowQuestion, takes_groups
from sfumato.app.output import GROSS_DATA, emit, reported, say, tell_operator
from sfumato.app.step_grid import StepGrid
from sfumato.app.times import Times, read
from sfumato.counting.choice import choose_columns
from sfumato.counting.inputs import Database
from sfumato.counting.progress import advancing
from sfumato.counting.report import GROSS, CountReport, added
from sfumato.errors import InvalidInput
from sfumato.promise.window import Time
from sfumato.stream.publisher import Stream


@dataclass(frozen=True, kw_only=True)
class Steps:
    """How time is cut into steps, and from when to when they are published."""

    time: Annotated[str, typer.Option(help="Column that says when a record happened.")]
    step: Annotated[str, typer.Option(help="How long a step is: 15m, 1h, 1d; or a whole number for a whole column.")]
    window: Annotated[int, typer.Option(help="How many steps a change may last and be hidden at --epsilon.")]
    start: Annotated[str | None, typer.Option(help="When the first step begins; needed once.")] = None
    stop: Annotated[str | None, typer.Option(help="When to stop (default: now); only steps that are over count.")] = (
        None
    )
    time_format: Annotated[
        str | None,
        typer.Option(
            help="How times in text are written: iso (the default for CSV), or '%m/%d/%Y %H:%M' and the like."
        ),
    ] = None

    def begin(self, grid: StepGrid) -> Time | None:
        """When the first step begins, where it was said."""
        return None if self.start is None else grid.time(self.start, "--start")

    def end(self, grid: StepGrid) -> Time:
        """When to stop."""
        return grid.now() if self.stop is None else grid.time(self.stop, "--stop")


@dataclass(frozen=True, kw_only=True)
class Shares:
    """What part of a window's budget a step gets."""

    allocation: Annotated[str, typer.Option(help="even, sample, offline, online or top-up.")] = "even"
    weights: Annotated[
        str | None, typer.Option(help="Public weights of the steps from --start on: 1,0,2 or a file; repeated.")
    ] = None
    distribution: Annotated[
        str | None,
        typer.Option(
            help="Of weights to come: bernoulli:0.5, periodic:1,0,2, empirical:1,0,1, or markov:0,1;0.9,0.1;0.3,0.7 "
            "(levels, then the row of each level)."
        ),
    ] = None
    ended: Annotated[
        bool, typer.Option("--ended", help="No step comes after --stop: top-up spends what is left in the windows.")
    ] = False

    def known(self, steps: Steps) -> list[float] | None:
        """The weights, after what does not go together was refused."""
        if self.weights is not None and steps.start is None:
            raise InvalidInput("--weights count from --start. Nothing was counted, drawn or recorded. Give --start.")
        if self.ended and (self.allocation != "top-up" or steps.stop is None):
            raise InvalidInput("--ended goes with --allocation top-up and --stop. Nothing was counted or drawn.")
        return _weights(self.weights)


@dataclass(frozen=True, kw_only=True)
class Keeping:
    """Who keeps account of the stream, and who its noise."""

    ledger_place: Annotated[
        str, typer.Option("--ledger", help="The ledger that keeps the stream's account: a file or a URL.")
    ]
    name: Annotated[str, typer.Option(help="The stream's name in the ledger.")]
    dataset: Annotated[str, typer.Option(help="The dataset's account in the ledger.")] = "default"
    vault_folder: options.VaultFolder = None
    key: options.VaultKey = None

    def vault(self) -> sf.Vault | None:
        """Where the noise is kept, if it is."""
        return None if self.vault_folder is None else sf.Vault(self.vault_folder, self.key)


@takes_groups
def stream(
    data: Annotated[str, typer.Argument(help="Parquet or CSV: a path, a directory or a glob. It may grow.")],
    steps: Steps,
    keeping: Keeping,
    out: Annotated[Path, typer.Option(help="The folder for the releases, one file a step.")],
    question: WindowQuestion,
    columns: Columns,
    shares: Shares,
    check: Annotated[
        bool, typer.Option("--check", help="Tell what is wrong with the data, charge nothing; exit code 8 when gross.")
    ] = False,
    picture: Annotated[Path | None, typer.Option(help="Also draw the series: .png, .svg or .pdf.")] = None,
    as_json: options.Json = False,
) -> None:
    """Publish records over time, with --epsilon for every window of steps. Run it again to go on.

    When a step is published, and how much it weighs, is said here and must not be read off the records: so the first
    run needs --start. Steps that are over are published in order; a record that arrives after its step is not counted.
    With --check nothing is published: the shares of rows without a time, in no step, outside the bounds are told.

    Example: sfumato stream visits/ --time t --step 1h --window 24 --start 2026-03-01 --x lon --y lat
    --bounds=-74.3,40.5,-73.7,40.95 --shape 64x64 --delta 0.01 --epsilon 1 --ledger budget.db --name visits --out hourly
    """
    with reported(as_json), closing(Database()) as database:
        rule = question.rule()
        fields = choose_columns(rule.domain, (columns.x, columns.y, columns.z), None, columns.entity).fields(
            rule.domain
        )
        times = read(data, database, fields, steps.time, steps.step, steps.time_format)
        grid = times.grid
        known, begin, end = shares.known(steps), steps.begin(grid), steps.end(grid)
        ledger = sf.Ledger(keeping.ledger_place, dataset=keeping.dataset)
        if check:
            found = _check(times, _first(ledger, keeping.name, begin), end, question, columns, as_json)
            sys.exit(GROSS_DATA if found else 0)
        series = Stream(
            rule,
            options.workload(question.workload),
            epsilon=question.epsilon,
            window=steps.window,
            step=grid.step if isinstance(grid.step, timedelta) else None,
            ledger=ledger,
            name=keeping.name,
            allocation=shares.allocation,  # type: ignore[arg-type]
            weights=_in_advance(known, grid, begin, end) if shares.allocation == "offline" else None,
            distribution=_distribution(shares.distribution),
            vault=keeping.vault(),
            max_per_entity=question.max_per_entity,
            outbox=out,
            mechanism=question.mechanism,
        )
        moments = list(grid.steps(_next(series, grid, begin), end))
        reports: list[CountReport] = []
        done = {"published": 0, "skipped": 0}
        with advancing(not as_json, lambda: len(moments)) as advance:
            for moment in moments:
                weight = None if known is None or begin is None else known[grid.number(moment, begin) % len(known)]
                counts = None
                if weight != 0:
                    counts = columns.count(grid.records(times.frame, moment), rule, question.max_per_entity)
                    reports.append(counts.report)
                release = series.publish(moment, counts, weight)
                done["skipped" if release is None else "published"] += 1
                advance(1)
        if moments:  # told, and nothing stopped: a step that is left out would be seen
            _warn(times.report(series.history()[0].time, grid.after(moments[-1])), reports)
        if shares.ended:
            series.top_up(ended=True)
        if picture is not None:
            series.plot(picture)
        _report(series, grid, done, out, as_json)


def _first(ledger: sf.Ledger, name: str, begin: Time | None) -> Time:
    """When the first step of a stream begins, without opening an account for one that is new."""
    first = ledger.stream(name).first() if name in ledger.streams() else None
    if first is None and begin is None:
        raise _new(name)
    return begin if first is None else first.time  # type: ignore[return-value]


def _check(
    times: Times, begin: Time, end: Time, question: WindowQuestion, columns: Columns, as_json: bool
) -> tuple[str, ...]:
    """What is wrong with the data, told; and the gross errors."""
    steps = list(times.grid.steps(begin, end))
    last = times.grid.after(steps[-1]) if steps else begin
    told = times.report(begin, last)
    inside = times.grid.between(times.frame, begin, last)
    counted = columns.count(inside, question.rule(), question.max_per_entity).report
    if as_json:
        both = {"times": preflight.as_data(told, GROSS), "records": preflight.as_data(counted, GROSS)}
        emit(both | {"private": True, "steps": len(steps), "ok": all(one["ok"] for one in both.values())})
    else:
        say(f"For your eyes only (private, exact), {len(steps)} steps:")
        for line in (*preflight.lines(told, GROSS), *preflight.lines(counted, GROSS)):
            say(line)
        say("Nothing was charged, drawn or recorded.")
    return (*preflight.troubles(told), *preflight.troubles(counted))


def _warn(told: CountReport, reports: list[CountReport]) -> None:
    """Tell what is wrong with the times, and with the records of all steps of this run together."""
    if told.unreadable_time:
        tell_operator(f"For your eyes only (private): {told.unreadable_time:,} times could not be read: no records.")
    preflight.warn(told)
    if any(report.rows for report in reports):
        preflight.warn(added(reports))


def _next(series: Stream, grid: StepGrid, begin: Time | None) -> Time:
    """Where to go on: after the last step of the stream, or at its beginning."""
    history = series.history()
    if history:
        return grid.after(history[-1].time)
    if begin is None:
        raise _new(series.name)
    return begin


def _new(name: str) -> InvalidInput:
    return InvalidInput(
        f"stream '{name}' is new: say when its first step begins, with --start. It is not read off the "
        "records, which are private. Nothing was counted, drawn or recorded."
    )


def _weights(given: str | None) -> list[float] | None:
    if given is None:
        return None
    file = Path(given)
    text = file.read_text(encoding="utf-8") if file.is_file() else given
    return options.numbers(",".join(text.replace(",", " ").split()), "--weights")


def _in_advance(known: list[float] | None, grid: StepGrid, begin: Time | None, end: Time) -> list[float] | None:
    """The weight of every step up to the end, the given ones repeated."""
    if known is None or begin is None:
        return None
    return [known[i % len(known)] for i in range(grid.number(end, begin))]


def _distribution(given: str | None) -> Distribution | None:
    if given is None:
        return None
    kind, _, rest = given.partition(":")
    rows = [options.numbers(row, "--distribution") for row in rest.split(";")] if rest else [[]]
    if kind == "markov" and len(rows) > 1:
        return Markov(rows[0], rows[1:])
    if kind == "bernoulli" and [len(row) for row in rows] == [1]:
        return Bernoulli(rows[0][0])
    if kind in ("periodic", "empirical") and len(rows) == 1 and rows[0]:
        return Periodic(rows[0]) if kind == "periodic" else Empirical(rows[0])
    raise InvalidInput(
        f"--distribution {given!r} is not one of bernoulli:P, periodic:W,W,…, empirical:W,W,… or markov:W,…;P,…;…. "
        "Nothing was counted."
    )


def _report(series: Stream, grid: StepGrid, done: dict[str, int], out: Path, as_json: bool) -> None:
    history = series.history()
    lost = [record for record in history if record.release_id is not None and record.path is None]
    raised = sum(record.level > 0 for record in history)
    left = series.remaining(grid.after(history[-1].time) if history else None)
    if as_json:
        emit(
            {
                "stream": series.name,
                "epsilon": str(series.epsilon),
                "window": str(series.window),
                **done,
                "steps": len(history),
                "lost": [str(record.time) for record in lost],
                "raised": raised,
                "last": str(history[-1].time) if history else None,
                "left": str(left.epsilon),
                "folder": str(out),
            }
        )
        return
    say(f"Published {done['published']} steps to {out}, skipped {done['skipped']}; {len(history)} steps in all.")
    if raised:
        say(f"{raised} releases were raised to a finer level after their windows closed.")
    for record in lost:
        tell_operator(
            f"The release of {record.time} was charged and is not in {out}: another machine stored it, or it was lost "
            "with its budget."
        )
    say(f"Promise: ε = {series.epsilon} for every window of {series.window}; {left.epsilon} left for the next step.")
