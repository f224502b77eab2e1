"""The noise of refinable releases, sealed and kept apart from them.

What is in a vault reveals the data when it meets its release: nothing leaves it but sealed or to `publishing`, and
nothing here decides what a level costs.
"""

from sfumato.vault.state import State
from sfumato.vault.vault import Finding, Vault

__all__ = ["Finding", "State", "Vault"]
