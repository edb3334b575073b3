"""The settings that a task's process takes from the pickled object: how to log, and how to reach an object store."""

from __future__ import annotations

import logging
import pickle
from pathlib import Path

import pytest

from incsnap.config.load import from_properties
from incsnap.config.object_store import StoreAccess
from incsnap.config.settings import Settings
from incsnap.errors import SinkError
from incsnap.planner.chunk_readers import Address
from incsnap.snapshot.offset import TopicLayout
from incsnap.spark import process_log, sink, source
from incsnap.spark.sink import KafkaWriter, SinkOptions
from incsnap.spark.source import BinlogReader, SourceOptions
from incsnap.tasks.partitions import ReadyPart

SetUps = list[tuple[int, str]]
HOW = (logging.DEBUG, "json")


@pytest.fixture
def set_ups(monkeypatch: pytest.MonkeyPatch) -> SetUps:
    """Return a list with the arguments of each set-up of the log."""
    calls: SetUps = []
    monkeypatch.setattr(process_log, "set_up", lambda *how: calls.append(how))
    return calls


def test_a_task_of_the_sink_logs_as_the_job_does(tmp_path: Path, set_ups: SetUps) -> None:
    level, form = HOW
    options = SinkOptions(
        settings=settings_at(str(tmp_path)).to_json(),
        job_id="job",
        log_level=level,
    )
    assert settings_at(str(tmp_path)).monitoring.log_format == form
    writer = pickle.loads(pickle.dumps(KafkaWriter(SinkOptions.model_validate_json(options.model_dump_json()))))

    writer.write(iter([]))

    assert set_ups == [HOW]


def test_a_task_of_the_sink_that_fails_says_why_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def refuse(*_: object) -> None:
        raise SinkError("the topic t is not there any more")

    monkeypatch.setattr(sink, "write_bucket", refuse)
    options = SinkOptions(settings=settings_at(str(tmp_path)).to_json(), job_id="job")

    with pytest.raises(SinkError):
        KafkaWriter(options).write(iter([]))

    assert "A sink task for the topics shop failed: the topic t is not there any more" in caplog.text


def test_a_task_of_the_source_logs_as_the_job_does(tmp_path: Path, set_ups: SetUps) -> None:
    packed = packed_reader(str(tmp_path))
    set_ups.clear()

    list(pickle.loads(packed).read(ReadyPart(1, TopicLayout(1), ())))

    assert set_ups == [HOW]


def test_a_source_task_knows_how_to_reach_the_bucket_of_large_slices(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    location = "s3a://lake/shop"
    packed = packed_reader(location, **{"spark.hadoop.fs.s3a.access.key": "it", "spark.hadoop.fs.s3a.secret.key": "is"})
    reached: list[tuple[str, StoreAccess]] = []
    monkeypatch.setattr(source, "set_access", lambda *how: reached.append(how))

    list(pickle.loads(packed).read(ReadyPart(1, TopicLayout(1), ())))

    ((place, store),) = reached
    assert place == location
    assert store.secret_key.get_secret_value() == "is"


def settings_at(location: str, **more: str) -> Settings:
    return from_properties(
        {
            "database.hostname": "127.0.0.1",
            "database.user": "cdc",
            "topic.prefix": "shop",
            "bootstrap.servers": "127.0.0.1:1",
            "checkpoint.location": location,
            "snapshot.mode": "no_data",
            "incsnap.log.format": "json",
            **more,
        }
    ).settings


def packed_reader(location: str, **more: str) -> bytes:
    options = SourceOptions(
        settings=settings_at(location, **more).to_json(),
        buckets=1,
        slices=1,
        readers=1,
        address=Address("", ""),
        report_path="",
        log_level=logging.DEBUG,
    )
    return pickle.dumps(BinlogReader(options))
