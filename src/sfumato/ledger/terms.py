"""What an account promises, and between which datasets: under a policy on cells, or a relation between records.

An account that hides a relation prices every release as that release sees a record (`sfumato.policies.price`): maps at
any resolution, tables and medians add up in it. One under a policy lives on that policy's cells. An account that was
opened without either takes from its first release the relation of that release's policy, where that says all: every
attribute of the release changes by it, or is declared public, which is to say that nothing hidden changes it. Such
attributes are fixed in the account from then on. Where some attribute is neither (a relation with presence publishes
nothing and names nothing), and where there is no relation (thresholds, graphs), the account takes the policy.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace

from sfumato.errors import InvalidInput, LedgerError, PolicyMismatch, TooLarge
from sfumato.ledger import rows
from sfumato.ledger.account import Account
from sfumato.ledger.checks import require_policy
from sfumato.policies import Policy, price
from sfumato.promise.cost import cost_rate, record_rate
from sfumato.promise.unit import Unit
from sfumato.relations import Record, Relation


@dataclass(frozen=True, kw_only=True)
class Terms:
    """What was given for an account when it was opened; None is left open, and what is there already stays."""

    policy: Policy | None = None
    record: Record | None = None
    unit: Unit | None = None
    says_fixed: bool = False

    @classmethod
    def of(cls, policy: Policy | None, hide: Relation | None, fixed: Iterable[str] | None, unit: Unit | None) -> Terms:
        """Checked: a policy or a relation, and nothing fixed beside a policy."""
        if policy is not None:
            require_policy(policy)
        if hide is None:
            if fixed is not None:
                raise InvalidInput(
                    f"fixed={fixed!r} says what stays when a record changes, and hide does not say what changes. "
                    "Nothing was created. Give hide=…, such as sf.move('500 m'), or leave fixed out."
                )
            return cls(policy=policy, unit=unit)
        if policy is not None:
            raise InvalidInput(
                "hide and policy exclude each other: an account hides a relation between records, or is kept under a "
                "policy on the cells of one domain. Nothing was created. Leave one of them out."
            )
        record = Record.of(hide, () if fixed is None else fixed)
        return cls(record=record, unit=unit, says_fixed=fixed is not None)

    def agreed(self, account: Account, place: str) -> Account:
        """The account with what it left open filled in; what is given must agree with what it has."""
        where = f"account '{account.dataset}' of '{place}'"
        if self.policy is not None:
            account = self._under_policy(account, self.policy, where)
        if self.record is not None:
            account = self._under_relation(account, self.record, where)
        if self.unit is not None:
            if account.unit is not None and account.unit != self.unit:
                raise InvalidInput(
                    f"unit: {where} has the unit {account.unit}, not {self.unit}. Nothing was changed. Leave unit and "
                    "max_per_entity out to go on with it."
                )
            account = _with_unit(account, self.unit)
        return account

    def _under_policy(self, account: Account, policy: Policy, where: str) -> Account:
        known = rows.record_of(account)
        if known is not None:
            if record_of(policy) != known:
                raise PolicyMismatch(
                    f"policy: {where} hides that {known}, and is under no policy. Nothing was changed. Leave policy "
                    "out: releases under any policy are charged at what they cost it."
                )
            return account
        if account.fingerprint not in (None, policy.fingerprint):
            raise PolicyMismatch(
                f"policy: {where} was opened under another policy than the one given ({policy.describe()}). Nothing "
                "was changed. Leave policy out: releases under other policies are charged at their exchange rate."
            )
        return replace(account, policy_spec=rows.canonical(policy), fingerprint=policy.fingerprint)

    def _under_relation(self, account: Account, record: Record, where: str) -> Account:
        if account.fingerprint is not None:
            raise PolicyMismatch(
                f"hide: {where} is kept under a policy, on the cells of one domain. Nothing was changed. Leave hide "
                "out to go on with it; an account that hides a relation is made for a dataset of its own."
            )
        known = rows.record_of(account)
        if known is None:
            return _with_record(account, record)
        if known.relation != record.relation or (self.says_fixed and known != record):
            raise PolicyMismatch(
                f"hide: {where} hides that {known}; given was that {record}. Nothing was changed. A promise once made "
                "stays: leave hide and fixed out to go on with it."
            )
        return account


def from_first_release(account: Account, policy: Policy, unit: Unit) -> Account:
    """The account with what it left open taken from a release."""
    if account.fingerprint is None and account.record_digest is None:
        record = record_of(policy)
        if record is not None:
            account = _with_record(account, record)
        else:
            account = replace(account, policy_spec=rows.canonical(policy), fingerprint=policy.fingerprint)
    return _with_unit(account, unit)


def record_of(policy: Policy) -> Record | None:
    """The relation between records that a release under a policy keeps at its own ε, with what it declares public
    fixed; None where there is none.
    """
    if policy.relation is None:
        return None
    try:
        record = Record.of(policy.relation, policy.unchanged)
        return record if price(record, policy.on_records) == 1 else None
    except (InvalidInput, PolicyMismatch, TooLarge):
        return None


def in_words(record: Record) -> str:
    """What an account hides of a record, with what was declared fixed, and where distances hold."""
    inside = any(rule.inside_bounds for rule in record.relation.rules)
    return f"{record}" + ("; distances hold for places inside the bounds of all its releases" if inside else "")


def account_in_words(account: Account) -> str:
    """What an account hides, under a policy or as a relation between records; or that its first release will say."""
    record = rows.record_of(account)
    if record is not None:
        return in_words(record)
    policy = rows.policy_of(account)
    return "what its first release will say" if policy is None else policy.describe()


def exchanged(target: Account, other: Account) -> int | None:
    """How many steps of another account's promise one change of the target's takes; None where nobody can say.

    ε under different relations do not add: only the same relation and unit, or a policy whose price the target knows.
    """
    if any(one.unit is None or one.fingerprint is one.record_digest is None for one in (target, other)):
        return None  # one that has no terms yet promises nothing that could be exchanged
    if target.terms == other.terms:
        return 1
    policy = rows.policy_of(other)
    if policy is None or other.unit is None:
        return None
    try:
        return rate_of(target, policy, other.unit)
    except (InvalidInput, PolicyMismatch, TooLarge):
        return None


def rate_of(
    account: Account, policy: Policy, unit: Unit, *, filtered: Collection[str] = (), dropped: Collection[str] = ()
) -> int:
    """How many times its own ε a release costs an account with these terms.

    `filtered` names the attributes by which records were left out before they were counted, `dropped` those of the
    release of which values that it does not have were left out.
    """
    record = rows.record_of(account)
    if account.unit is None or (record is None and account.fingerprint is None):
        raise LedgerError(f"Account '{account.dataset}' has no terms. Nothing was drawn or recorded.")
    if record is not None:
        own = record_of(policy)  # where leaving the bounds is one of its edges, a move out of them is one, too
        hidden = policy.allows_dropping and own is not None and own.relation == record.relation
        return record_rate(record, account.unit, policy, unit, filtered=filtered, dropped=() if hidden else dropped)
    same = account.fingerprint == policy.fingerprint
    account_policy = policy if same else rows.policy_of(account)
    if account_policy is None:
        raise LedgerError(f"Account '{account.dataset}' has no terms. Nothing was drawn or recorded.")
    beyond = [name for name in dropped if name not in account_policy.unchanged]
    hidden = same and policy.allows_dropping
    return cost_rate(
        account_policy, account.unit, policy, unit, filtered=bool(filtered), dropped=bool(beyond) and not hidden
    )


def _with_record(account: Account, record: Record) -> Account:
    spec = rows.canonical(record)
    return replace(account, record_spec=spec, record_digest=rows.digest_of(spec))


def _with_unit(account: Account, unit: Unit) -> Account:
    if account.unit is not None:
        return account
    return replace(account, unit=unit if unit.name == "person" else Unit("record"))
