"""Verification: what holds of a release that somebody else made, what fails, and what stays open."""

from __future__ import annotations

import hashlib
import json
import shutil

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import sfumato as sf
from sfumato.promise.window import Window
from sfumato.release.writing import KEY, digest_of

LINE = sf.Line(0, 12, cells=12)
POLICY = sf.threshold(LINE, theta=2)
COUNTS = np.arange(12)


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def account(here):
    return sf.Ledger.create("budget.db", epsilon=10)


def plan(epsilon="1/2", **options):
    return sf.plan(POLICY, sf.ranges(), epsilon=epsilon, **options)


def rewritten(path, change):
    """The file with another description, whose digest fits: what somebody does who edits one."""
    table = pq.read_table(path)
    description = json.loads(pq.ParquetFile(path).metadata.metadata[KEY])
    change(description)
    del description["digest"]
    counts = table.column("count").to_numpy()
    description["digest"] = digest_of(description, counts)
    with pq.ParquetWriter(path, pa.table({"count": counts}).schema, store_schema=False) as writer:
        writer.write_table(pa.table({"count": counts}))
        writer.add_key_value_metadata({KEY: json.dumps(description).encode()})


def test_an_honest_release_with_its_ledger_and_signature(here, account):
    release = plan().publish(COUNTS, ledger=account, label="by hour")
    path = release.save("visits.sfumato")
    key = sf.SigningKey.create("publisher.key")
    key.sign(path)
    found = sf.verify(path, key=key.public, ledger="budget.db")
    outcomes = {check.name: check.outcome for check in found.checks}
    assert outcomes == {"file": "holds", "noise": "holds", "figures": "open", "ledger": "holds", "signature": "holds"}
    assert found and "as 'by hour', under the same policy: ε = 0.5" in found["ledger"].words
    assert "tells at most ε = 0.5 of a change" in found["noise"].words
    assert "by the auditor" in found["noise"].words
    assert "That nothing else was published about the same people" in str(found)
    assert json.loads(json.dumps(found.to_dict()))["passed"] is True


@pytest.mark.parametrize("name", ["identity", "prefix", "haar", "hierarchy", "hats", "edges", "spanner", "sorted"])
def test_what_the_noise_tells_is_computed_anew(here, name):
    release = sf.plan(POLICY, sf.ranges(), epsilon="1/3", mechanism=name).publish(COUNTS)
    found = sf.verify(release.save("visits.sfumato"))
    assert found["noise"].outcome == "holds"
    assert "ε = 1/3" in found["noise"].words


def test_a_promise_about_persons_is_set_against_all_their_records(here):
    person = sf.plan(sf.unbounded(LINE), sf.histogram(), epsilon=1, max_per_entity=4)
    counts = sf.Counts(COUNTS, LINE, max_per_entity=4)
    found = sf.verify(person.publish(counts).save("visits.sfumato"))
    assert "tells at most ε = 1 (4 × 0.25)" in found["noise"].words


def test_a_changed_byte_anywhere_shows(here):
    """Every 17th byte: damage is refused by the reader, or the signature tells."""
    path = plan().publish(COUNTS).save("visits.sfumato")
    key = sf.SigningKey.create("publisher.key")
    key.sign(path)
    content = path.read_bytes()
    for place in range(0, len(content), 17):
        path.write_bytes(content[:place] + bytes([content[place] ^ 1]) + content[place + 1 :])
        found = sf.verify(path, key=key.public)
        assert not found.passed, place
        assert found["signature"].outcome == "fails"
        assert "changed since" in found["signature"].words
    path.write_bytes(content)
    assert sf.verify(path, key=key.public).passed


def test_a_damaged_file_without_a_signature_is_a_failed_check_and_no_error(here):
    path = plan().publish(COUNTS).save("visits.sfumato")
    content = path.read_bytes()
    path.write_bytes(content[: len(content) // 2])
    assert [check.outcome for check in sf.verify(path).checks] == ["fails", "open"]
    path.write_bytes(b"X" + content[1:])
    assert sf.verify(path)["file"].words == "it is no release, or damaged from its first bytes, and not signed"
    with pytest.raises(FileNotFoundError):
        sf.verify("nowhere.sfumato")


def test_an_edited_promise_is_refused_and_an_edited_epsilon_is_found_in_the_ledger(here, account):
    release = plan().publish(COUNTS, ledger=account)
    path = release.save("visits.sfumato")
    rewritten(path, lambda said: said["guarantee"].update(epsilon="1/10"))
    found = sf.verify(path, ledger=account)
    assert found["file"].outcome == "fails"
    assert "its mechanism spends 0.5: it was edited" in found["file"].words
    release.save(path)
    rewritten(path, lambda said: (said["guarantee"].update(epsilon="2"), said["mechanism"].update(epsilon="2")))
    found = sf.verify(path, ledger=account)
    assert (found["file"].outcome, found["noise"].outcome, found["ledger"].outcome) == ("holds", "holds", "fails")
    assert "it claims ε = 2, and ε = 0.5 was charged" in found["ledger"].words


def test_another_policy_or_unit_than_was_charged_is_found(here, account):
    path = plan().publish(COUNTS, ledger=account).save("visits.sfumato")
    rewritten(path, lambda said: said["guarantee"]["policy"].update(theta=1))
    assert (
        "it is under another policy or domain than the one that was charged"
        in sf.verify(path, ledger=account)["ledger"].words
    )
    rewritten(path, lambda said: said["guarantee"]["policy"].update(theta=2))
    rewritten(path, lambda said: said["guarantee"].update(max_per_entity=3))
    words = sf.verify(path, ledger=account)["ledger"].words
    assert "its unit is record, at most 3 counted of each person, and record was charged" in words


def test_a_release_that_was_never_charged(here, account):
    path = plan().publish(COUNTS).save("visits.sfumato")
    assert "whether anybody keeps account of it is not known" in sf.verify(path)["ledger"].words
    found = sf.verify(path, ledger="budget.db")
    assert found["ledger"].outcome == "fails"
    assert "accounts looked at: 'default'" in found["ledger"].words
    with pytest.raises(sf.InvalidInput, match="dataset='visits' is not the account of the ledger that is given"):
        sf.verify(path, ledger=account, dataset="visits")
    with pytest.raises(sf.InvalidInput, match="dataset='visits' names an account, and no ledger is given"):
        sf.verify(path, dataset="visits")


def test_a_promise_about_persons_in_the_ledger(here):
    ledger = sf.Ledger.create("persons.db", epsilon=5)
    person = sf.plan(sf.unbounded(LINE), sf.histogram(), epsilon=1, max_per_entity=4)
    path = person.publish(sf.Counts(COUNTS, LINE, max_per_entity=4), ledger=ledger).save("visits.sfumato")
    assert sf.verify(path, ledger=ledger)["ledger"].outcome == "holds"
    with pytest.raises(sf.LedgerError):
        sf.verify(path, ledger="nowhere.db")


def test_the_account_is_found_among_several(here, account):
    other = sf.Ledger.create("budget.db", epsilon=1, dataset="other")
    path = plan().publish(COUNTS, ledger=other).save("visits.sfumato")
    assert "account 'other'" in sf.verify(path, ledger="budget.db")["ledger"].words
    assert sf.verify(path, ledger="budget.db", dataset="default")["ledger"].outcome == "fails"


def test_levels_of_a_refined_release(here, account):
    vault = sf.Vault("secrets", key="vault.key")
    coarse = plan().publish(COUNTS, ledger=account, vault=vault)
    fine = coarse.refine(epsilon=2, ledger=account, vault=vault)
    first, second = coarse.save("one.sfumato"), fine.save("two.sfumato")
    assert "level 0 of a release that stands at level 1" in sf.verify(first, ledger=account)["ledger"].words
    found = sf.verify(second, ledger=account)
    assert found["ledger"].outcome == "holds" and found["figures"].outcome == "holds"
    assert "its estimates follow from its noisy integers" in found["figures"].words


def test_estimates_that_do_not_follow_from_the_noisy_integers(here):
    vault = sf.Vault("secrets", key="vault.key")
    release = sf.plan(sf.unbounded(LINE), sf.histogram(), epsilon=1).publish(COUNTS, vault=vault)
    path = release.save("visits.sfumato")
    table = pq.read_table(path)
    description = json.loads(pq.ParquetFile(path).metadata.metadata[KEY])
    counts, measured = table.column("count").to_numpy() + 5.0, table.column("measured").to_numpy().astype(np.int64)
    rest = {name: value for name, value in description.items() if name != "digest"}
    description["digest"] = digest_of(rest, counts, measured.reshape(description["measured"]))
    forged = pa.table({"count": counts, "measured": measured})
    with pq.ParquetWriter(path, forged.schema, store_schema=False) as writer:
        writer.write_table(forged)
        writer.add_key_value_metadata({KEY: json.dumps(description).encode()})
    assert sf.load(path).counts[0] == counts[0]  # it reads: only verifying notices
    assert sf.verify(path)["figures"].words == "its estimates do not follow from its integers"


def test_a_public_total_that_is_no_number_of_records(here):
    path = plan().publish(COUNTS).save("visits.sfumato")
    description = json.loads(pq.ParquetFile(path).metadata.metadata[KEY])
    counts = pq.read_table(path).column("count").to_numpy() + 0.01
    rest = {name: value for name, value in description.items() if name != "digest"}
    description["digest"] = digest_of(rest, counts)
    with pq.ParquetWriter(path, pa.table({"count": counts}).schema, store_schema=False) as writer:
        writer.write_table(pa.table({"count": counts}))
        writer.add_key_value_metadata({KEY: json.dumps(description).encode()})
    assert sf.verify(path)["figures"].outcome == "fails"


def test_seeded_randomness_fails(here):
    path = plan().publish(COUNTS, source=sf.SeededSource(1)).save("visits.sfumato")
    found = sf.verify(path)
    assert found["promise"].outcome == "fails"
    assert "promises nothing" in found["promise"].words


def test_a_step_of_a_stream(here, account):
    stream = sf.Stream(POLICY, sf.histogram(), epsilon=1, window=3, ledger=account, name="hourly", allocation="even")
    release = stream.publish(1, COUNTS)
    path = release.save("hour.sfumato")
    found = sf.verify(path, ledger="budget.db")
    assert found["ledger"].outcome == "holds", found
    assert "stream 'hourly' of account 'default'" in found["ledger"].words


def test_an_older_copy_of_the_ledger_does_not_know_the_release(here, account):
    shutil.copy("budget.db", "older.db")
    path = plan().publish(COUNTS, ledger=account).save("visits.sfumato")
    assert sf.verify(path, ledger="older.db")["ledger"].outcome == "fails"


def test_verifying_changes_nothing(here, account):
    path = plan().publish(COUNTS, ledger=account).save("visits.sfumato")
    before = hashlib.sha256(path.read_bytes()).digest(), account.history(), sorted(here.iterdir())
    sf.verify(path, ledger="budget.db")
    assert before == (hashlib.sha256(path.read_bytes()).digest(), account.history(), sorted(here.iterdir()))


def test_large_files_of_few_bytes_are_not_computed_anew(here):
    """A million equal cells pack into little: what is computed follows from the bytes."""
    path = (
        sf.plan(sf.unbounded(sf.Line(0, 1, cells=1 << 17)), sf.histogram(), epsilon=1)
        .publish(np.zeros(1 << 17, dtype=int))
        .save("large.sfumato")
    )
    description = json.loads(pq.ParquetFile(path).metadata.metadata[KEY])
    counts = np.zeros(1 << 17)
    rest = {name: value for name, value in description.items() if name != "digest"}
    description["digest"] = digest_of(rest, counts)
    with pq.ParquetWriter(path, pa.table({"count": counts}).schema, store_schema=False) as writer:
        writer.write_table(pa.table({"count": counts}))
        writer.add_key_value_metadata({KEY: json.dumps(description).encode()})
    found = sf.verify(path)
    assert found["noise"].outcome == "open"
    assert "bytes for 131,072 cells" in found["noise"].words


def test_words_of_a_stranger_are_shown_and_not_obeyed(here):
    lines = sf.Categories(["a\x1b[31m", "b"], name="mode")
    release = sf.plan(sf.unbounded(lines), sf.histogram(), epsilon=1).publish(np.array([1, 2]))
    assert "\x1b" not in str(sf.verify(release.save("visits.sfumato")))


def test_what_noise_tells_of_a_sum_is_of_the_whole_value_of_a_record(here):
    fares = sf.amounts("fare", clip=(0, 10), step=1)
    release = sf.plan(sf.unbounded(LINE), sf.histogram(), epsilon=1, values=fares, mechanism="identity").publish(COUNTS)
    found = sf.verify(release.save("fares.sfumato"))
    assert "tells at most ε = 1 (10 × 0.1)" in found["noise"].words


def test_a_file_cannot_claim_fewer_cells_a_person_than_it_spends_on(here):
    users = sf.people("user", cells=3)
    plan = sf.plan(sf.unbounded(LINE), sf.histogram(), epsilon=3, values=users)
    path = plan.publish(sf.Counts(COUNTS, LINE, max_per_entity=3, counted=users)).save("users.sfumato")
    assert sf.verify(path).passed
    rewritten(path, lambda said: said["guarantee"].update(max_per_entity=1, epsilon="1"))
    found = sf.verify(path)
    assert found["file"].outcome == "fails"
    assert "a person in up to 3 cells" in found["file"].words


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"window": Window.of(4000).to_dict()}, "it claims windows of 4000 steps, and the stream has some of 4 steps"),
        ({"unit": "person", "max_per_entity": 1}, "its unit is person, and that of the stream is record"),
    ],
)
def test_a_step_of_a_stream_promises_what_the_stream_keeps(here, account, change, words):
    stream = sf.Stream(POLICY, sf.ranges(), epsilon=1, window=4, ledger=account, name="visits")
    release = stream.publish(0, COUNTS)
    path = release.save("step.sfumato")
    assert sf.verify(path, ledger=account)["ledger"].outcome == "holds"
    rewritten(path, lambda said: said["guarantee"].update(change))
    found = sf.verify(path, ledger=account)
    assert (found["file"].outcome, found["ledger"].outcome) == ("holds", "fails")
    assert words in found["ledger"].words


def test_a_release_that_stands_alone_is_no_step_of_a_stream(here, account):
    path = plan().publish(COUNTS, ledger=account).save("visits.sfumato")
    claim = {"window": Window.of(7).to_dict(), "window_epsilon": "1/2"}
    rewritten(path, lambda said: said["guarantee"].update(claim))
    words = sf.verify(path, ledger=account)["ledger"].words
    assert "it claims to be a step of a stream, and was charged as a release that stands alone" in words
