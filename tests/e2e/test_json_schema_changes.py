"""JSON Schema while a table is altered during its snapshot: each record fits the schema that its id names."""

from __future__ import annotations

import functools
import json
import urllib.request
from typing import Any

import jsonschema  # type: ignore[import-untyped]
import pytest

from incsnap.checkpoint.status import read_status
from lab.captured_database import CapturedDatabase
from lab.table_designs import ORDERS
from lab.workload import Writer
from tests.e2e.test_restart import rows_sent
from tests.support.kafka import read_all

pytestmark = pytest.mark.servers

ROWS = 30_000
CONVERTER = "io.confluent.connect.json.JsonSchemaConverter"
STATEMENTS = (
    "ADD COLUMN weight INT NOT NULL DEFAULT 7",
    "MODIFY COLUMN weight VARCHAR(20) NULL",
    "ADD COLUMN packed DECIMAL(10, 2) NULL DEFAULT 1.50 FIRST",
    "DROP COLUMN weight",
)


def test_each_record_fits_the_json_schema_of_its_id_across_ddl(play: CapturedDatabase, registry_url: str) -> None:
    orders = play.create(ORDERS, ROWS)
    settings = {
        "incremental.snapshot.chunk.size": "500",
        # The table would take half a minute if the limit were not lifted behind the last statement.
        "incsnap.snapshot.throttle.rows.per.second": "1000",
        "snapshot.max.threads": "2",
        "topic.creation.default.partitions": "1",
        "key.converter": CONVERTER,
        "value.converter": CONVERTER,
        "key.converter.schema.registry.url": registry_url,
        "value.converter.schema.registry.url": registry_url,
    }
    subject = f"{play.topic(orders)}-value"
    # The statements make schemas that no reader of an older one could read.
    body = json.dumps({"compatibility": "NONE"}).encode()
    header = {"Content-Type": "application/vnd.schemaregistry.v1+json"}
    request = urllib.request.Request(f"{registry_url}/config/{subject}", body, header, method="PUT")
    with urllib.request.urlopen(request, timeout=20):
        pass
    with (
        play.job(settings) as job,
        play.connect() as connection,
        connection.cursor() as cursor,
    ):
        job.wait_until_streaming()
        with Writer(play.connect, play.tables, seed=3, rate=100):
            play.execute_by_row("altered", [orders])
            for statement in STATEMENTS:
                sent = rows_sent(play)
                job.wait_until("more rows were sent", lambda sent=sent: rows_sent(play) > sent, every=0.01)  # type: ignore[misc]
                assert _is_reading(play), "the snapshot ended before the last statement"
                # A record of each shape: the rows that were sent may all have been read before the last statement.
                cursor.execute(f"UPDATE {orders.sql} SET qty = COALESCE(qty, 0) + 1 ORDER BY id LIMIT 1")
                cursor.execute(f"ALTER TABLE {orders.sql} {statement}")
            play.signal_by_row("fast", "incsnap-throttle", {"rows-per-second": 0})
            job.wait_until("the snapshot's end", lambda: not _is_reading(play))
        cursor.execute(f"SELECT id, packed FROM {orders.sql}")
        expected = dict(cursor.fetchall())
        first, topic = next(iter(expected)), play.topic(orders)
        cursor.execute(f"UPDATE {orders.sql} SET version = version + 1 WHERE id = {first}")

        def last_change_has_come() -> bool:
            sent = read_all(play.kafka, topic)
            newest = [each for each in sent if each.key and json.loads(each.key[5:])["id"] == first]
            value = newest[-1].value if newest else None
            return value is not None and json.loads(value[5:])["op"] == "u"

        job.wait_until("the last change", last_change_has_come, every=1.0)
        job.stop()

    @functools.cache
    def validator(number: int) -> Any:
        with urllib.request.urlopen(f"{registry_url}/schemas/ids/{number}", timeout=20) as answer:
            schema = json.loads(json.load(answer)["schema"])
        return jsonschema.Draft7Validator(schema)

    numbers: dict[int, set[str]] = {}
    state: dict[int, Any] = {}
    for each in read_all(play.kafka, topic):
        assert each.key is not None
        key = json.loads(each.key[5:])
        validator(int.from_bytes(each.key[1:5], "big")).validate(key)
        if each.value is None:
            continue
        number, value = int.from_bytes(each.value[1:5], "big"), json.loads(each.value[5:])
        validator(number).validate(value)
        numbers.setdefault(number, set()).update((value["after"] or value["before"]).keys())
        state[key["id"]] = value["after"]
    shapes = {frozenset({"weight", "packed"} & names) for names in numbers.values()}
    assert shapes == {frozenset(each) for each in ((), ("weight",), ("weight", "packed"), ("packed",))}
    assert len(numbers) >= len(STATEMENTS) + 1
    assert {key for key, row in state.items() if row is not None} == set(expected)


def _is_reading(play: CapturedDatabase) -> bool:
    status = read_status(str(play.checkpoint))
    return status is not None and (status.reading != () or status.windows_in_flight > 0)
