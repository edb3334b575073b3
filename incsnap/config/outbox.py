"""The settings of the outbox's EventRouter."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from incsnap.config.patterns import split_list
from incsnap.config.reading import SettingsReader
from incsnap.config.settings import Formats
from incsnap.transforms.chain import Chain
from incsnap.transforms.form import Event, Placed
from incsnap.transforms.outbox import EventRouter

_REGEX, _REPLACEMENT = "(?<routedByValue>.*)", "outbox.event.${routedByValue}"
_PLACES = ("header", "envelope", "partition")
#: Kinds of formats that write nothing but a column's value.
_ALONE = ("text", "bytes")


def event_router(
    reading: SettingsReader,
    name: str,
    regex: Callable[[SettingsReader, str], str],
    replacement: Callable[[SettingsReader, str, str], str],
) -> EventRouter:
    """``regex``, ``replacement``: read such settings, and tell what is wrong with them."""
    start = f"transforms.{name}."
    # It means nothing to Debezium either.
    reading.text(start + "table.field.event.type", "type")
    expands, keeps_nulls = _expansion(reading, start)
    topics = regex(reading, start + "route.topic.regex") if reading.given(start + "route.topic.regex") else _REGEX
    to = _REPLACEMENT
    if reading.given(start + "route.topic.replacement"):
        to = replacement(reading, start + "route.topic.replacement", topics)
    elif topics != _REGEX:
        reading.problems.append(f"{start}route.topic.replacement: missing; what the topics of events are called")
    missing = reading.choice(start + "table.field.additional.missing", "error", ("error", "ignore"))
    return EventRouter(
        Event(
            name=name,
            id=reading.text(start + "table.field.event.id", "id"),
            key=reading.text(start + "table.field.event.key", "aggregateid"),
            payload=reading.text(start + "table.field.event.payload", "payload"),
            timestamp=reading.text(start + "table.field.event.timestamp"),
            route=reading.text(start + "route.by.field", "aggregatetype"),
            regex=topics,
            replacement=to,
            placed=tuple(_placed(reading, start + "table.fields.additional.placement", missing == "ignore")),
            # The version of a schema that is not written, wherever this is not refused.
            version=reading.text(start + "table.field.event.schema.version"),
            tombstones=reading.flag(start + "route.tombstone.on.empty.payload", False),
            expands=expands,
            keeps_nulls=keeps_nulls,
        ),
        reading.choice(start + "table.op.invalid.behavior", "warn", ("warn", "error", "fatal")),
    )


def _expansion(reading: SettingsReader, start: str) -> tuple[bool, bool]:
    """Whether a payload of JSON becomes a struct, and whether fields that are null stay."""
    nulls = reading.choice(start + "table.json.payload.null.behavior", "ignore", ("ignore", "optional_bytes"))
    expands = reading.flag(start + "table.expand.json.payload", False)
    names, arrays = start + "field.name.adjustment.mode", start + "table.json.payload.empty.array.behavior"
    renamed, empty = reading.text(names, "none").lower(), reading.text(arrays, "ignore").lower()
    if expands and renamed != "none":
        # Debezium looks for adjusted names in the payload, so the values of fields that it renames are lost.
        reading.problems.append(f"{names}: not supported, fields of payloads keep their names; take it out")
    if expands and empty != "ignore":
        reading.problems.append(
            f"{arrays}: not supported, Debezium 3.6 leaves fields with empty arrays out; take it out"
        )
    return expands, expands and nulls == "optional_bytes"


def _placed(reading: SettingsReader, setting: str, optional: bool) -> Iterator[Placed]:
    names: set[tuple[str, str]] = set()
    for text in split_list(reading.text(setting)):
        parts = [part.strip() for part in text.split(":")]
        if len(parts) not in (2, 3) or not all(parts):
            reading.problems.append(f"{setting}: {text!r} is not of the form column:place or column:place:name")
            continue
        place, name = parts[1].lower(), parts[-1] if len(parts) == 3 else parts[0]
        if place not in _PLACES:
            reading.problems.append(f"{setting}: {text!r}: there is no place {parts[1]}, but {', '.join(_PLACES)}")
        elif place == "envelope" and ((place, name) in names or name == "payload"):
            reading.problems.append(f"{setting}: {name} would be there twice; give it another name behind a second :")
        else:
            yield Placed(parts[0], place, name, optional)
        names.add((place, name))


def problems(chain: Chain, formats: Formats) -> list[str]:
    """What of the formats cannot be written of events."""
    routers = [step.transform.event for step in chain if isinstance(step.transform, EventRouter)]
    refused = [
        f"{side}.converter: it writes {choice.kind}, which only the events of an outbox's EventRouter are, and there is"
        " none; name org.apache.kafka.connect.json.JsonConverter or io.confluent.connect.avro.AvroConverter"
        for side, choice in (("key", formats.key), ("value", formats.value))
        if choice.kind in _ALONE and not routers
    ]
    kind = formats.value.kind
    for event in routers:
        for side, choice in (("key", formats.key), ("value", formats.value)):
            if choice.kind == "avro":
                refused.append(
                    f"{side}.converter: events of transforms.{event.name} are written as JSON, text or bytes; name"
                    " JsonConverter, StringConverter or io.debezium.converters.BinaryDataConverter, or give the outbox"
                    " table a job of its own"
                )
        if kind in _ALONE and event.expands:
            refused.append(
                f"transforms.{event.name}.table.expand.json.payload: a struct is no {kind}, which value.converter is to"
                " write; take it out, for the column is the JSON then, or name JsonConverter"
            )
        if kind in _ALONE and event.in_envelope:
            refused.append(
                f"transforms.{event.name}.table.fields.additional.placement: an envelope is no {kind}, which"
                " value.converter is to write; place the columns in headers, or name JsonConverter"
            )
        if formats.value.schemas and event.in_envelope:
            refused.append(
                f"transforms.{event.name}.table.fields.additional.placement: an envelope's schema would be named by"
                " whichever event was first; set value.converter.schemas.enable=false, or place the columns in headers"
            )
    return refused
