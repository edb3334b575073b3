"""A consumer of its own: reads topics from their beginning to their end as anybody's ``read_committed`` consumer would.

It shares no code with what wrote the records; it knows the envelope from Debezium's documentation only.
https://debezium.io/documentation/reference/stable/connectors/mysql.html#mysql-events
"""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition

from incsnap.errors import ServerUnreachable
from lab.history import Judgement, KeyHistory, columns_of, judge

Key = tuple[Any, ...]


class TopicReplay:
    """The state that a consumer of one table's topic ends up with, and what it saw on the way.

    ``state``: by the values of the key. ``counts``: ``r c u d`` and ``tombstone``. ``keep_times``: each key keeps the
    times of its records: when an ``r`` was read, when a change was committed (ms).
    """

    def __init__(self, *, version_column: str = "version", keep_times: bool = False) -> None:
        self.state: dict[Key, KeyHistory] = {}
        self.counts: Counter[str] = Counter()
        self.judgement = Judgement()
        self.columns: tuple[str, ...] = ()
        self._version = version_column
        self._keep_times = keep_times
        # Hashes in place of the identities themselves (64 bits; a million events collide by chance once in 10**7 runs).
        self._seen: set[int] = set()
        self._awaits_tombstone: dict[Key, bool] = {}

    def observe(self, key: bytes, value: bytes | None, partition: int) -> None:
        """The next record of its partition."""
        identity: Key = tuple(json.loads(key).values())
        history = self.state.get(identity)
        if history is None:
            history = self.state[identity] = KeyHistory(partition)
        elif history.partition != partition:
            self.judgement.strays.add(f"key {identity}: partitions {history.partition} and {partition}")
        if value is None:
            self._tombstone(identity, history)
            return
        record = json.loads(value)
        op, before, after, source = record["op"], record["before"], record["after"], record["source"]
        self.counts[op] += 1
        if op == "r":
            if source["snapshot"] != "incremental":
                self.judgement.strays.add(f"key {identity}: op r with snapshot={source['snapshot']}")
        else:
            mark = hash((source["gtid"], source["file"], source["pos"], source["row"], op))
            if mark in self._seen:
                where = f"{source['gtid']} {source['file']}:{source['pos']} row {source['row']}"
                self.judgement.duplicates.add(f"key {identity}: {op} of {where}")
                return
            self._seen.add(mark)
        judge(
            history,
            identity,
            op,
            None if before is None else before[self._version],
            None if after is None else after[self._version],
            self.judgement,
        )
        if self._keep_times:
            history.times.append(record["ts_ms"] if op == "r" else source["ts_ms"])
        if after is None:
            history.row = None
            self._awaits_tombstone[identity] = True
        else:
            self.columns = self.columns or tuple(after)
            history.row = columns_of(after, self.columns)

    def _tombstone(self, identity: Key, history: KeyHistory) -> None:
        self.counts["tombstone"] += 1
        if history.row is not None or not self._awaits_tombstone.pop(identity, False):
            self.judgement.strays.add(f"key {identity}: a tombstone without a delete before it")

    @property
    def living(self) -> dict[Key, tuple[Any, ...]]:
        """The rows that a consumer now holds."""
        return {key: history.row for key, history in self.state.items() if history.row is not None}

    @property
    def events(self) -> int:
        """Live events, without reads and tombstones."""
        return self.counts["c"] + self.counts["u"] + self.counts["d"]

    def most_reads(self) -> int:
        """The largest number of ``r`` records of any key; above the number of snapshots asked for: a duplicate."""
        return max((history.reads for history in self.state.values()), default=0)


def replay(
    bootstrap: str,
    topics: Mapping[str, TopicReplay],
    *,
    stall_seconds: float = 30.0,
    progress: Callable[[int], None] = lambda records: None,
) -> int:
    """Feed all records that the topics hold now to their replays, and return how many there were.

    A topic that does not exist is empty. :raises ServerUnreachable: nothing came for ``stall_seconds`` before the end
    was reached: a transaction is still open, or the broker is gone.
    """

    def observe(message: Message) -> None:
        topic, key, partition = message.topic(), message.key(), message.partition()
        assert topic is not None
        assert key is not None, "every table here has a key"
        assert partition is not None
        topics[topic].observe(key, message.value(), partition)

    return read_topics(bootstrap, list(topics), observe, stall_seconds=stall_seconds, progress=progress)


def read_topics(
    bootstrap: str,
    topics: list[str],
    observe: Callable[[Message], None],
    *,
    stall_seconds: float = 30.0,
    progress: Callable[[int], None] = lambda records: None,
) -> int:
    """Every committed record of the topics from the first to the present end, in order within each partition."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "incsnap-replay",
            "isolation.level": "read_committed",
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
            "enable.partition.eof": True,
            "queued.max.messages.kbytes": 262_144,
            "fetch.message.max.bytes": 10_000_000,
            "fetch.wait.max.ms": 10,
        }
    )
    try:
        left = _ends(consumer, topics)
        consumer.assign([TopicPartition(topic, partition, 0) for topic, partition in left])
        records, heard = 0, time.monotonic()
        while left:
            messages = consumer.consume(10_000, timeout=0.5)
            for message in messages:
                error = message.error()
                if error is None:
                    observe(message)
                    records += 1
                elif error.code() == KafkaError._PARTITION_EOF:
                    # Its offset is the last stable one: below the end while a transaction is open.
                    place = (str(message.topic()), int(message.partition() or 0))
                    if int(message.offset() or 0) >= left.get(place, 0):
                        left.pop(place, None)
                elif not error.retriable():
                    raise KafkaException(error)
            if messages:
                heard = time.monotonic()
                progress(records)
            elif time.monotonic() - heard > stall_seconds:
                raise ServerUnreachable(
                    f"no record for {stall_seconds:.0f} s, and the end of {sorted(left)} is not reached",
                    "A transaction is open there (transaction.timeout.ms ends it), or the broker does not answer.",
                )
        return records
    finally:
        consumer.close()


def _ends(consumer: Consumer, topics: list[str]) -> dict[tuple[str, int], int]:
    """The first offset after the last record of each partition that holds any."""
    existing = consumer.list_topics(timeout=20).topics
    ends: dict[tuple[str, int], int] = {}
    for topic in topics:
        for partition in existing[topic].partitions if topic in existing else ():
            low, high = consumer.get_watermark_offsets(TopicPartition(topic, partition), timeout=20)
            if high > low:
                ends[topic, partition] = high
    return ends
