"""Values as CloudEvents in a whole job, with an incremental snapshot, updates, deletions and heartbeats."""

from __future__ import annotations

import json

import pytest

from lab.captured_database import CapturedDatabase
from tests.support.changed_orders import changed_orders
from tests.support.kafka import read_all

pytestmark = pytest.mark.servers

ROWS = 600


def test_the_events_of_a_job_replay_the_table(play: CapturedDatabase) -> None:
    settings = {
        "value.converter": "io.debezium.converters.CloudEventsConverter",
        "value.converter.json.schemas.enable": "false",
        "provide.transaction.metadata": "true",
        "heartbeat.interval.ms": "500",
    }
    orders, expected = changed_orders(play, settings, ROWS)

    rows: dict[int, int] = {}
    ops = set()
    for read in read_all(play.kafka, play.topic(orders)):
        key = json.loads(read.key or b"")
        if read.value is None:
            continue
        event = json.loads(read.value)
        ops.add(event["iodebeziumop"])
        assert event["id"] == f"name:{play.prefix};file:{event['iodebeziumfile']};pos:{event['iodebeziumpos']}"
        assert event["source"] == f"/debezium/mysql/{play.prefix}"
        assert (event["iodebeziumtxid"] is None) == (event["iodebeziumop"] == "r")
        if event["data"]["after"] is None:
            rows.pop(key["id"], None)
        else:
            rows[key["id"]] = event["data"]["after"]["qty"]
    assert rows == expected
    assert {"r", "u", "d"} <= ops

    for topic in (play.prefix, f"__debezium-heartbeat.{play.prefix}", f"{play.prefix}.transaction"):
        assert {read.value for read in read_all(play.kafka, topic)} == {None}
