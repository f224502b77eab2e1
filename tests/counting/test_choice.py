"""One keyword an axis: a column is named by the axis that it feeds, and nothing is taken for what it may not mean."""

from __future__ import annotations

from typing import Any

import pandas as pd
import pytest

from sfumato.counting import count
from sfumato.domain import Domain, Grid, Line, Times
from sfumato.errors import InvalidInput

SPACE = Times("2026-01-01", "2026-01-03", every="1 day") * Grid((0, 0, 2, 2), (2, 2))
ODD = Line(0, 2, cells=2, name="entity") * Line(0, 2, cells=2, name="hour of day")
FRAME = pd.DataFrame(
    {"pickup": pd.to_datetime(["2026-01-02"]), "lon": [0.5], "lat": [1.5], "x": [9.0], "who": [1], "hour of day": [1.5]}
)


def test_a_keyword_is_the_name_of_an_axis() -> None:
    """The first axis is t: x= means the axis x."""
    assert count(FRAME, SPACE, t="pickup", x="lon", y="lat").values[1].tolist() == [[0, 1], [0, 0]]
    counts = count(FRAME, ODD, columns={"entity": "lon"}, entity="who", max_per_entity=1)
    assert counts.values.tolist() == [[0, 1], [0, 0]]
    assert count(FRAME, ODD, columns={"entity": "lon"}, **{"hour of day": "lat"}).values.tolist() == [[0, 1], [0, 0]]


@pytest.mark.parametrize(
    ("domain", "options", "message"),
    [
        (
            SPACE,
            {"tt": "pickup"},
            "tt= is no keyword of sf.count and no axis of the domain, whose axes are 't', 'x', 'y'. Did you mean 't'? "
            "Nothing was counted.",
        ),
        (
            SPACE,
            {"max_per_entities": 1},
            "max_per_entities= is no keyword of sf.count and no axis of the domain, whose axes are 't', 'x', 'y'. Did "
            "you mean 'max_per_entity'? Nothing was counted.",
        ),
        (
            SPACE,
            {"z": "lat"},
            "z='lat' names the column of no axis: the axes are 't', 'x', 'y'. Nothing was counted. Name axis "
            "'y' by y=.",
        ),
        (SPACE, {"x": "lon", "columns": {"x": "lat"}}, "The column of axis 'x' is given twice. Name it once."),
        (
            SPACE,
            {"columns": {"plac": "lat"}},
            "columns={'plac': 'lat'} names the axis 'plac'; the axes are 't', 'x', 'y'.",
        ),
        (
            ODD,
            {"entity": "lon"},
            "entity= is a keyword of sf.count and the name of an axis, so that it could mean either. Nothing was "
            "counted. Say with columns={'entity': …} which column feeds the axis; entity= then is the keyword.",
        ),
    ],
    ids=str,
)  # fmt: skip
def test_keywords_that_mean_nothing_or_two_things_are_refused(
    domain: Domain, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(InvalidInput) as refusal:
        count(FRAME, domain, **options)
    assert str(refusal.value) == message
