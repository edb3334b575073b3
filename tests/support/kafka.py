"""Records for tests, and an independent consumer that reads topics."""

from __future__ import annotations

import secrets
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import pyarrow as pa
from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from incsnap.envelope.records import RECORDS
from tests.support.waiting import PATIENCE_SECONDS

#: Polls to wait for markers, of this many seconds each: a broker answers a commit some milliseconds before each
#: partition has its marker. Polls are counted, because a broker does nothing either while the machine pauses.
_MARKER_POLLS, _POLL_SECONDS = 40, 0.1
#: Seconds that a new partition may take until it has a leader, and what its broker answers meanwhile.
_LEADER_SECONDS = 30
_NO_LEADER = (KafkaError.NOT_LEADER_FOR_PARTITION, KafkaError.LEADER_NOT_AVAILABLE)
#: partition, key, value, old key, new key
Line = tuple[int, bytes | None, bytes | None, bytes | None, bytes | None]


def records(*lines: Sequence[object]) -> pa.RecordBatch:
    """Return a batch of the schema RECORDS.

    A line is (partition, key, value[, old key, new key[, identity, old identity]]).
    """
    width = len(RECORDS)
    whole = [(*line, *[None] * (width - len(line))) for line in lines]
    columns = list(zip(*whole, strict=True)) or [()] * width
    return pa.record_batch([pa.array(c, f.type) for c, f in zip(columns, RECORDS, strict=True)], schema=RECORDS)


def keyed(*pairs: tuple[str, str], partition: int = 0) -> pa.RecordBatch:
    """Return records of one partition, from pairs of key and value."""
    return records(*[(partition, key.encode(), value.encode()) for key, value in pairs])


def one_partition(_: str) -> int:
    """Return 1: each topic that an event names has one partition. Kafka is not asked."""
    return 1


def unique(what: str) -> str:
    """Return a name with `what` in it that no other test and no other run uses."""
    return f"e-{what}-{secrets.token_hex(4)}"


@dataclass(frozen=True)
class Read:
    partition: int
    offset: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...] = ()


def read_all(
    address: str,
    topic: str,
    partitions: Iterable[int] = (0,),
    isolation: str = "read_committed",
    seconds: float = PATIENCE_SECONDS,
) -> list[Read]:
    """Return all records of the partitions up to their present ends, one partition after the other."""
    consumer = Consumer(
        {
            "bootstrap.servers": address,
            "group.id": "nobody",
            "enable.auto.commit": "false",
            "isolation.level": isolation,
            "enable.partition.eof": "true",
            "fetch.wait.max.ms": "10",
        }
    )
    reads: list[Read] = []
    try:
        for partition in partitions:
            consumer.assign([TopicPartition(topic, partition, 0)])
            deadline = time.monotonic() + seconds
            end = _end(address, topic, partition)
            at_end, in_vain = False, 0
            while time.monotonic() < deadline:
                message = consumer.poll(_POLL_SECONDS)
                if message is None:
                    in_vain += at_end
                    if in_vain >= _MARKER_POLLS:
                        break  # later records belong to an open transaction
                    continue
                error = message.error()
                if error is not None:
                    assert error.code() == KafkaError._PARTITION_EOF, error
                    if (message.offset() or 0) >= end:
                        break
                    at_end = True
                    continue
                headers = tuple((str(header[0]), _bytes(header[1])) for header in message.headers() or ())
                reads.append(Read(partition, message.offset() or 0, message.key(), message.value(), headers))
            else:
                raise AssertionError(f"{topic} could not be read in {seconds} s")
    finally:
        consumer.close()
    return reads


def _end(address: str, topic: str, partition: int) -> int:
    """Return the offset behind the last record, committed or not.

    A partition that was made a moment ago may have no leader yet. Its broker is asked again.
    """
    consumer = Consumer({"bootstrap.servers": address, "group.id": "nobody", "isolation.level": "read_uncommitted"})
    deadline = time.monotonic() + _LEADER_SECONDS
    try:
        while True:
            try:
                return int(consumer.get_watermark_offsets(TopicPartition(topic, partition), timeout=60)[1])
            except KafkaException as error:
                if error.args[0].code() not in _NO_LEADER or time.monotonic() > deadline:
                    raise
                time.sleep(0.2)
    finally:
        consumer.close()


def _bytes(value: object) -> bytes | None:
    assert value is None or isinstance(value, bytes)
    return value
