"""The place at which a job continues a connector's topics: found, checked, and written for `incsnap run`."""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass, field, replace

from incsnap.checkpoint.files import Files
from incsnap.checkpoint.first_offset import kept_first_offset
from incsnap.checkpoint.location import own_part
from incsnap.checkpoint.taken_over import TakenOver, write_taken_over
from incsnap.config.settings import Settings
from incsnap.config.topics import topics_of
from incsnap.envelope.seam import RecordPlace, Seam
from incsnap.errors import ConfigError
from incsnap.events import file_number
from incsnap.kafka.client_settings import ClientSettings
from incsnap.kafka.topic_ends import ends_by_topic
from incsnap.mysql import catalog, watermarks
from incsnap.mysql.session import connect
from incsnap.mysql.start_place import require_sendable
from incsnap.planner.choices import choices_digest
from incsnap.snapshot.context import Request
from incsnap.takeover.altered_tables import captured_statements
from incsnap.takeover.compressed_part import sent_part
from incsnap.takeover.connector_offset import ConnectorOffset
from incsnap.takeover.continued_snapshot import requests_of
from incsnap.takeover.control_topics import with_control_topics
from incsnap.takeover.gtid_sources import ALL_SOURCES, GtidSources
from incsnap.takeover.joined_topics import joined_topics
from incsnap.takeover.obeyed_signals import obeyed_again, obeyed_signals, unwritten_signals
from incsnap.takeover.offset_place import (
    STOP_AT_A_ROW,
    STOP_BEHIND_HEARTBEAT,
    STOP_CLEANLY,
    payload_of,
    place_of,
    refuse_compressed,
    refuse_keyless,
    refuse_older_files,
    require_here,
    seconds_of,
)
from incsnap.takeover.partitioners import refuse_partitioner
from incsnap.takeover.record_places import ADD_PLACES
from incsnap.takeover.unnamed_rows import refuse_redefined
from incsnap.takeover.written_records import WrittenRecords, truncations_between, written_records
from incsnap.takeover.xa_warnings import xa_warnings

_PURGED = (
    "A connector could not continue there either. Start a job with snapshot.mode=initial and without a take-over: it"
    " reads the tables."
)


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
        payload = payload_of(connection, offset)
        least = place_of(connection, offset) if payload is None else payload
        shapes = catalog.shapes_of(connection, catalog.tables(connection, settings.tables))
        # The statements are asked for behind the shapes: what is altered in between is among them too.
        changes = captured_statements(settings, connection, delivered)
        refuse_redefined(connection, settings, changes)
        warnings += xa_warnings(connection)
        topics = joined_topics(settings, shapes, changes)
        warnings += topics.warnings
        if partitioner:
            warnings.append(
                f"the connector's producer has {partitioner}: the job chooses partitions by the key alone (murmur2), so"
                " later records of a key may be in another partition than earlier ones"
            )
        # Before the topics are read: what comes later is seen at the job's first start.
        present = {topic for table in shapes for topic in topics_of(settings, table)}
        ends = ends_by_topic(client, present | topics.forms.keys())
        seconds = offset.seconds or seconds_of(connection, settings, delivered)
        at = RecordPlace(file_number(offset.file), offset.pos)
        written = written_records(client, topics.forms, topics.key_forms, seconds, least, delivered, at)
        logged = watermarks.high_watermark(connection)
        part, begins_in = None, None
        if payload is not None and not settings.transaction_metadata:
            part = sent_part(settings, offset, delivered)
        if part is not None:
            is_compressed = f"The transaction {part.begun.gtid} is compressed."
            if part.is_all(written, least):
                begins_in, written = part.begun, WrittenRecords(least, truncations=written.truncations)
                lines.append(f"{is_compressed} The topics have its part before the offset.")
            elif written.last is None:
                # Retention has removed the part, or transforms leave it out.
                begins_in = part.begun
                lines.append(f"{is_compressed} The topics have no record of it.")
        uuid = watermarks.server_uuid(connection)
        seam = Seam(uuid, written.least, tuple(written.ends), tuple(written.keyless), begins_in=begins_in)
        if least.file > file_number(offset.file):
            lines.append(f"{offset.file} is purged. The server still has all transactions behind the offset.")
            refuse_older_files(written, least)
        if written.last is not None:
            require_here(connection, written, topics.forms)
            way_out = STOP_BEHIND_HEARTBEAT if settings.transaction_metadata else STOP_AT_A_ROW
            refuse_compressed(connection, written, way_out)
            refuse_keyless(connection, written, topics.forms, way_out)
            refuse_partitioner(partitioner, written, ends, STOP_CLEANLY)
    if begins_in is None:
        lines.append(_sentence_of_topics(written))
    warnings += _sent_again(written)
    seam = replace(seam, truncations=truncations_between(written.truncations, seam.least, logged))
    seam, of_control = with_control_topics(settings, client, seam, seconds, delivered, logged)
    warnings += of_control
    requests: tuple[Request, ...] = ()
    if offset.running is not None:
        captured = {str(table): table for table in shapes}
        requests, sentences = requests_of(settings, offset.running, captured, topics.keys)
        lines += sentences
    # Debezium sends changes when its first snapshot is done. The offset may be of a moment before.
    reads_tables = offset.snapshot == "initial" and written.last is None
    if reads_tables and not settings.snapshot.reads_at_start:
        warnings.append(
            f"the connector's first snapshot was not finished, and snapshot.mode={settings.snapshot.mode} reads no"
            " table: signal execute-snapshot when the job runs, or set snapshot.mode=initial before its first start"
        )
    elif reads_tables:
        lines.append("The connector's first snapshot was not finished: the job reads all tables anew.")
    elif offset.snapshot == "initial":
        lines.append("The connector's first snapshot was finished, because the topics have changes behind it.")
    elif offset.snapshot:
        warnings.append(
            f"a snapshot of the kind {offset.snapshot} was under way, and the offset does not name its tables: signal"
            " execute-snapshot for them when the job runs"
        )
    signals_at = obeyed_signals(settings, offset.signal)
    if signals_at is not None:
        lines.append(f"Signals of {settings.signals.kafka_topic} are obeyed from offset {signals_at} on.")
        if unwritten := unwritten_signals(settings, offset, signals_at):
            warnings.append(unwritten)
    elif again := obeyed_again(settings):
        warnings.append(again)
    choices = choices_digest(settings) if begins_in is not None else ""
    place = TakenOver(settings.topic_prefix, str(delivered), seam, reads_tables, signals_at, requests, ends, choices)
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


def _sentence_of_topics(written: WrittenRecords) -> str:
    """Return a sentence about the last record that the topics have behind the offset."""
    if written.last is None:
        return "The topics have no change behind the offset."
    last, place = written.last, written.last.place
    return (
        f"The topics go on up to {last.file}:{place.pos}, row {place.row} (offset {last.offset} of partition"
        f" {last.partition} of {last.topic}). What they have is not sent again."
    )


def _sent_again(written: WrittenRecords) -> list[str]:
    """Return a warning for each partition and each topic with records that come twice."""
    cut = [
        f"{topic}: the connector had begun to send records of partition {partition} again and has ended in between:"
        f" what follows the record at offset {at} comes again, so that the last record of each key is right"
        for topic, partition, at in written.cut
    ]
    unplaced = [
        f"{topic}: {count} records that the connector has sent come twice, because they do not show the row of"
        f" their event; {ADD_PLACES}"
        for topic, count in written.unplaced.items()
    ]
    removed = [
        f"{topic}: Kafka has removed records (retention). Those that the connector sent behind its offset come twice"
        for topic in sorted(set(written.removed))
    ]
    return cut + unplaced + removed
