"""The part of a compressed transaction that a connector has sent before it was stopped.

All records of such a transaction have one position, and each event counts its rows from 0. So a record does not tell
what precedes it, but the connector's offset does. Behind a clean stop the topics have exactly what the offset says.
Numbers prove that: Kafka Connect writes an offset when all records before it are in the topics. So topics that have as
many records as the offset says have these records.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial

from incsnap.binlog.compressed_search import InnerEvent, inner_events
from incsnap.binlog.protocol.control_events import ROWS, TABLE_MAP
from incsnap.binlog.protocol.row_images import DELETE
from incsnap.binlog.protocol.table_map import TABLE_ID_BYTES, TableMap
from incsnap.binlog.row_counts import map_of, rows_of_event
from incsnap.config.settings import Settings
from incsnap.envelope.seam import BegunTransaction, RecordPlace
from incsnap.gtid import GtidSet
from incsnap.mysql.session import dial
from incsnap.takeover.connector_offset import ConnectorOffset
from incsnap.takeover.written_records import WrittenRecords


@dataclass(frozen=True, slots=True)
class SentPart:
    """The part of a compressed transaction before a connector's offset."""

    begun: BegunTransaction  #: where the job goes on
    rows: int  #: insertions and updates of captured tables in the part
    deletions: int  #: deletions of captured tables in the part

    def is_all(self, written: WrittenRecords, least: RecordPlace) -> bool:
        """Whether the topics have this part and nothing else from the transaction's beginning `least` on.

        The tombstone of its last deletion has the offset of the deletion, so it may be missing.
        """
        last = written.last
        is_within = last is None or (last.place.file, last.place.pos) == (least.file, least.pos)
        counts = written.of_offset.rows, written.of_offset.deletions
        is_whole = not written.removed and not written.lacks_tombstone
        return is_within and is_whole and counts == (self.rows, self.deletions)


def sent_part(settings: Settings, offset: ConnectorOffset, delivered: GtidSet) -> SentPart | None:
    """Return the part that a connector with `settings` has sent of the transaction in which its offset is.

    `delivered`: the transactions before. Return None if the transaction is not compressed. Raise ServerUnreachable if
    MySQL does not answer.
    """
    return part_of(settings, offset, inner_events(partial(dial, settings.mysql), settings.mysql.server_id, delivered))


def part_of(settings: Settings, offset: ConnectorOffset, events: Iterable[InnerEvent]) -> SentPart | None:
    """Return the part of a transaction before `offset`; None if there are no events. `events`: BEGIN is the first.

    Debezium counts all events, and the rows of the next one.
    """
    gtid, done, sent = "", 0, 0
    rows = deletions = 0
    maps: dict[bytes, TableMap] = {}
    for number, event in enumerate(events):
        gtid = event.gtid
        if number > offset.event:
            break
        id_ = event.body[:TABLE_ID_BYTES]
        if event.kind == TABLE_MAP:
            maps[id_] = map_of(event.body[TABLE_ID_BYTES:])
        elif event.kind in ROWS and settings.tables.included(maps[id_].shape.id):
            # An event that cannot be read counts as one row. The numbers then differ from those of the topics.
            count = max(rows_of_event(event.kind, event.body, maps[id_]), 1)
            sent = count if number < offset.event else min(offset.row, count)
            done += sent == count
            if event.kind in DELETE:
                deletions += sent
            else:
                rows += sent
            sent = 0 if sent == count else sent
    return SentPart(BegunTransaction(gtid, done, sent), rows, deletions) if gtid else None
