"""A server whose defaults for sessions are as bad as they can be: all that is read of it is the same."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from incsnap.mysql.catalog import shape_of, tables
from incsnap.mysql.chunk_reader import read_chunk
from incsnap.mysql.session import connect, query
from incsnap.mysql.table_definitions import definitions_of
from incsnap.snapshot.chunk_query import chunk_tail, maximum_key, next_boundary
from incsnap.snapshot.window import Chunk, ordering_columns
from incsnap.tables import TableId
from lab.addresses import MySqlAddress
from lab.mysql_client import connect as open_session
from lab.servers import servers
from signals import send
from tests.support.planned_job import PlannedJob, settings_of
from tests.support.waiting import PATIENCE_SECONDS

pytestmark = pytest.mark.servers

TABLE = TableId("shop", "orders")
_ROWS = 3_000
_HOSTILE = {
    "autocommit": "0",
    "transaction_isolation": "'READ-UNCOMMITTED'",
    "transaction_read_only": "1",
    "completion_type": "2",
    "max_execution_time": "1",
    "sql_select_limit": "3",
    "sql_big_selects": "0",
    "max_join_size": "1",
    "sql_auto_is_null": "1",
    "sql_mode": "'ANSI_QUOTES,NO_BACKSLASH_ESCAPES,PIPES_AS_CONCAT,PAD_CHAR_TO_FULL_LENGTH,HIGH_NOT_PRECEDENCE,"
    "NO_UNSIGNED_SUBTRACTION,TIME_TRUNCATE_FRACTIONAL'",
    "time_zone": "'+05:30'",
    "character_set_client": "latin1",
    "character_set_connection": "latin1",
    "character_set_results": "latin1",
    "lc_time_names": "'de_DE'",
    "range_optimizer_max_mem_size": "1",
    "sql_quote_show_create": "0",
    "show_create_table_verbosity": "1",
    "show_gipk_in_create_table_and_information_schema": "0",
    "net_write_timeout": "1",
    "wait_timeout": "1",
}
_SWITCHES = "mrr_cost_based=off,use_invisible_indexes=on,prefer_ordering_index=off,index_condition_pushdown=off"


@pytest.fixture(scope="module")
def server() -> Iterator[MySqlAddress]:
    with servers(kafka=False, mysql_options=["--server-id=83"]) as started:
        yield started.mysql


@pytest.fixture
def reader(server: MySqlAddress) -> MySqlAddress:
    """A user without rights to change what others' sessions begin with."""
    return replace(server, user="reader", password="p")


@pytest.fixture
def root(server: MySqlAddress) -> Iterator[Any]:
    """Yield a session that was opened before the server's defaults are changed. Restore the defaults at the end."""
    connection = open_session(server)
    with closing(connection), connection.cursor() as cursor:
        cursor.execute("CREATE DATABASE shop")
        cursor.execute(
            "CREATE TABLE shop.orders (name VARCHAR(40), day TIMESTAMP NOT NULL, note CHAR(9), price DOUBLE,"
            " kind ENUM('a','ü'), `back\\\\slash` INT DEFAULT 7, CHECK (name <> 'x\"y'), PRIMARY KEY (name, day))"
        )
        values = ", ".join(
            f"('né{number:05}€', '2024-03-31 02:{number % 60:02}:00', 'n', {number} / 3, 'ü', NULL)"
            for number in range(_ROWS)
        )
        cursor.execute(f"INSERT INTO shop.orders VALUES {values}")
        cursor.execute("CREATE USER reader@'%' IDENTIFIED BY 'p'")
        cursor.execute("GRANT SELECT, REPLICATION SLAVE, REPLICATION CLIENT ON *.* TO reader@'%'")
        try:
            yield connection
        finally:
            for name in (*_HOSTILE, "optimizer_switch"):
                cursor.execute(f"SET GLOBAL {name} = DEFAULT")
            cursor.execute("DROP DATABASE shop")
            cursor.execute("DROP USER reader@'%'")


def _spoil(root: Any) -> None:
    with root.cursor() as cursor:
        for name, value in {**_HOSTILE, "optimizer_switch": f"'{_SWITCHES}'"}.items():
            cursor.execute(f"SET GLOBAL {name} = {value}")


def _all_that_is_read(address: MySqlAddress) -> list[Any]:
    settings = settings_of(address, "unused:1", "p", "shop")
    with closing(connect(settings.mysql)) as connection:
        shape = shape_of(connection, TABLE)
        assert shape is not None
        columns = ordering_columns(shape, ("name", "day"))
        (maximum,) = query(connection, maximum_key(TABLE, columns))
        boundaries = query(connection, next_boundary(TABLE, columns, None, maximum, 1_000))
        after = boundaries[0]
        steps = _steps(connection)
        query(connection, next_boundary(TABLE, columns, after, maximum, 10))
        steps = _steps(connection) - steps
        chunk = chunk_tail(Chunk(TABLE, ("name", "day"), after, maximum), columns)
        rows = read_chunk(connection, shape, chunk, max_bytes=1 << 24, timeout_seconds=PATIENCE_SECONDS)
        return [
            tables(connection, settings.tables),
            shape,
            maximum,
            boundaries,
            steps,
            [column.to_pylist() for column in rows],
            definitions_of(connection, {TABLE: ""}),
        ]


def _steps(connection: Any) -> int:
    """Keys that were walked over in an index."""
    return int(query(connection, "SHOW SESSION STATUS LIKE 'Handler_read_next'")[0][1])


def test_reads_do_not_depend_on_the_servers_session_defaults(reader: MySqlAddress, root: Any) -> None:
    before = _all_that_is_read(reader)
    _spoil(root)
    spoilt = _all_that_is_read(reader)

    assert len(spoilt[5][0]) == _ROWS - 1_000
    assert spoilt[4] < 50
    assert spoilt == before


def test_exactly_the_committed_rows_are_read(reader: MySqlAddress, root: Any) -> None:
    _spoil(root)
    count = "SELECT COUNT(*) FROM shop.orders"
    with closing(connect(settings_of(reader, "unused:1", "p", "shop").mysql)) as connection, root.cursor() as cursor:
        cursor.execute("BEGIN")
        cursor.execute("INSERT INTO shop.orders (name, day) VALUES ('new', '2024-01-01')")
        assert query(connection, count) == ((_ROWS,),)
        cursor.execute("COMMIT AND NO CHAIN NO RELEASE")
        assert query(connection, count) == ((_ROWS + 1,),)


def test_a_job_streams_and_snapshots_a_server_of_hostile_defaults(
    reader: MySqlAddress, root: Any, kafka_address: str, topic_prefix: str, tmp_path: Path
) -> None:
    _spoil(root)
    settings = settings_of(
        reader,
        kafka_address,
        topic_prefix,
        "shop",
        signal__enabled__channels="file",
        signal__file=str(tmp_path / "signals"),
        signal__poll__interval__ms="1",
    )
    job = PlannedJob(settings, str(tmp_path / "checkpoint"))
    with closing(job):
        with root.cursor() as cursor:
            cursor.execute("INSERT INTO shop.orders (name, day) VALUES ('é€', '2024-01-01 00:00:00')")
        job.until(f"{topic_prefix}.shop.orders")
        send.to_file(settings.signals.file, "s", "execute-snapshot", send.snapshot_data([str(TABLE)]))
        by_type: dict[str, dict[str, str]] = {}

        def complete() -> bool:
            by_type.update({n.type: dict(n.fields) for n in job.offset.snapshot.notifications})
            return "COMPLETED" in by_type

        job.batches_until(complete, "completed snapshot")

    after = job.of(f"{topic_prefix}.shop.orders")[0].value["after"]
    assert (after["name"], after["day"]) == ("é€", "2024-01-01T00:00:00Z")
    assert by_type["TABLE_SCAN_COMPLETED"]["status"] == "SUCCEEDED", json.dumps(by_type)
    assert by_type["TABLE_SCAN_COMPLETED"]["total_rows_scanned"] == str(_ROWS + 1)
