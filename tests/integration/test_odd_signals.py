"""Everything that a channel can hold and that is no signal: it is passed over, once, and the next signal is obeyed."""

from __future__ import annotations

import json
import logging
import secrets
from contextlib import closing
from typing import Any

import pytest
from confluent_kafka import Producer

from lab.addresses import MySqlAddress
from signals import send
from tests.integration.test_hostile_signals import _connect, _send, _until_read
from tests.integration.test_hostile_signals import job as job  # the fixture
from tests.support.planned_job import PlannedJob

pytestmark = pytest.mark.servers

_CHANNELS = ("source", "kafka", "file")


def _lists(depth: int) -> str:
    return "[" * depth + "]" * depth


def _objects(depth: int) -> str:
    return '{"a":' * depth + "1" + "}" * depth


def _signal(name: Any, kind: Any, data: Any) -> bytes:
    return json.dumps({"id": name, "type": kind, "data": data}).encode()


#: Messages and lines. Deeper than Python's own limit of recursion, just below it, and numbers longer than it takes.
_NO_SIGNALS = (
    b"\x00", b"\xff\xfe", b"null", b"1", b"1" * 5_000, b"[]", b"{}", b'"{}"',
    _lists(100_000).encode(), _objects(100_000).encode(), _lists(900).encode(), _objects(950).encode(),
    b'{"id":' + b"9" * 4_200 + b',"type":"log"}', b'{"id":1e400,"type":NaN}', b'{"id":true,"type":false,"data":1}',
    _signal("x" * 10_000, "log", {"message": "m"}), _signal("long", "t" * 500_000, None), _signal(None, None, None),
    _signal("\U0001f600" * 255, "log", {"message": "\U0001f600{}\n\x1b[31mred\x00"}), _signal("a\nb\x00", "log", "{}"),
    b'{"id":"deep","type":"execute-snapshot","data":' + _objects(900).encode() + b"}",
    b'{"id":"deep","type":"execute-snapshot","data":{"type":' + _lists(900).encode() + b"}}",
    b'{"id":"deep","type":"execute-snapshot","data":{"data-collections":' + _lists(800).encode() + b"}}",
    b'{"id":"deep","type":' + _lists(900).encode() + b"}",
    _signal("deep", "execute-snapshot", _objects(2_000)),
    _signal("deep", "execute-snapshot", json.dumps(_lists(3_000))),
    _signal("empty", "execute-snapshot", {"data-collections": ["", " "]}),
    _signal("none", "execute-snapshot", {"data-collections": [f"no.such{number}" for number in range(10_000)]}),
)  # fmt: skip


def _filtered(database: str, number: int, sql: str, **more: Any) -> bytes:
    """A signal that can be read: what is wrong with it, the server says."""
    condition = {"data-collection": f"{database}.t", "filter": sql}
    data = {"data-collections": [f"{database}.t"], "additional-conditions": [condition], **more}
    return _signal(f"filter-{number}", "execute-snapshot", data)


def _refused_by_the_server(database: str) -> tuple[bytes, ...]:
    return (
        _filtered(database, 1, "id = (SELECT 1 UNION SELECT 2)"),
        _filtered(database, 2, "\U0001f600 = '\x00'"),
        _filtered(database, 3, "(" * 3_000 + "1" + ")" * 3_000),
        _filtered(database, 4, "%s %d {} :x"),
        _filtered(database, 5, "1 INTO OUTFILE '/tmp/x'"),
        _filtered(database, 6, "1 = 1", **{"surrogate-key": "no`such\x00"}),
    )


def test_messages_that_are_no_signals_are_skipped_for_good_on_every_channel(
    job: PlannedJob, mysql_address: MySqlAddress, database: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    job.batch()
    settings = job.settings.signals
    odd = (*_NO_SIGNALS, *_refused_by_the_server(database))
    own_key = job.settings.topic_prefix.encode()
    of_others = _signal("not-for-us", "execute-snapshot", {"data-collections": [".*"]})
    for compression in ("none", "gzip", "snappy", "lz4", "zstd"):
        producer = Producer({"bootstrap.servers": settings.kafka_bootstrap_servers, "compression.type": compression})
        for value in odd if compression == "none" else odd[:8]:
            producer.produce(settings.kafka_topic, value, own_key, partition=0)
        for key in (None, b"", b"other", b"\xff", own_key + b"x"):
            producer.produce(settings.kafka_topic, of_others, key, partition=0)
        producer.produce(settings.kafka_topic, None, own_key, partition=0)
        assert producer.flush(60) == 0
    _aborted(job, _signal("not-for-us", "execute-snapshot", {"data-collections": [f"{database}.t"]}))
    with closing(_connect(mysql_address)) as connection, connection.cursor() as cursor:
        rows: list[tuple[str, str | None, str | None]] = [
            ("null", None, None),
            *((secrets.token_hex(9), "execute-snapshot", value.decode(errors="replace")) for value in odd),
            *((secrets.token_hex(9), value.decode(errors="replace")[:32], None) for value in odd),
        ]
        cursor.executemany(f"INSERT INTO {database}.sig VALUES (%s, %s, %s)", rows)
        # Rows that become signals, and that were: nobody's signal.
        wish = json.dumps({"data-collections": [f"{database}.t"]})
        cursor.execute(f"INSERT INTO {database}.sig VALUES ('not-for-us', 'nothing', NULL)")
        cursor.execute(f"UPDATE {database}.sig SET type = 'execute-snapshot', data = %s", (wish,))
        cursor.execute(f"DELETE FROM {database}.sig")
    with open(settings.file, "ab") as file:
        file.write(b"\n".join([*odd, b"x" * (3 << 20), b""]))

    _send(job, mysql_address, "good", "execute-snapshot", send.snapshot_data([f"{database}.t"]))
    _until_read(job, *(f"good-{channel}" for channel in _CHANNELS))

    assert "Please report" not in caplog.text
    assert max(map(len, caplog.messages)) < 1_000
    assert len(caplog.messages) < 400, "each is told in a line or two"
    notified = {note.id for _, end in job.batches for note in end.snapshot.notifications}
    assert "not-for-us" not in notified
    assert {f"filter-{number}" for number in range(1, 7)} & notified
    caplog.clear()
    job.restart()
    _send(job, mysql_address, "again", "execute-snapshot", send.snapshot_data([f"{database}.t"]))
    _until_read(job, *(f"again-{channel}" for channel in _CHANNELS))
    # A chunk whose filter the server cannot evaluate may still be tried; of signals nothing is said any more.
    assert [message for message in caplog.messages if "ignal" in message] == []


def _aborted(job: PlannedJob, value: bytes) -> None:
    """Written, and taken back by its producer."""
    settings = job.settings.signals
    producer = Producer(
        {"bootstrap.servers": settings.kafka_bootstrap_servers, "transactional.id": job.settings.topic_prefix}
    )
    producer.init_transactions(60)
    producer.begin_transaction()
    producer.produce(settings.kafka_topic, value, job.settings.topic_prefix.encode(), partition=0)
    assert producer.flush(60) == 0
    producer.abort_transaction(60)


def test_signals_inside_a_large_transaction_are_obeyed_once_across_restarts(
    job: PlannedJob, mysql_address: MySqlAddress, database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("incsnap.planner.batch_budget.BatchBudget.binlog_bytes", 200_000)
    job.batch()
    signals = {
        3: ("first", "execute-snapshot"), 15: ("second", "execute-snapshot"), 20: ("hold", "pause-snapshot"),
        22: ("go on", "resume-snapshot"), 29: ("third", "execute-snapshot"),
    }  # fmt: skip
    wish = json.dumps({"data-collections": [f"{database}.t"]})
    with closing(_connect(mysql_address)) as connection, connection.cursor() as cursor:
        cursor.execute(f"CREATE TABLE {database}.big (id INT PRIMARY KEY AUTO_INCREMENT, v VARCHAR(500))")
        cursor.execute("BEGIN")
        for number in range(30):
            cursor.execute(f"INSERT INTO {database}.big (v) VALUES {', '.join(['(REPEAT(0, 400))'] * 100)}")
            if number in signals:
                cursor.execute(f"INSERT INTO {database}.sig VALUES (%s, %s, %s)", (*signals[number], wish))
        cursor.execute("COMMIT")
    notified: list[tuple[str, str]] = []
    restarted_after = 0

    def complete() -> bool:
        nonlocal restarted_after
        notes = [(note.id, note.type) for _, end in job.batches for note in end.snapshot.notifications]
        # After a batch only: a restart for each look, while the reader still comes back to its place, never ends.
        if len(job.batches) > restarted_after and (len(notes) != len(notified) or job.offset.stream.open_gtid):
            restarted_after = len(job.batches)
            job.restart()
        notified[:] = notes
        return ("third", "COMPLETED") in notified

    job.batches_until(complete, "end of the third snapshot")

    assert sum(1 for _, end in job.batches if end.stream.open_gtid) > 3
    for kind in ("STARTED", "COMPLETED"):
        assert [name for name, each in notified if each == kind] == ["first", "second", "third"]
    assert ("first", "PAUSED") in notified
    assert ("first", "RESUMED") in notified
