"""Between the tables of streams and their nouns. Steps are found by their time: only the window asked for is read."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import cast

from sfumato.errors import SfumatoError
from sfumato.ledger import rows, stretches
from sfumato.ledger.database import Connection
from sfumato.ledger.kept import require_kept
from sfumato.ledger.schema import damaged
from sfumato.ledger.steps import Step
from sfumato.policies import Policy, policy_from_spec
from sfumato.promise.budget import Epsilon, stored
from sfumato.promise.unit import Unit, unit_of
from sfumato.promise.window import Clock, Window, WindowKind, time_at
from sfumato.reading import plain_data

STREAM = (
    "SELECT id, epsilon, window_kind, window_size, fingerprint, unit, max_per_entity, clock FROM stream "
    "WHERE account = (SELECT id FROM account WHERE dataset = ?) AND name = ?"
)
LAST = "SELECT time FROM step WHERE stream = ? ORDER BY time DESC LIMIT 1"
FIRST = "SELECT time FROM step WHERE stream = ? ORDER BY time LIMIT 1"
STEPS = (
    "SELECT time, level, epsilon, label, release_id, weight, floor FROM step WHERE stream = ? AND time BETWEEN ? AND ? "
    "ORDER BY time, level"
)
COUNT = "SELECT count(*) FROM step WHERE stream = ? AND level = 0"


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """What a stream promises: ε in every window, under a policy (by its fingerprint), for a unit."""

    epsilon: Epsilon
    window: Window
    fingerprint: str
    unit: Unit


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """A stream in the file: its row, its terms, and how it tells the time (None: its first step will say)."""

    row: int
    terms: Terms
    clock: Clock | None


def find(connection: Connection, dataset: str, name: str) -> Found | None:
    """The stream of an account, or None."""
    found = connection.execute(STREAM, (dataset, name)).fetchone()
    if found is None:
        return None
    row, epsilon, kind, size, fingerprint, unit, most, clock = found
    try:
        terms = Terms(
            epsilon=rows.read_amount(epsilon),
            window=Window(cast(WindowKind, kind), size),
            fingerprint=fingerprint,
            unit=unit_of(unit, most),
        )
    except (TypeError, ValueError, ZeroDivisionError) as error:
        raise damaged(f"stream '{name}' cannot be read") from error
    return Found(row=row, terms=terms, clock=clock)


def names(connection: Connection, dataset: str) -> tuple[str, ...]:
    """The streams of an account, in the order they were opened."""
    query = "SELECT name FROM stream WHERE account = (SELECT id FROM account WHERE dataset = ?) ORDER BY id"
    return tuple(str(name) for (name,) in connection.execute(query, (dataset,)))


def insert(connection: Connection, dataset: str, name: str, terms: Terms, policy: Policy) -> None:
    """Open a stream; a second one under the same name is refused by the table."""
    connection.execute(
        "INSERT INTO stream (id, account, name, epsilon, window_kind, window_size, policy, fingerprint, unit, "
        "max_per_entity, clock, opened) VALUES ((SELECT coalesce(max(id), 0) + 1 FROM stream), (SELECT id FROM account "
        "WHERE dataset = ?), ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            dataset,
            name,
            stored(terms.epsilon, "epsilon"),
            terms.window.kind,
            terms.window.size,
            rows.canonical(policy),
            terms.fingerprint,
            terms.unit.name,
            terms.unit.max_per_entity,
            "steps" if terms.window.kind == "steps" else None,
            rows.now().isoformat(),
        ),
    )
    found = find(connection, dataset, name)
    require_kept(found is not None and found.terms == terms, "a stream")
    stretches.begin(connection, cast(Found, found).row)


def policy_of(connection: Connection, row: int, name: str) -> Policy:
    """The policy of a stream, read back through the closed registry of policies."""
    text, fingerprint = connection.execute("SELECT policy, fingerprint FROM stream WHERE id = ?", (row,)).fetchone()
    try:
        policy = policy_from_spec(plain_data(text))
    except (SfumatoError, ValueError, TypeError, AttributeError) as error:
        raise damaged(f"stream '{name}': its policy cannot be read") from error
    if policy.fingerprint != fingerprint:
        raise damaged(f"stream '{name}': its policy does not match its fingerprint")
    return policy


def set_clock(connection: Connection, row: int, clock: Clock) -> None:
    """Say how a stream tells the time, once and for all."""
    connection.execute("UPDATE stream SET clock = ? WHERE id = ?", (clock, row))
    kept = connection.execute("SELECT clock FROM stream WHERE id = ?", (row,)).fetchone()
    require_kept(kept == (clock,), "how a stream tells the time")


def last_tick(connection: Connection, row: int) -> int | None:
    """The tick of the latest step, or None before the first."""
    last = connection.execute(LAST, (row,)).fetchone()
    return None if last is None else cast(int, last[0])


def first_tick(connection: Connection, row: int) -> int | None:
    """The tick of the earliest step, or None before it."""
    first = connection.execute(FIRST, (row,)).fetchone()
    return None if first is None else cast(int, first[0])


def spent_between(connection: Connection, found: Found, name: str, first: int, last: int) -> list[tuple[int, Epsilon]]:
    """(tick, ε) of the steps from one tick to another, both included; they are those that were recorded."""
    steps = stretches.read(connection, found.row, name, found.terms.window, first, last)
    latest = {step[0]: step[2] for step in steps}  # every level is a row, and the last one is what the step has spent
    try:
        return [(tick, rows.read_amount(epsilon)) for tick, epsilon in latest.items()]
    except (TypeError, ValueError, ZeroDivisionError) as error:
        raise damaged("a step of a stream cannot be read") from error


def steps_between(connection: Connection, row: int, clock: Clock, first: int, last: int) -> Iterator[Step]:
    """The steps from one tick to another, both included, each at its latest level."""
    before: tuple[int, Step] | None = None
    for tick, level, epsilon, label, release_id, weight, floor in connection.execute(STEPS, (row, first, last)):
        expected = 0
        if before is not None and before[0] == tick:
            expected = before[1].level + 1
        elif before is not None:
            yield before[1]
        try:
            time, amount = time_at(tick, clock), rows.read_amount(epsilon)
            weight, floor = _read_figure(weight), _read_figure(floor)
        except (TypeError, ValueError, ZeroDivisionError, OverflowError) as error:
            raise damaged("a step of a stream cannot be read") from error
        if level != expected or (level and before is not None and amount <= before[1].epsilon):
            raise damaged("the levels of a step of a stream do not add up")
        before = (
            tick,
            Step(
                time=time, epsilon=amount, label=label, release_id=release_id, level=level, weight=weight, floor=floor
            ),
        )
    if before is not None:
        yield before[1]


def count(connection: Connection, row: int) -> int:
    """How many steps a stream has, skipped ones included."""
    return cast(int, connection.execute(COUNT, (row,)).fetchone()[0])


def insert_step(connection: Connection, found: Found, name: str, tick: int, step: Step) -> None:
    """Add a step, or the next level of one."""
    epsilon, recorded = stored(step.epsilon, "epsilon"), rows.now().isoformat()
    told = _figure(step.weight), _figure(step.floor)
    row = (tick, step.level, epsilon, step.label, step.release_id, recorded, *told)
    connection.execute(
        "INSERT INTO step (stream, time, level, epsilon, label, release_id, recorded, weight, floor) "
        "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (found.row, *row),
    )
    stretches.record(connection, found.row, name, found.terms.window, row)


def _figure(value: float | None) -> str | None:
    """A weight or a floor as it is kept: the same double comes back."""
    return None if value is None else repr(float(value))


def _read_figure(text: str | None) -> float | None:
    value = None if text is None else float(text)
    if value is not None and not 0 <= value < math.inf:
        raise ValueError("no weight")
    return value
