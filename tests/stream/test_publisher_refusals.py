"""Streams: what is refused, in whole sentences, with nothing drawn or recorded."""

from __future__ import annotations

from fractions import Fraction

import pytest
from publisher_case import COUNTS, LINE, POLICY, budgets, ledger, stream

import sfumato as sf
from sfumato.errors import BudgetExceeded, FileFormatError, InvalidInput
from sfumato.stream import choices
from sfumato.stream.publisher import Stream


def test_past_steps_are_refused(tmp_path):
    series = stream(tmp_path)
    series.publish(3, COUNTS)
    for refused_call in (lambda: series.publish(2, COUNTS), lambda: series.skip(2)):
        with pytest.raises(InvalidInput) as refused:
            refused_call()
        assert "time=2" in str(refused.value)
        assert "Nothing was drawn or recorded." in str(refused.value)
    assert len(series.history()) == 1


def test_a_published_step_cannot_be_skipped_and_a_skipped_one_stays_skipped(tmp_path):
    series = stream(tmp_path)
    series.publish(0, COUNTS)
    with pytest.raises(InvalidInput) as refused:
        series.skip(0)
    assert str(refused.value) == (
        "time=0 of stream 'visits' was published and cannot be skipped any more. Nothing was recorded. Skip a later "
        "one."
    )
    series.skip(1)
    series.skip(1)
    assert series.publish(1, COUNTS) is None
    assert series.release(1) is None
    assert series.release(7) is None
    assert len(series.history()) == 2


def test_counts_chosen_by_seeded_randomness_are_refused(tmp_path):
    series = stream(tmp_path)
    with pytest.raises(InvalidInput) as refused:
        series.publish(0, sf.Counts(COUNTS, LINE, max_per_entity=1, private=False))
    assert str(refused.value).startswith("A release made with seeded randomness is not private")
    assert series.history() == ()


def test_wrong_counts_are_refused_before_anything_is_charged(tmp_path):
    series = stream(tmp_path)
    for wrong in (COUNTS[:3], COUNTS * 0.5, -COUNTS, None):
        with pytest.raises(InvalidInput):
            series.publish(0, wrong)
    assert series.history() == ()


@pytest.mark.parametrize(
    ("weight", "message"),
    [
        (-1, "weight=-1 must be at least 0. Nothing was drawn or recorded. Use 0 to skip the step."),
        (float("nan"), "weight=nan is not a finite number."),
        ("2", "weight='2' is not a finite number."),
    ],
)
def test_wrong_weights_are_refused(tmp_path, weight, message):
    with pytest.raises(InvalidInput) as refused:
        stream(tmp_path).publish(0, COUNTS, weight)
    assert str(refused.value) == message


@pytest.mark.parametrize(
    ("allocation", "given", "message"),
    [
        (
            "fair",
            {},
            "allocation='fair' is not one of 'even', 'sample', 'offline', 'online', 'top-up'. Nothing was drawn or "
            "recorded.",
        ),
        (
            "offline",
            {},
            "allocation='offline' needs weights=…. Nothing was drawn or recorded. Give weights=[1, 0, 1, …], one for "
            "every step, or use allocation='even'.",
        ),
        (
            "online",
            {"distribution": None},
            "allocation='online' needs distribution=…. Nothing was drawn or recorded. Give "
            "distribution=sf.Bernoulli(0.5), or use allocation='even'.",
        ),
        (
            "online",
            {"distribution": 0.5},
            "distribution=float is not a distribution of weights. Nothing was drawn or recorded. Use "
            "sf.Bernoulli(0.5), sf.Periodic(…), sf.Markov(…) or sf.Empirical(…).",
        ),
        (
            "even",
            {"weights": [1, 2]},
            "weights does not go with allocation='even', which would not look at it. Nothing was drawn or recorded. "
            "Leave weights out, or use another allocation.",
        ),
        (
            "top-up",
            {"vault": None},
            "allocation='top-up' needs a vault, where the noise is kept until a release is raised. Nothing was drawn "
            "or recorded. Give vault=sf.Vault(path, key=…), or use allocation='online'.",
        ),
        (
            "offline",
            {"weights": [0, 0]},
            "weights of shape (2,) must be one sequence in which some step weighs more than 0. Nothing was drawn or "
            "recorded. Give the weight of every step, 0 where nothing is published.",
        ),
        (
            "offline",
            {"weights": [1, -1]},
            "weights[1]=-1.0 must be finite and at least 0. Nothing was drawn or recorded. Use 0 for a step at which "
            "nothing is published.",
        ),
        ("even", {"epsilon": 0}, "epsilon=0 must be greater than zero. Nothing was drawn or recorded."),
        ("even", {"epsilon": float("nan")}, "epsilon=nan is not a finite number."),
        (
            "even",
            {"vault": "secrets"},
            "vault=str is not a vault. Nothing was drawn or recorded. Open one with sf.Vault(path, key=…).",
        ),
    ],
)
def test_what_makes_no_sense_is_refused_and_no_stream_is_opened(tmp_path, allocation, given, message):
    with pytest.raises(InvalidInput) as refused:
        stream(tmp_path, allocation, **given)
    assert str(refused.value) == message
    with pytest.raises(InvalidInput, match="epsilon"):  # it does not exist
        ledger(tmp_path).stream("visits")


def test_a_ledger_is_required():
    with pytest.raises(InvalidInput) as refused:
        Stream(POLICY, sf.histogram(), epsilon=1, window=3, ledger="budget.db", name="visits")
    assert str(refused.value) == (
        "ledger=str is not a ledger. Nothing was drawn or recorded. Open one with sf.Ledger(path)."
    )


def test_a_vault_needs_a_mechanism_that_can_be_refined(tmp_path):
    vault = sf.Vault(tmp_path / "secrets", key=tmp_path / "vault.key")
    with pytest.raises(InvalidInput) as refused:
        Stream(
            sf.bounded(LINE),
            sf.ranges(),
            epsilon=1,
            window=3,
            ledger=ledger(tmp_path),
            name="visits",
            vault=vault,
            mechanism="dawa",
        )
    assert str(refused.value) == (
        "mechanism='dawa' cannot be refined later, so a vault has nothing to keep. Nothing was drawn or recorded. "
        "Leave the vault out, or use another mechanism."
    )


def test_offline_refuses_steps_beyond_its_weights_and_other_weights(tmp_path):
    series = stream(tmp_path, "offline", weights=[1, 2])
    series.publish(0, COUNTS)
    with pytest.raises(InvalidInput) as refused:
        series.publish(1, COUNTS, weight=5)
    assert str(refused.value) == (
        "weight=5.0 differs from weights[1]=2.0, by which the budget was divided. Nothing was drawn or recorded. Leave "
        "weight out, or use allocation='online'."
    )
    with pytest.raises(InvalidInput) as refused:
        series.publish(2, COUNTS)
    assert str(refused.value) == (
        "time: this is step 3 of the stream, and weights has 2. Nothing was drawn or recorded. Open the stream again "
        "with a weight for every step to come."
    )
    assert series.publish(1, COUNTS, weight=0) is None


def test_other_streams_do_not_top_up(tmp_path):
    with pytest.raises(InvalidInput) as refused:
        stream(tmp_path).top_up()
    assert str(refused.value) == (
        "stream 'visits' does not raise past steps. Nothing was drawn or recorded. Open it with allocation='top-up' "
        "and a vault."
    )


def test_a_raised_step_needs_its_vault_again(tmp_path):
    series = stream(tmp_path, "top-up", outbox=tmp_path / "out")
    series.publish(0, COUNTS)
    series.top_up(ended=True)
    (tmp_path / "out" / "0.level-1.sfumato").unlink()
    with pytest.raises(InvalidInput) as refused:
        stream(tmp_path, outbox=tmp_path / "out").release(0)
    assert str(refused.value) == (
        "time=0 of stream 'visits' was raised with a vault. Nothing was drawn or recorded. Open the stream with its "
        "vault."
    )
    assert stream(tmp_path, "top-up", outbox=tmp_path / "out").release(0).guarantee.epsilon == 1


def test_a_file_of_another_release_in_the_outbox_is_refused(tmp_path):
    series = stream(tmp_path, outbox=tmp_path / "out")
    series.publish(0, COUNTS)
    series.publish(1, COUNTS)
    path = tmp_path / "out" / "0.sfumato"
    path.write_bytes((tmp_path / "out" / "1.sfumato").read_bytes())
    with pytest.raises(FileFormatError) as refused:
        series.publish(0, COUNTS)
    assert str(refused.value) == (
        f"'{path}' holds another release than the one that was charged for its step. Nothing was drawn or recorded. "
        "Put the right file back, or give another outbox."
    )


def test_the_promise_of_a_stream_cannot_be_changed_by_opening_it_again(tmp_path):
    stream(tmp_path)
    for other in ({"epsilon": 2}, {"window": 4}):
        with pytest.raises(InvalidInput):
            stream(tmp_path, **other)


def test_the_ledger_has_the_last_word(tmp_path, monkeypatch):
    """An allocation that gave too much would be refused by the ledger, and nothing drawn."""
    series = stream(tmp_path)
    monkeypatch.setattr(choices.Even, "commit", lambda *_: choices.Commitment(Fraction(3, 4)))
    series.publish(0, COUNTS)
    with pytest.raises(BudgetExceeded):
        series.publish(1, COUNTS)
    assert budgets(series) == {0: Fraction(3, 4)}


def test_a_file_that_is_in_the_way_is_refused_before_the_charge(tmp_path):
    """Two streams with one outbox would overwrite each other's releases."""
    series = stream(tmp_path, outbox=tmp_path / "out")
    series.publish(0, COUNTS)
    given = {"epsilon": 1, "window": 3, "ledger": ledger(tmp_path), "outbox": tmp_path / "out"}
    other = Stream(POLICY, sf.histogram(), name="rides", **given)
    with pytest.raises(InvalidInput) as refused:
        other.publish(0, COUNTS)
    assert str(refused.value) == (
        f"'{tmp_path / 'out' / '0.sfumato'}' exists and belongs to no step of this stream. Nothing was drawn or "
        "recorded. Give every stream an outbox of its own."
    )
    assert other.history() == ()


def test_an_outbox_that_cannot_be_written_is_refused_before_the_charge(tmp_path):
    (tmp_path / "out").write_text("not a folder")
    series = stream(tmp_path, outbox=tmp_path / "out")
    with pytest.raises(InvalidInput) as refused:
        series.publish(0, COUNTS)
    assert str(refused.value) == (
        f"outbox='{tmp_path / 'out'}' cannot be used: File exists. Nothing was drawn or recorded. Give a folder that "
        "you can write to."
    )
    assert series.history() == ()
