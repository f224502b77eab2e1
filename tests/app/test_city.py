"""The made-up city, whose truth the demonstration may show."""

from __future__ import annotations

import numpy as np

from sfumato.app.city import BOUNDS, as_table, make_city, one_visit_each
from sfumato.app.demo import PLACES, _truth


def test_every_person_is_left_with_one_of_their_own_visits() -> None:
    city = make_city(500, 3.0, 4)
    one = one_visit_each(city, 5)
    assert one.person.tolist() == list(range(500))
    visits = set(zip(city.person.tolist(), city.lon.tolist(), city.lat.tolist(), strict=True))
    assert set(zip(one.person.tolist(), one.lon.tolist(), one.lat.tolist(), strict=True)) <= visits
    assert not np.array_equal(one.lon, one_visit_each(city, 6).lon)  # by chance
    assert as_table(one).num_rows == 500


def test_the_truth_is_the_number_of_visits_in_the_rectangle_as_they_are_counted() -> None:
    city = make_city(2000, 1.0, 4)
    assert _truth(city, BOUNDS) == 2000  # also those beyond the bounds, which are counted at the border
    for place in PLACES.values():
        x0, y0, x1, y1 = place
        inner = (city.lon >= x0) & (city.lon < x1) & (city.lat >= y0) & (city.lat < y1)
        assert _truth(city, place) >= inner.sum()
        if x0 > BOUNDS[0]:
            assert _truth(city, place) == inner.sum()
