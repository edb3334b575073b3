"""The ends of a connector's topics of schema changes and of transactions."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import pyarrow as pa

from incsnap.config.settings import Settings
from incsnap.config.topics import schema_topic, transaction_topic
from incsnap.envelope.seam import ROW_STEP, RecordPlace, Seam
from incsnap.errors import ConfigError, shorten
from incsnap.events import file_number
from incsnap.gtid import GtidSet
from incsnap.kafka.client_settings import ClientSettings
from incsnap.kafka.topics import admin_client, partition_counts
from incsnap.takeover.partition_parts import ranges_since
from incsnap.takeover.written_records import is_among, is_in_binlog
from incsnap.verify.avro_reading import AvroSchemas, as_json, with_ids
from incsnap.verify.topic_side import PartitionPart, messages_of


def sent_statements(values: Iterable[Mapping[str, Any]], upto: tuple[str, int]) -> RecordPlace | None:
    """Return the place behind the last statement of a topic of schema changes; None if it has none.

    `values`: values of its records. `upto`: the binlog's end. Statements of an earlier server do not count.
    """
    given = [_place_of(value) for value in values]
    places = [RecordPlace(file_number(each[0]), each[1]) for each in given if each and is_in_binlog(each, upto)]
    return None if not places else RecordPlace(max(places).file, max(places).pos, 0, ROW_STEP + 1)


def _place_of(value: Mapping[str, Any]) -> tuple[str, int] | None:
    """Return the file and the position of a schema change; None for one of a snapshot, or without them."""
    source = value.get("source") or {}
    is_streamed = source.get("file") and str(source.get("snapshot") or "false") == "false"
    return (str(source["file"]), int(source["pos"])) if is_streamed else None


def _is_early_statement(value: Mapping[str, Any], *, least: RecordPlace, delivered: GtidSet) -> bool:
    """Whether a schema change is before the place `least`. One with a GTID is if it is among `delivered`."""
    place, gtid = _place_of(value), str((value.get("source") or {}).get("gtid") or "")
    if place is None or gtid:
        return place is None or is_among(gtid, delivered)
    return RecordPlace(file_number(place[0]), place[1]) < least


def _is_early_transaction(value: Mapping[str, Any], *, delivered: GtidSet) -> bool:
    return is_among(str(value.get("id")), delivered)


def with_control_topics(
    settings: Settings, client: ClientSettings, seam: Seam, seconds: int, delivered: GtidSet, logged: tuple[str, int]
) -> tuple[Seam, list[str]]:
    """Return the seam with the ends of the topics of schema changes and transactions, and warnings of what comes twice.

    `seconds`: time since which they are read. `delivered`: transactions before the offset. `logged`: the binlog's end.
    Raise what `values_since` raises.
    """
    choice, statements, begun, ended = settings.formats.value, None, GtidSet(), GtidSet()
    of_statements, of_transactions = schema_topic(settings), transaction_topic(settings)
    if choice.kind not in ("json", "avro"):
        return seam, [
            f"{topic.name}: {what} that the connector has sent behind its offset come twice, because their format"
            f" ({choice.kind}) is not read"
            for topic, what in ((of_statements, "schema changes"), (of_transactions, "transactions"))
            if topic is not None
        ]
    warnings = []
    avro = AvroSchemas.of(settings.formats.value_registry, choice.frame) if choice.kind == "avro" else None
    if of_statements is not None:
        is_early = partial(_is_early_statement, least=seam.least, delivered=delivered)
        changes = list(values_since(client, of_statements.name, seconds, avro, "ddl", is_early))
        statements = sent_statements((each for each in changes if not is_early(each)), logged)
        elsewhere = [
            each
            for each in changes
            if (place := _place_of(each)) and not is_in_binlog(place, logged) and not is_early(each)
        ]
        if elsewhere:
            warnings.append(
                f"{of_statements.name}: schema changes that the connector has read from another server behind its"
                f" offset come twice, such as {shorten(str(elsewhere[0].get('ddl')))}"
            )
    if of_transactions is not None:
        is_early = partial(_is_early_transaction, delivered=delivered)
        begun, ended = sent_transactions(values_since(client, of_transactions.name, seconds, avro, "status", is_early))
    return replace(seam, statements=statements, begun=str(begun), ended=str(ended)), warnings


def sent_transactions(values: Iterable[Mapping[str, Any]]) -> tuple[GtidSet, GtidSet]:
    """Return the transactions whose BEGIN, and those whose END, a transaction topic has.

    `values`: values of its records. Transactions from the time before gtid_mode=ON do not count: their ids are
    `file=...,pos=...`.
    """
    begun, ended = GtidSet(), GtidSet()
    for value in values:
        try:
            gtid = GtidSet.parse(str(value.get("id")))
        except ValueError:
            continue
        if value.get("status") == "BEGIN":
            begun |= gtid
        else:
            ended |= gtid
    return begun, ended


def values_since(
    client: ClientSettings,
    topic: str,
    seconds: int,
    avro: AvroSchemas | None,
    member: str,
    is_early: Callable[[Mapping[str, Any]], bool],
) -> Iterator[dict[str, Any]]:
    """Yield the values of a topic's records since `seconds`, without their schemas. Earlier ones may follow.

    `avro`: where their schemas are; None for JSON. `member`: a member that the topic's own values have. A router may
    send other records to the topic, which are left out. `is_early`: whether a value is of a record before the offset.
    If none is, the clocks differ, and earlier values are read until one is. Raise ConfigError for a value in another
    form. Raise ServerUnreachable if Kafka or the registry does not answer.
    """
    for range_ in ranges_since(client, partition_counts(admin_client(client), [topic]), seconds):
        part = range_.tail if range_.is_quiet else range_.part
        is_begun = part.begin == part.end
        while not is_begun:
            is_since = part.begin >= range_.part.begin
            for value in _values(client, part, avro, refuses=is_since):
                if isinstance(value, dict) and member in value:
                    is_begun = is_begun or is_early(value)
                    yield value
            is_begun = is_begun or part.begin == range_.first
            part = replace(range_.longer(part), end=part.begin)


def _values(
    client: ClientSettings, part: PartitionPart, avro: AvroSchemas | None, *, refuses: bool
) -> Iterator[dict[str, Any]]:
    """Yield the values of records. `refuses`: whether one in another form is an error, or is left out."""
    for _, messages in messages_of(client, [part]):
        present = [message for message in messages if message.value() is not None]
        values = [message.value() or b"" for message in present]
        if avro is not None:
            values = as_json(with_ids(present, pa.array(values, pa.binary()), "value", avro), avro).to_pylist()
        for value in values:
            content = _parsed(value)
            if content is not None:
                yield content["payload"] if set(content) == {"schema", "payload"} else content
            elif refuses:
                raise ConfigError(
                    f"a record of the topic {part.topic} is not in the form of the file's value.converter",
                    "Give the converter with which the connector has written, in FILE or by --worker.",
                )


def _parsed(value: bytes) -> dict[str, Any] | None:
    try:
        content = json.loads(value)
    except ValueError:
        return None
    return content if isinstance(content, dict) else None
