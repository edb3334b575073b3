"""`incsnap verify --repair` on real servers: a live job sends the keys that differ, and a dead job gets no signal."""

from __future__ import annotations

import json
from collections.abc import Iterable

import pytest
from confluent_kafka.admin import AdminClient

from incsnap.tables import TableId
from lab.captured_database import CapturedDatabase
from lab.table_designs import ORDERS
from tests.e2e.test_verify import verify
from tests.support.delivery import send_first_snapshot
from tests.support.faulty_topic import send
from tests.support.kafka import Read, read_all

pytestmark = pytest.mark.servers

_ONE_PARTITION = {"snapshot.mode": "initial", "topic.creation.default.partitions": "1"}


def spoil(play: CapturedDatabase, table: TableId, wrong: Iterable[int]) -> None:
    """Send wrong rows for the keys `wrong`, a deletion for the key 20, and a row for the key 20001 that is nobody's.

    A change behind them shows that the topic has come as far as the table.
    """
    topic = play.topic(table)
    values = {json.loads(each.key or b"")["id"]: each.value or b"" for each in read_all(play.kafka, topic)}
    spoilt = {key: values[key].replace(b'"status":"', b'"status":"un') for key in wrong}
    rows = {**spoilt, 20: None, 20_001: values[30].replace(b'"id":30,', b'"id":20001,')}
    send(play.kafka, topic, [Read(0, 0, b'{"id":%d}' % key, value) for key, value in rows.items()])
    with play.connect() as connection, connection.cursor() as cursor:
        cursor.execute(f"UPDATE {table.sql} SET qty = qty + 1 WHERE id = 40")


def sent_since(play: CapturedDatabase, table: TableId, before: int) -> list[tuple[int, bool]]:
    """Return the records behind the first `before` ones, each with its id and whether it is a tombstone."""
    records = read_all(play.kafka, play.topic(table))[before:]
    return sorted((json.loads(each.key or b"")["id"], each.value is None) for each in records)


def test_a_live_job_sends_the_keys_that_differ_and_nothing_is_sent_to_a_dead_one(
    play: CapturedDatabase, capsys: pytest.CaptureFixture[str]
) -> None:
    orders = play.create(ORDERS, 1_000)
    with play.job(_ONE_PARTITION) as job:
        send_first_snapshot(play, job)
        spoil(play, orders, [10])
        play.drain(job)
        before = len(read_all(play.kafka, play.topic(orders)))

        arguments = ("--table", str(orders), "--repair", "--yes")
        code, answers = verify(play, *arguments, settings=_ONE_PARTITION)
        assert (code, answers["orders"]["equal"], answers["orders"]["repaired"]) == (0, True, 3)
        assert f"A signal by the signal topic {play.prefix}-signal" in capsys.readouterr().out
        assert sent_since(play, orders, before) == [(10, False), (20, False), (20_001, False), (20_001, True)]

        spoil(play, orders, [10])
        play.drain(job)
        before = len(read_all(play.kafka, play.topic(orders)))
        job.kill()
        folder = play.folder / "differences"
        code, answers = verify(play, *arguments, "--differences", str(folder), settings=_ONE_PARTITION)
        assert (code, answers["orders"].get("repaired")) == (1, None)
        assert "it is dead" in capsys.readouterr().out
        keys = (folder / f"{orders}.keys.jsonl").read_text().splitlines()
        assert sorted(keys) == ['{"id":10}', '{"id":20001}', '{"id":20}']
        assert sent_since(play, orders, before) == []


def test_a_key_that_no_row_can_have_does_not_stop_the_repair_of_others(
    play: CapturedDatabase, capsys: pytest.CaptureFixture[str]
) -> None:
    orders = play.create(ORDERS, 100)
    with play.job(_ONE_PARTITION) as job:
        send_first_snapshot(play, job)
        (value, *_) = (each.value for each in read_all(play.kafka, play.topic(orders)))
        send(play.kafka, play.topic(orders), [Read(0, 0, b'{"id":"abc"}', value)])
        spoil(play, orders, [10])
        play.drain(job)
        before = len(read_all(play.kafka, play.topic(orders)))

        folder = play.folder / "differences"
        arguments = ("--table", str(orders), "--repair", "--yes", "--differences", str(folder))
        code, answers = verify(play, *arguments, settings=_ONE_PARTITION)
        shown = answers["orders"]
        assert (code, shown["repaired"], shown["extra"], shown["missing"], shown["wrong"]) == (1, 3, 1, 0, 0)
        assert "1 keys cannot be repaired: no row of the table can have such a key" in capsys.readouterr().out
        assert sent_since(play, orders, before) == [(10, False), (20, False), (20_001, False), (20_001, True)]
        # A list with such a key would be refused.
        keys = (folder / f"{orders}.keys.jsonl").read_text().splitlines()
        assert sorted(keys) == ['{"id":10}', '{"id":20001}', '{"id":20}']


def test_many_keys_are_repaired_by_the_signal_table_and_a_topic_that_is_deleted(play: CapturedDatabase) -> None:
    orders = play.create(ORDERS, 1_000)
    settings = {**_ONE_PARTITION, "signal.enabled.channels": "source"}
    with play.job(settings) as job:
        send_first_snapshot(play, job)
        wrong = range(100, 700, 2)
        spoil(play, orders, wrong)
        play.drain(job)
        before = len(read_all(play.kafka, play.topic(orders)))
        arguments = ("--table", str(orders), "--repair", "--yes")
        code, answers = verify(play, *arguments, settings=settings)
        assert (code, answers["orders"]["equal"], answers["orders"]["repaired"]) == (0, True, len(wrong) + 2)
        sent = [(key, False) for key in wrong]
        assert sent_since(play, orders, before) == [(20, False), *sent, (20_001, False), (20_001, True)]
        # A broker learns some milliseconds later that a topic was deleted.
        admin = AdminClient({"bootstrap.servers": play.kafka})

        def has_repair_topic() -> bool:
            return any(
                name.startswith(f"{play.prefix}.incsnap-repair") for name in admin.list_topics(timeout=60).topics
            )

        job.wait_until("the topic of the keys is deleted", lambda: not has_repair_topic())
        with play.connect() as connection, connection.cursor() as cursor:
            cursor.execute(f"SELECT MAX(LENGTH(data)) FROM {play.signals.sql} WHERE id LIKE 'incsnap-repair-%'")
            (longest,) = cursor.fetchone() or (0,)
            assert 0 < longest < 2_000
