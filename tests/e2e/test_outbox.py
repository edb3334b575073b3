"""An outbox table in a whole job: events in the topics that rows name, in order for each key, and a snapshot."""

from __future__ import annotations

import json
import re
from collections import defaultdict

import pytest
from confluent_kafka.admin import AdminClient

from incsnap.tables import TableId
from lab.captured_database import CapturedDatabase
from tests.support.kafka import Read, read_all

pytestmark = pytest.mark.servers

EVENTS, OLD = 3_000, 50


def test_events_of_a_key_are_in_order_and_topics_are_made_for_them(play: CapturedDatabase) -> None:
    outbox, start = TableId(play.database, "outbox"), f"{play.prefix}.event"
    topics = [f"{start}.order", f"{start}.person"]
    settings = {
        "table.include.list": re.escape(str(outbox)),
        "transforms": "outbox",
        "transforms.outbox.type": "io.debezium.transforms.outbox.EventRouter",
        "transforms.outbox.route.topic.replacement": f"{start}.${{routedByValue}}",
        "transforms.outbox.predicate": "outbox",
        "predicates": "outbox",
        "predicates.outbox.type": "org.apache.kafka.connect.transforms.predicates.TopicNameMatches",
        "predicates.outbox.pattern": re.escape(play.topic(outbox)),
        "topic.creation.default.partitions": "3",
        "incremental.snapshot.chunk.size": "10",
    }
    insert = f"INSERT INTO {outbox.sql} (aggregatetype, aggregateid, payload) VALUES (%s, %s, %s)"
    rows = [(("order", "person")[number % 2], f"key-{number % 7}", str(number)) for number in range(OLD + EVENTS)]
    with play.connect() as connection, connection.cursor() as cursor:
        cursor.execute(
            f"CREATE TABLE {outbox.sql} (id INT PRIMARY KEY AUTO_INCREMENT, aggregatetype VARCHAR(20) NOT NULL,"
            " aggregateid VARCHAR(20) NOT NULL, payload TEXT)"
        )
        cursor.executemany(insert, rows[:OLD])
        with play.job(settings) as job:
            job.wait_until_streaming()
            play.execute_by_row("old", [outbox])
            for begin in range(OLD, OLD + EVENTS, 100):
                cursor.executemany(insert, rows[begin : begin + 100])
            job.wait_until("the snapshot is over", lambda: _is_over(play), every=0.2)
            job.wait_until("all is there", lambda: len(_numbers(play, topics)) == OLD + EVENTS, every=0.5)
            job.stop()

    order: dict[tuple[str, bytes], list[int]] = defaultdict(list)
    for topic in topics:
        for read in read_all(play.kafka, topic, range(3)):
            assert read.key is not None
            assert [name for name, _ in read.headers] == ["id"]
            if (number := _number(read)) >= OLD:
                order[topic, read.key].append(number)
    for (topic, key), numbers in order.items():
        # A row that a chunk has read too comes twice. The first time counts.
        first = list(dict.fromkeys(numbers))
        written = range(OLD, OLD + EVENTS)
        parity, whose = topics.index(topic), int(json.loads(key).removeprefix("key-"))
        assert first == [number for number in written if number % 2 == parity and number % 7 == whose]
    assert len(order) == 14
    assert play.topic(outbox) not in AdminClient({"bootstrap.servers": play.kafka}).list_topics(timeout=20).topics


def _number(read: Read) -> int:
    return int(json.loads(read.value or b""))


def _existing(play: CapturedDatabase, topics: list[str]) -> list[str]:
    known = AdminClient({"bootstrap.servers": play.kafka}).list_topics(timeout=20).topics
    return [topic for topic in topics if topic in known]


def _numbers(play: CapturedDatabase, topics: list[str]) -> set[int]:
    return {_number(read) for topic in _existing(play, topics) for read in read_all(play.kafka, topic, range(3))}


def _is_over(play: CapturedDatabase) -> bool:
    notices = [read for topic in _existing(play, [play.notifications]) for read in read_all(play.kafka, topic)]
    return "COMPLETED" in [json.loads(read.value or b"{}")["type"] for read in notices]
