"""Two starts of one topic.prefix, as whole jobs: only one delivers, and a consumer sees each change once."""

from __future__ import annotations

import contextlib
import os
import signal
from collections import Counter
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient

from incsnap.tables import TableId
from lab.captured_database import CapturedDatabase
from lab.running_job import session_pids
from tests.support.two_jobs import ROWS, ended, insert, second_job, times_seen

pytestmark = pytest.mark.servers


def test_a_second_job_of_a_prefix_is_refused_unless_it_replaces_the_first(
    play: CapturedDatabase, tmp_path: Path
) -> None:
    rows = play.create(ROWS, 10)
    other = tmp_path / "other"
    with play.job() as first:
        first.wait_until_streaming()
        insert(play, range(1000, 1020))
        play.drain(first)
        with second_job(play, other) as refused:
            assert ended(refused) == 2, refused.log_tail()
            for part in ("runs with this topic.prefix", str(play.checkpoint), "started 2", "--replace-job"):
                assert part in refused.log_tail(), refused.log_tail()
        assert first.exit_code() is None
        with second_job(play, other, "--replace-job") as second:
            assert ended(first) == 2, first.log_tail()
            assert str(other) in first.log_tail(), first.log_tail()
            insert(play, range(1020, 1040))
            play.drain(second)
            # A supervisor starts the replaced job again.
            with play.job() as again:
                assert ended(again) == 2, again.log_tail()
                assert "has replaced the job" in again.log_tail() or "runs with" in again.log_tail(), again.log_tail()
            second.stop()
    with play.job() as again:
        assert ended(again) == 2, again.log_tail()
        assert "has replaced the job" in again.log_tail(), again.log_tail()
    assert times_seen(play, play.topic(rows), range(1000, 1040)) == Counter({1: 40})


@pytest.mark.long
def test_a_job_that_was_frozen_replaced_and_thawed_sends_nothing_more(play: CapturedDatabase, tmp_path: Path) -> None:
    rows = play.create(ROWS, 10)
    with play.job() as first:
        first.wait_until_streaming()
        insert(play, range(1000, 1020))
        play.drain(first)
        insert(play, range(1020, 1200))
        frozen = session_pids(first.pid)
        for pid in frozen:
            os.kill(pid, signal.SIGSTOP)
        insert(play, range(1200, 1240))
        with second_job(play, tmp_path / "other", "--replace-job") as second:
            play.drain(second)
            for pid in frozen:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGCONT)
            assert ended(first) == 2, first.log_tail()
            assert str(tmp_path / "other") in first.log_tail(), first.log_tail()
            insert(play, range(1240, 1260))
            play.drain(second)
            second.stop()
    assert times_seen(play, play.topic(rows), range(1000, 1260)) == Counter({1: 260})


def test_a_replacing_job_reads_the_new_tables_of_its_wider_list(play: CapturedDatabase, tmp_path: Path) -> None:
    play.create(ROWS, 10)
    with play.connect() as connection, connection.cursor() as cursor:
        cursor.execute(f"CREATE TABLE `{play.database}`.later (id INT PRIMARY KEY)")
        cursor.execute(f"INSERT INTO `{play.database}`.later VALUES (1), (2), (3)")
    wider = {
        "table.include.list": rf"{play.database}\.(plain|marks|later)",
        "snapshot.new.tables": "parallel",
    }
    with play.job() as first:
        first.wait_until_streaming()
        insert(play, range(1000, 1010))
        play.drain(first)
        first.stop()
    with second_job(play, tmp_path / "other", "--replace-job", settings=wider) as second:
        topic, kafka = f"{play.prefix}.{play.database}.later", AdminClient({"bootstrap.servers": play.kafka})

        def is_read() -> bool:
            made = topic in kafka.list_topics(timeout=20).topics
            return made and times_seen(play, topic, range(1, 4))[0] == 0

        second.wait_until("the new table is read", is_read)
        second.stop()
    assert times_seen(play, topic, range(1, 4)) == Counter({1: 3})
    assert times_seen(play, play.topic(TableId(play.database, "plain")), range(10)) == Counter({0: 10})
