"""The topics of schema changes and transactions go on behind the last record of a connector."""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer
from pymysql.connections import Connection

from incsnap.checkpoint.files import Files
from incsnap.checkpoint.taken_over import write_taken_over
from incsnap.mysql.watermarks import executed, high_watermark
from incsnap.takeover.connector_offset import ConnectorOffset
from incsnap.takeover.join import join
from lab.addresses import MySqlAddress
from tests.integration.test_taken_over_truncations import sent_by_connector
from tests.support.planned_job import PlannedJob, settings_of

pytestmark = pytest.mark.servers


def send(kafka: str, topic: str, *values: object) -> None:
    """Write records with these values as JSON."""
    producer = Producer({"bootstrap.servers": kafka})
    for value in values:
        producer.produce(topic, json.dumps(value).encode())
    assert producer.flush(30) == 0


@pytest.mark.parametrize("is_sent", [True, False], ids=["sent by the connector", "sent by the job"])
def test_schema_changes_and_transactions_of_the_connector_do_not_come_again(
    mysql_address: MySqlAddress,
    kafka_address: str,
    connection: Connection[Any],
    database: str,
    topic_prefix: str,
    tmp_path: Path,
    is_sent: bool,
) -> None:
    topic, transactions = f"{topic_prefix}.{database}.t", f"{topic_prefix}.transaction"
    statements = ("ALTER TABLE t ADD v INT", "ALTER TABLE t ADD w INT")
    with connection.cursor() as cursor:
        cursor.execute("CREATE TABLE t (id INT PRIMARY KEY)")
        before, (file, begin) = executed(connection), high_watermark(connection)
        cursor.execute(statements[0])
        cursor.execute("INSERT INTO t VALUES (1, 1)")
        cursor.execute(statements[1])
        cursor.execute("INSERT INTO t VALUES (2, 2, 2)")
        cursor.execute("INSERT INTO t VALUES (3, 3, 3)")
        cursor.execute(f"SHOW BINLOG EVENTS IN '{file}' FROM {begin}")
        events = [(str(event[2]), int(event[1]), str(event[5])) for event in cursor.fetchall()]
    gtids = [text.split("'")[1] for kind, _, text in events if kind == "Gtid"]
    first, second, third = gtids[1], gtids[3], gtids[4]
    if is_sent:
        at_statement = next(pos for _, pos, text in events if statements[0] in text)
        send(kafka_address, topic_prefix, {"source": {"file": file, "pos": at_statement, "snapshot": "false"}})
        at_row = next(pos for kind, pos, _ in events if kind == "Write_rows")
        sent_by_connector(kafka_address, topic, file, at_row, {"id": 1})
        ends = [{"status": status, "id": gtid} for gtid in (first, second) for status in ("BEGIN", "END")]
        # The connector has begun the second transaction and has not ended it.
        send(kafka_address, transactions, *ends[:3])
    settings = settings_of(mysql_address, kafka_address, topic_prefix, database, provide__transaction__metadata="true")
    write_taken_over(Files(str(tmp_path)), join(settings, ConnectorOffset(before, file, begin)).place)

    with closing(PlannedJob(settings, str(tmp_path))) as job:
        job.until(topic, 2 if is_sent else 3)
        job.batches_until(lambda: (third, "END") in borders(job, transactions), "END of the last transaction")

    every = [(gtid, status) for gtid in (first, second, third) for status in ("BEGIN", "END")]
    assert borders(job, transactions) == (every[3:] if is_sent else every)
    assert [record.value["ddl"] for record in job.of(topic_prefix)] == list(statements[1:] if is_sent else statements)


def borders(job: PlannedJob, topic: str) -> list[tuple[str, str]]:
    """Return (transaction, status) of each record of the transaction topic."""
    return [(record.value["id"], record.value["status"]) for record in job.of(topic)]
