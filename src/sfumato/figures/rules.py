"""Rules by which figures are shown, each of which looks at a released figure and at the law of its noise alone.

Every rule about a figure is a threshold: figures that are large enough are shown. Which threshold follows from the rule
and the law of the noise, which are public before anything is released.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sfumato._types import Floats
from sfumato.errors import InvalidInput
from sfumato.exact import finite_float, positive_fraction, positive_int, shown

if TYPE_CHECKING:
    from sfumato.figures.suppression import Laws

# What a chance is where none is said.
CHANCE = 0.05
_NOTHING = "Nothing was suppressed."
_AREA = re.compile(r"\s*([0-9][0-9_.]*)\s*(km2|km²|m2|m²|ha)\s*")
_KM2 = {"km2": Fraction(1), "m2": Fraction(1, 10**6), "ha": Fraction(1, 100)}
# Of a figure that lies on its threshold but for rounding in floating point.
ROUNDING = 1e-9


@dataclass(frozen=True, kw_only=True)
class Rules:
    """What must hold for a figure to be shown, all of it at once."""

    below: float | None = None
    relative_error: float | None = None
    off_by: float | None = None
    chance: float = CHANCE
    area: float | None = None
    largest: int | None = None

    @classmethod
    def of(cls, below: Any, relative_error: Any, off_by: Any, chance: Any, min_area: Any, largest: Any) -> Rules:
        """Checked as a user gives them."""
        if all(rule is None for rule in (below, relative_error, off_by, min_area, largest)):
            raise InvalidInput(
                f"suppress() needs a rule: below=, relative_error=, off_by=, min_area= or largest=. {_NOTHING} Say "
                "which figures are not to be shown, such as below=10."
            )
        if below is not None and finite_float(below, "below") < 0:
            raise InvalidInput(f"below={shown(below)} must not be negative. {_NOTHING} Give a number of records.")
        if chance is not None and off_by is None:
            raise InvalidInput(f"chance={shown(chance)} belongs to off_by, which is not given. {_NOTHING} Give both.")
        chance = CHANCE if chance is None else chance
        if not 0 < finite_float(chance, "chance") < 1:
            raise InvalidInput(f"chance={shown(chance)} must lie between 0 and 1, both excluded. {_NOTHING}")
        return cls(
            below=None if below is None else float(below),
            relative_error=_share(relative_error, "relative_error"),
            off_by=_share(off_by, "off_by"),
            chance=float(chance),
            area=None if min_area is None else _area(min_area),
            largest=None if largest is None else positive_int(largest, "largest"),
        )

    @property
    def by_figure(self) -> bool:
        """Whether a rule looks at the figure itself."""
        return any(rule is not None for rule in (self.below, self.relative_error, self.off_by))

    @property
    def words(self) -> tuple[str, ...]:
        """What is not shown."""
        others = (self._small, f"not among the {self.largest:,} largest" if self.largest is not None else None)
        by_figure = (self._few, self._rough, self._off)
        return tuple(word for word in (*by_figure, *others) if word is not None)

    @property
    def _few(self) -> str | None:
        return None if self.below is None else f"below {self.below:,g}"

    @property
    def _rough(self) -> str | None:
        return None if self.relative_error is None else f"relative error above {self.relative_error:.3g}"

    @property
    def _off(self) -> str | None:
        if self.off_by is None:
            return None
        return f"off by more than ±{self.off_by:.3g} of itself with a chance above {self.chance:.3g}"

    @property
    def _small(self) -> str | None:
        return None if self.area is None else f"area below {self.area:,g} km²"

    def thresholds(self, laws: Laws) -> Floats:
        """The least figure that is shown, for every law; minus infinity where no rule asks."""
        return np.max([np.full(laws.count, -np.inf), *self._each(laws).values()], axis=0)

    def _each(self, laws: Laws) -> dict[str, Floats]:
        """The threshold of every rule that looks at figures, by what it says."""
        found: dict[str | None, Floats] = {}
        deviation, ones = laws.deviations, np.ones((laws.count, 1))
        if self.below is not None:
            found[self._few] = np.full(len(deviation), self.below)
        if self.relative_error is not None:
            found[self._rough] = deviation / self.relative_error
        if self.off_by is not None:
            margin = laws.law.margins(ones, 1 - self.chance)[1]
            found[self._off] = np.where(deviation > 0, margin, 0.0) / self.off_by
        return {words: threshold for words, threshold in found.items() if words is not None}

    def reasons(self, values: Floats, laws: Laws, area: Floats | None) -> NDArray[np.object_]:
        """Why each figure is not shown; nothing where it is."""
        found = np.full(len(values), "", dtype=object)

        def say(flags: NDArray[np.bool_], words: str | None) -> None:
            found[flags] = [f"{before}; {words}" if before else words for before in found[flags]]

        for words, threshold in self._each(laws).items():
            own = threshold[laws.of]
            say(values < own - ROUNDING * np.maximum(1.0, np.abs(own)), words)
        if area is not None and self.area is not None:
            say(area < self.area, self._small)
        return found


def _share(value: Any, name: str) -> float | None:
    """A number above zero, or nothing."""
    if value is None:
        return None
    found = finite_float(value, name)
    if found <= 0:
        raise InvalidInput(f"{name}={shown(value)} must be above zero, such as 0.1. {_NOTHING}")
    return found


def _area(given: Any) -> float:
    """Square kilometres."""
    parts = _AREA.fullmatch(given) if isinstance(given, str) else None
    if parts is None:
        raise InvalidInput(f"min_area={shown(given)} is no area. {_NOTHING} Write '3 km2', '500 m2' or '2 ha'.")
    return float(positive_fraction(parts[1], "min_area") * _KM2[parts[2].replace("²", "2")])
