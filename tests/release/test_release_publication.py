"""A release carries the public part of the publication it came from, and nothing of what whoever publishes keeps."""

from __future__ import annotations

import hashlib
import json
from fractions import Fraction
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import sfumato as sf

PUBLIC = """
hide = 'move(0.1) | change("mode")'
ask = 'ask(place=ranges(), mode=histogram()) + 2 * marginals("mode")'
epsilon = "1/3"
max_per_entity = 2
mechanism = "identity"

[domain.place]
bounds = [0, 0, 1, 1]
shape = [2, 3]
[domain.mode]
labels = ["bus", "bike"]
"""
PRIVATE = """
[data]
path = "clinic-visits.parquet"
columns = {x = "hidden_lon", y = "hidden_lat", mode = "hidden_kind"}
entity = "patient_id"
outside = "clamp"
[account]
ledger = "secret-budget.db"
dataset = "secret-city"
label = "secret-note"
[output]
file = "secret-out.sfumato"
vault = "secret-vault"
key = "secret.key"
[stream]
name = "secret-stream"
time = "hidden_time"
"""
SECRETS = ("clinic", "hidden_", "patient_id", "secret", "clamp")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "job.toml").write_text(PUBLIC + PRIVATE)
    columns = {
        "patient_id": np.arange(60) % 40,
        "hidden_lon": np.linspace(0, 1, 60),
        "hidden_lat": np.linspace(0, 1, 60),
    }
    pq.write_table(pa.table(columns | {"hidden_kind": ["bus", "bike"] * 30}), tmp_path / "clinic-visits.parquet")
    sf.Ledger.create(tmp_path / "secret-budget.db", epsilon=3, dataset="secret-city")
    return tmp_path


def same(one: sf.Publication | None, other: sf.Publication) -> bool:
    return one is not None and one.to_toml() == other.public_part.to_toml()


def described(path: Path) -> dict:
    return json.loads(pq.ParquetFile(path).metadata.metadata[b"sfumato"])


def test_a_release_gives_back_the_public_part_it_came_from(folder):
    publication = sf.load_publication(folder / "job.toml")
    release = publication.publish()
    path = release.save(folder / "a.sfumato")
    for one in (release, sf.load(path)):
        assert same(one.publication, publication)
        assert one.publication.policy == publication.policy
    assert described(path)["format"] == 3
    assert "records" not in described(path)["publication"]  # as before there was such a guess
    again = sf.load(path).publication
    assert (again.epsilon, again.max_per_entity, again.mechanism) == (Fraction(1, 3), 2, "identity")


def test_a_guess_of_how_many_records_there_are_is_carried(tmp_path):
    publication = sf.Publication(
        policy=sf.bounded(sf.Line(0, 1, cells=16)), ask=sf.ranges(), epsilon=1, expected_records=90
    )
    path = publication.plan().publish(np.full(16, 5)).save(tmp_path / "a.sfumato")
    assert sf.load(path).publication.expected_records == 90
    assert described(path)["publication"]["records"] == 90


def test_nothing_private_is_in_the_file(folder):
    release = sf.load_publication(folder / "job.toml").publish()
    content = release.save(folder / "a.sfumato").read_bytes()
    assert not [secret for secret in SECRETS if secret.encode() in content]
    assert described(folder / "a.sfumato")["publication"].keys() == {"ask", "epsilon", "max_per_entity", "mechanism"}
    text = release.publication.to_toml()
    assert not [secret for secret in SECRETS if secret in text]


def test_finer_levels_and_patches_keep_it(folder):
    publication = sf.load_publication(folder / "job.toml")
    release = publication.publish()
    finer = release.refine(epsilon=1, vault=publication.vault(), ledger=publication.ledger())
    assert same(finer.publication, publication) and finer.publication.epsilon == Fraction(1, 3)
    assert same(release.apply(finer.patch_from(release)).publication, publication)
    path = finer.save(folder / "b.sfumato")
    assert described(path)["measured"] and same(sf.load(path).publication, publication)
    again = sf.load(release.save(folder / "a.sfumato")).refine(
        epsilon=1, vault=publication.vault(), ledger=publication.ledger()
    )
    assert np.array_equal(again.counts, finer.counts) and same(again.publication, publication)


def test_steps_of_a_stream_carry_it(folder):
    line = sf.Publication(policy=sf.bounded(sf.Line(0, 4, cells=4)), ask=sf.histogram(), epsilon=1)
    ledger = sf.Ledger.create(folder / "stream.db", epsilon=1)
    options = {"epsilon": 1, "window": 2, "ledger": ledger, "name": "visits", "publication": line}
    stream = sf.Stream(line.policy, line.ask, **options)
    assert same(stream.publish(0, np.array([3, 0, 5, 1])).publication, line)


def test_a_release_without_one_says_so_and_is_written_as_before(tmp_path):
    plan = sf.plan(sf.bounded(sf.Line(0, 4, cells=4)), sf.histogram(), epsilon=1)
    release = plan.publish(np.array([3, 0, 5, 1]))
    assert release.publication is None
    path = release.save(tmp_path / "a.sfumato")
    assert described(path)["format"] == 1 and sf.load(path).publication is None


def test_questions_that_no_file_says_are_not_carried():
    policy = sf.bounded(sf.Line(0, 4, cells=4))
    asked = sf.Publication(policy=policy, ask=sf.queries(np.eye(4)), epsilon=1)
    assert asked.plan().publish(np.array([3, 0, 5, 1])).publication is None


def forged(folder: Path, change) -> Path:
    """The file of a release with another publication in it, and a digest that fits."""
    path = sf.load_publication(folder / "job.toml").publish().save(folder / "a.sfumato")
    file = pq.ParquetFile(path)
    table, description = file.read(), json.loads(file.metadata.metadata[b"sfumato"])
    change(description)
    rest = {key: value for key, value in description.items() if key != "digest"}
    digest = hashlib.sha256(json.dumps(rest, sort_keys=True, separators=(",", ":")).encode() + b"\0")
    cells = sf.load(path).counts.size
    digest.update(table.column("count").slice(0, cells).to_numpy().astype("<f8").tobytes())
    if "measured" in table.column_names:
        digest.update(table.column("measured").to_numpy().astype("<i8").tobytes())
    with pq.ParquetWriter(path, table.schema) as writer:
        writer.write_table(table)
        writer.add_key_value_metadata({b"sfumato": json.dumps({**rest, "digest": digest.hexdigest()}).encode()})
    return path


@pytest.mark.parametrize(
    "told",
    [
        {},
        None,
        [],
        "ranges()",
        {"ask": "ranges()", "epsilon": "1", "max_per_entity": None},
        {"ask": "ranges()", "epsilon": "1", "max_per_entity": None, "mechanism": None, "path": "x"},
        {"ask": "marginals('hour')", "epsilon": "1", "max_per_entity": None, "mechanism": None},
        {"ask": "__import__('os')", "epsilon": "1", "max_per_entity": None, "mechanism": None},
        {"ask": 5, "epsilon": "1", "max_per_entity": None, "mechanism": None},
        {"ask": "histogram()", "epsilon": 1, "max_per_entity": None, "mechanism": None},
        {"ask": "histogram()", "epsilon": "1e9", "max_per_entity": None, "mechanism": None},
        {"ask": "histogram()", "epsilon": "-1", "max_per_entity": None, "mechanism": None},
        {"ask": "histogram()", "epsilon": "1", "max_per_entity": 0, "mechanism": None},
        {"ask": "histogram()", "epsilon": "1", "max_per_entity": True, "mechanism": None},
        {"ask": "histogram()", "epsilon": "1", "max_per_entity": None, "mechanism": None, "records": 0},
        {"ask": "histogram()", "epsilon": "1", "max_per_entity": None, "mechanism": None, "records": None},
        {"ask": "histogram()", "epsilon": "1", "max_per_entity": None, "mechanism": "m" * 1000},
    ],
)
def test_a_file_that_says_nonsense_of_its_publication_is_refused(folder, told):
    path = forged(folder, lambda description: description.update(publication=told))
    with pytest.raises(sf.FileFormatError, match="what it says of its publication cannot be read"):
        sf.load(path)


def test_what_forges_would_be_read_if_it_made_sense(folder):
    told = {"ask": "histogram()", "epsilon": "7/2", "max_per_entity": None, "mechanism": None}
    path = forged(folder, lambda description: description.update(publication=told))
    assert sf.load(path).publication.epsilon == Fraction(7, 2)


@pytest.mark.parametrize("number", [1, 2])
def test_the_field_belongs_to_its_format(folder, number):
    path = forged(folder, lambda description: description.update(format=number))
    with pytest.raises(sf.FileFormatError, match="must have exactly the fields"):
        sf.load(path)
