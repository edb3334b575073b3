"""``make bench``: snapshot rows/s, backlog changes/s and idle latency of one run, against real servers.

    python -m benchmarks.snapshot [--rows 1000000] [--single 0]

A snapshot is timed from the commit of its signal to the commit of its last read event in Kafka; the first one includes
Spark's cold start (5-6 s: JVM and workers), so it is run twice and both are printed. The backlog is a million
updates with before and after, 1,000 rows a transaction, written while the job is stopped and timed from the first
batch to the last.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pymysql
from confluent_kafka import Consumer, TopicPartition
from pymysql.connections import Connection

from benchmarks import tables
from incsnap.config.load import from_properties
from incsnap.config.settings import Settings
from incsnap.pipeline import job
from incsnap.pipeline.progress import Progress, read_progress
from incsnap.pipeline.session import session
from incsnap.sandbox.servers import Servers, servers

DATABASE = "incsnap_bench"
SIGNALS = "incsnap_signal"


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--rows", type=int, default=1_000_000)
    arguments.add_argument("--single", type=int, default=0, help="also: this many single-row transactions as a backlog")
    chosen = arguments.parse_args()
    with servers() as found, tempfile.TemporaryDirectory(prefix="incsnap-bench-") as folder:
        measure(found, Path(folder), chosen.rows, chosen.single)


def measure(found: Servers, folder: Path, rows: int, single: int) -> None:
    connection = pymysql.connect(
        host=found.mysql.host,
        port=found.mysql.port,
        user=found.mysql.user,
        password=found.mysql.password,
        autocommit=True,
    )
    settings = _settings(found, folder)
    try:
        _prepare(connection, rows)
        spark = session(settings)
        try:
            root = job.buffer_root(settings)
            query = job.start(spark, settings)
            for number in ("first, cold", "second, warm"):
                _snapshot(connection, query, root, rows, number)
            _latency(connection, found, settings)
            job.stop(query, settings)

            print(f"writing a backlog of {rows:,} updates ...", flush=True)
            tables.update_all(connection, f"{DATABASE}.orders", rows)
            before = read_progress(root)
            query = job.start(spark, settings)
            _backlog(query, root, before, rows, "updates, 1,000 rows a transaction")
            job.stop(query, settings)
            if single:
                print(f"writing a backlog of {single:,} single-row transactions ...", flush=True)
                tables.update_all(connection, f"{DATABASE}.orders", single, 1)
                before = read_progress(root)
                query = job.start(spark, settings)
                _backlog(query, root, before, single, "single-row transactions")
                job.stop(query, settings)
        finally:
            spark.stop()
        print(f"records in Kafka: {_records(found, settings):,}")
    finally:
        with connection.cursor() as cursor:
            cursor.execute(f"DROP DATABASE IF EXISTS {DATABASE}")
        connection.close()


def _settings(found: Servers, folder: Path) -> Settings:
    return from_properties(
        {
            "database.hostname": found.mysql.host,
            "database.port": str(found.mysql.port),
            "database.user": found.mysql.user,
            "database.password": found.mysql.password,
            "database.server.id": str(5400 + os.getpid() % 10_000),
            "topic.prefix": f"bench{os.getpid()}",
            "topic.creation.default.partitions": "1",
            "topic.creation.default.replication.factor": "1",
            "database.include.list": DATABASE,
            "signal.data.collection": f"{DATABASE}.{SIGNALS}",
            "bootstrap.servers": found.kafka,
            "checkpoint.location": str(folder / "checkpoint"),
        }
    ).settings


def _prepare(connection: Connection[Any], rows: int) -> None:
    print(f"loading {rows:,} rows ...", flush=True)
    with connection.cursor() as cursor:
        cursor.execute(f"DROP DATABASE IF EXISTS {DATABASE}")
        cursor.execute(f"CREATE DATABASE {DATABASE}")
        cursor.execute(
            f"CREATE TABLE {DATABASE}.{SIGNALS} (id VARCHAR(42) PRIMARY KEY, type VARCHAR(32) NOT NULL, data TEXT)"
        )
    tables.fill(connection, f"{DATABASE}.orders", rows)


def _signal(connection: Connection[Any]) -> None:
    data = json.dumps({"type": "incremental", "data-collections": [f"{DATABASE}.orders"]})
    with connection.cursor() as cursor:
        cursor.execute(f"INSERT INTO {DATABASE}.{SIGNALS} VALUES (UUID(), 'execute-snapshot', %s)", (data,))


def _snapshot(connection: Connection[Any], query: Any, root: str, rows: int, number: str) -> None:
    before = read_progress(root)
    _signal(connection)
    began = time.monotonic()
    first = _wait(query, root, lambda now: now.reads > before.reads)
    last = _wait(query, root, lambda now: now.reads >= before.reads + rows)
    print(
        f"snapshot ({number}): {rows:,} rows in {last - began:.1f} s, {rows / (last - began):,.0f} rows/s;"
        f" first read event after {first - began:.2f} s",
        flush=True,
    )


def _backlog(query: Any, root: str, start: Progress, changes: int, what: str) -> None:
    first = _wait(query, root, lambda now: now.events > start.events)
    begun = read_progress(root)
    last = _wait(query, root, lambda now: now.events >= start.events + changes)
    counted = start.events + changes - begun.events
    rate = counted / (last - first) if last > first else float("nan")
    print(f"backlog ({what}): {counted:,} changes in {last - first:.1f} s, {rate:,.0f} changes/s", flush=True)


def _latency(connection: Connection[Any], found: Servers, settings: Settings) -> None:
    """Commit to a read_committed consumer, 20 single-row updates a second, otherwise idle."""
    topic = f"{settings.topic_prefix}.{DATABASE}.orders"
    consumer = Consumer(
        {
            "bootstrap.servers": found.kafka,
            "group.id": "bench",
            "isolation.level": "read_committed",
            "fetch.wait.max.ms": "10",
        }
    )
    end = consumer.get_watermark_offsets(TopicPartition(topic, 0))[1]
    consumer.assign([TopicPartition(topic, 0, end)])
    consumer.poll(1.0)
    times: list[float] = []
    with connection.cursor() as cursor:
        for number in range(200):
            cursor.execute(f"UPDATE {DATABASE}.orders SET qty = %s WHERE id = 1", (1_000_000 + number,))
            committed = time.monotonic()
            while True:
                message = consumer.poll(5.0)
                if message is None or message.error():
                    raise SystemExit("an update did not arrive in Kafka within 5 s")
                if json.loads(message.value() or b"{}")["after"]["qty"] == 1_000_000 + number:
                    break
            times.append(time.monotonic() - committed)
            time.sleep(max(0.0, 0.05 - times[-1]))
    consumer.close()
    times = sorted(times[20:])
    print(
        f"commit to consumer, idle: p50 {times[len(times) // 2] * 1000:.0f} ms, p99 {times[-2] * 1000:.0f} ms",
        flush=True,
    )


def _wait(query: Any, root: str, reached: Callable[[Progress], bool], seconds: float = 600) -> float:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if reached(read_progress(root)):
            return time.monotonic()
        if not query.isActive:
            raise SystemExit(f"the query has ended: {query.exception()}")
        time.sleep(0.02)
    raise SystemExit(f"not reached in {seconds:.0f} s: {read_progress(root)}")


def _records(found: Servers, settings: Settings) -> int:
    consumer = Consumer({"bootstrap.servers": found.kafka, "group.id": "bench", "isolation.level": "read_committed"})
    low, high = consumer.get_watermark_offsets(TopicPartition(f"{settings.topic_prefix}.{DATABASE}.orders", 0))
    consumer.close()
    return int(high - low)


if __name__ == "__main__":
    main()
