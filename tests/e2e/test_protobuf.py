"""Protobuf keys and values in a whole job: the records equal the table, with the schema of its columns then."""

from __future__ import annotations

import datetime
import functools
import json
import urllib.request
from decimal import Decimal
from typing import Any

import pytest

from incsnap.tables import TableId
from lab.captured_database import CapturedDatabase
from lab.listening import Follower
from tests.support.kafka import read_all
from tests.support.proto_reader import read_framed

pytestmark = pytest.mark.servers

_PROTOBUF = "io.confluent.connect.protobuf.ProtobufConverter"
_EPOCH = datetime.datetime(1970, 1, 1)
#: Column and its type. The first is the key.
COLUMNS = {
    "id": "INT PRIMARY KEY",
    "small": "SMALLINT",
    "big": "BIGINT",
    "price": "DECIMAL(30, 4)",
    "ratio": "DOUBLE",
    "name": "VARCHAR(40)",
    "data": "VARBINARY(40)",
    "kind": "ENUM('a', 'b')",
    "day": "DATE",
    "clock": "TIME(3)",
    "at": "DATETIME(3)",
    "flag": "BIT(1)",
}
ROWS = 600


def _row(number: int) -> list[Any]:
    if number % 3 == 0:
        return [number, *[None] * (len(COLUMNS) - 1)]
    moment = _EPOCH + datetime.timedelta(days=number * 17, milliseconds=number * 7_777_777)
    sign = -1 if number % 2 else 1
    clock = f"{number % 24}:{number % 60}:{number % 60}.{number % 1000:03}"
    return [
        *(number, sign * (number % 300), sign * number**6, Decimal(sign * number**5).scaleb(-4), sign / number),
        *(f"nämé {number}" * (number % 2), bytes([number % 256]) * (number % 5), "ab"[number % 2]),
        *(moment.date(), clock, moment, number % 2),
    ]


def _plain(name: str, value: Any) -> Any:
    """Return a value of a record as MySQL's client returns it."""
    if value is None:
        return None
    match name:
        case "price":
            return Decimal(int.from_bytes(value[0], "big", signed=True)).scaleb(-value[1])
        case "day":
            return (_EPOCH + datetime.timedelta(days=value)).date()
        case "clock":
            return datetime.timedelta(milliseconds=value)
        case "at":
            return _EPOCH + datetime.timedelta(milliseconds=value)
        case "flag":
            return bytes([value])
    return value


@pytest.mark.parametrize("nulls", ["optional", "wrapper"])
def test_a_job_that_writes_protobuf_is_read_by_the_schemas_of_the_registry(
    play: CapturedDatabase, registry_url: str, nulls: str
) -> None:
    table = TableId(play.database, "things")
    settings = {
        **{f"{side}.converter": _PROTOBUF for side in ("key", "value")},
        **{f"{side}.converter.schema.registry.url": registry_url for side in ("key", "value")},
        f"value.converter.{nulls}.for.nullables": "true",
        # The database's name has a dash, which Protobuf does not allow.
        "schema.name.adjustment.mode": "avro",
        "time.precision.mode": "connect",
        "provide.transaction.metadata": "true",
        "table.include.list": str(table).replace(".", r"\."),
        "topic.creation.default.partitions": "1",
        "incremental.snapshot.chunk.size": "100",
    }

    @functools.cache
    def text(number: int) -> str:
        with urllib.request.urlopen(f"{registry_url}/schemas/ids/{number}", timeout=20) as answer:
            content = json.load(answer)
        assert content["schemaType"] == "PROTOBUF"
        return str(content["schema"])

    def decoded(data: bytes | None) -> Any:
        return None if data is None else read_framed(data, text(int.from_bytes(data[1:5], "big")))

    with play.connect() as connection, connection.cursor() as cursor:
        cursor.execute(f"CREATE TABLE {table.sql} ({', '.join(f'{n} {t}' for n, t in COLUMNS.items())})")
        insert = f"INSERT INTO {table.sql} VALUES ({', '.join(['%s'] * len(COLUMNS))})"
        cursor.executemany(insert, [_row(number) for number in range(1, ROWS + 1)])
        with play.job(settings) as job, Follower(play.kafka, play.topic(table)) as of_table:
            job.wait_until_streaming()
            play.execute_by_row("all", [table])
            cursor.execute(f"UPDATE {table.sql} SET small = NULL, name = 'new' WHERE id < 20")
            cursor.execute(f"DELETE FROM {table.sql} WHERE id BETWEEN 20 AND 29")
            cursor.executemany(insert, [_row(number) for number in range(ROWS + 1, ROWS + 11)])
            with Follower(play.kafka, play.notifications) as notices:

                def has_ended() -> bool:
                    return any(b"COMPLETED" in (message.value() or b"") for message in notices.poll(0.2))

                job.wait_until("the snapshot is over", has_ended, every=0.0)
            cursor.execute(f"ALTER TABLE {table.sql} ADD COLUMN weight INT DEFAULT 7, DROP COLUMN kind")
            cursor.execute(f"UPDATE {table.sql} SET weight = NULL, ratio = 0 WHERE id BETWEEN 40 AND 49")
            cursor.execute(f"UPDATE {table.sql} SET big = 1 WHERE id = 50")
            of_id_50: int = 0

            def last_arrived() -> bool:
                nonlocal of_id_50
                of_id_50 += sum(decoded(message.key()) == {"id": 50} for message in of_table.poll(0.2))
                return bool(of_id_50 == 2)

            job.wait_until("the last change was sent", last_arrived, every=0.0)
            job.stop()
        cursor.execute(f"SELECT * FROM {table.sql}")
        names = [column[0] for column in cursor.description]
        expected = {row[0]: dict(zip(names, row, strict=True)) for row in cursor.fetchall()}

    records = [(decoded(each.key), decoded(each.value), each.value) for each in read_all(play.kafka, play.topic(table))]
    rows: dict[int, dict[str, Any]] = {}
    for key, value, _ in records:
        if value is None or value["op"] == "d":
            rows.pop(key["id"], None)
        else:
            rows[key["id"]] = {name: _plain(name, each) for name, each in value["after"].items()}
    altered = [id_ for id_, row in rows.items() if "weight" in row]
    assert sorted(altered) == list(range(40, 51))
    assert {rows[id_]["weight"] for id_ in range(40, 50)} == {None}
    assert rows[50]["weight"] == 7
    for id_, row in expected.items():
        if id_ not in altered:
            # These records are older than the ALTER.
            row |= {"kind": rows[id_]["kind"], "weight": 7}
            rows[id_]["weight"] = 7
            assert rows[id_]["kind"] == _row(id_)[list(COLUMNS).index("kind")]
    assert rows == expected
    ids = {int.from_bytes(data[1:5], "big") for _, value, data in records if value and data}
    assert len(ids) == 2, "one schema before the ALTER, and one behind it"
    ordered = [value["transaction"]["total_order"] for _, value, _ in records if value and value["op"] == "d"]
    assert len(ordered) == 10

    transactions = [decoded(each.value) for each in read_all(play.kafka, f"{play.prefix}.transaction")]
    assert {each["status"] for each in transactions} == {"BEGIN", "END"}
    ddl = [decoded(each.value) for each in read_all(play.kafka, play.prefix)]
    assert any("ADD COLUMN weight" in (each["ddl"] or "") for each in ddl)
    types = [decoded(each.value)["type"] for each in read_all(play.kafka, play.notifications)]
    assert (types[0], types[-1]) == ("STARTED", "COMPLETED")
