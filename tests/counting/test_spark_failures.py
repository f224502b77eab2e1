"""What goes wrong on Spark, in our own words: without a cluster, by what engines and workers say."""

from __future__ import annotations

import pytest

import sfumato as sf
from sfumato.counting import spark_failures
from sfumato.counting.spark import from_pandas_on_spark


@pytest.mark.parametrize(
    ("engine", "said"),
    [
        (
            "PythonException: ModuleNotFoundError: No module named 'sfumato'",
            "no package 'sfumato'",
        ),
        ("PythonException: ModuleNotFoundError: No module named 'user_7f3a'", "Spark stopped with RuntimeError"),
        ("[PYTHON_VERSION_MISMATCH] Python in worker has different version", "different versions of Python"),
        ("ExecutorLostFailure (executor 3 exited) Reason: x", "The Spark cluster was lost while counting"),
        ("java.lang.OutOfMemoryError: Java heap space", "ran out of memory"),
        ("[CAST_INVALID_INPUT] The value '7f3a'", "Spark stopped with RuntimeError. Its message may quote a record"),
    ],
)
def test_every_mishap_has_its_own_words(engine: str, said: str) -> None:
    def work() -> None:
        raise RuntimeError(engine)

    with pytest.raises(sf.SfumatoError, match=f"(?s){said}.*Nothing was counted") as caught:
        spark_failures.explained("The records could not be counted", work)
    assert "7f3a" not in str(caught.value)
    assert caught.value.__context__ is None


def test_a_gateway_that_does_not_answer_is_a_lost_cluster() -> None:
    gone = type("Py4JError", (Exception,), {})("An error occurred while calling o30.sc")

    def work() -> None:
        raise gone

    with pytest.raises(sf.InvalidInput, match=r"The Spark cluster was lost while counting.*Nothing was counted"):
        spark_failures.explained("The Spark session could not be asked", work)


def test_an_error_of_ours_on_a_worker_comes_through_and_any_other_is_a_class() -> None:
    ours, foreign = sf.InvalidInput("Axis 'mode': some values. Nothing was counted."), KeyError("7f3a")
    for error, said in ((ours, str(ours)), (foreign, "Spark stopped with KeyError.")):
        worker = RuntimeError(f"PythonException: Traceback: {spark_failures.told(error)!r} at Task.run")

        def work(worker: Exception = worker) -> None:
            raise worker

        with pytest.raises(sf.InvalidInput) as caught:
            spark_failures.explained("The records could not be counted", work)
        assert said in str(caught.value)
        assert "7f3a" not in str(caught.value)
    assert "7f3a" not in str(spark_failures.told(foreign))


def test_interruptions_go_through_also_where_something_fails_because_of_them() -> None:
    def interrupted() -> None:
        raise KeyboardInterrupt

    def cancelled() -> None:
        try:
            raise KeyboardInterrupt
        finally:
            raise RuntimeError("Job 3 cancelled: 7f3a")

    for work in (interrupted, cancelled):
        with pytest.raises(KeyboardInterrupt) as caught:
            spark_failures.explained("The records could not be counted", work)
        assert caught.value.__context__ is None


def test_frames_of_pandas_on_spark_are_told_by_their_type() -> None:
    frame = type("DataFrame", (), {"__module__": "pyspark.pandas.frame", "to_spark": lambda self: "a frame of Spark"})()
    assert from_pandas_on_spark(frame) == "a frame of Spark"
    assert from_pandas_on_spark("anything else") == "anything else"
