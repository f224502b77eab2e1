"""The moves that a rule of a relation makes on the cells of its factor.

Every rule of `sfumato.relations` has one entry here. A move by less than δ joins all cells that hold two points nearer
than δ; where δ exceeds the factor, every cell is joined with every other.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from fractions import Fraction
from functools import cache, partial
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from sfumato.domain import Domain
from sfumato.domain.coarser import level_named
from sfumato.errors import InvalidInput
from sfumato.policies.ground_moves import ground_moves, near_border
from sfumato.policies.listed_moves import Neighbours
from sfumato.policies.moves import Complete, Moves
from sfumato.policies.near_places import KeptPlaces, NearPlaces
from sfumato.policies.policy import Policy
from sfumato.policies.uneven import Ahead
from sfumato.policies.within import built_within, exceeds, numbers, within
from sfumato.relations import (
    BOUNDARY,
    METRES,
    OWN,
    QUEEN,
    ROAD,
    SECONDS,
    Adjacent,
    Change,
    Move,
    Rule,
    map_digest,
)


def moves_of(rule: Rule, part: Domain) -> Moves:
    """The moves of a rule on the cells of its factor, given as a domain of that factor alone."""
    return _MOVES[rule.kind](rule, part)


def numbers_of(rule: Rule, part: Domain) -> int:
    """How many numbers the moves of a rule take while they are looked for, where there may be very many."""
    if rule.kind != Move.kind:
        return 0
    move = cast(Move, rule)
    _refuse_units(move, part)
    if part.apart:
        return 0  # as on a globe
    if not _on_grid(part):
        return 2 * part.size
    if move.metric == "great-circle" or exceeds(part, move.delta.amount, move.metric):
        return 0  # moves on a globe are few and those that lead anywhere are not told apart
    return numbers(part, move.delta.amount, move.metric) * (1 if move.sources is None else 2)


def source_mask(rule: Rule, part: Domain) -> Callable[[], NDArray[np.bool_]]:
    """Which cells of the factor are near a source, found when it is first asked for."""
    move = cast(Move, rule)
    if exceeds(part, move.delta.amount, move.metric):  # what is near enough anywhere
        return lambda: np.ones(part.shape, dtype=np.bool_)
    seen = built_within(part, move.delta.amount, sources=_given(move), metric=move.metric)
    return cache(lambda: cast(NDArray[np.bool_], seen.absent))


def way_out(rule: Rule, part: Domain) -> Callable[[], NDArray[np.bool_]]:
    """Which cells of a factor that elsewhere stands beside a change by the rule leads out of."""
    if rule.kind != Move.kind:
        return lambda: np.ones(part.shape, dtype=np.bool_)
    move = cast(Move, rule)
    _refuse_units(move, part)
    return near_border(part, move.delta.amount)


def short_form(rule: Rule, domain: Domain) -> Policy | None:
    """δ-neighbourhood, where that is what the rule is on this domain; None where it is another policy."""
    if rule.kind != Move.kind or not _on_grid(domain):
        return None
    move = cast(Move, rule)
    _refuse_units(move, domain)
    if move.keep is not None:
        return None
    if exceeds(domain, move.delta.amount, move.metric):
        return None  # every move is hidden: a policy of this relation, and no δ-neighbourhood of these cells
    return within(domain, move.delta.amount, sources=_given(move), metric=move.metric)


def _moved(move: Move, part: Domain) -> Moves:
    _refuse_units(move, part)
    if move.keep is not None:
        axis = part.axes[0]
        level = level_named(axis.coarser, move.keep, str(move.of))
        return KeptPlaces(partial(axis.near, move.delta.amount), axis.cells, of=level.of)
    if part.apart:
        return ground_moves(part, move.delta.amount)
    if _on_grid(part):
        if exceeds(part, move.delta.amount, move.metric):
            return Complete()
        return built_within(part, move.delta.amount, metric=move.metric).moves
    (axis,) = part.axes
    if axis.unit == METRES:
        return NearPlaces(partial(axis.near, move.delta.amount), axis.cells)
    amount = _in_time(move.delta.amount)
    if axis.winds:
        return Neighbours(axis.near(amount), axis.cells)
    return Ahead(axis.reach(amount))


def _in_time(seconds: Fraction) -> timedelta:
    """Seconds as a length of time, rounded up to the next microsecond: in which all times are told apart."""
    return timedelta(microseconds=-(-seconds * 1_000_000 // 1))


def _refuse_units(move: Move, part: Domain) -> None:
    """Refuse a length that the axes of the factor cannot have."""
    units = {axis.unit for axis in part.axes}
    name = move.of
    if units == {None}:
        raise InvalidInput(
            f"{name!r} has values without distances, and hide moves it by less than {move.delta}. Nothing was built. "
            f"Use sf.change({name!r})."
        )
    if move.metric == ROAD:
        if not part.axes[0].has_roads:
            raise InvalidInput(
                f"hide moves {name!r} along roads, and it is no network of them. Nothing was built. Build it with "
                "sf.network(…), or leave the metric out."
            )
        _refuse_other_map(move, part)
    elif part.axes[0].has_roads and move.delta.unit == METRES:
        raise InvalidInput(
            f"hide moves {name!r} by less than {move.delta} as the crow flies, and distances on roads are those along "
            f"them. Nothing was built. Say sf.move('{move.delta}', along=roads)."
        )
    if move.delta.unit == METRES and units == {OWN}:
        if move.metric == "geodesic":
            raise InvalidInput(
                f"hide moves {name!r} by less than {move.delta} on the ellipsoid, and its coordinates are plain "
                "numbers of no known CRS. Nothing was built. Say what they are, sf.Grid(…, crs='EPSG:4326') for "
                "degrees; or give delta in the axes' own units (metric='great-circle' is about places inside bounds)."
            )
        return  # whether these are degrees is for the metric to say
    if units == {METRES} and move.delta.unit == METRES:
        if move.metric not in ("geodesic", ROAD):
            raise InvalidInput(
                f"hide moves {name!r} by less than {move.delta} on a sphere, and its {part.axes[0].what} are on the "
                "ellipsoid. Nothing was built. Leave metric= out."
            )
        if move.sources is not None:
            raise InvalidInput(
                f"hide moves {name!r} with sources, which are not known to {part.axes[0].what}. Nothing was built. "
                "Leave them out, or join the move with | sf.presence()."
            )
    if {move.delta.unit} != units:
        wanted = "a time, such as '30 min'" if SECONDS in units else "a number in its own units"
        wanted = "metres, such as '500 m'" if METRES in units else wanted
        raise InvalidInput(
            f"hide moves {name!r} by less than {move.delta}"
            f"{' of its own units' if move.delta.unit == OWN else ''}, but that is measured in {wanted}. Nothing "
            "was built."
        )


def _on_grid(part: Domain) -> bool:
    return part.is_spatial and all(axis.unit == OWN for axis in part.axes)


def _given(move: Move) -> Any:
    return move.sources if move.sources in (None, BOUNDARY) else _as_lists(move.sources)


def _as_lists(value: Any) -> Any:
    return [_as_lists(part) for part in value] if isinstance(value, tuple) else value


def _changed(rule: Change, part: Domain) -> Moves:
    del rule, part
    return Complete()


def _beside(rule: Adjacent, part: Domain) -> Moves:
    _refuse_other_map(rule, part)
    axis = part.axes[0]
    return NearPlaces(partial(axis.adjacent, corners=rule.contiguity == QUEEN), axis.cells)


def _refuse_other_map(rule: Rule, part: Domain) -> None:
    """Refuse neighbours and roads of another map than the factor's."""
    known = map_digest(part)
    if known is None:
        raise InvalidInput(
            f"hide speaks of {'roads' if rule.kind == Move.kind else 'neighbouring places'}, and {rule.of!r} is no map "
            "of them. Nothing was built. Give sf.adjacent regions, hexagons or roads, and metric='road' a domain of "
            "sf.network."
        )
    if rule.map is not None and rule.map != known:
        raise InvalidInput(
            f"hide speaks of another map than that of {rule.of!r}: of {rule.map[:12]}…, and this is {known[:12]}…. "
            "Nothing was built. Say it of the domain's own map."
        )


_MOVES: dict[str, Callable[[Any, Domain], Moves]] = {
    Move.kind: _moved,
    Change.kind: _changed,
    Adjacent.kind: _beside,
}
