"""The rules by which a job closes a gap: which keys it sends again after the binlog that it needed is gone.

All these rules are in this file, as small functions. They know rows and records as bytes, and offsets of partitions.
They know no SQL, no Kafka and no clock.

**The gap.** The server cannot send what follows the job's offset. A new job begins behind the transactions *G* that the
server has executed, and streams all later ones. The topics show the rows as the old job has left them. What was changed
in between is in no binlog. The records of the old job carry positions of another history: a restored backup gives GTIDs
to other transactions, and positions of two servers do not compare. So **no rule looks at a position or a GTID of a
record**.

**A comparison** has four steps, in this order (`differing`).

1. **Seam.** Note the end of each partition. All producers of earlier starts are fenced by then. So every record at or
   behind the seam is of the new job.
2. **SELECT.** Read the rows of the table, on a server that has executed *G*.
3. **Topic.** Read the topic up to an end that is noted now. Take the last record of each key in each partition.
4. **Repair.** A key *k* is sent again, or deleted, if `needs_repair` says so.

**Why this is enough.** If *k* has an event behind *G*, the stream sends this event and all later ones. So the topic
comes to the row of *k*, whatever is done here. Otherwise the row that the SELECT has seen is the row of *k* at *G*, and
it stays. If the last record shows this row, the topic holds it. If not, *k* is repaired.

**Why a record behind the seam is enough.** It is an event behind *G*, and the sentence above holds. Or it is a row that
a window has sent: the window saw the row at *G* or later, and all later events follow it. So *k* need not be compared.

**Why no key goes back in time.** A repair is a window over a list of keys (`docs/adr/0022-chosen-rows.md`). It reads
the rows anew, and an event that the window may not have seen discards them. So a key that is repaired without need
costs a record, and is never wrong.

`tests/property/test_gap.py` has a model of server, job and topic. Its mutants show that each rule is needed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from incsnap.verify.proof import LastRecord, TopicKey, is_same

#: Offset behind the last record of each partition, by topic and number of the partition.
Seam = Mapping[tuple[str, int], int]


class GapSides(Protocol):
    """The two sides of a comparison, as `differing` asks them."""

    def seam(self) -> Seam:
        """Return the ends of the topics' partitions."""

    def rows(self) -> Mapping[TopicKey, bytes]:
        """Return the rows of the tables. Every SELECT begins after this call, and sees the job's beginning."""

    def records(self) -> Mapping[TopicKey, Sequence[LastRecord]]:
        """Return the last record of each key in each partition that has one."""


def differing(sides: GapSides) -> set[TopicKey]:
    """Return the keys that are sent again or deleted."""
    seam = sides.seam()
    rows = sides.rows()
    records = sides.records()
    return {key for key in {*rows, *records} if needs_repair(key, rows.get(key), records.get(key, ()), seam)}


def needs_repair(key: TopicKey, row: bytes | None, records: Sequence[LastRecord], seam: Seam) -> bool:
    """Return True if the key is sent again: the SELECT has read `row`, and `records` has one record of each partition.

    A topic that got more partitions may have records of a key in several. They must all show the row, because nothing
    tells which one a consumer has read last.
    """
    if any(record.offset >= seam.get((key[0], record.partition), 0) for record in records):
        return False
    return not all(is_same(row, record) for record in records or (None,))
