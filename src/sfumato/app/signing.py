"""`sfumato key`, `sfumato sign` and `sfumato verify`: whose a file is, and what holds of it."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

import sfumato as sf
from sfumato.app.audit import FAILED
from sfumato.app.options import Json
from sfumato.app.output import emit, reported, say
from sfumato.verification import verify as check

app = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help="The key that a publisher signs with.")

KeyFile = Annotated[Path, typer.Argument(help="The file of the secret key.")]


@app.command()
def create(path: KeyFile, as_json: Json = False) -> None:
    """Make a key in a new file, for its owner alone, and the public key to hand out beside it in ….pub.

    Example: sfumato key create publisher.key
    """
    with reported(as_json):
        key = sf.SigningKey.create(path)
        if as_json:
            emit({"file": str(path), "public": key.public})
        else:
            say(f"Made {path}, readable by its owner alone. Keep it: whoever has it signs in your name.")
            say(f"Hand out {path}.pub: {key.public}")


@app.command()
def show(path: KeyFile, as_json: Json = False) -> None:
    """Print the public key.

    Example: sfumato key show publisher.key
    """
    with reported(as_json):
        public = sf.SigningKey(path).public
        if as_json:
            emit({"public": public})
        else:
            say(public)


def sign(
    files: Annotated[list[Path], typer.Argument(help="What to sign: releases, statements, any files.")],
    key: Annotated[Path, typer.Option(help="The file of the secret key; make one with: sfumato key create.")],
    as_json: Json = False,
) -> None:
    """Sign files as they are. The signature goes beside each, in ….sig, and nothing in the files is changed.

    Example: sfumato sign visits.sfumato visits.html --key publisher.key
    """
    with reported(as_json):
        holder = sf.SigningKey(key)
        written = [holder.sign(file) for file in files]
        if as_json:
            emit({"signatures": [str(one) for one in written], "public": holder.public})
        else:
            for one in written:
                say(f"Signed: {one}")


def verify(
    file: Annotated[Path, typer.Argument(help="A release file, or any file with a signature beside it.")],
    key: Annotated[
        str | None, typer.Option(help="The public key it should be signed by: its text, or a file with it.")
    ] = None,
    ledger_place: Annotated[
        str | None, typer.Option("--ledger", help="The ledger that keeps account of it: a file or a URL.")
    ] = None,
    dataset: Annotated[
        str | None, typer.Option(help="The account in the ledger; without it all are looked at.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Verify a release that somebody made: its file, its noise, its account, its signature; and say what cannot be.

    Exit code 7 when a check fails, 0 when none does; with --json each check says whether it holds, fails or is open.

    Example: sfumato verify visits.sfumato --key publisher.key.pub --ledger budget.db
    """
    with reported(as_json):
        found = check(file, key=key, ledger=ledger_place, dataset=dataset)
        if as_json:
            emit(found.to_dict())
        else:
            say(str(found))
    if not found.passed:
        sys.exit(FAILED)
