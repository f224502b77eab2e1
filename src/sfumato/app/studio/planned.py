"""What the page is told of a publication before anything is spent: what is hidden, how accurate it will be, what beats
what, and how it would look on people who do not exist. No data are read here.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np

from sfumato.app.studio.python import python_of
from sfumato.app.studio.shapes import drawn, packed
from sfumato.domain.on_maps import places
from sfumato.errors import InvalidInput
from sfumato.mechanism import reference_population
from sfumato.noise import SeededSource
from sfumato.publication import Publication

MADE_UP = 100_000
"""How many records the made-up population of a preview has, where no guess is declared."""
_LARGEST = 1 << 22
ON_EARTH = ("great-circle", "geodesic")


def described(publication: Publication, file: str) -> dict[str, Any]:
    """The relation in words, the cells to draw, and the file and the lines of Python that say the same."""
    policy = publication.policy
    return {
        "hidden": policy.describe(),
        "delta": delta_of(publication),
        "total_is_public": policy.total_is_public,
        "domain": drawn(publication.domain),
        "toml": publication.to_toml(),
        "python": python_of(publication, file),
    }


def delta_of(publication: Publication) -> dict[str, Any] | None:
    """How far the place may move and be hidden, for a circle on the map: in metres, or in the axes' units."""
    policy = publication.policy
    if policy.name == "within":
        told = policy.arguments
        return {"length": float(Fraction(str(told["delta"]))), "metres": told["metric"] in ON_EARTH}
    mapped = places(policy.domain)
    names = {factor.name for factor in policy.domain.factors if factor.positions in mapped}
    for rule in () if policy.relation is None else policy.relation.rules:
        told = rule.spec()
        if told["kind"] == "move" and told["of"] in {*names, None} and names:
            return {"length": float(Fraction(told["delta"])), "metres": told["unit"] == "m"}
    return None


def planned(publication: Publication) -> dict[str, Any]:
    """All that the page shows of the plan."""
    plan = publication.plan()
    return {
        **plan.to_dict(),
        "mechanism_name": plan.mechanism.name,
        "mechanism_in_words": plan.mechanism.describe(),
        "ask_in_words": plan.workload.describe(),
        "worth": plan.worth,
        "resolution_in_words": plan.resolution,
        "promise": str(plan.guarantee),
        "scales": [
            {
                "factor": scale.factor,
                "size": scale.size,
                "blocks": list(scale.blocks),
                "whole": scale.whole,
                "typical": scale.typical_error,
            }
            for scale in plan.by_scale
        ],
    }


def worded(publication: Publication) -> dict[str, Any]:
    """The promise and what is not hidden, in plain words. On large domains how far things are from each other is a
    search, so that this takes longer than the plan.
    """
    plan = publication.plan()
    first, *rest = plan.guarantee.describe().split("\n\n")
    return {"promise": first, "limits": rest}


def previewed(publication: Publication) -> dict[str, Any]:
    """One made-up release of a made-up population, and what that population is: nobody is in it, and the noise is
    seeded. It looks as a release would look; nothing of the data, nor of a release of them, is in it.
    """
    domain = publication.domain
    if domain.size > _LARGEST:
        raise InvalidInput(
            f"{domain.size:,} cells are too many for a preview (at most {_LARGEST:,}). Nothing was drawn. The plan "
            "stands without it."
        )
    plan = publication.plan()
    records = publication.expected_records or MADE_UP
    population = np.asarray(reference_population(domain, records)).reshape(domain.shape)
    flat, total = population.ravel(), int(population.sum()) if publication.policy.total_is_public else None
    mechanism = plan.mechanism if total is None else plan.mechanism.for_total(total)
    estimates = np.asarray(mechanism.run(mechanism.seen(flat), total, SeededSource(1)))
    if estimates.size != domain.size:
        raise InvalidInput("this plan measures tables and no cells, so there is no map of it to preview.")
    shown = np.asarray(mechanism.shaped(estimates))
    mapped = places(domain)
    over = tuple(i for i in range(domain.ndim) if not mapped or i not in mapped[0])
    if mapped:
        population, shown = population.sum(axis=over), shown.sum(axis=over)
    return {"records": records, "truth": packed(population), "value": packed(shown), "map": bool(mapped)}
