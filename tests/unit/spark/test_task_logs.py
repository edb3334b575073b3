"""What tasks tell is told at the job's level and in its form, in whichever process they run."""

from __future__ import annotations

import logging
import pickle
from pathlib import Path

import pytest

from incsnap.config.load import from_properties
from incsnap.snapshot.offset import TopicLayout
from incsnap.spark import process_log
from incsnap.spark.sink import KafkaWriter, SinkOptions
from incsnap.spark.source import BinlogReader, SourceOptions
from incsnap.tasks.partitions import ReadyPart

Told = list[tuple[int, str]]
HOW = (logging.DEBUG, "json")


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> Told:
    """How logging was set up, each time."""
    calls: Told = []
    monkeypatch.setattr(process_log, "set_up", lambda *how: calls.append(how))
    return calls


def test_a_task_of_the_sink_logs_as_the_job_does(tmp_path: Path, told: Told) -> None:
    level, form = HOW
    options = SinkOptions(
        bootstrap_servers="127.0.0.1:1",
        prefix="p",
        job_id="job",
        buffer_root=str(tmp_path),
        log_level=level,
        log_format=form,
    )
    writer = pickle.loads(pickle.dumps(KafkaWriter(SinkOptions.model_validate_json(options.to_json()))))

    writer.write(iter([]))

    assert told == [HOW]


def test_a_task_of_the_source_logs_as_the_job_does(tmp_path: Path, told: Told) -> None:
    settings = from_properties(
        {
            "database.hostname": "127.0.0.1",
            "database.user": "cdc",
            "topic.prefix": "shop",
            "bootstrap.servers": "127.0.0.1:1",
            "checkpoint.location": str(tmp_path),
            "snapshot.mode": "no_data",
            "incsnap.log.format": "json",
        }
    ).settings
    options = SourceOptions(
        settings=settings.to_json(),
        buffer_root=str(tmp_path),
        buckets=1,
        slices=1,
        readers=1,
        reader_path="",
        reader_key="",
        report_path="",
        log_level=logging.DEBUG,
    )
    packed = pickle.dumps(BinlogReader(options))
    told.clear()

    list(pickle.loads(packed).read(ReadyPart(1, TopicLayout(1), ())))

    assert told == [HOW]
