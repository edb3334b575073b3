"""`incsnap verify` with the grants that docs/verify.md names and no others, and with one of them missing."""

from __future__ import annotations

import os
import secrets
import sys
from collections.abc import Callable, Iterator, Sequence

import pytest
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic
from pyspark.sql import SparkSession

from incsnap.config.load import read
from incsnap.errors import IncsnapError
from incsnap.tables import TableId
from incsnap.verify.evidence import connector_offsets
from incsnap.verify.report import TableReport, require_tables
from incsnap.verify.verification import Choice, verify_tables
from lab.captured_database import CapturedDatabase
from lab.running_job import write_properties
from tests.integration.test_verified_forms import json_record
from tests.support.faulty_topic import deliver_everything, send

pytestmark = pytest.mark.servers

#: A function that compares the table `t` as a user with these grants. `{}` stands for the name of the database.
Compare = Callable[..., list[TableReport]]
_GRANTS = {
    "REPLICATION SLAVE": "REPLICATION SLAVE ON *.*",
    "REPLICATION CLIENT": "REPLICATION CLIENT ON *.*",
    "SELECT": "SELECT ON `{}`.*",
}


@pytest.fixture(scope="module")
def spark() -> Iterator[SparkSession]:
    # An earlier test of this process may have named a program that is gone.
    os.environ["PYSPARK_PYTHON"] = sys.executable
    session = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate()
    yield session
    session.stop()


@pytest.fixture
def compare(spark: SparkSession, play: CapturedDatabase) -> Iterator[Compare]:
    """Yield the function. The table has two rows, and its topic one of them, as a connector has delivered it."""
    table, user = TableId(play.database, "t"), "u" + secrets.token_hex(5)
    topic = f"{play.prefix}.{table}"
    admin = AdminClient({"bootstrap.servers": play.kafka})
    admin.create_topics([NewTopic(topic, 1)], request_timeout=30)[topic].result(30)
    source = {"version": "3", "snapshot": "false", "file": "binlog.000001", "pos": 4, "row": 0}
    value = {"before": None, "after": {"id": 1, "v": 1}, "source": source, "op": "c"}
    send(play.kafka, topic, [json_record({"id": 1}, value)])
    with play.connect() as connection, connection.cursor() as cursor:
        cursor.execute(f"CREATE TABLE {table.sql} (id INT PRIMARY KEY, v INT)")
        cursor.execute(f"INSERT INTO {table.sql} VALUES (1, 1), (2, 2)")
        offsets = deliver_everything(connection, play.kafka, play.prefix)
        cursor.execute(f"CREATE USER {user} IDENTIFIED BY 'pw'")
        named = {**play.properties(), "table.include.list": f"{play.database}\\.t"}
        named |= {"database.user": user, "database.password": "pw"}
        file = write_properties(play.folder / "verify.properties", named)
        worker = write_properties(play.folder / "worker.properties", {"offset.storage.topic": offsets})

        def compared(*grants: str, tables: tuple[str, ...] = ()) -> list[TableReport]:
            cursor.execute(f"REVOKE ALL PRIVILEGES, GRANT OPTION FROM {user}")
            for grant in grants:
                cursor.execute(f"GRANT {grant.format(play.database)} TO {user}")
            choice = Choice(tables, offsets=connector_offsets(file, worker))
            reports = verify_tables(spark, read(str(file), str(worker)).settings, choice)
            require_tables(reports, None if tables else play.signals)
            return reports

        try:
            yield compared
        finally:
            cursor.execute(f"DROP USER {user}")


def test_the_documented_grants_suffice(compare: Compare) -> None:
    report = of_table(compare(*_GRANTS.values()))

    assert (report.refused, report.rows) == ("", 2)
    assert [(each.key, each.kind) for each in report.differences] == [(b'{"id":2}', "missing")]


@pytest.mark.parametrize("names_the_table", [False, True])
@pytest.mark.parametrize("right", _GRANTS)
def test_a_missing_grant_is_named(right: str, names_the_table: bool, compare: Compare, play: CapturedDatabase) -> None:
    tables = (f"{play.database}.t",) if names_the_table else ()

    with pytest.raises(IncsnapError) as raised:
        compare(*(grant for name, grant in _GRANTS.items() if name != right), tables=tables)

    assert right in f"{raised.value.message} {raised.value.hint}"


def test_a_table_with_columns_that_the_user_may_not_read_has_no_answer(
    compare: Compare, play: CapturedDatabase
) -> None:
    grants = [grant for name, grant in _GRANTS.items() if name != "SELECT"]

    report = of_table(compare(*grants, "SELECT (id) ON `{}`.t"))

    assert f"may not read {play.database}.t. GRANT SELECT ON `{play.database}`.`t` TO 'u" in report.refused
    assert report.differences == []


def of_table(reports: Sequence[TableReport]) -> TableReport:
    """Return the report of the table `t`."""
    (report,) = [each for each in reports if each.table.endswith(".t")]
    return report
