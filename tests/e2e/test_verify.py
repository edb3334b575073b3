"""`incsnap verify` on real servers: equal tables, seeded faults of each kind, and changes meanwhile."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import pytest
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from incsnap.mysql.watermarks import high_watermark
from incsnap.tables import TableId
from lab.captured_database import CapturedDatabase
from lab.running_job import write_properties
from lab.table_designs import ORDER_LINES, ORDERS
from tests.support.faulty_topic import copy_topic, send
from tests.support.kafka import Read

pytestmark = [pytest.mark.servers, pytest.mark.timeout(400)]


#: Settings of each form of records.
FORMS = {
    "JSON": {},
    "JSON with schemas": {
        "key.converter": "org.apache.kafka.connect.json.JsonConverter",
        "value.converter": "org.apache.kafka.connect.json.JsonConverter",
        "key.converter.schemas.enable": "false",  # the test finds its marks by their keys
        "value.converter.schemas.enable": "true",
    },
    "unwrapped": {
        "transforms": "unwrap",
        "transforms.unwrap.type": "io.debezium.transforms.ExtractNewRecordState",
        "transforms.unwrap.add.fields": "op",
    },
    "8 partitions, compacted": {
        "topic.creation.default.partitions": "8",
        "topic.creation.default.cleanup.policy": "compact",
    },
}


@pytest.fixture
def form_settings(form: str, request: pytest.FixtureRequest) -> dict[str, str]:
    """Settings of the form of records `form`."""
    if form != "Avro values":
        return FORMS[form]
    return {
        "value.converter": "io.confluent.connect.avro.AvroConverter",
        "value.converter.schema.registry.url": request.getfixturevalue("registry_url"),
        "schema.name.adjustment.mode": "avro",
    }


def verify(
    play: CapturedDatabase, *arguments: str, settings: Mapping[str, str] | None = None
) -> tuple[int, dict[str, dict[str, Any]]]:
    """Run the command with --json, and return its exit code and its answers by table."""
    return run_verify(write_properties(play.folder / "verify.properties", play.properties(settings)), *arguments)


def run_verify(path: Path, *arguments: str) -> tuple[int, dict[str, dict[str, Any]]]:
    """Run the command with --json for the file `path`, and return its exit code and its answers by table."""
    command = [sys.executable, "-m", "incsnap", "verify", str(path), "--json", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    sys.stdout.write(done.stderr[-6000:])
    answers = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    return done.returncode, {answer["table"].rpartition(".")[2]: answer for answer in answers}


#: Settings of a connector whose topics are copies with faults.
_COPIED = "copied"


@pytest.mark.parametrize("form", [*FORMS, "Avro values"])
def test_equal_tables_are_equal_and_seeded_faults_get_their_names(
    play: CapturedDatabase, form: str, form_settings: dict[str, str]
) -> None:
    settings = {"snapshot.mode": "initial", **form_settings}
    partitions = int(settings.get("topic.creation.default.partitions", "2"))
    orders, lines = play.create(ORDERS, 3_000), play.create(ORDER_LINES, 500)
    with play.job(settings) as job, play.connect() as connection, connection.cursor() as cursor:
        job.wait_until_streaming()
        play.drain(job)
        for statement in _statements(orders, lines):
            cursor.execute(statement)
        play.drain(job)
        code, answers = verify(play, settings=settings)
        assert {name: answer["equal"] for name, answer in answers.items() if name != "signals"} == {
            "orders": True,
            "order_lines": True,
            "marks": True,
        }
        assert code == 0
        job.stop()

    copied = {**settings, "topic.prefix": f"{play.prefix}-{_COPIED}"}
    for table in (orders, lines, TableId(play.database, "marks")):
        edit = seeded if table == orders else list
        copy_topic(play.kafka, play.topic(table), f"{play.prefix}-{_COPIED}.{table}", partitions, edit)

    folder = play.folder / "differences"
    worker = ("--worker", str(connect_offsets(play, f"{play.prefix}-{_COPIED}")))
    code, answers = verify(play, "--differences", str(folder), "--table", str(orders), *worker, settings=copied)

    named = {
        (difference["key"]["id"], difference["kind"])
        for difference in map(json.loads, (folder / f"{orders}.jsonl").read_text().splitlines())
    }
    assert code == 1
    if form == "unwrapped":
        # Rows have no places. So an older row is one only if an earlier record has it, and no record is a repetition.
        assert named == EXPECTED - {(4, "stale"), (102, "no_tombstone")} | {(4, "wrong"), (102, "extra")}
        assert answers["orders"]["sent_twice"] == answers["orders"]["back_in_time"] == 0
    else:
        assert named == EXPECTED
        assert answers["orders"]["sent_twice"] == 2
        assert answers["orders"]["back_in_time"] == 1
    code, answers = verify(play, "--table", str(lines), settings=copied)
    assert (code, answers["order_lines"]["equal"]) == (0, True)


def _statements(orders: TableId, lines: TableId) -> Sequence[str]:
    return (
        f"UPDATE {orders.sql} SET qty = 1, note = 'new' WHERE id BETWEEN 2 AND 40",
        f"DELETE FROM {orders.sql} WHERE id BETWEEN 100 AND 140",
        f"UPDATE {orders.sql} SET qty = 2 WHERE id BETWEEN 2 AND 40",
        f"DELETE FROM {lines.sql} WHERE tenant = 9",
        f"INSERT INTO {orders.sql} SELECT id + 100001, customer_id, status, amount, qty, note, sku, created_at,"
        f" updated_at, ratio, version FROM {orders.sql} WHERE id BETWEEN 200 AND 300",
        # Last changes, by which each partition shows how far it came.
        f"UPDATE {orders.sql} SET qty = 333 WHERE id BETWEEN 400 AND 500",
    )


#: (id, kind) of each key that `seeded` spoils.
EXPECTED = {
    (100203, "missing"),
    (4, "stale"),
    (100, "extra"),
    (6, "stale"),
    (8, "wrong"),
    (999999, "extra"),
    (102, "no_tombstone"),
}


def seeded(records: list[Read]) -> list[Read]:
    """Return the records with a fault of each kind, none of them behind the last changes of a partition."""
    of_key: dict[int, list[Read]] = {}
    for record in records:
        key = json.loads(record.key or b"{}")
        of_key.setdefault(key.get("payload", key)["id"], []).append(record)
    lost = {id(of_key[number][-1]) for number in (100203, 4)}
    lost |= {id(record) for record in of_key[100][1:]} | {id(of_key[102][-1])}
    first = next(record for record in of_key[500])
    more = {
        id(of_key[6][-1]): [of_key[6][-1], of_key[6][-2]],
        id(of_key[8][-1]): [replace(of_key[8][-1], value=(of_key[8][-1].value or b"").replace(b"new", b"neu"))],
        id(of_key[10][-1]): [of_key[10][-1]] * 2,
        id(first): [first, replace(first, key=_other(first.key), value=first.value)],
    }
    kept = [record for record in records if id(record) not in lost]
    return [each for record in kept for each in more.get(id(record), [record])]


def connect_offsets(play: CapturedDatabase, prefix: str) -> Path:
    """Write the offset of a connector that has delivered everything, and return the file of its worker."""
    with play.connect() as connection:
        file, pos = high_watermark(connection)
    topic = f"{prefix}-offsets"
    key = json.dumps(["connector", {"server": prefix}]).encode()
    value = json.dumps({"file": file, "pos": pos, "row": 0, "event": 0}).encode()
    admin = AdminClient({"bootstrap.servers": play.kafka})
    admin.create_topics([NewTopic(topic, 5)], request_timeout=30)[topic].result(30)
    send(play.kafka, topic, [Read(3, 0, key, value)])
    lines = {"bootstrap.servers": play.kafka, "offset.storage.topic": topic}
    return write_properties(play.folder / "worker.properties", lines)


def _other(key: bytes | None) -> bytes:
    return (key or b"").replace(b'"id":500', b'"id":999999')


def test_changes_meanwhile_raise_no_false_alarm(play: CapturedDatabase) -> None:
    orders = play.create(ORDERS, 20_000)
    with play.job({"snapshot.mode": "initial", "heartbeat.interval.ms": "500"}) as job:
        job.wait_until_streaming()
        play.drain(job)
        with writers(play, orders) as written:
            code, answers = verify(play, "--allow-unverifiable")
        assert written() > 200
    counts = {kind: count for kind, count in answers["orders"].items() if isinstance(count, int)}
    named = {kind: count for kind, count in counts.items() if count and kind not in ("equal", "unverifiable")}
    assert (code, named) == (0, {})


@contextlib.contextmanager
def writers(play: CapturedDatabase, table: TableId) -> Iterator[Callable[[], int]]:
    """Change rows until the block ends: updates, deletions, insertions, changes of keys, XA transactions.

    Yield a function that returns the number of statements.
    """
    stopping, done = threading.Event(), [0, 0]

    def write(number: int) -> None:
        random = Random(number)
        with play.connect() as connection, connection.cursor() as cursor:
            while not stopping.is_set():
                done[number] += 1
                for statement in _changes(random, table, number, done[number]):
                    cursor.execute(statement)

    threads = [threading.Thread(target=write, args=(number,), daemon=True) for number in range(2)]
    for thread in threads:
        thread.start()
    try:
        yield lambda: sum(done)
    finally:
        stopping.set()
        for thread in threads:
            thread.join(30)


def _changes(random: Random, table: TableId, number: int, count: int) -> Sequence[str]:
    low = random.randrange(1, 20_000) * 2
    change = random.choice(
        (
            f"UPDATE {table.sql} SET qty = {count} WHERE id BETWEEN {low} AND {low + 20}",
            f"DELETE FROM {table.sql} WHERE id = {low}",
            f"UPDATE {table.sql} SET id = {10_000_000 + 2 * count + number} WHERE id = {low}",
        )
    )
    if count % 10:
        return [change]
    name = f"'verify-{number}-{count}'"
    return [f"XA START {name}", change, f"XA END {name}", f"XA PREPARE {name}", f"XA COMMIT {name}"]
