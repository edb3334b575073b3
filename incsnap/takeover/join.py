"""The place at which a job continues a connector's topics: found, checked, and written for `incsnap run`."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from datetime import date, datetime, time
from functools import partial
from typing import Any

from pymysql.connections import Connection

from incsnap.binlog.time_search import first_time_behind
from incsnap.checkpoint.files import Files
from incsnap.checkpoint.first_offset import kept_first_offset
from incsnap.checkpoint.location import own_part
from incsnap.checkpoint.taken_over import TakenOver, write_taken_over
from incsnap.config.settings import Settings
from incsnap.config.topics import schema_topic, topics_of, transaction_topic
from incsnap.envelope.seam import RecordPlace, Seam
from incsnap.errors import ConfigError, IncsnapError, shorten
from incsnap.events import base_name, file_number
from incsnap.gtid import GtidSet
from incsnap.kafka.client_settings import ClientSettings
from incsnap.kafka.topic_ends import ends_by_topic
from incsnap.mysql import catalog, watermarks
from incsnap.mysql.session import QueryRefusedError, connect, dial, query
from incsnap.mysql.start_place import events_of, require_sendable
from incsnap.mysql.xa import prepared_xids
from incsnap.planner.chosen_rows import ChosenRowsOf
from incsnap.planner.table_ordering import CatalogEntry, TableRefused, check_types
from incsnap.snapshot.commands import ChosenRows, DataCollection
from incsnap.snapshot.context import Request
from incsnap.tables import TableId
from incsnap.takeover.connector_offset import ConnectorOffset, RunningSnapshot
from incsnap.takeover.gtid_sources import ALL_SOURCES, GtidSources
from incsnap.takeover.obeyed_signals import obeyed_signals
from incsnap.takeover.partitioners import refuse_partitioner
from incsnap.takeover.record_places import ADD_PLACES, PlaceForm
from incsnap.takeover.written_records import (
    WrittenRecords,
    sent_statements,
    sent_transactions,
    truncations_between,
    values_since,
    written_records,
)
from incsnap.tasks.formats import format_of
from incsnap.verify.record_reading import for_table

log = logging.getLogger(__name__)

_STOP_CLEANLY = (
    "Start the connector on this server, let it send a change, stop it cleanly (PUT /connectors/NAME/stop), and try"
    " again."
)
_PURGED = (
    "A connector could not continue there either. Start a job with snapshot.mode=initial and without a take-over: it"
    " reads the tables."
)
#: Types of the events with a transaction's GTID.
_GTIDS = ("Gtid", "Gtid_tagged")
_COMPRESSED = "Transaction_payload"
_ROWS = ("Write_rows", "Update_rows", "Delete_rows", "Write_rows_v1", "Update_rows_v1", "Delete_rows_v1")


@dataclass(frozen=True, slots=True)
class Joined:
    """The place at which a job continues, and what a person should know about it."""

    place: TakenOver  #: the place
    lines: tuple[str, ...]  #: what was found and what follows, in sentences
    warnings: tuple[str, ...] = field(default=())  #: what cannot be continued exactly


def join(
    settings: Settings, offset: ConnectorOffset, sources: GtidSources = ALL_SOURCES, partitioner: str = ""
) -> Joined:
    """Return where a job with `settings` continues the topics of the connector with this offset.

    `sources`: the servers whose transactions the connector takes. `partitioner`: the setting by which its producer
    chooses partitions otherwise than by Java's default; "" for none. Raise ConfigError if the job cannot continue
    there. Raise ServerUnreachable if MySQL or Kafka does not answer.
    """
    client = ClientSettings(settings.kafka.bootstrap_servers, settings.kafka.producer)
    lines, warnings = [_sentence_of(offset)], list[str]()
    with closing(connect(settings.mysql)) as connection:
        sets = watermarks.executed(connection), watermarks.purged(connection)
        delivered = sources.completed(offset.gtids, *sets)
        if delivered != offset.gtids:
            lines.append(f"The connector does not send {delivered - offset.gtids}: these transactions count as sent.")
        require_sendable(connection, delivered, "the connector's offset", _PURGED)
        least = _least(connection, offset)
        if xids := prepared_xids(connection):
            warnings.append(
                f"XA transactions are prepared: {shorten(', '.join(xids))}. Debezium sends rows at XA PREPARE. After an"
                " XA ROLLBACK such rows stay in the topics, and the job's log says so"
            )
        topics = _topics(connection, settings)
        warnings += topics.warnings
        if partitioner:
            warnings.append(
                f"the connector's producer has {partitioner}: the job chooses partitions by the key alone (murmur2), so"
                " later records of a key may be in another partition than earlier ones"
            )
        # Before the topics are read: what comes later is seen at the job's first start.
        tables = catalog.tables(connection, settings.tables)
        ends = ends_by_topic(client, (topic for table in tables for topic in topics_of(settings, table)))
        seconds = offset.seconds or _seconds_of(connection, settings, delivered)
        written = written_records(client, topics.forms, seconds, least, delivered)
        logged = watermarks.high_watermark(connection)
        seam = Seam(watermarks.server_uuid(connection), least, tuple(written.ends), tuple(written.keyless))
        if least.file > file_number(offset.file):
            lines.append(f"{offset.file} is purged. The server still has all transactions behind the offset.")
            _refuse_older_files(written, least)
        if written.last is not None:
            name = written.files.get(seam.last.file, "")
            _require_here(connection, name, seam.last, written.last)
            _refuse_compressed(connection, written)
            refuse_partitioner(partitioner, written, ends, _STOP_CLEANLY)
            topic, partition, at = written.last
            lines.append(
                f"The topics go on up to {name}:{seam.last.pos}, row {seam.last.row} (offset {at} of partition"
                f" {partition} of {topic}). What they have is not sent again."
            )
        else:
            lines.append("The topics have no change behind the offset.")
        warnings += [
            f"{topic}: the connector had begun to send records of partition {partition} again and has ended in between:"
            f" what follows the record at offset {at} comes again, so that the last record of each key is right"
            for topic, partition, at in written.cut
        ]
        warnings += [
            f"{topic}: {count} records that the connector has sent come twice, because they do not show the row of"
            f" their event; {ADD_PLACES}"
            for topic, count in written.unplaced.items()
        ]
    seam = replace(seam, truncations=truncations_between(written.truncations, least, logged))
    seam = _with_control_topics(settings, client, seam, seconds, logged)
    requests: tuple[Request, ...] = ()
    if offset.running is not None:
        captured = {str(table): table for table in tables}
        requests, sentences = _requests(settings, offset.running, captured, topics.keys)
        lines += sentences
    # Debezium sends changes when its first snapshot is done. The offset may be of a moment before.
    reads_tables = offset.snapshot == "initial" and written.last is None
    if reads_tables:
        lines.append("The connector's first snapshot was not finished: the job reads all tables anew.")
    elif offset.snapshot == "initial":
        lines.append("The connector's first snapshot was finished, because the topics have changes behind it.")
    elif offset.snapshot:
        warnings.append(
            f"a snapshot of the kind {offset.snapshot} was under way, and the offset does not name its tables: signal"
            " execute-snapshot for them when the job runs"
        )
    signals_at = obeyed_signals(settings)
    if signals_at is not None:
        lines.append(f"Signals of {settings.signals.kafka_topic} are obeyed from offset {signals_at} on.")
    place = TakenOver(settings.topic_prefix, str(delivered), seam, reads_tables, signals_at, requests, ends)
    return Joined(place, tuple(lines), tuple(warnings))


def require_new_checkpoint(settings: Settings) -> None:
    """Raise ConfigError if the checkpoint has a job already."""
    files = Files(own_part(settings.checkpoint_location))
    if kept_first_offset(files) is not None:
        raise ConfigError(
            f"{settings.checkpoint_location} is the checkpoint of a job that has begun",
            "Take over with a new checkpoint.location.",
        )


def write(settings: Settings, joined: Joined) -> None:
    """Write the place into the checkpoint. `incsnap run` begins there."""
    write_taken_over(Files(own_part(settings.checkpoint_location)), joined.place)


def _sentence_of(offset: ConnectorOffset) -> str:
    within = ""
    if offset.is_within_transaction:
        within = f", and of the next transaction {offset.event} events and {offset.row} rows"
    return f"The connector has sent the transactions {offset.gtids}{within} ({offset.file}:{offset.pos})."


def _least(connection: Connection[Any], offset: ConnectorOffset) -> RecordPlace:
    """Return the place before which the connector has sent everything.

    Debezium counts the events of a transaction from its BEGIN on, which is the first. The events of a compressed
    transaction have one position. There the place is the transaction's beginning: the topics say what they have behind
    it. Debezium ignores XA START and counts no events then: the offset has the end of the newest event. Its rows count
    all the same. If the file is purged, and no transaction behind the offset, the place is the beginning of the oldest
    file: a connector continues by its GTIDs there. Raise ConfigError if the offset's file and position are of another
    server.
    """
    oldest = str(query(connection, "SHOW BINARY LOGS")[0][0])
    is_purged = base_name(oldest) == base_name(offset.file) and file_number(offset.file) < file_number(oldest)
    if is_purged and not offset.is_within_transaction:
        return RecordPlace(file_number(oldest), 0)
    events = _events(connection, offset.file, offset.pos, offset.event + 2)
    gtid = next((text for kind, _, text in events if kind in _GTIDS), None)
    if gtid is not None and GtidSet.parse(gtid.partition("'")[2].rpartition("'")[0]) <= offset.gtids:
        raise _other_server(f"{offset.file}:{offset.pos}")
    if offset.row and not offset.event:
        return _within_xa(connection, offset)
    counted = [each for each in events if each[0] not in _GTIDS][: offset.event + 1]
    if len(counted) == offset.event + 1 and counted[0][0] == "Query" and counted[0][2] == "BEGIN":
        return RecordPlace(file_number(offset.file), counted[offset.event][1], offset.row)
    return RecordPlace(file_number(offset.file), offset.pos)


def _seconds_of(connection: Connection[Any], settings: Settings, delivered: GtidSet) -> int:
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


def _require_here(connection: Connection[Any], file: str, place: RecordPlace, last: tuple[str, int, int]) -> None:
    """Raise ConfigError if no rows event of this server begins at the place of the last record."""
    events = _events(connection, file, place.pos, 1)
    kind = events[0][0] if events else "none"
    topic, partition, at = last
    if kind not in (*_ROWS, _COMPRESSED):
        raise _other_server(f"{file}:{place.pos}, the place of offset {at} of partition {partition} of {topic}")


def _refuse_older_files(written: WrittenRecords, least: RecordPlace) -> None:
    """Raise ConfigError if the topics have records behind the offset in files before the oldest one.

    These were files of another server.
    """
    for number, name in sorted(written.files.items()):
        if 0 <= number < least.file:
            raise _other_server(name)


def _refuse_compressed(connection: Connection[Any], written: WrittenRecords) -> None:
    """Raise ConfigError if a partition ends within a compressed transaction.

    All its events have one place, and each counts its rows from 0. So the place of a record does not tell what precedes
    it.
    """
    for file, pos in sorted({(each.end.file, each.end.pos) for each in written.ends}):
        events = _events(connection, written.files.get(file, ""), pos, 1)
        if events and events[0][0] == _COMPRESSED:
            ends = [each for each in written.ends if (each.end.file, each.end.pos) == (file, pos)]
            raise ConfigError(
                f"the last record of partition {ends[0].partition} of {ends[0].topic} is of a compressed transaction,"
                " in which records of several events have one place",
                _STOP_CLEANLY,
            )


def _other_server(what: str) -> ConfigError:
    return ConfigError(
        f"the binlog of this server does not have {what}: the connector read another server", _STOP_CLEANLY
    )


@dataclass(frozen=True, slots=True)
class _Topics:
    """The topics of captured tables, as the settings describe them."""

    forms: dict[str, PlaceForm]  #: form of the records, by topic
    keys: dict[str, tuple[str, ...]]  #: names of the columns of each table's key
    warnings: tuple[str, ...]  #: topics that cannot be read


def _topics(connection: Connection[Any], settings: Settings) -> _Topics:
    """Return the topics of captured tables."""
    forms, keys, warnings = dict[str, PlaceForm](), dict[str, tuple[str, ...]](), list[str]()
    for table, shape in catalog.shapes_of(connection, catalog.tables(connection, settings.tables)).items():
        twice = f"{table}: what the connector has sent behind its offset comes twice"
        try:
            format_ = format_of(for_table(settings), shape)
            keys[str(table)] = tuple(field.column.name for field in format_.view.key)
            form = PlaceForm.of(format_, settings.formats)
        except IncsnapError as error:
            warnings.append(f"{twice}: {error.message}")
            continue
        for topic in topics_of(settings, table):
            if forms.setdefault(topic, form) != form:
                warnings.append(f"{twice}: {topic} also has records of another form")
    return _Topics(forms, keys, tuple(warnings))


def _with_control_topics(
    settings: Settings, client: ClientSettings, seam: Seam, seconds: int, logged: tuple[str, int]
) -> Seam:
    """Return the seam with the ends of the topics of schema changes and transactions.

    `seconds`: time since which they are read. `logged`: the binlog's end.
    """
    statements, begun, ended = None, GtidSet(), GtidSet()
    kind, registry = settings.formats.value.kind, settings.formats.value_registry
    values_of = partial(values_since, client, seconds=seconds, avro=registry if kind == "avro" else None)
    if kind in ("json", "avro"):
        if (topic := schema_topic(settings)) is not None:
            statements = sent_statements(values_of(topic=topic.name), logged)
        if (topic := transaction_topic(settings)) is not None:
            begun, ended = sent_transactions(values_of(topic=topic.name))
    return replace(seam, statements=statements, begun=str(begun), ended=str(ended))


def _requests(
    settings: Settings, running: RunningSnapshot, captured: Mapping[str, TableId], keys: Mapping[str, Sequence[str]]
) -> tuple[tuple[Request, ...], list[str]]:
    """Return what is left of an incremental snapshot, and sentences about it.

    `captured`: captured tables by name. `keys`: names of the columns of each table's key.
    """
    lines: list[str] = []
    requests: list[Request] = []
    for number, waiting in enumerate(running.tables):
        table = captured.get(waiting.name)
        if table is None:
            lines.append(f"{waiting.name} was to be read and is not captured: it is left out.")
            continue
        columns = (waiting.surrogate,) if waiting.surrogate else keys.get(waiting.name, ())
        chosen = _rest(running, columns) if number == 0 else None
        if chosen is not None and not _can_be_read(settings, table, waiting.surrogate, chosen):
            chosen = None
        requests.append(Request(running.signal, DataCollection(table, waiting.condition, waiting.surrogate, chosen)))
        where = "begins at its first row" if chosen is None else f"goes on behind the key {chosen.first}"
        lines.append(f"The snapshot of {waiting.name} (signal {running.signal}) {where}.")
    return tuple(requests), lines


def _can_be_read(settings: Settings, table: TableId, surrogate: str, chosen: ChosenRows) -> bool:
    """Whether the job can read a range of the table: the order of its rows, or an index, begins with these columns."""
    with closing(connect(settings.mysql)) as connection:
        shape = catalog.shape_of(connection, table)
        collations, indexes = catalog.collations_of(connection, [table]), catalog.indexes_of(connection, [table])
    if shape is None:
        return False
    entry = CatalogEntry(shape, collations.get(table, {}), indexes.get(table, ()))
    rows = ChosenRowsOf(settings, Files(own_part(settings.checkpoint_location)))
    try:
        rows.range(entry, check_types(entry, settings.columns), chosen, surrogate)
    except (TableRefused, IncsnapError):
        return False
    return True


def _rest(running: RunningSnapshot, columns: Sequence[str]) -> ChosenRows | None:
    """Return the rows of the first table that are not read; None if the table is to be read from its beginning.

    The row of the last key is read again, because a range contains its ends.
    """
    if running.last_key is None or running.maximum_key is None:
        return None
    try:
        first, last = (
            json.dumps(dict(zip(columns, map(_limit, key), strict=True)), ensure_ascii=False)
            for key in (running.last_key, running.maximum_key)
        )
    except (TypeError, ValueError):
        return None
    return ChosenRows(first=first, last=last)


def _limit(value: Any) -> int | str:
    """Return a value of a key in a form that a range takes. Raise TypeError if it has none."""
    if isinstance(value, int | str) and not isinstance(value, bool):
        return value
    if isinstance(value, datetime) and value.tzinfo is None:
        return value.isoformat(" ")
    if isinstance(value, date | time) and not isinstance(value, datetime):
        return value.isoformat()
    raise TypeError(f"a value of the type {type(value).__name__}")
