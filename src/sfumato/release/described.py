"""What a description that is not trusted says of a release: its guarantee and its mechanism, or a refusal.

Policies and mechanisms are built from closed lists by their own constructors, exact numbers first. A description whose
mechanism spends more than its guarantee says is refused, from the two numbers alone.
"""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import FileFormatError, InvalidInput
from sfumato.exact import text, written
from sfumato.mechanism import Mechanism, mechanism_from_spec
from sfumato.promise import Guarantee

# What constructors raise when they are given nonsense of the right outward form.
NONSENSE = (ArithmeticError, AttributeError, LookupError, MemoryError, RecursionError, TypeError, ValueError)


def described_fields(description: dict[str, Any], measured: NDArray[np.int64], total: int | None) -> dict[str, Any]:
    """The fields of a release from its noisy integers and a description that is not trusted: estimated anew."""
    kept = {"guarantee", "mechanism", "workload", "created"}
    if not isinstance(description, dict) or set(description) != kept:
        raise FileFormatError("the description of the release is damaged.")
    if not all(isinstance(description[name], str) for name in ("workload", "created")):
        raise FileFormatError("the description of the release is damaged.")
    guarantee, mechanism = honest("patch", description)
    if mechanism.additive is None:
        raise FileFormatError("the description of the release is damaged: its mechanism has no noise to lower.")
    try:
        estimates = mechanism.shaped(mechanism.additive.estimate(measured, total))
    except NONSENSE as error:
        raise FileFormatError("the description of the release is damaged: its mechanism does not fit.") from error
    return {
        "estimates": estimates,
        "guarantee": guarantee,
        "mechanism": mechanism,
        "workload": description["workload"],
        "created": description["created"],
        "measured": measured,
    }


def honest(path: str | Path, description: dict[str, Any]) -> tuple[Guarantee, Mechanism]:
    """Guarantee and mechanism, refused where the noise does not keep the promise.

    A mechanism spends its epsilon at the most, and where that keeps the promise nothing more need be computed.
    """
    guarantee, mechanism = _rebuilt(path, description)
    spent = spent_by(mechanism, guarantee)
    if spent > guarantee.epsilon:
        raise unreadable(
            path, f"it claims epsilon={guarantee.epsilon}, but its mechanism spends {text(spent)}: it was edited."
        )
    return guarantee, mechanism


def spent_by(mechanism: Mechanism, guarantee: Guarantee) -> Fraction:
    """What a mechanism spends on all that a guarantee hides at once: on each of a person's records, and of each on as
    many steps of one unit as a change takes.
    """
    return mechanism.epsilon * steps_hidden(guarantee)


def steps_hidden(guarantee: Guarantee) -> int:
    """How many steps of one unit all that a guarantee hides at once comes to."""
    changes = (guarantee.max_per_entity or 1) if guarantee.unit == "person" else guarantee.replacement
    return changes * guarantee.policy.units


def _rebuilt(path: str | Path, description: dict[str, Any]) -> tuple[Guarantee, Mechanism]:
    """Guarantee and mechanism from their descriptions; exact numbers first."""
    try:
        promise, built = description["guarantee"], description["mechanism"]
        exact = {"epsilon": promise["epsilon"], "slack": promise["slack"], "the mechanism's epsilon": built["epsilon"]}
        exact |= {"delta": promise["policy"]["delta"]} if "delta" in promise["policy"] else {}
    except NONSENSE as error:
        raise unreadable(path, "its guarantee or mechanism is incomplete.") from error
    try:
        for name, number in exact.items():
            written(number, name)
    except InvalidInput as error:
        raise unreadable(path, "its exact numbers must be written p or p/q.") from error
    if set(built) != {"name", "epsilon", "options"}:
        raise unreadable(path, "its mechanism must have exactly the fields name, epsilon and options.")
    try:
        guarantee = Guarantee.from_dict(promise)
        return guarantee, mechanism_from_spec(built, guarantee.policy.on_cells)
    except NONSENSE as error:
        why = str(error) if isinstance(error, FileFormatError) else "its guarantee or mechanism cannot be built."
        raise unreadable(path, why) from error


def unreadable(path: str | Path, why: str) -> FileFormatError:
    """What is said of a file that is no release."""
    return FileFormatError(f"{str(path)!r} cannot be read as a release: {why}")
