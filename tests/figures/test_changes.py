"""Changes and sums of answers: intervals over all the noise in them, exactly where few noises are, and refusals."""

from __future__ import annotations

import copy
import pickle
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from coverage_oracle import Law
from released import GRID, LINE, MEANS, known

import sfumato as sf
from sfumato.figures.changes import NOBODY, UNBOUNDED
from sfumato.noise import DiscreteLaplace

HALF = DiscreteLaplace(Fraction(1, 2))


def published(policy: sf.Policy, counts: Any, *, epsilon: Any = 1, seed: int = 1, **options: Any) -> sf.Release:
    plan = sf.plan(policy, sf.histogram(), epsilon=epsilon, **options)
    return plan.publish(np.asarray(counts), source=sf.SeededSource(seed))


def pair(new: Any = None, old: Any = None) -> tuple[sf.Release, sf.Release]:
    """Two releases on a line, of different ε and relations."""
    new = np.arange(8) * 50 if new is None else new
    old = np.full(8, 120) if old is None else old
    return (
        published(sf.unbounded(LINE), new, mechanism="identity"),
        published(sf.bounded(LINE), old, epsilon="1/2", seed=2, mechanism="identity"),
    )


def test_a_difference_answers_like_a_release() -> None:
    new, old = pair()
    change = sf.difference(new, old)
    by_name = change.answer(by="x")
    assert isinstance(by_name, sf.Table)
    np.testing.assert_allclose(by_name.value, new.counts - old.counts)
    np.testing.assert_allclose(by_name.stderr, np.hypot(new.cells().stderr, old.cells().stderr))
    np.testing.assert_allclose(change.cells().low, by_name.low)
    np.testing.assert_allclose(change.marginal("x").high, by_name.high)
    assert change.answer((0, 4)).value == pytest.approx(new.answer((0, 4)).value - old.answer((0, 4)).value)
    assert change.answer([(0, 4), (2, 3)]).value.shape == (2,)
    assert by_name.to_frame().column_names == ["x_low", "x_high", "value", "stderr", "low", "high"]
    assert "add/remove" in change.statement and "replace-one" in change.statement
    assert repr(change).startswith("Difference(new=Release(")


def test_a_difference_has_the_law_of_both_noises() -> None:
    """Exactly, by the law of one noise of scale 1 less one of scale 2; and a tenth less would not hold."""
    new = published(sf.unbounded(LINE), np.zeros(8, int), mechanism="identity")
    old = published(sf.unbounded(LINE), np.zeros(8, int), epsilon="1/2", seed=5, mechanism="identity")
    found = sf.difference(new, old).answer((0, 1))
    law = Law([(np.ones(1), DiscreteLaplace(Fraction(1))), (np.ones(1), HALF)])
    margin = (found.high - found.low) / 2
    assert law.holds(margin) >= 0.95 > law.holds(margin - 1)
    total = sf.difference(new, old).answer()
    wide = Law([(np.ones(8), DiscreteLaplace(Fraction(1))), (np.ones(8), HALF)])
    margin = (total.high - total.low) / 2
    assert wide.holds(margin) >= 0.95 > wide.holds(0.9 * margin)


def test_cut_ranges_are_bracketed_from_the_other_side_where_they_are_taken_off() -> None:
    new, old = pair()
    found = sf.difference(new, old).answer((0.5, 4.5))
    wide = [np.arange(8) * 50, np.full(8, 120)]
    least = wide[0][1:4].sum() - wide[1][0:5].sum()
    most = wide[0][0:5].sum() - wide[1][1:4].sum()
    assert found.low <= least and most <= found.high
    assert found.cut_share > 0
    noise = sf.difference(new, old).answer((0.5, 4.5), cut="proportion")
    assert noise.high - noise.low < (found.high - found.low) / 5


def test_different_domains_are_compared_on_what_both_can_answer() -> None:
    fine = published(sf.unbounded(sf.Line(0, 8, cells=32)), np.full(32, 10), mechanism="hats")
    coarse = published(sf.unbounded(sf.Line(0, 8, cells=4)), np.full(4, 100), seed=3, mechanism="identity")
    change = sf.difference(coarse, fine)
    assert change.answer((0, 4), confidence=0.9999).low <= 40 <= change.answer((0, 4), confidence=0.9999).high
    with pytest.raises(sf.InvalidInput, match="the new release answers 4 groups and the old one 32"):
        change.answer(by="x")
    with pytest.raises(sf.InvalidInput, match="different domains, and their cells are not the same"):
        change.cells()
    with pytest.raises(sf.InvalidInput, match="'mode' is no factor and no axis of this release"):
        change.answer(by="mode")


@pytest.mark.parametrize(("new", "old"), [(3, 2), (0, 5), (40, 7), (200, 90)])
def test_changes_in_per_cent_hold_as_often_as_they_say(new: int, old: int) -> None:
    """Exactly, by all pairs of draws of two noises of scale 1 within ±9: one in 7,500 lies beyond."""
    noise, draws = DiscreteLaplace(Fraction(1)), np.arange(-9, 10)
    pairs = np.stack(np.meshgrid(draws, draws, indexing="ij"), axis=-1).reshape(-1, 2)
    chance = noise.pmf(pairs[:, 0]) * noise.pmf(pairs[:, 1])
    cells = sf.Line(0, len(pairs), cells=len(pairs))
    one, other = known(cells, new + pairs[:, 0]), known(cells, old + pairs[:, 1])
    object.__setattr__(other, "id", "another")
    found = sf.percent_change(one, other).cells()
    truth = 100 * (new / old - 1)
    assert chance[(found.low <= truth) & (truth <= found.high)].sum() >= 0.95 - 1.4e-4
    assert (found.low >= -100).all() and not np.isnan(found.high).any()


def test_an_old_figure_that_may_be_zero_leaves_the_change_open() -> None:
    new, old = pair([500] * 8, [0, 300] * 4)
    found = sf.percent_change(new, old).answer(by="x", confidence=0.999)
    assert set(found.note[1::2]) == {""}
    assert UNBOUNDED in found.note[::2].tolist()
    assert np.isinf(found.high[::2]).any() and np.isfinite(found.high[1::2]).all()
    assert found.by == ("x",) and found.to_frame().column_names[-1] == "note"
    assert "Change in per cent by x" in repr(found)


def test_nothing_that_is_public_is_no_base_for_per_cent() -> None:
    kind = sf.Categories(["a", "b"], name="kind")
    policy = sf.policy(LINE * kind, hide=sf.change("kind"), public=["x"])
    old = published(policy, [[0, 0], *([[50, 50]] * 7)])
    new = published(policy, [[80, 40]] * 8, seed=4)
    found = sf.percent_change(new, old).answer(by="x")
    assert found.note[0] == NOBODY and np.isnan(found.value[0]) and found.high[0] == np.inf
    assert found.value[1:].tolist() == found.low[1:].tolist() == found.high[1:].tolist()
    assert found.value[1:] == pytest.approx(20)


def test_changes_over_time_inside_of_one_release() -> None:
    when = sf.Times("2025-01-01", "2027-01-01", every="1 day", name="t")
    release = published(sf.unbounded(when), np.full(730, 100))
    old, new = (release.answer(t=(f"{year}-01-01", f"{year + 1}-01-01")) for year in (2025, 2026))
    less = sf.difference(new, old)
    assert isinstance(less, sf.Answer)
    assert less.value == pytest.approx(new.value - old.value) and less.low < 0 < less.high
    found = sf.percent_change(new, old)
    assert found.low < 0 < found.high and "add/remove" in found.statement
    with pytest.raises(sf.InvalidInput, match="one of these was computed from answers"):
        sf.percent_change(new + old, old)
    with pytest.raises(sf.InvalidInput, match=r"confidence=0\.95 and confidence=0\.9 do not go together"):
        sf.percent_change(new, release.answer(t=("2025-01-01", "2026-01-01"), confidence=0.9))


def test_tables_of_answers_are_compared_group_by_group() -> None:
    one, other = (sf.Categories(names, name="mode") for names in (["bus", "bike"], ["bike", "bus"]))
    new, old = published(sf.unbounded(one), [50, 90]), published(sf.unbounded(other), [80, 40], seed=2)
    with pytest.raises(sf.InvalidInput, match="these tables have other groups, or the same in another order"):
        sf.percent_change(new.answer(by="mode"), old.answer(by="mode"))
    found = sf.percent_change(new.answer(by="mode"), new.answer(by="mode"))
    assert found.by == ("mode",) and found.value.tolist() == [0, 0]


def test_answers_of_one_release_share_their_noise() -> None:
    release = published(sf.unbounded(LINE), np.arange(8) * 20, mechanism="identity")
    one, other = release.answer((0, 4)), release.answer((2, 6))
    both = one + other
    assert both.value == one.value + other.value
    assert both.stderr == pytest.approx(release.cells().stderr[0] * np.sqrt(2 + 2 + 4 * 2))
    assert (one - other).stderr == pytest.approx(release.cells().stderr[0] * 2)
    assert (one - one).stderr == 0 == (one - one).high
    hours = release.answer(by="x")
    np.testing.assert_allclose((hours - hours).high, 0)
    np.testing.assert_allclose((release.query(np.eye(8)) - release.cells()).high, 0, atol=1e-9)
    assert sum([one, other]).value == both.value  # type: ignore[attr-defined]


def test_answers_scale_and_move_by_numbers() -> None:
    release = published(sf.unbounded(LINE), np.arange(8) * 20)
    one = release.answer((0, 4))
    for found, factor, moved in [
        (2 * one, 2, 0),
        (one / 4, 0.25, 0),
        (-one, -1, 0),
        (np.float64(3) * one, 3, 0),
        (one + 7, 1, 7),
        (5 - one, -1, 5),
        (Fraction(1, 2).numerator * one - 3, 1, -3),
    ]:
        ends = sorted([factor * one.low + moved, factor * one.high + moved])
        assert [found.low, found.high] == pytest.approx(ends)
        assert found.value == pytest.approx(factor * one.value + moved)
        assert found.stderr == pytest.approx(abs(factor) * one.stderr)


def test_mechanisms_without_a_law_are_bracketed_by_themselves() -> None:
    policy = sf.within(GRID, delta=0.25)
    counts = np.random.default_rng(3).poisson(50, GRID.shape)
    old = published(policy, counts, mechanism="adaptive-grid")
    new = published(policy, 2 * counts, seed=2, mechanism="adaptive-grid")
    box = (-1.0, 40.5, 0.0, 41.0)
    found = sf.difference(new, old).answer(box)
    assert found.low <= counts[:3].sum() <= found.high and np.isnan(found.stderr)
    change = sf.percent_change(new, old).answer(box)
    assert change.low <= 100 <= change.high
    with pytest.raises(sf.InvalidInput, match="gives no interval for what is asked"):
        sf.difference(new, old).answer(box, cut="proportion")


def test_levels_of_one_release_are_refused(tmp_path: Path) -> None:
    vault, ledger = (
        sf.Vault(tmp_path / "vault", key=tmp_path / "key"),
        sf.Ledger.create(tmp_path / "budget.db", epsilon=9),
    )
    plan = sf.plan(sf.unbounded(LINE), sf.histogram(), epsilon=1)
    coarse = plan.publish(np.arange(8) * 20, vault=vault, ledger=ledger)
    finer = coarse.refine(2, vault=vault, ledger=ledger)
    for doing in (
        lambda: sf.difference(finer, coarse),
        lambda: sf.percent_change(finer, coarse),
        lambda: finer.answer() - coarse.answer(),
        lambda: finer.rate(case={"x": (0, 4)}, over=coarse),
    ):
        with pytest.raises(sf.InvalidInput, match=r"two levels of one release.*finest level alone \(epsilon=2\)"):
            doing()
    with pytest.raises(sf.InvalidInput, match="new and old are one release"):
        sf.difference(coarse, sf.load(coarse.save(tmp_path / "copy.sfumato")))


def test_an_answer_that_does_not_know_its_law_is_refused() -> None:
    release = published(sf.unbounded(LINE), np.arange(8) * 20)
    one = release.answer((0, 4))
    for lost in (
        pickle.loads(pickle.dumps(one)),
        copy.deepcopy(one),
        sf.Answer(3.0, 1.0, 1.0, 5.0, 0.95),
        release.answer((0, 4), estimate="nonnegative"),
    ):
        for doing in (lambda lost=lost: one + lost, lambda lost=lost: lost * 2, lambda lost=lost: 1 - lost):
            with pytest.raises(sf.InvalidInput, match="does not know the law of its noise"):
                doing()


def test_what_does_not_go_together_is_refused() -> None:
    release = published(sf.unbounded(LINE), np.arange(8) * 20)
    labels = published(sf.unbounded(MEANS), [5, 6, 7])
    one = release.answer((0, 4))
    for doing, message in [
        (lambda: one + release.answer([(0, 4), (1, 2)]), r"answers of the shapes \(\) and \(2,\)"),
        (lambda: one + release.answer((0, 4), confidence=0.9), "confidence=0.95 and confidence=0.9 do not go together"),
        (lambda: one + release.answer((0, 4.5), cut="snap"), "cut='bracket' and cut='snap' do not go together"),
        (lambda: release.answer(by="x", where={"x": (0, 3)}) + labels.answer(by=MEANS.names[0]), "other groups"),
        (lambda: one * one, "by numbers alone"),
        (lambda: one / one, "Use release.rate"),
        (lambda: one / 0, "cannot be divided by 0"),
        (lambda: one * float("nan"), "the number=nan is not a finite number"),
        (lambda: sf.difference(release, one), "old=Answer is no release"),
        (lambda: sf.percent_change(3, release), "new=int is no release"),
        (lambda: sf.difference(release, labels).marginal(), "marginal.. needs names"),
    ]:
        with pytest.raises(sf.InvalidInput, match=message):
            doing()
    with pytest.raises(TypeError):
        one + "three"  # type: ignore[operator]
