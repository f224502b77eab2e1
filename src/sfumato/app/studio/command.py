"""`sfumato studio`: the page, in a browser on this machine."""

from __future__ import annotations

import webbrowser
from pathlib import Path
from typing import Annotated
from urllib.parse import urlsplit

import typer

from sfumato.app.output import reported, say, tell_operator
from sfumato.errors import InvalidInput

NOTHING = "Nothing was started."


def studio(
    file: Annotated[
        str | None,
        typer.Argument(
            metavar="FILE",
            help="A publication (.toml) to go on with, or data (Parquet or CSV) to begin with; or leave it out.",
            show_default=False,
        ),
    ] = None,
    port: Annotated[int, typer.Option(help="The port; 0 takes any that is free.", min=0, max=65535)] = 0,
    host: Annotated[str, typer.Option(help="Where to listen. Anything but this machine's own address is a risk.")] = (
        "127.0.0.1"
    ),
    no_browser: Annotated[bool, typer.Option("--no-browser", help="Print the link and open no browser.")] = False,
    outlines: Annotated[Path | None, typer.Option(help="A GeoJSON of outlines to draw below the cells.")] = None,
    tiles: Annotated[
        str | None,
        typer.Option(help="Tiles of a map, https://…/{z}/{x}/{y}.png: their host then sees where you look."),
    ] = None,
) -> None:
    """See what is hidden before it is spent, publish, and explore: a page in your browser, on this machine alone.

    Example: sfumato studio visits.toml      (or: sfumato studio visits.parquet)
    """
    with reported(as_json=False):
        from sfumato.app.studio.serve import LOOPBACK, require_packages, serve

        require_packages()
        from sfumato.app.studio.routes import Studio

        if file is not None and not Path(file).exists():
            raise InvalidInput(f"there is no file {file}. {NOTHING}")
        if outlines is not None and not outlines.is_file():
            raise InvalidInput(f"--outlines {outlines} is no file. {NOTHING}")
        if tiles is not None and (
            urlsplit(tiles).scheme not in ("http", "https") or not all(part in tiles for part in ("{z}", "{x}", "{y}"))
        ):
            raise InvalidInput(f"--tiles {tiles} is no address with {{z}}, {{x}} and {{y}} in it. {NOTHING}")
        folder = Path.cwd() if file is None else Path(file).absolute().parent
        name = None if file is None else Path(file).name
        if host not in LOOPBACK:
            tell_operator(
                f"WARNING: --host {host} opens the studio to other machines, without encryption: whoever sees the link "
                "or the traffic can read releases, spend budget and name files here. Prefer an SSH tunnel: "
                "ssh -L PORT:127.0.0.1:PORT"
            )
        if tiles is not None:
            tell_operator(f"Tiles come from {urlsplit(tiles).netloc}, which sees what part of the map you look at.")

        def begun(link: str) -> None:
            say(f"The studio is at {link}")
            say("The link is good once. Ctrl-C ends the studio; what it is publishing then is finished first.")
            if not no_browser and not webbrowser.open(link):
                tell_operator("No browser could be opened. Open the link yourself.")

        serve(
            Studio(folder=folder, file=name, tiles=tiles, outlines=None if outlines is None else outlines.absolute()),
            host=host,
            port=port,
            begun=begun,
        )
