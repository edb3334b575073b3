"""Real tables of Delta Lake and Iceberg that are kept equal to MySQL's, each by the Spark that it is made for.

They are compared row by row, by other readers.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from pymysql.connections import Connection

from incsnap.cli.main import commands
from incsnap.monitoring.status import RUNNING, STOPPED
from incsnap.tables import TableId
from lab.addresses import MySqlAddress
from lab.fetched_lake import DELTA, LAKES
from lab.fetched_lake import Lake as Format
from lab.lake_table import compare_with_lake, has_row, rows_of_lake
from lab.mysql_client import connect
from lab.running_job import RunningJob, write_properties
from lab.running_query import running_query
from lab.table_designs import ORDERS
from lab.workload import Writer
from signals import send
from tests.support.frames import SIGNALS, options
from tests.support.lakes import fetched
from tests.support.waiting import PATIENCE_SECONDS, wait_until

pytestmark = [pytest.mark.servers, pytest.mark.long]
ROWS = 6_000


@pytest.fixture(scope="module", params=LAKES)
def lakes_format(request: pytest.FixtureRequest) -> Format:
    return fetched(request.param)


@pytest.fixture
def connection(connection: Connection[Any]) -> Connection[Any]:
    with connection.cursor() as cursor:
        cursor.execute(SIGNALS)
    return connection


class Lake:
    """A query's table, and lives of the query."""

    def __init__(self, kind: Format, connection: Connection[Any], table: TableId, folder: Path):
        self._kind, self._connection, self._table, self._folder = kind, connection, table, folder
        self.path = folder / "warehouse" / kind.place

    @contextmanager
    def query(self, settings: Mapping[str, str], name: str) -> Iterator[RunningJob]:
        """Run the query until the block ends. `name`: the lake's table, as Spark names it."""
        file = write_properties(self._folder / "shop.properties", settings)
        with running_query(self._kind, file, self._table, name, self._folder) as running:
            yield running

    @property
    def checkpoint(self) -> Path:
        return self._folder / "spark"

    def status(self) -> str:
        """Return the query's state by `incsnap status FILE --table TABLE`."""
        command = ["status", str(self._folder / "shop.properties"), "--table", str(self._table), "--json"]
        return str(json.loads(CliRunner().invoke(commands, command).output)["state"])

    def wait_until_equal(self, query: RunningJob) -> None:
        query.wait_until("the tables were equal", lambda: not self._faults(), PATIENCE_SECONDS, every=0.3)

    def _faults(self) -> list[str]:
        return compare_with_lake(self._connection, self._table, self.path).faults()


def test_a_table_stays_equal_through_changes_of_its_rows_and_columns(
    lakes_format: Format,
    connection: Connection[Any],
    mysql_address: MySqlAddress,
    database: str,
    tmp_path: Path,
) -> None:
    execute = executor(connection)
    execute(
        "CREATE TABLE t (id SMALLINT, part CHAR(1), price DECIMAL(20,4), raw VARBINARY(9), PRIMARY KEY (id, part))",
        "INSERT INTO t VALUES (1, 'a', 1.5, 'x'), (1, 'b', NULL, NULL), (2, 'a', -3, '')",
    )
    lake = Lake(lakes_format, connection, TableId(database, "t"), tmp_path)
    settings = options(
        mysql_address,
        database,
        tmp_path,
        snapshot__mode="initial",
        skipped__operations="none",
    ) | {"checkpoint.location": str(tmp_path / "job")}
    with lake.query(settings, lakes_format.table) as query:
        lake.wait_until_equal(query)
        execute(
            "UPDATE t SET price = 2 WHERE id = 1", "DELETE FROM t WHERE id = 2", "INSERT INTO t VALUES (3, 'c', 0, 'y')"
        )
        execute("UPDATE t SET id = 4 WHERE id = 3", "UPDATE t SET part = 'z' WHERE part = 'b'")
        lake.wait_until_equal(query)
        execute(
            "INSERT INTO t VALUES (5, 'e', 5, 'five')",
            "ALTER TABLE t ADD COLUMN at DATETIME(3), ADD COLUMN big BIGINT UNSIGNED, ADD COLUMN tiny TINYINT",
            "INSERT INTO t VALUES (6, 'f', 6, 'six', '2024-02-29 01:02:03.456', 18446744073709551615, -128)",
            "UPDATE t SET at = '1999-12-31 23:59:59' WHERE id = 1",
        )
        lake.wait_until_equal(query)
        execute("TRUNCATE t", "INSERT INTO t VALUES (1, 'a', 9, 'behind', NULL, 0, 127)")
        lake.wait_until_equal(query)
        assert lake.status() == RUNNING
        query.stop()
    wait_until(lambda: lake.status() == STOPPED)
    assert [row["raw"] for row in rows_of_lake(lake.path)] == [b"behind"]


def test_a_table_is_equal_after_a_snapshot_under_load_and_kills(
    lakes_format: Format,
    connection: Connection[Any],
    mysql_address: MySqlAddress,
    database: str,
    tmp_path: Path,
) -> None:
    orders = ORDERS.create(connection, database, ROWS)
    lake = Lake(lakes_format, connection, orders, tmp_path)
    settings = options(mysql_address, database, tmp_path) | {"checkpoint.location": str(tmp_path / "job")}
    name = f"delta.`{lake.path}`" if lakes_format is DELTA else lakes_format.table

    def read() -> int:
        """Rows that the snapshot alone has brought: the writer has not touched them."""
        return sum(row["version"] == 0 for row in rows_of_lake(lake.path))

    def signal(id_: str, kind: str, data: dict[str, Any]) -> None:
        send.to_table(connection, f"`{database}`.signals", id_, kind, data)

    with Writer(lambda: connect(mysql_address, database=database), [(ORDERS, orders)], seed=5, rate=50) as writer:
        with lake.query(settings, name) as query:
            query.wait_until("changes were merged", lambda: has_row(lake.path, "version", ">", 0))
            # So that it is killed in the middle, however slow the machine is.
            signal("slow", "incsnap-throttle", {"rows-per-second": 200})
            signal("all", "execute-snapshot", send.snapshot_data([str(orders)]))
            query.wait_until("the snapshot had begun", lambda: read() > 0)
            query.kill()
        killed_at = read()
        with lake.query(settings, name) as query:
            query.wait_until("the snapshot went on", lambda: read() > killed_at)
            query.kill()
        assert read() < untouched(connection, orders)
        # The last batch that was done is done again.
        commits = sorted((lake.checkpoint / "commits").glob("[0-9]*"), key=lambda file: int(file.name))
        commits[-1].unlink()
        (commits[-1].parent / f".{commits[-1].name}.crc").unlink(missing_ok=True)
        with lake.query(settings, name) as query:
            signal("fast", "incsnap-throttle", {"rows-per-second": 0})
            # The lake is behind the writer, so it has more of these then, and fewer before.
            query.wait_until("the snapshot was complete", lambda: read() >= untouched(connection, orders))
            writer.stop()
            lake.wait_until_equal(query)
    assert writer.written.by_kind.keys() >= {"insert", "update", "delete", "re-key"}


def test_a_lakes_table_is_compared_with_mysqls(
    lakes_format: Format, connection: Connection[Any], mysql_address: MySqlAddress, database: str, tmp_path: Path
) -> None:
    columns = "id BIGINT UNSIGNED PRIMARY KEY, price DECIMAL(20,4), raw VARBINARY(9), f FLOAT, at DATETIME(6), doc JSON"
    executor(connection)(
        f"CREATE TABLE t ({columns})",
        "INSERT INTO t SELECT n, n / 3, CONCAT('r', n), n / 7, '2024-02-29 01:02:03.000004', JSON_OBJECT('n', n) FROM"
        " (WITH RECURSIVE c AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM c WHERE n < 500) SELECT n FROM c) AS numbers",
    )
    given = options(mysql_address, database, tmp_path, snapshot__mode="initial") | {"bootstrap.servers": "localhost:1"}
    file = write_properties(tmp_path / "shop.properties", given)
    command = [sys.executable, "-m", "tests.support.lake_comparison", str(file), f"{database}.t"]
    command += ["--format", lakes_format.format, "--warehouse", str(tmp_path / "warehouse")]
    for statement in (
        "DELETE FROM {name} WHERE id = 7",
        "UPDATE {name} SET price = price + 1 WHERE id = 8",
        "UPDATE {name} SET id = 900 WHERE id = 9",
        "INSERT INTO {name} SELECT * FROM {name} WHERE id = 10",
    ):
        command += ["--spoil", statement]
    # Neither a change of a row that is right nor one of a row that is wrong makes a difference.
    for statement in (
        f"UPDATE {database}.t SET price = 0 WHERE id IN (8, 11)",
        f"DELETE FROM {database}.t WHERE id = 12",
    ):
        command += ["--change", statement]

    done = subprocess.run(
        command, env=lakes_format.environment(), capture_output=True, text=True, timeout=280, check=False
    )

    assert done.returncode == 0, done.stdout + done.stderr[-6_000:]
    steps = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    faults = [
        [7, "missing", []],
        [8, "wrong", ["price"]],
        [9, "missing", []],
        [10, "duplicate", []],
        [900, "extra", []],
    ]
    assert steps == [
        {"step": "filled", "differences": []},
        {"step": "spoilt", "differences": faults},
        {"step": "changed", "differences": faults},
    ]


def untouched(connection: Connection[Any], table: TableId) -> int:
    """Rows that are as they were loaded."""
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT COUNT(*) FROM {table.sql} WHERE version = 0")
        return int(cursor.fetchall()[0][0])


def executor(connection: Connection[Any]) -> Callable[..., None]:
    def execute(*statements: str) -> None:
        with connection.cursor() as cursor:
            for statement in statements:
                cursor.execute(statement)

    return execute
