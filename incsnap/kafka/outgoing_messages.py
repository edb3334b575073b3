"""Arrow columns of records as an array of librdkafka's messages, divided into calls."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from incsnap.kafka import librdkafka as c
from incsnap.kafka.binary_columns import places, plain
from incsnap.kafka.record_headers import RecordHeaders

#: Name of the column in which a sender may number its records. The numbers tell which records Kafka refuses.
NUMBER = "number"


class SingleRecord(NamedTuple):
    """A record that needs its own call, because it has headers."""

    partition: int
    key: bytes | None
    value: bytes | None
    headers: Sequence[tuple[bytes, bytes | None]] = ()
    timestamp: int = 0  #: milliseconds since 1970; 0: now
    number: int = -1  #: the sender's number of the record; -1: none


class OutgoingMessages:
    """The messages for `records`, ordered by topic and partition and otherwise in the order of `records`.

    `records` has the columns of `envelope.records.RECORDS` and at least one row. `topics` tells how many records go to
    each topic, one topic after the other. `array` holds messages (`librdkafka.MESSAGE`) with addresses in the columns,
    which live as long as this object.
    """

    def __init__(self, topics: Sequence[tuple[str, int]], records: pa.RecordBatch) -> None:
        self._keys, self._values = plain(records.column("key")), plain(records.column("value"))
        self._times = None
        if "timestamp" in records.schema.names:
            self._times = records.column("timestamp").fill_null(0).to_numpy(zero_copy_only=False).astype(np.int64)
        self._headers = RecordHeaders(records)
        messages = np.zeros(records.num_rows, c.MESSAGE)
        messages["partition"] = records.column("partition").to_numpy(zero_copy_only=False)
        messages["key"], messages["key_len"] = places(self._keys)
        messages["payload"], messages["len"] = places(self._values)
        self._numbers = records.column(NUMBER).to_numpy() if NUMBER in records.schema.names else None
        if self._numbers is not None:
            messages["_private"] = self._numbers + 1  # 0, a null pointer, means no number
        topic_numbers = np.repeat(np.arange(len(topics)), [count for _, count in topics])
        #: Index of the record for each message.
        self._order = np.lexsort((messages["partition"], topic_numbers))
        self.array: Any = messages[self._order]
        #: Headers that all messages have.
        self.shared_headers = self._headers.shared
        #: Indexes of messages that have further headers.
        self.alone = frozenset(np.flatnonzero(self._headers.alone[self._order]).tolist())
        self._topics = topics
        self._topic_numbers = topic_numbers

    def calls(self) -> list[tuple[str, int, int]]:
        """Return topic, first message and end of each call: one call for each partition, and one for each message with
        headers of its own.

        With MSG_F_PARTITION (a partition in each message) one call a topic would do. But then librdkafka 2.16 adds
        partition -1 to the transaction if it does not know the topic yet, and brokers refuse that.
        """
        # The order keeps each topic's records together, so the topic numbers need not be reordered.
        numbers = self._topic_numbers
        changes = (np.diff(self.array["partition"]) != 0) | (np.diff(numbers) != 0)
        alone = self.alone
        borders = {0, len(self.array), *(np.flatnonzero(changes) + 1).tolist(), *alone, *(at + 1 for at in alone)}
        ordered = sorted(borders)
        names = [self._topics[number][0] for number in numbers[ordered[:-1]].tolist()]
        return [(name, begin, end) for name, (begin, end) in zip(names, pairwise(ordered), strict=True)]

    def times(self, begin: int, end: int) -> Any:
        """Return the times of the messages `begin` to `end` in ms since 1970, one for each; 0 stands for now."""
        return 0 if self._times is None else self._times[self._order[begin:end]]

    def single(self, message: int) -> SingleRecord:
        """Return the message with index `message` as a SingleRecord."""
        record = int(self._order[message])
        return SingleRecord(
            int(self.array["partition"][message]),
            self._keys[record].as_py(),
            self._values[record].as_py(),
            self._headers.of(record),
            0 if self._times is None else int(self._times[record]),
            -1 if self._numbers is None else int(self._numbers[record]),
        )
