"""Signals made to stop a job, on every channel of a real planner: each is a warning, and its place is stored."""

from __future__ import annotations

import json
import logging
import resource
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from lab.addresses import MySqlAddress
from lab.mysql_client import connect as open_session
from signals import send
from signals.parse import parse
from tests.support.planned_job import PlannedJob, settings_of

pytestmark = pytest.mark.servers

#: Of 266 characters and fewer; each took gigabytes, or for ever, once it was compiled or matched without bounds.
_BOMBS = [
    "(?:(?:[ab]c){1000}){1000}",
    "(?:" * 32 + "[ab]{2}" + "){9}" * 32,
    "(?=.)(?:(?:(?:ab|cd){100}){100}){100}",
    "(?=.)(a|aa|a*)*(x+x+)+y",
    "(" * 133 + ")" * 133,
    "\ud800",
]
_DATA: list[Any] = [
    *({"data-collections": [bomb]} for bomb in _BOMBS),
    {"data-collections": [bomb + ".*" for bomb in _BOMBS]},
    {"data-collections": [".*"], "additional-conditions": [{"data-collection": _BOMBS[0], "filter": "1 = 1"}]},
    {"data-collections": [".*"], "additional-conditions": [{"data-collection": ".*", "filter": "1 --\x01) OR (1"}]},
    {"data-collections": [".*"], "additional-conditions": [{"data-collection": ".*", "filter": "1" + " + 1" * 5_000}]},
]


@pytest.fixture
def job(
    mysql_address: MySqlAddress, kafka_address: str, database: str, topic_prefix: str, tmp_path: Path
) -> Iterator[PlannedJob]:
    admin = AdminClient({"bootstrap.servers": kafka_address})
    topic = f"{topic_prefix}-signal"
    admin.create_topics([NewTopic(topic, num_partitions=1, replication_factor=1)], request_timeout=30)[topic].result(30)
    with closing(_connect(mysql_address)) as connection, connection.cursor() as cursor:
        cursor.execute(f"CREATE TABLE {database}.sig (id VARCHAR(42) PRIMARY KEY, type VARCHAR(32), data MEDIUMTEXT)")
        cursor.execute(f"CREATE TABLE {database}.t (id INT PRIMARY KEY)")
        cursor.execute(f"INSERT INTO {database}.t VALUES (1), (2)")
    settings = settings_of(
        mysql_address,
        kafka_address,
        topic_prefix,
        database,
        signal__enabled__channels="source,kafka,file",
        signal__data__collection=f"{database}.sig",
        signal__file=str(tmp_path / "signals"),
        signal__poll__interval__ms="1",
    )
    job = PlannedJob(settings, str(tmp_path / "checkpoint"))
    try:
        yield job
    finally:
        job.close()
        admin.delete_topics([topic], request_timeout=30)


def _connect(address: MySqlAddress) -> Any:
    return open_session(address)


def _send(job: PlannedJob, address: MySqlAddress, name: str, kind: str, data: Any) -> None:
    """Send the signal by each channel. Its id ends with the channel's name."""
    settings = job.settings
    signals = settings.signals
    assert signals.data_collection
    with closing(_connect(address)) as connection:
        send.to_table(connection, signals.data_collection.sql, f"{name}-source", kind, data)
    send.to_file(signals.file, f"{name}-file", kind, data)
    place = (signals.kafka_bootstrap_servers, signals.kafka_topic, settings.topic_prefix)
    send.to_topic(*place, f"{name}-kafka", kind, data)


def _until_read(job: PlannedJob, *names: str) -> None:
    """Batches until the snapshots that these signals ask for are complete."""
    left = set(names)

    def complete() -> bool:
        left.difference_update(n.id for n in job.offset.snapshot.notifications if n.type == "COMPLETED")
        return not left

    job.batches_until(complete, f"end of {names}")


def test_hostile_signals_neither_fill_the_memory_nor_stop_the_job_nor_come_again(
    job: PlannedJob, mysql_address: MySqlAddress, database: str, caplog: pytest.LogCaptureFixture
) -> None:
    job.batch()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for number, data in enumerate(_DATA):
        _send(job, mysql_address, f"bad-{number}", "execute-snapshot", data)
        if data["data-collections"] != [".*"]:
            _send(job, mysql_address, f"stop-{number}", "stop-snapshot", data)
    good = send.snapshot_data([f"{database}.t"])
    _send(job, mysql_address, "good", "execute-snapshot", good)
    with caplog.at_level(logging.WARNING):
        _until_read(job, *(f"good-{channel}" for channel in ("source", "kafka", "file")))
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 200 << 10
    for channel in ("source", "kafka", "file"):
        assert f"Signal bad-0-{channel} by channel {channel} is ignored" in caplog.text
        assert f"Signal stop-0-{channel} by channel {channel} is ignored" in caplog.text

    caplog.clear()
    job.restart()
    _send(job, mysql_address, "again", "execute-snapshot", good)
    with caplog.at_level(logging.WARNING):
        _until_read(job, *(f"again-{channel}" for channel in ("source", "kafka", "file")))
    assert "is ignored" not in caplog.text
    assert "bad-" not in caplog.text


def test_a_signal_that_cannot_be_read_is_a_warning_and_the_next_is_obeyed(
    job: PlannedJob, database: str, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    understood = parse

    def defect(record: Any) -> Any:
        if record.id == "defect":
            raise ZeroDivisionError("a defect of ours")
        return understood(record)

    monkeypatch.setattr("incsnap.planner.signal_inbox.parse", defect)
    good = send.snapshot_data([f"{database}.t"])
    send.to_file(job.settings.signals.file, "defect", "execute-snapshot", good)
    send.to_file(job.settings.signals.file, "good", "execute-snapshot", good)
    _until_read(job, "good")
    assert "Signal defect by channel file is ignored: it cannot be obeyed: a defect of ours" in caplog.text


def test_a_signal_table_whose_columns_are_no_text_stops_nothing(
    job: PlannedJob, mysql_address: MySqlAddress, database: str, caplog: pytest.LogCaptureFixture
) -> None:
    with closing(_connect(mysql_address)) as connection, connection.cursor() as cursor:
        cursor.execute(f"ALTER TABLE {database}.sig MODIFY id INT, MODIFY data JSON")
        cursor.execute(f"INSERT INTO {database}.sig VALUES (1, 'pause-snapshot', %s)", (json.dumps({"a": [1]}),))
        cursor.execute(f"DELETE FROM {database}.sig")
        cursor.execute(f"ALTER TABLE {database}.sig MODIFY type POINT")
        cursor.execute(f"INSERT INTO {database}.sig VALUES (2, ST_GeomFromText('POINT(1 1)'), NULL)")
    send.to_file(job.settings.signals.file, "good", "execute-snapshot", send.snapshot_data([f"{database}.t"]))
    _until_read(job, "good")
    assert "hold" in caplog.text
    assert "text" in caplog.text
