"""Tests of `incsnap.gap.recovery=differences`: a job closes a gap in the binlog by what differs, and only by that."""

from __future__ import annotations

import contextlib
import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from pymysql.cursors import Cursor

from incsnap.checkpoint.files import Files
from incsnap.gtid import GtidSet
from incsnap.monitoring.gap_status import GapStatus
from incsnap.monitoring.job_status import NAME
from incsnap.monitoring.status import load
from incsnap.tables import TableId
from lab.addresses import MySqlAddress
from lab.captured_database import CapturedDatabase, captured_database
from lab.running_job import RunningJob, end_of
from lab.table_designs import ORDER_LINES, ORDERS
from lab.workload import Writer
from signals import send
from tests.support.delivery import send_first_snapshot
from tests.support.kafka import Read, read_all
from tests.support.mysql_versions import end_of_binlog, reset_statement

pytestmark = pytest.mark.servers

_ROWS = 4_000
_COMPARED = "The gap is compared"
_BACKUP = "shop.backup"
_SETTINGS = {"snapshot.mode": "when_needed", "incsnap.gap.recovery": "differences"}


@pytest.fixture
def play(own_mysql: MySqlAddress, kafka_address: str, topic_prefix: str, tmp_path: Path) -> Iterator[CapturedDatabase]:
    """A captured database on a server whose binlog may be thrown away."""
    with captured_database(own_mysql, kafka_address, "shop", topic_prefix, tmp_path) as made:
        yield made
        sys.stdout.write(f"The job's log ends:\n{end_of(made.log, 60)}\n")


@contextlib.contextmanager
def sql(play: CapturedDatabase) -> Iterator[Cursor]:
    with play.connect() as connection, connection.cursor() as cursor:
        yield cursor


def records(play: CapturedDatabase, table: TableId) -> list[Read]:
    return sorted(read_all(play.kafka, play.topic(table), (0, 1)), key=lambda record: (record.partition, record.offset))


def ops(play: CapturedDatabase, table: TableId, before: Sequence[Read]) -> dict[str, list[int]]:
    """Return the ids of the records of `table` that are not in `before`, by kind; `t` for tombstones."""
    kinds: dict[str, list[int]] = {}
    for record in records(play, table):
        if record in before:
            continue
        kind = "t" if record.value is None else json.loads(record.value)["op"]
        kinds.setdefault(kind, []).append(json.loads(record.key or b"{}")["id"])
    return {kind: sorted(ids) for kind, ids in kinds.items()}


def await_closed(play: CapturedDatabase, job: RunningJob, gaps: int, logged: int = 0) -> None:
    """Wait until `gaps` gaps are compared, and all that differs was read again.

    The log tells of the last of them behind its first `logged` characters.
    """
    job.wait_until("the gap was compared", lambda: _COMPARED in play.log.read_text()[logged:])
    # The batch that was planned then tells that the last snapshots have begun.
    play.drain(job)

    def is_done() -> bool:
        notes = [json.loads(each.value or b"{}") for each in read_all(play.kafka, play.notifications)]
        begun, ended = ({note["id"] for note in notes if note["type"] == kind} for kind in ("STARTED", "COMPLETED"))
        begun = {each for each in begun if each.startswith("gap-")}
        # The id has the id of the job, and a job has one gap.
        return len({each.split("-")[1] for each in begun}) == gaps and begun <= ended

    job.wait_until("the gap was closed", is_done, every=0.5)


def test_what_differs_behind_a_gap_is_sent_and_nothing_else(play: CapturedDatabase) -> None:
    orders, lines = play.create(ORDERS, _ROWS), play.create(ORDER_LINES, 500)
    signals = play.folder / "signals"
    settings = {**_SETTINGS, "signal.enabled.channels": "file", "signal.file": str(signals)}
    with play.job(settings) as job:
        send_first_snapshot(play, job)
        job.stop()
    before = records(play, orders)
    with sql(play) as cursor:
        cursor.execute(f"UPDATE {orders.sql} SET version = version + 1 WHERE id BETWEEN 101 AND 140")
        cursor.execute(f"DELETE FROM {orders.sql} WHERE id BETWEEN 201 AND 260")
        cursor.execute(f"UPDATE {lines.sql} SET version = version + 1 WHERE seq BETWEEN 10 AND 60")
        cursor.execute(f"DELETE FROM {lines.sql} WHERE seq BETWEEN 100 AND 160")
        purge(cursor)

    # Slow enough to be killed in the middle of the repair, while others write.
    send.to_file(str(signals), "slow", "incsnap-throttle", {"rows-per-second": 10})
    with Writer(play.connect, [(ORDER_LINES, lines)], seed=3, rate=50, first_version=10) as writer:
        with play.job(settings) as job:
            job.wait_until("the gap was compared", lambda: _COMPARED in play.log.read_text())
            job.kill()
        send.to_file(str(signals), "fast", "incsnap-throttle", {"rows-per-second": 0})
        with play.job(settings) as job:
            await_closed(play, job, 1)
            writer.stop()
            play.drain(job)
            assert_closed(play)
            assert ops(play, orders, before) == {
                "r": list(range(102, 141, 2)),
                "d": list(range(202, 261, 2)),
                "t": list(range(202, 261, 2)),
            }
            change_behind_a_backup(play, orders)
            play.drain(job)
            job.stop()

    before = records(play, orders)
    restore_the_backup(play, orders)
    logged = len(play.log.read_text())
    with play.job(settings) as job:
        await_closed(play, job, 2, logged)
        job.wait_until("the status shows the comparison's end", lambda: not shown_gap(play).is_open)
        gap = shown_gap(play)
        assert (gap.left, gap.whole, gap.keys, gap.failures) == (0, 0, 8, 0)
        play.drain(job)
        job.stop()
    assert "with other transactions under delivered GTIDs" in play.log.read_text()
    # 302 to 310 were changed and 320 was deleted behind the backup, 331 was inserted; 340 was changed after it.
    assert ops(play, orders, before) == {"r": [302, 304, 306, 308, 310, 320, 340], "d": [331], "t": [331]}
    for proof in play.verdicts():
        assert proof.comparison.faults() == []


def test_a_job_that_is_killed_while_it_compares_sends_all_deletions_afterwards(play: CapturedDatabase) -> None:
    orders, lines = play.create(ORDERS, 1_000), play.create(ORDER_LINES, 500)
    with play.job(_SETTINGS) as job:
        send_first_snapshot(play, job)
        job.stop()
    before = records(play, orders)
    with sql(play) as cursor:
        cursor.execute(f"UPDATE {orders.sql} SET version = version + 1 WHERE id BETWEEN 101 AND 110")
        cursor.execute(f"DELETE FROM {orders.sql} WHERE id BETWEEN 201 AND 260")
        cursor.execute(f"DELETE FROM {lines.sql} WHERE seq BETWEEN 100 AND 160")
        purge(cursor)

    with sql(play) as locking:
        # The comparison cannot end, because it cannot read this table.
        locking.execute(f"LOCK TABLES {lines.sql} WRITE")
        with play.job(_SETTINGS) as job:
            job.wait_until(
                "tables are compared", lambda: "tables are compared with their topics" in play.log.read_text()
            )
            job.kill()
    assert _COMPARED not in play.log.read_text()
    assert ops(play, orders, before) == {}

    with play.job(_SETTINGS) as job:
        await_closed(play, job, 1)
        play.drain(job)
        job.stop()
    assert ops(play, orders, before) == {
        "r": list(range(102, 111, 2)),
        "d": list(range(202, 261, 2)),
        "t": list(range(202, 261, 2)),
    }
    assert_closed(play)


def test_deletions_of_the_gap_are_sent_for_tables_of_one_topic(play: CapturedDatabase) -> None:
    first, second = (play.create(replace(ORDERS, name=name), 300) for name in ("orders_1", "orders_2"))
    router = {
        "transforms": "one",
        "transforms.one.type": "io.debezium.transforms.ByLogicalTableRouter",
        "transforms.one.topic.regex": r"(.*)\.shop\.orders_.*",
        "transforms.one.topic.replacement": "$1.orders",
    }
    settings = {**_SETTINGS, **router}
    with play.job(settings) as job:
        send_first_snapshot(play, job)
        job.stop()
    before = read_all(play.kafka, f"{play.prefix}.orders", (0, 1))
    with sql(play) as cursor:
        cursor.execute(f"DELETE FROM {first.sql} WHERE id = 200")
        cursor.execute(f"UPDATE {second.sql} SET version = version + 1 WHERE id = 100")
        purge(cursor)

    with play.job(settings) as job:
        await_closed(play, job, 1)
        job.stop()

    sent = [each for each in read_all(play.kafka, f"{play.prefix}.orders", (0, 1)) if each not in before]
    keys = [json.loads(each.key or b"{}") for each in sent]
    ops_ = ["t" if each.value is None else json.loads(each.value)["op"] for each in sent]
    texts = [key["__dbz__physicalTableIdentifier"].rpartition(".")[2] for key in keys]
    assert sorted(zip(texts, (key["id"] for key in keys), ops_, strict=True)) == [
        ("orders_1", 200, "d"),
        ("orders_1", 200, "t"),
        ("orders_2", 100, "r"),
    ]


def shown_gap(play: CapturedDatabase) -> GapStatus:
    """Return what `incsnap status` shows of the comparison."""
    status = load(Files(str(play.checkpoint / "incsnap")).read_json(NAME))
    return status.gap or GapStatus("", 0)


def assert_closed(play: CapturedDatabase) -> None:
    """Check that the topics show the tables, and that no key has gone back in time."""
    for proof in play.verdicts():
        assert proof.comparison.faults() == []
        assert (proof.replay.judgement.back_in_time.examples, proof.replay.judgement.duplicates.examples) == ([], [])


def change_behind_a_backup(play: CapturedDatabase, orders: TableId) -> None:
    with sql(play) as cursor:
        cursor.execute(f"CREATE TABLE {_BACKUP} AS SELECT * FROM {orders.sql}")
        cursor.execute(f"UPDATE {orders.sql} SET version = version + 1 WHERE id BETWEEN 301 AND 310")
        cursor.execute(f"DELETE FROM {orders.sql} WHERE id = 320")
        columns = "customer_id, status, amount, qty, note, sku, created_at, updated_at, ratio, version"
        cursor.execute(f"INSERT INTO {orders.sql} (id, {columns}) SELECT 331, {columns} FROM {_BACKUP} WHERE id = 2")


def restore_the_backup(play: CapturedDatabase, orders: TableId) -> None:
    """Restore the backup on the server, which then uses all delivered GTIDs again."""
    with sql(play) as cursor:
        cursor.execute("SELECT @@global.gtid_executed")
        ((executed,),) = cursor.fetchall()
        delivered = sum(last - first + 1 for _, spans in GtidSet.parse(executed) for first, last in spans)
        cursor.execute(reset_statement(cursor.connection))
        cursor.execute("SET sql_log_bin = 0")
        cursor.execute(f"DELETE FROM {orders.sql}")
        cursor.execute(f"INSERT INTO {orders.sql} SELECT * FROM {_BACKUP}")
        cursor.execute("SET sql_log_bin = 1")
        for _ in range(delivered + 1):
            cursor.execute(f"UPDATE {orders.sql} SET version = version + 1 WHERE id = 340")


def purge(cursor: Cursor) -> None:
    cursor.execute("FLUSH BINARY LOGS")
    newest, _ = end_of_binlog(cursor.connection)
    cursor.execute(f"PURGE BINARY LOGS TO '{newest}'")
