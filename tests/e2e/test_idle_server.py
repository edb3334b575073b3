"""An idle server, and a job that may only read: a Kafka signal still brings rows."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from lab.addresses import MySqlAddress
from lab.captured_database import CapturedDatabase, captured_database
from lab.listening import Follower
from lab.servers import servers
from lab.table_designs import ORDERS, PEOPLE

pytestmark = pytest.mark.servers

#: Seconds from a signal to its first row: a hundred times what a quiet machine takes. On an idle server only a
#: heartbeat closes a window, so a job that ignores heartbeats would wait until the test ends it.
_SOON = 30.0


@pytest.fixture
def quiet_mysql() -> Iterator[MySqlAddress]:
    """A server for this test only. No other client writes, so its executed GTIDs show what incsnap wrote."""
    with servers(kafka=False, mysql_options=["--server-id=77"]) as started:
        yield started.mysql


def executed(play: CapturedDatabase) -> str:
    with play.connect() as connection, connection.cursor() as cursor:
        cursor.execute("SELECT @@GLOBAL.gtid_executed")
        ((gtids,),) = cursor.fetchall()
        return str(gtids)


def test_a_signal_on_an_idle_read_only_server_brings_rows_and_writes_nothing(
    quiet_mysql: MySqlAddress, kafka_address: str, topic_prefix: str, tmp_path: Path, say: Callable[[str], None]
) -> None:
    with captured_database(quiet_mysql, kafka_address, "quiet", topic_prefix, tmp_path) as play:
        orders, people = play.create(ORDERS, 5_000), play.create(PEOPLE, 100)
        with play.connect() as connection, connection.cursor() as cursor:
            cursor.execute("CREATE USER reader IDENTIFIED BY 'reads only'")
            cursor.execute("GRANT SELECT, REPLICATION SLAVE, REPLICATION CLIENT ON *.* TO reader")
        more = {
            "read.only": "true",
            "signal.enabled.channels": "kafka",
            "database.user": "reader",
            "database.password": "reads only",
        }
        before = executed(play)
        with play.job(more) as job, play.notices() as notices:
            job.wait_until_streaming()
            # The first batches of a JVM take seconds, which are not measured here.
            play.execute_by_message("warm-up", [people])
            job.wait_until("the warm-up was complete", lambda: notices.completed("warm-up"))
            with Follower(kafka_address, play.topic(orders)) as follower:
                follower.poll(1.0)
                signalled = time.monotonic()
                play.execute_by_message("measured", [orders])
                job.wait_until("the first row came", lambda: bool(follower.poll(0.05)), every=0.0)
                seconds = time.monotonic() - signalled
            job.wait_until("the snapshot was complete", lambda: notices.completed("measured"))
            after = executed(play)
            play.drain(job)
            job.stop()

        say(f"signal to first r on an idle server: {seconds:.2f} s")
        assert after == before, "the job wrote to the server"
        assert seconds < _SOON, "the window did not close by the server's heartbeat"
        verdicts = play.verdicts()
        assert [fault for verdict in verdicts for fault in verdict.faults(1)] == []
        assert [verdict.replay.counts["r"] for verdict in verdicts] == [5_000, 100]
