"""`sfumato init`: a publication file from a data file's schema, with what must come from elsewhere left to be said."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from sfumato.app import options
from sfumato.app.draft import Draft
from sfumato.app.keys import listed
from sfumato.app.output import emit, reported, say, tell_operator
from sfumato.app.preflight import at_terminal
from sfumato.app.schema import columns_of, guessed
from sfumato.errors import InvalidInput, SfumatoError
from sfumato.exact import positive_fraction
from sfumato.files import replacing
from sfumato.publication import load_publication
from sfumato.relations import move

SAID = (
    "Bounds, labels, times and ε must come from what everybody may know (a map, a code list, a calendar, a decision), "
    "never from a look at these data: what is read off them is published with the release, and no ε pays for it."
)


def init(
    data: Annotated[str, typer.Argument(help="The data, Parquet or CSV: only names and types of columns are read.")],
    out: Annotated[Path | None, typer.Option(help="The file to write (default: the data's name with .toml).")] = None,
    as_json: options.Json = False,
) -> None:
    """Write a publication file from the names and types of a data file's columns. No value is read.

    Guesses which columns tell where, when, what and who; asks at a terminal for bounds, labels and ε, which must not
    come from the data; and leaves commented placeholders for what is not said.

    Example: sfumato init visits.parquet --out visits.toml
    """
    with reported(as_json):
        place = out or Path(Path(data.rstrip("/")).name).with_suffix(".toml")
        if place.exists():
            raise InvalidInput(f"--out {place} is there already. Nothing was written. Name another file.")
        columns = columns_of(data)
        path = data if "://" in data else os.path.relpath(data, place.parent)
        draft = Draft(
            path=path, columns=columns, guess=guessed(columns), release=str(place.with_suffix(".sfumato").name)
        )
        if not as_json and at_terminal():
            tell_operator(SAID)
            draft = asked(draft)
        text, missing = draft.written()
        with replacing(place) as file:
            file.write(text.encode())
        wrong = None if missing else _wrong(place)
        if as_json:
            emit({"file": str(place), "columns": sorted(draft.guess.used), "missing": missing, "wrong": wrong})
            return
        say(f"Wrote {place}, from the names and types of {len(columns)} columns. No value was read.")
        if missing:
            say(f"Still to be said in it: {', '.join(missing)}.")
        say(SAID if not missing and wrong is None else wrong or f"{SAID} Then look: sfumato plan {place}")


def asked(draft: Draft) -> Draft:
    """What somebody at the terminal says of it; an empty answer leaves a placeholder."""
    told: dict[str, Any] = {}
    if draft.guess.place is not None:
        names = " and ".join(column.name for column in draft.guess.place)
        bounds = _ask(f"Bounds of {names}, X0,Y0,X1,Y1", lambda text: options.numbers(text, "bounds"))
        told |= {"bounds": bounds, "shape": _ask("Cells along each, such as 64x64", lambda t: list(options.sides(t)))}
        told["delta"] = _ask("Hide moves shorter than, in these units", lambda text: move(text).to_text())
    if draft.guess.time is not None:
        told["start"] = _ask(f"First day of {draft.guess.time.name}, such as 2026-01-01", str)
        told["stop"] = _ask("The day after the last", str)
        told["every"] = _ask("Length of a step, such as 1 h or 1 day", str)
        told["public"] = typer.confirm("Publish exactly how many records there are at each step?", err=True) or None
    if draft.guess.category is not None:
        told["labels"] = _ask(f"Labels of {draft.guess.category.name}, A,B,C", listed)
    told["epsilon"] = _ask(
        "ε, the privacy budget of this release", lambda text: str(positive_fraction(text, "epsilon"))
    )
    told["ledger"] = _ask("Ledger that keeps account, a file or URL", str)
    return draft.with_said({key: value for key, value in told.items() if value is not None})


def _epsilon(text: str) -> str:
    positive_fraction(text, "epsilon")
    return text


def _ask(question: str, read: Callable[[str], Any]) -> Any:
    """An answer that can be read, or None for none."""
    while True:
        given = str(typer.prompt(f"{question} (empty: later)", default="", show_default=False, err=True)).strip()
        if not given:
            return None
        try:
            return read(given)
        except SfumatoError as error:
            tell_operator(str(error))


def _wrong(place: Path) -> str | None:
    """What the file that was written is refused for, if it is."""
    try:
        load_publication(place)
    except SfumatoError as error:
        return str(error)
    return None
