"""`sfumato stream`: publish a table of time-stamped records step by step, and go on where the last run stopped."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import date, timedelta
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

import sfumato as sf
from sfumato.allocation import Bernoulli, Distribution, Empirical, Markov, Periodic
from sfumato.app import options, preflight
from sfumato.app.groups import Columns, Data, Question, takes_groups
from sfumato.app.keys import NOTHING, Key
from sfumato.app.meant import Meant
from sfumato.app.output import GROSS_DATA, emit, reported, say, tell_operator
from sfumato.app.step_grid import StepGrid
from sfumato.app.times import Times, read
from sfumato.counting import Counts
from sfumato.counting.choice import choose_columns
from sfumato.counting.inputs import Database
from sfumato.counting.progress import advancing
from sfumato.counting.report import GROSS, CountReport, added
from sfumato.errors import InvalidInput
from sfumato.promise.window import Time
from sfumato.publication import Publication, Steps
from sfumato.stream.outcome import Outcome
from sfumato.stream.publisher import Stream


@dataclass(frozen=True, kw_only=True)
class StepOptions:
    """From when to when steps are published, and where to: what differs from run to run."""

    start: Annotated[str | None, typer.Option(help="When the first step begins; needed once, here or in the file.")] = (
        None
    )
    stop: Annotated[str | None, typer.Option(help="When to stop (default: now); only steps that are over count.")] = (
        None
    )
    out: Annotated[Path | None, typer.Option(help="The folder for the releases, one file a step.")] = None
    late: Annotated[
        bool, typer.Option("--late", help="Also publish steps that were passed over, where their windows have room.")
    ] = False
    ended: Annotated[
        bool, typer.Option("--ended", help="No step comes after --stop: top-up spends what is left in the windows.")
    ] = False

    def given(self) -> dict[Key, Any]:
        """What these options say of the file's keys."""
        return {
            ("stream", "start"): self.start,
            ("stream", "stop"): self.stop,
            ("stream", "late"): self.late or None,
            ("output", "file"): None if self.out is None else str(self.out),
        }


@dataclass(frozen=True)
class Series:
    """A publication that is a stream: all that has to be said of one, or a refusal."""

    meant: Meant
    told: Steps
    ended: bool

    @classmethod
    def of(cls, meant: Meant, *, ended: bool) -> Series:
        """Refused by the name of the key where something is missing, or does not go together."""
        for key, example in (("time", " COLUMN"), ("step", " 1h"), ("window", " 24"), ("name", " visits")):
            meant.need("stream", key, example=example)
        meant.need("data", "path", "the data")
        meant.need("account", "ledger", example=" FILE")
        meant.need("output", "file", "--out", example=" FOLDER")
        told = meant.publication.stream
        if told.weights is not None and told.start is None:
            weights, start = meant.name("stream", "weights"), meant.name("stream", "start")
            raise InvalidInput(f"{weights} count from {start}. {NOTHING} Give {start}.")
        if ended and (told.allocation != "top-up" or told.stop is None):
            raise InvalidInput("--ended goes with --allocation top-up and --stop. Nothing was counted or drawn.")
        return cls(meant, told, ended)

    def times(self, database: Database) -> Times:
        """The records with their times."""
        publication = self.meant.publication
        columns = choose_columns(
            publication.domain, (None, None, None), publication.data.columns, publication.data.entity
        )
        return read(
            publication.records(),
            database,
            columns.fields(publication.domain),
            str(self.told.time),
            str(self.told.step),
            self.told.time_format,
            partial(self.meant.name, "stream"),
        )

    def begin(self, grid: StepGrid) -> Time | None:
        """When the first step begins, where it was said."""
        return None if self.told.start is None else grid.time(_written(self.told.start), "start")

    def end(self, grid: StepGrid) -> Time:
        """When to stop."""
        return grid.now() if self.told.stop is None else grid.time(_written(self.told.stop), "stop")

    def weights(self) -> list[float] | None:
        """The public weights of the steps: numbers, or a file of them."""
        given = self.told.weights
        if given is None:
            return None
        told = ("stream", "weights") in self.meant.told
        file = Path(given if told else self.meant.publication.place(given))
        text = file.read_text(encoding="utf-8") if file.is_file() else given
        return options.numbers(",".join(text.replace(",", " ").split()), self.meant.name("stream", "weights"))

    def distribution(self) -> Distribution | None:
        """Of the weights to come, where it was said."""
        return _distribution(self.told.distribution, self.meant.name("stream", "distribution"))


def _written(given: Any) -> str:
    """A time as people write it; TOML has times of its own."""
    return given.isoformat() if isinstance(given, date) else str(given)


@takes_groups
def stream(
    publication: Annotated[
        str | None,
        typer.Argument(
            metavar="PUBLICATION_OR_DATA",
            help="A publication file (.toml), which options override; or the data, Parquet or CSV: a path, a directory "
            "or a glob. They may grow.",
            show_default=False,
        ),
    ],
    steps: StepOptions,
    question: Question,
    columns: Columns,
    data: Data = None,
    check: Annotated[
        bool, typer.Option("--check", help="Tell what is wrong with the data, charge nothing; exit code 8 when gross.")
    ] = False,
    picture: Annotated[Path | None, typer.Option(help="Also draw the series: .png, .svg or .pdf.")] = None,
    as_json: options.Json = False,
) -> None:
    """Publish records over time, with one ε for every window of steps. Run it again to go on: nothing is charged twice.

    When a step is published, and how much it weighs, is said here and must not be read off the records: so the first
    run needs a start. Steps that are over are published in order; a record that arrives after its step is not counted.
    With --check nothing is published: the shares of rows without a time, in no step, outside the bounds are told.

    A file says the rest: what is published and hidden, the data, the ledger, and under [stream] time, step, window and
    name; docs/jobs.md has one. Each of its keys is an option as well, --allocation and --time-format among them, and so
    are those of sfumato publish.

    Example: sfumato stream hourly.toml      (or: sfumato stream visits/ --time t --step 1h --window 24 --start
    2026-03-01 --x lon --y lat --bounds=-74.3,40.5,-73.7,40.95 --shape 64x64 --delta 0.01 --epsilon 1 --ledger budget.db
    --name visits --out hourly)
    """
    with reported(as_json), closing(Database()) as database:
        meant = question.meant(publication, data, given=steps.given(), columns=columns)
        told = Series.of(meant, ended=steps.ended)
        asked = meant.publication
        times = told.times(database)
        grid = times.grid
        known, begin, end = told.weights(), told.begin(grid), told.end(grid)
        name, ledger = str(told.told.name), asked.ledger()
        if ledger is None:  # it was said
            raise InvalidInput("a stream keeps account, and no ledger was given.")
        first = _first(ledger, name, begin, meant)
        if check:
            found = _check(times, first, end, asked, as_json)
            sys.exit(GROSS_DATA if found else 0)
        allocation, folder = told.told.allocation or "even", Path(asked.place(str(asked.output.file)))
        series = Stream(
            asked.policy,
            asked.ask,
            epsilon=asked.epsilon,
            window=int(told.told.window or 0),
            step=grid.step if isinstance(grid.step, timedelta) else None,
            ledger=ledger,
            name=name,
            allocation=allocation,  # type: ignore[arg-type]
            weights=_in_advance(known, grid, begin, end) if allocation == "offline" else None,
            distribution=told.distribution(),
            vault=asked.vault(),
            max_per_entity=asked.max_per_entity,
            outbox=folder,
            mechanism=asked.mechanism,
            records=asked.expected_records,
            publication=asked,
        )
        after = _next(series, grid, first)
        passed = series.due(after, start=first)
        moments = [*(passed if told.told.late else ()), *grid.steps(after, end)]
        reports: list[CountReport] = []

        def counted(moment: Time) -> Counts:
            counts = asked.count(grid.records(times.frame, moment))
            reports.append(counts.report)
            return counts

        outcomes: list[Outcome] = []
        with advancing(not as_json, lambda: len(moments)) as advance:
            for moment in moments:
                weight = None if known is None or begin is None else known[grid.number(moment, begin) % len(known)]
                outcomes.append(series.run(moment, partial(counted, moment), weight, late=bool(told.told.late)))
                advance(1)
        if moments:  # told, and nothing stopped: a step that is left out would be seen
            _warn(times.report(series.history()[0].time, grid.after(moments[-1])), reports)
        if steps.ended:
            series.top_up(ended=True)
        if picture is not None:
            series.plot(picture)
        _report(series, grid, outcomes, () if told.told.late else passed, folder, as_json)


def _first(ledger: sf.Ledger, name: str, begin: Time | None, meant: Meant) -> Time:
    """When the first step of a stream begins, without opening an account for one that is new."""
    first = ledger.stream(name).first() if name in ledger.streams() else None
    if first is None and begin is None:
        raise _new(name, meant)
    return begin if first is None else first.time  # type: ignore[return-value]


def _check(times: Times, begin: Time, end: Time, asked: Publication, as_json: bool) -> tuple[str, ...]:
    """What is wrong with the data, told; and the gross errors."""
    steps = list(times.grid.steps(begin, end))
    last = times.grid.after(steps[-1]) if steps else begin
    told = times.report(begin, last)
    inside = times.grid.between(times.frame, begin, last)
    counted = asked.count(inside).report
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


def _next(series: Stream, grid: StepGrid, first: Time) -> Time:
    """Where to go on: after the last step of the stream, or at its beginning."""
    history = series.history()
    return grid.after(history[-1].time) if history else first


def _new(name: str, meant: Meant) -> InvalidInput:
    return InvalidInput(
        f"stream '{name}' is new: say when its first step begins, with {meant.name('stream', 'start')}. It is not "
        "read off the records, which are private. Nothing was counted, drawn or recorded."
    )


def _in_advance(known: list[float] | None, grid: StepGrid, begin: Time | None, end: Time) -> list[float] | None:
    """The weight of every step up to the end, the given ones repeated."""
    if known is None or begin is None:
        return None
    return [known[i % len(known)] for i in range(grid.number(end, begin))]


def _distribution(given: str | None, name: str) -> Distribution | None:
    if given is None:
        return None
    kind, _, rest = given.partition(":")
    rows = [options.numbers(row, name) for row in rest.split(";")] if rest else [[]]
    if kind == "markov" and len(rows) > 1:
        return Markov(rows[0], rows[1:])
    if kind == "bernoulli" and [len(row) for row in rows] == [1]:
        return Bernoulli(rows[0][0])
    if kind in ("periodic", "empirical") and len(rows) == 1 and rows[0]:
        return Periodic(rows[0]) if kind == "periodic" else Empirical(rows[0])
    raise InvalidInput(
        f"{name} {given!r} is not one of bernoulli:P, periodic:W,W,…, empirical:W,W,… or markov:W,…;P,…;…. "
        "Nothing was counted."
    )


def _report(
    series: Stream, grid: StepGrid, outcomes: list[Outcome], passed: Sequence[Time], out: Path, as_json: bool
) -> None:
    history = series.history()
    lost = [record for record in history if record.release_id is not None and record.path is None]
    raised = sum(record.level > 0 for record in history)
    left = series.remaining(grid.after(history[-1].time) if history else None)
    done = {status: sum(outcome.status == status for outcome in outcomes) for status in ("published", "skipped")}
    refused = [outcome for outcome in outcomes if outcome.status == "refused"]
    if as_json:
        emit(
            {
                "stream": series.name,
                "epsilon": str(series.epsilon),
                "window": str(series.window),
                **done,
                "refused": [str(outcome.time) for outcome in refused],
                "passed_over": [str(time) for time in passed],
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
    if passed:
        say(f"{len(passed)} steps were passed over, the first at {passed[0]}: --late publishes what there is room for.")
    for outcome in refused:
        tell_operator(str(outcome))
    for record in lost:
        tell_operator(
            f"The release of {record.time} was charged and is not in {out}: another machine stored it, or it was lost "
            "with its budget."
        )
    say(f"Promise: ε = {series.epsilon} for every window of {series.window}; {left.epsilon} left for the next step.")
