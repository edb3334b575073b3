"""Several jobs in one session on a cluster, and topics that get more partitions while a job runs there."""

from __future__ import annotations

import os
import secrets
import signal
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from functools import partial

import psutil
import pytest
from confluent_kafka import Message, Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewPartitions, NewTopic

from lab.captured_database import CapturedDatabase, captured_database
from lab.child_programs import child
from lab.compare import compare
from lab.replay import TopicReplay, read_topics
from lab.running_job import RunningJob, kill_session, write_properties
from lab.spark_cluster import SparkCluster
from lab.table_designs import ORDER_LINES, ORDERS
from lab.workload import Writer
from tests.support.ledger import Ledger

pytestmark = [pytest.mark.servers, pytest.mark.long]

BEFORE, AFTER = 2, 5


@pytest.mark.parametrize("begun_again", [False, True])
def test_records_of_a_key_stay_in_order_when_its_topic_is_given_more_partitions(
    play: CapturedDatabase, cluster: SparkCluster, begun_again: bool
) -> None:
    """A key moves once, to the partition of a Java producer, when the planner looks again or is started again.

    The executors stay the same, and their producers know the topic with fewer partitions.
    """
    orders = play.create(ORDERS, 4_000)
    more = {
        "incremental.snapshot.chunk.size": "300",
        "topic.creation.default.partitions": str(BEFORE),
        "producer.metadata.max.age.ms": "300000" if begun_again else "1000",
    }
    with (
        play.job({**cluster.settings, **more}) as job,
        play.notices() as notices,
    ):
        job.wait_until_streaming()
        with Writer(play.connect, play.tables, seed=3, rate=150):
            play.execute_by_row("while it grows", [orders])
            job.wait_until("windows were in flight", play.has_windows_in_flight, every=0.02)
            admin = AdminClient({"bootstrap.servers": play.kafka})
            partitions = [NewPartitions(play.topic(orders), AFTER)]
            admin.create_partitions(partitions, request_timeout=10)[play.topic(orders)].result()
            if begun_again:
                kill_planner(job)
            job.wait_until("the snapshot was complete", lambda: notices.completed("while it grows"))
        play.drain(job)
        with play.connect() as connection, connection.cursor() as cursor:
            cursor.execute(f"UPDATE {orders.sql} SET version = version + 1")
        play.drain(job)
        job.stop()

    replay, moved = replayed(play, play.topic(orders))

    with play.connect() as connection:
        assert compare(connection, orders, replay.living, replay.columns).faults() == []
    assert replay.judgement.faults() == []
    assert moved > 0


def test_two_jobs_of_one_session_lose_nothing_when_their_executor_is_killed(
    play: CapturedDatabase, cluster: SparkCluster
) -> None:
    with ExitStack() as stack:
        name = f"{play.database}_other"
        folder = play.folder / "other"
        folder.mkdir()
        other = stack.enter_context(captured_database(play.mysql, play.kafka, name, f"{play.prefix}-other", folder))
        plays = (play, other)
        for each in plays:
            each.create(ORDERS, 3_000)
            each.create(ORDER_LINES, 1_500)
        more = {**cluster.settings, "incremental.snapshot.chunk.size": "300"}
        files = [write_properties(each.folder / "job.properties", each.properties(more)) for each in plays]
        job = stack.enter_context(jobs_in_one_session(play, [str(file) for file in files]))
        notices = [stack.enter_context(each.notices()) for each in plays]
        ledgers = [Ledger(each) for each in plays]
        for each in plays:
            job.wait_until("its first batch", (each.checkpoint / "spark" / "offsets" / "0").exists)
        writers = [stack.enter_context(Writer(each.connect, each.tables, seed=3, rate=100)) for each in plays]
        for ledger, each in zip(ledgers, plays, strict=True):
            ledger.ask([table for _, table in each.tables], "source")
        job.wait_until(
            "windows were in flight", lambda: any(each.has_windows_in_flight() for each in plays), every=0.02
        )
        killed = cluster.workers[0].kill_executors()
        for ledger, of_job in zip(ledgers, notices, strict=True):
            job.wait_until("the snapshot was complete", partial(ledger.settle, of_job))
        for writer in writers:
            writer.stop()
        for each in plays:
            each.drain(job)
        job.stop()

        for ledger in ledgers:
            ledger.check()
        assert killed == 1


@contextmanager
def jobs_in_one_session(play: CapturedDatabase, files: Sequence[str]) -> Iterator[RunningJob]:
    """Run the jobs of these files in one session until the block ends."""
    command = [sys.executable, "-m", "tests.support.jobs_in_one_session", *files]
    with child("jobs in one session", command, play.log) as started:
        try:
            yield RunningJob(started, play.checkpoint)
        finally:
            kill_session(started.pid)


def replayed(play: CapturedDatabase, topic: str) -> tuple[TopicReplay, int]:
    """Replay a topic that has got more partitions, and return how many keys have records in both partitions.

    For each key, records of its old partition come first. Raise AssertionError if a key is in any other partition.
    """
    values_by_key: dict[bytes, dict[int, list[bytes | None]]] = {}

    def observe(message: Message) -> None:
        key, at = message.key(), message.partition()
        assert isinstance(key, bytes)
        assert at is not None
        values_by_key.setdefault(key, {}).setdefault(at, []).append(message.value())

    read_topics(play.kafka, [topic], observe)
    old, new = (partitions_of(play.kafka, count, values_by_key) for count in (BEFORE, AFTER))
    replay, moved = TopicReplay(), 0
    for key in values_by_key:
        places = dict.fromkeys((old[key], new[key]))
        strays = values_by_key[key].keys() - places.keys()
        assert not strays, f"{key!r} is in {strays}, not only in {list(places)}"
        moved += len(places) == 2 and values_by_key[key].keys() == places.keys()
        for place in places:
            for value in values_by_key[key].get(place, ()):
                replay.observe(key, value, 0)
    return replay, moved


def partitions_of(kafka: str, count: int, keys: Iterable[bytes]) -> dict[bytes, int]:
    """Return the partition that librdkafka's own murmur2 chooses for each key in a topic of `count` partitions."""
    topic = f"partitions-{secrets.token_hex(5)}"
    admin = AdminClient({"bootstrap.servers": kafka})
    admin.create_topics([NewTopic(topic, count, 1)], request_timeout=20)[topic].result(20)
    chosen: dict[bytes, int] = {}

    def delivered(error: object, message: Message) -> None:
        key, at = message.key(), message.partition()
        assert error is None
        assert isinstance(key, bytes)
        assert at is not None
        chosen[key] = at

    try:
        producer = Producer({"bootstrap.servers": kafka, "partitioner": "murmur2_random"})
        for key in keys:
            producer.produce(topic, None, key, on_delivery=delivered)
        assert producer.flush(60) == 0
    finally:
        admin.delete_topics([topic], request_timeout=20)[topic].result(20)
    return chosen


def kill_planner(job: RunningJob) -> None:
    killed = 0
    for pid in job.remains():
        with suppress(psutil.NoSuchProcess, ProcessLookupError):
            # On a cluster the planner is started without a zygote, so it has no name of its own.
            if any("python_streaming_source_runner" in word for word in psutil.Process(pid).cmdline()):
                os.kill(pid, signal.SIGKILL)
                killed += 1
    assert killed, "there was no planner"
