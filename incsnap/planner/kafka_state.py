"""Kafka's answers about the jobs of a `topic.prefix`, and the fencing of their producers.

`incsnap.planner.one_start` decides by these answers.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TypeVar

from incsnap.config.settings import Settings
from incsnap.kafka.announcement_log import AnnouncementLog
from incsnap.kafka.announcements import ALIVE_SECONDS, WATCH_SECONDS, Announcement, StartFacts
from incsnap.kafka.client_settings import ClientSettings
from incsnap.kafka.control import CommittedBatch, committed_numbers, control_topic, recorded_batch
from incsnap.kafka.refusals import ClientError, sink_error
from incsnap.kafka.retries import with_retries
from incsnap.kafka.transaction import BucketWriter

log = logging.getLogger(__name__)
Result = TypeVar("Result")

#: Seconds between two looks at a start that may be dead.
_WATCH_PAUSE = 0.5
#: Buckets that are fenced at the same time. Each takes 10 ms; one in a few hundred takes 510 ms.
_TOGETHER = 8
_READING = "reading what an earlier job has sent"


def ask(doing: str, topic: str, call: Callable[[float], Result]) -> Result:
    """Return the result of `call`. Call it again while Kafka says that a retry may help.

    `call` gets the seconds that are left for it. `doing` names the step in messages. Raise SinkError if Kafka fails for
    good.
    """
    try:
        return with_retries(doing, call)
    except ClientError as error:
        raise sink_error(doing, error, topic) from error


def recorded_batches(client: ClientSettings, prefix: str, job: str, buckets: int) -> dict[int, CommittedBatch]:
    """Return for each bucket the last batch that the job has committed there, read from the control topic.

    Buckets without a record are left out. Raise SinkError if Kafka fails.
    """
    records = {
        bucket: ask(_READING, control_topic(prefix), partial(recorded_batch, client, prefix, job, bucket))
        for bucket in range(buckets)
    }
    return {bucket: record for bucket, record in records.items() if record is not None}


def fence_others(settings: Settings, buckets: int) -> None:
    """Fence the producers of all other jobs and starts that write to the first `buckets` buckets of the prefix.

    An open transaction of a fenced producer is aborted and can never be committed. Raise SinkError if Kafka fails.
    """
    client = ClientSettings(settings.kafka.bootstrap_servers, settings.kafka.producer)
    writer = BucketWriter(client, settings.topic_prefix, "")
    with ThreadPoolExecutor(_TOGETHER, thread_name_prefix="incsnap-fence") as fencing:
        list(fencing.map(writer.fence, range(buckets)))


class KafkaState:
    """The `PrefixState` of a job, used before a start announces and again after the start has fenced all other
    producers."""

    def __init__(self, client: ClientSettings, prefix: str, buckets: int, log_: AnnouncementLog | None) -> None:
        """Create the state. `log_` is None after the fence: an owner that was alive before cannot deliver any more."""
        self._client = client
        self._prefix = prefix
        self._topic = control_topic(prefix)
        self._buckets = buckets
        self._log = log_

    def is_alive(self, owner: Announcement, *, wait: bool) -> bool:
        """Whether the owner of the prefix still beats: whether its job runs.

        If its last beat is young, return True at once; with `wait` a young beat does not count. Otherwise watch for
        another beat, for 6 to 20 seconds. After the fence return False: the owner cannot deliver any more.
        """
        facts = owner.facts
        if facts.ended or self._log is None:
            return False
        if facts.is_young and not wait:
            return True
        log.info("Waiting for an announcement of %s, which tells that it still runs", facts)
        young_seconds = facts.beat_ms / 1000 + ALIVE_SECONDS - time.time() if wait else 0.0
        deadline = time.monotonic() + min(ALIVE_SECONDS, max(WATCH_SECONDS, young_seconds))
        while time.monotonic() < deadline:
            time.sleep(_WATCH_PAUSE)
            now = ask("looking for another start", self._topic, self._log.owner)
            if now is None or now.facts.ended:
                return False
            if now.facts.start != facts.start or now.facts.beat_ms != facts.beat_ms:
                return True
        return False

    def delivered(self, job: StartFacts) -> int | None:
        """Return the number of the job's newest batch in any bucket; None if the job has sent none.

        The consumer group's offsets tell the number, or the control records if those offsets are gone.
        """
        if not job.job:
            return None
        read = partial(committed_numbers, self._client, self._prefix, job.job, self._buckets, fenced=self._log is None)
        numbers = ask(_READING, self._topic, read)
        if numbers:
            return max(numbers.values())
        records = recorded_batches(self._client, self._prefix, job.job, self._buckets)
        return max((each.batch for each in records.values()), default=None)

    def has_records(self) -> bool:
        """Whether a bucket's partition of the control topic was written to before this start announced.

        After the fence the result is False. `judge` uses the answer only to warn or to refuse, and has done that
        before.
        """
        return self._log is not None and ask(
            "looking for earlier jobs", self._topic, partial(self._log.was_written_to, self._buckets)
        )
