"""Any order of openings, charges, raised caps and refusals: the file always agrees with a model in exact fractions."""

from __future__ import annotations

import shutil
import tempfile
from fractions import Fraction
from pathlib import Path

import postgres_server
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from sfumato.domain import Line
from sfumato.errors import BudgetExceeded, InvalidInput
from sfumato.ledger import Ledger
from sfumato.policies import bounded, threshold

LINE = Line(0, 1, cells=4)
ACCOUNT, WEAKER = bounded(LINE), threshold(LINE, theta=1)
RATES = {ACCOUNT: 1, WEAKER: 3}
amounts = st.fractions(min_value=Fraction(1, 50), max_value=1, max_denominator=60)


class LedgerMachine(RuleBasedStateMachine):
    @initialize(total=amounts)
    def open_new(self, total: Fraction) -> None:
        self.place = self.new_place()
        self.total, self.spent, self.lines = total, Fraction(0), 1
        self.ledgers = [Ledger.create(self.place, epsilon=total, policy=ACCOUNT)]

    @rule()
    def open_again(self) -> None:
        self.ledgers = [Ledger(self.place, epsilon=self.total), self.ledgers[0]]

    @rule(epsilon=amounts)
    def open_with_another_total(self, epsilon: Fraction) -> None:
        if epsilon != self.total:
            with pytest.raises(InvalidInput):
                Ledger(self.place, epsilon=epsilon)

    @rule(epsilon=amounts, which=st.integers(0, 1), policy=st.sampled_from([ACCOUNT, WEAKER]))
    def charge(self, epsilon: Fraction, which: int, policy: object) -> None:
        ledger, cost = self.ledgers[which % len(self.ledgers)], epsilon * RATES[policy]
        if cost <= self.total - self.spent:
            receipt = ledger.charge(epsilon, policy, label="visits", release_id="r")
            self.spent += cost
            self.lines += 1
            assert receipt.remaining == self.total - self.spent
        else:
            with pytest.raises(BudgetExceeded):
                ledger.charge(epsilon, policy, label="visits", release_id="r")

    @rule(more=amounts)
    def raise_cap(self, more: Fraction) -> None:
        self.ledgers[0].raise_cap(self.total + more)
        self.total += more
        self.lines += 1

    @rule(less=amounts)
    def lower_cap(self, less: Fraction) -> None:
        with pytest.raises(InvalidInput):
            self.ledgers[0].raise_cap(max(self.total - less, Fraction(1, 1000)))

    @invariant()
    def the_file_agrees_with_the_model(self) -> None:
        ledger = self.ledgers[-1]
        assert (ledger.total, ledger.spent, ledger.remaining) == (self.total, self.spent, self.total - self.spent)
        assert len(ledger.history()) == self.lines

    def new_place(self) -> str:
        self.directory = Path(tempfile.mkdtemp(prefix="sfumato-"))
        return str(self.directory / "budget.db")

    def teardown(self) -> None:
        shutil.rmtree(self.directory, ignore_errors=True)


class LedgerMachineOnAServer(LedgerMachine):
    def new_place(self) -> str:
        server = postgres_server.shared()
        return server.url(server.fresh())

    def teardown(self) -> None:
        pass  # the server goes with all its databases


TestLedgerMachine = pytest.mark.slow(LedgerMachine.TestCase)
TestLedgerMachine.settings = settings(
    max_examples=20, stateful_step_count=15, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
TestLedgerMachineOnAServer = pytest.mark.slow(LedgerMachineOnAServer.TestCase)
TestLedgerMachineOnAServer.settings = settings(TestLedgerMachine.settings, max_examples=6)
