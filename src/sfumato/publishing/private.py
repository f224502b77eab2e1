"""What is handed in, before anything is charged: counts that fit a policy and a bound, and what is left out of them."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.counting import Counts, count_points
from sfumato.domain import Domain
from sfumato.errors import InvalidInput, PolicyMismatch
from sfumato.mechanism import MOST_RECORDS, Mechanism
from sfumato.policies import Policy

LARGEST_TOTAL = MOST_RECORDS


def left_out(filtered: Collection[str], dropped: Collection[str]) -> dict[str, Any]:
    """What an account is told of records that are not in a release; nothing, where all of them are."""
    return {name: names for name, names in (("filtered", filtered), ("dropped", dropped)) if names}


def dropped_of(counts: Any) -> list[str]:
    """The factors beyond whose bounds records were left out of counts."""
    return [factor.name for factor in counts.domain.factors] if isinstance(counts, Counts) and counts.dropped else []


def _require_kind(policy: Policy, counts: Counts) -> None:
    """Refuse sums in the place of records, and the other way round."""
    if counts.counted == policy.values:
        return
    have, need = ("numbers of records" if v is None else v.describe() for v in (counts.counted, policy.values))
    how = "without values" if policy.values is None else f"with values={policy.values.to_text()}"
    raise PolicyMismatch(
        f"counts are {have}, and the plan is for {need}. Nothing was drawn or recorded. Count {how}, or make another "
        "plan."
    )


def elsewhere(by: Domain) -> list[str]:
    """The attributes by which a record may be of no declared part."""
    return [factor.name for factor in by.factors if any(by.axes[i].leaves_out for i in factor.positions)]


def are_private(counts: Any) -> bool:
    """Whether nobody can tell which records of a person were chosen."""
    return not isinstance(counts, Counts) or counts.private


def private_counts(
    policy: Policy, max_per_entity: int | None, counts: Any, points: Any = None, mechanism: Mechanism | None = None
) -> tuple[NDArray[np.int64], int | None]:
    """(flat counts, the bound on one person's records), or a refusal that shows nothing of them. With a mechanism what
    that one sees of them: tables, where it measures these alone.
    """
    if (counts is None) == (points is None):
        raise InvalidInput("give either counts or points=…, one of the two. Nothing was drawn or recorded.")
    domain = policy.domain
    tables = None if mechanism is None or mechanism.by_tables is None else mechanism.by_tables.tables
    counted = None
    if points is not None:
        if policy.values is not None:
            raise PolicyMismatch(
                f"points are records, and the plan is for {policy.values.describe()}. Nothing was drawn or recorded. "
                f"Count with sf.count(…, values={policy.values.to_text()})."
            )
        counts = count_points(points, domain)
        counts.report.warn("Nothing is drawn or recorded yet; the release goes on.")
    bound = None
    if isinstance(counts, Counts):
        if counts.domain != domain:
            raise PolicyMismatch(
                f"counts were made on {counts.domain!r}, the plan is for {domain!r}. Nothing was drawn or recorded. "
                "Count on the plan's domain."
            )
        _require_kind(policy, counts)
        if counts.dropped and not policy.allows_dropping:
            raise PolicyMismatch(
                "counts were made with outside='drop', but the plan's policy does not hide that a record leaves the "
                "box. Nothing was drawn or recorded. Count with outside='clamp'."
            )
        bound, array, counted = counts.max_per_entity, counts.values, counts.tables
        if counted is not None and (tables is None or not counted.covers(tables)):
            raise PolicyMismatch(
                "counts are of tables, and the plan needs " + ("all cells" if tables is None else "other tables") + ". "
                "Nothing was drawn or recorded. Count for the plan: sf.count(…"
                + (")." if tables is None else ", tables=…) with the plan's own workload.")
            )
    else:
        try:
            array = np.asarray(counts)
        except ValueError as error:
            raise InvalidInput("counts are not an array of numbers. Nothing was drawn or recorded.") from error
        if array.dtype.kind not in "iu":
            raise InvalidInput(
                f"counts of type {array.dtype} are not whole numbers. Nothing was drawn or recorded. "
                "Pass an integer array, such as counts.astype(int)."
            )
        if array.shape != domain.shape:
            raise InvalidInput(
                f"counts of shape {array.shape} do not fit the domain's shape {domain.shape}. "
                "Nothing was drawn or recorded."
            )
    records = array if counted is None else counted.split(array)[0]
    signed = policy.values is not None and policy.values.signed
    if (not signed and array.min(initial=0) < 0) or np.abs(records.astype(np.float64)).sum() > LARGEST_TOTAL:
        least = "" if signed else "at least 0 and "
        raise InvalidInput(
            f"counts must be {least}at most 2⁵³ together: these are not counts. Nothing was drawn or recorded."
        )
    if policy.values is not None and policy.values.entities is not None and bound is None:
        raise InvalidInput(
            f"an array does not say that these are {policy.values.describe()}. Nothing was drawn or recorded. Count "
            f"with sf.count(…, values={policy.values.to_text()}), or say so with sf.Counts(…, counted=…)."
        )
    if max_per_entity is not None and (bound is None or bound > max_per_entity):
        raise InvalidInput(
            f"the plan promises something about a person with at most {max_per_entity} records, but these "
            f"counts were {'not bounded' if bound is None else f'bounded by {bound}'}. Nothing was drawn or recorded. "
            f"Count with sf.count(…, entity=…, max_per_entity={max_per_entity})."
        )
    flat = array.astype(np.int64, copy=False).ravel()
    if tables is not None and mechanism is not None:
        flat = mechanism.seen(flat) if counted is None else tables.of_tables(counted, flat)
    return flat, bound
