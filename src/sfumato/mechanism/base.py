"""What every mechanism offers: its cost before any data is seen, and one method that sees counts."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from sfumato._types import Floats, Integers
from sfumato.errors import InvalidInput
from sfumato.exact import text
from sfumato.mechanism.forms import Additive, Form
from sfumato.mechanism.model import NoiseModel
from sfumato.mechanism.parts import Parts
from sfumato.mechanism.runs import Runs
from sfumato.noise import DiscreteLaplace, Source
from sfumato.policies import Policy
from sfumato.workload import Workload

if TYPE_CHECKING:
    from sfumato.mechanism.points.sorted import SortedMechanism
    from sfumato.mechanism.tables.marginals import MarginalsMechanism

# The declared cap: arithmetic is laid out for as many records. Beyond it a total is no longer exact in double
# precision, and no set of records is as large. Whether sums could leave 64 bits is judged from it, never from counts.
MOST_RECORDS = 1 << 53
LARGEST_INTEGER = (1 << 63) - 1
# What entries of a strategy may multiply to over the axes: room for all records is left, and for much noise.
LARGEST_PRODUCT = (1 << 10) - 1


@dataclass(frozen=True, kw_only=True, eq=False)
class Mechanism(ABC):
    """What turns private counts into estimates, ε-private for a change of one record along one edge of the policy."""

    name: str
    policy: Policy
    epsilon: Fraction
    options: dict[str, Any] = field(default_factory=dict)

    def require_possible(self) -> None:
        """Refuse what shows only in the policy's edges. For plans: reading a file must not go over all of them."""
        return  # most have nothing to refuse

    @property
    def model(self) -> NoiseModel | None:
        """The law of the noise in the estimates, where it does not depend on the data."""
        return None

    @property
    def biased(self) -> bool:
        """Whether the estimates miss the counts by something that depends on the data, beside the noise."""
        return self.model is None

    def modelled_error(self, workload: Workload, records: int) -> float:
        """A guess of the mean squared error for a public number of records; NaN where there is no model for it."""
        del workload, records
        return float("nan")

    @property
    def form(self) -> Form | None:
        """How the output comes about, for the auditor: a claim that is checked. None: it can only be run."""
        return None

    @property
    def additive(self) -> AdditiveMechanism | None:
        """Itself where its output is values plus noise, which can be lowered later for the difference in ε alone."""
        return None

    @property
    def linear(self) -> LinearMechanism | None:
        """Itself where noise of a known law is carried to the estimates by a linear map."""
        return None

    @property
    def by_points(self) -> SortedMechanism | None:
        """Itself where it measures sorted records in the place of counts."""
        return None

    @property
    def by_tables(self) -> MarginalsMechanism | None:
        """Itself where it sees tables of some factors in the place of cells."""
        return None

    def seen(self, counts: Integers) -> Integers:
        """What it sees of the flat counts of all cells: these, or tables of them."""
        return counts

    @property
    def shape(self) -> tuple[int, ...]:
        """That of its estimates, as a release keeps them: the domain's."""
        return self.policy.domain.shape

    def shaped(self, estimates: Floats) -> Floats:
        """Estimates in their shape."""
        return estimates.reshape(self.shape)

    def records(self, counts: Any) -> Any:
        """The number of records in what it sees, or estimates."""
        return counts.sum()

    @property
    def refinable(self) -> bool:
        """Whether the noise can be lowered later."""
        return self.additive is not None

    @property
    def keeps_measured(self) -> bool:
        """Whether a release should keep its noisy integers, because they say more than the counts."""
        return False

    def parts(self, measured: Integers | None, total: int | None) -> Sequence[Parts]:
        """For a mechanism that smooths, the grids of bins by any one of which a range can be bracketed, from what it
        measured; none where there are none, or where the release has not kept them.
        """
        del measured, total
        return ()

    def runs(self, measured: Integers | None, total: int | None) -> Runs | None:
        """The same for a mechanism that finds its parts in the data."""
        del measured, total
        return None

    @property
    def grain(self) -> tuple[int, ...] | None:
        """How many cells along each axis are known together; None where the data decides."""
        return None if self.biased else (1,) * self.policy.domain.ndim

    def informed(self, records: int) -> Mechanism:
        """The same with what was left open chosen by a public guess of the number of records."""
        del records
        return self

    def for_total(self, total: int) -> Mechanism:
        """The same with everything written down that rests on the public number of records."""
        del total
        return self

    @property
    @abstractmethod
    def privacy_loss(self) -> Fraction:
        """The most that the output can tell about a change along an edge, from what was built: never above epsilon."""

    @abstractmethod
    def run(self, counts: Integers, total: int | None, source: Source) -> Floats:
        """Estimated counts, flat. The only method that sees counts; `total` is given where it is public."""

    def require_room(self) -> None:
        """Refuse, when a plan is made, what could leave 64 bits for some counts of at most MOST_RECORDS together."""
        return

    def observe(self, counts: Integers, total: int | None, source: Source) -> tuple[Integers | None, Floats]:
        """One run, and all that a release of it may show: the noisy integers where there are some, the estimates."""
        return None, self.run(counts, total, source)

    def spec(self) -> dict[str, Any]:
        """Enough to build the mechanism again under the same policy."""
        return {"name": self.name, "epsilon": str(self.epsilon), "options": dict(self.options)}

    @property
    def settings(self) -> str:
        """The options in words; what is the same along every axis is said once."""
        return ", ".join(f"{key} {_once(value)}" for key, value in self.options.items())

    def describe(self) -> str:
        """One line: name and options."""
        return f"{self.name}, {self.settings}" if self.options else self.name


@dataclass(frozen=True, kw_only=True, eq=False)
class MeasuredMechanism(Mechanism):
    """One that draws noisy integers, safe to publish, and computes all else from them."""

    @abstractmethod
    def draw(self, counts: Integers, total: int | None, source: Source) -> Integers:
        """Integers that are safe to publish. Sees private counts."""

    @abstractmethod
    def estimate(self, measured: Integers, total: int | None) -> Floats:
        """Estimated counts, flat, from what was measured and the total where the policy makes it public."""

    def run(self, counts: Integers, total: int | None, source: Source) -> Floats:
        """Draw, then estimate."""
        return self.estimate(self.draw(counts, total, source), total)

    def observe(self, counts: Integers, total: int | None, source: Source) -> tuple[Integers | None, Floats]:
        """What was drawn, and the estimates; of a class that runs in another way, what it runs."""
        if type(self).run is not MeasuredMechanism.run:
            return super().observe(counts, total, source)
        measured = self.draw(counts, total, source)
        return measured, self.estimate(measured, total)


@dataclass(frozen=True, kw_only=True, eq=False)
class AdditiveMechanism(MeasuredMechanism):
    """Integers that are a function of the counts, plus integers that are a function of independent noise η alone.

    The argument is the same for all. For every edge of the policy there is an *integer* vector c with `Σ |c_j|·rate_j ≤
    ε` such that one neighbour with noise η and the other with noise η + c lead to the same sum. The probabilities of η
    and η + c differ by at most e^ε. Each mechanism says in its own words which c it is.

    `measure` returns integers that are private already; `estimate` is post-processing. Since the noise enters by
    addition it can be lowered later without another look at the counts (gradual release).
    """

    @property
    def form(self) -> Additive:
        """Values plus noise."""
        return Additive(mechanism=self)

    @property
    def additive(self) -> AdditiveMechanism:
        """Noise that was added can be lowered."""
        return self

    @abstractmethod
    def noises(self, total: int | None) -> list[tuple[DiscreteLaplace, int]]:
        """The law of every vector of noise, and its length."""

    @abstractmethod
    def values(self, counts: Integers) -> Integers:
        """What noise is added to, as integers, from flat counts."""

    @abstractmethod
    def disturbance(self, noise: Sequence[Integers]) -> Integers:
        """What the noise adds to the values, as integers."""

    def for_total(self, total: int) -> AdditiveMechanism:
        """The same with everything written down that rests on the public number of records."""
        del total
        return self

    def measure(self, counts: Integers, noise: Sequence[Integers]) -> Integers:
        """Integers that are safe to publish."""
        return self.values(counts) + self.disturbance(noise)

    def draw(self, counts: Integers, total: int | None, source: Source) -> Integers:
        """Measured with fresh noise."""
        return self.measure(counts, [law.sample(size, source) for law, size in self.noises(total)])


@dataclass(frozen=True, kw_only=True, eq=False)
class LinearMechanism(AdditiveMechanism):
    """A linear mechanism `x̃ = x + L·η`: for every edge of the policy with difference p there is an integer c with
    L·c = p. Mechanisms differ in L.
    """

    @property
    def linear(self) -> LinearMechanism:
        """The noise is that of the model."""
        return self

    @property
    @abstractmethod
    def model(self) -> NoiseModel:
        """The law of the noise in the estimates: what errors and intervals are computed from."""

    @property
    def form(self) -> Additive:
        """Values that are linear in the counts, plus noise that operators carry to the cells."""
        return Additive(mechanism=self, linear=True, estimators=tuple(block.estimator for block in self.model.blocks))

    def noises(self, total: int | None) -> list[tuple[DiscreteLaplace, int]]:
        """One vector of noise for every block of the model."""
        del total
        return [(block.noise, block.estimator.cols) for block in self.model.blocks]

    def describe(self) -> str:
        """One line: name, options and noise."""
        scales = sorted({text(1 / block.noise.rate) for block in self.model.blocks})
        return (
            f"{super().describe()}; noise of scale {' and '.join(scales)}"
            if scales
            else f"{self.name}: no noise needed"
        )


def require_integers(name: str, entry: int, noise: int, advice: str) -> None:
    """Refuse integers that are sums of MOST_RECORDS times an entry, and of that much noise, where 64 bits may end."""
    if entry * MOST_RECORDS + noise > LARGEST_INTEGER:
        raise InvalidInput(
            f"mechanism={name!r}: sums of up to 2^53 records, times entries of up to {entry}, and noise of up to "
            f"{noise:.2g} might not fit 64-bit integers. Nothing was drawn or recorded. {advice}"
        )


def _once(value: Any) -> str:
    if isinstance(value, list) and value and all(isinstance(axis, list) for axis in value):
        same = all(axis == value[0] for axis in value)
        return "/".join(map(str, value[0])) if same else " and ".join("/".join(map(str, axis)) for axis in value)
    return "/".join(map(str, value)) if isinstance(value, list) else str(value)


def require_whole(policy: Policy, name: str) -> None:
    """Refuse exact totals beyond those that were named: of parts into which a factor falls."""
    if not policy.whole:
        raise InvalidInput(f"mechanism={name!r} needs a connected policy; under this one use mechanism='edges'.")


def require_connected(policy: Policy, name: str) -> None:
    """Vertex strategies know one total at the most; a policy in several parts is for the `edges` mechanism."""
    if not policy.connected:
        raise InvalidInput(f"mechanism={name!r} needs a connected policy; under this one use mechanism='edges'.")
