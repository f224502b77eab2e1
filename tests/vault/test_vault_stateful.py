"""Any sequence of publications, refinements, copies put back, losses and deaths: one noise for a level, and paid for.

Vault and ledger together, through `publish` and `refine`. Everything is opened anew for every step, and a step may die
before any of its writes (`vault_disk`). A small model follows what the ledger charged and what was handed out.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from ledger_worker import opened
from vault_disk import Death, Killed, dying
from vault_states import posix, same

import sfumato as sf
from sfumato.vault import State

LINE = sf.Line(0, 1, cells=12)
COUNTS = np.arange(12)
PLANS = {
    epsilon: sf.plan(sf.bounded(LINE), sf.histogram(), epsilon, mechanism="identity")
    for epsilon in (Fraction(1, 4), Fraction(1, 2))
}
QUARTER = Fraction(1, 4)
STAGED = Death(1, among="UPDATE account")  # the charge of a level, which is staged by then
Action = Callable[[sf.Vault, sf.Ledger], sf.Release]


def deaths(latest: int) -> st.SearchStrategy[Death]:
    """Deaths before one of the writes of an action, which makes about `latest`."""
    return st.builds(Death, st.integers(1, latest), st.booleans())


@dataclass
class Followed:
    """A release that was handed out: the ε of each level charged, and what was handed out at each ε."""

    charged: list[Fraction]
    handed_out: dict[Fraction, sf.Release]
    unheard: set[Fraction] = field(default_factory=set)  # charged by a refinement that died
    wanted: Fraction | None = None  # what was asked for when a refinement died, until it is handed out or refused

    @property
    def finest(self) -> Fraction:
        return self.charged[-1]

    @property
    def first(self) -> sf.Release:
        return self.handed_out[self.charged[0]]


class VaultMachine(RuleBasedStateMachine):
    @initialize(total=st.sampled_from([1, 3, 6]))
    def open_new(self, total: int) -> None:
        self.home = Path(tempfile.mkdtemp(prefix="sfumato-"))
        self.place = self.home / "place"
        self.secrets = self.place / "secrets"
        self.place.mkdir()
        self.total = Fraction(total)
        self.in_vain = Fraction(0)  # charged for releases that nobody got
        self.releases: dict[str, Followed] = {}
        self.states: dict[tuple[str, int], State] = {}
        self.aside: list[Path] = []
        sf.Vault(self.home / "elsewhere", key=self.home / "other.key")
        self.vault, self.ledger = self.open()
        self.publish(QUARTER, None)

    def open(self) -> tuple[sf.Vault, sf.Ledger]:
        vault = sf.Vault(self.secrets, key=self.place / "vault.key")
        return vault, opened(self.place / "budget.db", self.total)

    @property
    def spent(self) -> Fraction:
        return self.in_vain + sum(one.finest for one in self.releases.values())

    def attempt(self, action: Action, death: Death | None) -> sf.Release | sf.SfumatoError | None:
        """What comes of an action: a release, a refusal, or None when it died on the way."""
        try:
            with dying(self.place, death):
                return action(*self.open())
        except Killed:
            return None
        except sf.SfumatoError as refusal:
            return refusal

    # ---------------------------------------------------------------- publishing and refining

    @precondition(lambda self: len(self.releases) < 2)
    @rule(epsilon=st.sampled_from(sorted(PLANS)), death=st.none() | deaths(23))
    def publish(self, epsilon: Fraction, death: Death | None) -> None:
        before, fits = self.spent, self.spent + epsilon <= self.total
        made = self.attempt(lambda vault, ledger: PLANS[epsilon].publish(COUNTS, vault=vault, ledger=ledger), death)
        if made is None:
            more = self.ledger.spent - before
            assert more in ((0, epsilon) if fits else (0,))
            self.in_vain += more
        elif fits:
            assert isinstance(made, sf.Release)
            self.releases[made.id] = Followed(charged=[epsilon], handed_out={epsilon: made})
        else:
            assert isinstance(made, sf.BudgetExceeded)

    @rule(data=st.data(), quarters=st.integers(1, 4), death=st.none() | deaths(46))
    def refine(self, data: st.DataObject, quarters: int, death: Death | None) -> None:
        name = self.any_release(data)
        self.ask(data, name, self.releases[name].finest + quarters * QUARTER, death)

    @precondition(lambda self: any(one.wanted for one in self.releases.values()))
    @rule(data=st.data(), death=st.none() | deaths(46))
    def ask_again_for_what_died(self, data: st.DataObject, death: Death | None) -> None:
        name = data.draw(st.sampled_from([name for name, one in self.releases.items() if one.wanted]))
        self.ask(data, name, self.releases[name].wanted, death)

    @precondition(lambda self: any(one.charged[1:] for one in self.releases.values()))
    @rule(data=st.data(), death=st.none() | deaths(25))
    def ask_for_a_level_that_was_charged(self, data: st.DataObject, death: Death | None) -> None:
        name = data.draw(st.sampled_from([name for name, one in self.releases.items() if one.charged[1:]]))
        self.ask(data, name, data.draw(st.sampled_from(self.releases[name].charged[1:])), death)

    def any_release(self, data: st.DataObject) -> str:
        return list(self.releases)[data.draw(st.integers(0, len(self.releases) - 1))]

    def ask(self, data: st.DataObject, name: str, asked: Fraction, death: Death | None) -> None:
        """Refine from any level that was handed out; what comes of it is what the model says, or a death."""
        one = self.releases[name]
        start = data.draw(st.sampled_from(sorted(one.handed_out)))  # may be finer than what is asked for
        expected, before = self.outcome(name, start, asked), self.files()
        got = self.attempt(lambda v, led: one.handed_out[start].refine(asked, vault=v, ledger=led), death)
        if (counted := self.ledger.level(name)) != (len(one.charged) - 1, one.finest):
            assert expected is sf.Release  # what is refused is not charged
            assert asked > one.finest
            assert counted == (len(one.charged), asked)
            one.charged.append(asked)
            assert self.has_the_noise_that_was_charged(name)
            if got is None:
                one.unheard.add(asked)
        one.wanted = asked if got is None else None
        if got is None:
            return
        assert type(got) is expected
        if isinstance(got, sf.Release):
            assert got.guarantee.epsilon == asked
            assert asked in one.charged
            known = one.handed_out.setdefault(asked, got)
            assert np.array_equal(known.measured, got.measured)
            assert np.array_equal(known.counts, got.counts)
        elif expected is sf.VaultError:
            assert self.files() == before

    def outcome(self, name: str, start: Fraction, asked: Fraction) -> type:
        one = self.releases[name]
        if asked <= start:
            return sf.InvalidInput
        if not self.has_the_noise_that_was_charged(name):
            return sf.VaultError
        if asked in one.charged:
            return sf.Release
        if asked < one.finest:
            return sf.InvalidInput
        return sf.Release if self.spent + asked - one.finest <= self.total else sf.BudgetExceeded

    def has_the_noise_that_was_charged(self, name: str) -> bool:
        """Whether the vault has the finest level that was charged: as its state, or staged when the charge came."""
        if not self.has_a_state(name):
            return False
        level, finest = self.vault.read(name).level, len(self.releases[name].charged) - 1
        staged = self.vault.staged(name)
        paid = staged is not None and staged[0].token == self.ledger.stamp(name, finest)
        return level == finest or (level == finest - 1 and paid)

    def has_a_state(self, name: str) -> bool:
        """Whether there is one: it may have been lost, or a copy may be older than the release."""
        return (self.secrets / f"{name}.state").exists()

    def files(self) -> dict[str, bytes]:
        return {path.name: path.read_bytes() for path in self.secrets.iterdir() if path.suffix != ".lock"}

    # ---------------------------------------------------------------- copies

    @precondition(lambda self: len(self.aside) < 2)
    @rule()
    def copy_the_vault_aside(self) -> None:
        self.aside.append(self.home / f"copy-{len(self.aside)}")
        shutil.copytree(self.secrets, self.aside[-1])

    @precondition(lambda self: self.aside)
    @rule(data=st.data(), quarters=st.integers(1, 4), death=st.none() | deaths(46))
    def put_a_copy_back_and_refine_it(self, data: st.DataObject, quarters: int, death: Death | None) -> None:
        self.exchange(self.aside[data.draw(st.integers(0, len(self.aside) - 1))])
        self.refine(data, quarters, death)

    @precondition(lambda self: len(self.aside) < 2)
    @rule(data=st.data(), quarters=st.integers(1, 4))
    def draw_the_same_level_in_the_vault_and_in_a_copy(self, data: st.DataObject, quarters: int) -> None:
        """Both die when they have staged it, each with its own noise; one of them may be charged later."""
        name = self.any_release(data)
        asked = self.releases[name].finest + quarters * QUARTER
        self.copy_the_vault_aside()
        self.ask(data, name, asked, STAGED)
        self.exchange(self.aside[-1])
        self.ask(data, name, asked, STAGED)

    def exchange(self, copy: Path) -> None:
        """Put a copy in the place of the vault, which becomes a copy itself: it may come back."""
        self.secrets.rename(self.home / "between")
        copy.rename(self.secrets)
        (self.home / "between").rename(copy)

    # ---------------------------------------------------------------- refusals

    @rule(data=st.data(), reason=st.sampled_from(["no level", "no state", "no key"]))
    def ask_for_what_cannot_be_had(self, data: st.DataObject, reason: str) -> None:
        """A level that was not made on the way, with a state that is lost for a while, or under another key."""
        name = self.any_release(data)
        state, lost, finest = self.secrets / f"{name}.state", self.home / "lost", self.releases[name].finest
        if reason == "no level":
            self.ask(data, name, finest - QUARTER / 2, None)
        elif not state.exists():
            return
        elif reason == "no state":
            state.rename(lost)
            self.ask(data, name, finest + QUARTER, None)
            lost.rename(state)
        else:
            vault, before = sf.Vault(self.secrets, key=self.home / "other.key"), self.files()
            with pytest.raises(sf.VaultError, match="was sealed under another key"):
                self.releases[name].first.refine(finest + QUARTER, vault=vault, ledger=self.ledger)
            assert self.files() == before

    # ---------------------------------------------------------------- what always holds

    @invariant()
    def everything_opens_and_the_ledger_has_every_charge(self) -> None:
        self.vault, self.ledger = self.open()
        assert self.ledger.spent == self.spent <= self.total

    @invariant()
    def what_was_handed_out_is_charged_and_nothing_more_unless_a_process_died(self) -> None:
        for one in self.releases.values():
            assert set(one.handed_out) <= set(one.charged) <= set(one.handed_out) | one.unheard

    @invariant()
    def the_vault_is_intact_and_holds_one_chain_of_noise_no_finer_than_charged(self) -> None:
        for found in self.vault.check():
            name = found.release_id
            if not self.has_a_state(name):
                assert "has no state" in str(found.problem)
                continue
            assert found.intact
            state, charged = self.vault.read(name), self.ledger.level(name)
            assert charged is not None
            assert state.level <= charged[0]
            assert set(found.outbox) >= set(range(1, state.level + 1))
            assert same(self.states.setdefault((name, state.level), state), state)
            older = self.states.get((name, state.level - 1))
            assert older is None or state.refines(older)

    def teardown(self) -> None:
        shutil.rmtree(self.home, ignore_errors=True)


TestVaultMachine = posix(pytest.mark.slow(VaultMachine.TestCase))
TestVaultMachine.settings = settings(
    max_examples=30,
    stateful_step_count=20,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow],
)
