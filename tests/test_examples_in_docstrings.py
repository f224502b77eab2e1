"""Every public name shows its use in its docstring, and what is shown runs as it is printed, in an empty folder."""

from __future__ import annotations

import doctest
import inspect

import numpy as np
import pytest

import sfumato as sf

METHODS = [
    "Domain.locate",
    "Guarantee.at",
    "Guarantee.describe",
    "Ledger.statement",
    "Plan.describe",
    "Plan.publish",
    "Policy.describe",
    "Policy.distance",
    "Policy.edges",
    "Policy.sensitivity",
    "Release.adjusted",
    "Release.answer",
    "Release.query",
    "Release.refine",
    "Release.save",
    "Release.statement",
    "Release.to_geojson",
    "Release.to_geopandas",
    "Release.to_geoparquet",
    "Stream.publish",
    "Stream.skip",
    "Vault.check",
]
NAMES = [name for name in sf.__all__ if callable(getattr(sf, name))]
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


def example(name):
    """The example in the docstring of a public name, or of a method of one."""
    thing = sf
    for part in name.split("."):
        thing = getattr(thing, part)
    names = {**vars(inspect.getmodule(thing)), "sf": sf, "np": np}
    return doctest.DocTestParser().get_doctest(inspect.getdoc(thing) or "", names, name, None, None)


@pytest.mark.parametrize("name", NAMES + METHODS)
def test_every_public_name_has_an_example(name):
    assert example(name).examples, f"sf.{name} has no >>> example in its docstring"


NEEDS = {
    "H3": ["h3"],
    "Regions": ["geopandas"],
    "Release.to_geojson": ["h3"],
    "Release.to_geopandas": ["geopandas"],
    "Release.to_geoparquet": ["geopandas", "h3"],
}


@pytest.mark.parametrize("name", NAMES + METHODS)
def test_the_example_runs_as_it_is_printed(name, tmp_path, monkeypatch):
    for package in NEEDS.get(name, []):
        pytest.importorskip(package)
    monkeypatch.chdir(tmp_path)
    said: list[str] = []
    doctest.DocTestRunner(optionflags=FLAGS).run(example(name), out=said.append)
    assert not said, "".join(said)
