"""Foreign keys that cascade: `check` names the tables of which the binlog keeps changes to itself."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

from incsnap.config.settings import Settings
from incsnap.mysql.cascades import cascades_in_engine
from incsnap.mysql.preflight import Finding, findings
from lab.addresses import MySqlAddress
from lab.mysql_client import connect
from lab.servers import servers
from tests.support.planned_job import PlannedJob, settings_of


def create(mysql: MySqlAddress, database: str) -> None:
    run(
        mysql,
        f"CREATE DATABASE IF NOT EXISTS `{database}`",
        f"USE `{database}`",
        "CREATE TABLE parent (id INT PRIMARY KEY)",
        "CREATE TABLE gone (id INT PRIMARY KEY, p INT, FOREIGN KEY (p) REFERENCES parent (id) ON DELETE CASCADE)",
        "CREATE TABLE emptied (id INT PRIMARY KEY, p INT, FOREIGN KEY (p) REFERENCES parent (id)"
        " ON DELETE SET NULL ON UPDATE CASCADE)",
        "CREATE TABLE safe (id INT PRIMARY KEY, p INT, FOREIGN KEY (p) REFERENCES parent (id))",
        "CREATE TABLE elsewhere (id INT PRIMARY KEY, p INT, FOREIGN KEY (p) REFERENCES parent (id) ON DELETE CASCADE)",
        "INSERT INTO parent VALUES (1), (2)",
        "INSERT INTO gone VALUES (1, 1)",
    )


def run(mysql: MySqlAddress, *statements: str) -> None:
    with closing(connect(mysql)) as connection, connection.cursor() as cursor:
        for statement in statements:
            cursor.execute(statement)


def cascades_named(settings: Settings) -> list[Finding]:
    return [each for each in findings(settings) if each.name == "foreign keys"]


def settings(mysql: MySqlAddress, kafka: str, database: str) -> Settings:
    return settings_of(mysql, kafka, f"cascades-{database}", database, table__exclude__list=f"{database}\\.elsewhere")


@pytest.mark.parametrize(
    ("variables", "expected"),
    [
        ({}, True),
        ({"innodb_native_foreign_keys": "ON"}, True),
        ({"innodb_native_foreign_keys": "OFF"}, False),
    ],
)
def test_a_server_without_the_variable_cascades_in_the_engine(variables: dict[str, str], expected: bool) -> None:
    assert cascades_in_engine(variables) == expected


@pytest.mark.servers
def test_no_warning_if_the_server_logs_its_cascades(mysql_address: MySqlAddress, database: str) -> None:
    create(mysql_address, database)

    assert cascades_named(settings(mysql_address, "127.0.0.1:1", database)) == []


@pytest.mark.servers
def test_check_names_tables_with_cascades_that_are_not_in_the_binlog(kafka_address: str, tmp_path: Path) -> None:
    with servers(kafka=False, mysql_options=["--innodb-native-foreign-keys=ON"]) as own:
        create(own.mysql, "shop")
        captured = settings(own.mysql, kafka_address, "shop")
        (finding,) = cascades_named(captured)
        with closing(PlannedJob(captured, str(tmp_path))) as job:
            run(own.mysql, "DELETE FROM shop.parent WHERE id = 1", "INSERT INTO shop.safe VALUES (1, 2)")
            job.until(f"{job.settings.topic_prefix}.shop.safe")

            assert job.of(f"{job.settings.topic_prefix}.shop.parent") != []
            assert job.of(f"{job.settings.topic_prefix}.shop.gone") == []  # why there is a warning

    assert finding.severity == "warning"
    assert finding.problem.endswith(
        "were: shop.emptied (ON DELETE SET NULL ON UPDATE CASCADE of shop.parent),"
        " shop.gone (ON DELETE CASCADE of shop.parent)"
    )
    assert "innodb_native_foreign_keys=OFF" in finding.repair
