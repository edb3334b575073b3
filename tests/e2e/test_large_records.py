"""Rows that are too large for Kafka: in a snapshot, in the signal table, and as changes under each setting."""

from __future__ import annotations

import json
import secrets
from typing import Any

import pytest

from lab.captured_database import CapturedDatabase
from lab.replay import TopicReplay, replay
from lab.running_job import JobFailed, RunningJob
from signals import send
from tests.support.kafka import read_all

pytestmark = pytest.mark.servers

#: Bytes: more than the default of a client, and of a broker for a record that cannot be compressed.
LARGE = 1_200_000
#: The client's limit here, so that the brokers decide on most records.
CLIENT = 8_000_000


def incompressible(size: int) -> str:
    return secrets.token_hex(size // 2)


def living(play: CapturedDatabase, table: str) -> dict[Any, Any]:
    topic = TopicReplay()
    replay(play.kafka, {f"{play.prefix}.{table}": topic})
    assert topic.judgement.faults() == []
    return topic.living


def test_rows_that_are_too_large_hold_up_neither_the_table_nor_the_job(play: CapturedDatabase) -> None:
    docs = f"{play.database}.docs"
    with play.connect() as connection, connection.cursor() as cursor:
        cursor.execute(f"CREATE TABLE {docs} (id INT PRIMARY KEY, body LONGTEXT, version BIGINT NOT NULL)")
        cursor.execute(f"ALTER TABLE {play.signals.sql} MODIFY data LONGTEXT")
        bodies = dict.fromkeys(range(1, 41), "small")
        bodies |= {3: "x" * 5_000_000, 5: incompressible(LARGE + 200_000), 7: "x" * (CLIENT + 1_000_000)}
        cursor.executemany(f"INSERT INTO {docs} VALUES (%s, %s, 0)", list(bodies.items()))
        settings = {
            "table.include.list": f"{play.database}\\..*",
            "producer.override.max.request.size": str(CLIENT),
            "incsnap.oversized.change.handling.mode": "dead_letter",
        }
        with play.job(settings) as job, play.notices() as notices:
            job.wait_until_streaming()
            play.signal_by_row("all", "execute-snapshot", send.snapshot_data([docs]))
            job.wait_until("its end", lambda: notices.completed("all"))
            too_large = {"note": incompressible(LARGE + 200_000)}
            play.signal_by_row("too-large", "execute-snapshot", {**send.snapshot_data([docs]), **too_large})
            cursor.execute(f"UPDATE {docs} SET body = %s, version = 1 WHERE id = 9", (incompressible(LARGE),))
            cursor.execute(f"UPDATE {docs} SET body = 'smaller', version = 1 WHERE id = 10")
            play.drain(job)
            log = job.log_tail(400)
            job.stop()

    given_up = {note["additional_data"]["last_key"]: note["additional_data"] for note in notices.of("QUARANTINED")}
    assert given_up.keys() == {"5", "7"}
    assert "max.message.bytes of topic" in given_up["5"]["error"]
    assert " is 1048588" in given_up["5"]["error"]
    assert f"producer.max.request.size is {CLIENT}" in given_up["7"]["error"]
    (ended,) = notices.of("TABLE_SCAN_COMPLETED")
    assert (ended["additional_data"]["status"], ended["additional_data"]["missing_keys"]) == ("INCOMPLETE", "5; 7")
    assert not notices.of("STARTED", "too-large")
    assert f"A record of {play.signals} is too large" in log or f"A change of {play.signals} is too large" in log
    assert "Signal too-large" in log
    assert living(play, docs).keys() == {(i,) for i in bodies} - {(5,), (7,)}
    (letter,) = read_all(play.kafka, f"{play.prefix}.incsnap-dead-letters", (0, 1))
    assert letter.key == b'{"id":9}'
    content = json.loads(letter.value or b"")
    assert (content["table"], content["topic"], content["key"]) == (docs, f"{play.prefix}.{docs}", "9")
    assert "max.message.bytes" in content["reason"]
    assert ":" in content["position"]


def test_a_change_too_large_for_kafka_stops_the_job_unless_a_setting_allows_it(
    play: CapturedDatabase,
) -> None:
    docs = f"{play.database}.docs"
    settings = {"table.include.list": f"{play.database}\\..*"}
    with play.connect() as connection, connection.cursor() as cursor:
        cursor.execute(f"CREATE TABLE {docs} (id INT PRIMARY KEY, body LONGTEXT, version BIGINT NOT NULL)")
        with play.job(settings) as job:
            job.wait_until_streaming()
            cursor.execute(f"INSERT INTO {docs} VALUES (1, %s, 0)", ("x" * LARGE,))
            ended(job)
            log = job.log_tail(60)
        assert f"A change of {docs} is too large for Kafka: key 1, " in log
        assert "GTID " in log
        assert "producer.max.request.size is 1000000" in log
        cursor.execute(f"INSERT INTO {docs} VALUES (2, 'small', 0)")
        # Without the setting the batch, whose plan is on the disk, fails again.
        with play.job(settings) as job:
            ended(job)
        cutting = {
            **settings,
            "incsnap.oversized.change.handling.mode": "truncate",
            "incsnap.oversized.change.truncate.columns": f"{play.database}\\.docs\\.body",
        }
        with play.job(cutting) as job:
            play.drain(job)
            job.stop()
    rows = living(play, docs)
    assert rows.keys() == {(1,), (2,)}
    (body,) = [value for value in rows[1,] if isinstance(value, str)]
    assert 980_000 < len(body) < 1_000_000


def ended(job: RunningJob) -> None:
    """Wait until the job has ended with an error."""
    with pytest.raises(JobFailed):
        job.wait_until("its end", lambda: False)
    assert job.exit_code() == 1
