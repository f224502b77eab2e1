"""Streams: what they raise of the past, and what their pictures show."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from publisher_case import COUNTS, budgets, ledger, stream

import sfumato as sf
from sfumato.allocation import Bernoulli, TopUpAllocator
from sfumato.errors import InvalidInput
from sfumato.stream import choices
from sfumato.stream.past import Past
from sfumato.stream.publisher import Stream


def test_steps_of_another_allocation_are_not_raised(tmp_path):
    vault = sf.Vault(tmp_path / "secrets", key=tmp_path / "vault.key")
    stream(tmp_path, vault=vault).publish(0, COUNTS)
    series = stream(tmp_path, "top-up", vault=vault)
    for time in range(1, 12):
        series.publish(time, COUNTS, weight=0)
    assert budgets(series)[0] == Fraction(1, 3)


def test_the_top_up_allocator_needs_no_more_of_the_past_than_it_is_given():
    """What the reach leaves out changes nothing: the raises are those on the whole history."""
    allocation = choices.TopUp(3, Fraction(1), Bernoulli(0.5))
    allocator: TopUpAllocator = allocation.allocator
    rng = np.random.default_rng(5)
    weights = (rng.random(40) < 0.6).astype(float).tolist()
    floor = allocator.online.run(weights).tolist()
    history: list[float] = []
    for i in range(1, len(weights) + 1):
        history.append(allocator.step(history, weights[:i], floor=floor[:i]))
        whole = allocator.raises(history, weights[:i], floor=floor[:i])
        kept = max(i - allocation.reach, 0)
        past = Past(
            step=i,
            budgets=tuple(map(Fraction, history[kept:])),
            weights=tuple(weights[kept:i]),
            floors=tuple(floor[kept:i]),
        )
        raised = [Fraction(b) for b in history]
        for place, value in allocation.raises(past, ended=False):
            raised[kept + place] = value
        assert [float(value) for value in raised] == pytest.approx(whole.tolist(), rel=2e-3)
        history = whole.tolist()


def test_a_stream_draws_its_series_and_its_budget(tmp_path):
    series = stream(tmp_path)
    for time in range(5):
        series.publish(time, COUNTS)
    path = tmp_path / "visits.png"
    figure = series.plot(path, where=(0, 3), title="Visits")
    assert path.read_bytes().startswith(b"\x89PNG")
    above, below = figure.axes
    assert above.get_title("left") == "Visits"
    (line,) = [line for line in below.lines if line.get_label() == "in its window"]
    assert line.get_ydata() == pytest.approx([1 / 3, 2 / 3, 1, 1, 1])
    many = tmp_path / "many"
    many.mkdir()
    series = stream(many, window=1)
    for time in range(90):
        series.publish(time, COUNTS)
    assert series.plot().axes[0].get_ylabel() == "records"


def test_pictures_that_cannot_be_drawn_are_refused(tmp_path):
    series = stream(tmp_path)
    with pytest.raises(InvalidInput) as refused:
        series.plot(tmp_path / "visits.png")
    assert str(refused.value) == (
        "stream 'visits' has no release to draw. Nothing was written. Publish a step first, or give the outbox that "
        "its releases are in."
    )
    with pytest.raises(InvalidInput) as refused:
        series.plot("visits.bmp")
    assert str(refused.value) == "path='visits.bmp' must end in .png, .svg, .pdf. Nothing was written."


def test_a_stream_of_categories_draws_a_label(tmp_path):
    where = sf.Categories(["bus", "tram"])
    series = Stream(sf.bounded(where), sf.histogram(), epsilon=1, window=2, ledger=ledger(tmp_path), name="rides")
    series.publish(0, np.array([4, 5]))
    assert series.plot(where="tram").axes[0].get_ylabel() == "records in tram"
    assert series.plot().axes[0].get_ylabel() == "records in bus"


def test_a_range_outside_the_map_is_refused_and_nothing_is_drawn(tmp_path):
    series = stream(tmp_path)
    series.publish(0, COUNTS)
    high = series.release(0).domain.bounds[-1]
    with pytest.raises(InvalidInput, match="lies outside the bounds"):
        series.plot(tmp_path / "series.png", where=(high, high + 1))
    assert not (tmp_path / "series.png").exists()


def test_totals_that_are_exact_have_no_interval(tmp_path):
    """Under moves the number of records is public; of a part of the line it is not."""
    series = stream(tmp_path)
    for time in range(4):
        series.publish(time, COUNTS)
    whole, part = (series.plot(where=where).axes[0] for where in ((0, 6), (0, 1)))
    assert [text.get_text() for text in whole.get_legend().get_texts()] == ["exact: the policy makes it public"]
    assert not whole.collections and whole.lines[0].get_ydata().tolist() == [20] * 4
    assert [text.get_text() for text in part.get_legend().get_texts()] == ["95 % interval", "estimate"]
    assert len(part.collections) == 1
