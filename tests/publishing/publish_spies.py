"""Spies for the tests of publishing: what was recorded and what was drawn, in order."""

from __future__ import annotations

import sfumato as sf
from sfumato.noise import SystemSource


class SpySource:
    """The system's randomness, with a line in a journal for every draw."""

    private = True

    def __init__(self, journal):
        self.journal = journal

    def words(self, count):
        self.journal.append("draw")
        return SystemSource().words(count)


class SpyLedger(sf.Ledger):
    """A ledger with a line in the journal once a charge is on disk."""

    def __init__(self, path, journal, epsilon):
        sf.Ledger.create(path, epsilon=epsilon)
        super().__init__(path)
        self.journal = journal

    def charge(self, *given, **named):
        receipt = super().charge(*given, **named)
        self.journal.append("record")
        return receipt
