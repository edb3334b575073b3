"""An XA COMMIT whose XA PREPARE is in a binlog file that is purged."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from pymysql.connections import Connection

from incsnap.errors import BinlogError
from lab.addresses import MySqlAddress
from lab.mysql_client import connect
from tests.support.planned_job import PlannedJob, settings_of
from tests.support.purging import purge_binlog

pytestmark = pytest.mark.servers

_TABLE = "purged_xa.t"


def run(connection: Connection[Any], *statements: str) -> None:
    with connection.cursor() as cursor:
        for statement in statements:
            cursor.execute(statement)


@pytest.fixture
def root(own_mysql: MySqlAddress) -> Iterator[Connection[Any]]:
    """Yield a session of a server that has purged the XA PREPARE of a transaction with the row 1."""
    drop = "DROP DATABASE IF EXISTS purged_xa"
    with closing(connect(own_mysql)) as session:
        run(session, drop, "CREATE DATABASE purged_xa", f"CREATE TABLE {_TABLE} (id INT PRIMARY KEY)")
        with closing(connect(own_mysql)) as branch:
            run(branch, "XA START 'a'", f"INSERT INTO {_TABLE} VALUES (1)", "XA END 'a'", "XA PREPARE 'a'")
        run(session, "FLUSH BINARY LOGS")
        purge_binlog(session)
        yield session
        run(session, drop)


def test_a_job_that_stops_at_an_xa_commit_says_where_a_new_job_goes_on(
    root: Connection[Any], own_mysql: MySqlAddress, kafka_address: str, topic_prefix: str, tmp_path: Path
) -> None:
    topic, quiet = f"{topic_prefix}.{_TABLE}", {"snapshot__mode": "no_data"}
    settings = settings_of(own_mysql, kafka_address, topic_prefix, "purged_xa", **quiet)
    with closing(PlannedJob(settings, str(tmp_path / "first"))) as job:
        run(root, f"INSERT INTO {_TABLE} VALUES (2)")
        job.until(topic, 1)
        run(root, "XA COMMIT 'a'", f"INSERT INTO {_TABLE} VALUES (3)")
        with pytest.raises(
            BinlogError, match=r"is the XA COMMIT of X'61',X'',1, and the binlog file .* is purged"
        ) as end:
            job.until(topic, 2)

    behind = re.search(r"incsnap\.start\.gtid\.set=(\S+)\. ", end.value.hint)
    assert behind is not None
    settings = settings_of(
        own_mysql, kafka_address, topic_prefix, "purged_xa", incsnap__start__gtid__set=behind[1], **quiet
    )
    with closing(PlannedJob(settings, str(tmp_path / "second"))) as job:
        job.until(topic, 1)

        assert [record.value["after"]["id"] for record in job.of(topic)] == [3]
