"""The topics of schema changes and transactions go on behind the last record of a connector."""

from __future__ import annotations

import io
import json
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import fastavro
import pytest
from confluent_kafka import Producer
from pymysql.connections import Connection

from incsnap.checkpoint.files import Files
from incsnap.checkpoint.taken_over import write_taken_over
from incsnap.config.apicurio_settings import URL
from incsnap.config.servers import RegistrySettings
from incsnap.errors import ConfigError
from incsnap.gtid import GtidSet
from incsnap.kafka.apicurio import ApicurioRegistry
from incsnap.kafka.client_settings import ClientSettings
from incsnap.mysql.watermarks import executed, high_watermark
from incsnap.takeover.connector_offset import ConnectorOffset
from incsnap.takeover.control_topics import values_since
from incsnap.takeover.join import join
from incsnap.verify.avro_reading import AvroSchemas
from lab.addresses import MySqlAddress
from tests.integration.test_taken_over_truncations import sent_by_connector
from tests.support.planned_job import PlannedJob, settings_of

pytestmark = pytest.mark.servers

_ELSEWHERE = "3e11fa47-71ca-11e1-9e33-c80aa9429562:7"


def send(kafka: str, topic: str, *values: object) -> None:
    """Write records with these values as JSON."""
    producer = Producer({"bootstrap.servers": kafka})
    for value in values:
        producer.produce(topic, json.dumps(value).encode())
    assert producer.flush(30) == 0


@pytest.mark.named_rows("rows behind the offset lie before an ALTER TABLE")
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
        source = {"file": file, "pos": at_statement, "snapshot": "false"}
        send(kafka_address, topic_prefix, {"source": source, "databaseName": database, "ddl": statements[0]})
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


def test_records_of_another_clock_and_of_another_server_are_named_or_joined(
    mysql_address: MySqlAddress, kafka_address: str, connection: Connection[Any], database: str, topic_prefix: str
) -> None:
    offset = ConnectorOffset(executed(connection), *high_watermark(connection), seconds=int(time.time()) + 86_400)
    with connection.cursor() as cursor:
        cursor.execute("CREATE TABLE t (id INT PRIMARY KEY)")
        cursor.execute(f"SHOW BINLOG EVENTS IN '{offset.file}' FROM {offset.pos}")
        events = [(str(event[2]), int(event[1]), str(event[5])) for event in cursor.fetchall()]
    pos = next(pos for _, pos, text in events if "CREATE TABLE" in text)
    gtid = next(text.split("'")[1] for kind, _, text in events if kind == "Gtid")
    sources = [{"file": offset.file, "pos": pos, "gtid": gtid}, {"file": "other.000001", "pos": 4, "gtid": _ELSEWHERE}]
    send(kafka_address, topic_prefix, *({"source": source, "ddl": "CREATE TABLE t"} for source in sources))
    # The offset's clock is a day ahead, and a partition has more records than those that are always looked at.
    ids = [_ELSEWHERE, *([gtid] * 20)]
    send(kafka_address, f"{topic_prefix}.transaction", *({"status": "BEGIN", "id": each} for each in ids))
    settings = settings_of(mysql_address, kafka_address, topic_prefix, database, provide__transaction__metadata="true")

    joined = join(settings, offset)

    assert GtidSet.parse(joined.place.seam.begun) == GtidSet.parse(f"{_ELSEWHERE},{gtid}")
    assert joined.place.seam.has_statement(offset.file, pos)
    (warning,) = joined.warnings
    assert warning.startswith(f"{topic_prefix}: schema changes that the connector has read from another server")


def test_control_topics_in_a_format_that_is_not_read_are_named(
    mysql_address: MySqlAddress, kafka_address: str, connection: Connection[Any], database: str, topic_prefix: str
) -> None:
    offset = ConnectorOffset(executed(connection), *high_watermark(connection))
    settings = settings_of(
        mysql_address,
        kafka_address,
        topic_prefix,
        database,
        provide__transaction__metadata="true",
        value__converter="io.confluent.connect.protobuf.ProtobufConverter",
        value__converter__schema__registry__url="http://127.0.0.1:1",
    )

    changes, transactions = join(settings, offset).warnings

    assert changes.startswith(
        f"{topic_prefix}: schema changes that the connector has sent behind its offset come twice"
    )
    assert transactions.startswith(f"{topic_prefix}.transaction: transactions that the connector has sent")


def test_values_are_read_with_the_ids_of_apicurio(kafka_address: str, topic_prefix: str, registry_url: str) -> None:
    """By default Apicurio's converter writes the id of the schema into a header."""
    api = registry_url.replace("/apis/ccompat/v7", "/apis/registry/v2")
    client, name = {URL: api, "apicurio.registry.auto-register": "true"}, f"{topic_prefix}.transaction"
    fields = [{"name": "status", "type": "string"}, {"name": "id", "type": "string"}]
    schema = {"type": "record", "name": "Value", "fields": fields}
    number = ApicurioRegistry(client, "avro").register(f"{name}-value", json.dumps(schema))
    value, written = {"status": "BEGIN", "id": "3e11fa47-71ca-11e1-9e33-c80aa9429562:1"}, io.BytesIO()
    fastavro.schemaless_writer(written, fastavro.parse_schema(schema), value)
    producer = Producer({"bootstrap.servers": kafka_address})
    producer.produce(name, written.getvalue(), headers=[("apicurio.value.globalId", number.to_bytes(8, "big"))])
    assert producer.flush(30) == 0
    schemas = AvroSchemas.of(RegistrySettings(client=client), "globalId")

    assert list(values_since(ClientSettings(kafka_address), name, 0, schemas, "status", never)) == [value]
    # With the settings of another converter nothing can be read.
    for other in (None, AvroSchemas.of(RegistrySettings(url=registry_url), "")):
        with pytest.raises(ConfigError, match=f"a record of the topic {name} is not in the form") as refused:
            list(values_since(ClientSettings(kafka_address), name, 0, other, "status", never))
        assert "Give the converter with which the connector has written" in refused.value.hint


def never(_: object) -> bool:
    """Return False: a value is not known to be early."""
    return False


def borders(job: PlannedJob, topic: str) -> list[tuple[str, str]]:
    """Return (transaction, status) of each record of the transaction topic."""
    return [(record.value["id"], record.value["status"]) for record in job.of(topic)]
