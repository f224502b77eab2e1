"""What whoever publishes keeps to himself: where the data are, who keeps account, where the release goes, how time is
cut into steps. Nothing of it enters a release.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Any

from sfumato.errors import InvalidInput
from sfumato.publication.table import FLAG, NAMES, STEP, TEXT, WHOLE

Text = Annotated[str | None, TEXT]


@dataclass(frozen=True, kw_only=True)
class Data:
    """`[data]`: the records, and which columns are counted."""

    path: Text = None
    columns: Annotated[dict[str, str], NAMES] = field(default_factory=dict)
    entity: Text = None
    outside: Text = None

    def __post_init__(self) -> None:
        if self.outside not in (None, "clamp", "drop"):
            raise InvalidInput(f"outside = {self.outside!r} must be 'clamp' or 'drop'. Nothing was counted.")


@dataclass(frozen=True, kw_only=True)
class Account:
    """`[account]`: the ledger that is charged, or the word that none is."""

    ledger: Text = None
    dataset: Text = None
    label: Text = None
    without_ledger: Annotated[bool, FLAG] = False

    def __post_init__(self) -> None:
        if self.ledger is not None and self.without_ledger:
            raise InvalidInput("ledger and without_ledger exclude each other. Nothing was counted. Leave one out.")


@dataclass(frozen=True, kw_only=True)
class Output:
    """`[output]`: the file of the release (of a stream, the folder), and the vault for its noise. With `once` a release
    that is there already is not made again.
    """

    file: Text = None
    vault: Text = None
    key: Text = None
    once: Annotated[bool, FLAG] = False


@dataclass(frozen=True, kw_only=True)
class Steps:
    """`[stream]`: how time is cut into steps, and what each of them gets of a window's budget."""

    name: Text = None
    time: Text = None
    step: Annotated[Any, STEP] = None
    window: Annotated[int | None, WHOLE] = None
    start: Annotated[Any, STEP] = None
    stop: Annotated[Any, STEP] = None
    time_format: Text = None
    allocation: Text = None
    weights: Text = None
    distribution: Text = None
    late: Annotated[bool, FLAG] = False
