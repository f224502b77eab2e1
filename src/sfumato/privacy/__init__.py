"""What is promised and what is left of it: guarantees and the ledger."""

from sfumato.privacy.account import Account, Entry, Receipt
from sfumato.privacy.budget import Epsilon
from sfumato.privacy.guarantee import SAMPLER_SLACK, Guarantee
from sfumato.privacy.ledger import Ledger
from sfumato.privacy.unit import Unit

__all__ = ["SAMPLER_SLACK", "Account", "Entry", "Epsilon", "Guarantee", "Ledger", "Receipt", "Unit"]
