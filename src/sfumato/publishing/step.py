"""One step of a stream in the place of a ledger: what pays for a release and for its finer levels."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from fractions import Fraction

from sfumato.errors import PolicyMismatch
from sfumato.exact import Number
from sfumato.ledger.streams import StreamAccount
from sfumato.promise import Epsilon, Guarantee
from sfumato.promise.window import Time


@dataclass(frozen=True)
class StreamStep:
    """The account of a stream at the time of the data.

    Budget belongs to that time, not to the time of publication: the release is charged there, and so is every finer
    level that is made of it later. Speaks to `publish` and `refine` as a ledger does. `weight` and
    `floor` are kept with the charge (`sfumato.ledger.steps.Step`).
    """

    account: StreamAccount
    time: Time
    weight: float | None = None
    floor: float | None = None
    late: bool = False

    @property
    def payer(self) -> str:
        """What a vault seals as the one who paid."""
        return self.account.payer(self.time)

    @property
    def reached(self) -> tuple[str, Fraction | None]:
        """What a vault remembers of the stream."""
        return self.account.reached

    @property
    def path(self) -> None:
        """No file to name: the step's publisher knows it."""
        return None

    @property
    def where(self) -> str:
        """The step, as messages name it."""
        return f"time {self.time} of stream '{self.account.name}'"

    def forgotten(self, reached: Fraction | None, known: Fraction) -> str:
        """What is said when a vault remembers more than is here."""
        del reached, known
        return f"stream '{self.account.name}' has forgotten steps that the vault knows of"

    def promised(self, guarantee: Guarantee) -> Guarantee:
        """The guarantee of a release at this step: its own ε, and the promise of the stream for every window."""
        return replace(guarantee, window=self.account.window, window_epsilon=self.account.epsilon)

    def charge(
        self,
        guarantee: Guarantee,
        *,
        label: str,
        release_id: str,
        filtered: Collection[str] = (),
        dropped: Collection[str] = (),
    ) -> None:
        """Check that the release fits into its window and record it, durably. A stream is kept under its policy, which
        knows nothing of filters, and of records beyond the bounds only what it hides itself.
        """
        if filtered or (dropped and guarantee.policy != self.account.policy):
            raise PolicyMismatch(
                f"records were left out, and {self.where} promises what its policy says of all of them. Nothing was "
                "drawn or recorded. Count all records, with outside='clamp', or use another account."
            )
        self.account.charge(
            self.time,
            guarantee,
            label=label,
            release_id=release_id,
            weight=self.weight,
            floor=self.floor,
            late=self.late,
        )

    def level(self, release_id: str) -> tuple[int, Epsilon] | None:
        """(level, ε) at which the release of this step stands; None when another one, or none, was charged."""
        step = self.account.at(self.time, settled=True)
        return None if step is None or step.release_id != release_id else (step.level, step.epsilon)

    def quote_level(self, release_id: str, *, epsilon: Number) -> Epsilon:
        """What `raise_level` would take beyond what is spent, or its refusal."""
        del release_id  # one release a step, and `level` has told which
        return self.account.quote_step(self.time, epsilon=epsilon)

    def raise_level(
        self, release_id: str, *, level: int, epsilon: Number, label: str, token: str | None = None
    ) -> None:
        """Charge a finer level of the release to the time of its data."""
        del release_id
        self.account.raise_step(self.time, epsilon, level=level, label=label, token=token)

    def stamp(self, release_id: str, level: int) -> str | None:
        """The token of the noise that was charged for a level of the release."""
        del release_id
        return self.account.stamp(self.time, level)

    def __str__(self) -> str:
        return self.where
