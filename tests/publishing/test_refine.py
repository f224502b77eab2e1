"""Raising ε later: the finer release, what it costs, what comes back, and what is refused."""

from __future__ import annotations

import shutil
from base64 import b64decode
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.auditing import audit, audit_chain
from sfumato.mechanism import AdditiveMechanism, LinearMechanism, build


class Killed(BaseException):
    """What a test does to a program."""


LINE = sf.Line(0, 1, cells=12)
GRID = sf.Grid(bounds=(0, 0, 1, 1), shape=(6, 5))
CASES = {
    "identity": (sf.bounded(LINE), {}),
    "haar": (sf.unbounded(GRID), {}),
    "hierarchy": (sf.unbounded(LINE), {}),
    "hat-products": (sf.bounded(GRID), {"hats": [3, 0], "height": 7, "weights": [5, 2]}),
    "levels": (sf.bounded(GRID), {}),
    "hats": (sf.bounded(LINE), {}),
    "prefix": (sf.within(LINE, 0.2, sources="boundary"), {}),
    "edges": (sf.within(GRID, 0.2, sources="boundary"), {}),
    "edge-haar": (sf.threshold(GRID, 1), {}),
    "edge-hierarchy": (sf.threshold(GRID, 1), {}),
    "edge-hats": (sf.threshold(GRID, 1), {}),
    "diagonal-hats": (sf.threshold(GRID, 2), {}),
    "policy-edges": (sf.threshold(LINE, 3), {}),
    "blocks": (sf.threshold(LINE, 2), {}),
    "spanner": (sf.threshold(LINE, 3), {}),
    "shifted": (sf.within(GRID, 0.2), {"width": 3}),
    "shifted-edges": (sf.within(GRID, 0.2), {"width": 3}),
    "sorted": (sf.within(LINE, 0.2), {}),
    "consistent": (sf.threshold(LINE, 2), {}),
}


@pytest.fixture
def vault(tmp_path):
    return sf.Vault(tmp_path / "secrets", key=tmp_path / "vault.key")


@pytest.fixture
def ledger(tmp_path):
    return sf.Ledger.create(tmp_path / "budget.db", epsilon=10)


def published(name, vault, ledger=None, epsilon=1, seed=3):
    policy, options = CASES[name]
    workload = sf.ranges()
    plan = sf.plan(policy, workload, epsilon, mechanism=name, **options)
    counts = np.random.default_rng(seed).integers(0, 40, policy.domain.shape)
    return plan.publish(counts, vault=vault, ledger=ledger), counts


@pytest.mark.parametrize("name", CASES)
def test_every_additive_mechanism_refines(name, vault, ledger):
    """Twice, in uneven steps: the law is that of a fresh release, the total stays exact, and the ledger pays the
    difference alone.
    """
    first, counts = published(name, vault, ledger)
    assert ledger.spent == 1
    second = first.refine(epsilon="1.7", vault=vault, ledger=ledger)
    third = second.refine("5", vault=vault, ledger=ledger)
    assert ledger.spent == 5
    assert [r.guarantee.epsilon for r in (first, second, third)] == [1, Fraction("1.7"), 5]
    fresh = sf.plan(first.guarantee.policy, sf.ranges(), 5, mechanism=name, **first.mechanism.options)
    total = int(counts.sum()) if first.guarantee.policy.total_is_public else None
    assert third.mechanism.noises(total) == fresh.mechanism.noises(total)
    assert third.mechanism.privacy_loss == fresh.mechanism.privacy_loss
    if isinstance(third.mechanism, LinearMechanism):
        assert third.mechanism.model.expected_error(sf.ranges(), first.domain) == pytest.approx(
            fresh.mechanism.model.expected_error(sf.ranges(), first.domain)
        )
    if total is not None:
        assert second.counts.sum() == third.counts.sum() == total
    assert first.id == second.id == third.id


@pytest.mark.parametrize("name", CASES)
def test_the_finer_release_is_the_counts_with_the_finer_noise(name, vault):
    """With ε so large that no noise is left, what is measured is what was counted, without a look at the counts."""
    first, counts = published(name, vault)
    assert isinstance(first.mechanism, AdditiveMechanism)
    exact = first.refine(epsilon=100_000, vault=vault)
    assert np.array_equal(exact.measured, first.mechanism.values(counts.ravel()))


@pytest.mark.slow
def test_a_refined_release_has_the_error_of_a_fresh_one(vault):
    """100 releases of 240 cells refined from 0.5 to 1: their variance is that of scale 2, not more and not less. The
    variance of 24,000 discrete Laplace values has a relative deviation of 1.5 %; 9 % are six of them.
    """
    line = sf.Line(0, 1, cells=240)
    plan = sf.plan(sf.bounded(line), sf.histogram(), Fraction(1, 2), mechanism="identity")
    counts = np.full(240, 30)
    noise = []
    for _ in range(100):
        release = plan.publish(counts, vault=vault).refine(epsilon=1, vault=vault)
        noise.append(release.measured - counts)
    fresh = sf.plan(sf.bounded(line), sf.histogram(), 1, mechanism="identity")
    variance = fresh.mechanism.model.blocks[0].noise.variance
    assert np.var(noise) == pytest.approx(variance, rel=0.09)


def test_a_level_that_was_made_comes_back_as_it_was_and_costs_nothing(vault, ledger):
    """Several buyers: all of them together know the highest level, and pay for it once."""
    first, _ = published("edges", vault, ledger)
    silver = first.refine(epsilon=2, vault=vault, ledger=ledger)
    gold = first.refine(epsilon=4, vault=vault, ledger=ledger)
    again = first.refine(epsilon=2, vault=vault, ledger=ledger)
    assert np.array_equal(again.measured, silver.measured)
    assert np.array_equal(again.counts, silver.counts)
    assert np.array_equal(silver.refine(epsilon=4, vault=vault, ledger=ledger).measured, gold.measured)
    assert ledger.spent == 4


def test_refining_needs_the_saved_release_and_no_counts(vault, ledger, tmp_path):
    first, _ = published("shifted-edges", vault, ledger)
    loaded = sf.load(first.save(tmp_path / "a.sfumato"))
    finer = loaded.refine(epsilon=3, vault=vault, ledger=ledger)
    again = sf.load(finer.save(tmp_path / "b.sfumato"))
    assert np.array_equal(again.counts, finer.counts)
    assert np.array_equal(again.refine(epsilon=4, vault=vault, ledger=ledger).total, finer.total)


# --- patches ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", CASES)
def test_a_patch_leads_from_one_level_to_the_next(name, vault):
    first, _ = published(name, vault)
    second = first.refine(epsilon="1.3", vault=vault)
    patch = second.patch_from(first)
    through = type(patch).from_bytes(patch.to_bytes())
    applied = first.apply(through)
    assert np.array_equal(applied.measured, second.measured)
    assert np.array_equal(applied.counts, second.counts)
    assert applied.guarantee == second.guarantee or str(applied.guarantee) == str(second.guarantee)
    assert applied.mechanism.spec() == second.mechanism.spec()


def test_a_small_step_makes_a_small_patch(vault):
    """10,000 cells from ε = 1 to 1.01: about two per cent of the noises change."""
    line = sf.Line(0, 1, cells=10_000)
    plan = sf.plan(sf.bounded(line), sf.histogram(), 1, mechanism="identity")
    first = plan.publish(np.full(10_000, 50), vault=vault)
    small = first.refine(epsilon="1.01", vault=vault)
    patch = small.patch_from(first)
    assert 50 < len(patch.places) < 500
    assert len(patch.to_bytes()) < 4_000
    large = small.refine(epsilon=3, vault=vault)
    assert len(large.patch_from(first).places) > 5_000
    assert np.array_equal(first.apply(large.patch_from(first)).counts, large.counts)


def test_patches_fit_their_own_level_alone(vault):
    first, _ = published("edges", vault)
    second = first.refine(epsilon=2, vault=vault)
    third = second.refine(epsilon=3, vault=vault)
    other, _ = published("edges", vault)
    patch = third.patch_from(second)
    with pytest.raises(sf.InvalidInput) as told:
        first.apply(patch)
    assert str(told.value) == "this patch belongs to another release, or to another level of it. Nothing was changed."
    with pytest.raises(sf.InvalidInput, match="previous is not a level of the same release"):
        third.patch_from(other)
    with pytest.raises(sf.InvalidInput, match="a patch leads from a coarser level to a finer one"):
        first.patch_from(third)
    plain = sf.plan(*CASES["edges"][:1], sf.ranges(), 1, mechanism="edges").publish(np.zeros((6, 5), dtype=int))
    with pytest.raises(sf.InvalidInput, match="only releases made with a vault have levels"):
        third.patch_from(plain)
    with pytest.raises(sf.InvalidInput, match="patch=int is not a patch"):
        first.apply(3)


def test_a_damaged_patch_is_refused(vault):
    first, _ = published("edges", vault)
    patch = first.refine(epsilon=2, vault=vault).patch_from(first)
    content = patch.to_bytes()
    rng = np.random.default_rng(1)
    for _ in range(300):
        broken = bytearray(content)
        broken[int(rng.integers(len(broken)))] ^= int(rng.integers(1, 256))
        try:
            release = first.apply(type(patch).from_bytes(bytes(broken)))
        except (sf.FileFormatError, sf.InvalidInput):
            continue
        assert np.array_equal(release.counts, first.apply(patch).counts)
    for cut in range(0, len(content), 7):
        with pytest.raises(sf.FileFormatError):
            type(patch).from_bytes(content[:cut])


# --- accuracy first ---------------------------------------------------------------------------------------------------


def test_refine_until_stops_at_the_promised_error(vault, ledger):
    first, _ = published("edges", vault, ledger)
    before = first.mechanism.model.expected_error(sf.ranges(), GRID)
    good = sf.refine_until(first, error=before / 9, max_epsilon=8, vault=vault, ledger=ledger)
    after = good.mechanism.model.expected_error(sf.ranges(), GRID)
    assert before / 9.2 < after <= before / 9
    assert ledger.spent == good.guarantee.epsilon < Fraction(32, 10)
    assert sf.refine_until(good, error=before, max_epsilon=8, vault=vault, ledger=ledger) is good
    cells = sf.refine_until(good, error=1.0, max_epsilon=9, vault=vault, ledger=ledger, workload=sf.histogram())
    assert cells.mechanism.model.expected_error(sf.histogram(), GRID) <= 1.0


def test_refine_until_never_goes_beyond_its_cap(vault, ledger):
    first, _ = published("edges", vault, ledger)
    with pytest.raises(sf.InvalidInput, match=r"needs epsilon=.* which exceeds max_epsilon=2\. Nothing was drawn"):
        sf.refine_until(first, error=0.5, max_epsilon=2, vault=vault, ledger=ledger)
    assert ledger.spent == 1
    sorted_release, _ = published("sorted", vault)
    with pytest.raises(sf.InvalidInput, match="the error of mechanism='sorted' depends on the data"):
        sf.refine_until(sorted_release, error=1, max_epsilon=5, vault=vault)


def test_refine_until_counts_a_persons_records(vault):
    plan = sf.plan(sf.bounded(LINE), sf.ranges(), 1, mechanism="identity", max_per_entity=3)
    table = pa.table({"x": np.linspace(0, 0.99, 30), "who": np.arange(30)})
    counted = sf.count(table, LINE, entity="who", max_per_entity=3)
    first = plan.publish(counted, vault=vault)
    wanted = sf.plan(sf.bounded(LINE), sf.ranges(), 2, mechanism="identity", max_per_entity=3).expected_error
    finer = sf.refine_until(first, error=wanted, max_epsilon=5, vault=vault)
    assert float(finer.guarantee.epsilon) == pytest.approx(2, rel=1e-3)
    assert finer.mechanism.privacy_loss * 3 == finer.guarantee.epsilon


# --- refusals: nothing drawn, nothing recorded ------------------------------------------------------------------------


def refused(action, ledger=None):
    spent = None if ledger is None else ledger.spent
    with pytest.raises((sf.InvalidInput, sf.VaultError, sf.BudgetExceeded)) as told:
        action()
    assert ledger is None or ledger.spent == spent
    return str(told.value)


def test_epsilon_must_grow(vault, ledger):
    first, _ = published("edges", vault, ledger)
    for epsilon in (1, "0.5"):
        assert "does not refine this release, which has epsilon=1 already. Nothing was drawn or recorded." in refused(
            lambda epsilon=epsilon: first.refine(epsilon=epsilon, vault=vault, ledger=ledger), ledger
        )
    first.refine(epsilon=4, vault=vault, ledger=ledger)
    assert refused(lambda: first.refine(epsilon=2, vault=vault, ledger=ledger), ledger) == (
        "epsilon=2 lies below 4, the finest level of this release, and was not made on the way. Nothing was drawn or "
        "recorded. Ask for 4, which costs nothing more, or for a larger one."
    )


def test_levels_that_do_not_fit_the_budget_leave_everything_as_it_was(vault, ledger):
    first, _ = published("edges", vault, ledger)
    told = refused(lambda: first.refine(epsilon=12, vault=vault, ledger=ledger), ledger)
    assert "exceeds the 9 left of 10" in told
    assert vault.staged(first.id) is None
    assert [level for level, _ in vault.levels(first.id)] == [0]
    assert first.refine(epsilon=10, vault=vault, ledger=ledger).guarantee.epsilon == 10


def test_a_release_without_a_vault_cannot_be_refined(vault):
    plan = sf.plan(CASES["edges"][0], sf.ranges(), 1, mechanism="edges")
    release = plan.publish(np.zeros((6, 5), dtype=int))
    assert refused(lambda: release.refine(epsilon=2, vault=vault)) == (
        "this release was made without a vault, and its noise is forgotten. Nothing was drawn or recorded. Publish "
        "with vault=… to be able to refine later."
    )
    kept, _ = published("edges", vault)
    assert "is not a vault" in refused(lambda: kept.refine(epsilon=2, vault=None))


def test_another_vault_does_not_know_the_release(vault, tmp_path):
    first, _ = published("edges", vault)
    other = sf.Vault(tmp_path / "other", key=tmp_path / "other.key")
    assert "has no state of release" in refused(lambda: first.refine(epsilon=2, vault=other))


def test_mechanisms_that_look_at_the_data_have_no_place_in_a_vault(vault, ledger):
    plan = sf.plan(sf.unbounded(LINE), sf.ranges(), 1, mechanism="dawa")
    told = refused(lambda: plan.publish(np.arange(12), vault=vault, ledger=ledger), ledger)
    assert told == (
        "mechanism='dawa' cannot be refined later: what it publishes depends on the data in more ways than by "
        "added noise. Nothing was drawn or recorded. Publish without a vault, or with another mechanism."
    )
    release = plan.publish(np.arange(12))
    assert "a release by mechanism='dawa' cannot be refined" in refused(lambda: release.refine(epsilon=2, vault=vault))


# --- consistent: noise on the edge values of a tree, and post-processing ---------------------------------------------

TREES = {
    "prefix sums": sf.threshold(LINE, 1),
    "stretched by two": sf.threshold(LINE, 2),
    "a star around ⊥": sf.unbounded(LINE),
    "records near the ends appear": sf.within(LINE, 0.1, sources="boundary"),
    "a tree on a grid": sf.graph(
        GRID, [*((i, i + 1) for i in range(30) if i % 5 < 4), *((i, i + 5) for i in range(0, 25, 5))]
    ),
}


@pytest.mark.parametrize("policy", TREES.values(), ids=TREES)
def test_consistent_releases_refine_to_the_edge_values_with_the_finer_noise(policy, vault, ledger):
    """The noise falls, the finer counts are the projection of the finer edge values, and the difference is charged."""
    counts = np.random.default_rng(4).integers(0, 9, policy.domain.shape)
    plan = sf.plan(policy, sf.histogram(), 1, mechanism="consistent")
    first = plan.publish(counts, vault=vault, ledger=ledger)
    total = int(counts.sum()) if policy.total_is_public else None
    edge_values = first.mechanism.values(counts.ravel())
    finer = first.refine(epsilon=3, vault=vault, ledger=ledger)
    estimates = finer.mechanism.estimate(finer.measured, total)
    assert np.array_equal(finer.counts, estimates.reshape(policy.domain.shape))
    assert finer.counts.min() > -1e-3  # as near to zero as the projection comes on trees that are no lines
    assert ledger.spent == finer.guarantee.epsilon == finer.mechanism.privacy_loss == 3
    exact = plan.publish(counts, vault=vault).refine(epsilon=100_000, vault=vault)
    assert np.array_equal(exact.measured, edge_values)
    assert exact.counts == pytest.approx(counts, abs=1e-3)


def test_the_levels_of_a_consistent_release_tell_together_what_the_last_one_does(vault):
    """The rates of its noise are those that a vault lowers, so the audit of chains speaks of them."""
    plan = sf.plan(sf.threshold(LINE, 1), sf.histogram(), 1, mechanism="consistent")
    levels = [plan.publish(np.arange(12), vault=vault)]
    levels.append(levels[0].refine(epsilon=2, vault=vault))
    rates = [law.rate for level in levels for law, _ in level.mechanism.noises(66)]
    found = audit_chain(rates)
    stretch = levels[1].mechanism.edges.spanner.stretch
    assert found.passed
    assert stretch * found.epsilon == levels[1].guarantee.epsilon == 2
    assert audit(levels[1].mechanism, seed=1).epsilon == 2


# Written before `consistent` could be refined: a line of five cells, threshold(1), ε = 1, seeded.
BEFORE = (
    "UEFSMRUAFVwVPiwVChUSFQYVBhwYCAAAAAAAAAhAGAgAAAAAAAAAgBYAKAgAAAAAAAAIQBgIAAAAAAAAAIAREQAAACi1L/0gLrUAAIACAAAACg"
    "EACADwAABAAD9AAQAiMAIVBBksNQAYBnNjaGVtYRUCABUKJQIYBWNvdW50ABYKGRwZHCYAHBUKGSUGEhkYBWNvdW50FQwWChbaARa8ASYIPBgI"
    "AAAAAAAACEAYCAAAAAAAAACAFgAoCAAAAAAAAAhAGAgAAAAAAAAAgBERABkcFQAVEhUCADwpBhkmAAoAAAAW2gEWCiYIFrwBABkcGAdzZnVtYX"
    "RvGKAEeyJjcmVhdGVkIjoiMjAyNi0xMS0xOFQyMDowMTo1NSswMDowMCIsImRpZ2VzdCI6IjIzYzg4MjhhZDYwNGJiZTc5ZDlhMzI5ZmQ2MTQx"
    "MTZiMTg4Y2E1NjRiNDgwZmU0MGE5MDllYTIxMDkyMGE5MzAiLCJmb3JtYXQiOjEsImd1YXJhbnRlZSI6eyJlcHNpbG9uIjoiMS8xIiwibWF4X3"
    "Blcl9lbnRpdHkiOm51bGwsInBvbGljeSI6eyJkb21haW4iOnsiYXhlcyI6W3siY2VsbHMiOjUsImhpZ2giOjEuMCwia2luZCI6ImludGVydmFs"
    "IiwibG93IjowLjAsIm5hbWUiOiJ4In1dfSwibmFtZSI6InRocmVzaG9sZCIsInRoZXRhIjoxfSwicHJpdmF0ZSI6ZmFsc2UsInNsYWNrIjoiMS"
    "8xMjY3NjUwNjAwMjI4MjI5NDAxNDk2NzAzMjA1Mzc2IiwidW5pdCI6InJlY29yZCIsIndpbmRvdyI6bnVsbH0sImlkIjoiYzg2NzIxMWFmZDgz"
    "YjNjMDE0YTI5NWNjNGM1YjllYzIiLCJtZWNoYW5pc20iOnsiZXBzaWxvbiI6IjEiLCJuYW1lIjoiY29uc2lzdGVudCIsIm9wdGlvbnMiOnt9fS"
    "wic29mdHdhcmUiOiJzZnVtYXRvIDAuMS4wIiwid29ya2xvYWQiOiJzaW5nbGUgY2VsbHMifQAYIHBhcnF1ZXQtY3BwLWFycm93IHZlcnNpb24g"
    "MjYuMC4xGRwcAAAA4wIAAFBBUjE="
)


def test_consistent_releases_from_before_load_and_are_not_refined(vault, tmp_path):
    """Their noise was never kept; the same seed gives the same counts today."""
    file = tmp_path / "before.sfumato"
    file.write_bytes(b64decode("".join(BEFORE)))
    release = sf.load(file)
    assert release.mechanism.name == "consistent"
    assert release.counts.tolist() == [0, 3, 0, 1, 2]
    assert release.measured is None
    plan = sf.plan(release.guarantee.policy, sf.histogram(), epsilon=1, mechanism="consistent")
    assert np.array_equal(plan.publish(np.array([0, 4, 0, 0, 2]), source=sf.SeededSource(3)).counts, release.counts)
    told = refused(lambda: release.refine(epsilon=2, vault=vault))
    assert told.startswith("this release was made without a vault, and its noise is forgotten.")


def test_seeded_releases_have_no_place_in_a_vault(vault):
    plan = sf.plan(CASES["edges"][0], sf.ranges(), 1, mechanism="edges")
    told = refused(lambda: plan.publish(np.zeros((6, 5), dtype=int), vault=vault, source=sf.SeededSource(1)))
    assert told.startswith("A release made with seeded randomness is not private and has no place in a vault.")


def test_a_charged_release_is_refined_with_its_ledger_alone(vault, ledger, tmp_path):
    first, _ = published("edges", vault, ledger)
    assert refused(lambda: first.refine(epsilon=2, vault=vault)).endswith(
        "Nothing was drawn or recorded. Give ledger=…, the one it was published with."
    )
    other = sf.Ledger.create(tmp_path / "other.db", epsilon=10)
    assert "was not charged to account 'default'" in refused(lambda: first.refine(epsilon=2, vault=vault, ledger=other))


def test_an_older_vault_is_noticed(vault, ledger, tmp_path):
    """A backup of the state from before a refinement: refining it again would be a second noise."""
    first, _ = published("edges", vault, ledger)
    shutil.copytree(tmp_path / "secrets", tmp_path / "backup")
    first.refine(epsilon=2, vault=vault, ledger=ledger)
    older = sf.Vault(tmp_path / "backup", key=tmp_path / "vault.key")
    told = refused(lambda: first.refine(epsilon=3, vault=older, ledger=ledger), ledger)
    assert "this is an older copy, and refining it again would undo its noise" in told


def test_an_edited_release_is_not_refined(vault, ledger):
    """Under another strategy of the same rates and sizes the noise would no longer fit the counts, and leak them."""
    policy = sf.threshold(sf.Grid(bounds=(0, 0, 1, 1), shape=(4, 4)), 1)
    plan = sf.plan(policy, sf.ranges(), 1, mechanism="edge-hierarchy", blocks=[2, 1], weights=[1, 2])
    release = plan.publish(np.full((4, 4), 3), vault=vault, ledger=ledger)
    other = build("edge-hierarchy", policy, Fraction(1), blocks=[2, 1], weights=[[1, 2], [2, 1]])
    for forged in (
        replace(release, mechanism=other),
        replace(release, guarantee=replace(release.guarantee, policy=sf.threshold(policy.domain, 2))),
        replace(release, guarantee=replace(release.guarantee, unit="person", max_per_entity=1)),
    ):
        told = refused(lambda forged=forged: forged.refine(epsilon=2, vault=vault, ledger=ledger), ledger)
        assert told == (
            f"release '{release.id}' is not what the vault knows under this name: it was edited. Nothing was drawn or "
            "recorded. Load the file that was saved when it was published."
        )
    lowered = replace(release, guarantee=replace(release.guarantee, epsilon=Fraction(1, 2)))
    assert lowered.refine(epsilon=2, vault=vault, ledger=ledger).guarantee.epsilon == 2
    assert ledger.spent == 2  # what is charged follows what was charged, not what a file says


def test_a_copy_of_the_vault_hands_out_no_second_noise(vault, ledger, tmp_path, monkeypatch):
    """Both copies stage level 1; one of them is charged and hands it out. The other must not hand out its own."""
    first, _ = published("edges", vault, ledger)
    shutil.copytree(tmp_path / "secrets", tmp_path / "copy")
    copy = sf.Vault(tmp_path / "copy", key=tmp_path / "vault.key")
    with monkeypatch.context() as patched:
        patched.setattr(sf.Ledger, "raise_level", lambda *_, **__: (_ for _ in ()).throw(Killed()))
        with pytest.raises(Killed):
            first.refine(epsilon=2, vault=copy, ledger=ledger)
    made = first.refine(epsilon=2, vault=vault, ledger=ledger)
    told = refused(lambda: first.refine(epsilon=2, vault=copy, ledger=ledger), ledger)
    assert told == (
        f"level 1 of release '{first.id}' was charged for another copy of this vault, and made there: handing out what "
        "is staged here would be a second noise. Nothing was handed out. Put the newest copy of the vault back."
    )
    assert np.array_equal(first.refine(epsilon=2, vault=vault, ledger=ledger).measured, made.measured)


def test_a_ledger_that_disagrees_with_the_vault_is_refused(vault, ledger, tmp_path):
    """A charge by hand under the same id in another ledger does not pay for a level."""
    first, _ = published("edges", vault, ledger)
    other = sf.Ledger.create(tmp_path / "other.db", epsilon=10)
    other.charge("1.99", first.guarantee.policy, label="by hand", release_id=first.id)
    told = refused(lambda: first.refine(epsilon=2, vault=vault, ledger=other), other)
    assert "was not paid for by account 'default'" in told


def test_what_is_staged_has_a_size_that_says_nothing(vault, ledger, tmp_path, monkeypatch):
    sizes = set()
    for counts in (np.zeros((6, 5), dtype=int), np.full((6, 5), 70_000), np.eye(6, 5, dtype=int) * 10**9):
        release = sf.plan(CASES["edges"][0], sf.ranges(), 1, mechanism="edges").publish(counts, vault=vault)
        with monkeypatch.context() as patched:
            patched.setattr(sf.Vault, "promote", lambda *_: (_ for _ in ()).throw(Killed()))
            with pytest.raises(Killed):
                release.refine(epsilon=2, vault=vault)
        sizes.add((tmp_path / "secrets" / f"{release.id}.staged").stat().st_size)
    assert len(sizes) == 1


# --- interruptions ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("step", ["quote_level", "stage", "raise_level", "promote", "put_outbox"])
@pytest.mark.parametrize("when", ["before", "after"])
def test_killed_anywhere_a_repeat_gives_one_noise_for_one_charge(step, when, vault, ledger, monkeypatch):
    """Whatever step is interrupted, the repeat hands out one release, which costs the difference once; and where the
    charge had been made, it is the release that was drawn before it.
    """
    first, _ = published("edges", vault, ledger)
    owner = sf.Ledger if step in ("quote_level", "raise_level") else sf.Vault
    real = getattr(owner, step)

    def interrupted(self, *given, **named):
        if when == "after":
            real(self, *given, **named)
        raise Killed

    with monkeypatch.context() as patched:
        patched.setattr(owner, step, interrupted)
        with pytest.raises(Killed):
            first.refine(epsilon=2, vault=vault, ledger=ledger)
    charged = ledger.spent == 2
    staged = vault.staged(first.id)
    finer = first.refine(epsilon=2, vault=vault, ledger=ledger)
    assert ledger.spent == 2
    if charged and staged is not None:
        assert np.array_equal(finer.measured, staged[0].measured)
    assert np.array_equal(first.refine(epsilon=2, vault=vault, ledger=ledger).measured, finer.measured)
    assert first.refine(epsilon=3, vault=vault, ledger=ledger).guarantee.epsilon == 3


def test_a_level_that_was_charged_and_not_handed_out_comes_first(vault, ledger, monkeypatch):
    """Charged at 2, killed, then asked for 3: level 2 is settled as it was drawn, and 3 refines it."""
    first, _ = published("edges", vault, ledger)
    with monkeypatch.context() as patched:
        patched.setattr(sf.Vault, "promote", lambda *_: (_ for _ in ()).throw(Killed()))
        with pytest.raises(Killed):
            first.refine(epsilon=2, vault=vault, ledger=ledger)
    drawn = vault.staged(first.id)[0].measured
    first.refine(epsilon=3, vault=vault, ledger=ledger)
    assert ledger.spent == 3
    assert np.array_equal(first.refine(epsilon=2, vault=vault, ledger=ledger).measured, drawn)
