"""What clocks show is read off one table, which says what the zone itself says."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from zoneinfo import ZoneInfo

import numpy as np
import pytest

from sfumato.domain.moments import EPOCH, microseconds, moment
from sfumato.domain.zones import Zone, zone
from sfumato.errors import InvalidInput

ZONES = [
    "America/New_York",
    "Australia/Lord_Howe",  # clocks change by half an hour
    "America/Sao_Paulo",  # they were changed at midnight
    "America/St_Johns",  # … at one minute past midnight
    "Pacific/Apia",  # the 30th of December 2011 was left out
    "Africa/Casablanca",
    "Asia/Kathmandu",
    "Europe/Dublin",
    "UTC",
]


@pytest.mark.parametrize("key", ZONES)
def test_the_table_agrees_with_the_zone(key: str) -> None:
    table, real = zone(key), ZoneInfo(key)
    rng = np.random.default_rng(1)
    span = [microseconds(datetime(year, 1, 1)) for year in (1900, 2101)]
    near = (table.changes[:, None] + np.array([-1, 0, 1, -1_000_000, 1_000_000])).ravel()
    instants = np.concatenate([near, rng.integers(*span, 2000)])
    wanted = [microseconds(moment(int(t)).replace(tzinfo=UTC).astimezone(real).replace(tzinfo=None)) for t in instants]
    assert table.local(instants).tolist() == wanted


@pytest.mark.parametrize("key", ZONES)
def test_a_reading_of_the_clock_is_the_first_instant_that_shows_it(key: str) -> None:
    """Every minute of the three days around some changes, against the instants tried one after the other."""
    table = zone(key)
    minute = 60_000_000
    whole = table.changes[np.all(np.stack([table.offsets[1:], table.offsets[:-1]]) % minute == 0, axis=0)]
    for change in whole[-6:]:
        around = change + np.arange(-1500, 1500) * minute
        shown = table.local(around)
        readings = change + table.offsets.mean().astype(np.int64) // minute * minute + np.arange(-700, 700) * minute
        found = table.instants(readings)
        for reading, instant in zip(readings.tolist(), found.tolist(), strict=True):
            at = np.flatnonzero(shown == reading)
            # What is skipped is the instant of the change: the first that shows a later time for good.
            wanted = around[at[0]] if len(at) else around[np.flatnonzero(shown < reading)[-1] + 1]
            assert instant == wanted


def test_beyond_the_table_clocks_keep_what_they_show() -> None:
    new_york = zone("America/New_York")
    for year in (1600, 1850):
        at = microseconds(datetime(year, 7, 1))
        assert int(new_york.local(np.array([at]))[0]) - at == new_york.offsets[0]
    at = microseconds(datetime(2500, 7, 1))
    assert int(new_york.local(np.array([at]))[0]) - at == new_york.offsets[-1]


def test_zones_are_named_in_several_ways() -> None:
    assert zone(ZoneInfo("America/New_York")).key == "America/New_York"
    assert zone(UTC).key == zone("+00:00").key == zone("UTC").key == "UTC"
    assert zone(timezone(timedelta(hours=-3, minutes=-30))).key == "-03:30"
    assert int(zone("-03:30").offsets[0]) == -12_600_000_000
    assert isinstance(zone("+05:45"), Zone)
    assert datetime(1970, 1, 1) == EPOCH


@pytest.mark.parametrize(
    "given",
    [
        *("Mars/Olympus", "", "../etc/passwd", "/etc/localtime", "localtime", "+25:00", "+1", "A" * 10_000),
        *(5, timezone(timedelta(seconds=1))),
    ],
    ids=lambda given: str(given)[:20],
)
def test_unknown_zones_are_refused(given: object) -> None:
    with pytest.raises(InvalidInput, match=r"tz=.* is not a time zone that this machine knows\. Give a name such as"):
        zone(given)
