"""Whether the noise that a release says it was made with keeps its promise, computed anew; and whether its figures
follow from its noisy integers.

The mechanism is built from the file by its own constructors, and what it can tell of one change is computed from what
was built: sensitivity times rate. On few cells the auditor does the same again by another way, from the changes of
records that the policy's words allow.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

import numpy as np

from sfumato.auditing import audit
from sfumato.domain.axis import METRES
from sfumato.errors import SfumatoError
from sfumato.exact import text
from sfumato.release import Release
from sfumato.release.described import steps_hidden
from sfumato.verification.verification import Check

# What is computed grows with the cells, of which a file that packs well may have far more than bytes.
CELLS_OF_ANY_FILE = 1 << 16
# Of regions, hexagons and roads neighbours are found place by place, along all their outlines.
CELLS_ON_MAPS, BYTES_OF_MAPS = 1 << 12, 1 << 17
CELLS_AUDITED = 24
SECONDS_OF_AUDIT = 2.0
_NONSENSE = (ArithmeticError, AttributeError, LookupError, MemoryError, TypeError, ValueError)
_CLOSE = 1e-6  # of estimates computed by another version, beside the largest of them


def check_noise(release: Release, size: int) -> Iterator[Check]:
    """The promise, the noise behind it, and the figures of a release that was read from so many bytes."""
    if not release.private:
        yield Check(
            name="promise",
            outcome="fails",
            words="NOT PRIVATE: it was made with seeded randomness, for tests and papers, and promises nothing",
        )
    cells = release.domain.size if release.mechanism.by_tables is None else release.estimates.size
    on_a_map = any(axis.named and axis.unit == METRES for axis in release.domain.axes)
    if cells > CELLS_ON_MAPS or size > BYTES_OF_MAPS if on_a_map else cells > max(CELLS_OF_ANY_FILE, size):
        why = f"not computed anew: the file has {size:,} bytes for {cells:,} cells"
        yield Check(name="noise", outcome="open", words=f"{why}. That it spends no more than it promises was compared")
        return
    yield _noise(release)
    yield _figures(release)


def _noise(release: Release) -> Check:
    guarantee, mechanism = release.guarantee, release.mechanism
    steps = steps_hidden(guarantee)
    try:
        found = mechanism.privacy_loss
        ways = ["from what was built"]
        audited = _audited(release)
    except (SfumatoError, *_NONSENSE):
        return Check(name="noise", outcome="fails", words=f"mechanism '{mechanism.name}' cannot be built as it says")
    if audited is not None:
        found = max(found, audited)
        ways.append("by the auditor, over changes of a record")
    loss = found * steps
    much = f"ε = {text(found)}" if steps == 1 else f"ε = {text(loss)} ({steps} × {text(found)})"
    said = f"{mechanism.describe()}: it tells at most {much} of a change that is to be hidden, computed anew"
    said = f"{said} {' and '.join(ways)}; promised is ε = {text(guarantee.epsilon)}"
    return Check(name="noise", outcome="holds" if loss <= guarantee.epsilon else "fails", words=said)


def _audited(release: Release) -> Fraction | None:
    """The exact loss by the auditor, on few cells and where noise is carried by a linear map."""
    mechanism = release.mechanism
    if mechanism.linear is None or mechanism.policy.domain.size > CELLS_AUDITED:
        return None
    try:
        found = audit(mechanism, method="exact", seconds=SECONDS_OF_AUDIT, seed=1)
    except SfumatoError:  # no form that it knows, or no proof in time: nothing is concluded
        return None
    return found.epsilon if found.method == "exact" and isinstance(found.epsilon, Fraction) else None


def _figures(release: Release) -> Check:
    """Whether public totals are whole, and estimates follow from the noisy integers where these are in the file."""
    public = release.guarantee.policy.total_is_public
    total = float(release.mechanism.records(release.estimates))
    signed = release.values is not None and release.values.signed
    whole = not public or ((total >= 0 or signed) and abs(total - round(total)) <= _CLOSE * max(abs(total), 1.0))
    if not whole:
        words = "the number of records is public under its policy, and what the file holds sums to no such number"
        return Check(name="figures", outcome="fails", words=words)
    additive, measured = release.mechanism.additive, release.measured
    if additive is None or measured is None:
        return Check(
            name="figures",
            outcome="open",
            words="the file keeps no noisy integers to compute its estimates from, as most do not; the digest holds",
        )
    try:
        again = additive.for_total(round(total)) if public else additive
        estimates = np.asarray(again.estimate(measured, round(total) if public else None)).ravel()
        near = np.abs(estimates - release.estimates.ravel()).max(initial=0.0) <= _CLOSE * max(
            float(np.abs(estimates).max(initial=0.0)), 1.0
        )
    except (SfumatoError, *_NONSENSE):
        near = False
    words = "its estimates follow from its noisy integers" if near else "its estimates do not follow from its integers"
    return Check(name="figures", outcome="holds" if near else "fails", words=words)
