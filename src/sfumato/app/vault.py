"""`sfumato vault`: is everything that can be refined still there?"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

import sfumato as sf
from sfumato.app.options import Json, VaultKey
from sfumato.app.output import emit, reported, say
from sfumato.errors import InvalidInput, VaultError

app = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help="The noise of releases that can be refined.")


@app.command()
def check(
    path: Annotated[Path, typer.Argument(help="The vault's folder.")], key: VaultKey = None, as_json: Json = False
) -> None:
    """Open every state in a vault and say whether it is intact. Nothing is shown of what is inside.

    Example: sfumato vault check secrets --key vault.key
    """
    with reported(as_json):
        if not path.is_dir():
            raise InvalidInput(f"there is no vault {path}. One is made by: sfumato publish … --vault {path}")
        if key is not None and not key.exists():
            raise InvalidInput(f"there is no key {key}. Without its key a vault cannot be opened.")
        found = sf.Vault(path, key).check()
        if as_json:
            emit(
                {
                    "releases": [
                        {
                            "release": one.release_id,
                            "levels": [{"level": level, "epsilon": str(e)} for level, e in one.levels],
                            "outbox": list(one.outbox),
                            "problem": one.problem,
                        }
                        for one in found
                    ]
                }
            )
        else:
            for one in found:
                levels = ", ".join(f"ε {epsilon}" for _, epsilon in one.levels)
                say(f"{one.release_id}  {levels or 'no level'}  {'intact' if one.intact else one.problem}")
            say(f"{len(found)} releases, {sum(one.intact for one in found)} intact.")
        broken = sum(not one.intact for one in found)
        if broken:
            raise VaultError(f"{broken} of {len(found)} releases in {path} cannot be refined any more.")
