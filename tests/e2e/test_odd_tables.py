"""Tables and statements that once stopped a whole job. None of them may hold up other tables."""

from __future__ import annotations

import json
from typing import Any

import pytest

from incsnap.tables import TableId
from lab.captured_database import CapturedDatabase
from lab.listening import Follower
from signals import send
from tests.support.kafka import read_all

pytestmark = pytest.mark.servers

_SETTINGS = {
    "time.precision.mode": "nanoseconds",
    "include.query": "true",
    "key.converter": "org.apache.kafka.connect.json.JsonConverter",
    "key.converter.schemas.enable": "false",
    "value.converter": "org.apache.kafka.connect.json.JsonConverter",
    "value.converter.schemas.enable": "true",
}
_TABLES = {
    "terms": "CREATE TABLE {} (id INT PRIMARY KEY, valid_to DATETIME NOT NULL DEFAULT '9999-12-31 23:59:59')",
    "sizes": "CREATE TABLE {} (id INT PRIMARY KEY, size ENUM(0xFFFF, 'small'))",
    "sums": "CREATE TABLE {} AS SELECT 1 AS id, " + "9" * 81 + " AS total",
    "texts": "CREATE TABLE {} (id INT PRIMARY KEY)",
    "my.dots": "CREATE TABLE {} AS SELECT 9 AS id",
}


def test_a_table_that_is_hard_to_tell_holds_up_nobody(play: CapturedDatabase) -> None:
    tables = {name: TableId(play.database, name) for name in _TABLES}
    signal_topic = f"{play.prefix}-signal"
    with play.connect() as connection, connection.cursor() as cursor:
        # The server cuts the number of 81 digits to 65.
        cursor.execute("SET SESSION sql_mode = ''")
        for name, statement in _TABLES.items():
            cursor.execute(statement.format(tables[name].sql))
        for name in ("sums", "my.dots"):
            cursor.execute(f"ALTER TABLE {tables[name].sql} ADD PRIMARY KEY (id)")
        cursor.execute(f"INSERT INTO {tables['terms'].sql} VALUES (9, '2026-01-09')")
        cursor.execute(f"INSERT INTO {tables['sizes'].sql} VALUES (9, 1)")
        settings = {**_SETTINGS, "table.include.list": f"{play.database}\\..*"}
        with Follower(play.kafka, play.notifications) as notices, play.job(settings) as job:
            job.wait_until_streaming()
            cursor.execute("SET SESSION binlog_rows_query_log_events = ON")
            cursor.execute(f"INSERT INTO {tables['terms'].sql} VALUES (1, '2026-01-01')")
            cursor.execute(f"INSERT INTO {tables['sizes'].sql} VALUES (1, 1), (2, 2)")
            rows = ",".join(f"({number})" for number in range(400))
            cursor.execute(f"INSERT INTO {tables['texts'].sql} VALUES /* {'x' * 6_000_000} */ {rows}")
            cursor.execute(f"INSERT INTO {tables['sums'].sql} VALUES (2, 5)")
            # Signals may have one id, and names the quotes of Debezium's page on signals.
            for table in tables.values():
                data = send.snapshot_data([f'"{table.database}"."{table.table}"'])
                send.to_topic(play.kafka, signal_topic, play.prefix, "ad-hoc", "execute-snapshot", data)
            ended: list[bytes] = []

            def all_complete() -> bool:
                ended.extend(notice.value() or b"" for notice in notices.poll(0.2))
                return sum(b'"COMPLETED"' in each for each in ended) == len(tables)

            job.wait_until("all snapshots were complete", all_complete)
            play.drain(job)
            job.stop()

    changes = {
        name: [json.loads(each.value) for each in read_all(play.kafka, play.topic(table), (0, 1)) if each.value]
        for name, table in tables.items()
    }
    # A change of the row may have overtaken the snapshot's row, which is then left out.
    rows_of = {name: {_row(each) for each in of_table} for name, of_table in changes.items()}
    assert rows_of["sizes"] >= {("c", 1, ""), ("c", 2, "small"), ("r", 9, "")}
    assert {row[:2] for row in rows_of["terms"]} >= {("c", 1), ("r", 9)}
    assert rows_of["my.dots"] == {("r", 9)}
    assert {row[:2] for row in rows_of["sums"]} >= {("r", 1), ("c", 2)}
    assert {row for row in rows_of["texts"] if row[0] == "c"} == {("c", number) for number in range(400)}
    assert {len(each["payload"]["source"]["query"]) for each in changes["texts"] if each["payload"]["op"] == "c"} == {
        32 << 10
    }
    (after,) = [field for field in changes["terms"][0]["schema"]["fields"] if field["field"] == "after"]
    assert "default" not in after["fields"][1]
    assert "cannot express the DEFAULT" in play.log.read_text()


def _row(change: dict[str, Any]) -> tuple[Any, ...]:
    payload = change["payload"]
    return (payload["op"], *payload["after"].values())
