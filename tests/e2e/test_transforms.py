"""Tables that are routed to one topic, unwrapped and filtered, in a whole job with a snapshot beside changes."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from confluent_kafka.admin import AdminClient

from lab.captured_database import CapturedDatabase
from lab.listening import Follower
from lab.table_designs import ORDERS, PEOPLE
from tests.support.delivery import plan_all_changes
from tests.support.kafka import read_all

pytestmark = pytest.mark.servers

ROWS = 3_000
_WHOSE = "__dbz__physicalTableIdentifier"


@pytest.fixture
def settings(play: CapturedDatabase) -> dict[str, str]:
    return {
        "transforms": "all,unwrap,quiet",
        "transforms.all.type": "io.debezium.transforms.ByLogicalTableRouter",
        "transforms.all.topic.regex": rf"{re.escape(play.prefix)}\..*\.(?:orders|people)",
        "transforms.all.topic.replacement": f"{play.prefix}.everything",
        "transforms.unwrap.type": "io.debezium.transforms.ExtractNewRecordState",
        "transforms.unwrap.delete.tombstone.handling.mode": "rewrite-with-tombstone",
        "transforms.unwrap.add.fields": "op,table",
        "transforms.unwrap.add.headers": "op",
        "transforms.quiet.type": "org.apache.kafka.connect.transforms.Filter",
        "transforms.quiet.predicate": "definitions",
        "predicates": "definitions",
        "predicates.definitions.type": "org.apache.kafka.connect.transforms.predicates.TopicNameMatches",
        "predicates.definitions.pattern": re.escape(play.prefix),
        "topic.creation.default.partitions": "3",
        "incremental.snapshot.chunk.size": "500",
    }


def test_two_tables_in_one_topic_are_what_a_consumer_replays(play: CapturedDatabase, settings: dict[str, str]) -> None:
    orders, people = play.create(ORDERS, ROWS), play.create(PEOPLE, ROWS)
    topic = f"{play.prefix}.everything"
    with play.job(settings) as job:
        job.wait_until_streaming()
        with Follower(play.kafka, topic) as follower, play.connect() as connection, connection.cursor() as cursor:
            play.execute_by_row("all", [orders, people])
            seen = 0

            def arrived(count: int) -> bool:
                nonlocal seen
                seen += len(follower.poll(0.2))
                return seen >= count

            for id_ in range(2, 400, 4):
                cursor.execute(f"UPDATE {orders.sql} SET qty = 77 WHERE id = {id_}")
            cursor.execute(f"DELETE FROM {orders.sql} WHERE id IN (4, 8)")
            cursor.execute(f"UPDATE {orders.sql} SET id = 1000001 WHERE id = 12")
            cursor.execute(f"DELETE FROM {orders.sql} WHERE id > 5000 AND id < 5100")
            cursor.execute(f"UPDATE {orders.sql} SET qty = 78 WHERE id = 16")
            cursor.execute(f"SELECT id, qty FROM {orders.sql}")
            expected = dict(cursor.fetchall())
            job.wait_until("most was sent", lambda: arrived(2 * ROWS - 100), every=0.0)
            job.wait_until("the snapshot is over", lambda: "COMPLETED" in _notices(play), every=0.2)
        # The snapshot may end before the last of these changes is written.
        plan_all_changes(play, job)
        job.stop()

    rows: dict[tuple[Any, ...], dict[str, Any]] = {}
    for read in read_all(play.kafka, topic, range(3)):
        key = json.loads(read.key or b"")
        whose = key.pop(_WHOSE)
        name = (whose, *key.values())
        headers = [value for header, value in read.headers if header == "__op"]
        if read.value is None:
            assert headers == [b"d"]
            rows.pop(name, None)
            continue
        value = json.loads(read.value)
        assert headers == [value["__op"].encode()]
        assert whose.endswith(f".{value['__table']}")
        if value["__deleted"] == "true":
            rows.pop(name, None)
        else:
            rows[name] = value
    of_orders = {id_: row["qty"] for (table, id_), row in rows.items() if table == play.topic(orders)}
    assert of_orders == expected
    assert sum(table == play.topic(people) for table, _ in rows) == ROWS
    known = AdminClient({"bootstrap.servers": play.kafka}).list_topics(timeout=20).topics
    assert play.prefix not in known
    assert play.topic(orders) not in known


def _notices(play: CapturedDatabase) -> list[str]:
    return [json.loads(read.value or b"{}")["type"] for read in read_all(play.kafka, play.notifications)]


def test_rows_with_keys_of_their_values_and_a_filter_by_columns(play: CapturedDatabase, registry_url: str) -> None:
    """A changed row keeps its snapshot row away, though its key and its partition are others, or it is not sent."""
    orders = play.create(ORDERS, ROWS)
    kafka = "org.apache.kafka.connect.transforms."
    settings = {
        "key.converter": "org.apache.kafka.connect.storage.StringConverter",
        "value.converter": "io.confluent.connect.json.JsonSchemaConverter",
        "value.converter.schema.registry.url": registry_url,
        "transforms": "unwrap,place,keyed,plain,few,quiet",
        "transforms.unwrap.type": "io.debezium.transforms.ExtractNewRecordState",
        "transforms.unwrap.delete.tombstone.handling.mode": "rewrite",
        "transforms.place.type": f"{kafka}InsertField$Value",
        "transforms.place.static.field": "place",
        "transforms.place.static.value": "north",
        "transforms.keyed.type": f"{kafka}ValueToKey",
        "transforms.keyed.fields": "qty",
        "transforms.plain.type": f"{kafka}ExtractField$Key",
        "transforms.plain.field": "qty",
        "transforms.few.type": "io.debezium.transforms.Filter",
        "transforms.few.language": "jsr223.groovy",
        "transforms.few.condition": "value.qty != 77",
        "transforms.few.topic.regex": rf"{re.escape(play.prefix)}\..*\.orders",
        "transforms.quiet.type": f"{kafka}Filter",
        "transforms.quiet.predicate": "others",
        "predicates": "others",
        "predicates.others.type": f"{kafka}predicates.TopicNameMatches",
        "predicates.others.pattern": rf"{re.escape(play.prefix)}(?!.*\.orders$).*",
        "topic.creation.default.partitions": "3",
        "incremental.snapshot.chunk.size": "500",
        "notification.enabled.channels": "log",
    }
    for each in ("place", "keyed", "plain"):
        settings |= {f"transforms.{each}.predicate": "others", f"transforms.{each}.negate": "true"}
    with play.job(settings) as job:
        job.wait_until_streaming()
        with play.connect() as connection, connection.cursor() as cursor:
            play.execute_by_row("all", [orders])
            for id_ in range(2, 400, 4):
                cursor.execute(f"UPDATE {orders.sql} SET qty = 77 WHERE id = {id_}")
                cursor.execute(f"UPDATE {orders.sql} SET qty = {1000 + id_} WHERE id = {id_ + 2}")
            cursor.execute(f"SELECT id, qty FROM {orders.sql}")
            expected = {id_: qty for id_, qty in cursor.fetchall() if qty != 77}
            job.wait_until("the snapshot is over", lambda: "type='COMPLETED'" in job.log_tail(400), every=0.3)
        plan_all_changes(play, job)
        job.stop()

    rows: dict[int, tuple[int, dict[str, Any]]] = {}
    for read in read_all(play.kafka, play.topic(orders), range(3)):
        assert read.value is not None
        assert read.value[:1] == b"\0"
        value = json.loads(read.value[5:])
        assert (None if read.key is None else int(read.key)) == value["qty"]
        assert value["place"] == "north"
        assert value["qty"] != 77
        # The last value of a row that is sent is the newest: a changed row's earlier value has a smaller number.
        if value["id"] not in rows or value["qty"] >= 1000:
            rows[value["id"]] = value["qty"], value
    assert {id_: qty for id_, (qty, _) in rows.items() if id_ in expected} == expected


def test_changed_columns_and_times_in_a_zone_beside_a_snapshot(play: CapturedDatabase) -> None:
    """Rows that are read and changed rows have their times in one zone. Updates alone name columns."""
    orders = play.create(ORDERS, ROWS)
    settings = {
        "transforms": "state,zone,unwrap",
        "transforms.state.type": "io.debezium.transforms.ExtractChangedRecordState",
        "transforms.state.header.changed.name": "changed",
        "transforms.zone.type": "io.debezium.transforms.TimezoneConverter",
        "transforms.zone.converted.timezone": "Asia/Tokyo",
        "transforms.unwrap.type": "io.debezium.transforms.ExtractNewRecordState",
        "transforms.unwrap.delete.tombstone.handling.mode": "drop",
        "transforms.unwrap.add.fields": "op",
        "topic.creation.default.partitions": "3",
        "incremental.snapshot.chunk.size": "500",
        "notification.enabled.channels": "log",
    }
    with play.job(settings) as job:
        job.wait_until_streaming()
        with play.connect() as connection, connection.cursor() as cursor:
            cursor.execute(f"UPDATE {orders.sql} SET qty = 7777, note = 'changed' WHERE id = 2")
            play.execute_by_row("all", [orders])
            cursor.execute("SET time_zone = '+09:00'")
            cursor.execute(
                "SELECT id, CAST(UNIX_TIMESTAMP(created_at) * 1000 AS SIGNED),"
                f" DATE_FORMAT(updated_at, '%Y-%m-%dT%H:%i:%s') FROM {orders.sql}"
            )
            expected = {id_: (created, updated) for id_, created, updated in cursor.fetchall()}
            job.wait_until("the snapshot is over", lambda: "type='COMPLETED'" in job.log_tail(400), every=0.3)
        job.stop()

    changed: dict[str, set[bytes | None]] = {}
    rows: dict[int, tuple[int, str | None]] = {}
    for read in read_all(play.kafka, play.topic(orders), range(3)):
        value = json.loads(read.value or b"")
        changed.setdefault(value["__op"], set()).add(dict(read.headers)["changed"])
        updated = value["updated_at"]
        assert updated is None or updated.endswith("+09:00")
        rows[value["id"]] = value["created_at"], updated and updated[:19]
    assert rows == expected
    assert changed == {"u": {b'["qty","note"]'}, "r": {b"[]"}}
