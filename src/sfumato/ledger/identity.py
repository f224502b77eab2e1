"""Who paid: the name that a ledger draws when it is made, and with it that of an account and of a step of a stream.

The vault seals the name of the payer with the noise, so that no other ledger can be passed off for the one that was
charged. A copy of a ledger has the same name: the two cannot be told apart, and both would be believed.
"""

from __future__ import annotations

import json

from sfumato.ledger.database import Connection, Database
from sfumato.ledger.schema import damaged


def ledger_name(connection: Connection) -> str:
    """The ledger's own name."""
    found = connection.execute("SELECT name FROM identity").fetchone()
    if found is None or not isinstance(found[0], str) or not found[0]:
        raise damaged("it has no name of its own any more")
    return found[0]


def payer(store: Database, *account: str) -> str:
    """The name under which a vault knows an account of a ledger, or what lies within it."""
    with store.read() as connection:
        return json.dumps([ledger_name(connection), *account])
