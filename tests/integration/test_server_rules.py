"""Rules about the server's variables, each held by a real server that has the wrong value."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from typing import Any

import pytest
from pymysql.connections import Connection

from incsnap.errors import PreflightFailed
from incsnap.mysql import preflight, session
from incsnap.mysql.preflight import Finding, findings, require
from lab.addresses import MySqlAddress
from lab.mysql_client import connect
from lab.servers import servers
from tests.support.planned_job import settings_of

pytestmark = [pytest.mark.servers, pytest.mark.named_rows("`incsnap check` warns of MINIMAL")]

Statements = Sequence[str]

#: By variable: statements that give a running server the wrong value, and statements that take it back.
_DYNAMIC: dict[str, tuple[Statements, Statements]] = {
    "binlog_format": (["SET GLOBAL binlog_format = MIXED"], ["SET GLOBAL binlog_format = ROW"]),
    "binlog_row_image": (["SET GLOBAL binlog_row_image = MINIMAL"], ["SET GLOBAL binlog_row_image = FULL"]),
    "binlog_order_commits": (["SET GLOBAL binlog_order_commits = OFF"], ["SET GLOBAL binlog_order_commits = ON"]),
    "gtid_mode": (["SET GLOBAL gtid_mode = ON_PERMISSIVE"], ["SET GLOBAL gtid_mode = ON"]),
    "enforce_gtid_consistency": (
        [
            "SET GLOBAL gtid_mode = ON_PERMISSIVE",
            "SET GLOBAL gtid_mode = OFF_PERMISSIVE",
            "SET GLOBAL enforce_gtid_consistency = WARN",
        ],
        [
            "SET GLOBAL enforce_gtid_consistency = ON",
            "SET GLOBAL gtid_mode = ON_PERMISSIVE",
            "SET GLOBAL gtid_mode = ON",
        ],
    ),
    "replica_preserve_commit_order": (
        ["SET GLOBAL replica_preserve_commit_order = OFF", "CHANGE REPLICATION SOURCE TO SOURCE_HOST = '127.0.0.1'"],
        ["RESET REPLICA ALL", "SET GLOBAL replica_preserve_commit_order = ON"],
    ),
}


def _checked(address: MySqlAddress) -> list[Finding]:
    return findings(settings_of(address, "127.0.0.1:1", "rules", "rules"))


def _named(all_findings: list[Finding], name: str) -> list[Finding]:
    return [finding for finding in all_findings if finding.name == name]


def _run(connection: Connection[Any], statements: Statements) -> None:
    with connection.cursor() as cursor:
        for statement in statements:
            cursor.execute(statement)


@contextmanager
def _server(*options: str) -> Iterator[tuple[MySqlAddress, Connection[Any]]]:
    with (
        servers(kafka=False, mysql_options=["--server-id=55", *options]) as started,
        closing(connect(started.mysql)) as connection,
    ):
        _run(connection, ["CREATE DATABASE rules", "CREATE TABLE rules.t (id INT PRIMARY KEY)"])
        yield started.mysql, connection


@pytest.fixture(scope="module")
def own() -> Iterator[tuple[MySqlAddress, Connection[Any]]]:
    """A server of these tests alone: its variables are changed."""
    with _server() as started:
        yield started


@pytest.mark.parametrize("variable", _DYNAMIC)
def test_a_wrong_value_of_a_variable_stops_the_start(variable: str, own: tuple[MySqlAddress, Connection[Any]]) -> None:
    address, connection = own
    assert _checked(address) == [], "the server was not ready before"
    wrong, right = _DYNAMIC[variable]
    try:
        _run(connection, wrong)
        (finding,) = _named(reported := _checked(address), variable)
        assert finding.severity == "error"
        assert finding.repair
        with pytest.raises(PreflightFailed, match=variable):
            require(reported)
    finally:
        _run(connection, right)


def test_the_repair_of_each_rule_repairs_the_server(own: tuple[MySqlAddress, Connection[Any]]) -> None:
    address, connection = own
    wrong, _ = _DYNAMIC["enforce_gtid_consistency"]
    others = ("binlog_format", "binlog_row_image", "binlog_order_commits")
    try:
        _run(connection, [*wrong, *(statement for name in others for statement in _DYNAMIC[name][0])])
        repairs = dict.fromkeys(finding.repair for finding in _checked(address))
        assert len(repairs) == len(others) + 1
        _run(connection, [statement for repair in repairs for statement in repair.split(";") if statement.strip()])
        assert _checked(address) == []
    finally:
        _run(connection, [statement for _, right in _DYNAMIC.values() for statement in right])


def test_rows_without_column_names_are_a_warning(own: tuple[MySqlAddress, Connection[Any]]) -> None:
    address, connection = own
    try:
        _run(connection, ["SET GLOBAL binlog_row_metadata = MINIMAL"])
        (finding,) = _named(reported := _checked(address), "binlog_row_metadata")
        assert finding.severity == "warning"
        require(reported)
    finally:
        _run(connection, ["SET GLOBAL binlog_row_metadata = FULL"])


def test_a_server_without_a_binlog_is_refused() -> None:
    with _server("--skip-log-bin", "--gtid-mode=OFF", "--enforce-gtid-consistency=OFF") as (address, _):
        reported = _checked(address)
        assert {"log_bin", "gtid_mode", "enforce_gtid_consistency"} <= {finding.name for finding in reported}
        with pytest.raises(PreflightFailed, match="log-bin"):
            require(reported)


def test_a_replica_that_does_not_log_what_it_replicates_is_refused() -> None:
    with _server("--log-replica-updates=OFF", "--replica-preserve-commit-order=OFF") as (address, connection):
        assert _checked(address) == [], "a server that is no replica may have it"
        _run(connection, ["CHANGE REPLICATION SOURCE TO SOURCE_HOST = '127.0.0.1'"])
        (finding,) = _named(reported := _checked(address), "log_replica_updates")
        assert "--log-replica-updates=ON" in finding.repair
        with pytest.raises(PreflightFailed, match="does not log what it replicates"):
            require(reported)


@pytest.mark.parametrize(
    ("number", "text"), [((5, 7, 44), "5.7.44-log"), ((8, 0, 0), "8.0.0-dmr"), ((10, 11, 6), "10.11.6-MariaDB")]
)
def test_a_server_of_another_kind_is_refused_by_its_version(
    number: tuple[int, int, int], text: str, own: tuple[MySqlAddress, Connection[Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The lab cannot fetch such a server, so the test changes the version that a real server reports."""

    def answer(connection: Connection[Any], statement: str, *values: Any) -> Any:
        return ((text,),) if statement == "SELECT VERSION()" else session.query(connection, statement, *values)

    monkeypatch.setattr(preflight, "version", lambda _: number)
    monkeypatch.setattr(preflight, "query", answer)

    (finding,) = _checked(own[0])

    assert (finding.name, finding.severity) == ("version", "error")
    assert text in finding.problem
