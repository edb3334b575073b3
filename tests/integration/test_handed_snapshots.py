"""A snapshot that goes from one engine to the other goes on behind the last key only if both order the rows alike."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from pymysql.connections import Connection

from incsnap.config.settings import Settings
from incsnap.errors import ConfigError
from incsnap.events import StreamPosition
from incsnap.gtid import GtidSet
from incsnap.kafka.java_objects import read_object
from incsnap.snapshot.commands import ChosenRows, DataCollection
from incsnap.snapshot.context import Request, Scan, SnapshotContext
from incsnap.snapshot.offset import Offset, TopicLayout
from incsnap.tables import TableId
from incsnap.takeover.connector_offset import RunningSnapshot, WaitingTable
from incsnap.takeover.continued_snapshot import requests_of
from incsnap.takeover.handed_snapshot import fields_of_snapshot
from lab.addresses import MySqlAddress
from tests.support.planned_job import settings_of

pytestmark = pytest.mark.servers

_TABLE = """CREATE TABLE orders (
    id BIGINT PRIMARY KEY, customer BIGINT NOT NULL, place BIGINT NOT NULL, code VARCHAR(20) NOT NULL, KEY (customer)
)"""


@pytest.fixture
def orders(connection: Connection[Any], database: str) -> TableId:
    """A table of the database `database`."""
    with connection.cursor() as cursor:
        cursor.execute(_TABLE.replace("orders", f"`{database}`.orders"))
    return TableId(database, "orders")


def settings_with(mysql: MySqlAddress, database: str, keys: str = "", **more: str) -> Settings:
    named = {"message__key__columns": keys} if keys else {}
    signals = {"signal__data__collection": f"{database}.signals"}
    return settings_of(mysql, "127.0.0.1:9092", "shop", database, **{**signals, **named, **more})


def end_with(*scans: Scan) -> Offset:
    place = StreamPosition(GtidSet(), "binlog.000001", 4)
    return Offset("job", 1, place, TopicLayout(1), SnapshotContext(scans=scans))


def scan_by(table: TableId, *columns: str, surrogate: str = "", chosen: ChosenRows | None = None) -> Scan:
    """Return a scan that has sent all rows up to the key (4, 5), and ends at (90, 100)."""
    request = Request("s", DataCollection(table, surrogate=surrogate, chosen=chosen))
    last, maximum = (("4", "5")[: len(columns)], ("90", "100")[: len(columns)])
    return Scan(1, request, 100, columns, described=True, maximum=maximum, boundary=last)


@pytest.mark.parametrize(
    ("keys", "surrogate", "columns"),
    [("{}.orders:customer", "", ("id",)), ("", "customer", ("customer", "id"))],
    ids=["another key of records", "surrogate key"],
)
def test_a_table_begins_anew_if_debezium_reads_it_by_other_columns(
    connection: Connection[Any],
    mysql_address: MySqlAddress,
    orders: TableId,
    keys: str,
    surrogate: str,
    columns: tuple[str, ...],
) -> None:
    settings = settings_with(mysql_address, orders.database, keys.format(orders.database))
    fields, lines = fields_of_snapshot(connection, settings, end_with(scan_by(orders, *columns, surrogate=surrogate)))

    assert sorted(fields) == ["incremental_snapshot_collections", "incremental_snapshot_correlation_id"]
    assert lines == [f"Snapshots begin at the first row of: {orders}."]


@pytest.mark.parametrize(("keys", "surrogate"), [("", ""), ("{}.orders:id", ""), ("{}.orders:customer", "id")])
def test_a_table_goes_on_behind_its_last_key_if_debezium_reads_it_by_the_same_columns(
    connection: Connection[Any], mysql_address: MySqlAddress, orders: TableId, keys: str, surrogate: str
) -> None:
    settings = settings_with(mysql_address, orders.database, keys.format(orders.database))
    fields, lines = fields_of_snapshot(connection, settings, end_with(scan_by(orders, "id", surrogate=surrogate)))

    assert read_object(bytes.fromhex(fields["incremental_snapshot_primary_key"])) == [4]
    assert read_object(bytes.fromhex(fields["incremental_snapshot_maximum_key"])) == [90]
    assert lines == [f"The snapshot of {orders} goes on behind the key [4]."]


def test_a_range_of_a_connectors_own_snapshot_begins_anew_where_a_signals_range_is_left_out(
    connection: Connection[Any], mysql_address: MySqlAddress, orders: TableId
) -> None:
    settings = settings_with(mysql_address, orders.database)
    chosen = ChosenRows(first='{"customer": 4}', last='{"customer": 90}')
    scan = scan_by(orders, "customer", "id", surrogate="customer", chosen=chosen)

    fields, lines = fields_of_snapshot(connection, settings, end_with(scan))
    assert fields == {}
    assert lines == [f"{orders}: Debezium cannot read rows that a signal chooses. Signal them later."]

    fields, lines = fields_of_snapshot(connection, settings, end_with(scan), [scan.request])
    assert sorted(fields) == ["incremental_snapshot_collections", "incremental_snapshot_correlation_id"]
    assert lines == [f"Snapshots begin at the first row of: {orders}."]


def test_a_paused_snapshot_is_said_to_go_on_at_once(
    connection: Connection[Any], mysql_address: MySqlAddress, orders: TableId
) -> None:
    settings, end = settings_with(mysql_address, orders.database), end_with(scan_by(orders, "id"))
    paused = replace(end, snapshot=replace(end.snapshot, paused=True))
    _, lines = fields_of_snapshot(connection, settings, paused)

    sentence = "The snapshot is paused in the job. The connector keeps no pause: it reads on when it starts."
    assert lines == [f"The snapshot of {orders} goes on behind the key [4].", sentence]
    assert fields_of_snapshot(connection, settings, replace(end_with(), snapshot=SnapshotContext(paused=True)))[1] == []


@pytest.mark.parametrize(
    ("key", "surrogate", "goes_on"),
    [
        (("id",), "", True),
        (("customer",), "", True),
        (("id",), "customer", True),
        (("customer", "place"), "", False),
        (("place",), "", False),
        (("id",), "place", False),
    ],
    ids=["primary key", "indexed column", "surrogate key", "no order begins so", "no index", "surrogate without index"],
)
def test_a_job_goes_on_behind_a_connectors_last_key_only_where_it_can_read_the_range(
    mysql_address: MySqlAddress, orders: TableId, key: tuple[str, ...], surrogate: str, goes_on: bool
) -> None:
    settings = settings_with(mysql_address, orders.database, f"{orders}:{','.join(key)}")
    count = 1 if surrogate else len(key)
    waiting = WaitingTable(str(orders), surrogate=surrogate)
    running = RunningSnapshot("s", (waiting,), (4, 5)[:count], (90, 100)[:count])

    (request,), (line,) = requests_of(settings, running, {str(orders): orders}, {str(orders): key})

    assert (request.table, request.collection.surrogate) == (orders, surrogate)
    assert (request.collection.chosen is not None) == goes_on
    ends = f"goes on behind the key {request.collection.chosen.first}." if request.collection.chosen else "first row."
    assert line.endswith(ends)


def test_a_job_begins_a_table_anew_whose_key_it_has_as_bytes(
    connection: Connection[Any], mysql_address: MySqlAddress, database: str
) -> None:
    with connection.cursor() as cursor:
        cursor.execute(f"CREATE TABLE `{database}`.t (id VARCHAR(20) CHARACTER SET koi8r PRIMARY KEY)")
    table, settings = TableId(database, "t"), settings_with(mysql_address, database)
    running = RunningSnapshot("s", (WaitingTable(str(table)),), ("\u0430",), ("\u044f",))

    (request,), (line,) = requests_of(settings, running, {str(table): table}, {str(table): ("id",)})

    assert request.collection.chosen is None
    assert line.endswith("begins at its first row.")


@pytest.mark.parametrize(
    "more",
    [{"signal__data__collection": ""}, {"signal__enabled__channels": "kafka"}],
    ids=["no signal table", "no source channel"],
)
def test_a_snapshot_is_not_given_to_a_connector_that_would_never_read_it(
    connection: Connection[Any], mysql_address: MySqlAddress, orders: TableId, more: dict[str, str]
) -> None:
    end = end_with(scan_by(orders, "id"))
    with pytest.raises(ConfigError) as refused:
        fields_of_snapshot(connection, settings_with(mysql_address, orders.database, **more), end)

    assert str(orders) in refused.value.message
    assert "signal.data.collection" in refused.value.hint
    assert "read.only=true" in refused.value.hint
    assert fields_of_snapshot(connection, settings_with(mysql_address, orders.database, **more), end_with()) == ({}, [])
    read_only = settings_with(mysql_address, orders.database, **more, read__only="true")
    assert "incremental_snapshot_primary_key" in fields_of_snapshot(connection, read_only, end)[0]
