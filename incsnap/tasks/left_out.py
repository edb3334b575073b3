"""The records that one bucket leaves out of one batch, because Kafka refuses them for their size.

A row of a snapshot is left out and written down beside the checkpoint; the planner then puts its key into quarantine. A
record of the signal table or of no table is left out with a warning. A change follows
`incsnap.oversized.change.handling.mode`: the change stops the job, or its key goes to a topic of dead letters. With the
mode `truncate` the source task has cut the change's columns before.

Records are numbered in the order in which the bucket sends them. A repeated batch makes the same records, so a record
has the same number in each attempt.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from incsnap.checkpoint.progress import BucketCounts
from incsnap.checkpoint.refused import RefusedRecord, RefusedRecords
from incsnap.config.declarations.job import DEAD_LETTER
from incsnap.config.settings import OversizedChanges
from incsnap.envelope.oversized import ORIGIN, ROW_KEY, key_text
from incsnap.envelope.partitioner import partition
from incsnap.envelope.records import RECORDS
from incsnap.kafka.client_settings import ClientSettings
from incsnap.kafka.outgoing_messages import NUMBER
from incsnap.kafka.refusals import OversizedRecord, RecordsTooLarge, SinkRefused
from incsnap.kafka.topic_limits import BATCH_OVERHEAD, limit_in_memory, lower_batches, surely_exceeds, topic_limit
from incsnap.tasks.blocks import kept
from incsnap.tasks.event_counts import event_counts
from incsnap.tasks.outgoing import Outgoing

_log = logging.getLogger(__name__)
#: Bytes up to which records are not looked at one by one: no topic has a smaller limit.
_SMALL = 4096
#: Most records that the log names, per bucket and batch.
_NAMED = 10
_HINT = (
    "Raise producer.max.request.size of the job and max.message.bytes of the topic; or set"
    " incsnap.oversized.change.handling.mode to dead_letter or truncate. Then start again; nothing is lost."
)


@dataclass(frozen=True, slots=True)
class SizeRule:
    """The rule by which a bucket treats records that are too large."""

    client: ClientSettings = field(default_factory=lambda: ClientSettings(""))  #: of the producer that sends them
    changes: OversizedChanges = field(default_factory=OversizedChanges)  #: the handling of changes that are too large
    signal_table: str = ""  #: as db.table; its records never stop the job


class LeftOut:
    """The records that one bucket leaves out of one batch. One object serves all attempts at it in one task."""

    def __init__(self, place: tuple[int, int, str], refused: RefusedRecords, rule: SizeRule) -> None:
        """Begin with no record left out.

        `place`: batch, bucket and digest of the batch's end. `refused`: the checkpoint's files of left-out records.
        """
        self._place, self._refused, self._rule = place, refused, rule
        #: The reason why a record must be left out, by the record's number.
        self._reasons: dict[int, str] = {}
        #: The records that an earlier task has left out, by number; None until they are read.
        self._recalled: dict[int, RefusedRecord] | None = None
        self.begin()

    def begin(self) -> None:
        """Begin an attempt: records are numbered from 0 again."""
        self._count = 0
        self._records: list[RefusedRecord] = []
        self._letters: list[tuple[bytes | None, bytes]] = []
        #: The counts of the change events and snapshot rows that are left out.
        self._counts = BucketCounts()

    def kept(self, outgoing: Outgoing) -> Outgoing:
        """Return the records that are sent, with their numbers in an added column.

        Raise SinkRefused if a change is too large and the settings say that the job stops then.
        """
        records = outgoing.records
        first, self._count = self._count, self._count + len(records)
        numbered = records.append_column(NUMBER, pa.array(np.arange(first, self._count)))
        gone = self._too_large(outgoing, first)
        if not gone:
            return Outgoing(outgoing.runs, numbered, outgoing.window)
        keep = np.ones(len(records), np.bool_)
        keep[list(gone)] = False
        for row, reason in gone.items():
            self._leave_out(outgoing, row, first + row, reason)
        return Outgoing(*kept(outgoing.runs, numbered, keep), outgoing.window)

    def learn(self, error: RecordsTooLarge) -> None:
        """Decide, after Kafka has refused records for their size, which of them the next attempt to send the bucket
        leaves out.

        The numbering of records then starts again, for the next attempt. If no record is too large by itself, the next
        attempt sends the same records in smaller batches. Raise SinkRefused if the batches are small already.
        """
        before, is_sent_smaller = len(self._reasons), False
        for record in error.records:
            if record.by_client:
                self._reasons.setdefault(record.number, self._client_reason())
        of_brokers = [record for record in error.records if not record.by_client]
        for topic in dict.fromkeys(record.topic for record in of_brokers):
            largest = self._too_large_alone([record for record in of_brokers if record.topic == topic])
            if largest is not None:
                self._reasons.setdefault(largest.number, self._topic_reason(topic))
            elif lower_batches(self._rule.client, topic):
                is_sent_smaller = True
        if len(self._reasons) == before and not is_sent_smaller:
            raise SinkRefused(
                error.message,
                "No record is too large by itself: set producer.batch.size below max.message.bytes of the topic, or"
                " raise that. Then start again; nothing is lost.",
            ) from error
        self.begin()

    @property
    def letter_topic(self) -> str:
        """Return the topic of dead letters."""
        return self._rule.changes.topic

    def letters(self, partitions_of: Callable[[str], int]) -> pa.RecordBatch | None:
        """Return the records for the topic of dead letters; None if there are none."""
        if not self._letters:
            return None
        keys, values = (pa.array(column, pa.binary()) for column in zip(*self._letters, strict=True))
        places = pa.array(partition(keys, partitions_of(self.letter_topic)), pa.int32())
        none = [pa.nulls(len(keys), pa.binary())] * (len(RECORDS) - 3)
        return pa.RecordBatch.from_arrays([places, keys, values, *none], schema=RECORDS)

    def settle(self) -> None:
        """Write down which records are left out, and log them. Call this before the transaction commits."""
        if not self._records:
            return
        batch, bucket, digest = self._place
        self._refused.write(batch, bucket, digest, tuple(self._records))
        for record in self._records[:_NAMED]:
            _log.warning("%s. It is left out of batch %d: %s", _what(record), batch, record.reason)
        if len(self._records) > _NAMED:
            _log.warning("%d more records of bucket %d are left out of batch %d, as they are too large for Kafka",
                         len(self._records) - _NAMED, bucket, batch)  # fmt: skip

    def counted(self, counts: BucketCounts) -> BucketCounts:
        """Return the bucket's counts of sent events and rows, `counts`, reduced by the records that were left out."""
        return counts - self._counts

    # -- which records

    def _too_large(self, outgoing: Outgoing, first: int) -> dict[int, str]:
        """Return the indexes of records that cannot be sent, and why. `first`: the number of the first record."""
        records = outgoing.records
        sizes = pc.add(_lengths(records.column("key")), _lengths(records.column("value"))).to_numpy()
        if sizes.max() > _SMALL:
            self._recall(first, records)
        gone = {number - first: why for number, why in self._reasons.items() if 0 <= number - first < len(records)}
        for row in np.flatnonzero(sizes > self._least_limit(outgoing)).tolist():
            if row not in gone and (reason := self._certain(outgoing, row, int(sizes[row]))):
                gone[row] = self._reasons[first + row] = reason
        return dict(sorted(gone.items()))

    def _least_limit(self, outgoing: Outgoing) -> int:
        """Return the bytes of a record up to which no known limit refuses the record."""
        client = self._rule.client
        limits = [limit_in_memory(client, topic) for topic in outgoing.topics]
        return min([client.largest_record, *(limit.bytes - BATCH_OVERHEAD for limit in limits if limit is not None)])

    def _certain(self, outgoing: Outgoing, row: int, size: int) -> str:
        """Return why the record is certainly refused; "" if only Kafka can say."""
        if size > self._rule.client.largest_record:
            return self._client_reason()
        topic = outgoing.topic_of(row)
        limit = limit_in_memory(self._rule.client, topic)
        if limit is None or size + BATCH_OVERHEAD <= limit.bytes:
            return ""
        key, value = (outgoing.records.column(name)[row].as_py() or b"" for name in ("key", "value"))
        return self._topic_reason(topic) if surely_exceeds(key + value, limit, self._rule.client) else ""

    def _too_large_alone(self, records: Sequence[OversizedRecord]) -> OversizedRecord | None:
        """Return the largest of the records that a topic refused, if the topic refuses that record alone too; else
        None.

        A broker refuses all records that are in one batch with a record that is too large.
        """
        largest = max(records, key=lambda record: record.bytes)
        limit = topic_limit(self._rule.client, largest.topic)
        if limit is not None:
            return largest if largest.bytes + BATCH_OVERHEAD > limit.bytes else None
        return largest if 2 * largest.bytes > sum(record.bytes for record in records) else None

    def _client_reason(self) -> str:
        return f"producer.max.request.size is {self._rule.client.largest_message}"

    def _topic_reason(self, topic: str) -> str:
        limit = topic_limit(self._rule.client, topic)
        known = "" if limit is None else f" is {limit.bytes}, and"
        return f"max.message.bytes of topic {topic}{known} is compared with the batch as it is compressed"

    # -- records that are left out

    def _leave_out(self, outgoing: Outgoing, row: int, number: int, reason: str) -> None:
        """Leave one record out: note it for `settle`, and make its dead letter.

        Raise SinkRefused if it must stop the job.
        """
        records = outgoing.records
        key, value = records.column("key")[row].as_py(), records.column("value")[row].as_py()
        origin, name = (
            records.column(column)[row].as_py() if column in records.schema.names else None
            for column in (ORIGIN, ROW_KEY)
        )
        record = RefusedRecord(
            number,
            outgoing.topic_of(row),
            outgoing.run_of(row).table,
            _hex(key),
            name or key_text(key),
            len(key or b"") + len(value or b""),
            reason,
            outgoing.window,
            origin or "",
        )
        if not record.window and record.table not in ("", self._rule.signal_table):
            if self._rule.changes.mode != DEAD_LETTER:
                raise SinkRefused(f"{_what(record)}: {reason}", _HINT)
            self._letters.append((key, _letter(record)))
        if record.window:
            self._counts += BucketCounts(reads=1)
        elif record.table:
            self._counts += event_counts(records.slice(row, 1))
        self._records.append(record)

    def _recall(self, first: int, records: Any) -> None:
        """Mark the records that an earlier attempt left out. `first`: the number of the first record."""
        if self._recalled is None:
            self._recalled = {record.number: record for record in self._refused.read(*self._place)}
        for number, record in self._recalled.items():
            # A change without a dead letter is judged anew: it may fit by now, or must stop the job.
            judged_before = bool(record.window) or self._rule.changes.mode == DEAD_LETTER
            is_here = 0 <= number - first < len(records)
            if judged_before and is_here and _hex(records.column("key")[number - first].as_py()) == record.key:
                self._reasons.setdefault(number, record.reason)


def _letter(record: RefusedRecord) -> bytes:
    """Return the value of a dead letter, as JSON."""
    return json.dumps(
        {
            "table": record.table,
            "topic": record.topic,
            "key": record.name,
            "position": record.origin,
            "bytes": record.bytes,
            "reason": record.reason,
        }
    ).encode()


def _what(record: RefusedRecord) -> str:
    """Return a description of the record for a message."""
    kind = "row" if record.window else "change" if record.table else "record"
    of_table = f" of {record.table}" if record.table else ""
    place = f", at {record.origin}" if record.origin else ""
    return (
        f"A {kind}{of_table} is too large for Kafka: key {record.name}, {record.bytes} bytes,"
        f" topic {record.topic}{place}"
    )


def _lengths(column: Any) -> Any:
    return pc.coalesce(pc.binary_length(column).cast(pa.int64()), pa.scalar(0, pa.int64()))


def _hex(key: bytes | None) -> str:
    return (key or b"").hex()
