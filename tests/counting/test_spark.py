"""Spark on a real cluster of two workers: the counts of every other engine, and nobody beyond their share.

All of it is slow (a cluster takes half a minute to stand), and comes first, so that one process has all of it.
"""

from __future__ import annotations

import base64
import contextlib
import os
import random
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from cases import CASES, SPACED
from spark_cluster import ON_SPARK, Cluster, end, on_spark, shared

import sfumato as sf
from sfumato.counting import spark_logs, spark_partition
from sfumato.counting.columns import Columns
from sfumato.counting.keyed import Keyed
from sfumato.counting.spark import private_spark, with_positions

pytestmark = list(ON_SPARK)


@pytest.fixture
def cluster() -> Cluster:
    return shared()


def same(found: sf.Counts, expected: sf.Counts) -> None:
    assert (found.values == expected.values).all()
    assert found.report == expected.report


BY_EXPRESSION = {"doubles", "labels", "instants", "clocks"}
WAYS = [(name, how) for name in CASES for how in ("by itself", "on its workers", "persons")]


@pytest.mark.parametrize(
    ("name", "how"), [way for way in WAYS if way[0] in BY_EXPRESSION or way[1] != "on its workers"]
)
def test_spark_puts_every_record_in_the_same_cell(name: str, how: str, cluster: Cluster, tmp_path: Path) -> None:
    """For persons the same key chooses the same records, wherever they lie."""
    case = CASES[name]()
    found, expected = (
        sf.count(
            data,
            case.domain,
            engine="numpy" if how == "on its workers" else None,
            **case.keywords,
            **(BOUND | {"source": sf.SeededSource(3)} if how == "persons" else {}),
        )
        for data in (on_spark(case.table, tmp_path, cluster), case.table)
    )
    same(found, expected)


BOUND: dict[str, Any] = {"entity": SPACED, "max_per_entity": 2}


def test_frames_of_pandas_on_spark_are_frames_of_spark(cluster: Cluster, tmp_path: Path) -> None:
    try:
        import pyspark.pandas  # noqa: F401
    except ImportError as error:
        pytest.skip(f"this PySpark has no pandas API with this pandas ({error})")
    case = CASES["doubles"]()
    frame = on_spark(case.table, tmp_path, cluster).pandas_api()
    same(sf.count(frame, case.domain, **case.keywords), sf.count(case.table, case.domain, **case.keywords))


def test_tables_of_a_product_are_counted_on_the_workers(cluster: Cluster, tmp_path: Path) -> None:
    case = CASES["labels"]()
    tables = sf.marginals("kind", ("number", "flag"))
    for more in ({}, BOUND | {"source": sf.SeededSource(5)}):
        found, expected = (
            sf.count(
                data,
                case.domain,
                tables=tables,
                **case.keywords,
                **{**more, "source": sf.SeededSource(5) if more else None},
            )
            for data in (on_spark(case.table, tmp_path, cluster, parts=2 + len(more)), case.table)
        )
        same(found, expected)


def test_two_thousand_labels_are_joined_and_never_shuffled(cluster: Cluster, tmp_path: Path) -> None:
    names = [f"street {i}" for i in range(2000)]
    table = pa.table({"street": [names[i * 7 % 2000] for i in range(5000)]})
    frame, streets = on_spark(table, tmp_path, cluster), sf.Categories(names, name="street")
    assert (sf.count(frame, streets).values == sf.count(table, streets).values).all()
    private = private_spark(frame, Columns(("street",)).fields(streets))
    plan = with_positions(private, streets).to_native()._jdf.queryExecution().executedPlan().toString()
    assert "BroadcastHashJoin" in plan
    assert "Exchange hashpartitioning" not in plan


def test_collations_of_a_column_do_not_make_labels_equal(cluster: Cluster) -> None:
    frame = cluster.session.range(4).selectExpr("collate(elt(id + 1, 'a', 'A', 'b', 'ä'), 'UNICODE_CI') AS k")
    labels = sf.Domain((sf.Labels("k", ("a", "A", "rest"), other="rest"),))
    assert sf.count(frame, labels).values.tolist() == [1, 1, 2]


def crowd(rows: int = 60_000) -> pa.Table:
    """Persons with very different numbers of records; a person's records lie in the person's own cells."""
    rng = np.random.default_rng(23)
    who = (rng.zipf(1.3, rows) % 500).astype(np.int64)
    return pa.table({"who": who, "x": who + 0.1 * rng.integers(0, 10, rows)})


PEOPLE = sf.Line(0, 500, cells=5000)


def test_the_choice_depends_on_the_key_and_the_records_alone(cluster: Cluster, tmp_path: Path) -> None:
    """Not on their order, nor on how they are cut into parts, nor on how many parts choose."""
    table = crowd()
    shuffled = table.take(pa.array(np.random.default_rng(1).permutation(len(table))))
    keyed = {"entity": "who", "max_per_entity": 3}
    expected = sf.count(table, PEOPLE, **keyed, source=sf.SeededSource(9))
    for data, parts in ((table, 2), (shuffled, 5)):
        frame = on_spark(data, tmp_path, cluster, parts)
        cluster.session.conf.set("spark.sql.shuffle.partitions", str(parts + 1))
        try:
            same(sf.count(frame, PEOPLE, **keyed, source=sf.SeededSource(9)), expected)
        finally:
            cluster.session.conf.set("spark.sql.shuffle.partitions", "4")
    other = sf.count(frame, PEOPLE, **keyed)
    assert (other.values != expected.values).any()  # 500 persons: by chance alike with less than 2⁻¹⁰⁰
    assert (other.values.reshape(500, 10).sum(axis=1) <= 3).all()


def test_sums_and_distinct_people_are_counted_on_spark(cluster: Cluster, tmp_path: Path) -> None:
    rng = np.random.default_rng(29)
    fare = pa.array(np.round(rng.normal(20, 30, 3000), 1), mask=rng.random(3000) < 0.1)
    table = crowd(3000).append_column("fare", fare)
    frame = on_spark(table, tmp_path, cluster)
    fares = sf.amounts("fare", clip=(-5, 60), step=0.5)
    for more, chosen in (
        ({"values": fares}, False),
        ({"values": fares, "engine": "numpy"}, False),
        ({"values": fares, "entity": "who", "max_per_entity": 2}, True),
        ({"values": sf.people("who", cells=3)}, True),
    ):
        found, expected = (
            sf.count(data, PEOPLE, **more, **({"source": sf.SeededSource(11)} if chosen else {}))
            for data in (frame, table)
        )
        same(found, expected)


def test_zeros_are_one_person_on_spark_too(cluster: Cluster) -> None:
    frame = cluster.session.range(40).selectExpr("CASE WHEN id % 2 = 0 THEN 0D ELSE -0D END AS who", "0.5D AS x")
    assert sf.count(frame, sf.Line(0, 1, cells=1), entity="who", max_per_entity=3).values.tolist() == [3]


@pytest.mark.parametrize("attempt", range(3))
def test_nobody_exceeds_their_share_when_a_worker_is_killed(attempt: int, cluster: Cluster, tmp_path: Path) -> None:
    """At a random moment, without a word: the part is done again, and chooses the same."""
    table = crowd(400_000)
    frame, keyed = on_spark(table, tmp_path, cluster, 8), {"entity": "who", "max_per_entity": 3}
    expected = sf.count(table, PEOPLE, **keyed, source=sf.SeededSource(attempt))
    killer = threading.Timer(random.uniform(0.1, 2.0), cluster.kill_one, [attempt])  # wherever it hits
    killer.start()
    try:
        found = sf.count(frame, PEOPLE, **keyed, source=sf.SeededSource(attempt))
    finally:
        killer.join()
    same(found, expected)
    assert (found.values.reshape(500, 10).sum(axis=1) <= 3).all()


SECRET = "planted-7f3a"


def failing(cluster: Cluster, how: str) -> Any:
    """Records that cannot be read, each with a secret in it that Spark quotes."""
    frame = cluster.session.range(0, 40, 1, 4)
    if how == "by Spark":
        return frame.selectExpr("id AS who", f"CAST(concat('{SECRET}', id) AS DOUBLE) AS x")

    def broken(batches: Iterator[Any]) -> Iterator[Any]:
        for batch in batches:
            raise ValueError(f"{SECRET} {batch.num_rows}")
        yield

    return frame.mapInArrow(broken, "who bigint, x double")


@pytest.mark.parametrize("bound", [{}, {"entity": "who", "max_per_entity": 1}], ids=["records", "persons"])
@pytest.mark.parametrize("how", ["by Spark", "in a function of the user's"])
def test_no_log_holds_what_a_failing_job_could_not_read(
    how: str, bound: dict[str, Any], cluster: Cluster, capfd: pytest.CaptureFixture[str]
) -> None:
    """Driver and workers write at level INFO here, more than by default."""
    frame = failing(cluster, how)
    with pytest.raises(sf.InvalidInput) as caught:
        sf.count(frame, sf.Line(0, 1, cells=2), **bound)
    assert SECRET not in str(caught.value)
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None
    written = {where: text.count(SECRET) for where, text in cluster.logs.items() if "events" not in where}
    assert len(written) >= 5  # a driver and two workers with two files each
    assert not any(written.values()), written
    assert SECRET not in "".join(capfd.readouterr())


def test_logs_speak_again_afterwards(cluster: Cluster) -> None:
    """The same job outside a count is quoted, so that the test above can fail, and the loggers are what they were."""
    frame = failing(cluster, "by Spark")
    with pytest.raises(sf.InvalidInput):
        sf.count(frame, sf.Line(0, 1, cells=2))
    assert not spark_logs._holders
    with pytest.raises(Exception, match=SECRET):
        frame.collect()
    written = {where for where, text in cluster.logs.items() if SECRET in text}
    assert str(cluster.driver_log) in written
    assert any("work" in where for where in written)


@pytest.mark.parametrize("when", ["at once", "under way"])
def test_an_interrupted_count_is_over_on_the_cluster_and_its_loggers_speak(
    when: str, cluster: Cluster, tmp_path: Path
) -> None:
    """Interrupted as soon as Spark does anything at all, and when the workers are at the records."""
    numbers = cluster.session.range(0, 4, 1, 4).selectExpr("CAST(id AS DOUBLE) AS x")
    begun = str(tmp_path / "begun")

    def asleep(batches: Iterator[Any]) -> Iterator[Any]:
        os.close(os.open(begun, os.O_CREAT))
        time.sleep(600)
        yield from batches

    tracker = cluster.session.sparkContext.statusTracker()

    def interrupt() -> None:
        while not (tracker.getActiveJobsIds() if when == "at once" else os.path.exists(begun)):  # noqa: PTH110
            time.sleep(0.01)
        os.kill(os.getpid(), signal.SIGINT)

    frame = numbers.mapInArrow(asleep, numbers.schema)
    thread = threading.Thread(target=interrupt)
    with pytest.raises(KeyboardInterrupt):
        thread.start()
        sf.count(frame, sf.Line(0, 4, cells=2))
    thread.join()
    assert not spark_logs._holders
    assert not spark_logs._undo
    until = time.monotonic() + 300  # what is cancelled ends when its workers have heard of it; asleep it would not
    while tracker.getActiveJobsIds() and time.monotonic() < until:
        time.sleep(0.05)
    assert not tracker.getActiveJobsIds()
    assert sf.count(numbers, sf.Line(0, 4, cells=2)).values.tolist() == [2, 2]  # the session goes on


def test_the_key_is_in_no_plan_and_no_log(cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    keys: list[bytes] = []
    drawn = Keyed.drawn.__func__  # type: ignore[attr-defined]
    monkeypatch.setattr(Keyed, "drawn", classmethod(lambda cls, *given: keys.append(one := drawn(cls, *given)) or one))
    plans = cluster.session._jsparkSession.sharedState().statusStore()
    sf.count(on_spark(crowd(), tmp_path, cluster), PEOPLE, entity="who", max_per_entity=1)
    (choice,) = keys
    shown = [plans.executionsList().apply(i).physicalPlanDescription() for i in range(plans.executionsList().size())]
    text = "".join([*shown, *cluster.logs.values(), repr(choice)])
    for secret in (choice.key, choice.naming_key):
        for written in (secret.hex(), repr(secret)[2:-1], base64.b64encode(secret).decode(), str(list(secret))[1:-1]):
            assert written not in text
    assert any("MapInArrow" in plan for plan in shown)
    assert any("MapInArrow" in log for where, log in cluster.logs.items() if "events" in where)


def test_refusals_before_anything_runs(cluster: Cluster) -> None:
    session, line = cluster.session, sf.Line(0, 1, cells=2)
    frame = session.range(3).selectExpr("0.5D AS x", "array(1) AS list", "'p' AS who")
    refused = {
        "has no column 'z'.*Nothing was counted": lambda: sf.count(frame, line, x="z"),
        r"of type List.*Nothing was counted": lambda: sf.count(frame, line, x="list"),
        "cannot be told from another one.*Nothing was counted": lambda: sf.count(
            frame, line, entity="list", max_per_entity=1
        ),
        r"a stream of Spark.*Nothing was counted.*writeStream\.foreachBatch": lambda: sf.count(
            session.readStream.format("rate").load(), line, x="value"
        ),
        "the axis has none. Nothing was counted": lambda: sf.count(
            session.range(3).selectExpr("timestamp_seconds(id) AS t"),
            sf.Times("1970-01-01", "1971-01-01", every="1d", name="t"),
        ),
        "comes from a frame of Spark.*Nothing was counted": lambda: sf.count(
            session.range(3).selectExpr("unhex('00') AS g"),
            sf.Grid(bounds=(0, 0, 1, 1), shape=(2, 2), crs="EPSG:4326"),
            geometry="g",
        ),
    }
    for message, count in refused.items():
        with pytest.raises(sf.InvalidInput, match=message):
            count()


def test_a_label_that_nobody_declared_is_refused_and_not_shown(cluster: Cluster) -> None:
    frame = cluster.session.range(3).selectExpr(f"'{SECRET}' AS kind", "id AS who")
    for bound in ({}, {"entity": "who", "max_per_entity": 1}):
        with pytest.raises(sf.InvalidInput, match=r"not among its labels\. Nothing was counted") as caught:
            sf.count(frame, sf.Categories(["bus"], name="kind"), **bound)
        assert SECRET not in str(caught.value)


def test_too_little_room_on_the_driver_has_its_own_words(cluster: Cluster, tmp_path: Path) -> None:
    frame = on_spark(crowd(), tmp_path, cluster)
    conf = cluster.session.sparkContext._jsc.sc().conf()
    conf.set("spark.driver.maxResultSize", "2k")
    try:
        for bound in ({}, {"entity": "who", "max_per_entity": 3}):
            with pytest.raises(sf.TooLarge, match=r"spark\.driver\.maxResultSize lets through.*Nothing was counted"):
                sf.count(frame, PEOPLE, **bound)
    finally:
        conf.remove("spark.driver.maxResultSize")


def test_a_worker_of_another_version_is_refused(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spark_partition, "__version__", "0.0")
    frame = cluster.session.range(3).selectExpr("CAST(id AS DOUBLE) AS x")
    with pytest.raises(sf.InvalidInput, match=r"another version of sfumato.*Nothing was counted"):
        sf.count(frame, sf.Line(0, 3, cells=3), engine="numpy")


def test_a_lost_driver_and_a_stopped_session_are_told_apart(cluster: Cluster) -> None:
    """The last test of the cluster: it ends it."""
    frame = cluster.session.range(3).selectExpr("CAST(id AS DOUBLE) AS x")
    os.kill(cluster.session.sparkContext._gateway.proc.pid, signal.SIGKILL)
    with pytest.raises(sf.InvalidInput, match=r"The Spark cluster was lost while counting.*Nothing was counted"):
        sf.count(frame, sf.Line(0, 3, cells=3))
    with contextlib.suppress(Exception):
        cluster.session.stop()
    with pytest.raises(sf.InvalidInput, match=r"session of the data has stopped\. Nothing was counted\. Start one"):
        sf.count(frame, sf.Line(0, 3, cells=3))
    end()
