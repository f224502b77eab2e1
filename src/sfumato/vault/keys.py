"""The key of a vault: 32 random bytes, written in base64, in a file of its own or in the environment.

A missing key file is made when the vault is still empty, readable by its owner alone. Next to states sealed under a
lost key a new one would only hide the loss, so that is refused. No message shows anything of a key.
"""

from __future__ import annotations

import base64
import binascii
import os
import secrets
from pathlib import Path

from sfumato.errors import VaultError
from sfumato.files import create_private, read_private, sync_folder
from sfumato.vault.sealing import KEY_BYTES

VARIABLE = "SFUMATO_VAULT_KEY"

_LONGEST = 4096  # more than any key; a device or a log given by mistake is not read to its end
_MAKE_ONE = f"Make one with: python -c 'import base64, os; print(base64.b64encode(os.urandom({KEY_BYTES})).decode())'"


def of_environment() -> bytes:
    """The key in the environment."""
    written = os.environ.get(VARIABLE)
    if written is None:
        raise VaultError(
            f"The vault has no key: neither key=… nor the environment variable {VARIABLE} is given. Nothing was "
            f"created. Pass key='vault.key', or set {VARIABLE} to {KEY_BYTES} bytes in base64. {_MAKE_ONE}."
        )
    return _decoded(written, f"The environment variable {VARIABLE}")


def of_file(path: Path, *, may_create: bool) -> bytes:
    """The key in a file, which is made first when it is missing and may be."""
    try:
        if may_create:
            if not path.exists():  # where another process makes it first, its key is as good
                create_private(path, base64.b64encode(secrets.token_bytes(KEY_BYTES)) + b"\n")
            # Before the first state: a power cut must not take the key and leave what it opens.
            sync_folder(path.parent)
        return _read(path)
    except FileNotFoundError as error:
        raise VaultError(
            f"The key file '{path}' does not exist, and the vault is not empty: a new key could not open it. "
            "Nothing was created. Put the key back, or give the path where it is."
        ) from error
    except OSError as error:
        raise VaultError(
            f"The key file '{path}' could not be used: {error.strerror or error}. Nothing was drawn or recorded. "
            "Give the path of a key in a directory that you can read and write."
        ) from error


def _read(path: Path) -> bytes:
    written, others = read_private(path, _LONGEST)
    if others is not None:
        raise VaultError(
            f"The key file '{path}' is open to other users (permissions {others:o}). "
            f"Nothing was drawn or recorded. Make it yours alone: chmod 600 '{path}'. If somebody may have read "
            "it, the states in the vault are no longer secret."
        )
    return _decoded(written.decode("ascii", errors="replace"), f"The key file '{path}'")


def _decoded(written: str, where: str) -> bytes:
    try:
        key = base64.b64decode(written.strip(), validate=True)
    except (binascii.Error, ValueError):
        key = b""
    if len(key) != KEY_BYTES:
        raise VaultError(
            f"{where} does not hold a key: it must be {KEY_BYTES} bytes in base64. Nothing was drawn or recorded. "
            f"Give the key of this vault; for a new vault, {_MAKE_ONE[0].lower() + _MAKE_ONE[1:]}."
        )
    return key
