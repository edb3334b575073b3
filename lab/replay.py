"""A consumer that reads topics from their beginning to their end, as any `read_committed` consumer does.

It shares no code with the part of incsnap that writes records. It knows the envelope only from Debezium's
documentation.

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
    """The state of a consumer that has read one table's topic, and the faults that it saw.

    `state` maps each key's values to its history. `counts` has the number of records by `r`, `c`, `u`, `d` and
    `tombstone`.

    With `keep_times`, each history has the times (ms since 1970) at which Kafka got its records. The commit times of
    changes would not show what was sent after a signal: while the stream lags, a change that was committed before the
    signal is sent after it.
    """

    def __init__(self, *, version_column: str = "version", keep_times: bool = False) -> None:
        self.state: dict[Key, KeyHistory] = {}
        self.counts: Counter[str] = Counter()
        self.judgement = Judgement()
        self.columns: tuple[str, ...] = ()
        self._version = version_column
        self._keep_times = keep_times
        # Hashes of identities (64 bits) save memory. Among a million events two hashes are equal once in 10**7 runs.
        self._seen: set[int] = set()
        self._awaits_tombstone: dict[Key, bool] = {}

    def observe(self, key: bytes, value: bytes | None, partition: int, sent_ms: int = 0) -> None:
        """Take the next record of `partition`. `sent_ms` is Kafka's time of the record (ms since 1970)."""
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
        if op == "d" and source["snapshot"] == "incremental":
            # A snapshot of listed keys has found no row. If a consumer holds the row, the deletion is right only if it
            # is not in the table, which the comparison at the end shows.
            history.row = None
            self._awaits_tombstone[identity] = True
            return
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
            history.times.append(sent_ms)
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
        """Return the rows that a consumer holds now, by key."""
        return {key: history.row for key, history in self.state.items() if history.row is not None}

    @property
    def events(self) -> int:
        """Return the number of live events: records without reads and tombstones."""
        return self.counts["c"] + self.counts["u"] + self.counts["d"]

    def most_reads(self) -> int:
        """Return the largest number of `r` records of any key.

        If it exceeds the number of snapshots, a row was sent twice.
        """
        return max((history.reads for history in self.state.values()), default=0)


def replay(
    bootstrap: str,
    topics: Mapping[str, TopicReplay],
    *,
    stall_seconds: float = 30.0,
    progress: Callable[[int], None] = lambda records: None,
) -> int:
    """Feed all records that the topics hold now to their replays. Return the number of records.

    A topic that does not exist counts as empty. Raise ServerUnreachable if no record comes for `stall_seconds` before
    the end: a transaction is still open, or the broker is gone.
    """

    def observe(message: Message) -> None:
        topic, key, partition = message.topic(), message.key(), message.partition()
        assert topic is not None
        assert key is not None, "every table here has a key"
        assert partition is not None
        topics[topic].observe(key, message.value(), partition, message.timestamp()[1])

    return read_topics(bootstrap, list(topics), observe, stall_seconds=stall_seconds, progress=progress)


def read_topics(
    bootstrap: str,
    topics: list[str],
    observe: Callable[[Message], None],
    *,
    stall_seconds: float = 30.0,
    progress: Callable[[int], None] = lambda records: None,
) -> int:
    """Call `observe` for every committed record of the topics, up to their present end. Return the number of records.

    Records of one partition come in order. Raise KafkaException if the consumer fails for good, and ServerUnreachable
    if no record comes for `stall_seconds` before the end.
    """
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
                    # The offset here is the last stable offset. It is below the end while a transaction is open.
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
    """Return the offset after the last record of each partition that has records."""
    existing = consumer.list_topics(timeout=20).topics
    ends: dict[tuple[str, int], int] = {}
    for topic in topics:
        for partition in existing[topic].partitions if topic in existing else ():
            low, high = consumer.get_watermark_offsets(TopicPartition(topic, partition), timeout=20)
            if high > low:
                ends[topic, partition] = high
    return ends
