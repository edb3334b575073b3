"""Invalid signals: each is reported by name, and none stops the stream or valid snapshots."""

from __future__ import annotations

import json

import pytest
from confluent_kafka import Producer

from lab.captured_database import CapturedDatabase
from lab.table_designs import ORDER_LINES, ORDERS

pytestmark = pytest.mark.servers


def rows_of_nonsense(play: CapturedDatabase) -> list[tuple[str, str, str | None]]:
    unknown = {"type": "incremental", "data-collections": [f"{play.database}.no_such_table"]}
    return [
        ("bad-json", "execute-snapshot", "{not json"),
        ("bad-list", "execute-snapshot", "[1, 2]"),
        ("bad-null", "execute-snapshot", None),
        ("bad-empty", "execute-snapshot", "{}"),
        ("bad-type", "no-such-signal", "{}"),
        ("bad-kind", "execute-snapshot", '{"type": "sideways", "data-collections": ["a.b"]}'),
        ("bad-regex", "execute-snapshot", '{"data-collections": ["*["]}'),
        ("bad-bomb", "execute-snapshot", '{"data-collections": ["(?:(?:[ab]c){1000}){1000}"]}'),
        ("bad-table", "execute-snapshot", json.dumps(unknown)),
        ("bad-stop", "stop-snapshot", '{"type": "incremental", "data-collections": ["x.y"]}'),
        ("", "", ""),
    ]


def messages_of_nonsense(play: CapturedDatabase) -> list[tuple[bytes | None, bytes | None]]:
    prefix = play.prefix.encode()
    return [
        (prefix, b"\xff\xfe"),
        (prefix, b"{"),
        (prefix, b"null"),
        (prefix, b'{"type": "pause-snapshot"}'),
        (prefix, b'{"id": "k-1", "type": "execute-snapshot"}'),
        (prefix, b'{"id": 7, "type": "execute-snapshot", "data": {"data-collections": [1]}}'),
        (prefix, None),
        (None, b'{"id": "keyless", "type": "execute-snapshot", "data": {"data-collections": ["a.b"]}}'),
        (b"somebody-else", b'{"id": "other", "type": "execute-snapshot", "data": {"data-collections": ["a.b"]}}'),
        (prefix, b'{"type": "resume-snapshot", "data": {}}'),
    ]


def test_bad_signals_are_reported_and_stop_nothing(play: CapturedDatabase) -> None:
    orders, lines = play.create(ORDERS, 2_000), play.create(ORDER_LINES, 1_000)
    with play.job() as job, play.notices() as notices:
        job.wait_until_streaming()
        with play.connect() as connection, connection.cursor() as cursor:
            for row in rows_of_nonsense(play):
                cursor.execute(f"INSERT INTO {play.signals.sql} VALUES (%s, %s, %s)", row)
            cursor.execute(f"UPDATE {play.signals.sql} SET type = 'stop-snapshot' WHERE id = 'bad-json'")
            cursor.execute(f"DELETE FROM {play.signals.sql} WHERE id = 'bad-json'")
        producer = Producer({"bootstrap.servers": play.kafka})
        for key, value in messages_of_nonsense(play):
            producer.produce(f"{play.prefix}-signal", key=key, value=value, partition=0)
        assert producer.flush(20) == 0
        play.execute_by_row("good-row", [orders])
        play.execute_by_message("good-message", [lines])
        job.wait_until("the good row's snapshot", lambda: notices.completed("good-row"))
        job.wait_until("the good message's snapshot", lambda: notices.completed("good-message"))
        # The same id again: the job logs it and obeys, because the first signal's snapshot is complete.
        play.execute_by_message("good-message", [lines])
        play.drain(job)
        log = job.log_tail(500)
        job.stop()

    assert [fault for verdict in play.verdicts() for fault in verdict.faults(2)] == []
    assert "started again" not in log
    assert "Traceback" not in log
    for named in (
        "bad-json",
        "bad-list",
        "bad-empty",
        "bad-type",
        "bad-kind",
        "bad-bomb",
        "bad-table",
        "no_such_table",
        "k-1",
        "good-message is repeated",
    ):
        assert named in log, f"{named} is not reported in:\n{log}"
