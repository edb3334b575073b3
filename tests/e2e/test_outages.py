"""Tests of a job whose Kafka or MySQL is away: the log, the status, `/ready` and the metrics say so."""

from __future__ import annotations

import json
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from incsnap.monitoring.job_status import NAME
from incsnap.monitoring.status import RETRYING, RUNNING, JobStatus, load
from lab.breakable import Breakable
from lab.captured_database import CapturedDatabase, captured_database
from lab.fetched_kafka import breakable_kafka
from lab.fetched_mysql import breakable_mysql
from lab.free_port import free_ports
from lab.table_designs import ORDERS
from tests.support.waiting import PATIENCE_SECONDS

pytestmark = [pytest.mark.servers, pytest.mark.timeout(600)]


@pytest.fixture
def broken(database: str, topic_prefix: str, tmp_path: Path) -> Iterator[tuple[CapturedDatabase, Breakable, Breakable]]:
    """A captured database on servers of its own, its MySQL and its Kafka."""
    with (
        breakable_mysql(["--server-id=71"]) as (mysql, mysqld),
        breakable_kafka() as (kafka, broker),
        captured_database(mysql, kafka, database, topic_prefix, tmp_path) as play,
    ):
        yield play, mysqld, broker


def status_of(play: CapturedDatabase) -> JobStatus | None:
    path = Path(play.checkpoint) / "incsnap" / NAME
    return load(json.loads(path.read_text())) if path.exists() else None


def ready(port: int) -> tuple[int, str]:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/ready", timeout=60) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def test_an_outage_is_told_while_it_lasts_and_never_looks_like_a_running_job(
    broken: tuple[CapturedDatabase, Breakable, Breakable],
) -> None:
    play, mysqld, broker = broken
    play.create(ORDERS, 100)
    port, log = free_ports(1)[0], play.log
    mysql, kafka = f"{play.mysql.host}:{play.mysql.port}", play.kafka

    def is_in(state: str) -> bool:
        now = status_of(play)
        return now is not None and now.state == state

    broker.kill()
    with play.job({"incsnap.metrics.port": str(port)}) as job:
        job.wait_until(
            "the start waits for Kafka", lambda: f"Kafka at {kafka} does not answer since" in log.read_text()
        )
        job.wait_until("the status says so", lambda: is_in(RETRYING))
        assert job.exit_code() is None
        broker.start()
        job.wait_until("the job runs", lambda: is_in(RUNNING))
        assert f"Kafka at {kafka} answers again" in log.read_text()
        job.wait_until("it is ready", lambda: ready(port)[0] == 200)

        broker.kill()
        killed = time.monotonic()
        job.wait_until("Kafka is missed", lambda: is_in(RETRYING))
        assert time.monotonic() - killed < 60
        assert ready(port)[0] == 503
        job.wait_until("Kafka is named", lambda: f"Kafka at {kafka} does not answer since" in ready(port)[1])
        assert ready(port)[0] == 503
        # The status is a file, which is written at its own pace.
        job.wait_until("the status tells the outage", lambda: bool((now := status_of(play)) and now.outages))
        status = status_of(play)
        assert status is not None
        assert [(each.server, each.address) for each in status.outages] == [("Kafka", kafka)]
        assert status.failure is not None
        assert status.failure.count > 0
        broker.start()
        job.wait_until("the job runs again", lambda: is_in(RUNNING))

        mysqld.kill()
        job.wait_until("MySQL is missed", lambda: ready(port)[0] == 503)
        job.wait_until("MySQL is named", lambda: f"MySQL at {mysql} does not answer since" in ready(port)[1])
        job.wait_until("the status misses MySQL too", lambda: is_in(RETRYING))
        seen = set()

        def looked() -> bool:
            now = status_of(play)
            if now is not None:
                seen.add(now.state)
            return now is not None and now.failure is not None and now.failure.count >= 3

        lines = len(log.read_text().splitlines())
        job.wait_until("some tries have failed", looked)
        assert seen == {RETRYING}
        # A failed try is no line: an outage has a line a minute.
        assert len(log.read_text().splitlines()) - lines <= 2
        streamed = log.read_text().count("Streaming to topics")
        mysqld.start()
        job.wait_until("the job runs once more", lambda: is_in(RUNNING))
        job.wait_until("it is ready again", lambda: ready(port)[0] == 200)
        assert log.read_text().count("Streaming to topics") == streamed + 1
        assert f"MySQL at {mysql} answers again" in log.read_text()
        status = status_of(play)
        assert status is not None
        assert status.stream is not None
        assert status.stream.disconnects >= 1
        job.stop()

    # The pauses are long enough for the status, which is written each second, to show each failure to a slow test.
    pauses = {f"errors.retry.delay.{which}.ms": "8000" for which in ("initial", "max")}
    with play.job({"errors.max.retries": "2", **pauses}) as job:
        job.wait_until("the job runs with a limit of restarts", lambda: is_in(RUNNING))
        mysqld.kill()
        given_up, failures = time.monotonic() + PATIENCE_SECONDS, {0}
        while job.exit_code() is None and time.monotonic() < given_up:
            now = status_of(play)
            failures.add(now.failure.count if now is not None and now.failure is not None else 0)
            time.sleep(0.05)
        assert job.exit_code() == 1
        assert f"error: MySQL at {mysql} does not answer" in job.log_tail(3)
    assert max(failures) == 2
