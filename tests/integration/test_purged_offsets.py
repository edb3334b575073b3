"""The take-over of a connector whose binlog file is purged, on a server that has all transactions behind its offset."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient
from pymysql.connections import Connection

from incsnap.checkpoint.files import Files
from incsnap.checkpoint.taken_over import write_taken_over
from incsnap.envelope.seam import RecordPlace
from incsnap.errors import ConfigError
from incsnap.events import file_number
from incsnap.mysql.watermarks import executed, high_watermark, server_uuid
from incsnap.takeover.connector_offset import ConnectorOffset
from incsnap.takeover.join import join
from lab.addresses import MySqlAddress
from lab.mysql_client import connect
from tests.support.planned_job import PlannedJob, settings_of
from tests.support.purging import purge_binlog

pytestmark = pytest.mark.servers


@pytest.fixture
def root(own_mysql: MySqlAddress) -> Iterator[Connection[Any]]:
    """Yield a session in the database `purged`, which has a table `t` with one row."""
    with closing(connect(own_mysql)) as opened, opened.cursor() as cursor:
        for statement in (
            "DROP DATABASE IF EXISTS purged",
            "CREATE DATABASE purged",
            "USE purged",
            "CREATE TABLE t (id INT PRIMARY KEY)",
            "INSERT INTO t VALUES (1)",
        ):
            cursor.execute(statement)
        yield opened


def offset_in_a_purged_file(root: Connection[Any]) -> ConnectorOffset:
    """Return the offset at the end of the binlog, and purge its file."""
    offset = ConnectorOffset(executed(root), *high_watermark(root))
    with root.cursor() as cursor:
        cursor.execute("FLUSH BINARY LOGS")
    purge_binlog(root)
    return offset


def test_a_job_begins_at_the_oldest_file_if_the_server_has_all_transactions_behind_the_offset(
    own_mysql: MySqlAddress, kafka_address: str, root: Connection[Any], topic_prefix: str, tmp_path: Path
) -> None:
    offset = offset_in_a_purged_file(root)
    settings = settings_of(own_mysql, kafka_address, topic_prefix, "purged")

    joined = join(settings, offset)

    assert f"{offset.file} is purged. The server still has all" in " ".join(joined.lines)
    assert joined.place.seam.least == RecordPlace(file_number(offset.file) + 1, 0)
    write_taken_over(Files(str(tmp_path)), joined.place)
    with closing(PlannedJob(settings, str(tmp_path))) as job, root.cursor() as cursor:
        cursor.execute("INSERT INTO t VALUES (2)")
        job.until(f"{topic_prefix}.purged.t")
        assert [record.value["after"]["id"] for record in job.sent] == [2]


def test_an_offset_before_purged_transactions_is_refused_with_the_way_out(
    own_mysql: MySqlAddress, kafka_address: str, root: Connection[Any], topic_prefix: str
) -> None:
    older = ConnectorOffset(executed(root), *high_watermark(root))
    with root.cursor() as cursor:
        cursor.execute("INSERT INTO t VALUES (2)")
    missing = executed(root) - older.gtids
    offset_in_a_purged_file(root)

    settings = settings_of(own_mysql, kafka_address, topic_prefix, "purged")
    with pytest.raises(ConfigError, match=f"the connector's offset: the binlog no longer holds {missing}") as refused:
        join(settings, older)
    assert "A connector could not continue there either" in refused.value.hint


def test_the_place_of_another_server_is_refused(
    own_mysql: MySqlAddress, kafka_address: str, root: Connection[Any], topic_prefix: str
) -> None:
    offset = offset_in_a_purged_file(root)
    settings = settings_of(own_mysql, kafka_address, topic_prefix, "purged")
    within = replace(offset, event=2)
    with pytest.raises(ConfigError, match="connector read another server"):
        join(settings, within)
    with pytest.raises(ConfigError, match="connector read another server"):
        join(settings, replace(offset, file=f"other-{offset.file}"))

    source: dict[str, object] = {"version": "3.6.1.Final", "connector": "mysql", "name": topic_prefix}
    source |= {"snapshot": "false", "gtid": f"{server_uuid(root)}:1000000", "file": offset.file, "pos": 4, "row": 0}
    value = {"before": None, "after": {"id": 2}, "source": source, "op": "c", "ts_ms": 1}
    topic, producer = f"{topic_prefix}.purged.t", Producer({"bootstrap.servers": kafka_address})
    producer.produce(topic, json.dumps(value, separators=(",", ":")).encode(), b'{"id":2}')
    assert producer.flush(30) == 0
    with pytest.raises(ConfigError, match=f"does not have {offset.file}: the connector read another server"):
        join(settings, offset)
    admin = AdminClient({"bootstrap.servers": kafka_address})
    admin.delete_topics([topic], request_timeout=30)[topic].result(30)
