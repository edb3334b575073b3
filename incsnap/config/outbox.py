"""Settings of Debezium's outbox EventRouter."""

from __future__ import annotations

from collections.abc import Iterator

from incsnap.config.declarations.kinds import FLAG, one_of
from incsnap.config.patterns import split_list
from incsnap.config.reader import SettingsReader
from incsnap.config.settings import Formats
from incsnap.transforms.chain import Chain
from incsnap.transforms.outbox import EventRouter
from incsnap.transforms.record_spec import OutboxEvent, PlacedColumn

_REGEX, _REPLACEMENT = "(?<routedByValue>.*)", "outbox.event.${routedByValue}"
_PLACES = ("header", "envelope", "partition")
#: Kinds of formats that write the value of one column and nothing else.
_ALONE = ("text", "bytes")


def event_router(reader: SettingsReader, name: str) -> EventRouter:
    """Return the transform EventRouter that the settings `transforms.<name>.*` describe. Add what is wrong with the
    settings to `reader.problems`.
    """
    start = f"transforms.{name}."
    # Debezium accepts this option and ignores it.
    reader.text(start + "table.field.event.type", "type")
    expands, keeps_nulls = _expansion(reader, start)
    topics = reader.regex(start + "route.topic.regex") if reader.given(start + "route.topic.regex") else _REGEX
    to = _REPLACEMENT
    if reader.given(start + "route.topic.replacement"):
        to = reader.replacement(start + "route.topic.replacement", topics)
    elif topics != _REGEX:
        reader.problems.append(f"{start}route.topic.replacement: missing; the name of the events' topics")
    missing = reader.read(start + "table.field.additional.missing", one_of("error", "ignore"), "error")
    return EventRouter(
        OutboxEvent(
            name=name,
            id=reader.text(start + "table.field.event.id", "id"),
            key=reader.text(start + "table.field.event.key", "aggregateid"),
            payload=reader.text(start + "table.field.event.payload", "payload"),
            timestamp=reader.text(start + "table.field.event.timestamp"),
            route=reader.text(start + "route.by.field", "aggregatetype"),
            regex=topics,
            replacement=to,
            placed=tuple(_placed(reader, start + "table.fields.additional.placement", missing == "ignore")),
            version=reader.text(start + "table.field.event.schema.version"),
            tombstones=reader.read(start + "route.tombstone.on.empty.payload", FLAG, "false"),
            expands=expands,
            keeps_nulls=keeps_nulls,
        ),
        reader.read(start + "table.op.invalid.behavior", one_of("warn", "error", "fatal"), "warn"),
    )


def _expansion(reader: SettingsReader, start: str) -> tuple[bool, bool]:
    """Return whether a JSON payload becomes a struct, and whether its null fields are kept."""
    nulls = reader.read(start + "table.json.payload.null.behavior", one_of("ignore", "optional_bytes"), "ignore")
    expands = reader.read(start + "table.expand.json.payload", FLAG, "false")
    names, arrays = start + "field.name.adjustment.mode", start + "table.json.payload.empty.array.behavior"
    renamed, empty = reader.text(names, "none").lower(), reader.text(arrays, "ignore").lower()
    if expands and renamed != "none":
        # Debezium looks up the adjusted names in the payload, so it loses the values of renamed fields.
        reader.problems.append(f"{names}: not supported, fields of payloads keep their names. Remove it")
    if expands and empty != "ignore":
        reader.problems.append(f"{arrays}: not supported, Debezium 3.6 leaves fields with empty arrays out. Remove it")
    return expands, expands and nulls == "optional_bytes"


def _placed(reader: SettingsReader, setting: str, optional: bool) -> Iterator[PlacedColumn]:
    """Yield the columns of `table.fields.additional.placement`. `optional` means that a missing column is no error."""
    names: set[tuple[str, str]] = set()
    for text in split_list(reader.text(setting)):
        parts = [part.strip() for part in text.split(":")]
        if len(parts) not in (2, 3) or not all(parts):
            reader.problems.append(f"{setting}: {text!r} is not of the form column:place or column:place:name")
            continue
        place, name = parts[1].lower(), parts[-1] if len(parts) == 3 else parts[0]
        if place not in _PLACES:
            reader.problems.append(f"{setting}: {text!r}: unknown place {parts[1]}; known are {', '.join(_PLACES)}")
        elif place == "envelope" and ((place, name) in names or name == "payload"):
            reader.problems.append(f"{setting}: two fields are called {name}; write another name after a second :")
        else:
            yield PlacedColumn(parts[0], place, name, optional)
        names.add((place, name))


def problems(chain: Chain, formats: Formats) -> list[str]:
    """Return a problem, as text, for each converter that cannot write the records of `chain`.

    An empty list means that all is well. The converters for text and bytes write only outbox events with a single
    value, so they need an EventRouter. Avro cannot write outbox events. JSON with schemas cannot write events with
    columns in their envelope.
    """
    routers = [step.transform.event for step in chain if isinstance(step.transform, EventRouter)]
    refused = [
        f"{side}.converter: a converter for {choice.kind} writes only the events of an outbox's EventRouter, and there"
        " is no EventRouter. Set org.apache.kafka.connect.json.JsonConverter or"
        " io.confluent.connect.avro.AvroConverter"
        for side, choice in (("key", formats.key), ("value", formats.value))
        if choice.kind in _ALONE and not routers and (side, choice.kind) != ("key", "text")
    ]
    kind = formats.value.kind
    for event in routers:
        for side, choice in (("key", formats.key), ("value", formats.value)):
            if choice.is_registered:
                refused.append(
                    f"{side}.converter: events of transforms.{event.name} are written as JSON, text or bytes. Set"
                    " JsonConverter, StringConverter or io.debezium.converters.BinaryDataConverter, or capture the"
                    " outbox table with another job"
                )
        if kind in _ALONE and event.expands:
            refused.append(
                f"transforms.{event.name}.table.expand.json.payload: value.converter writes {kind}, and a struct is no"
                f" {kind}. Remove this setting, so that the column's JSON is written, or set JsonConverter"
            )
        if kind in _ALONE and event.in_envelope:
            refused.append(
                f"transforms.{event.name}.table.fields.additional.placement: value.converter writes {kind}, and an"
                f" envelope is no {kind}. Place the columns in headers, or set JsonConverter"
            )
        if formats.value.schemas and event.in_envelope:
            refused.append(
                f"transforms.{event.name}.table.fields.additional.placement: the first event would decide the name of"
                " an envelope's schema. Set value.converter.schemas.enable=false, or place the columns in headers"
            )
    return refused
