"""What a release costs an account of another policy or unit: by hand, then against brute force over datasets.

The brute force knows nothing of the rules in `sfumato.promise.cost`. It takes every pair of datasets of
one person that are neighbours in the account's sense, every way to choose the records that are counted,
and counts the steps of the release's policy that lead from one count to the other.
"""

from __future__ import annotations

import itertools
import math
from collections import deque
from collections.abc import Callable, Iterator

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import sfumato as sf
from sfumato.domain import Line
from sfumato.errors import InvalidInput, PolicyMismatch
from sfumato.policies import ABSENT, Policy, bounded, graph, threshold, unbounded
from sfumato.promise.cost import cost_rate, record_rate, replacement
from sfumato.promise.unit import Unit
from sfumato.relations import Record

RECORD = Unit("record")
LINE = Line(0, 1, cells=5)


# ------------------------------------------------------------------ by hand


def test_a_release_under_the_same_policy_costs_its_epsilon() -> None:
    assert cost_rate(threshold(LINE, theta=1), RECORD, threshold(LINE, theta=1), RECORD) == 1


def test_a_line_costs_a_replace_one_account_its_length() -> None:
    assert cost_rate(bounded(LINE), RECORD, threshold(LINE, theta=1), RECORD) == 4
    assert cost_rate(bounded(LINE), RECORD, threshold(LINE, theta=2), RECORD) == 2
    assert cost_rate(threshold(LINE, theta=1), RECORD, bounded(LINE), RECORD) == 1


def test_add_remove_costs_a_replace_one_account_twice() -> None:
    assert cost_rate(bounded(LINE), RECORD, unbounded(LINE), RECORD) == 2


def test_a_person_release_covers_a_record_account_without_absence() -> None:
    policy = threshold(LINE, theta=1)
    assert cost_rate(policy, RECORD, policy, Unit("person", 3)) == 1
    assert cost_rate(bounded(LINE), RECORD, policy, Unit("person", 3)) == 4


def test_a_record_that_goes_may_bring_another_into_the_count() -> None:
    policy = unbounded(LINE)
    assert cost_rate(policy, RECORD, policy, RECORD) == 1
    assert cost_rate(policy, RECORD, policy, Unit("record", 1)) == 1  # its own ε carries the factor
    assert replacement(policy, Unit("record", 1)) == 2
    assert cost_rate(policy, RECORD, policy, Unit("person", 1)) == 2


def test_a_record_release_on_bounded_counts_costs_a_person_account_the_bound() -> None:
    policy = bounded(LINE)
    assert cost_rate(policy, Unit("person", 3), policy, Unit("record", 3)) == 3
    assert cost_rate(policy, Unit("person", 3), policy, Unit("record", 2)) == 2
    assert cost_rate(policy, Unit("person", 3), threshold(LINE, theta=2), Unit("record", 2)) == 4


def test_a_person_release_with_another_bound_costs_a_person_account_its_epsilon() -> None:
    assert cost_rate(bounded(LINE), Unit("person", 3), bounded(LINE), Unit("person", 2)) == 1
    assert cost_rate(unbounded(LINE), Unit("person", 3), unbounded(LINE), Unit("person", 4)) == 1


# ------------------------------------------------------------------ brute force


def _distances(policy: Policy) -> dict[int, dict[int, float]]:
    """Shortest paths between all vertices, ⊥ among them, by breadth-first search over the listed edges."""
    vertices = [*range(policy.domain.size), -1]
    near: dict[int, set[int]] = {v: set() for v in vertices}
    for u, v in policy.edges().tolist():
        near[u].add(v)
        near[v].add(u)
    table = {}
    for start in vertices:
        found: dict[int, float] = {start: 0}
        queue = deque([start])
        while queue:
            u = queue.popleft()
            for v in near[u] - found.keys():
                found[v] = found[u] + 1
                queue.append(v)
        table[start] = {v: found.get(v, math.inf) for v in vertices}
    return table


def _changes(policy: Policy, unit: Unit, most_records: int) -> Iterator[tuple[tuple[int, ...], tuple[int, ...]]]:
    """One person's records (cells, -1 for one that is not there) before and after a change the account hides."""
    vertices = [*range(policy.domain.size), -1]
    choices = {v: [v] for v in vertices}
    for u, v in policy.edges().tolist():
        choices[u].append(v)
        choices[v].append(u)
    for slots in range(1, most_records + 1):
        # Every order of choosing is tried later, so the records themselves need no order.
        for before in itertools.combinations_with_replacement(vertices, slots):
            for after in itertools.product(*(choices[v] for v in before)):
                moved = [pair for pair in zip(before, after, strict=True) if pair[0] != pair[1]]
                concerned = sum(pair != (-1, -1) for pair in zip(before, after, strict=True))
                if unit.name == "record":
                    allowed = len(moved) == 1
                else:
                    between_cells = all(-1 not in pair for pair in moved)
                    all_at_once = set(before) == {-1} or set(after) == {-1}
                    allowed = between_cells or all_at_once or concerned <= (unit.max_per_entity or 0)
                if moved and allowed:
                    yield before, after


def _counted(records: tuple[int, ...], order: tuple[int, ...], bound: int | None) -> tuple[int, ...]:
    """The records that are counted: the first `bound` of those that are there, in an order blind to their content."""
    there = [records[i] for i in order if records[i] != -1]
    return tuple(there if bound is None else there[:bound])


def _steps(before: tuple[int, ...], after: tuple[int, ...], far: dict[int, dict[int, float]], unit: Unit) -> float:
    """How many times the release's ε the two counts are apart, matching records in the best way."""
    slots = max(len(before), len(after), unit.max_per_entity or 0)
    before += (-1,) * (slots - len(before))
    after += (-1,) * (slots - len(after))
    best = math.inf
    for matched in itertools.permutations(after):
        lengths = [far[u][v] for u, v in zip(before, matched, strict=True)]
        best = min(best, sum(lengths) if unit.name == "record" else max(lengths, default=0))
    return best


def _true_rate(
    account: Policy,
    account_unit: Unit,
    release: Policy,
    unit: Unit,
    most_records: int,
    seen: Callable[[int], int] = lambda cell: cell,
) -> float:
    far = _distances(release)
    worst = 0.0
    for before, after in _changes(account, account_unit, most_records):
        shown = [tuple(map(seen, records)) for records in (before, after)]
        for order in itertools.permutations(range(len(before))):
            counted = (_counted(r, order, unit.max_per_entity) for r in shown)
            worst = max(worst, _steps(*counted, far, unit))
    return worst


def _policies(cells: int) -> st.SearchStrategy[Policy]:
    """Random connected policies, with and without ⊥."""
    line = Line(0, 1, cells=cells)
    paths = [(i, i + 1) for i in range(cells - 1)]
    stars = [(i, ABSENT) for i in range(cells)]
    more = [(i, j) for i in range(cells) for j in range(i + 2, cells)] + stars
    extra = st.lists(st.sampled_from(more), max_size=3, unique=True)
    return st.tuples(st.sampled_from([paths, stars]), extra).map(
        lambda parts: graph(line, edges=[*parts[0], *parts[1]])
    )


@given(account=_policies(5), release=_policies(5))
def test_exchange_between_policies_equals_brute_force(account: Policy, release: Policy) -> None:
    far = _distances(release)
    true = max(far[u][v] for u, v in account.edges().tolist())
    if math.isinf(true):
        with pytest.raises(PolicyMismatch):
            cost_rate(account, RECORD, release, RECORD)
    else:
        assert cost_rate(account, RECORD, release, RECORD) == true


@pytest.mark.slow
@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    account=_policies(3),
    release=_policies(3),
    account_unit=st.sampled_from([RECORD, Unit("person", 1), Unit("person", 2)]),
    unit=st.sampled_from([RECORD, *(Unit(name, k) for name in ("record", "person") for k in (1, 2))]),
)
def test_no_change_the_account_hides_costs_more_than_was_charged(
    account: Policy, release: Policy, account_unit: Unit, unit: Unit
) -> None:
    try:
        charged = cost_rate(account, account_unit, release, unit)
    except InvalidInput:
        return  # refused: nothing is promised
    try:
        carried = replacement(release, unit)
    except PolicyMismatch:
        return  # nothing is promised, and nothing published
    assert _true_rate(account, account_unit, release, unit, most_records=3) <= charged * carried


@pytest.mark.parametrize("unit", [Unit("person", 1), Unit("record", 1)])
def test_the_price_of_a_replacement_in_the_count_is_really_paid(unit: Unit) -> None:
    policy = unbounded(Line(0, 1, cells=3))
    charged = cost_rate(policy, RECORD, policy, unit) * replacement(policy, unit)
    assert _true_rate(policy, RECORD, policy, unit, most_records=3) == charged == 2


def test_what_is_refused_between_person_bounds_would_break_the_promise() -> None:
    policy = unbounded(Line(0, 1, cells=3))
    assert _true_rate(policy, Unit("person", 2), policy, Unit("person", 1), most_records=2) == 2


# ------------------------------------------------------------------ refusals


def test_unbounded_counts_are_refused_for_a_person_account() -> None:
    with pytest.raises(InvalidInput) as caught:
        cost_rate(bounded(LINE), Unit("person", 3), bounded(LINE), RECORD)
    assert str(caught.value) == (
        "unit='record' without max_per_entity does not fit this account, whose unit is person, at most "
        "3 counted of each person: one person may have any number of the records counted. Nothing was "
        "drawn or recorded. Count with entity=… and max_per_entity=3."
    )


def test_a_smaller_bound_is_refused_where_records_come_and_go() -> None:
    with pytest.raises(InvalidInput) as caught:
        cost_rate(unbounded(LINE), Unit("person", 3), unbounded(LINE), Unit("person", 2))
    assert str(caught.value) == (
        "max_per_entity=2 does not fit this account, whose unit is person, at most 3 counted of each "
        "person and which lets records come and go: a record that goes may bring another of the "
        "same person into the count. Nothing was drawn or recorded. Use max_per_entity=3 or more."
    )


def test_a_bounded_release_under_a_policy_in_parts_is_refused_for_a_record_account() -> None:
    account = graph(LINE, edges=[(0, ABSENT)], publish_component_totals=True)
    release = graph(LINE, edges=[(0, ABSENT), (1, 2)], publish_component_totals=True)
    assert cost_rate(account, RECORD, release, RECORD) == 1
    with pytest.raises(PolicyMismatch) as caught:
        cost_rate(account, RECORD, release, Unit("person", 2))
    assert str(caught.value) == (
        "A release that counts at most so many records of each person does not fit this account, whose "
        "unit is the record and which lets records come and go: another record of the same "
        "person may take the place of one that goes, and the release's policy puts no bound on that "
        "move. Nothing was drawn or recorded. Use a connected policy, or an account of unit 'person'."
    )


# ------------------------------------------------------------------ relations between records, and filters


AT = Line(0, 3, cells=3)
KIND = sf.Categories(["shown", "other"], name="kind")
HIDDEN = {
    "a step": (sf.move(1, of="x"), ["kind"]),
    "the kind": (sf.change("kind"), ["x"]),
    "one of them": (sf.move(1, of="x") | sf.change("kind"), []),
    "both": (sf.move(1, of="x") & sf.change("kind"), []),
    "anything": (sf.anything(), []),
    "presence": (sf.presence(), []),
    "presence and the kind": (sf.presence() | sf.change("kind"), ["x"]),
}
RELEASES = [
    unbounded(AT),
    sf.policy(AT, hide=sf.presence() | sf.move(0.5)),
    graph(AT, edges=[(0, 1), (1, 2), (2, ABSENT)]),
    threshold(AT, theta=1),
]


@pytest.mark.parametrize("hidden", HIDDEN)
@pytest.mark.parametrize("filtered", [[], ["kind"]])
def test_no_change_of_a_record_costs_more_than_was_charged(hidden: str, filtered: list[str]) -> None:
    """Records say where they are and of which kind. Releases count all of them, or one kind, and bound them then."""
    hide, fixed = HIDDEN[hidden]
    public = [] if hide.changes_all or hide.hides_presence else [n for n in ("x", "kind") if n not in hide.names]
    account = sf.policy(AT * KIND, hide=hide, public=public)

    def seen(vertex: int) -> int:
        return -1 if vertex < 0 or (filtered and vertex % 2) else vertex // 2

    charged = exact = 0
    for release, account_unit in itertools.product(RELEASES, [RECORD, Unit("person", 1), Unit("person", 2)]):
        for unit in (RECORD, Unit("record", 1), Unit("person", 1), Unit("person", 2)):
            try:
                rate = record_rate(Record.of(hide, fixed), account_unit, release, unit, filtered=filtered)
                carried = replacement(release, unit) if account_unit == RECORD else 1
            except (InvalidInput, PolicyMismatch):
                continue
            truth = _true_rate(account, account_unit, release, unit, 2, seen)
            assert truth <= rate * carried, (release, account_unit, unit)
            charged += 1
            exact += (max(truth, 1) + carried - 1) // carried == rate
    assert charged >= 3
    assert exact >= 0.5 * charged
