"""A record for the OpenDP Deployments Registry, from a statement.

The fields are those of its public schema, `schemas/deployments-schema.yaml` in opendp/deployments-registry-data, as of
2026: `url_slug`, and under `deployment` the parts `basic`, `dp_variant`, `privacy_loss`, `deployment_model`,
`implementation` and `administrative`. Tier 3 has them all. A promise about a relation is the variant "Custom", and its
privacy relation is stated: input metric, bound on the input distance, output measure, bound on the output distance.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from decimal import ROUND_CEILING, Context, Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from sfumato.errors import InvalidInput
from sfumato.statement.yaml import Number, yaml

if TYPE_CHECKING:
    from sfumato.statement.statement import Statement

ASKED = ("name", "curator", "curator_type", "intended_use", "region")
CURATORS = ("Government", "Industry", "Nonprofit")
SECTORS = ("Technology", "Healthcare", "Education", "Government", "Energy", "Finance")

_UP = Context(prec=6, rounding=ROUND_CEILING)
_NOT_SAID = "Not said by the release; for the publisher to complete."


def registry_record(statement: Statement) -> str:
    """The record as YAML, or what is missing for one."""
    facts, figures = statement.facts, statement.figures
    if statement.kind != "release":
        raise InvalidInput(
            "a registry's record is about one data product, and this statement is about a ledger. Nothing was written. "
            "Make one from release.statement(ledger=…, facts={…})."
        )
    asked = ASKED if figures["created"] else (*ASKED, "date")
    missing = [name for name in asked if name not in facts]
    if missing:
        raise InvalidInput(
            f"the registry asks for what no release knows: facts lacks {', '.join(missing)}. Nothing was written. Give "
            f"them in release.statement(facts={{'{missing[0]}': '…'}})."
        )
    _one_of(facts, "curator_type", CURATORS)
    if "sector" in facts:
        _one_of(facts, "sector", SECTORS)
    if not figures["guarantee"]["private"]:
        raise InvalidInput(
            "this release was made with seeded randomness and promises nothing. Nothing was written. Register what was "
            "published with the system's randomness."
        )
    return yaml({"url_slug": _slug(facts["name"], figures["release"]), "deployment": _deployment(statement)})


def _deployment(statement: Statement) -> dict[str, Any]:
    facts, figures = statement.facts, statement.figures
    stream = figures["guarantee"]["window"] is not None
    units = {} if figures["units"] is None else {"number_of_privacy_units": figures["units"]}
    sector = {"data_product_sector": facts["sector"]} if "sector" in facts else {}
    authors = [name.strip() for name in facts.get("authors", facts["curator"]).split(";") if name.strip()]
    return {
        "basic": {
            "name": facts["name"],
            "data_curators": [
                {"data_curator_name": facts["curator"], "data_curator_type": facts["curator_type"]},
            ],
            "description": _facts_of(statement, "published"),
            "intended_use": facts["intended_use"],
            "data_product_type": "Summary statistics",
            "data_product_region": facts["region"],
            **sector,
            "publication_date": figures["created"][:10] or facts["date"],
        },
        "dp_variant": {
            "variant_name": "Approximate DP" if figures["standard"] else "Custom",
            "data_domain": _domain(statement),
            "unprotected_quantities": " ".join(statement["not-hidden"].items),
        },
        "privacy_loss": {
            "privacy_unit": figures["guarantee"]["unit"],
            "privacy_unit_details": _relation(statement),
            **units,
            "privacy_parameters": {"epsilon": _number(_loss(figures)), "delta": _delta(figures)},
            "privacy_parameters_details": " ".join(statement["promise"].text + statement["standard"].items),
        },
        "deployment_model": {
            "model_name": "Central",
            "model_name_details": "The publisher holds the records, and adds noise before anything is published.",
            "trust_assumptions": _answer(statement, "nist", "Whom must people trust?"),
            "actors": f"{facts['curator']} holds the records, runs the software and publishes; everybody else sees the "
            "published figures alone.",
            "release_type": "Many releases" if stream else "One release",
            "release_type_details": _answer(statement, "nist", "How do losses add up?"),
            "data_source_type": "Dynamic" if stream else "Static",
            "data_source_type_details": "New records come in over time, and every step is a release of its own."
            if stream
            else "The records were counted once.",
            "access_type": "Non-interactive",
            "access_type_details": "What is published is a file; whoever has it asks it what they like, and the "
            "records are not asked again.",
        },
        "implementation": {
            "preprocessing_and_hyperparameter_tuning": _answer(
                statement, "nist", "Were parameters chosen by looking at the data?"
            ),
            "mechanisms": _facts_of(statement, "mechanism"),
            "composition": _answer(statement, "nist", "How do losses add up?"),
            "post_processing": "Estimates, answers, intervals and maps are computed from noisy whole numbers alone.",
            "justification": facts.get("justification", _NOT_SAID),
            "utility": _answer(statement, "nist", "How useful are the figures, and are they biased?"),
            "additional_information": f"Release {figures['release']}. " + " ".join(statement["audit"].text),
        },
        "administrative": {"status": "Draft", "registry_authors": authors, "tier": 3},
    }


def _relation(statement: Statement) -> str:
    """The privacy relation, as the registry wants it stated for a custom variant."""
    figures = statement.figures
    policy, unit = figures["guarantee"]["policy"], figures["guarantee"]["unit"]
    most = figures["guarantee"]["max_per_entity"]
    whose = "one record" if unit == "record" else f"each of the at most {most} counted records of one person"
    return (
        f"Input metric: the length of the shortest path, taken by {whose}, in a graph over the cells in which two "
        f"cells are joined when {policy['words']}. Bound on the input distance: 1 step. Output measure: max-divergence "
        "(with delta as given). Bound on the output distance: epsilon as given; epsilon times k for k steps. "
        f"Fingerprint of the relation: {policy['fingerprint']}. {' '.join(statement['unit'].text)}"
    )


def _domain(statement: Statement) -> str:
    along = [f"{term}: {said}" for term, said in statement["published"].facts if term.startswith("Along ")]
    return "Datasets of records with these attributes, and any number of records. " + "; ".join(along)


def _facts_of(statement: Statement, key: str) -> str:
    return "; ".join(f"{term}: {said}" for term, said in statement[key].facts)


def _answer(statement: Statement, key: str, question: str) -> str:
    return dict(statement[key].facts)[question]


def _loss(figures: Mapping[str, Any]) -> Fraction:
    """ε of the release; of a stream, of every window."""
    promise = figures["guarantee"]
    return Fraction(promise.get("window_epsilon", promise["epsilon"]))


def _delta(figures: Mapping[str, Any]) -> Number:
    """(1 + e^ε) times the sampler's cut, rounded up; it is no probability where ε is that large."""
    loss, slack = float(_loss(figures)), Fraction(figures["guarantee"]["slack"])
    if loss > 60:
        return Number("1.0")
    return _number(min(slack * (1 + Fraction(math.exp(loss) * (1 + 1e-12))), Fraction(1)))


def _number(value: Fraction) -> Number:
    """A decimal that YAML of every version reads as a number, never below the value."""
    digits = _UP.divide(Decimal(value.numerator), Decimal(value.denominator))
    if digits == 0 or -4 <= digits.adjusted() <= 9:
        plain = f"{digits.normalize():f}"
        return Number(plain if "." in plain else f"{plain}.0")
    mantissa, _, exponent = f"{digits.normalize():e}".partition("e")
    return Number(f"{mantissa if '.' in mantissa else mantissa + '.0'}e{int(exponent):+d}")


def _one_of(facts: Mapping[str, str], name: str, allowed: tuple[str, ...]) -> None:
    if facts[name] not in allowed:
        raise InvalidInput(
            f"facts[{name!r}]={facts[name]!r} is not one of {', '.join(allowed)}. Nothing was written. Give the one "
            "that describes it best."
        )


def _slug(name: str, release_id: str) -> str:
    words = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")
    return f"{words[:60].strip('-') or 'release'}-{re.sub(r'[^a-z0-9]', '', release_id.lower())[:8]}"
