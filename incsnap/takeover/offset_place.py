"""The place of a connector's offset, and of the topics' last records, in the binlog of this server."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

from pymysql.connections import Connection

from incsnap.binlog.time_search import first_time_behind
from incsnap.config.settings import Settings
from incsnap.envelope.seam import RecordPlace
from incsnap.errors import ConfigError
from incsnap.events import base_name, file_number
from incsnap.gtid import GtidSet
from incsnap.mysql import watermarks
from incsnap.mysql.session import QueryRefusedError, dial, query
from incsnap.mysql.start_place import events_of, logged_gtid
from incsnap.takeover.connector_offset import ConnectorOffset
from incsnap.takeover.record_places import ADD_PLACES, PlaceForm
from incsnap.takeover.written_records import WrittenRecords

STOP_CLEANLY = (
    "Start the connector on this server, let it send a change, stop it cleanly (PUT /connectors/NAME/stop), and try"
    " again."
)
#: The way out of a compressed transaction if the connector's offset does not tell the row. Debezium's records have
#: offsets within their transaction. Only a heartbeat has an offset behind the transaction. Debezium sends one every 48
#: seconds while the server is idle.
STOP_BEHIND_HEARTBEAT = (
    "A clean stop alone leaves the connector's offset inside its last transaction. So set heartbeat.interval.ms=1000 in"
    " the connector, wait for a minute in which no captured table is written, stop the connector cleanly (PUT"
    " /connectors/NAME/stop), and try again."
)
#: The way out of a compressed transaction if the offset of a clean stop tells the row.
STOP_AT_A_ROW = (
    "Start the connector on this server, let it send a later change, stop it cleanly (PUT /connectors/NAME/stop), and"
    " try again. That does not help if the transaction changes keys, or if the connector leaves out rows. Then set"
    " heartbeat.interval.ms=1000 in the connector, and wait for a minute in which no captured table is written before"
    " you stop it."
)
#: Types of the events with a transaction's GTID.
_GTIDS = ("Gtid", "Gtid_tagged")
_COMPRESSED = "Transaction_payload"
_ROWS = ("Write_rows", "Update_rows", "Delete_rows", "Write_rows_v1", "Update_rows_v1", "Delete_rows_v1")


def place_of(connection: Connection[Any], offset: ConnectorOffset) -> RecordPlace:
    """Return the place behind the last row of which the connector has sent a record.

    `sent_before` tells which records of that row may be missing.

    Debezium counts the events of a transaction from its BEGIN on, which is the first. `payload_of` has the place in a
    compressed transaction, whose events have one position. Debezium ignores XA START and counts no events then: the
    offset has the end of the newest event. Its rows count all the same. If the file is purged, and no transaction
    behind the offset, the place is the beginning of the oldest file: a connector continues by its GTIDs there. Raise
    ConfigError if the offset's file and position are of another server.
    """
    oldest = str(query(connection, "SHOW BINARY LOGS")[0][0])
    is_purged = base_name(oldest) == base_name(offset.file) and file_number(offset.file) < file_number(oldest)
    if is_purged and not offset.is_within_transaction:
        return RecordPlace(file_number(oldest), 0)
    events = _events(connection, offset.file, offset.pos, offset.event + 2)
    gtid = next((text for kind, _, text in events if kind in _GTIDS), None)
    if gtid is not None and logged_gtid(gtid) <= offset.gtids:
        raise _other_server(f"{offset.file}:{offset.pos}")
    _refuse_first_gtid(connection, offset)
    if offset.row and not offset.event:
        return _within_xa(connection, offset)
    counted = [each for each in events if each[0] not in _GTIDS][: offset.event + 1]
    if len(counted) == offset.event + 1 and counted[0][0] == "Query" and counted[0][2] == "BEGIN":
        return RecordPlace(file_number(offset.file), counted[offset.event][1], offset.row)
    return RecordPlace(file_number(offset.file), offset.pos)


def payload_of(connection: Connection[Any], offset: ConnectorOffset) -> RecordPlace | None:
    """Return the place of the compressed transaction that the offset is in; None for another transaction, or none.

    Raise ConfigError if the offset's file and position are of another server.
    """
    if not offset.event:
        return None
    events = [each for each in _events(connection, offset.file, offset.pos, 2) if each[0] not in _GTIDS]
    is_compressed = bool(events) and events[0][0] == _COMPRESSED
    return RecordPlace(file_number(offset.file), events[0][1]) if is_compressed else None


def seconds_of(connection: Connection[Any], settings: Settings, delivered: GtidSet) -> int:
    """Return the time since which topics are read if the offset has none, in seconds since 1970.

    After a restart Debezium knows no time until its first row. Its heartbeats have an offset all the same. The time is
    that of the first transaction behind `delivered`, or that of the server if there is none.
    """
    end = watermarks.high_watermark(connection)
    time_us = first_time_behind(partial(dial, settings.mysql), settings.mysql.server_id, delivered, end)
    return int(query(connection, "SELECT UNIX_TIMESTAMP()")[0][0]) if time_us is None else time_us // 1_000_000


def _within_xa(connection: Connection[Any], offset: ConnectorOffset) -> RecordPlace:
    """Return the place of an offset within a rows event of an XA transaction.

    The offset has the event's end, and SHOW BINLOG EVENTS begins at beginnings only. So the file is read up to there.
    Raise ConfigError if no rows event ends there.
    """
    for _, begin, kind, _, end, _ in events_of(connection, offset.file):
        if int(end) == offset.pos and kind in _ROWS:
            return RecordPlace(file_number(offset.file), int(begin), offset.row)
        if int(end) >= offset.pos:
            break
    raise _other_server(f"a rows event that ends at {offset.file}:{offset.pos}")


def _events(connection: Connection[Any], file: str, pos: int, most: int) -> list[tuple[str, int, str]]:
    """Return (type, position, text) of at most `most` events from a position on.

    Raise ConfigError if no event begins at the position.
    """
    files = {str(row[0]): int(row[1]) for row in query(connection, "SHOW BINARY LOGS")}
    if pos >= files.get(file, 0):
        if file in files and pos == files[file]:
            return []
        raise _other_server(f"{file}:{pos}")
    try:
        rows = query(connection, "SHOW BINLOG EVENTS IN %s FROM %s LIMIT %s", (file, pos, most))
    except QueryRefusedError:
        raise _other_server(f"{file}:{pos}") from None
    return [(str(kind), int(begin), str(text)) for _, begin, kind, _, _, text in rows]


def _refuse_first_gtid(connection: Connection[Any], offset: ConnectorOffset) -> None:
    """Raise ConfigError if the offset is within the first transaction with a GTID that the connector has read.

    Debezium then counts this transaction among those that are done.
    """
    if not offset.is_within_transaction or len(offset.gtids) != 1:
        return
    newest = GtidSet()
    for _, begin, kind, _, _, text in events_of(connection, offset.file):
        if int(begin) >= offset.pos:
            break
        if kind in _GTIDS:
            newest = logged_gtid(text)
    if newest and newest <= offset.gtids:
        raise ConfigError(
            f"the connector's offset counts the transaction {newest} as done and is within it, because the connector"
            " had read no other GTID",
            STOP_CLEANLY,
        )


def require_here(connection: Connection[Any], written: WrittenRecords, forms: Mapping[str, PlaceForm]) -> None:
    """Raise ConfigError if no rows event of this server begins at the place of a last record.

    `forms`: form of the records, by topic. The place of a snapshot's record is no event's, and not every form tells
    such a record.
    """
    last = [written.last] if written.last is not None else []
    for (file, pos), record in {(each.file, each.place.pos): each for each in (*written.keyed, *last)}.items():
        events = _events(connection, file, pos, 1)
        if not events or events[0][0] not in (*_ROWS, _COMPRESSED):
            where = f"offset {record.offset} of partition {record.partition} of {record.topic}"
            raise _other_server(f"{file}:{pos}, the place of {where}", _perhaps(record.topic, forms))


def _perhaps(topic: str, forms: Mapping[str, PlaceForm]) -> str:
    """Return what else the place of a topic's record may be that is none of the server's; "" for nothing."""
    form = forms[topic]
    if form.tells_reads:
        return ""
    repair = ADD_PLACES if form.op_tells_reads else "add.headers=source.snapshot shows them"
    return f", or {topic} has rows of a snapshot, which do not show it; {repair}"


def refuse_older_files(written: WrittenRecords, least: RecordPlace) -> None:
    """Raise ConfigError if the topics have records behind the offset in files before the oldest one.

    These were files of another server.
    """
    for number, name in sorted(written.files.items()):
        if 0 <= number < least.file:
            raise _other_server(name)


def refuse_compressed(connection: Connection[Any], written: WrittenRecords, way_out: str) -> None:
    """Raise ConfigError if a partition ends within a compressed transaction. `way_out`: what to do then.

    All events of the transaction have one place, and each counts its rows from 0. So the place of a record does not
    tell what precedes it.
    """
    for (file, pos), record in {(each.file, each.place.pos): each for each in written.keyed}.items():
        events = _events(connection, file, pos, 1)
        if events and events[0][0] == _COMPRESSED:
            raise ConfigError(
                f"the last record of partition {record.partition} of {record.topic} is of a compressed transaction,"
                " in which records of several events have one place",
                way_out,
            )


def refuse_keyless(
    connection: Connection[Any], written: WrittenRecords, forms: Mapping[str, PlaceForm], way_out: str
) -> None:
    """Raise ConfigError if a record without a key is of a compressed transaction, or of no rows event of this server.

    Rows without a key of several events of a compressed transaction have one place. `forms`: as in `require_here`.
    `way_out`: as in `refuse_compressed`.
    """
    topics = {(file, pos): each.topic for each in written.keyless for file, pos, _ in each.places}
    for number in sorted({file for file, _ in topics}):
        name, missing = written.files.get(number, ""), {pos for file, pos in topics if file == number}
        for pos, kind in _rows_events(connection, name, max(missing)):
            if kind == _COMPRESSED and pos in missing:
                raise ConfigError(
                    f"{topics[number, pos]} has records without a key of the compressed transaction at {name}:{pos}, in"
                    " which records of several events have one place",
                    way_out,
                )
            missing.discard(pos)
        if missing:
            topic = topics[number, min(missing)]
            what = f"{name}:{min(missing)}, the place of a record without a key of {topic}"
            raise _other_server(what, _perhaps(topic, forms))


def _rows_events(connection: Connection[Any], file: str, last: int) -> Iterator[tuple[int, str]]:
    """Yield (position, type) of the rows events and compressed transactions of a file, up to the position `last`.

    Raise ConfigError if the server does not have the file.
    """
    try:
        for _, begin, kind, *_ in events_of(connection, file):
            if int(begin) > last:
                return
            if kind in (*_ROWS, _COMPRESSED):
                yield int(begin), str(kind)
    except QueryRefusedError:
        raise _other_server(file) from None


def _other_server(what: str, perhaps: str = "") -> ConfigError:
    return ConfigError(
        f"the binlog of this server does not have {what}: the connector read another server{perhaps}", STOP_CLEANLY
    )
