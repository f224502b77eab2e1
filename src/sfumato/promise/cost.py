"""What a release costs an account that was opened under another policy or another unit.

The promise of an account: over all releases charged to it, two datasets that are neighbours *in the
account's sense* are told apart by at most its total ε. A release was made for neighbours in its own
sense, so its ε is multiplied by the number of the release's steps that one step of the account may take.
Whatever cannot be bounded is refused.

Write G for the account's policy, H for the release's, r for `exchange_rate(G, H)`: an edge of G is a path
of at most r edges of H. Write m for the account's `max_per_entity`, and k for the release's: how many
records of one person it counted at most, chosen by randomness that does not look at their content (None:
every record was counted).

The ε of a release is that of its guarantee. Where it counted at most k records of each person, promises something about
one record, and its policy has an edge to ⊥, that ε carries the factor D of `replacement` already (1 elsewhere): ε = D
times what one step between two counts costs. The costs below are in steps between counts; `cost_rate` divides those of
accounts of unit record by D and rounds up, so that nothing is charged twice, and never too little.

**Account of unit record**: one record of the data moves along an edge of G.

1. k is None: the counts change along an edge of G, which is r steps of the release. Cost r.
2. k given, G has no edge to ⊥: nobody's number of records changes, so the choice can be taken to pick the
   same ones in both datasets. At most one record counted moves along an edge of G. A release for a person
   covers the move of one of her records too. Cost r.
3. k given, G has an edge to ⊥: when a record goes that was counted, another record *of the same person*,
   anywhere, may be counted in its place. The counts then change by a move between two cells that need not
   be an edge: it takes at most `H.diameter` steps. Cost max(r, diameter); refused where the diameter is
   infinite. For G = H this is the factor D: what the release itself can promise about one record.

**Account of unit person, m**: one person's records change, and nobody else's. Either each of them, however many,
moves along an edge of G between cells or stays; or all come, or all go, each along an edge to ⊥; or the person has at
most m records, those that come and those that go included, and each moves along any edge.

4. k is None: a person may have any number of records in the counts. Refused.
5. k given, and G has no edge to ⊥ or k ≥ m: the same records are chosen in both datasets (in the third
   kind of change none is left out, since the person has at most m ≤ k). At most k counted records move,
   each along an edge of G. Done in r rounds, each a step of H for every record, this costs a release of
   unit person r, and one of unit record r·k.
6. k < m and G has an edge to ⊥: one of m records going may bring another into the count, as in 3, for up
   to k records at once. Refused.

**Distinct people** (`sfumato.counting.person_cells`): a release promises ε for whatever happens to one person's
records, which is the cost in accounts of either unit. Where the account hides that a record becomes another person's,
two people change: twice its ε for one record, and for a person refused.
"""

from __future__ import annotations

import math
from collections.abc import Collection

from sfumato.errors import InvalidInput, PolicyMismatch
from sfumato.policies import Policy, exchange_rate, price
from sfumato.promise.unit import Unit
from sfumato.relations import Record
from sfumato.values import People


def replacement(policy: Policy, unit: Unit) -> int:
    """D: how many steps between counts one step of one record may come to, which the guarantee's ε carries.

    More than one where the release promises something about a record of which at most so many of each person were
    counted, and records may come and go: another record of the same person, wherever it lies, may be counted in the
    place of one that goes. Refused where no number of steps is enough.
    """
    policy = policy.on_records
    if unit.name != "record" or unit.max_per_entity is None or policy.total_is_public:
        return 1
    if math.isinf(policy.diameter):
        raise PolicyMismatch(
            "counts that were bounded for each person do not fit a promise about one record under this policy, which "
            "lets records come and go: another record of the same person may take the place of one that goes, and the "
            "policy puts no bound on that move. Nothing was drawn or recorded. Use a connected policy, plan with "
            "max_per_entity=… for a promise about a person, or count every record."
        )
    return max(int(policy.diameter), 1)


def cost_rate(
    account_policy: Policy,
    account_unit: Unit,
    release_policy: Policy,
    release_unit: Unit,
    *,
    filtered: bool = False,
    dropped: bool = False,
) -> int:
    """How many times its own ε, that of its guarantee, a release costs the account; the argument is above. Whether
    records were left out of it before they were counted, or because they lay beyond the bounds.

    Raises PolicyMismatch where the policies cannot be exchanged, InvalidInput where the units cannot.
    """
    rate = 1
    vanishes = not account_policy.on_records.total_is_public
    if account_policy.fingerprint != release_policy.fingerprint:
        rate = exchange_rate(account_policy.on_records, release_policy.on_records)
    if filtered or dropped:
        rate = max(rate, _to_absent(release_policy))
    if filtered and release_unit.max_per_entity is not None:
        rate = max(rate, _finite_diameter(release_policy))
    return _in_units(rate, account_unit, release_policy, release_unit, vanishes=vanishes)


def record_rate(
    record: Record,
    account_unit: Unit,
    release_policy: Policy,
    release_unit: Unit,
    *,
    filtered: Collection[str] = (),
    dropped: Collection[str] = (),
) -> int:
    """The same for an account that hides a relation between records. `filtered` and `dropped` name the attributes by
    which records were left out before they were counted, and those whose bounds they lay beyond.
    """
    rate = price(record, release_policy.on_records, {*filtered, *dropped})
    people = release_policy.values
    if isinstance(people, People) and any(rule.of == people.column for rule in record.relation.rules):
        rate *= 2  # it leaves one person and comes to another one, and each of them is covered by ε once
        if account_unit.name == "person":
            raise PolicyMismatch(
                f"the account is about a person and hides that {people.column!r} changes, which tells people apart in "
                "this release: the records of one person may become those of many. Nothing was drawn or recorded. Use "
                "an account of unit 'record', or one that does not hide it."
            )
    if release_unit.max_per_entity is not None and any(map(record.changes, filtered)):
        rate = max(rate, _finite_diameter(release_policy))
    return _in_units(rate, account_unit, release_policy, release_unit, vanishes=record.may_vanish)


def _in_units(rate: int, account_unit: Unit, release_policy: Policy, release_unit: Unit, *, vanishes: bool) -> int:
    """From steps for one record to steps between counts for the unit of the account, without what ε carries already."""
    steps = _steps(rate, account_unit, release_policy, release_unit, vanishes)
    carried = replacement(release_policy, release_unit) if account_unit.name == "record" else 1
    return -(-steps // carried)


def _steps(rate: int, account_unit: Unit, release_policy: Policy, release_unit: Unit, vanishes: bool) -> int:
    """How many steps between counts a change of the account comes to; `vanishes`: it lets records come and go."""
    counted = release_unit.max_per_entity
    if release_policy.covers_persons and release_unit.name == "person":
        return rate  # whatever happens to one person's records, each cell that she is counted in takes one step
    if account_unit.name == "record":
        return max(rate, _finite_diameter(release_policy)) if vanishes and counted is not None else rate
    if counted is None:
        raise InvalidInput(
            "unit='record' without max_per_entity does not fit this account, whose unit is "
            f"{account_unit}: one person may have any number of the records counted. Nothing was drawn "
            f"or recorded. Count with entity=… and max_per_entity={account_unit.max_per_entity}."
        )
    most = account_unit.max_per_entity or 0
    if counted < most and vanishes:
        raise InvalidInput(
            f"max_per_entity={counted} does not fit this account, whose unit is {account_unit} and which "
            "lets records come and go: a record that goes may bring another of the same person "
            f"into the count. Nothing was drawn or recorded. Use max_per_entity={most} or more."
        )
    return rate if release_unit.name == "person" else rate * counted


def _to_absent(policy: Policy) -> int:
    if math.isinf(policy.eccentricity):
        raise PolicyMismatch(
            "records were left out before they were counted, or because they lay beyond the bounds: one that changes "
            f"may leave this release, which does not hide that ({policy.describe()}). Nothing was drawn or recorded. "
            "Publish under a policy that hides presence too, count all records, or use an account that hides a "
            "relation and says what is fixed."
        )
    return int(policy.eccentricity)


def _finite_diameter(policy: Policy) -> int:
    if math.isinf(policy.diameter):
        raise PolicyMismatch(
            "A release that counts at most so many records of each person does not fit this account, "
            "whose unit is the record and which lets records come and go: another record of the "
            "same person may take the place of one that goes, and the release's policy puts no bound on "
            "that move. Nothing was drawn or recorded. Use a connected policy, or an account of unit "
            "'person'."
        )
    return int(policy.diameter)
