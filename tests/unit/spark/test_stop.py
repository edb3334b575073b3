"""A clean stop leaves no planned batch that was not run, and a job whose JVM has died reports this."""

from __future__ import annotations

import json
import threading
from pathlib import Path

import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable

from incsnap.checkpoint.files import Files
from incsnap.checkpoint.location import own_part
from incsnap.config.load import from_properties
from incsnap.config.settings import Settings
from incsnap.monitoring.job_status import NAME
from incsnap.monitoring.status import FAILED, load
from incsnap.planner.chunk_readers import Address
from incsnap.spark import supervision
from incsnap.spark.job import stop
from incsnap.spark.prefix_start import PrefixStart
from incsnap.spark.source import STOP, STOPPED, BinlogReader, SourceOptions
from incsnap.spark.supervision import SparkDied, run_forever
from tests.support.properties import NEEDED
from tests.support.waiting import PATIENCE_SECONDS, wait_until


def settings_in(root: Path) -> Settings:
    return from_properties({**NEEDED, "checkpoint.location": str(root)}, {}).settings


class Query:
    """A query of Spark between two batches: it waits for the planner, and its status says so the whole time."""

    def __init__(self, files: Files) -> None:
        self.files = files
        self.isActive = True
        self.status = {"message": "Getting offsets from incsnap-mysql", "isDataAvailable": False}
        self.stopped = threading.Event()
        self.events: list[str] = []

    def stop(self) -> None:
        self.events.append("stopped")
        self.isActive = False
        self.stopped.set()


def test_a_stop_waits_for_the_batch_that_is_being_planned(tmp_path: Path) -> None:
    settings = settings_in(tmp_path)
    files = Files(own_part(settings.checkpoint_location))
    files.write(STOPPED, b"")  # from an earlier run that was killed
    query = Query(files)
    reader = BinlogReader(
        SourceOptions(
            settings=settings.to_json(),
            buckets=1,
            slices=1,
            readers=1,
            address=Address("", ""),
            report_path="",
        )
    )

    def spark() -> None:
        # The planner asks the server for longer than two polls of Spark's status take. Then the batch is run.
        wait_until(lambda: files.exists(STOP))
        query.stopped.wait(1.5)
        query.events.append("batch run")
        begin: dict[str, object] = {}
        assert reader.latestOffset(begin, ReadAllAvailable()) is begin

    running = threading.Thread(target=spark)
    running.start()
    stop(query, settings)  # type: ignore[arg-type]
    running.join(PATIENCE_SECONDS)

    assert query.events == ["batch run", "stopped"]
    assert not files.exists(STOP)
    assert not files.exists(STOPPED)


class DeadSpark:
    """A session whose JVM was killed, and also the object that starts it."""

    def session(self) -> DeadSpark:
        return self

    def before_query(self) -> None:
        self.is_restored = True

    def stop(self) -> None:
        raise ConnectionRefusedError(111, "Connection refused")


def test_a_job_whose_jvm_is_killed_ends_with_that_and_not_with_what_follows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def begin(spark: DeadSpark, *_: object) -> None:
        spark.stop()

    monkeypatch.setattr(supervision, "begin", begin)
    # There is no Kafka here, so the start is not announced.
    monkeypatch.setattr(PrefixStart, "ensure", lambda self: None)

    dead = DeadSpark()
    with pytest.raises(SparkDied, match="Connection refused"):
        run_forever(settings_in(tmp_path), dead)  # type: ignore[arg-type]
    assert dead.is_restored, "what the query needs was not looked at before it"
    # The last status of the job.
    left = load(json.loads((Path(own_part(settings_in(tmp_path).checkpoint_location)) / NAME).read_text()))
    assert left.state == FAILED
    assert left.failure is not None
    assert "Connection refused" in left.failure.message
