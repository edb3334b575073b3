"""Record what Debezium makes of the changes: `python -m tests.golden.record [--folder FOLDER] [configuration ...]`.

There is one MySQL, one Kafka, and one Connect worker with a connector for each configuration. All connectors read the
same binlog. The recorder always starts its own servers, because its database has a fixed name.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
import urllib.request
from collections.abc import Sequence
from contextlib import ExitStack, closing
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

from confluent_kafka.admin import AdminClient

from lab.addresses import MySqlAddress
from lab.debezium import VERSION, ConnectWorker, avro_converters, connect_worker
from lab.fetched_registry import registry
from lab.mysql_client import connect
from lab.servers import Servers, servers
from tests.golden.avro_form import AvroForm
from tests.golden.configurations import CONFIGURATIONS, Configuration
from tests.golden.golden_file import Form, read_json, read_plain, write_golden
from tests.golden.statements import DATABASE, execute_all
from tests.support.kafka import Read, read_all

_FOLDER = Path(__file__).parent
_SECONDS = 600
_SNAPSHOT_SECONDS = 8
_SIGNAL = "golden-snapshot"


def main(arguments: Sequence[str]) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, default=_FOLDER)
    parser.add_argument("--keep-log", type=Path)
    parser.add_argument("configuration", nargs="*")
    asked = parser.parse_args(arguments)
    chosen = [CONFIGURATIONS[name] for name in asked.configuration or CONFIGURATIONS]
    for name in ("INCSNAP_MYSQL", "INCSNAP_KAFKA"):
        os.environ.pop(name, None)
    asked.folder.mkdir(parents=True, exist_ok=True)
    with ExitStack() as stack:
        running = stack.enter_context(servers())
        worker = stack.enter_context(connect_worker(running.kafka, asked.keep_log, scripting=True))
        avro = any(each.avro for each in chosen)
        record(running, worker, chosen, asked.folder, stack.enter_context(registry()) if avro else "")


def record(
    running: Servers, worker: ConnectWorker, chosen: Sequence[Configuration], folder: Path, registry_url: str = ""
) -> None:
    """Record the chosen configurations.

    If connectors fail, record the others, then raise SystemExit with the names of those that failed.
    """
    mysql, kafka = running.mysql, running.kafka

    def keep(each: Configuration, wrong: Sequence[str] = ()) -> None:
        form = _form(each, registry_url)
        _keep(folder, each, kafka, form, str(version), wrong)

    ((version,),) = _run(mysql, "SELECT VERSION()")
    _run(mysql, f"CREATE DATABASE {DATABASE} CHARACTER SET utf8mb4")
    execute_all(mysql, DATABASE, "schema.sql")
    ids = {each.name: 6000 + number for number, each in enumerate(chosen)}
    for each in chosen:
        worker.start(each.name, _connector(each, mysql, ids[each.name], registry_url))
    _wait("connectors start", chosen, worker, lambda each: worker.streams(ids[each.name]))
    execute_all(mysql, DATABASE, "changes.sql")
    failed = _wait("the stream ends", chosen, worker, lambda each: bool(_read(kafka, _topic(each, each.end))))
    chosen = [each for each in chosen if each not in failed]
    for each in chosen:
        if not each.snapshot and not each.signals:
            worker.stop(each.name)
            keep(each)
    again = [each for each in chosen if each.snapshot]
    wrong = _read_again(mysql, kafka, again)
    for each in again:
        worker.stop(each.name)
        keep(each, wrong[each.name])
    for each in [each for each in chosen if each.signals]:
        _ask(mysql, kafka, each)
        worker.stop(each.name)
        keep(each)
    if failed:
        raise SystemExit(f"not recorded: {', '.join(each.name for each in failed)}")


def _connector(configuration: Configuration, mysql: MySqlAddress, server_id: int, registry_url: str) -> dict[str, str]:
    properties = {
        "connector.class": "io.debezium.connector.mysql.MySqlConnector",
        "tasks.max": "1",
        **mysql.properties(),
        "database.server.id": str(server_id),
        "database.ssl.mode": "disabled",
        "driver.allowPublicKeyRetrieval": "true",
        "snapshot.mode": "no_data",
        "schema.history.internal": "io.debezium.relational.history.MemorySchemaHistory",
        "max.queue.size": "512",
        "max.batch.size": "256",
        "poll.interval.ms": "100",
        # A topic with one partition keeps its order. The largest record is below Kafka's default limit.
        "producer.override.max.request.size": "4000000",
        **configuration.properties(DATABASE),
    }
    if configuration.avro:
        properties |= avro_converters(registry_url)
    if configuration.snapshot:
        properties |= {
            "notification.enabled.channels": "sink",
            "notification.sink.topic.name": f"{configuration.name}.notifications",
        }
    return properties


def _wait(what: str, chosen: Sequence[Configuration], worker: ConnectWorker, done: Any) -> list[Configuration]:
    """Wait until `done` holds for all connectors. Return those that failed, and print why."""
    failed: list[Configuration] = []
    left, deadline = list(chosen), time.monotonic() + _SECONDS
    while left:
        left = [each for each in left if not done(each)]
        for each in left:
            state = worker.state(each.name)
            if state not in ("RUNNING", "STARTING") and not state.startswith("UNASSIGNED"):
                causes = [line for line in state.splitlines() if not line.startswith("\tat ")]
                sys.stderr.write(f"{each.name} FAILED: " + "\n    ".join(causes) + "\n")
                failed.append(each)
        left = [each for each in left if each not in failed]
        if time.monotonic() > deadline:
            names = ", ".join(each.name for each in left)
            raise AssertionError(f"{what}: not within {_SECONDS} s in {names}\n{worker.program.last_words()}")
        time.sleep(0.5)
    sys.stderr.write(f"{time.strftime('%X')} {what}: done\n")
    return failed


def _topic(configuration: Configuration, table: str) -> str:
    delimiter = configuration.settings.get("topic.delimiter", ".")
    return delimiter.join((configuration.name, DATABASE, table))


def _topics(kafka: str, configuration: Configuration) -> list[str]:
    known = AdminClient({"bootstrap.servers": kafka, "log_level": 0}).list_topics(timeout=20).topics
    delimiter = configuration.settings.get("topic.delimiter", ".")
    name = configuration.name
    starts = (name + delimiter, name + ".")
    own = [topic for topic in known if topic in (name, configuration.topic) or topic.startswith(starts)]
    signals = ("debezium_signal", "debezium_u005fsignal")
    return sorted(topic for topic in own if configuration.keeps(topic) and not topic.endswith(signals))


def _read(kafka: str, topic: str) -> list[Read]:
    known = AdminClient({"bootstrap.servers": kafka, "log_level": 0}).list_topics(timeout=20).topics
    return read_all(kafka, topic, known[topic].partitions, seconds=60) if topic in known else []


def _read_again(mysql: MySqlAddress, kafka: str, again: Sequence[Configuration]) -> dict[str, list[str]]:
    """Signal a snapshot of each table to all connectors, one table after the other, because all see the same signals.

    Return for each connector its failures, one line for each table.
    """
    rows = _run(
        mysql,
        "SELECT table_name FROM information_schema.tables WHERE table_schema = %s AND table_type = 'BASE TABLE'"
        " ORDER BY table_name",
        DATABASE,
    )
    wrong: dict[str, list[str]] = {each.name: [] for each in again}
    for table in [str(row[0]) for row in rows]:
        asked = [each for each in again if each.reads_again(table)]
        if not asked:
            continue
        signal, name = f"{_SIGNAL}-{table}", json.dumps(f"{DATABASE}.{table}", ensure_ascii=False)
        _signal(mysql, signal, "execute-snapshot", f'{{"type":"incremental","data-collections":[{name}]}}')
        deadline = time.monotonic() + _SNAPSHOT_SECONDS
        while late := [each for each in asked if "COMPLETED" not in _types(_notifications(kafka, each, signal))]:
            if time.monotonic() > deadline:
                _signal(mysql, f"{_SIGNAL}-stop-{table}", "stop-snapshot", '{"type":"incremental"}')
                time.sleep(2)
                break
            time.sleep(0.1)
        for each in late:
            wrong[each.name].append(f"{table}: not read within {_SNAPSHOT_SECONDS} s")
        for each in [each for each in asked if each not in late]:
            notifications = _notifications(kafka, each, signal)
            status = {one["additional_data"].get("status", "SUCCEEDED") for one in notifications}
            wrong[each.name] += [f"{table}: {one}" for one in sorted(status - {"SUCCEEDED"})]
    return wrong


def _ask(mysql: MySqlAddress, kafka: str, configuration: Configuration) -> None:
    """Send the signals of a configuration. Wait for the last notification of each one."""
    for signal in configuration.signals:
        rows = signal.rows(DATABASE)
        marks = ", ".join(["(%s, %s, %s)"] * len(rows))
        _run(mysql, f"INSERT INTO {DATABASE}.debezium_signal VALUES {marks}", *chain.from_iterable(rows))
        deadline = time.monotonic() + _SNAPSHOT_SECONDS
        while not {"COMPLETED", "ABORTED"} & _types(_notifications(kafka, configuration, signal.id)):
            if time.monotonic() > deadline:
                sys.stderr.write(f"{signal.id}: no end within {_SNAPSHOT_SECONDS} s\n")
                break
            time.sleep(0.1)


def _signal(mysql: MySqlAddress, *row: str) -> None:
    _run(mysql, f"INSERT INTO {DATABASE}.debezium_signal VALUES (%s, %s, %s)", *row)


def _notifications(kafka: str, configuration: Configuration, signal: str) -> list[Any]:
    topic = configuration.settings.get("notification.sink.topic.name", f"{configuration.name}.notifications")
    notifications = [json.loads(each.value or b"{}") for each in _read(kafka, topic)]
    return [payload for each in notifications if (payload := each.get("payload", each))["id"] == signal]


def _types(notifications: Sequence[Any]) -> set[str]:
    return {each["type"] for each in notifications}


def _keep(
    folder: Path, configuration: Configuration, kafka: str, form: Form, mysql_version: str, wrong: Sequence[str]
) -> None:
    records = {topic: configuration.kept(_read(kafka, topic)) for topic in _topics(kafka, configuration)}
    about = {"debezium": VERSION, "mysql": mysql_version, "properties": configuration.properties(DATABASE)}
    if wrong:
        about["not read again"] = list(wrong)
    size = write_golden(folder / f"{configuration.name}.json", about, records, form)
    count = sum(map(len, records.values()))
    sys.stderr.write(f"{configuration.name}: {count} records of {len(records)} topics, {size / 1000:.0f} kB\n")


def _form(configuration: Configuration, registry_url: str) -> Form:
    if configuration.avro:
        return AvroForm(partial(_schema, registry_url))
    return read_plain if configuration.plain else read_json


def _schema(registry_url: str, number: int) -> str:
    with urllib.request.urlopen(f"{registry_url}/schemas/ids/{number}", timeout=20) as answer:
        return str(json.load(answer)["schema"])


def _run(mysql: MySqlAddress, sql: str, *values: object) -> tuple[tuple[Any, ...], ...]:
    with closing(connect(mysql)) as connection, connection.cursor() as cursor:
        cursor.execute(sql, values or None)
        return tuple(cursor.fetchall())


if __name__ == "__main__":
    main(sys.argv[1:])
