"""The visibility race, made real: a commit is sent to us seconds before a SELECT can see its row.

Semi-synchronous replication (AFTER_SYNC) holds a commit after it was written to the binlog and sent, and before the
storage engine commits. Without a replica that acknowledges, each commit hangs until the time-out. A chunk that is read
in this time sees the old row, although the new one is already on its way to Kafka. Only the low watermark holds it
back.

https://dev.mysql.com/doc/refman/en/replication-semisync.html
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from incsnap.checkpoint.status import newest_offset
from lab.addresses import MySqlAddress
from lab.captured_database import CapturedDatabase, captured_database
from lab.listening import Follower
from lab.servers import servers
from lab.table_designs import ORDERS
from signals import send

#: The time-out of a stalled commit. The test releases the commit earlier.
LONGEST_STALL_SECONDS = 86_400
#: The stall begins in the first batches, and its rows are in the last. The table would take most of a minute if the
#: limit were not lifted behind that, so a slow test is not too late.
ROWS = 300_000
SETTINGS = {"incremental.snapshot.chunk.size": "5000", "incsnap.snapshot.throttle.rows.per.second": "6000"}

pytestmark = pytest.mark.servers


@pytest.fixture
def stalling_mysql() -> Iterator[MySqlAddress]:
    """A server for this test only."""
    with servers(kafka=False, mysql_options=["--server-id=78"]) as started:
        yield started.mysql


def test_chunks_read_while_a_commit_is_stalled_bring_nothing_stale(
    stalling_mysql: MySqlAddress, kafka_address: str, topic_prefix: str, tmp_path: Path, say: Callable[[str], None]
) -> None:
    with captured_database(stalling_mysql, kafka_address, "stalled", topic_prefix, tmp_path) as play:
        orders = play.create(ORDERS, ROWS)
        with play.connect() as connection, connection.cursor() as cursor:
            cursor.execute(f"SELECT id FROM {orders.sql} ORDER BY id DESC LIMIT 20")
            last = [key for (key,) in cursor.fetchall()]

        def commit_slowly() -> None:
            # Update the last rows of the table and delete one of them. All of it is sent, and none of it is visible.
            with play.connect() as connection, connection.cursor() as cursor:
                connection.begin()
                cursor.execute(f"UPDATE {orders.sql} SET version = 1 WHERE id >= %s", (last[-1],))
                cursor.execute(f"DELETE FROM {orders.sql} WHERE id = %s", (last[0],))
                connection.commit()

        with play.job(SETTINGS) as job, play.notices() as notices, Follower(kafka_address, play.topic(orders)) as topic:
            job.wait_until_streaming()
            semi_sync(play, on=True)
            committing = threading.Thread(target=commit_slowly, daemon=True)
            play.execute_by_message("in-the-stall", [orders])
            job.wait_until("chunks were planned", lambda: not wholly_planned(play, if_none=True), every=0.005)
            began = time.monotonic()
            committing.start()
            # The event has reached a consumer, its row is still invisible, and the row's chunk is not read yet.
            job.wait_until("the stalled event was sent", lambda: has_update(topic), every=0.0)
            sent = time.monotonic() - began
            assert not wholly_planned(play, if_none=True), "the stall came too late: nothing was put to the test"
            no_limit = {"rows-per-second": 0}
            send.to_topic(kafka_address, f"{topic_prefix}-signal", topic_prefix, "fast", "incsnap-throttle", no_limit)
            with play.connect() as connection, connection.cursor() as cursor:
                cursor.execute(f"SELECT MAX(version) FROM {orders.sql}")
                ((seen,),) = cursor.fetchall()
            assert seen == 0, "the commit was not stalled: nothing was put to the test"
            # The next commit is sent too while chunks wait: they do not hold up the stream.
            beating = threading.Thread(target=insert_mark, args=(play,), daemon=True)
            beating.start()
            with Follower(kafka_address, f"{topic_prefix}.stalled.marks") as marks:
                job.wait_until("the next event was sent", lambda: bool(marks.poll(0.05)), every=0.0)
            next_sent = time.monotonic() - began
            job.wait_until("a chunk had waited in vain", lambda: waited_in_vain(play), every=0.005)
            assert committing.is_alive(), "the commit was not stalled: nothing was put to the test"
            semi_sync(play, on=False)
            job.wait_until("the snapshot was complete", lambda: notices.completed("in-the-stall"))
            committing.join()
            beating.join()
            play.drain(job)
            job.stop()

        say(f"the stalled commit's events were sent after {sent:.1f} s, the next commit's after {next_sent:.1f} s")
        (verdict,) = play.verdicts()
        assert verdict.faults(snapshots=1) == []
        assert (verdict.replay.counts["u"], verdict.replay.counts["d"]) == (20, 1)
        assert verdict.replay.counts["r"] in range(ROWS - 20, ROWS)


def semi_sync(play: CapturedDatabase, on: bool) -> None:
    """Switch semi-synchronous replication on or off."""
    with play.connect() as connection, connection.cursor() as cursor:
        if on:
            cursor.execute("INSTALL PLUGIN rpl_semi_sync_source SONAME 'semisync_source.so'")
            cursor.execute("SET GLOBAL rpl_semi_sync_source_wait_no_replica = 1")
            cursor.execute(f"SET GLOBAL rpl_semi_sync_source_timeout = {LONGEST_STALL_SECONDS * 1000}")
        cursor.execute(f"SET GLOBAL rpl_semi_sync_source_enabled = {int(on)}")


def wholly_planned(play: CapturedDatabase, if_none: bool) -> bool:
    """Return True if the table's last chunk was planned. Return `if_none` if no table is being read."""
    offset = newest_offset(str(play.checkpoint))
    scans = offset.snapshot.scans if offset is not None else ()
    return scans[0].maximum is None or scans[0].wholly_planned if scans else if_none


def waited_in_vain(play: CapturedDatabase) -> bool:
    """Return True if a range of the table must be read again.

    In this test only the stalled commit makes a chunk fail.
    """
    offset = newest_offset(str(play.checkpoint))
    return offset is not None and any(scan.again for scan in offset.snapshot.scans)


def insert_mark(play: CapturedDatabase) -> None:
    """Insert a marker row."""
    with play.connect() as connection, connection.cursor() as cursor:
        cursor.execute(f"INSERT INTO `{play.database}`.marks VALUES (1, 0)")


def has_update(topic: Follower) -> bool:
    """Whether the topic has a new record of an update."""
    return any(b'"op":"u"' in (message.value() or b"") for message in topic.poll(0.05))
