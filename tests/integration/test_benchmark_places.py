"""Tests of the changes that the benchmark writes into the servers, and of its count of records."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest
from confluent_kafka import Producer

from benchmarks.arrivals import Arrivals, NotArrived
from benchmarks.benchmark_database import BenchmarkDatabase, benchmark_database, topics
from benchmarks.changes import Write, deletes_and_inserts, mix, mix_changes, updates
from benchmarks.tables import COMPOSITE, NARROW, ORDERS, WIDE
from lab.servers import Servers

pytestmark = pytest.mark.servers


def nothing() -> None:
    """Do nothing: the check of a job that cannot fail."""


def rows(bench: BenchmarkDatabase, table: str) -> list[tuple[object, ...]]:
    with bench.connection.cursor() as cursor:
        cursor.execute(f"SELECT * FROM {table} ORDER BY 1")
        return list(cursor.fetchall())


def test_tables_have_the_columns_and_rows_that_their_names_say(servers: Servers, tmp_path: Path) -> None:
    with benchmark_database(servers, tmp_path) as bench:
        for design, columns in ((ORDERS, 10), (NARROW, 3), (WIDE, 60), (COMPOSITE, 11)):
            bench_rows = rows(bench, bench.create(design, f"columns{columns}", 123))

            assert (len(bench_rows), len(bench_rows[0])) == (123, columns)


@pytest.mark.parametrize("transaction_rows", [1, 7, 1_000])
def test_updates_change_each_row_once(servers: Servers, tmp_path: Path, transaction_rows: int) -> None:
    with benchmark_database(servers, tmp_path) as bench:
        table = bench.create(ORDERS, "orders", 50)
        before = rows(bench, table)

        updates(table, 40, transaction_rows)(bench.connection)

        after = rows(bench, table)
        assert [row[4] for row in after[:40]] == [(row[4] or 0) + 1 for row in before[:40]]  # type: ignore[operator]
        assert after[40:] == before[40:]


@pytest.mark.parametrize(
    "write_of",
    [lambda table: deletes_and_inserts(table, 40), lambda table: mix([table] * 4, 40, 25)],
    ids=["deletes and inserts", "mix"],
)
def test_other_changes_keep_the_keys(servers: Servers, tmp_path: Path, write_of: Callable[[str], Write]) -> None:
    with benchmark_database(servers, tmp_path) as bench:
        table = bench.create(ORDERS, "orders", 50)
        before = [row[0] for row in rows(bench, table)]

        write_of(table)(bench.connection)

        assert [row[0] for row in rows(bench, table)] == before


def test_a_mix_makes_as_many_changes_as_it_says(servers: Servers, tmp_path: Path) -> None:
    with benchmark_database(servers, tmp_path) as bench:
        tables = [bench.create(ORDERS, f"mix{number}", 50) for number in range(8)]

        def handled() -> int:
            with bench.connection.cursor() as cursor:
                cursor.execute(
                    "SELECT SUM(COUNT_INSERT + COUNT_UPDATE + COUNT_DELETE)"
                    " FROM performance_schema.table_io_waits_summary_by_table WHERE OBJECT_SCHEMA = %s",
                    (bench.database,),
                )
                return int(cursor.fetchall()[0][0])

        before = handled()
        mix(tables, 50, 30)(bench.connection)

        assert handled() - before == mix_changes(30)


def test_records_are_counted_when_their_transaction_is_committed_and_only_then(
    kafka_address: str, topic_prefix: str
) -> None:
    with topics(kafka_address, topic_prefix, {"one": 1, "eight": 8}) as names:
        producer = Producer({"bootstrap.servers": kafka_address, "transactional.id": topic_prefix})
        producer.init_transactions(30)
        with Arrivals(kafka_address, list(names.values())) as arrivals:
            for given_up in (False, True, False):
                if given_up:
                    arrivals.wait_for(200, nothing, 60)  # it has looked before the last transaction began
                producer.begin_transaction()
                for number in range(100):
                    for topic in names.values():
                        producer.produce(topic, b"value", key=b"%d" % number)
                producer.flush(30)
                # Long enough for some looks at records that are there and not committed.
                time.sleep(0.2)
                begun = time.monotonic()
                if given_up:
                    producer.abort_transaction(30)
                else:
                    producer.commit_transaction(30)

            arrival = arrivals.arrival(400, nothing, 60)

            assert arrival.first < begun < arrival.last
            with pytest.raises(NotArrived, match=r"400 of 401"):
                arrivals.arrival(401, nothing, 2)
