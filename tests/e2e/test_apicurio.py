"""Apicurio's converters in a whole job: values name their schemas in headers, keys as members of their JSON."""

from __future__ import annotations

import io
import json
import urllib.request
from functools import cache
from typing import Any

import fastavro
import pytest

from lab.captured_database import CapturedDatabase
from tests.support.changed_orders import changed_orders
from tests.support.kafka import read_all

pytestmark = pytest.mark.servers

ROWS = 600
CONVERTERS = "io.apicurio.registry.utils.converter."


def test_a_job_is_read_by_the_ids_that_its_records_name(play: CapturedDatabase, registry_url: str) -> None:
    api = registry_url.removesuffix("/apis/ccompat/v7") + "/apis/registry"
    settings = {
        "key.converter": f"{CONVERTERS}ExtJsonConverter",
        "value.converter": f"{CONVERTERS}AvroConverter",
        **{f"{side}.converter.apicurio.registry.url": f"{api}/v2" for side in ("key", "value")},
        **{f"{side}.converter.apicurio.registry.auto-register": "true" for side in ("key", "value")},
        "schema.name.adjustment.mode": "avro",
        "transforms": "mine,keep",
        "transforms.mine.type": "org.apache.kafka.connect.transforms.InsertHeader",
        "transforms.mine.header": "mine",
        "transforms.mine.value.literal": "here",
        "transforms.keep.type": "org.apache.kafka.connect.transforms.DropHeaders",
        "transforms.keep.headers": "apicurio.value.globalId",
    }
    orders, expected = changed_orders(play, settings, ROWS)

    @cache
    def schema(number: int) -> Any:
        with urllib.request.urlopen(f"{api}/v3/ids/globalIds/{number}", timeout=20) as answer:
            return json.load(answer)

    parsed = cache(lambda number: fastavro.parse_schema(schema(number)))
    rows: dict[int, int] = {}
    for read in read_all(play.kafka, play.topic(orders)):
        key = json.loads(read.key or b"")
        assert schema(key["schemaId"])["fields"][0]["field"] == "id"
        headers = dict(read.headers)
        if read.value is None:
            assert not [name for name in headers if name.startswith("apicurio")]
            continue
        assert list(headers)[-3:] == ["mine", "apicurio.value.globalId", "apicurio.value.encoding"]
        number = int.from_bytes(headers["apicurio.value.globalId"] or b"", "big")
        value: Any = fastavro.schemaless_reader(io.BytesIO(read.value), parsed(number), None)
        if value["op"] == "d":
            rows.pop(key["payload"]["id"], None)
        else:
            rows[key["payload"]["id"]] = value["after"]["qty"]
    assert rows == expected

    # Records that are no rows have the id before them.
    for read in read_all(play.kafka, play.prefix):
        assert read.value is not None
        assert read.value[:1] == b"\0"
        ddl: Any = fastavro.schemaless_reader(
            io.BytesIO(read.value[9:]), parsed(int.from_bytes(read.value[1:9], "big")), None
        )
        assert ddl["databaseName"] == play.database
