"""The vault as a witness: how far a ledger had come when it was last used with it.

A ledger that was put back from a backup has forgotten what was spent since, and nothing in it shows that. The vault
keeps, sealed, what an account had spent and which step a stream had come to; both only grow, so that a ledger which has
come less far is an older copy, and is refused before anything is charged to it. What is charged without this vault is
not seen here, and an older vault remembers less.
"""

from __future__ import annotations

from sfumato.errors import LedgerError
from sfumato.publishing.account import Account
from sfumato.vault import Vault


def require_newest(vault: Vault, ledger: Account) -> None:
    """Refuse a ledger that has not come as far as the vault remembers."""
    # In this order: meanwhile the ledger may come further, and the vault hear of it.
    known = vault.remembers(ledger.reached[0])
    if known is None:
        return
    reached = ledger.reached[1]
    if reached is None or reached < known:
        raise LedgerError(
            f"{ledger.forgotten(reached, known)}: this is an older copy of the ledger, and what was spent since is "
            "forgotten in it. Nothing was drawn or recorded. Put the newest copy of the ledger back."
        )


def remember(vault: Vault, ledger: Account) -> None:
    """Let the vault know how far the ledger has come."""
    payer, reached = ledger.reached
    if reached is not None:
        vault.remember(payer, reached)
