"""The records of tables that were dropped or renamed behind a connector's offset, which the connector has sent."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from pymysql.connections import Connection

from incsnap.checkpoint.files import Files
from incsnap.checkpoint.taken_over import write_taken_over
from incsnap.takeover.join import join
from lab.addresses import MySqlAddress
from tests.integration.test_taken_over_records import Topic, places_of_rows, settings_for, topic, written
from tests.integration.test_taken_over_truncations import sent_by_connector
from tests.support.planned_job import PlannedJob

pytestmark = pytest.mark.servers

__all__ = ["topic"]


@pytest.mark.named_rows("rows behind the offset lie before a DROP TABLE")
@pytest.mark.parametrize("statement", ["DROP TABLE {t}", "RENAME TABLE {t} TO {t}_old"])
def test_rows_of_a_table_that_is_gone_do_not_come_twice(
    mysql_address: MySqlAddress,
    connection: Connection[Any],
    database: str,
    topic: Topic,
    tmp_path: Path,
    statement: str,
) -> None:
    table = f"{database}.t"
    insert = f"INSERT INTO {table} VALUES"
    create = f"CREATE TABLE {table} (id INT PRIMARY KEY)"
    offset, events = written(connection, create, f"{insert} (1)", f"{insert} (2)", statement.format(t=table))
    sent_by_connector(topic.kafka, topic.name, offset.file, places_of_rows(events)[0], {"id": 1})
    settings = settings_for(mysql_address, topic)
    joined = join(settings, offset)
    assert not joined.warnings
    write_taken_over(Files(str(tmp_path)), joined.place)

    with closing(PlannedJob(settings, str(tmp_path))) as job:
        job.until(topic.name, 1)

        assert [record.value["after"]["id"] for record in job.of(topic.name)] == [2]


def test_a_statement_that_does_not_name_the_tables_which_it_removes_is_named(
    mysql_address: MySqlAddress, connection: Connection[Any], database: str, topic: Topic
) -> None:
    insert = f"INSERT INTO {database}.t VALUES (1)"
    create = f"CREATE TABLE {database}.t (id INT PRIMARY KEY)"
    offset, _ = written(connection, create, insert, f"DROP DATABASE {database}", f"CREATE DATABASE {database}")

    (warning,) = join(settings_for(mysql_address, topic), offset).warnings

    assert f"DROP DATABASE {database}: " in warning
    assert "comes twice" in warning
