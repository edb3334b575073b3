"""Avro values, keys with schemas, transactions, a truncation, schema changes and a masked column, in a whole job."""

from __future__ import annotations

import functools
import io
import json
import urllib.request
from typing import Any

import fastavro
import pytest

from lab.captured_database import CapturedDatabase
from lab.listening import Follower
from lab.table_designs import ORDERS
from tests.support.kafka import Read, read_all

pytestmark = pytest.mark.servers

ROWS = 2_000


@pytest.fixture
def settings(play: CapturedDatabase, registry_url: str) -> dict[str, str]:
    return {
        "key.converter": "org.apache.kafka.connect.json.JsonConverter",
        "value.converter": "io.confluent.connect.avro.AvroConverter",
        "value.converter.schema.registry.url": registry_url,
        # The database's name has a dash, which Avro does not allow.
        "schema.name.adjustment.mode": "avro",
        "provide.transaction.metadata": "true",
        "skipped.operations": "none",
        "column.mask.with.5.chars": f"{play.database}\\.orders\\.note",
        "topic.creation.default.partitions": "1",
        "time.precision.mode": "connect",
    }


def test_a_job_that_writes_avro_is_read_by_the_schemas_of_the_registry(
    play: CapturedDatabase, registry_url: str, settings: dict[str, str]
) -> None:
    orders = play.create(ORDERS, ROWS)
    topic = play.topic(orders)

    @functools.cache
    def schema(number: int) -> Any:
        # tests/integration/test_registry.py uses Confluent's own reader.
        with urllib.request.urlopen(f"{registry_url}/schemas/ids/{number}", timeout=20) as answer:
            return fastavro.parse_schema(json.loads(json.load(answer)["schema"]))

    def decoded(value: bytes | None) -> Any:
        if value is None:
            return None
        assert value[0] == 0
        return fastavro.schemaless_reader(io.BytesIO(value[5:]), schema(int.from_bytes(value[1:5])), None)

    def values(name: str) -> list[tuple[Read, Any]]:
        return [(each, decoded(each.value)) for each in read_all(play.kafka, name)]

    with play.job(settings) as job:
        job.wait_until_streaming()
        with Follower(play.kafka, topic) as follower, play.connect() as connection, connection.cursor() as cursor:
            seen = 0

            def arrived(count: int) -> bool:
                nonlocal seen
                seen += len(follower.poll(0.2))
                return seen >= count

            play.execute_by_row("all", [orders])
            job.wait_until("all rows were read", lambda: arrived(ROWS), every=0.0)
            cursor.execute("BEGIN")
            cursor.execute(f"UPDATE {orders.sql} SET qty = 1, version = 1 WHERE id IN (2, 4)")
            cursor.execute(f"DELETE FROM {orders.sql} WHERE id = 6")
            cursor.execute("COMMIT")
            cursor.execute(f"ALTER TABLE {orders.sql} ADD COLUMN weight INT NOT NULL DEFAULT 7")
            cursor.execute(f"UPDATE {orders.sql} SET version = 2 WHERE id = 8")
            cursor.execute(f"TRUNCATE TABLE {orders.sql}")
            # Two updates, a deletion and its tombstone, an update, a truncation.
            job.wait_until("all changes were sent", lambda: arrived(ROWS + 6), every=0.0)
        job.stop()

        records = values(topic)
        reads = [value for _, value in records if value and value["op"] == "r"]
        assert sorted(value["after"]["id"] for value in reads) == list(range(2, 2 * ROWS + 1, 2)), (
            "every second number is an order"
        )
        assert {value["after"]["note"] for value in reads} == {"*****"}
        changes = records[ROWS:]
        assert [value and value["op"] for _, value in changes] == ["u", "u", "d", None, "u", "t"]
        keys = [json.loads(each.key) if each.key else None for each, _ in changes]
        assert [key and key["payload"]["id"] for key in keys] == [2, 4, 6, 6, 8, None]
        assert (keys[0] or {})["schema"]["fields"][0]["field"] == "id"
        orders_of = [value["transaction"] and value["transaction"]["total_order"] for _, value in changes if value]
        assert orders_of[:4] == [1, 2, 3, 1]
        assert changes[4][1]["before"]["weight"] == 7
        assert "weight" not in changes[0][1]["before"]

        transactions = [value for _, value in values(f"{play.prefix}.transaction")]
        of_first = [value for value in transactions if value["id"] == changes[0][1]["transaction"]["id"]]
        assert [(value["status"], value["event_count"]) for value in of_first] == [("BEGIN", None), ("END", 3)]

        ddl = [value for _, value in values(play.prefix)]
        altered = next(value for value in ddl if "ADD COLUMN weight" in (value["ddl"] or ""))
        (change,) = altered["tableChanges"]
        assert change["type"] == "ALTER"
        assert "weight" in [column["name"] for column in change["table"]["columns"]]

        notices = [value["type"] for _, value in values(play.notifications)]
        assert notices[0] == "STARTED"
        assert notices[-1] == "COMPLETED"
