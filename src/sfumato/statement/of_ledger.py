"""The statement of a ledger: one account's extract, its streams, and all accounts beside it."""

from __future__ import annotations

from collections.abc import Mapping

from sfumato._version import __version__
from sfumato.ledger import Ledger
from sfumato.statement.accounts import account_figures, account_sections, together_section
from sfumato.statement.parts import Section, checked_facts, plain, publishers, section
from sfumato.statement.statement import Statement


def statement_of_ledger(
    ledger: Ledger, *, facts: Mapping[str, str] | None = None, title: str | None = None
) -> Statement:
    """What an account says of itself and of the accounts beside it, for an auditor. See `ledger.statement`."""
    added = checked_facts(facts)
    named = added.get("name", f"account '{ledger.dataset}'")
    sections = [_not_hidden(ledger), *publishers(added), *account_sections(ledger), together_section(ledger)]
    return Statement(
        title=plain(title) if title is not None else plain(f"Privacy statement: {named}"),
        kind="ledger",
        sections=tuple(sections),
        figures={
            "software": f"sfumato {__version__}",
            "account": account_figures(ledger),
            "accounts": [one.dataset for one in ledger.accounts()],
        },
        facts=added,
    )


def _not_hidden(ledger: Ledger) -> Section:
    fixed, relation, policy = ledger.fixed, ledger.relation, ledger.policy
    items = []
    if fixed:
        items.append(f"Nothing is hidden of the {' and '.join(fixed)} of a record, which is declared fixed.")
    shown = policy is not None and policy.total_is_public
    if relation is not None and not (relation.hides_presence or any(rule.places for rule in relation.rules)):
        shown = True
    if shown:
        items.append("That a record is in the data is not hidden: no change that is hidden lets it appear or vanish.")
    return section(
        "not-hidden",
        "Not hidden",
        items=[
            *items,
            "What an account does not say that it hides: attributes that are declared fixed, and changes that no step "
            "of its relation makes.",
            "Longer changes are hidden less: one of k steps at k times the sums below.",
            "What was published without being charged here, and what others published about the same people.",
            "What a ledger that was put back from an older copy has forgotten.",
            "What the figures show about everybody: that is what they are published for.",
        ],
    )
