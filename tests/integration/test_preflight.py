"""Preflight on a real server: everything that is wrong is found at once, each with its repair."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest

from incsnap.cli import check
from incsnap.config.load import from_properties
from incsnap.config.settings import Settings
from incsnap.config.topics import control_topics
from incsnap.errors import ChunkFailed, PreflightFailed, ServerUnreachable
from incsnap.gtid import GtidSet
from incsnap.mysql import watermarks
from incsnap.mysql.preflight import Finding, findings, require
from incsnap.mysql.session import connect
from lab.addresses import MySqlAddress
from lab.mysql_client import connect as open_session
from tests.support.online_runs import changelog
from tests.support.purging import purge_binlog

pytestmark = [pytest.mark.servers, pytest.mark.named_rows("`incsnap check` warns of MINIMAL")]


@pytest.fixture
def root(mysql_address: MySqlAddress) -> Iterator[Any]:
    with closing(open_session(mysql_address)) as connection:
        yield connection


@pytest.fixture
def run(root: Any) -> Any:
    def execute(sql: str) -> None:
        with root.cursor() as cursor:
            cursor.execute(sql)

    return execute


def _settings(address: MySqlAddress, database: str, **more: str) -> Settings:
    properties = {
        **address.properties(),
        "topic.prefix": "preflight-" + database,
        "bootstrap.servers": "127.0.0.1:1",
        "checkpoint.location": "/nowhere",
        "database.include.list": database,
        **{name.replace("__", "."): value for name, value in more.items()},
    }
    return from_properties(properties, {}).settings


def _named(all_findings: list[Finding], name: str) -> list[Finding]:
    return [finding for finding in all_findings if finding.name == name]


def test_a_server_that_is_ready_has_no_findings(mysql_address: MySqlAddress, database: str, run: Any) -> None:
    run(f"CREATE TABLE `{database}`.t (id int primary key)")
    run(f"CREATE TABLE `{database}`.sig (id VARCHAR(42) PRIMARY KEY, type VARCHAR(32), data VARCHAR(2048))")
    all_findings = findings(_settings(mysql_address, database, signal__data__collection=f"{database}.sig"))
    assert all_findings == []
    require(all_findings)


def test_nothing_is_asked_of_the_tables_of_tools_for_online_schema_changes(
    mysql_address: MySqlAddress, database: str, run: Any
) -> None:
    run(f"CREATE TABLE `{database}`.t (id int primary key)")
    run(changelog(database)[0])
    for name in ("_t_gho", "_t_del"):
        run(f"CREATE TABLE `{database}`.{name} (a int)")
    settings = _settings(mysql_address, database)
    former = frozenset({f"{database}._t_del".lower()})
    assert [finding.problem.split()[0] for finding in findings(settings)] == [f"{database}._t_del"]
    assert findings(settings, of_tools=former) == []
    prefix = f"{settings.topic_prefix}.{database}"
    assert check._topics(settings, former) == [f"{prefix}.t", *control_topics(settings)]
    assert f"{prefix}._t_gho" in check._topics(
        _settings(mysql_address, database, incsnap__online__ddl__tables="capture"), ()
    )


def test_everything_wrong_with_the_tables_is_found_at_once(
    mysql_address: MySqlAddress, database: str, run: Any
) -> None:
    run(f"CREATE TABLE `{database}`.keyless (a int)")
    run(f"CREATE TABLE `{database}`.sig (id int primary key, type VARCHAR(32), data blob)")
    all_findings = findings(_settings(mysql_address, database, signal__data__collection=f"{database}.sig"))
    (keyless,) = _named(all_findings, "primary key")
    assert (keyless.severity, "keyless" in keyless.problem) == ("warning", True)
    assert [finding.problem.split()[1] for finding in _named(all_findings, "signal.data.collection")] == ["id", "data"]
    assert all_findings[-1].severity == "warning"
    with pytest.raises(PreflightFailed, match="column id"):
        require(all_findings)


@pytest.mark.parametrize(
    ("columns", "problem"),
    [(None, "does not exist"), ("id text, type text", "2 columns"), ("a int, b int, c int, d int", "4 columns")],
)
def test_a_signal_table_of_another_form_is_found_with_the_statement_that_makes_it(
    columns: str | None, problem: str, mysql_address: MySqlAddress, database: str, run: Any
) -> None:
    if columns:
        run(f"CREATE TABLE `{database}`.sig ({columns})")
    all_findings = findings(_settings(mysql_address, database, signal__data__collection=f"{database}.sig"))
    (finding,) = _named(all_findings, "signal.data.collection")
    assert problem in finding.problem
    assert f"CREATE TABLE `{database}`.`sig` (id VARCHAR(42) PRIMARY KEY" in finding.repair


def test_no_table_and_patterns_without_a_table_are_warnings(mysql_address: MySqlAddress, database: str) -> None:
    all_findings = findings(_settings(mysql_address, database, table__include__list=f"{database}.typo"))
    assert {finding.name for finding in all_findings} == {"table.include.list", "tables"}
    require(all_findings)


def test_patterns_that_match_no_column_are_warnings(mysql_address: MySqlAddress, database: str, run: Any) -> None:
    run(f"CREATE TABLE `{database}`.people (id INT PRIMARY KEY, email VARCHAR(9))")
    settings = _settings(
        mysql_address,
        database,
        column__mask__with__8__chars=f"people.email,{database}.people.EMAIL",
        message__key__columns=f"{database}.people:id,number",
        column__exclude__list=".*[.]nothing",
    )
    all_findings = findings(settings)
    assert {
        finding.name: finding.problem.partition(" ")[0] for finding in all_findings if "no column" in finding.problem
    } == {
        "column.mask.with.8.chars": "people.email",
        "message.key.columns": f"{database}.people.number",
        "column.exclude.list": ".*[.]nothing",
    }
    require(all_findings)


def test_a_user_without_rights_gets_the_grants_it_lacks(
    mysql_address: MySqlAddress, database: str, run: Any, request: pytest.FixtureRequest
) -> None:
    run(f"CREATE TABLE `{database}`.t (id int primary key, v int)")
    run(f"CREATE TABLE `{database}`.part (id int primary key, v int)")
    user = "u" + secrets.token_hex(5)
    run(f"CREATE USER {user} IDENTIFIED BY 'pw'")
    request.addfinalizer(lambda: run(f"DROP USER {user}"))
    hidden = findings(
        _settings(
            mysql_address,
            database,
            database__user=user,
            database__password="pw",
            signal__data__collection=f"{database}.part",
        )
    )
    (signals,) = _named(hidden, "signal.data.collection")
    assert f"GRANT SELECT ON `{database}`.`part` TO '{user}'@'%';" in signals.repair
    run(f"GRANT INSERT ON `{database}`.t TO {user}")
    run(f"GRANT SELECT (id) ON `{database}`.part TO {user}")
    settings = _settings(mysql_address, database, database__user=user, database__password="pw")
    lacks = _named(findings(settings), "privileges")
    assert len({finding.problem for finding in lacks}) == len(lacks)
    repairs = [finding.repair for finding in lacks]
    assert f"GRANT REPLICATION CLIENT ON *.* TO '{user}'@'%';" in repairs
    assert f"GRANT REPLICATION SLAVE ON *.* TO '{user}'@'%';" in repairs
    assert f"GRANT SELECT ON `{database}`.`t` TO '{user}'@'%';" in repairs
    assert f"GRANT SELECT ON `{database}`.`part` TO '{user}'@'%';" in repairs
    for repair in repairs:
        run(repair)
    assert findings(settings) == []


def test_a_wrong_password_and_a_silent_port_are_findings(mysql_address: MySqlAddress, database: str) -> None:
    (refused,) = findings(_settings(mysql_address, database, database__user="nobody", database__password="wr0ng"))
    assert "refuses the user 'nobody'" in refused.problem
    assert "wr0ng" not in str(refused)
    (silent,) = findings(_settings(mysql_address, database, database__port="1"))
    assert "does not answer" in silent.problem


def test_the_servers_own_id_cannot_be_ours(mysql_address: MySqlAddress, database: str, root: Any) -> None:
    with root.cursor() as cursor:
        cursor.execute("SELECT @@server_id")
        own = cursor.fetchone()[0]
    all_findings = findings(_settings(mysql_address, database, database__server__id=str(own)))
    assert _named(all_findings, "database.server.id")


def test_an_offset_that_lacks_purged_transactions_is_found(
    mysql_address: MySqlAddress, database: str, root: Any, run: Any
) -> None:
    settings = _settings(mysql_address, database)
    run("FLUSH BINARY LOGS")
    purge_binlog(root)
    with closing(connect(settings.mysql)) as connection:
        purged = watermarks.purged(connection)

    assert purged
    (lack,) = _named(findings(settings, GtidSet()), "gtid_purged")
    assert (lack.severity, str(purged) in lack.problem) == ("error", True)
    assert not _named(findings(settings, purged), "gtid_purged")


def test_the_wait_for_a_low_watermark_ends_when_executed_and_has_a_time_limit(
    mysql_address: MySqlAddress, database: str
) -> None:
    settings = _settings(mysql_address, database)
    with closing(connect(settings.mysql)) as connection:
        watermarks.wait_until_executed(connection, GtidSet(), 0.1)
        watermarks.wait_until_executed(connection, watermarks.executed(connection), 5.0)
        future = GtidSet.parse("00000000-1111-2222-3333-444444444444:1-3")
        with pytest.raises(ChunkFailed, match="not visible after"):
            watermarks.wait_until_executed(connection, future, 0.05)


def test_the_high_watermark_grows_with_every_commit(mysql_address: MySqlAddress, database: str, run: Any) -> None:
    with closing(connect(_settings(mysql_address, database).mysql)) as connection:
        before = watermarks.high_watermark(connection)
        run(f"CREATE TABLE `{database}`.t (id int)")
        assert watermarks.high_watermark(connection) > before


def test_a_lost_connection_is_a_server_that_cannot_be_reached(
    mysql_address: MySqlAddress, database: str, run: Any
) -> None:
    with closing(connect(_settings(mysql_address, database).mysql)) as connection:
        run(f"KILL {connection.thread_id()}")  # type: ignore[no-untyped-call]
        with pytest.raises(ServerUnreachable):
            watermarks.wait_until_executed(connection, GtidSet.parse("00000000-1111-2222-3333-444444444444:1"), 5.0)
        connection.close = lambda: None  # type: ignore[method-assign]


@pytest.mark.parametrize("mode", ["preferred", "disabled"])
@pytest.mark.parametrize("password", ["plain", "gr\u00fcn", "\u20ac \u65e5\u672c"])
def test_a_password_may_have_any_characters(
    password: str, mode: str, mysql_address: MySqlAddress, database: str, run: Any
) -> None:
    user = f"u_{secrets.token_hex(5)}"
    # Created anew for each, so no server has it in its cache: without TLS it goes encrypted by the server's own key.
    run(f"CREATE USER {user}@'%' IDENTIFIED BY '{password}'")
    try:
        more = {"database.user": user, "database.password": password, "database.ssl.mode": mode}
        with closing(connect(_settings(mysql_address, database, **more).mysql)) as connection:
            assert watermarks.server_uuid(connection)
    finally:
        run(f"DROP USER {user}@'%'")


@pytest.mark.parametrize("mode", ["required", "preferred", "disabled"])
def test_the_tls_modes_do_what_they_say(mode: str, mysql_address: MySqlAddress, database: str) -> None:
    settings = _settings(mysql_address, database, database__ssl__mode=mode)
    with closing(connect(settings.mysql)) as connection, connection.cursor() as cursor:
        cursor.execute("SHOW STATUS LIKE 'Ssl_cipher'")
        assert bool(cursor.fetchone()[1]) is (mode != "disabled")


def test_a_certificate_nobody_vouches_for_is_refused_by_verify_ca(mysql_address: MySqlAddress, database: str) -> None:
    with pytest.raises(ServerUnreachable, match=r"database\.ssl\.mode=verify_ca"):
        connect(_settings(mysql_address, database, database__ssl__mode="verify_ca").mysql)
