"""Tests of the facts that a real server tells about its binlog and the tables being read."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from pymysql.connections import Connection

from incsnap.events import NOWHERE, BinlogPosition
from incsnap.monitoring import server_facts
from incsnap.monitoring.server_facts import ServerFacts, ask, prepare
from incsnap.monitoring.snapshot_view import TableFacts
from incsnap.mysql.session import connect, query
from incsnap.snapshot.commands import DataCollection
from incsnap.snapshot.context import Request, Scan
from incsnap.tables import TableId
from lab.addresses import MySqlAddress
from tests.support.planned_job import settings_of
from tests.support.waiting import PATIENCE_SECONDS

pytestmark = pytest.mark.servers


@pytest.fixture
def connection(mysql_address: MySqlAddress, database: str) -> Iterator[Connection[Any]]:
    made = connect(settings_of(mysql_address, "k:1", "p", database).mysql)
    prepare(made)
    yield made
    made.close()


def scan(database: str, table: str, column: str, number: int = 1, index: str = "PRIMARY") -> Scan:
    request = Request("s", DataCollection(TableId(database, table)))
    return Scan(number, request, 100, columns=(column,), index=index, described=True)


def asked(
    connection: Connection[Any],
    *scans: Scan,
    known: dict[TableId, TableFacts] | None = None,
    at: BinlogPosition = NOWHERE,
) -> ServerFacts:
    return ask(connection, known or {}, scans, at)


def test_the_end_of_the_binlog_and_the_way_to_it(connection: Connection[Any], database: str) -> None:
    query(connection, f"CREATE TABLE `{database}`.t (id INT PRIMARY KEY)")
    before = asked(connection)
    at = BinlogPosition(before.file, before.pos, before.uuid)
    query(connection, f"INSERT INTO `{database}`.t VALUES (1)")
    query(connection, "FLUSH BINARY LOGS")
    query(connection, f"INSERT INTO `{database}`.t VALUES (2)")

    after = asked(connection)

    assert before.bytes_behind(at) == 0
    # Where the stream is in the last file, the others are not looked at.
    assert len(asked(connection, at=BinlogPosition(after.file, 4, after.uuid)).sizes) == 1
    behind = after.bytes_behind(at)
    assert behind is not None
    assert behind > after.pos
    assert abs(after.ahead_ms) < 60_000
    assert after.purge_not_before_ms(before.file, 1_000) == 1_000 + after.expire_seconds * 1_000
    assert after.purge_not_before_ms(after.file, 1_000) == 0


def test_a_server_that_does_not_purge_by_itself_says_so(connection: Connection[Any]) -> None:
    (before,) = query(connection, "SELECT @@global.binlog_expire_logs_auto_purge")[0]
    assert asked(connection).expire_seconds > 0
    query(connection, "SET GLOBAL binlog_expire_logs_auto_purge = OFF")
    try:
        assert asked(connection).expire_seconds == 0
    finally:
        query(connection, f"SET GLOBAL binlog_expire_logs_auto_purge = {int(before)}")


def test_the_size_and_the_least_key_of_tables(
    connection: Connection[Any], database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server_facts, "_LEAST_MS", round(PATIENCE_SECONDS * 1_000))
    numbers = ", ".join(f"({number}, 'k{number}')" for number in range(-7, 993))
    query(connection, f"CREATE TABLE `{database}`.t (id INT PRIMARY KEY, name VARCHAR(9), KEY (name))")
    query(connection, f"INSERT INTO `{database}`.t VALUES {numbers}")
    query(connection, f"ANALYZE TABLE `{database}`.t")
    table = TableId(database, "t")

    tables = asked(connection, scan(database, "t", "id")).tables
    by_name = asked(connection, scan(database, "t", "name", index="name")).tables

    facts = tables[table]
    assert facts.least == "-7"
    assert facts.rows is not None
    assert 500 < facts.rows < 1_500
    assert by_name[table].least is None
    # Asked once: rows that are inserted meanwhile come by the log.
    assert asked(connection, scan(database, "t", "id"), known={table: TableFacts(5)}).tables == {table: TableFacts(5)}


def test_a_table_that_is_gone_is_not_known(connection: Connection[Any], database: str) -> None:
    assert asked(connection, scan(database, "gone", "id")).tables == {TableId(database, "gone"): TableFacts()}


def test_an_empty_table_has_no_least_key(connection: Connection[Any], database: str) -> None:
    query(connection, f"CREATE TABLE `{database}`.t (id INT PRIMARY KEY)")

    assert asked(connection, scan(database, "t", "id")).tables[TableId(database, "t")].least is None
