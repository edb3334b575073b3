"""Starts of one topic.prefix on a real broker, without Spark."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import pytest

from incsnap.checkpoint.location import own_part
from incsnap.checkpoint.lock import checkpoint_lock
from incsnap.config.settings import Settings
from incsnap.kafka.announcement_log import AnnouncementLog
from incsnap.kafka.announcements import PrefixTaken
from incsnap.kafka.client_settings import ClientSettings
from incsnap.kafka.transaction import PRODUCERS, BucketWriter
from incsnap.monitoring.outages import Outages
from incsnap.monitoring.signal_sender import channel_places
from incsnap.snapshot.commands import DataCollection
from incsnap.snapshot.context import Request, SnapshotContext
from incsnap.snapshot.delivered_place import snapshots_at
from incsnap.spark.prefix_start import PrefixStart
from incsnap.tables import TableId
from incsnap.version import __version__
from lab.addresses import MySqlAddress
from tests.support.planned_job import settings_of
from tests.support.waiting import wait_until

pytestmark = pytest.mark.servers
#: A start on a checkpoint, with the job id and the number of buckets of its job.
Begin = Callable[[str, str, int], PrefixStart]


@pytest.fixture
def begin(kafka_address: str, topic_prefix: str, tmp_path: Path) -> Iterator[Begin]:
    with ExitStack() as stack:

        def started(name: str, job: str, buckets: int) -> PrefixStart:
            settings = settings_in(kafka_address, topic_prefix, tmp_path / name)
            stack.enter_context(checkpoint_lock(settings.checkpoint_location, own_part(settings.checkpoint_location)))
            start = stack.enter_context(closing(PrefixStart(settings, Outages({}))))
            start.ensure(buckets)
            start.begin(job, buckets)
            return start

        yield started
    PRODUCERS.close()


def settings_in(kafka: str, prefix: str, checkpoint: Path) -> Settings:
    """Return settings with an address of MySQL that is never used."""
    return settings_of(MySqlAddress("nowhere", 1), kafka, prefix, "shop", checkpoint__location=str(checkpoint))


def writer(kafka: str, prefix: str, job: str, start: PrefixStart | None = None) -> BucketWriter:
    """The writer of a job. Without a start it is one of an older release, which does not look at announcements."""
    return BucketWriter(ClientSettings(kafka), prefix, job, start.own if start is not None else None)


def test_a_start_with_fewer_buckets_fences_every_bucket_of_the_job_before(
    begin: Begin, kafka_address: str, topic_prefix: str
) -> None:
    first = begin("first", "job-a", 4)
    earlier = writer(kafka_address, topic_prefix, "job-a", first)
    opened = [earlier.open(bucket, 1, "1:a") for bucket in range(4)]
    first.close()
    begin("second", "job-b", 1)

    for transaction in opened:
        assert transaction is not None
        with transaction, pytest.raises(PrefixTaken, match="second"):
            transaction.commit()
    for bucket in range(4):
        with pytest.raises(PrefixTaken, match="second"):
            earlier.open(bucket, 1, "1:a")


def test_a_job_ends_where_one_that_does_not_announce_itself_writes(
    begin: Begin, kafka_address: str, topic_prefix: str
) -> None:
    start = begin("new", "job-new", 2)
    older = writer(kafka_address, topic_prefix, "job-old").open(1, 1, "1:a")
    assert older is not None
    with older:
        older.commit()

    def is_taken() -> bool:
        try:
            start.refuse_if_taken()
        except PrefixTaken as taken:
            return "older release of incsnap (job id job-old)" in taken.message
        return False

    wait_until(is_taken)


def test_own_batches_end_no_job(begin: Begin, kafka_address: str, topic_prefix: str) -> None:
    start = begin("new", "job-new", 2)
    for batch in (1, 2):
        transaction = writer(kafka_address, topic_prefix, "job-new", start).open(1, batch, "1:a")
        assert transaction is not None
        with transaction:
            transaction.commit()
    # What the thread of beats asks every three seconds.
    assert start._others is not None
    assert start._others.seen() == ""
    start.refuse_if_taken()


def test_an_announcement_tells_the_release_the_channels_and_the_snapshots(
    begin: Begin, kafka_address: str, topic_prefix: str
) -> None:
    start = begin("first", "job-a", 2)
    with closing(AnnouncementLog(ClientSettings(kafka_address), topic_prefix)) as log:
        owner = log.owner(60.0)
        assert owner is not None
        assert owner.facts.release == __version__
        assert owner.facts.signals is not None
        assert "incsnap-keys" in owner.facts.signals["fields"]
        assert owner.facts.signals["channels"] == channel_places(settings_in(kafka_address, topic_prefix, Path("x")))
        assert owner.facts.snapshots == {"paused": "", "repairs": {}}
        waiting = Request("incsnap-repair-1", DataCollection(TableId("shop", "orders")))
        paused = SnapshotContext(queue=(waiting,), paused=True, paused_by="night", recent=("incsnap-repair-0", "other"))
        start.begin("job-a", 2, paused)
        owner = log.owner(60.0)
        assert owner is not None
        # Nothing is called done that is only planned.
        assert owner.facts.snapshots == {"paused": "night", "repairs": {}}
    assert snapshots_at(paused)["repairs"] == {"incsnap-repair-0": "done", "incsnap-repair-1": "open"}
