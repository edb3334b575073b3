"""A job takes over from a real Debezium: what the topics have is not sent again, and nothing is missing."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from typing import Any

import pytest
from confluent_kafka import KafkaException

from incsnap.kafka.client_settings import ClientSettings
from incsnap.kafka.topic_ends import topic_ends
from incsnap.tables import TableId
from lab.captured_database import CapturedDatabase
from lab.debezium import connect_worker
from lab.running_job import write_properties
from lab.table_designs import ORDER_LINES, ORDERS
from lab.workload import Writer
from tests.support.kafka import read_all
from tests.support.waiting import PATIENCE_SECONDS, wait_until

pytestmark = pytest.mark.servers


def connector(play: CapturedDatabase) -> dict[str, str]:
    """Return the settings of a connector that captures the tables of `play`, and of the job that takes over."""
    converter = "org.apache.kafka.connect.json.JsonConverter"
    return play.connector(
        {
            "snapshot.mode": "no_data",
            "key.converter": converter,
            "key.converter.schemas.enable": "false",
            "value.converter": converter,
            "value.converter.schemas.enable": "false",
        }
    )


def incsnap(*words: object) -> str:
    """Run a command of incsnap and return what it prints. Raise CalledProcessError if it fails."""
    command = [sys.executable, "-m", "incsnap", *map(str, words)]
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=PATIENCE_SECONDS)
    sys.stdout.write(done.stdout + done.stderr)
    done.check_returncode()
    return done.stdout + done.stderr


def sent_by_connector(play: CapturedDatabase, number: int) -> None:
    """Write a mark, and wait until the connector has sent the mark and all before it."""
    marks = TableId(play.database, "marks")
    with play.connect() as connection, connection.cursor() as cursor:
        cursor.execute(f"INSERT INTO {marks.sql} VALUES ({number}, 0)")
    key = b'{"id":%d}' % number

    def is_sent() -> bool:
        with contextlib.suppress(KafkaException):  # the first record of a table makes its topic
            return any(read.key == key for read in read_all(play.kafka, play.topic(marks), range(2)))
        return False

    wait_until(is_sent)


def sent_of(play: CapturedDatabase, table: TableId) -> int:
    """Return how many records the table's topic has. The first of them makes the topic."""
    with contextlib.suppress(KafkaException):
        return len(read_all(play.kafka, play.topic(table), range(2)))
    return 0


def test_a_job_goes_on_inside_a_compressed_transaction_behind_a_clean_stop(play: CapturedDatabase) -> None:
    marks, count = TableId(play.database, "marks"), 100_000
    settings = connector(play)
    file = write_properties(play.folder / "connector.properties", settings)
    offsets, log = play.folder / "offsets", play.folder / "connect.log"
    client = ClientSettings(play.kafka, {})

    def sent() -> int:
        return sum(topic_ends(client, {play.topic(marks): 2}).values())

    with connect_worker(play.kafka, log, offsets=offsets, connectors=[file]) as worker:
        wait_until(lambda: worker.streams(6124))
        sent_by_connector(play, 1)
        with play.connect() as connection, connection.cursor() as cursor:
            cursor.execute("SET SESSION binlog_transaction_compression = ON, cte_max_recursion_depth = 200000")
            numbers = f"WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {count})"
            cursor.execute(f"INSERT INTO {marks.sql} {numbers} SELECT i + 10, 0 FROM n")
        wait_until(lambda: sent() > 2_000)
        worker.end()
    assert sent() < count
    assert "is compressed. The topics have its part before the offset." in incsnap(
        "takeover", file, "--offsets", offsets
    )
    with play.job(settings) as job:
        job.wait_until_streaming()
        sent_by_connector(play, 2)
        job.stop()
    keys = [read.key for read in read_all(play.kafka, play.topic(marks), range(2))]
    assert len(keys) == len(set(keys)) == count + 2


def test_a_job_takes_over_from_a_killed_connector_and_hands_back(play: CapturedDatabase) -> None:
    orders = play.create(ORDERS, 200)
    play.create(ORDER_LINES, 100)
    settings = connector(play)
    file = write_properties(play.folder / "connector.properties", settings)
    offsets, log = play.folder / "offsets", play.folder / "connect.log"
    with connect_worker(play.kafka, log, offsets=offsets, connectors=[file]) as worker:
        wait_until(lambda: worker.streams(6124))
        # Debezium sends rows at XA PREPARE. After an XA ROLLBACK the topics would differ from the tables.
        writing = Writer(
            play.connect,
            play.tables,
            seed=11,
            rate=400,
            largest_transaction=400,
            xa_share=0.1,
            rollback_share=0.0,
        )
        with writing as writer:
            wait_until(lambda: offsets.exists() and b"gtids" in offsets.read_bytes())
            time.sleep(1)
            flushed, before = offsets.read_bytes(), sent_of(play, orders)
            time.sleep(3)
            # The connector has sent what its offset does not tell.
            wait_until(lambda: sent_of(play, orders) > before)
            os.kill(worker.program.pid, signal.SIGKILL)
            # The worker may have written its offset meanwhile. An older one makes the seam longer.
            offsets.write_bytes(flushed)
            printed = incsnap("takeover", file, "--offsets", offsets)
            assert "What they have is not sent again" in printed
            with play.job(settings) as job:
                job.wait_until_streaming()
                time.sleep(3)
                writer.stop()
                play.drain(job)
                with pytest.raises(subprocess.CalledProcessError):
                    incsnap("hand-back", file, "--to-file", offsets)
                job.stop()
    assert "the connector's schema history is right" in incsnap("hand-back", file)
    incsnap("hand-back", file, "--to-file", offsets)
    with connect_worker(play.kafka, log, offsets=offsets, connectors=[file]):
        with Writer(play.connect, play.tables, seed=12, rate=400, first_version=10_000_000):
            time.sleep(3)
        sent_by_connector(play, 1)
    proofs = play.verdicts()
    assert [fault for proof in proofs for fault in proof.faults(snapshots=1)] == []


def altered_while_a_job_ran(play: CapturedDatabase, settings: dict[str, str], elsewhere: TableId) -> TableId:
    """Let a job take over from a connector, and alter a table and `elsewhere` meanwhile. Return the table."""
    orders = play.create(ORDERS, 50)
    file, offsets = write_properties(play.folder / "connector.properties", settings), play.folder / "offsets"
    with connect_worker(play.kafka, play.folder / "connect.log", offsets=offsets, connectors=[file]) as worker:
        wait_until(lambda: worker.streams(6124))
        sent_by_connector(play, 1)
        worker.end()
    incsnap("takeover", file, "--offsets", offsets)
    with play.connect() as connection, connection.cursor() as cursor, play.job(settings) as job:
        job.wait_until_streaming()
        cursor.execute(f"ALTER TABLE {orders.sql} ADD COLUMN added INT NOT NULL DEFAULT 7 FIRST")
        cursor.execute(f"ALTER TABLE {elsewhere.sql} ADD COLUMN added INT")
        cursor.execute(f"CREATE TABLE {play.database}.made (id INT PRIMARY KEY, kind ENUM('a', 'b') NOT NULL)")
        cursor.execute(f"UPDATE {orders.sql} SET added = 8 WHERE id = 2")
        play.drain(job)
        job.stop()
    return orders


def values_of(play: CapturedDatabase, table: TableId) -> list[dict[str, Any]]:
    """Return the values of the table's records, by the id of the row."""
    values = [json.loads(read.value) for read in read_all(play.kafka, play.topic(table), range(2)) if read.value]
    return sorted(values, key=lambda value: value["after"]["id"])


@pytest.fixture
def elsewhere(play: CapturedDatabase) -> Iterator[TableId]:
    """Yield a table of a database that is not captured. Debezium's schema history has the table all the same."""
    people = TableId(f"{play.database}_other", "people")
    with play.connect() as connection, connection.cursor() as cursor:
        cursor.execute(f"CREATE DATABASE {people.database}")
        cursor.execute(f"CREATE TABLE {people.sql} (id INT PRIMARY KEY)")
        yield people
        cursor.execute(f"DROP DATABASE {people.database}")


def test_a_connector_continues_behind_altered_tables_with_its_schema_history(
    play: CapturedDatabase, elsewhere: TableId
) -> None:
    made = TableId(play.database, "made")
    settings = connector(play)
    settings["table.include.list"] += rf",{play.database}\.(made|orders)"
    settings["database.include.list"] = play.database
    orders = altered_while_a_job_ran(play, settings, elsewhere)
    file, offsets = play.folder / "connector.properties", play.folder / "offsets"
    assert f"The schema history {play.prefix}.history gets the present definitions" in (
        incsnap("hand-back", file, "--to-file", offsets)
    )
    with play.connect() as connection, connection.cursor() as cursor:
        cursor.execute(f"UPDATE {orders.sql} SET added = 9 WHERE id = 4")
        cursor.execute(f"ALTER TABLE {orders.sql} ADD COLUMN later INT NOT NULL DEFAULT 1 FIRST")
        with connect_worker(play.kafka, play.folder / "connect.log", offsets=offsets, connectors=[file]):
            # A connector fails here if its history lacks the column.
            cursor.execute(f"ALTER TABLE {elsewhere.sql} MODIFY COLUMN added BIGINT")
            cursor.execute(f"UPDATE {orders.sql} SET later = 2 WHERE id = 6")
            cursor.execute(f"INSERT INTO {made.sql} VALUES (1, 'b')")
            sent_by_connector(play, 2)
    assert [(value["op"], value["after"]["id"], value["after"]["added"]) for value in values_of(play, orders)] == [
        ("u", 2, 8),
        ("u", 4, 9),
        ("u", 6, 7),
    ]
    assert [value["after"].get("later") for value in values_of(play, orders)] == [None, None, 2]
    assert [value["after"] for value in values_of(play, made)] == [{"id": 1, "kind": "b"}]


@pytest.mark.long
def test_a_connector_continues_behind_altered_tables_with_a_new_schema_history(
    play: CapturedDatabase, elsewhere: TableId
) -> None:
    settings = connector(play)
    settings["table.include.list"] += rf",{play.database}\.orders"
    settings["database.include.list"] = play.database
    orders = altered_while_a_job_ran(play, settings, elsewhere)
    topic = "schema.history.internal.kafka.topic"
    file, offsets = play.folder / "connector.properties", play.folder / "offsets"
    write_properties(file, {name: text for name, text in settings.items() if name != topic})
    printed = incsnap("hand-back", file, "--to-file", offsets)
    assert "ADD COLUMN added" in printed
    assert "snapshot.mode=recovery" in printed
    write_properties(file, {**settings, topic: f"{play.prefix}.history-2", "snapshot.mode": "recovery"})
    with (
        connect_worker(play.kafka, play.folder / "connect.log", offsets=offsets, connectors=[file]),
        play.connect() as connection,
        connection.cursor() as cursor,
    ):
        cursor.execute(f"ALTER TABLE {elsewhere.sql} MODIFY COLUMN added BIGINT")
        cursor.execute(f"UPDATE {orders.sql} SET added = 9 WHERE id = 4")
        sent_by_connector(play, 2)
    assert [(value["op"], value["after"]["id"], value["after"]["added"]) for value in values_of(play, orders)] == [
        ("u", 2, 8),
        ("u", 4, 9),
    ]
