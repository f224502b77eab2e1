"""The record for the OpenDP Deployments Registry, read back and set against the public schema.

The schema is written here by hand, from `schemas/deployments-schema.yaml` and `tests/good_deployments/template.yaml` in
the public repository opendp/deployments-registry-data, as they stood at its commit 057e5d81cf60.
"""

from __future__ import annotations

import datetime
import re
from fractions import Fraction

import numpy as np
import pytest

import sfumato as sf
from sfumato.statement.registry import _number
from sfumato.statement.yaml import yaml as written

read = pytest.importorskip("yaml", reason="PyYAML reads what was written; it comes with Dask")

TEXT, NUMBER, WHOLE = str, (int, float), int
SCHEMA = {
    "url_slug": TEXT,
    "deployment": {
        "basic": {
            "name": TEXT,
            "data_curators": [
                {"data_curator_name": TEXT, "data_curator_type": {"Government", "Industry", "Nonprofit"}}
            ],
            "description": TEXT,
            "intended_use": TEXT,
            "data_product_type": {
                "Summary statistics", "Machine learning model", "Dataset", "Synthetic data", "Interactive API",
                "SQL queries",
            },
            "data_product_region": TEXT,
            "data_product_sector": {"Technology", "Healthcare", "Education", "Government", "Energy", "Finance"},
            "publication_date": re.compile(r"\d{4}-\d{2}-\d{2}"),
        },
        "dp_variant": {
            "variant_name": {"Pure DP", "Approximate DP", "Zero-concentrated DP", "Renyi DP", "Custom"},
            "data_domain": TEXT,
            "unprotected_quantities": TEXT,
        },
        "privacy_loss": {
            "privacy_unit": TEXT,
            "privacy_unit_details": TEXT,
            "number_of_privacy_units": WHOLE,
            "privacy_parameters": {"epsilon": NUMBER, "delta": NUMBER, "rho": NUMBER},
            "privacy_parameters_details": TEXT,
        },
        "deployment_model": {
            "model_name": {"Local", "Central", "Shuffle", "Federated", "Varies"},
            "model_name_details": TEXT,
            "trust_assumptions": TEXT,
            "actors": TEXT,
            "release_type": {"One release", "Many releases"},
            "release_type_details": TEXT,
            "data_source_type": {"Static", "Dynamic"},
            "data_source_type_details": TEXT,
            "access_type": {"Interactive", "Non-interactive"},
            "access_type_details": TEXT,
        },
        "implementation": {
            "preprocessing_and_hyperparameter_tuning": TEXT,
            "mechanisms": TEXT,
            "composition": TEXT,
            "post_processing": TEXT,
            "justification": TEXT,
            "utility": TEXT,
            "additional_information": TEXT,
        },
        "administrative": {"status": {"Draft", "Pending", "Approved"}, "registry_authors": [TEXT], "tier": {1, 2, 3}},
    },
}  # fmt: skip
OPTIONAL = {"data_product_sector", "number_of_privacy_units", "delta", "rho"}
FACTS = {
    "name": "Rides by hour",
    "curator": "City of Examples",
    "curator_type": "Government",
    "intended_use": "Planning of lanes: where, and when",
    "region": "Somewhere",
}


def check(value, schema, path=""):
    """Every field is one of the schema's, every field that is not optional is there, and each has its kind."""
    if isinstance(schema, dict):
        assert isinstance(value, dict), path
        assert set(value) <= set(schema), path
        assert set(schema) - set(value) <= OPTIONAL, (path, set(schema) - set(value))
        for name, one in value.items():
            check(one, schema[name], f"{path}/{name}")
    elif isinstance(schema, list):
        assert isinstance(value, list) and value, path
        for one in value:
            check(one, schema[0], path)
    elif isinstance(schema, set):
        assert value in schema, (path, value)
    elif isinstance(schema, re.Pattern):
        assert isinstance(value, str) and schema.fullmatch(value), (path, value)
        datetime.date.fromisoformat(value)
    else:
        assert isinstance(value, schema) and not isinstance(value, bool), (path, value)
        assert value != "", path


LINE = sf.Line(0, 24, cells=24, name="hour")


def record(policy, facts=FACTS, **options):
    plan = sf.plan(policy, sf.histogram(), epsilon="1/3", **options)
    statement = plan.publish(np.ones(policy.domain.shape, dtype=int)).statement(facts=facts)
    return read.safe_load(statement.to_registry())


def test_a_relation_is_a_custom_variant_with_its_privacy_relation_stated():
    space = LINE * sf.Categories(["bus: red", "#bike", "yes", "2026-01-01"], name="mode")
    found = record(sf.policy(space, hide=sf.move(2, of="hour") | sf.change("mode")))
    check(found, SCHEMA)
    deployment = found["deployment"]
    assert deployment["dp_variant"]["variant_name"] == "Custom"
    relation = deployment["privacy_loss"]["privacy_unit_details"]
    for part in (
        "Input metric:",
        "Bound on the input distance: 1 step",
        "Output measure: max-divergence",
        "Bound on the output",
    ):
        assert part in relation
    assert "its mode becomes any other" in relation
    assert deployment["privacy_loss"]["number_of_privacy_units"] == 24 * 4  # public under this relation
    assert deployment["administrative"] == {"status": "Draft", "registry_authors": ["City of Examples"], "tier": 3}
    assert "'#bike'" in deployment["dp_variant"]["data_domain"]


@pytest.mark.parametrize("policy", [sf.unbounded(LINE), sf.bounded(LINE), sf.policy(LINE, hide=sf.presence())])
def test_neighbours_of_the_textbook_are_approximate_by_the_cut_of_the_sampler(policy):
    found = record(policy)
    check(found, SCHEMA)
    assert found["deployment"]["dp_variant"]["variant_name"] == "Approximate DP"
    parameters = found["deployment"]["privacy_loss"]["privacy_parameters"]
    assert 1 / 3 <= parameters["epsilon"] <= 1 / 3 + 1e-6
    assert 0 < parameters["delta"] < 1e-29


def test_a_stream_promises_every_window(tmp_path):
    ledger = sf.Ledger.create(tmp_path / "budget.db", epsilon=1)
    stream = sf.Stream(
        sf.unbounded(LINE), sf.histogram(), epsilon=1, window=7, ledger=ledger, name="daily", allocation="even"
    )
    release = stream.publish(1, np.ones(24, dtype=int))
    found = read.safe_load(release.statement(ledger=ledger, facts=FACTS).to_registry())
    check(found, SCHEMA)
    assert found["deployment"]["privacy_loss"]["privacy_parameters"]["epsilon"] == 1.0
    assert found["deployment"]["deployment_model"]["release_type"] == "Many releases"


@pytest.mark.parametrize(
    "text",
    [
        "a: b",
        "- a",
        "no",
        "~",
        "1e3",
        "2026-01-01",
        "#c",
        "'",
        '"',
        "\\",
        "{a}",
        "&a",
        "!t",
        "é ⊥",
        "\t",
        "\x85",
        "%",
        "@",
        "`",
        "|",
        ">",
        "a #b",
        "",
        " ",
    ],
)
def test_every_text_comes_back_as_the_text_it_was(text):  # fmt: skip
    said = {"a": text, "b": [text, {"c": text}], "d": {"e": text}}
    assert read.safe_load(written(said)) == said


def test_numbers_are_numbers_and_never_below_the_promise():
    for value in (Fraction(1, 3), Fraction(1), Fraction(7, 2**100), Fraction(10**12), Fraction(1, 1000), Fraction(0)):
        found = read.safe_load(f"a: {_number(value)}")["a"]
        assert isinstance(found, float)
        assert value <= Fraction(str(found)) <= value * Fraction(100001, 100000)


def test_what_the_registry_asks_and_no_release_knows_is_asked_for():
    with pytest.raises(sf.InvalidInput, match=r"facts lacks curator, intended_use\. Nothing was written"):
        record(LINE_POLICY, {name: said for name, said in FACTS.items() if name not in ("curator", "intended_use")})
    with pytest.raises(sf.InvalidInput, match="is not one of Government, Industry, Nonprofit"):
        record(LINE_POLICY, FACTS | {"curator_type": "city"})
    with pytest.raises(sf.InvalidInput, match="is not one of Technology, Healthcare"):
        record(LINE_POLICY, FACTS | {"sector": "mobility"})
    assert record(LINE_POLICY, FACTS | {"sector": "Energy", "authors": "A; B"})["deployment"]["administrative"][
        "registry_authors"
    ] == ["A", "B"]


LINE_POLICY = sf.threshold(LINE, theta=1)


def test_neither_ledgers_nor_seeded_releases_are_registered(tmp_path):
    with pytest.raises(sf.InvalidInput, match="this statement is about a ledger"):
        sf.Ledger.create(tmp_path / "budget.db", epsilon=1).statement(facts=FACTS).to_registry()
    plan = sf.plan(LINE_POLICY, sf.histogram(), epsilon=1)
    seeded = plan.publish(np.ones(24, dtype=int), source=sf.SeededSource(1))
    with pytest.raises(sf.InvalidInput, match="was made with seeded randomness and promises nothing"):
        seeded.statement(facts=FACTS).to_registry()
