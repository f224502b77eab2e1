"""What is promised and what is left of it: guarantees, the ledger, and the vault."""

from sfumato.privacy.account import Account, Entry, Receipt
from sfumato.privacy.budget import Epsilon
from sfumato.privacy.guarantee import SAMPLER_SLACK, Guarantee
from sfumato.privacy.ledger import Ledger
from sfumato.privacy.state import State
from sfumato.privacy.steps import Remaining, Step, StepReceipt
from sfumato.privacy.streams import StreamAccount
from sfumato.privacy.unit import Unit
from sfumato.privacy.vault import Finding, Vault
from sfumato.privacy.window import Window

__all__ = [
    "SAMPLER_SLACK",
    "Account",
    "Entry",
    "Epsilon",
    "Finding",
    "Guarantee",
    "Ledger",
    "Receipt",
    "Remaining",
    "State",
    "Step",
    "StepReceipt",
    "StreamAccount",
    "Unit",
    "Vault",
    "Window",
]
