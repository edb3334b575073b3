"""The take-over of a connector whose worker has another clock than MySQL, and of topics that Kafka has emptied."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

import pytest
from confluent_kafka import TopicPartition
from pymysql.connections import Connection

from incsnap.kafka.client_settings import ClientSettings
from incsnap.kafka.topics import admin_client
from incsnap.takeover.join import join
from lab.addresses import MySqlAddress
from tests.integration.test_taken_over_records import Topic, places_of_rows, settings_for, topic, written

pytestmark = pytest.mark.servers

__all__ = ["topic"]

_DAY = 24 * 3600


@pytest.mark.parametrize("key", [b'{"id":1}', None], ids=["with a key", "without a key"])
def test_records_behind_an_offset_of_a_later_clock_are_read(
    mysql_address: MySqlAddress, connection: Connection[Any], database: str, topic: Topic, key: bytes | None
) -> None:
    table = f"{database}.t"
    with connection.cursor() as cursor:
        cursor.execute(f"CREATE TABLE {table} (id INT{' PRIMARY KEY' if key else ''})")
    # The last one alone would not do for rows without a key.
    rows = [f"INSERT INTO {table} VALUES (1)", f"DELETE FROM {table}"] * 10
    offset, events = written(connection, *rows)
    for number, place in enumerate(places_of_rows(events)):
        topic.envelope("d" if number % 2 else "c", "", offset.file, place, key=key)

    seam = join(settings_for(mysql_address, topic), replace(offset, seconds=int(time.time()) + _DAY)).place.seam

    assert [each.end.pos for each in seam.ends] == ([places_of_rows(events)[-1]] if key else [])
    assert [len(each.places) for each in seam.keyless] == ([] if key else [20])


def test_a_topic_that_retention_has_emptied_is_named(
    mysql_address: MySqlAddress, connection: Connection[Any], database: str, topic: Topic
) -> None:
    with connection.cursor() as cursor:
        cursor.execute(f"CREATE TABLE {database}.t (id INT PRIMARY KEY)")
    offset, events = written(connection, f"INSERT INTO {database}.t VALUES (1)")
    topic.envelope("c", "", offset.file, places_of_rows(events)[0])
    removed, admin = TopicPartition(topic.name, 0, 1), admin_client(ClientSettings(topic.kafka, {}))
    admin.delete_records([removed], request_timeout=30)[removed].result(30)
    settings, now = settings_for(mysql_address, topic), int(time.time())

    assert join(settings, replace(offset, seconds=now)).warnings == ()
    (warning,) = join(settings, replace(offset, seconds=now - 8 * _DAY)).warnings

    assert warning.startswith(f"{topic.name}: Kafka has removed records (retention)")
