"""A job with the settings of a first day, on three brokers: what it makes, writes and shows."""

from __future__ import annotations

import json
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._config import ConfigResource

from lab.addresses import MySqlAddress
from lab.captured_database import CapturedDatabase, captured_database
from lab.fetched_kafka import three_brokers
from lab.free_port import free_ports
from lab.table_designs import ORDER_LINES, ORDERS
from tests.e2e.test_notifications import snapshot_of
from tests.support.kafka import read_all

pytestmark = [pytest.mark.servers, pytest.mark.timeout(300)]

ROWS = 12_000


@pytest.fixture
def play(mysql_address: MySqlAddress, database: str, topic_prefix: str, tmp_path: Path) -> Iterator[CapturedDatabase]:
    """A captured database whose job writes to three brokers."""
    with (
        three_brokers() as (brokers, _),
        captured_database(mysql_address, brokers, database, topic_prefix, tmp_path) as made,
    ):
        yield made


def test_the_settings_of_a_first_day_are_obeyed(play: CapturedDatabase) -> None:
    orders, lines = play.create(ORDERS, ROWS), play.create(ORDER_LINES, 50)
    (port,) = free_ports(1)
    settings = {
        "incsnap.metrics.port": str(port),
        "heartbeat.interval.ms": "300",
        "topic.heartbeat.prefix": "beats",
        "topic.creation.default.replication.factor": "3",
        "topic.creation.default.partitions": "2",
        "topic.creation.default.min.insync.replicas": "2",
        "topic.creation.groups": "lines",
        "topic.creation.lines.include": rf"{play.prefix}\..*\.order_lines",
        "topic.creation.lines.replication.factor": "2",
        "topic.creation.lines.partitions": "5",
        "topic.creation.lines.cleanup.policy": "compact",
        "incsnap.latency.target.ms": "100",
        "errors.max.retries": "5",
        "event.processing.failure.handling.mode": "warn",
        "event.converting.failure.handling.mode": "warn",
        "incsnap.snapshot.throttle.rows.per.second": "2000",
    }
    with play.job(settings) as job, play.notices() as notices:
        job.wait_until_streaming()
        # Rows that are read by some 2,000 in a second take six seconds.
        play.execute_by_row("first", [orders, lines])
        job.wait_until("the time left is known", lambda: _seconds_left(play) is not None)
        left = _seconds_left(play)
        assert left is not None
        assert 0 <= left <= 60
        shown = _metrics(port)
        assert f'incsnap_snapshot_seconds_left{{name="{play.prefix}",table="{orders}"}}' in shown
        play.signal_by_row("smaller", "incsnap-throttle", {"chunk-rows": 100})
        job.wait_until("the limit is shown", lambda: _limits(play)[-1:] == [("chunk-rows", 100)])
        play.signal_by_row("faster", "incsnap-throttle", {"rows-per-second": 0, "chunk-rows": 0})
        job.wait_until("the snapshot's end", lambda: notices.completed("first"))
        play.drain(job)
        job.wait_until("a heartbeat", lambda: bool(_heartbeats(play)))
        assert urllib.request.urlopen(f"http://127.0.0.1:{port}/ready", timeout=10).status == 200
        job.stop()

    assert _shape(play, play.topic(orders)) == (2, 3, "delete", "2")
    assert _shape(play, play.topic(lines))[:3] == (5, 2, "compact")
    beat = _heartbeats(play)[-1]
    assert beat.keys() >= {"ts_ms"}
    for verdict in play.verdicts():
        assert verdict.faults(1) == []


def _seconds_left(play: CapturedDatabase) -> float | None:
    return next((table.seconds_left for table in snapshot_of(play).tables if table.table.endswith("orders")), None)


def _limits(play: CapturedDatabase) -> list[tuple[str, int]]:
    return [(limit.name, limit.most) for limit in snapshot_of(play).limits]


def _metrics(port: int) -> str:
    answer = urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10)
    text: str = answer.read().decode()
    return text


def _heartbeats(play: CapturedDatabase) -> list[dict[str, Any]]:
    read = read_all(play.kafka, f"beats.{play.prefix}", range(1))
    return [json.loads(each.value or b"") for each in read]


def _shape(play: CapturedDatabase, topic: str) -> tuple[int, int, str, str]:
    """Partitions, copies, cleanup.policy and min.insync.replicas of a topic."""
    admin = AdminClient({"bootstrap.servers": play.kafka})
    partitions = admin.list_topics(topic, timeout=20).topics[topic].partitions
    resource = ConfigResource(ConfigResource.Type.TOPIC, topic)
    configured = admin.describe_configs([resource], request_timeout=20)[resource].result()
    policy, least = (configured[name].value for name in ("cleanup.policy", "min.insync.replicas"))
    return len(partitions), len(partitions[0].replicas), policy, least
