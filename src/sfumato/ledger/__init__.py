"""What has been spent, and may still be: accounts of datasets and of streams, in a file or on a server.

A charge is checked, recorded and on disk before anything is drawn. Nothing here sees a count or draws noise, and no
label or message may carry a private value.
"""

from sfumato.ledger.account import Account, Entry, Receipt
from sfumato.ledger.ledger import Ledger
from sfumato.ledger.steps import Remaining, Step, StepReceipt
from sfumato.ledger.streams import StreamAccount

__all__ = ["Account", "Entry", "Ledger", "Receipt", "Remaining", "Step", "StepReceipt", "StreamAccount"]
