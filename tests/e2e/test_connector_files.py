"""Whole jobs from the files that teams have: Connect's JSON, Strimzi's YAML of Debezium 1, and a worker's file."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner
from confluent_kafka.admin import AdminClient

from incsnap.cli.main import commands
from lab.captured_database import CapturedDatabase
from lab.running_job import running_job, write_properties
from lab.table_designs import ORDERS
from tests.support.kafka import Read, read_all

pytestmark = pytest.mark.servers

ROWS = 300
CONNECTOR = "io.debezium.connector.mysql.MySqlConnector"
JSON_CONVERTER = "org.apache.kafka.connect.json.JsonConverter"
#: Settings that a connector's file has and that incsnap adds or that a worker has.
_OF_WORKER = ("bootstrap.servers",)


def connector(play: CapturedDatabase) -> dict[str, str]:
    """Return a connector's settings for the tables of `play`, with a snapshot at the start."""
    own = {"snapshot.mode": "initial", "connector.class": CONNECTOR, "tasks.max": "1"}
    settings = play.properties({**own, "topic.creation.default.partitions": "1"})
    return {
        **{name: value for name, value in settings.items() if name not in _OF_WORKER},
        "schema.history.internal.kafka.bootstrap.servers": play.kafka,
        "schema.history.internal.kafka.topic": "history",
    }


def sent(play: CapturedDatabase) -> list[Read]:
    """Return the records of the only table, or none while it has no topic."""
    topic = play.topic(play.tables[0][1])
    exists = topic in AdminClient({"bootstrap.servers": play.kafka}).list_topics(timeout=20).topics
    return read_all(play.kafka, topic) if exists else []


def run_until_equal(play: CapturedDatabase, file: Path, *arguments: str) -> None:
    """Run the job of `file` until its snapshot and a change were sent, and stop it."""
    (_, orders), *_ = play.tables
    with running_job(file, play.log, play.checkpoint, arguments=arguments) as job:
        job.wait_until("the snapshot was sent", lambda: len(sent(play)) >= ROWS, every=0.5)
        with play.connect() as connection, connection.cursor() as cursor:
            cursor.execute(f"UPDATE {orders.sql} SET version = version + 1 WHERE id = 2")
        job.wait_until("the update was sent", lambda: len(sent(play)) > ROWS)
        job.stop()


def test_a_job_starts_from_the_json_of_a_connector(play: CapturedDatabase) -> None:
    play.create(ORDERS, ROWS)
    converters = {
        f"{side}.converter{option}": value
        for side in ("key", "value")
        for option, value in (("", JSON_CONVERTER), (".schemas.enable", "false"))
    }
    config = {**connector(play), **converters, "bootstrap.servers": play.kafka}
    file = play.folder / "connector.json"
    file.write_text(json.dumps({"name": "inventory", "config": config}))

    run_until_equal(play, file)

    assert [fault for verdict in play.verdicts() for fault in verdict.faults(snapshots=1)] == []
    headers = {each.headers for each in sent(play)}
    # A connector's file has Debezium's extended headers, because they are Debezium's default.
    assert len(headers) == 1
    assert dict(*headers) | {"__debezium.context.runId": b""} == {
        "__debezium.context.connectorLogicalName": play.prefix.encode(),
        "__debezium.context.taskId": b"0",
        "__debezium.context.connectorName": b"mysql",
        "__debezium.context.runId": b"",
    }


def test_a_job_starts_from_the_corrected_yaml_of_a_connector_of_debezium_1(play: CapturedDatabase) -> None:
    play.create(ORDERS, ROWS)
    older = {
        "topic.prefix": "database.server.name",
        "table.include.list": "table.whitelist",
        "schema.history.internal.kafka.bootstrap.servers": "database.history.kafka.bootstrap.servers",
        "schema.history.internal.kafka.topic": "database.history.kafka.topic",
    }
    lines = [
        f"    {older.get(name, name)}: {json.dumps(value)}\n"
        for name, value in connector(play).items()
        if name not in ("connector.class", "tasks.max")
    ]
    old, new = play.folder / "old.yaml", play.folder / "connector.yaml"
    old.write_text(
        "apiVersion: kafka.strimzi.io/v1beta2\nkind: KafkaConnector\nmetadata:\n  name: inventory\nspec:\n"
        f"  class: {CONNECTOR}\n  tasksMax: 1\n  config:\n{''.join(lines)}"
    )
    assert CliRunner().invoke(commands, ["config", str(old)]).exit_code == 2
    corrected = CliRunner().invoke(commands, ["config", "--fix", str(old)])
    new.write_text(corrected.stdout)

    run_until_equal(play, new)

    assert [fault for verdict in play.verdicts() for fault in verdict.faults(snapshots=1)] == []
    assert "key.converter and value.converter: not in this file" in play.log.read_text()


def test_a_job_writes_what_its_workers_converters_write(play: CapturedDatabase) -> None:
    play.create(ORDERS, ROWS)
    worker = {
        "bootstrap.servers": play.kafka,
        "group.id": "connect",
        "key.converter": JSON_CONVERTER,
        "key.converter.schemas.enable": "false",
        "value.converter": JSON_CONVERTER,
    }
    file = play.folder / "connector.json"
    file.write_text(json.dumps(connector(play)))

    run_until_equal(play, file, "--worker", str(write_properties(play.folder / "worker.properties", worker)))

    records = sent(play)
    assert {tuple(json.loads(each.value or b"{}")) for each in records} == {("schema", "payload")}
    assert {tuple(json.loads(each.key or b"{}")) for each in records} == {("id",)}
    assert len(records) == ROWS + 1
