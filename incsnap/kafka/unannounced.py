"""Detection of jobs that write to a prefix without announcing themselves, which are jobs of older releases.

Such a job does not read the announcements and does not write any. Two jobs then fence each other for ever, and send
every change twice. But the commits of such a job are on the control topic: a record of another job after the start of
this one. A job that announced itself earlier is fenced by then. A job that announces itself later owns the prefix
before it writes. So only an unannounced job can write such a record.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

from confluent_kafka import Consumer, KafkaException, TopicPartition

from incsnap.kafka.client_settings import ClientSettings
from incsnap.kafka.control import client_error, control_topic

#: Milliseconds for which a broker collects records for one answer. This gives one request for each beat of a start.
_GATHER_MS = 3_000
#: Kilobytes that the client holds until they are examined.
_QUEUE_KILOBYTES = 1_024


class UnannouncedWriters:
    """The control records that have arrived since the last look, on all partitions.

    One thread uses the object at a time, until `close`.
    """

    def __init__(self, settings: ClientSettings, prefix: str, job: str, seconds: float) -> None:
        """Begin at the present ends of the partitions. Ignore records of `job`, this job's own.

        Raise ClientError if Kafka does not answer.
        """
        self.job = job
        gathering = {
            "fetch.wait.max.ms": str(_GATHER_MS),
            "fetch.min.bytes": str(_QUEUE_KILOBYTES * 1_000),
            "queued.max.messages.kbytes": str(_QUEUE_KILOBYTES),
        }
        self._consumer = Consumer({**settings.for_consumer(f"incsnap-{prefix}-starts"), **gathering})
        try:
            self._consumer.assign(self._ends(control_topic(prefix), seconds))
        except KafkaException as problem:
            self._consumer.close()
            raise client_error(problem) from problem

    def seen(self) -> str:
        """Return the id of another job that has committed a batch since the last look, or "". Never wait."""
        return next((job for job in self._jobs() if job != self.job), "")

    def close(self) -> None:
        """Close the consumer."""
        self._consumer.close()

    def _ends(self, topic: str, seconds: float) -> list[TopicPartition]:
        """Return the position after the newest record of each partition."""
        partitions = self._consumer.list_topics(topic, timeout=seconds).topics[topic].partitions
        places = [TopicPartition(topic, each) for each in partitions]
        for each in places:
            _, each.offset = self._consumer.get_watermark_offsets(each, timeout=seconds)
        return places

    def _jobs(self) -> Iterator[str]:
        """Yield the job ids of the records that have arrived."""
        while messages := self._consumer.consume(1_000, timeout=0.0):
            for message in messages:
                value = message.value()
                if message.error() is None and value is not None and (job := _job_of(value)):
                    yield job


def _job_of(value: bytes) -> str:
    """Return the job id of a control record, or "" for a record of another kind, for example an announcement."""
    try:
        return str(json.loads(value).get("job", ""))
    except (ValueError, AttributeError):
        return ""
