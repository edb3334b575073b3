"""Two starts of one topic.prefix, as whole jobs: one delivers, and a consumer sees each change once."""

from __future__ import annotations

import contextlib
import os
import signal
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest

from lab.captured_database import CapturedDatabase
from lab.replay import read_topics
from lab.running_job import RunningJob, running_job, session_pids, write_properties
from lab.table_designs import TableDesign
from tests.support.waiting import wait_until

pytestmark = pytest.mark.servers

ROWS = TableDesign(
    "plain",
    "id BIGINT PRIMARY KEY, version BIGINT NOT NULL",
    ("id",),
    "i, 0",
    lambda random, number: (number,),
    lambda random: {},
)


@contextmanager
def second_job(
    play: CapturedDatabase, checkpoint: Path, *arguments: str, settings: Mapping[str, str] | None = None
) -> Iterator[RunningJob]:
    """Another job on the same ``topic.prefix``, with a server id of its own."""
    more = {"checkpoint.location": str(checkpoint), "database.server.id": "777001", **(settings or {})}
    path = write_properties(play.folder / f"{checkpoint.name}.properties", play.properties(more))
    log = play.folder / f"{checkpoint.name}.log"
    with running_job(path, log, checkpoint, arguments=arguments) as job:
        yield job


def ended(job: RunningJob, seconds: float = 120.0) -> int | None:
    wait_until(lambda: job.exit_code() is not None, seconds)
    return job.exit_code()


def insert(play: CapturedDatabase, ids: range) -> None:
    """Rows with keys far above those of the table."""
    with play.connect() as connection, connection.cursor() as cursor:
        for number in ids:
            cursor.execute(f"INSERT INTO `{play.database}`.plain VALUES (%s, 1)", (number,))


def times_seen(play: CapturedDatabase, topic: str, ids: range) -> Counter[int]:
    """How many records of each id a consumer sees, but for the marks."""
    seen: Counter[bytes] = Counter()
    read_topics(play.kafka, [topic], lambda message: seen.update([message.key() or b""]))
    return Counter(seen[b'{"id":%d}' % number] for number in ids)


def test_a_second_job_of_a_prefix_is_refused_and_replaces_the_first_when_it_is_told_to(
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
