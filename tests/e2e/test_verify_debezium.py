"""`incsnap verify` on topics that a real Debezium wrote, with the connector's own file."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from incsnap.tables import TableId
from lab.captured_database import CapturedDatabase
from lab.debezium import connect_worker
from lab.running_job import write_properties
from lab.table_designs import ORDER_LINES, ORDERS
from tests.e2e.test_verify import run_verify
from tests.support.faulty_topic import send
from tests.support.kafka import Read, read_all
from tests.support.waiting import PATIENCE_SECONDS

pytestmark = pytest.mark.servers

_KINDS = """
    id INT PRIMARY KEY, f FLOAT, d DOUBLE, j JSON, n DECIMAL(20,4), t TIMESTAMP(6) NULL, b BLOB, y YEAR, z TIME(3)"""
#: Values that Debezium's SELECT and its binlog reader spell in two ways are among them.
_VALUES = """
    ({id}, 0.1, 1e-7, '{{"b": 1.50, "a": [1, {{"c": null}}]}}', -12.5, '2026-01-02 03:04:05.000006', x'00ff', 2026,
    '-01:02:03.004'), ({id} + 1, 16777216, 123456789.125, '"x"', NULL, NULL, NULL, NULL, NULL)"""


def connector(play: CapturedDatabase) -> Path:
    """Return the file of a connector that captures the database of `play`."""
    return write_properties(
        play.folder / "connector.properties",
        {
            "name": play.prefix,
            "connector.class": "io.debezium.connector.mysql.MySqlConnector",
            "tasks.max": "1",
            **play.mysql.properties(),
            "database.server.id": "6123",
            "database.ssl.mode": "disabled",
            "driver.allowPublicKeyRetrieval": "true",
            "topic.prefix": play.prefix,
            "database.include.list": play.database,
            "snapshot.mode": "initial",
            "schema.history.internal.kafka.bootstrap.servers": play.kafka,
            "schema.history.internal.kafka.topic": f"{play.prefix}.history",
            "topic.creation.default.partitions": "3",
            "topic.creation.default.replication.factor": "1",
            "topic.creation.default.cleanup.policy": "compact",
            "poll.interval.ms": "50",
        },
    )


def test_topics_of_debezium_are_compared_and_its_repetitions_named(
    play: CapturedDatabase, capsys: pytest.CaptureFixture[str]
) -> None:
    orders, lines = play.create(ORDERS, 2_000), play.create(ORDER_LINES, 300)
    kinds = TableId(play.database, "kinds")
    file, offsets, log = connector(play), play.folder / "offsets", play.folder / "connect.log"
    worker_file = write_properties(
        play.folder / "worker.properties",
        {
            "bootstrap.servers": play.kafka,
            **{f"{part}.converter": "org.apache.kafka.connect.json.JsonConverter" for part in ("key", "value")},
            **{f"{part}.converter.schemas.enable": "false" for part in ("key", "value")},
        },
    )
    with play.connect() as connection, connection.cursor() as cursor:
        cursor.execute(f"CREATE TABLE {kinds.sql} ({_KINDS})")
        cursor.execute(f"INSERT INTO {kinds.sql} VALUES {_VALUES.format(id=1)}")
        with connect_worker(play.kafka, log, offsets=offsets, connectors=[file]) as worker:
            wait_until("the snapshot", lambda: worker.streams(6123))
            cursor.execute(f"INSERT INTO {kinds.sql} VALUES {_VALUES.format(id=11)}")
            cursor.execute(f"UPDATE {orders.sql} SET qty = 5 WHERE id <= 200")
            cursor.execute(f"DELETE FROM {lines.sql} WHERE tenant = 8")
            before = offsets.read_bytes() if offsets.exists() else b""
            sent(play, cursor, 1)
            wait_until("the worker's offsets", lambda: offsets.exists() and offsets.read_bytes() != before)
            # The worker writes the file in place, each five seconds. It is whole some time after it has changed.
            time.sleep(1)
            flushed = offsets.read_bytes()
            cursor.execute(f"UPDATE {orders.sql} SET qty = 6 WHERE id <= 200")
            cursor.execute(f"UPDATE {orders.sql} SET qty = 7 WHERE id <= 200")
            sent(play, cursor, 2)
            os.kill(worker.program.pid, signal.SIGKILL)
        # The worker may have had the time for another flush. Its records come again all the same.
        offsets.write_bytes(flushed)
        with connect_worker(play.kafka, log, offsets=offsets, connectors=[file]) as worker:
            cursor.execute(f"UPDATE {orders.sql} SET qty = 8 WHERE id <= 1000")
            sent(play, cursor, 3)
            os.kill(worker.program.pid, signal.SIGKILL)
        offsets.write_bytes(flushed)
        with connect_worker(play.kafka, log, offsets=offsets, connectors=[file]):
            cursor.execute(f"UPDATE {orders.sql} SET note = 'last' WHERE id <= 100")
            sent(play, cursor, 4)
            # A record that nobody's event has made
            topic = play.topic(orders)
            last = [read for read in read_all(play.kafka, topic, range(3)) if read.key == b'{"id":100}'][-1]
            wrong = (last.value or b"").replace(b'"qty":8', b'"qty":9')
            send(play.kafka, topic, [Read(last.partition, 0, last.key, wrong)])
            repair = ("--repair", "--yes", "--differences", str(play.folder / "differences"))
            code, answers = run_verify(file, "--worker", str(worker_file), *repair)

    assert code == 1
    assert {name: answer["equal"] for name, answer in answers.items()} == {
        **dict.fromkeys(("kinds", "marks", "order_lines", "signals"), True),
        "orders": False,
    }
    of_orders = {kind: count for kind, count in answers["orders"].items() if isinstance(count, int) and count}
    # 100 rows twice behind the first kill; behind the second one 100 rows twice again, and 500 rows.
    # A killed worker may have had some records of its last batch still to send.
    assert of_orders.pop("sent_twice") > 200 + 200 + 300
    # 100 rows behind the first kill, and behind the second one 100 rows twice.
    assert of_orders.pop("back_in_time") > 200
    assert of_orders == {"wrong": 1}
    # Debezium would read the whole table.
    assert "No job of incsnap has announced itself" in capsys.readouterr().out
    assert (play.folder / "differences" / f"{orders}.keys.jsonl").read_text() == '{"id":100}\n'
    with play.connect() as connection, connection.cursor() as cursor:
        cursor.execute(f"SELECT COUNT(*) FROM {play.signals.sql}")
        assert cursor.fetchone() == (0,)


def sent(play: CapturedDatabase, cursor: object, number: int) -> None:
    """Write a row, and wait until the connector has sent it and all before it."""
    marks = TableId(play.database, "marks")
    cursor.execute(f"INSERT INTO {marks.sql} VALUES ({number}, 0)")  # type: ignore[attr-defined]
    key = b'{"id":%d}' % number

    def is_there() -> bool:
        try:
            return any(read.key == key for read in read_all(play.kafka, play.topic(marks), range(3), seconds=5))
        except Exception:  # noqa: BLE001 - the topic is not there yet
            return False

    wait_until("the mark", is_there)
    time.sleep(1)


def wait_until(event: str, reached: Callable[[], bool]) -> None:
    """Wait until `reached()` is true. Raise AssertionError if it takes too long."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not reached():
        assert time.monotonic() < deadline, event
        time.sleep(0.2)
