"""Random small products and relations, and their graphs written out pair by pair."""

from __future__ import annotations

import itertools
import random

import numpy as np

import sfumato as sf
from sfumato.policies import Policy
from sfumato.relations import Relation

FACTORS = [
    lambda: sf.Grid(bounds=(0, 0, 1, 1), shape=(3, 2)),
    lambda: sf.Line(0, 4, cells=4, name="hour"),
    lambda: sf.Categories(["a", "b", "c"], name="mode"),
    lambda: sf.Times("2026-03-08", "2026-03-10", every="12 h", name="t", tz="America/New_York"),
    lambda: sf.Cycle("weekday", name="day"),
    lambda: sf.Line(edges=[0, 1, 5, 6, 20], name="fare"),
]
OF_ONE_CELL = [
    lambda: sf.Grid(bounds=(0, 0, 1, 1), shape=(1, 1)),
    lambda: sf.Line(0, 4, cells=1, name="hour"),
    lambda: sf.Times("2026-03-08", "2026-03-09", every="1 day", name="t", tz="America/New_York"),
    lambda: sf.Line(edges=[0, 20], name="fare"),
]
RULES = {
    "place": [lambda: sf.move(0.2), lambda: sf.move(0.4, metric="manhattan"), lambda: sf.change("place")],
    "hour": [lambda: sf.move(0.5, of="hour"), lambda: sf.move(1.5, of="hour"), lambda: sf.change("hour")],
    "mode": [lambda: sf.change("mode")],
    "t": [lambda: sf.move("1 h", of="t"), lambda: sf.move("13 h", of="t")],
    "day": [lambda: sf.move("1 h", of="day"), lambda: sf.change("day")],
    "fare": [lambda: sf.move(2, of="fare"), lambda: sf.move(0.5, of="fare")],
}


def random_case(dice: random.Random) -> tuple[sf.Domain, Relation]:
    """A product of two or three factors and a relation of one to three terms on it."""
    factors = [made() for made in dice.sample(FACTORS, dice.choice([2, 2, 3]))]
    small = {part.factors[0].name: part for part in (made() for made in OF_ONE_CELL)}
    domain: sf.Domain | None = None
    for part in factors:
        part = small.get(part.factors[0].name, part) if dice.random() < 0.15 else part
        domain = part if domain is None else domain * part
    assert domain is not None
    names = [factor.name for factor in domain.factors]
    hide: Relation | None = None
    for _ in range(dice.choice([1, 2, 3])):
        term: Relation | None = None
        for name in dice.sample(names, dice.randint(1, len(names))):
            rule = dice.choice(RULES[name])()
            term = rule if term is None else term & rule
        assert term is not None
        hide = term if hide is None else hide | term
    assert hide is not None
    extra = dice.random()
    if extra < 0.2:
        hide = hide | sf.presence()
    elif extra < 0.3 and "place" in names:
        hide = hide | sf.move(0.2, sources=[(0.1, 0.1)])
    return domain, hide


def built(domain: sf.Domain, hide: Relation) -> Policy:
    """The policy, with every name public that has to be."""
    unchanged = [f.name for f in domain.factors if f.name not in hide.named("place").names]
    public = [] if hide.hides_presence else unchanged
    try:
        return sf.policy(domain, hide=hide, public=public)
    except sf.InvalidInput as error:
        assert "not published exactly" in str(error)  # near a source every component may reach ⊥
        return sf.policy(domain, hide=hide)


def graph(domain: sf.Domain, hide: Relation) -> np.ndarray:
    """The adjacency matrix of all cells and ⊥, last: every pair is asked, factor by factor."""
    hide = hide.named("place")
    size = domain.size
    joined = np.zeros((size + 1, size + 1), dtype=bool)
    cells = list(itertools.product(*(range(n) for n in domain.shape)))
    own = {f.name: f.positions for f in domain.factors}
    for term in hide.terms:
        if term.kind == "presence":
            joined[:size, size] = joined[size, :size] = True
            continue
        near = {}
        for rule in term.rules:
            part = domain.part(rule.of)
            alone = Relation((term.with_rules([rule]),)).on(part)
            table = np.eye(part.size, dtype=bool)
            for u, v in alone.edges():
                if v >= 0:
                    table[u, v] = table[v, u] = True
                else:
                    for number, cell in enumerate(cells):
                        if flat(cell, own[rule.of], part) == u:
                            joined[number, size] = joined[size, number] = True
            near[rule.of] = table
        for (i, u), (j, v) in itertools.combinations(enumerate(cells), 2):
            fits = all(
                near[name][flat(u, at, domain.part(name)), flat(v, at, domain.part(name))]
                if name in near
                else all(u[k] == v[k] for k in at)
                for name, at in own.items()
            )
            joined[i, j] |= fits
            joined[j, i] |= fits
    return joined


def flat(cell: tuple[int, ...], positions: tuple[int, ...], part: sf.Domain) -> int:
    """The number of a factor's own cell."""
    return int(np.ravel_multi_index(tuple(cell[k] for k in positions), part.shape))


def distances(joined: np.ndarray) -> np.ndarray:
    """All shortest paths, by Floyd and Warshall."""
    away = np.where(joined, 1.0, np.inf)
    np.fill_diagonal(away, 0)
    for k in range(len(away)):
        away = np.minimum(away, away[:, k : k + 1] + away[k : k + 1])
    return away
