"""Where the releases of a stream are kept from the moment they exist: a folder of files, or sealed in a vault.

A release is stored before it is handed out. Whoever asks for the same step again gets the same release; if it was
charged and never stored, no second one can be made, because two noises of one charge would average out.
"""

from __future__ import annotations

from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Protocol

from sfumato.errors import FileFormatError, InvalidInput
from sfumato.files import Reserved, make_folder
from sfumato.ledger.steps import Step
from sfumato.promise.window import Time
from sfumato.release import Release
from sfumato.release.files import from_bytes, load
from sfumato.release.outbox import room_for
from sfumato.release.writing import save, to_bytes
from sfumato.vault import Vault


class ReleaseStore(Protocol):
    """Keeps releases by step and level."""

    def require_free(self, time: Time, cells: int) -> None:
        """Refuse, before anything is charged, a step whose place is taken, or where a release has no room."""

    def put(self, time: Time, level: int, release: Release) -> None:
        """Keep a release; on disk when this returns."""

    def get(self, step: Step, level: int) -> Release | None:
        """The release of a step at a level, or None when none is kept."""

    def holds(self, step: Step) -> bool:
        """Whether the latest level of a step's release is kept."""

    def path(self, step: Step) -> Path | None:
        """The file of the finest level that is kept, where there is one that anybody can read."""


class FolderStore:
    """Release files that anybody may read, named by their step: `12.sfumato`, then `12.level-1.sfumato`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def require_free(self, time: Time, cells: int) -> None:
        """No file of another stream is ever replaced, and the folder is there to be written to."""
        try:
            make_folder(self.folder)
            taken = self._file(time, 0).exists()
            Reserved(self._file(time, 0), room=room_for(cells)).discard()
        except OSError as error:
            raise InvalidInput(
                f"outbox='{self.folder}' cannot be used: {error.strerror or error}. Nothing was drawn or recorded. "
                "Give a folder that you can write to."
            ) from error
        if taken:
            raise InvalidInput(
                f"'{self._file(time, 0)}' exists and belongs to no step of this stream. Nothing was drawn or recorded. "
                "Give every stream an outbox of its own."
            )

    def put(self, time: Time, level: int, release: Release) -> None:
        """Write the file, whole or not at all."""
        save(release, self._file(time, level))

    def get(self, step: Step, level: int) -> Release | None:
        """The release in the file, if it is the one that was charged."""
        with suppress(FileNotFoundError):
            release = load(self._file(step.time, level))
            if release.id == step.release_id:
                return release
            raise FileFormatError(
                f"'{self._file(step.time, level)}' holds another release than the one that was charged for its step. "
                "Nothing was drawn or recorded. Put the right file back, or give another outbox."
            )
        return None

    def holds(self, step: Step) -> bool:
        """Whether its file is there."""
        return self._file(step.time, step.level).exists()

    def path(self, step: Step) -> Path | None:
        """The file of the finest level that is there."""
        files = (self._file(step.time, level) for level in range(step.level, -1, -1))
        return next((file for file in files if file.exists()), None)

    def _file(self, time: Time, level: int) -> Path:
        # Colons cannot be in a file's name everywhere.
        name = time.isoformat().replace(":", "-") if isinstance(time, datetime) else str(time)
        return self.folder / (f"{name}.level-{level}.sfumato" if level else f"{name}.sfumato")


class VaultStore:
    """The outbox of a vault: unreadable without its key. Finer levels are put there by `refine` itself."""

    def __init__(self, vault: Vault) -> None:
        self.vault = vault

    def require_free(self, time: Time, cells: int) -> None:
        """VaultStore releases are named by their own ids: nothing can be in the way."""

    def put(self, time: Time, level: int, release: Release) -> None:
        """Seal the release; `refine` has done so with the finer levels already."""
        del time
        if level == 0:
            self.vault.put_outbox(release.id, level, to_bytes(release))

    def get(self, step: Step, level: int) -> Release | None:
        """The release as it was sealed."""
        if step.release_id is None:
            return None
        content = self.vault.get_outbox(step.release_id, level)
        return None if content is None else from_bytes(content, "the vault's outbox")

    def holds(self, step: Step) -> bool:
        """Whether it can be had: finer levels are staged before they are counted, and settled when asked for."""
        return step.level > 0 or self.get(step, 0) is not None

    def path(self, step: Step) -> Path | None:
        """Nobody can read it as a file."""
        del step
        return None
