"""The demo of `python -m lab --to delta` or `iceberg`: a snapshot into a lake's table while its rows change.

At the end it compares the lake's table with the MySQL table.
"""

from __future__ import annotations

import json
import secrets
import signal
import time
from contextlib import ExitStack, closing
from pathlib import Path

from pymysql.connections import Connection
from pymysql.cursors import Cursor
from rich.table import Table

from incsnap.checkpoint.files import Files
from incsnap.checkpoint.location import own_part
from incsnap.cli import output
from incsnap.config.frames import frame_settings
from incsnap.monitoring.job_status import NAME
from incsnap.monitoring.status import JobStatus, load
from incsnap.tables import TableId
from lab.addresses import MySqlAddress
from lab.fetched_lake import Lake
from lab.lake_table import compare_with_lake, has_row
from lab.mysql_client import connect
from lab.run_folder import run_folder
from lab.running_job import RunningJob, write_properties
from lab.running_query import running_query
from lab.servers import servers
from lab.table_designs import ORDERS
from lab.workload import Writer
from signals import send

_CHANGES_PER_SECOND = 300.0
_SNAPSHOT_SECONDS = 600.0
_LINE_SECONDS = 3.0
#: The version of the last change. No writer uses it.
_LAST = 2**62


def lake_demo(lake: Lake, rows: int, *, keep: bool) -> list[str]:
    """Run the demo, print its progress, and return its faults.

    `rows` is the size of the MySQL table. `keep` makes it wait for Ctrl-C at the end.
    """
    with ExitStack() as stack:
        tell = output.console().print
        tell(f"Starting MySQL, and looking for Spark {lake.spark} and {lake.title} {lake.version} ...")
        mysql = stack.enter_context(servers(kafka=False)).mysql
        # Spark is fetched before MySQL is loaded.
        lake.environment()
        folder = stack.enter_context(run_folder())
        database = f"incsnap_demo_{secrets.token_hex(3)}"
        connection = stack.enter_context(closing(connect(mysql)))
        with connection.cursor() as cursor:
            cursor.execute(f"CREATE DATABASE `{database}`")
        stack.callback(_drop, mysql, database)
        signals = TableId(database, "signals")
        with connection.cursor() as cursor:
            columns = "id VARCHAR(42) PRIMARY KEY, type VARCHAR(32) NOT NULL, data TEXT NULL"
            cursor.execute(f"CREATE TABLE {signals.sql} ({columns})")
        tell(f"Loading {rows:,} orders ...")
        orders = ORDERS.create(connection, database, rows)
        properties = write_properties(folder / "shop.properties", _settings(mysql, database, folder))
        place = folder / "warehouse" / lake.place
        tell("Starting the query ...")
        began = time.monotonic()
        with running_query(lake, properties, orders, lake.table, folder) as query:
            query.wait_until("the query was streaming", lambda: _status(properties, orders) is not None)
            streaming = time.monotonic()
            with Writer(
                lambda: connect(mysql), [(ORDERS, orders)], seed=secrets.randbits(32), rate=_CHANGES_PER_SECOND
            ) as writer:
                query.wait_until("the first change was merged", lambda: has_row(place, "version", ">", 0))
                tell(f"A writer makes up to {_CHANGES_PER_SECOND:.0f} changes/s. Signal: {orders} by the signal table.")
                signalled = time.monotonic()
                send.to_table(connection, signals.sql, "demo", "execute-snapshot", send.snapshot_data([str(orders)]))
                _watch(query, properties, orders, writer)
            read = time.monotonic()
            _change_last(connection, orders)
            query.wait_until("the last change was merged", lambda: has_row(place, "version", "=", _LAST))
            drained = time.monotonic()
        tell("Reading both tables, by readers of their own, and comparing them row by row ...")
        comparison = compare_with_lake(connection, orders, place)
        table = Table.grid(padding=(0, 3))
        table.add_row("rows in MySQL", f"{comparison.rows:,}")
        for kind, count in sorted(writer.written.by_kind.items()):
            table.add_row(f"changes meanwhile ({kind})", f"{count:,}")
        table.add_row("rows missing in the lake's table", f"{comparison.missing.count:,}")
        table.add_row("extra rows in the lake's table", f"{comparison.extra.count:,}")
        table.add_row("rows that differ", f"{comparison.different.count:,}")
        tell(table)
        times = {
            "start of the query": streaming - began,
            "snapshot": read - signalled,
            "drain": drained - read,
        }
        tell("Seconds: " + ", ".join(f"{name} {seconds:.1f}" for name, seconds in times.items()))
        if not comparison.faults():
            tell("Every row is equal.")
        if keep:
            tell(f"MySQL {mysql}, database {database}; the lake's table is {place}. Ctrl-C removes them.")
            signal.pause()
        return comparison.faults()


def _settings(mysql: MySqlAddress, database: str, folder: Path) -> dict[str, str]:
    return {
        **mysql.properties(),
        "topic.prefix": database,
        "snapshot.mode": "no_data",
        "signal.data.collection": f"{database}.signals",
        "checkpoint.location": str(folder / "checkpoint"),
    }


def _watch(query: RunningJob, properties: Path, table: TableId, writer: Writer) -> None:
    """Print the snapshot's progress until it is complete."""
    next_line = time.monotonic()

    def complete() -> bool:
        nonlocal next_line
        if writer.failed:
            writer.stop()
        status = _status(properties, table)
        if status is None:
            return False
        if time.monotonic() >= next_line:
            next_line = time.monotonic() + _LINE_SECONDS
            for each in status.snapshot.tables:
                windows = status.snapshot.windows_in_flight
                output.console().print(
                    f"  {each.rows_done:,} of about {each.rows_expected or 0:,} rows, {windows} windows"
                )
        return any(ended.table == str(table) for ended in status.snapshot.finished)

    query.wait_until("the snapshot was complete", complete, _SNAPSHOT_SECONDS)


def _status(properties: Path, table: TableId) -> JobStatus | None:
    """Return the status that `incsnap status FILE --table TABLE` shows, or None before the stream has begun."""
    location = frame_settings({"config": str(properties), "table": str(table)}).settings.checkpoint_location
    content = Files(own_part(location)).read(NAME)
    status = None if content is None else load(json.loads(content.to_pybytes()))
    return status if status is not None and status.stream is not None else None


def _change_last(connection: Connection[Cursor], table: TableId) -> None:
    with connection.cursor() as cursor:
        cursor.execute(f"UPDATE {table.sql} SET version = {_LAST} LIMIT 1")


def _drop(mysql: MySqlAddress, database: str) -> None:
    with closing(connect(mysql)) as connection, connection.cursor() as cursor:
        cursor.execute(f"DROP DATABASE IF EXISTS `{database}`")
