"""The demonstration: one synthetic city from records to a published map, with the truth beside it."""

from __future__ import annotations

import secrets
import time
from pathlib import Path
from textwrap import indent

import numpy as np

import sfumato as sf
from sfumato.app.city import BOUNDS, City, as_table, make_city, one_visit_each, write_city
from sfumato.app.output import emit, say
from sfumato.errors import InvalidInput, MissingExtra

SHAPE = (64, 64)
DELTA = 0.007  # degrees: about 600 metres, a little less than a cell
EPSILON = 1.0

PLACES = {
    "the centre (2 × 2 km)": (-74.012, 40.716, -73.988, 40.734),
    "the western half": (-74.3, 40.5, -74.0, 40.95),
    "a quarter in the north": (-74.05, 40.78, -73.98, 40.83),
    "a street corner (200 m)": (-74.001, 40.724, -73.9986, 40.7258),
}


def run(out: Path, people: int, *, as_json: bool) -> None:
    """Do the main job once, and explain every step."""
    if people < 1:
        raise InvalidInput(f"--people {people} must be at least 1.")
    started = time.perf_counter()
    out.mkdir(parents=True, exist_ok=True)
    seed = secrets.randbelow(10**6)
    city = make_city(people, 3.0, seed)
    data, release_file, picture, budget = (
        out / n for n in ("visits.parquet", "visits.sfumato", "map.png", "budget.db")
    )
    write_city(city, data)

    grid = sf.Grid(bounds=BOUNDS, shape=SHAPE)
    policy = sf.within(grid, delta=DELTA)
    plan = sf.plan(policy, sf.ranges(), epsilon=EPSILON, max_per_entity=1)
    usual = sf.plan(sf.bounded(grid), sf.ranges(), epsilon=EPSILON, max_per_entity=1)
    # sf.count would choose a visit of each person by itself. Here the city does, so that it knows the truth.
    chosen = one_visit_each(city, seed + 1)
    counts = sf.count(as_table(chosen), grid, x="lon", y="lat", entity="person", max_per_entity=1)
    ledger = sf.Ledger.create(budget, epsilon=3.0, dataset=f"city {seed}")
    release = plan.publish(counts, ledger=ledger, label="demonstration")
    release.save(release_file)
    reread = sf.load(release_file)
    answers = reread.answer(list(PLACES.values()))
    truth = [_truth(chosen, place) for place in PLACES.values()]
    drawn: Path | None = picture
    try:
        reread.plot(picture, title="Visits in a synthetic city, published")
    except MissingExtra as missing:
        drawn = None
        note = str(missing)
    seconds = time.perf_counter() - started

    if as_json:
        rows = zip(PLACES, truth, answers.value, answers.low, answers.high, answers.cut_share, strict=True)
        emit(
            {
                "files": [str(f) for f in (data, release_file, drawn, budget) if f is not None],
                "plan": plan.to_dict(),
                "answers": [
                    {
                        "place": p,
                        "truth": t,
                        "value": float(v),
                        "low": float(lo),
                        "high": float(hi),
                        "cut_share": float(c),
                    }
                    for p, t, v, lo, hi, c in rows
                ],
                "ledger_left": str(ledger.remaining),
                "seconds": round(seconds, 2),
            }
        )
        return
    say(f"1  Made a city of {people:,} people and {len(city.person):,} visits: {data}")
    say("   It is synthetic, so this demonstration may show the truth. Real counts go from sf.count to")
    say("   plan.publish and nowhere else.\n")
    say(f"2  Planned a release on {SHAPE[0]} × {SHAPE[1]} cells, without looking at any data:\n")
    say(_indent(str(plan)) + "\n")
    say(f"   Under replace-one, the usual relation, the best mechanism at the same ε ({usual.mechanism.name}) would")
    say(f"   make {usual.expected_error / plan.expected_error:.1f} times the squared error.\n")
    say("3  Counted at most one visit a person, charged the ledger, drew exact noise and wrote the release.")
    say(indent(str(ledger), "   ") + "\n")
    say("4  Answered from the release alone:\n")
    say(f"   {'':<26}{'estimate':>10}{'in cut cells':>14}{'95 % interval':>20}{'true records':>14}")
    shown = zip(PLACES, answers.value, answers.cut_share, answers.low, answers.high, truth, strict=True)
    for name, value, share, low, high, true in shown:
        say(f"   {name:<26}{value:>10,.0f}{share:>14.0%}{f'[{low:,.0f}, {high:,.0f}]':>20}{true:>14,d}")
    say("\n   True records are counted visits whose place lies in the rectangle: the city is made up, and knows them.")
    say("   Where a rectangle cuts cells, the interval holds them on whichever side of the cut they lie.\n")
    say(f"5  Drew {drawn}" if drawn is not None else f"5  No picture: {note}")
    say(f"\nDone in {seconds:.1f} seconds. Next: sfumato query {release_file} --range=-74.05,40.7,-73.95,40.8")
    say(f"                          sfumato ledger show {budget} --dataset 'city {seed}'")


def _truth(city: City, place: tuple[float, ...]) -> int:
    """How many visits lie in a rectangle, as they are counted: clamped to the bounds. Only a made-up city may tell."""
    west, south, east, north = BOUNDS
    lon, lat = np.clip(city.lon, west, east), np.clip(city.lat, south, north)
    x0, y0, x1, y1 = place
    inside = (lon >= x0) & ((lon < x1) | (x1 >= east)) & (lat >= y0) & ((lat < y1) | (y1 >= north))
    return int(inside.sum())


def _indent(text: str) -> str:
    return "\n".join(f"   {line}" if line else "" for line in text.splitlines())
